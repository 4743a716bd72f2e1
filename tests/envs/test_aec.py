"""The PettingZoo AEC environment: conformance, masks, rewards and dead steps, illegal actions, hidden cards."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pettingzoo
import pytest

import devyatka_env
from devyatka_env import ENV_ID, Game, IllegalActionError, Match, Rules, raw_env
from devyatka_env.rules import to_mask
from tests.helpers.games import COMBINATIONS, fouls, random_moment
from tests.helpers.pettingzoo_checks import api_test, render_test, seed_test
from tests.helpers.redeal import redeal

every_combination = pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)


def choose(mask: np.ndarray[Any, Any], rng: random.Random) -> int:
    """A random legal action."""
    return int(rng.choice(mask.nonzero()[0]))


def play_moves(env: raw_env, rng: random.Random, moves: int | None = None) -> raw_env:
    """Play random legal moves, all of the match or some; dead steps are not taken."""
    while moves != 0 and not any(env.terminations.values()):
        env.step(choose(env.last()[0]["action_mask"], rng))
        moves = None if moves is None else moves - 1
    return env


# --- PettingZoo's own checks -----------------------------------------------------------------------------------------


# The full 1,000 cycles: `api_test` plays one match to its end and stops there, so it costs milliseconds.
@pytest.mark.filterwarnings("ignore:unknown reset option 'options':UserWarning")  # an option of api_test's making
@pytest.mark.filterwarnings("ignore:Observation space for each agent probably:UserWarning")  # api_test on any Dict
@pytest.mark.filterwarnings("ignore:Observation is not a NumPy array:UserWarning")  # the same
@every_combination
def test_api_test__passes(preset: str, seats: int) -> None:
    api_test(devyatka_env.env(preset, seats), num_cycles=1000)


@every_combination
def test_seed_test__passes(preset: str, seats: int) -> None:
    seed_test(partial(devyatka_env.env, preset, seats), num_cycles=500)


@every_combination
def test_render_test__passes(preset: str, seats: int, capsys: pytest.CaptureFixture[str]) -> None:
    render_test(partial(devyatka_env.env, preset, seats))
    assert "seat 0" in capsys.readouterr().out  # mode `human` prints


def test_make__builds_the_registered_environment() -> None:
    env = pettingzoo.make("aec", ENV_ID, rules="one_loser", num_players=3)
    assert isinstance(env.unwrapped, raw_env)
    assert env.unwrapped.rules == Rules.of("one_loser", num_players=3)


@pytest.mark.parametrize("seats", range(2, 7))
def test_env__the_number_of_seats_asked_for_is_the_number_played(seats: int) -> None:
    for env in (
        devyatka_env.env(num_players=seats),
        devyatka_env.env({"preset": "bank", "num_players": seats}),
        devyatka_env.env(Rules.of("deck_52", num_players=seats)),
        devyatka_env.env(Rules.of("round", num_players=2), seats),
    ):
        env.reset(seed=0)
        assert env.possible_agents == env.agents == [f"player_{seat}" for seat in range(seats)]
        dealt = [env.observe(agent)["observation"][: env.rules.pass_action].sum() for agent in env.agents]
        assert sum(dealt) == env.rules.deck.num_cards


def test_env__bad_arguments_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="render_mode must be one of human, ansi, rgb_array"):
        devyatka_env.env(render_mode="svg")
    with pytest.raises(ValueError, match="illegal must be one of raise, terminate, not 'ignore'"):
        devyatka_env.env(illegal="ignore")
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'num_player'; did you mean 'num_players'\?"):
        devyatka_env.env(num_player=3)
    with pytest.raises(ValueError, match="unknown rule field 'num_player'"):
        devyatka_env.env({"num_player": 3})


def test_spaces__are_the_same_objects_and_hold_observations_and_state() -> None:
    env = devyatka_env.env("sevens", 5)
    env.reset(seed=3)
    for moves in range(5):
        play_moves(env, random.Random(moves), moves)
        for agent in env.agents:
            assert env.observation_space(agent) is env.observation_space(agent)
            assert env.action_space(agent) is env.action_space(agent)
            assert env.observation_space(agent).contains(env.observe(agent))
        assert env.state().shape == env.state_space.shape
        assert env.state_space.contains(env.state())
    assert env.action_space("player_0").n == env.rules.pass_action + 1


# --- masks -----------------------------------------------------------------------------------------------------------


@every_combination
def test_masks__show_the_mover_its_legal_actions_and_the_others_pass_alone(preset: str, seats: int) -> None:
    rng = random.Random(seats)
    env = devyatka_env.env(preset, seats)
    env.reset(seed=seats)
    match = Match(env.rules, seats)
    pass_only = np.eye(env.rules.pass_action + 1, dtype=np.int8)[-1]
    while not match.is_over:
        mover = env.agent_selection
        assert mover == f"player_{match.game.turn}"
        for agent in env.agents:
            seen = env.observe(agent)
            mask = seen["action_mask"]
            assert mask.dtype == seen["observation"].dtype == np.int8
            np.testing.assert_array_equal(mask, env.infos[agent]["action_mask"])
            if agent == mover:
                assert mask.nonzero()[0].tolist() == match.game.legal_actions()
            else:
                np.testing.assert_array_equal(mask, pass_only)
        action = choose(env.last()[4]["action_mask"], rng)
        match.game.play(action)
        env.step(action)
        if match.game.is_over:
            match.next_deal()
    for agent in env.agents:  # the match is over
        np.testing.assert_array_equal(env.observe(agent)["action_mask"], pass_only)
        np.testing.assert_array_equal(env.infos[agent]["action_mask"], pass_only)


def test_observe__gives_arrays_of_its_own() -> None:
    env = devyatka_env.env()
    env.reset(seed=0)
    kept = env.observe("player_1")
    before = pickle.dumps(kept)
    env.last()[0]["action_mask"][:] = 1
    env.last()[0]["observation"][:] = 1
    play_moves(env, random.Random(0), 5)
    assert pickle.dumps(kept) == before


# --- rewards and dead steps ------------------------------------------------------------------------------------------


@every_combination
def test_last__rewards_of_each_agent_add_up_to_its_payoffs(preset: str, seats: int) -> None:
    rng = random.Random(seats)
    env = devyatka_env.env(preset, seats)
    for seed in range(3):
        env.reset(seed=seed)
        match, received = Match(env.rules, seed), dict.fromkeys(env.agents, 0.0)
        for agent in env.agent_iter():
            observation, reward, terminated, truncated, _ = env.last()
            received[agent] += reward
            if terminated or truncated:
                left = [other for other in env.agents if other != agent]
                env.step(None)
                assert env.agents == left  # the list shrinks by one dead step at a time
                continue
            wrong = fouls(match.game) if rng.random() < 0.05 else []
            action = rng.choice(wrong) if wrong else choose(observation["action_mask"], rng)
            match.game.play(action)
            if match.game.is_over:
                match.next_deal()
            env.step(action)
            assert env.agents == env.possible_agents
            assert set(env.terminations.values()) == {match.is_over}  # all seats end together
        assert match.is_over
        assert not env.agents
        assert tuple(received.values()) == pytest.approx(match.totals)


def test_last__a_loser_gets_its_loss_though_another_seat_ended_the_deal() -> None:
    env = devyatka_env.env("first_out", 3)
    for seed in range(20):
        env.reset(seed=seed)
        play_moves(env, random.Random(seed))
        received = {}
        for agent in env.agent_iter():
            received[agent] = env.last()[1]
            assert env.last()[2]
            env.step(None)
        winner = max(received, key=received.__getitem__)
        assert received.pop(winner) == 1.0
        assert list(received.values()) == [-0.5, -0.5]


def test_last__the_payoff_of_one_deal_arrives_at_the_next_turn_of_its_seat_in_the_next_deal() -> None:
    env = devyatka_env.env("round", 4)
    rng = random.Random(1)
    env.reset(seed=1)
    match, due = Match(env.rules, 1), dict.fromkeys(env.agents, 0.0)
    deals_with_late_payment = set()
    for agent in env.agent_iter():
        observation, reward, terminated, _, _ = env.last()
        assert reward == due[agent], "neither lost nor early"
        if reward and not terminated:
            deals_with_late_payment.add(match.deal_number)
        due[agent] = 0.0
        if terminated:
            env.step(None)
            continue
        action = choose(observation["action_mask"], rng)
        match.game.play(action)
        env.step(action)
        if match.game.is_over:
            for seat, payoff in enumerate(match.game.result().payoffs):
                due[f"player_{seat}"] += payoff
            match.next_deal()
    assert deals_with_late_payment == {1, 2, 3}
    assert not any(due.values())


# --- illegal actions and calls out of order --------------------------------------------------------------------------

NUMBERS_OUT_OF_RANGE = [-1, -2, 37, 255, 256, 10**9, 2**70, -(2**70), np.int64(-1), np.int8(-1)]
NOT_NUMBERS = [None, 4.0, np.float32(4), "9♦", [4], np.array([4]), np.eye(37)]


def running_env(illegal: str = "raise", moves: int = 9) -> raw_env:
    """An environment in mid-deal."""
    env = devyatka_env.env(illegal=illegal)
    env.reset(seed=5)
    return play_moves(env, random.Random(5), moves)


def refused(env: raw_env, action: Any, error: type[Exception], match: str) -> None:
    """The action is refused and not a byte has changed."""
    assert env.rules.deck.cards  # computed once, when first asked for: the error's text must not be that
    before = pickle.dumps(env)
    with pytest.raises(error, match=match):
        env.step(action)
    assert pickle.dumps(env) == before


@pytest.mark.parametrize("illegal", ["raise", "terminate"])
@pytest.mark.parametrize("action", NOT_NUMBERS, ids=repr)
def test_step__what_is_no_number_is_refused_and_changes_nothing(illegal: str, action: Any) -> None:
    refused(running_env(illegal), action, TypeError, "whole number")


def test_step__an_illegal_action_is_refused_and_changes_nothing() -> None:
    env = running_env()
    legal = set(env.last()[0]["action_mask"].nonzero()[0].tolist())
    for action in [*NUMBERS_OUT_OF_RANGE, *(set(range(37)) - legal)]:
        refused(env, action, IllegalActionError, rf"illegal action {action}\b.* legal: ")
    play_moves(env, random.Random(5))
    assert all(env.terminations.values())


@pytest.mark.parametrize("kind", [int, np.int8, np.uint8, np.int32, np.int64, np.uint64, np.array])
def test_step__any_kind_of_whole_number_plays(kind: Callable[[int], Any]) -> None:
    env, plain = running_env(), running_env()
    action = choose(env.last()[0]["action_mask"], random.Random(0))
    env.step(kind(action))
    plain.step(action)
    np.testing.assert_array_equal(env.state(), plain.state())


@pytest.mark.parametrize("action", [-1, 37, 36, 2**70, "taken"])
def test_step__terminate_ends_the_match_with_minus_one_for_the_offender(action: Any) -> None:
    env = running_env("terminate")
    if action == "taken":
        action = Game.deal("first_out", 5).rules.opening_card  # it lies on the table
    offender = env.agent_selection
    env.step(action)
    expected = {agent: -1.0 if agent == offender else 0.0 for agent in env.possible_agents}
    assert env.rewards == expected
    assert all(env.terminations.values())
    assert all(env.truncations.values())
    received = {}
    for agent in env.agent_iter():
        received[agent] = env.last()[1]
        env.step(None)
    assert received == expected
    assert not env.agents
    env.reset(seed=5)  # clean: as if nothing had happened
    fresh = running_env("terminate", moves=0)
    assert env.agent_selection == fresh.agent_selection
    assert env.rewards == fresh.rewards == dict.fromkeys(env.agents, 0.0)
    assert not any(env.terminations.values())
    assert not any(env.truncations.values())
    np.testing.assert_array_equal(env.state(), fresh.state())
    play_moves(env, random.Random(5))


def test_masks__allow_pass_alone_after_an_illegal_end() -> None:
    env = running_env("terminate")
    env.step(-1)
    for agent in env.agents:
        assert env.observe(agent)["action_mask"].nonzero()[0].tolist() == [36]
        assert env.infos[agent]["action_mask"].nonzero()[0].tolist() == [36]


def test_step__is_refused_before_reset_and_after_the_last_dead_step() -> None:
    env = devyatka_env.env()
    with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\)"):
        env.step(0)
    env.reset(seed=0)
    play_moves(env, random.Random(0))
    with pytest.raises(ValueError, match="None"):  # PettingZoo: a dead agent's action must be None
        env.step(0)
    while env.agents:
        env.step(None)
    with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\)"):
        env.step(None)


# --- hidden cards ----------------------------------------------------------------------------------------------------


@every_combination
def test_observe__does_not_change_when_hidden_cards_are_dealt_otherwise(preset: str, seats: int) -> None:
    rng = random.Random(seats)
    moved = 0
    for seed in range(6):
        game = random_moment(Rules.of(preset, num_players=seats), seed)
        viewer = rng.randrange(seats)
        envs = []
        for deal in (game, redeal(game, viewer, rng)):
            env = devyatka_env.env(preset, seats)
            env.reset(options={"hands": deal.dealt_masks, "dealer": deal.dealer})
            envs.append(env)
        for action in [*game.actions, None]:
            one, other = (env.observe(f"player_{viewer}") for env in envs)
            np.testing.assert_array_equal(one["observation"], other["observation"])
            np.testing.assert_array_equal(one["action_mask"], other["action_mask"])
            for env in envs:
                if action is not None:
                    env.step(action)
        moved += not np.array_equal(envs[0].state(), envs[1].state())
    assert moved or seats == 2  # with two seats and the whole pack dealt, nothing is hidden


def test_observe__shows_each_seat_its_own_hand() -> None:
    env = devyatka_env.env()
    env.reset(seed=2)
    for agent, hand in zip(env.agents, Game.deal("first_out", 2).hand_masks, strict=True):
        assert to_mask(env.observe(agent)["observation"][:36].nonzero()[0].tolist()) == hand
