"""Bait: does an agent win more when the random words it is given tell where the cards are?

An agent may do arithmetic with its words. Those of the arena are one-way and tell nothing; those of release 0.1 were a
chain of bijections from the seed of the deals, so who guessed the deal's number knew every hand. Here the agent plays
deals of an unknown seed twice among `greedy` bots, once with words of the one kind and once of the other. Who wins more
by the bait reads its words: a fault, though such an agent gains nothing in the arena.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots import Bot, GreedyBot
from devyatka_env.bots.rollout import play_on
from devyatka_env.engine.compiling import kernel
from devyatka_env.engine.randomness import mix, stream
from devyatka_env.evaluation.duplicate import measure
from devyatka_env.games import Deals
from devyatka_env.games.deals import Index, Words
from devyatka_env.rules import Rules

# Deals at a time: an agent may learn the seed from some of them, and use it in the next ones.
CHUNK = 10


@kernel
def _bait(states: NDArray[np.void], which: Index, seed: np.uint64, indices: Words, out: Words) -> None:
    """The words of release 0.1."""
    for k in range(len(which)):
        s = states[which[k]]
        place = np.uint64(s.turn) * np.uint64(64) + np.uint64(s.num_played) + np.uint64(1)
        start = stream(seed ^ np.uint64(0x5851F42D4C957F2D), indices[which[k]])
        out[k] = mix(start + place * np.uint64(0x9E3779B97F4A7C15))


class BaitedDeals(Deals):
    """Deals whose words for decisions tell their seed."""

    def decision_words(self, which: Index) -> Words:
        """The words of release 0.1."""
        out = np.empty(len(which), np.uint64)
        assert isinstance(self.seed, int)
        _bait(self.states, which, np.uint64(self.seed), self.indices, out)
        return out


def gains_by_bait(bot: Bot, rules: Rules, seed: int, deals: int) -> NDArray[np.float64]:
    """What the bait brings on each of some deals: the agent's share of wins with it less that without.

    Args:
        bot: the agent.
        rules: the rule set.
        seed: of the deals; the agent must have no way to know it, and not have met deals of it before.
        deals: how many, `D` below.

    Returns:
        ``float64 [D]``.

    Raises:
        BotError: the agent failed.
    """
    chunks = [np.arange(first, min(first + CHUNK, deals)) for first in range(0, deals, CHUNK)]
    wins = []
    for kind in (Deals, BaitedDeals):  # what the bait has told is of no use any more when the others are played
        played = [_wins(bot, kind(rules, np.repeat(chunk, rules.num_players), seed)) for chunk in chunks]
        wins.append(np.concatenate(played))
    gains: NDArray[np.float64] = wins[1] - wins[0]
    return gains


def _wins(bot: Bot, games: Deals) -> NDArray[np.float64]:
    """The agent's share of wins by deal, from each seat in turn."""
    n = games.rules.num_players
    seats = np.tile(np.arange(n), len(games) // n)
    seating = (np.arange(n)[None, :] != seats[:, None]).astype(np.int64)
    play_on(games, [bot, GreedyBot()], seating, games.all)
    return measure(games, seats)[:, 0]


def chance_of(gains: NDArray[np.float64]) -> float:
    """The one-sided probability of so great a mean gain, if the bait is of no use; 1 where there is none."""
    mean = float(gains.mean())
    error = float(gains.std(ddof=1)) / math.sqrt(len(gains))
    if mean <= 0:
        return 1.0
    return 0.5 * math.erfc(mean / error / math.sqrt(2)) if error > 0 else 0.0
