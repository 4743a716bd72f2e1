"""The Gymnasium environment of one seat: conformance, own-turn transitions, rewards, seats, copies."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check
from stable_baselines3.common.env_checker import check_env as sb3_check

from devyatka_env import ENV_ID, Game, IllegalActionError, Match, Rules, make_bot
from devyatka_env.bots import CallableBot, CheckpointError
from devyatka_env.bots.checkpoint import write_checkpoint
from devyatka_env.bots.network import build_network
from devyatka_env.envs import DevyatkaEnv
from devyatka_env.evaluation import evaluate
from devyatka_env.rules import to_mask
from devyatka_env.views.observation import observation_layout
from tests.helpers.games import COMBINATIONS
from tests.helpers.players import lowest, play_lowest, play_match

every_combination = pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
SAMPLED = [("first_out", 4), ("one_loser", 3), ("winner_and_loser", 5), ("nine_each", 2), ("round", 6), ("sevens", 3)]


# --- conformance -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"skip_forced": True}, {"seat": 1}], ids=str)
@pytest.mark.parametrize(("preset", "seats"), SAMPLED)
def test_gymnasium_check_env__passes(preset: str, seats: int, options: dict[str, Any]) -> None:
    gymnasium_check(gymnasium.make(ENV_ID, rules=preset, num_players=seats, **options).unwrapped)


@pytest.mark.parametrize(("preset", "seats"), SAMPLED)
def test_sb3_check_env__passes(preset: str, seats: int) -> None:
    sb3_check(DevyatkaEnv(preset, seats))


def test_make__builds_the_registered_environment() -> None:
    env = gymnasium.make(ENV_ID, rules="any_nine", num_players=3, opponents="random", seat=2)
    assert isinstance(env.unwrapped, DevyatkaEnv)
    assert env.unwrapped.rules == Rules.of("any_nine", num_players=3)
    observation, info = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert info["seat"] == 2
    mask = env.get_wrapper_attr("action_masks")()
    assert mask.dtype == np.bool_
    np.testing.assert_array_equal(mask, observation["action_mask"] == 1)
    env.step(int(mask.argmax()))
    env.close()


def test_init__bad_arguments_are_refused_by_name() -> None:
    for seat in (4, -1, "left", True, 1.0):
        with pytest.raises(ValueError, match="seat must be 0 to 3 or 'rotate'"):
            DevyatkaEnv(seat=seat)
    with pytest.raises(ValueError, match="illegal must be one of random, raise, not 'terminate'"):
        DevyatkaEnv(illegal="terminate")
    with pytest.raises(ValueError, match="unknown bot 'stockfish': give one of random, greedy"):
        DevyatkaEnv(opponents="stockfish")
    with pytest.raises(ValueError, match="2 opponents given; 3 seats need"):
        DevyatkaEnv(opponents=["random", "greedy"])
    with pytest.raises(ValueError, match="unknown rules preset 'uno'"):
        DevyatkaEnv("uno")


# --- transitions and rewards -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("skip_forced", [False, True])
@every_combination
def test_step__shows_own_turns_alone(preset: str, seats: int, skip_forced: bool) -> None:
    env = DevyatkaEnv(preset, seats, opponents="random", skip_forced=skip_forced)
    layout = observation_layout(env.rules.pass_action)
    rng = random.Random(seats)
    for seed in range(3):
        observation, info = env.reset(seed=seed)
        over = False
        while not over:
            mask = observation["action_mask"]
            np.testing.assert_array_equal(info["action_mask"], mask)
            np.testing.assert_array_equal(env.action_masks(), mask.astype(bool))
            own_turn = layout.split(observation["observation"])["turn"][0, 0] == 1
            nothing_to_choose = skip_forced and not own_turn and mask.nonzero()[0].tolist() == [mask.size - 1]
            assert own_turn or nothing_to_choose
            assert mask.sum() >= 2 or nothing_to_choose or not skip_forced
            observation, reward, over, truncated, info = env.step(int(rng.choice(mask.nonzero()[0])))
            assert isinstance(reward, float)
            assert not truncated
            assert "illegal_action" not in info
        assert observation["action_mask"].nonzero()[0].tolist() == [env.rules.pass_action]
        with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\): the match is over"):
            env.step(env.rules.pass_action)


@every_combination
def test_step__rewards_add_up_to_the_payoffs_of_the_match_however_forced_turns_are_taken(
    preset: str, seats: int
) -> None:
    plain = DevyatkaEnv(preset, seats, opponents="greedy")
    skipping = DevyatkaEnv(preset, seats, opponents="greedy", skip_forced=True)
    for seed in range(8):
        plain.reset(seed=seed // seats)
        skipping.reset(seed=seed // seats)
        for _ in range(seed % seats):  # walks through the seats and through the deals after the seed's first
            plain.reset()
            skipping.reset()
        match = Match(plain.rules, seed // seats, seed % seats)
        bots = [CallableBot(lowest) if seat == plain.seat else make_bot("greedy") for seat in range(seats)]
        while not match.is_over:
            while not match.game.is_over:
                view = match.game.view(match.game.turn)
                match.game.play(bots[view.seat].act(view, np.random.default_rng(0)))
            match.next_deal()
        long, short = play_lowest(plain), play_lowest(skipping)
        assert sum(answer[1] for answer in long) == pytest.approx(match.totals[plain.seat])
        assert sum(answer[1] for answer in short) == pytest.approx(match.totals[plain.seat])
        assert len(short) <= len(long)
        assert plain.seat == skipping.seat == seed % seats


def test_step__a_match_without_any_choice_is_paid_once_by_the_first_step() -> None:
    # Regression: such a match is over at `reset`, and its payoff was counted at `reset` and again in `step`.
    env = DevyatkaEnv("nine_each", 2, opponents="greedy", skip_forced=True, payoff="cards")
    found = 0
    for seed in range(200):
        observation, _ = env.reset(seed=seed)
        if observation["action_mask"][-1] == 0:
            continue
        found += 1
        cards_left = observation_layout(36).split(observation["observation"])["cards_left"][0, 0]
        _, reward, over, _, _ = env.step(env.rules.pass_action)
        assert over
        assert reward == -float(cards_left)
    assert found


def test_step__skipping_forced_turns_makes_matches_much_shorter() -> None:
    # A third or more of four seats' turns have one legal card, so the margin of a tenth is wide.
    steps = []
    for skip_forced in (False, True):
        env = DevyatkaEnv(opponents="greedy", skip_forced=skip_forced)
        env.reset(seed=0)
        count = 0
        for _ in range(50):
            count += len(play_lowest(env))
            env.reset()
        steps.append(count)
    assert steps[1] < 0.9 * steps[0]


def test_step__the_reward_comes_with_the_end_whoever_ends_the_deal() -> None:
    # Out of 60 matches of four seats, the learner ends some and the others most; under `last_holder` it often leaves
    # with cards still in play, and its own last card is then the step that brings the end.
    env = DevyatkaEnv("one_loser", opponents="random", seat=0)
    layout = observation_layout(36)
    left_early = held_last = 0
    env.reset(seed=0)
    for _ in range(60):
        answers = play_lowest(env)
        observation, reward = answers[-1][0], answers[-1][1]
        assert all(answer[1] == 0 for answer in answers[:-1])
        cards_left = layout.split(observation["observation"])["cards_left"][0]
        lost = cards_left[0] > 0
        assert reward == pytest.approx(-1.0 if lost else 1 / 3)
        assert sum(cards_left > 0) == 1  # played on to the end
        held_last += lost
        left_early += not lost
        env.reset()
    assert left_early > 0
    assert held_last > 0


def test_step__a_learner_in_every_seat_scores_what_evaluate_says_of_the_same_bot() -> None:
    rules, payoffs = Rules.of("one_loser", num_players=3), []
    for seat in range(3):
        env = DevyatkaEnv(rules, opponents="random", seat=seat)
        env.reset(seed=8)
        for _ in range(20):
            payoffs.append(play_lowest(env)[-1][1])
            env.reset()
    measured = evaluate(CallableBot(lowest), [make_bot("random")] * 2, rules, deals=20, seed=8)
    assert measured.mean_payoff.mean == pytest.approx(np.mean(payoffs))


# --- illegal actions -------------------------------------------------------------------------------------------------


def test_step__an_illegal_action_is_replaced_by_a_random_legal_one_and_reported() -> None:
    env = DevyatkaEnv(opponents="random")
    replacements = set()
    for seed in range(40):
        env.reset(seed=seed)
        legal = np.flatnonzero(env.action_masks())
        illegal = int(np.flatnonzero(~env.action_masks())[seed % 5])
        info = env.step(illegal)[4]
        assert info["illegal_action"] == illegal
        assert info["played_action"] in legal
        replacements.add(info["played_action"] == legal[0])
    assert replacements == {True, False}  # random, not always the lowest
    env.reset(seed=0)
    assert env.step(10**9)[4]["illegal_action"] == 10**9


def test_step__the_replacement_is_drawn_from_the_seed() -> None:
    plays = []
    for _ in range(2):
        env = DevyatkaEnv(opponents="random")
        env.reset(seed=3)
        plays.append([answer[4]["played_action"] for answer in play_match(env, lambda mask: int(mask.argmin()))])
    assert plays[0] == plays[1]


def test_step__in_raise_mode_an_illegal_action_is_refused_and_changes_nothing() -> None:
    env = DevyatkaEnv(illegal="raise")
    env.reset(seed=0)
    env.step(int(env.action_masks().argmax()))
    assert env.rules.deck.cards  # computed once, when first asked for: the error's text must not be that
    before = pickle.dumps(env)
    for action in [-1, 37, 2**70, *np.flatnonzero(~env.action_masks())]:
        with pytest.raises(IllegalActionError, match=rf"illegal action {action}\b"):
            env.step(action)
        assert pickle.dumps(env) == before
    for action in (None, 1.5, "9♦", np.array([1])):
        with pytest.raises(TypeError, match="whole number"):
            env.step(action)
        assert pickle.dumps(env) == before
    play_lowest(env)


# --- seeds, seats, copies --------------------------------------------------------------------------------------------


def test_reset__deals_what_game_deals_for_the_same_seed() -> None:
    env = DevyatkaEnv("any_nine", seat=1)
    observation, _ = env.reset(seed=12)
    for index in range(4):
        seen = observation_layout(36).split(observation["observation"])
        own = seen["hand"][0] + seen["played"][0]  # it is asked first on its first turn, forced or not
        assert to_mask(own.nonzero()[0].tolist()) == Game.deal("any_nine", 12, index).hand_masks[1]
        observation, _ = env.reset()


def test_reset__rotates_the_seat_and_a_seed_starts_at_seat_0() -> None:
    env = DevyatkaEnv(num_players=3)
    assert [env.reset()[1]["seat"] for _ in range(4)] == [0, 1, 2, 0]
    assert env.reset(seed=5)[1]["seat"] == 0
    assert [env.reset()[1]["seat"] for _ in range(4)] == [1, 2, 0, 1]
    fixed = DevyatkaEnv(num_players=3, seat=2)
    assert {fixed.reset(seed=seed)[1]["seat"] for seed in (0, None, None)} == {2}


def test_reset__hands_option_lays_out_the_learners_hand() -> None:
    hands = [" ".join(f"{rank}{suit}" for rank in "6789TJQKA") for suit in "CDHS"]
    env = DevyatkaEnv(seat=1)
    observation, _ = env.reset(options={"hands": hands})
    assert observation["action_mask"].nonzero()[0].tolist() == [12]
    assert observation["observation"][:36].nonzero()[0].tolist() == list(range(9, 18))
    with pytest.raises(ValueError, match="3 hands"):
        env.reset(options={"hands": hands[:3]})
    np.testing.assert_array_equal(env.action_masks(), observation["action_mask"])


@pytest.mark.parametrize(
    "copier", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"]
)
@pytest.mark.parametrize("opponents", ["random", "greedy"])
@pytest.mark.parametrize("preset", ["first_out", "round"])
def test_copy__continues_identically(copier: Callable[[Any], Any], opponents: str, preset: str) -> None:
    env = DevyatkaEnv(preset, opponents=opponents)
    env.reset(seed=2)
    env.reset()
    env.step(-1)
    twin = copier(env)
    for _ in range(3):
        # The lowest action, legal or not: the random replacements must agree too.
        one, other = (play_match(each, lambda mask: int(mask.argmin())) for each in (env, twin))
        assert pickle.dumps(copy.deepcopy(one)) == pickle.dumps(copy.deepcopy(other))
        assert env.reset()[1]["seat"] == twin.reset()[1]["seat"]


def test_reset__with_rules_that_an_opponent_does_not_play_changes_nothing(tmp_path: Path) -> None:
    spec = {"kind": "mlp", "hidden": [4]}
    folder = tmp_path / "bot"
    write_checkpoint(folder, build_network(36, spec).state_dict(), [Rules.of("first_out")], spec)
    env = DevyatkaEnv(opponents=folder)
    before = env.reset(seed=1)[0]["observation"]
    with pytest.raises(CheckpointError, match=r"trained for .*first_out.* not for .*one_loser"):
        env.reset(options={"rules": "one_loser"})
    assert env.rules == Rules.of("first_out")
    assert (env.reset(seed=1)[0]["observation"] == before).all()


def test_opponents__of_another_deck_are_refused_even_with_any_rules(tmp_path: Path) -> None:
    spec = {"kind": "mlp", "hidden": [4]}
    folder = tmp_path / "bot"
    write_checkpoint(folder, build_network(36, spec).state_dict(), [Rules.of("first_out")], spec)
    with pytest.raises(CheckpointError, match=r"decks of 36 cards, not .* with 52"):
        DevyatkaEnv("deck_52", opponents=f"{folder}+any_rules")


def test_calls_before_reset__are_refused_by_name() -> None:
    env = DevyatkaEnv()
    for call in (lambda: env.step(0), env.action_masks, env.state, env.render):
        with pytest.raises(RuntimeError, match=r"call reset\(\) before"):
            call()


def test_reset__takes_numpy_seeds_as_the_aec_environment_does() -> None:
    seen = [DevyatkaEnv().reset(seed=seed)[0]["observation"] for seed in (4, np.int64(4), np.uint64(4))]  # type: ignore[arg-type]
    assert (seen[0] == seen[1]).all()
    assert (seen[0] == seen[2]).all()
