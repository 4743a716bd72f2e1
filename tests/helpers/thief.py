"""An attack on 0.1: a bot that knew every hand, from nothing but its view and the random word it was given.

The words of that release were a chain of bijections from the seed of the deals. So a word and a guess of the deal's
number gave the seed, and the seed gave the hands. The thief knows all public source code, guesses small deal numbers,
and tries its word, what the generator was made from, and what it draws.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from devyatka_env import Deals, Game, PlayerView, Rules
from devyatka_env.bots import Bot, GreedyBot, OracleBot
from devyatka_env.engine import States

MASK = 2**64 - 1
GAMMA, TO_INDEX, TO_WORDS = 0x9E3779B97F4A7C15, 0xD1342543DE82EF95, 0x5851F42D4C957F2D


def unmixed(word: int) -> int:
    """The inverse of SplitMix64's finalizer."""
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        original = word
        for _ in range(64 // shift + 1):
            original = word ^ original >> shift
        word = original * pow(factor, -1, 2**64) & MASK
    return word


def seed_behind(word: int, index: int, seat: int, num_played: int) -> int:
    """The seed of the deals whose word this is in 0.1."""
    start = (unmixed(word) - (seat * 64 + num_played + 1) * GAMMA) & MASK
    return (unmixed(unmixed(start) ^ index * TO_INDEX & MASK) - GAMMA & MASK) ^ TO_WORDS


class Thief(Bot):
    """Plays the best response to greedy players with all hands known, where it can work them out; else greedily.

    Attributes:
        recovered: how often it knew the hands.
        asked: how often it was asked.
    """

    name = "thief"

    def __init__(self, guesses: int = 4) -> None:
        self.guesses = guesses
        self.recovered = self.asked = 0
        self._known: dict[tuple[int, int], list[int]] = {}  # the hands of all deals of a seed, by seat and its own hand
        self._greedy, self._oracle = GreedyBot(), OracleBot()

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        """Choose by the words that can be had from a generator."""
        words = [int(rng.bit_generator.seed_seq.entropy or 0), *rng.integers(0, 2**64, 2, np.uint64).tolist()]  # type: ignore[attr-defined]
        return self._choose(view, words)

    def act_batch(self, views: States, rules: Rules, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Choose by the words themselves."""
        shown = [PlayerView(views[k : k + 1].copy(), rules, int(views["turn"][k])) for k in range(len(views))]
        return np.array([self._choose(view, [word]) for view, word in zip(shown, words.tolist(), strict=True)])

    def _choose(self, view: PlayerView, words: list[int]) -> int:
        self.asked += 1
        nothing = np.zeros(1, np.uint64)
        dealt = self._dealt(view, words)
        if dealt is None:
            return int(self._greedy.act_batch(view.record, view.rules, nothing)[0])
        self.recovered += 1
        known = view.record.copy()
        known["hands"][0, : len(dealt)] = [hand & ~view.table_mask for hand in dealt]
        return int(self._oracle.act_batch(known, view.rules, nothing)[0])

    def _dealt(self, view: PlayerView, words: list[int]) -> list[int] | None:
        """The hands as they were dealt, if some guess of the deal's number agrees with all that the view shows."""
        own = view.seat, view.hand_mask | view.played_masks[view.seat]
        for index, word in itertools.product(range(self.guesses), () if own in self._known else words):
            seed = seed_behind(word, index, view.seat, len(view.laid))
            if Game.deal(view.rules, seed, index).hand_masks[view.seat] == own[1]:
                hands = Deals(view.rules, np.arange(500), seed).states["hands"][:, : view.num_players].tolist()
                self._known |= {(seat, hand): deal for deal in hands for seat, hand in enumerate(deal)}
                break
        return self._known.get(own)
