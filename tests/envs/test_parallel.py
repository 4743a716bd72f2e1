"""The PettingZoo parallel environment: conformance, and move by move the same game as the AEC environment."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pettingzoo
import pytest

import devyatka_env
from devyatka_env import ENV_ID, IllegalActionError, Match, Rules
from devyatka_env.envs.parallel import DevyatkaParallelEnv, Observations
from tests.helpers.games import COMBINATIONS, fouls, random_moment
from tests.helpers.pettingzoo_checks import parallel_api_test
from tests.helpers.redeal import redeal

every_combination = pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)


def sample(observations: Observations, rng: random.Random) -> dict[str, int]:
    """A random legal action for every agent."""
    return {agent: int(rng.choice(seen["action_mask"].nonzero()[0])) for agent, seen in observations.items()}


def everything(answer: tuple[Any, ...]) -> bytes:
    """What `step` or `reset` answered, as bytes to compare."""
    return pickle.dumps(copy.deepcopy(answer))


def started(illegal: str = "raise", moves: int = 6, **rules: Any) -> tuple[DevyatkaParallelEnv, Observations]:
    """An environment in mid-deal, and its last observations."""
    env = devyatka_env.parallel_env(illegal=illegal, **rules)
    observations, _ = env.reset(seed=5)
    rng = random.Random(5)
    for _ in range(moves):
        observations = env.step(sample(observations, rng))[0]
    return env, observations


# --- PettingZoo's own checks -----------------------------------------------------------------------------------------


# 1,000 cycles are a limit: `parallel_api_test` plays two matches to their end and stops there.
@pytest.mark.filterwarnings("ignore:unknown reset option 'options':UserWarning")  # an option of the test's making
@every_combination
def test_parallel_api_test__passes(preset: str, seats: int) -> None:
    parallel_api_test(devyatka_env.parallel_env(preset, seats), num_cycles=1000)


def test_make__builds_the_registered_environment() -> None:
    env = pettingzoo.make("parallel", ENV_ID, rules="bank", num_players=2)
    assert isinstance(env.unwrapped, DevyatkaParallelEnv)
    assert env.unwrapped.rules == Rules.of("bank", num_players=2)


# --- the same game as the AEC environment ----------------------------------------------------------------------------


@every_combination
def test_step__plays_the_same_match_as_the_aec_environment(preset: str, seats: int) -> None:
    rng = random.Random(seats)
    parallel, aec = devyatka_env.parallel_env(preset, seats), devyatka_env.env(preset, seats)
    observations, infos = parallel.reset(seed=9)
    aec.reset(seed=9)
    match, received = Match(aec.rules, 9), dict.fromkeys(aec.agents, 0.0)
    while parallel.agents:
        assert parallel.agents == aec.agents
        np.testing.assert_array_equal(parallel.state(), aec.state())
        for agent in aec.agents:
            expected = aec.observe(agent)
            np.testing.assert_array_equal(observations[agent]["observation"], expected["observation"])
            np.testing.assert_array_equal(observations[agent]["action_mask"], expected["action_mask"])
            np.testing.assert_array_equal(infos[agent]["action_mask"], expected["action_mask"])
            assert parallel.observation_space(agent).contains(observations[agent])
        actions = sample(observations, rng)
        if (wrong := fouls(match.game)) and rng.random() < 0.05:
            actions[aec.agent_selection] = rng.choice(wrong)
        action = actions[aec.agent_selection]
        match.game.play(action)
        if match.game.is_over:
            match.next_deal()
        observations, rewards, terminations, truncations, infos = parallel.step(actions)
        aec.step(action)
        assert rewards == aec.rewards
        assert terminations == aec.terminations
        assert truncations == aec.truncations
        for agent, reward in rewards.items():
            received[agent] += reward
    assert match.is_over
    assert tuple(received.values()) == pytest.approx(match.totals)
    for agent in parallel.possible_agents:  # the last observations allow PASS alone
        assert observations[agent]["action_mask"].nonzero()[0].tolist() == [parallel.rules.pass_action]


def test_reset__options_are_those_of_the_aec_environment() -> None:
    hands = [" ".join(f"{rank}{suit}" for rank in "6789TJQKA") for suit in "CDHS"]
    options = {"hands": hands, "dealer": 2, "rules": "any_nine"}
    parallel, aec = devyatka_env.parallel_env(), devyatka_env.env()
    parallel.reset(seed=1, options=options)
    aec.reset(seed=1, options=options)
    np.testing.assert_array_equal(parallel.state(), aec.state())
    assert parallel.rules == aec.rules == Rules.of("any_nine")
    before = parallel.state()
    with pytest.raises(ValueError, match="3 hands for num_players=4"):
        parallel.reset(options={"hands": hands[:3]})
    np.testing.assert_array_equal(parallel.state(), before)


# --- illegal actions -------------------------------------------------------------------------------------------------


def bad_steps(
    env: DevyatkaParallelEnv, observations: Observations
) -> list[tuple[dict[str, Any], type[Exception], str]]:
    """Steps that must be refused, with the error and a part of its message."""
    good = sample(observations, random.Random(0))
    mover = next(agent for agent, seen in observations.items() if seen["action_mask"][-1] == 0)
    other = next(agent for agent in env.agents if agent != mover)
    illegal = int(np.flatnonzero(observations[mover]["action_mask"] == 0)[0])
    return [
        ({**good, mover: illegal}, IllegalActionError, f"illegal action {illegal} "),
        ({**good, mover: env.rules.pass_action}, IllegalActionError, "illegal action 36 "),
        ({**good, mover: -1}, IllegalActionError, "illegal action -1;"),
        ({**good, mover: 2**70}, IllegalActionError, f"illegal action {2**70};"),
        ({**good, other: good[mover]}, IllegalActionError, f"{other} is not on turn and can only pass"),
        ({**good, other: -1}, IllegalActionError, f"{other} is not on turn and can only pass"),
        ({**good, mover: None}, TypeError, "whole number"),
        ({**good, other: 36.0}, TypeError, "whole number"),
        ({mover: good[mover]}, ValueError, "expected an action for each of player_0, player_1, player_2, player_3"),
        ({**good, "player_4": 36}, ValueError, "expected an action for each of player_0"),
    ]


def test_step__what_is_illegal_is_refused_and_changes_nothing() -> None:
    env, observations = started()
    assert env.rules.deck.cards  # computed once, when first asked for: the error's text must not be that
    before = pickle.dumps(env)
    for actions, error, message in bad_steps(env, observations):
        with pytest.raises(error, match=message):
            env.step(actions)
        assert pickle.dumps(env) == before
    env.step(sample(observations, random.Random(0)))


@pytest.mark.parametrize("offender", ["mover", "other"])
def test_step__terminate_ends_the_match_with_minus_one_for_the_offender(offender: str) -> None:
    env, observations = started("terminate")
    actions = sample(observations, random.Random(0))
    mover = next(agent for agent, seen in observations.items() if seen["action_mask"][-1] == 0)
    guilty = mover if offender == "mover" else next(agent for agent in env.agents if agent != mover)
    actions[guilty] = -1
    _, rewards, terminations, truncations, _ = env.step(actions)
    assert rewards == {agent: -1.0 if agent == guilty else 0.0 for agent in env.possible_agents}
    assert all(terminations.values())
    assert all(truncations.values())
    assert not env.agents
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        env.step(actions)
    fresh, _ = started(moves=0)
    env.reset(seed=5)
    assert env.agents == env.possible_agents
    np.testing.assert_array_equal(env.state(), fresh.state())


def test_step__after_an_illegal_end_the_masks_allow_pass_alone() -> None:
    env, observations = started("terminate")
    seen, *_, infos = env.step({**sample(observations, random.Random(0)), "player_0": -1})
    for agent in env.possible_agents:
        assert seen[agent]["action_mask"].nonzero()[0].tolist() == [36]
        assert infos[agent]["action_mask"].nonzero()[0].tolist() == [36]


def test_step__before_reset_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\)"):
        devyatka_env.parallel_env().step({})


# --- copies and hidden cards -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "copier", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"]
)
@pytest.mark.parametrize("preset", ["first_out", "round"])
def test_copy__continues_identically(copier: Callable[[Any], Any], preset: str) -> None:
    env, observations = started(rules=preset, moves=11)
    twin, rng = copier(env), random.Random(1)
    while env.agents:
        actions = sample(observations, rng)
        answer = env.step(actions)
        assert everything(twin.step(actions)) == everything(answer)
        observations = answer[0]
    assert everything(twin.reset()) == everything(env.reset())


def test_reset__gives_each_agent_a_view_that_hides_the_other_hands() -> None:
    for seed in range(10):
        game = random_moment(Rules.of("any_nine"), seed)
        for viewer in range(4):
            shown = []
            for deal in (game, redeal(game, viewer, random.Random(seed))):
                env = devyatka_env.parallel_env("any_nine")
                observations, infos = env.reset(options={"hands": deal.dealt_masks, "dealer": deal.dealer})
                for action in game.actions:
                    mover = max(observations, key=lambda agent: observations[agent]["action_mask"][-1] == 0)
                    passes = dict.fromkeys(env.agents, env.rules.pass_action)
                    observations, *_, infos = env.step({**passes, mover: action})
                agent = f"player_{viewer}"
                shown.append(everything((observations[agent], infos[agent])))
            assert shown[0] == shown[1]
