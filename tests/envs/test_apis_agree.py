"""One game in every API: the same seeds and actions give the same trajectories, bit for bit.

`Game` plays each deal first, every seat by one rule: a card that depends on the deal, the seat and the cards laid, as
the random bot draws it. Each API then replays those deals (its opponents, where it has them, are that very bot) and
must show the same observations, masks, turns, payoffs and places.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from stable_baselines3.common.vec_env import VecEnv

import devyatka_env
from devyatka_env import Game, PlayerView, Rules
from devyatka_env.bots import Bot, RandomBot
from devyatka_env.engine import rules_record
from devyatka_env.engine.bitboards import random_card
from devyatka_env.engine.randomness import decision_word
from devyatka_env.engine.seeds import word_key
from devyatka_env.envs import DevyatkaEnv, DevyatkaVecEnv, DevyatkaVectorEnv
from devyatka_env.games import BatchGame
from devyatka_env.rules import PRESETS
from devyatka_env.views.observation import encode_at
from tests.helpers.games import COMBINATIONS, fouls

SEED = 2**64 - 3
DEALS = 6  # three games side by side, two deals each


class Turn(NamedTuple):
    """A decision: who, what it saw, its mask, and what it did."""

    seat: int
    observation: bytes
    mask: bytes
    action: int


class Deal(NamedTuple):
    """One deal as `Game` plays it; ``last`` is what each seat sees at the end."""

    turns: tuple[Turn, ...]
    payoffs: tuple[float, ...]
    places: tuple[int, ...]
    last: tuple[tuple[bytes, bytes], ...]

    def of(self, seat: int, skip_forced: bool = False) -> list[Turn]:
        """The decisions of one seat; with ``skip_forced`` those with a choice."""
        return [turn for turn in self.turns if turn.seat == seat and (not skip_forced or sum(turn.mask) > 1)]


def look(game: Game, seat: int) -> tuple[bytes, bytes]:
    out = np.empty(OBSERVATION_SIZES[game.rules.pass_action], np.int8)
    mask = np.empty(game.rules.pass_action + 1, np.int8)
    encode_at(game.states, 0, rules_record(game.rules), seat, out, mask)
    return out.tobytes(), mask.tobytes()


OBSERVATION_SIZES = {
    Rules.of(preset).pass_action: DevyatkaEnv(preset).observation_space["observation"].shape[0]  # type: ignore[index]
    for preset in PRESETS
}


def word_of(game: Game, index: int) -> int:
    return int(decision_word(word_key(SEED), np.uint64(index), game.turn, int(game.record["num_played"])))


def choose(legal_mask: int, pass_action: int, word: int) -> int:
    """The card that the random bot takes for this word."""
    return int(random_card(np.uint64(legal_mask), np.uint64(word))) if legal_mask else pass_action


@cache
def reference(rules: Rules, index: int, foul: bool = False) -> Deal:
    """Deal ``index`` played out by `Game`."""
    game, turns = Game.deal(rules, SEED, index), []
    while not game.is_over:
        seat, word = game.turn, word_of(game, index)
        is_free = len(game.legal_actions()) > 1  # bots are not asked on forced turns
        wrong = fouls(game) if foul and is_free and word % 16 == 0 else []
        action = wrong[word // 16 % len(wrong)] if wrong else choose(game.legal_mask, rules.pass_action, word)
        turns.append(Turn(seat, *look(game, seat), action))
        game.play(action)
    result = game.result()
    last = tuple(look(game, seat) for seat in range(rules.num_players))
    return Deal(tuple(turns), tuple(result.payoffs), tuple(result.places), last)


class Fouler(Bot):
    """The random bot, but for a foul now and then, as `reference` plays with ``foul``."""

    name = "fouler"

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        raise NotImplementedError

    def act_batch(self, views: Any, rules: Rules, words: Any) -> Any:
        actions = []
        for i, word in enumerate(words.tolist()):
            view = PlayerView(views[i : i + 1], rules, int(views["turn"][i]))
            legal, hand = view.legal_actions(), view.hand_mask
            own = [card for card in range(rules.pass_action) if hand >> card & 1]
            wrong = [action for action in [*own, rules.pass_action] if action not in legal] if word % 16 == 0 else []
            chosen = wrong[word // 16 % len(wrong)] if wrong else choose(view.legal_mask, rules.pass_action, word)
            actions.append(chosen)
        return np.array(actions)


class AskedRandom(RandomBot):
    """The random bot, asked in Python like any bot that is not scripted."""


def opponents_of(rules: Rules) -> list[Bot]:
    """Compiled and asked bots in turns: they all play as `reference` does."""
    return [RandomBot() if k % 2 else AskedRandom() for k in range(rules.num_players - 1)]


def row(observations: Any, i: int) -> tuple[bytes, bytes]:
    return observations["observation"][i].tobytes(), observations["action_mask"][i].tobytes()


# --- games of all seats ----------------------------------------------------------------------------------------------


def assert_batch_agrees(batch: BatchGame, rules: list[Rules], foul: bool) -> None:
    """``rules``: those of each game."""
    size, deals, turn = len(rules), list(range(len(rules))), [0] * len(rules)
    while min(deals) < DEALS:
        observations = {"observation": batch.observations(), "action_mask": batch.action_masks()}
        actions, ends = [], []
        for i in range(size):
            deal = reference(rules[i], deals[i], foul)
            now = deal.turns[turn[i]]
            assert (now.seat, now.observation, now.mask) == (int(batch.seats()[i]), *row(observations, i))
            actions.append(now.action)
            turn[i] += 1
            if turn[i] == len(deal.turns):
                rest = [0] * (6 - rules[i].num_players)
                ends.append((i, deals[i], [*deal.payoffs, *rest], [*deal.places, *rest]))
                deals[i], turn[i] = deals[i] + size, 0
        finished = batch.step(np.array(actions))
        assert list(zip(*(array.tolist() for array in finished), strict=True)) == ends


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_batch__plays_the_trajectories_of_game(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    assert_batch_agrees(BatchGame(rules, 3, SEED), [rules] * 3, rules.foul == "exclude")


@pytest.mark.parametrize("preset", PRESETS)
def test_batch__of_mixed_seat_counts_plays_the_trajectories_of_game(preset: str) -> None:
    players = [6, 2, 5, 3, 4, 2, 6] if preset != "nine_each" else [2, 4, 3, 2]
    rules = Rules.of(preset)
    each = [dataclasses.replace(rules, num_players=n) for n in players]  # the length of a match is shared, too
    assert_batch_agrees(BatchGame(rules, len(players), SEED, num_players=players), each, foul=False)


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_aec__plays_the_trajectories_of_game(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    foul = rules.foul == "exclude"
    env = devyatka_env.env(rules)
    env.reset(seed=SEED)
    index, turns, paid = 0, iter(reference(rules, 0, foul).turns), np.zeros(seats)
    expected = np.zeros(seats)
    while index < DEALS:
        now = next(turns, None)
        if now is None:
            expected += reference(rules, index, foul).payoffs
            index += 1
            turns = iter(reference(rules, index, foul).turns)
            if all(env.terminations.values()):
                assert index % rules.deals == 0
                assert paid.tolist() == expected.tolist()
                paid, expected = np.zeros(seats), np.zeros(seats)
                env.reset()
            continue
        agent = env.agent_selection
        observation, *_ = env.last()
        assert (agent, *row({key: value[None] for key, value in observation.items()}, 0)) == (
            f"player_{now.seat}",
            now.observation,
            now.mask,
        )
        env.step(now.action)
        paid += [env.rewards[f"player_{seat}"] for seat in range(seats)]


# --- one learner among opponents -------------------------------------------------------------------------------------


def seat_of(rules: Rules, index: int, size: int) -> int:
    """The seat that a rotating learner has in deal ``index`` of a batch of ``size``."""
    game, round_ = index % size, index // size
    return (rules.dealer(index) + 1 + game + round_) % rules.num_players


class Episode(NamedTuple):
    """A learner's deal as an API showed it."""

    seen: list[tuple[bytes, bytes]]
    reward: float
    last: tuple[bytes, bytes]


def expected_episode(rules: Rules, index: int, seat: int, skip_forced: bool, foul: bool) -> tuple[Episode, list[int]]:
    """What the learner in ``seat`` must see of a deal, and what it does."""
    deal = reference(rules, index, foul)
    turns = deal.of(seat, skip_forced)
    seen = [(turn.observation, turn.mask) for turn in turns] or [
        deal.last[seat]
    ]  # nothing to choose: starts at its end
    return Episode(seen, deal.payoffs[seat], deal.last[seat]), [turn.action for turn in turns] or [0]


class Vector:
    """The Gymnasium vector environment, as the loop below drives it."""

    def __init__(self, rules: Rules, size: int, opponents: list[Bot], skip_forced: bool) -> None:
        self.env = DevyatkaVectorEnv(size, rules, opponents=opponents, skip_forced=skip_forced, illegal="raise")

    def reset(self) -> Any:
        return self.env.reset(seed=SEED)[0]

    def step(self, actions: Any) -> tuple[Any, Any, Any, dict[int, Any]]:
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        assert not truncated.any()
        last = {int(i): infos["final_obs"][i] for i in terminated.nonzero()[0]}
        return observations, rewards, terminated, last

    def masks(self) -> Any:
        return self.env.action_masks()


class Sb3:
    """stable-baselines3's VecEnv, likewise; the masks as MaskablePPO gets them."""

    def __init__(self, rules: Rules, size: int, opponents: list[Bot], skip_forced: bool) -> None:
        self.env: VecEnv = DevyatkaVecEnv(rules, size, opponents, SEED, skip_forced=skip_forced)

    def reset(self) -> Any:
        return self.env.reset()

    def step(self, actions: Any) -> tuple[Any, Any, Any, dict[int, Any]]:
        observations, rewards, dones, infos = self.env.step(actions)
        last = {int(i): infos[i]["terminal_observation"] for i in dones.nonzero()[0]}
        return observations, rewards, dones, last

    def masks(self) -> Any:
        return np.stack(self.env.env_method("action_masks"))  # as sb3_contrib.common.maskable.utils.get_action_masks


def episodes_of(
    api: Vector | Sb3, rules: Rules, size: int, skip_forced: bool, foul: bool
) -> Iterator[tuple[Episode, Episode]]:
    """Replay the deals in an API; yields what it showed of each and what it must show."""
    deals, turn = list(range(size)), [0] * size
    seen: list[list[tuple[bytes, bytes]]] = [[] for _ in range(size)]
    observations = api.reset()
    while min(deals) < DEALS:
        expected = [expected_episode(rules, deal, seat_of(rules, deal, size), skip_forced, foul) for deal in deals]
        assert (api.masks() == observations["action_mask"]).all()
        for i in range(size):
            seen[i].append(row(observations, i))
        actions = np.array([actions[turn[i]] for i, (_, actions) in enumerate(expected)])
        observations, rewards, ended, last = api.step(actions)
        for i in range(size):
            turn[i] += 1
            assert bool(ended[i]) == (turn[i] == len(expected[i][1]))
            if ended[i]:
                final = {key: value[None] for key, value in last[i].items()}
                yield Episode(seen[i], float(rewards[i]), row(final, 0)), expected[i][0]
                deals[i], turn[i], seen[i] = deals[i] + size, 0, []
            else:
                assert rewards[i] == 0


@pytest.mark.parametrize("skip_forced", [False, True])
@pytest.mark.parametrize("kind", [Vector, Sb3])
@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_batched_learners__play_the_trajectories_of_game(
    preset: str, seats: int, kind: type[Vector] | type[Sb3], skip_forced: bool
) -> None:
    rules = Rules.of(preset, num_players=seats)
    foul = rules.foul == "exclude"
    opponents: list[Bot] = [Fouler()] * (seats - 1) if foul else opponents_of(rules)
    api, count = kind(rules, 3, opponents, skip_forced), 0
    for shown, expected in episodes_of(api, rules, 3, skip_forced, foul):
        assert shown == (expected if kind is Vector else expected._replace(reward=float(np.float32(expected.reward))))
        count += 1
    assert count >= DEALS


@pytest.mark.parametrize("skip_forced", [False, True])
@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_single_environment__plays_the_trajectories_of_game(preset: str, seats: int, skip_forced: bool) -> None:
    """Its episode is the match: the deals of the reference, one after the other."""
    rules = Rules.of(preset, num_players=seats)
    env: Any = DevyatkaEnv(rules, opponents=opponents_of(rules), skip_forced=skip_forced, illegal="raise")
    for match in range(-(-DEALS // rules.deals)):
        seat = match % seats
        deals = [reference(rules, match * rules.deals + k) for k in range(rules.deals)]
        turns = [turn for deal in deals for turn in deal.of(seat, skip_forced)]
        observation, info = env.reset(seed=SEED) if match == 0 else env.reset()
        assert info["seat"] == seat
        total, over = 0.0, False
        for turn in turns:
            assert not over
            assert (observation["observation"].tobytes(), observation["action_mask"].tobytes()) == turn[1:3]
            observation, reward, over, _, info = env.step(turn.action)
            total += reward
        if not turns:
            _, total, over, _, _ = env.step(0)
        assert over
        assert (observation["observation"].tobytes(), observation["action_mask"].tobytes()) == deals[-1].last[seat]
        assert total == sum(deal.payoffs[seat] for deal in deals)
