"""Starting, seeding and copying the AEC environment: the deals of a seed, reset options, deepcopy and pickle."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pettingzoo import AECEnv
from pettingzoo.utils import aec_to_parallel
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper

import devyatka_env
from devyatka_env import DealError, Game, RulesError, raw_env
from devyatka_env.views.observation import state_layout

HANDS = ["6♣ 7♣ 8♣ 9♣ 10♣ J♣ Q♣ K♣ A♣", "6♦ 7♦ 8♦ 9♦ 10♦ J♦ Q♦ K♦ A♦", "6♥ 7♥ 8♥ 9♥ 10♥ J♥ Q♥ K♥ A♥"]
HANDS += ["6♠ 7♠ 8♠ 9♠ 10♠ J♠ Q♠ K♠ A♠"]

Copier = Callable[[Any], Any]
every_copier = pytest.mark.parametrize(
    "copier", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"]
)


def play(env: AECEnv, seed: int, moves: int | None = None) -> list[Any]:
    """Play random legal moves to the last dead step, or some of them; returns all that `last` and `state` showed."""
    rng, trace = random.Random(seed), []
    while env.agents and moves != 0:
        observation, reward, terminated, truncated, info = env.last()
        mask = observation["action_mask"]
        seen = (observation["observation"], mask, info["action_mask"], env.state())
        trace.append((env.agent_selection, reward, terminated, truncated, *(array.tobytes() for array in seen)))
        env.step(None if terminated or truncated else int(rng.choice(mask.nonzero()[0])))
        moves = None if moves is None else moves - 1
    return trace


def dealt_hands(env: raw_env) -> tuple[int, ...]:
    """The hands of a fresh deal by seat, read from the state vector."""
    rows = state_layout(env.rules.pass_action).split(env.state())["hands"]
    return tuple(sum(1 << int(card) for card in row.nonzero()[0]) for row in rows[: len(env.possible_agents)])


# --- seeds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", ["first_out", "nine_each", "any_nine", "deck_52"])
def test_reset__a_seed_and_the_resets_after_it_deal_the_deals_of_game(rules: str) -> None:
    env = devyatka_env.env(rules)
    for seed in (0, 7, 2**64 - 1):
        env.reset(seed=seed)
        for index in range(4):
            assert dealt_hands(env) == Game.deal(env.rules, seed, index).hand_masks
            play(env, index, moves=3 * index)
            env.reset()


def test_reset__a_match_of_several_deals_starts_at_a_multiple_of_its_length() -> None:
    env = devyatka_env.env("round", 4)
    for abandoned_after in (0, 5, 60):
        env.reset(seed=3)
        play(env, 0, moves=abandoned_after)
        env.reset()
        game = Game.deal(env.rules, 3, 4)
        assert dealt_hands(env) == game.hand_masks
        assert game.dealer == 3


def test_reset__without_any_seed_deals_differently_in_each_environment() -> None:
    hands = set()
    for _ in range(20):
        env = devyatka_env.env()
        env.reset()
        hands.add(dealt_hands(env))
    assert len(hands) == 20  # two equal 64-bit seeds: a chance of 1e-17


def test_reset__an_unseeded_reset_deals_anew() -> None:
    env = devyatka_env.env()
    env.reset(seed=0)
    hands = {dealt_hands(env)}
    for _ in range(20):
        env.reset()
        hands.add(dealt_hands(env))
    assert len(hands) == 21


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "7", True])
def test_reset__a_bad_seed_is_refused_and_the_match_goes_on(seed: Any) -> None:
    env = devyatka_env.env()
    env.reset(seed=0)
    play(env, 0, moves=4)
    before = pickle.dumps(env)
    with pytest.raises(ValueError, match="seed must be a whole number from 0 to"):
        env.reset(seed=seed)
    assert pickle.dumps(env) == before


def test_step__uses_no_global_random_state() -> None:
    python, numpy = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002 - the state in question
    env = devyatka_env.env()
    env.reset()
    play(env, 0)
    assert random.getstate() == python
    assert pickle.dumps(np.random.get_state()) == numpy  # noqa: NPY002
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    env.reset(seed=4)
    first = play(env, 0)
    random.seed(2)
    np.random.seed(2)  # noqa: NPY002
    env.reset(seed=4)
    assert play(env, 0) == first


def trace_digest() -> str:
    """Three seeded matches of three rule sets, as one digest."""
    digest = hashlib.sha256()
    for rules in ("first_out", "round", "sevens"):
        env = devyatka_env.env(rules, 3)
        env.reset(seed=11)
        digest.update(repr(play(env, 5)).encode())
    return digest.hexdigest()


def test_reset__a_seed_deals_alike_in_another_process() -> None:
    code = "from tests.envs import test_aec_reset; print(test_aec_reset.trace_digest())"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), "PYTHONHASHSEED": "12345"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == trace_digest()


# --- options ---------------------------------------------------------------------------------------------------------


def test_reset__hands_and_dealer_lay_out_the_deal() -> None:
    env = devyatka_env.env("any_nine")
    for dealer in range(4):
        env.reset(seed=1, options={"hands": HANDS, "dealer": dealer})
        assert dealt_hands(env) == Game.from_hands("any_nine", HANDS, dealer).hand_masks
        assert env.agent_selection == f"player_{(dealer + 1) % 4}"
    env.reset(options={"hands": HANDS})
    assert env.agent_selection == "player_0"  # the dealer is the last seat
    play(env, 0)


def test_reset__laid_out_hands_stand_for_the_first_deal_of_a_match() -> None:
    env = devyatka_env.env("round", 4)
    env.reset(seed=1, options={"hands": HANDS})
    rng, table = random.Random(0), dealt_hands(env)
    assert table == Game.from_hands("round", HANDS).hand_masks
    while not any(env.rewards.values()):
        env.step(int(rng.choice(env.last()[0]["action_mask"].nonzero()[0])))
    assert dealt_hands(env) == Game.deal(env.rules, 1, 1).hand_masks


def test_reset__rules_persist_until_changed_and_do_not_disturb_seeding() -> None:
    env = devyatka_env.env("first_out", 3)
    env.reset(seed=2, options={"rules": "one_loser"})
    assert env.rules == devyatka_env.Rules.of("one_loser", num_players=3)
    env.reset(seed=2)
    assert env.rules == devyatka_env.Rules.of("one_loser", num_players=3)
    assert dealt_hands(env) == Game.deal(env.rules, 2, 0).hand_masks
    env.reset(options={"rules": {"preset": "bank", "ante": 5}})
    assert (env.rules.payoff, env.rules.ante) == ("bank", 5.0)
    assert dealt_hands(env) == Game.deal(env.rules, 2, 1).hand_masks
    assert min(reward for _, reward, *_ in play(env, 0)) <= -5.0
    env.reset(options={"rules": "first_out"})
    assert env.rules == devyatka_env.Rules.of("first_out", num_players=3)


BAD_OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"hands": HANDS[:3]}, DealError, "3 hands for num_players=4"),
    ({"hands": [HANDS[0], *HANDS[:3]]}, DealError, "dealt twice"),
    ({"hands": [HANDS[0][3:], *HANDS[1:]]}, DealError, "missing: 6♣"),
    ({"hands": HANDS, "dealer": 4}, DealError, "dealer must be a seat, 0 to 3, not 4"),
    ({"hands": [*HANDS[:3], "2♠"]}, ValueError, "2♠ is not in this deck"),
    ({"dealer": 1}, DealError, "'dealer' goes with 'hands'"),
    ({"rules": "whist"}, RulesError, "unknown rules preset 'whist'"),
    ({"rules": {"foul": "exclude"}}, RulesError, "explicit_pass=True"),
    ({"rules": "deck_52"}, RulesError, "must keep num_players=4 and 36 cards"),
    ({"rules": devyatka_env.Rules(num_players=3)}, RulesError, "must keep num_players=4 and 36 cards"),
    ({"rules": {"preset": "bank", "num_players": 3}}, RulesError, "must keep num_players=4 and 36 cards"),
    ({"rules": "one_loser", "hands": HANDS[:3]}, DealError, "3 hands"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD_OPTIONS)
def test_reset__a_bad_option_is_refused_and_the_match_goes_on(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    env, untouched = devyatka_env.env(), devyatka_env.env()
    for one in (env, untouched):
        one.reset(seed=8)
        play(one, 1, moves=6)
    with pytest.raises(error, match=message):
        env.reset(seed=1, options=options)
    assert play(env, 2) == play(untouched, 2)
    env.reset()
    untouched.reset()
    assert dealt_hands(env) == dealt_hands(untouched) == Game.deal("first_out", 8, 1).hand_masks


def test_reset__an_unknown_option_warns_and_names_the_known_ones() -> None:
    env = devyatka_env.env()
    with pytest.warns(UserWarning, match=r"'deler' is ignored; the options are hands, dealer, rules") as caught:
        env.reset(seed=0, options={"deler": 1})
    assert caught[0].filename == __file__  # it points at the caller
    assert dealt_hands(env) == Game.deal("first_out", 0).hand_masks


# --- copies ----------------------------------------------------------------------------------------------------------


def wrapped(rules: str) -> AECEnv:
    """The environment in PettingZoo's usual wrappers."""
    return OrderEnforcingWrapper(AssertOutOfBoundsWrapper(devyatka_env.env(rules)))


@every_copier
@pytest.mark.parametrize("make", [devyatka_env.env, wrapped])
@pytest.mark.parametrize("rules", ["first_out", "round", "winner_and_loser"])
def test_copy__continues_identically(copier: Copier, make: Callable[[str], AECEnv], rules: str) -> None:
    env = make(rules)
    for moves in (0, 1, 7, 20):
        env.reset(seed=6)
        play(env, 3, moves)
        twin = copier(env)
        for _ in range(3):  # the running match and the two deals after it
            shown = play(env, moves)
            assert shown
            assert play(twin, moves) == shown
            env.reset()
            twin.reset()


@every_copier
def test_copy__is_independent_of_the_original(copier: Copier) -> None:
    env = devyatka_env.env()
    env.reset(seed=6)
    play(env, 3, moves=7)
    before = env.state().tobytes()
    twin = copier(env)
    play(twin, 0)
    assert env.state().tobytes() == before
    assert env.agents == env.possible_agents


@every_copier
def test_copy__of_an_environment_not_yet_reset_works(copier: Copier) -> None:
    env, twin = devyatka_env.env("bank"), copier(devyatka_env.env("bank"))
    env.reset(seed=1)
    twin.reset(seed=1)
    assert play(twin, 1) == play(env, 1)


# --- pictures --------------------------------------------------------------------------------------------------------


def test_render__without_a_mode_warns_and_returns_nothing() -> None:
    env = devyatka_env.env()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


def test_render__ansi_is_the_picture_of_game_and_human_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    env = devyatka_env.env(render_mode="ansi")
    env.reset(seed=0)
    game = Game.deal("first_out", 0)
    assert env.render() == str(game)
    capsys.readouterr()
    env = devyatka_env.env(render_mode="human")
    env.reset(seed=0)
    assert capsys.readouterr().out.strip() == str(game).strip()
    env.step(game.legal_actions()[0])
    assert capsys.readouterr().out.strip() == str(game.play(game.legal_actions()[0])).strip()
    env.close()


def test_calls_before_reset__are_refused_by_name() -> None:
    env = devyatka_env.env()
    for call in (env.agent_iter, env.state, env.render, lambda: env.observe("player_0"), lambda: env.step(0)):
        with pytest.raises(RuntimeError, match=r"call reset\(\) before"):
            call()
    for call in (env.last, lambda: env.rewards, lambda: env.infos, lambda: env.agent_selection):
        with pytest.raises(AttributeError, match=r"call reset\(\) before"):
            call()
    with pytest.raises(AttributeError, match="no attribute 'hands'"):
        _ = env.hands


def test_metadata__does_not_promise_pettingzoos_cycling_conversion() -> None:
    with pytest.raises(AssertionError, match="is_parallelizable"):
        aec_to_parallel(devyatka_env.env())
