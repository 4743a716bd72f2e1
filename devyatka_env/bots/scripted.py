"""Scripted bots: compiled, honest, a few lines each. A new one is a kernel, a class and a row of `SCRIPTED`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots.base import CompiledBot
from devyatka_env.records import States, count, kernel, lowest

Actions = NDArray[np.int64]
Words = NDArray[np.uint64]


@kernel
def _random_many(views: States, rules: States, words: Words, actions: Actions) -> None:
    for i in range(len(views)):
        legal = views[i].legal
        if legal == np.uint64(0):
            actions[i] = rules[0].num_cards
            continue
        # The high half of the word times the count, halved again: a uniform index (bias below 2**-29).
        index = ((words[i] >> np.uint64(32)) * np.uint64(count(legal))) >> np.uint64(32)
        for _ in range(index):
            legal &= legal - np.uint64(1)
        actions[i] = lowest(legal)


class RandomBot(CompiledBot):
    """Plays a uniformly random legal card: the floor of every table."""

    name = "random"
    kernel = _random_many


@kernel
def _side_score(hand: np.uint64, card: int, edge: int, step: int) -> int:
    """What laying ``card`` is worth to ``hand`` on one side of the row, out to the suit's last card ``edge``.

    +2 a rank on the way to the farthest own card (002: a six or ace that hangs far out must be walked to);
    -1 when the next card belongs to somebody else (000: a nine lets everyone play the 8 and the 10 beside it);
    -1 for each card of others beyond one's own nearest (000: hold the card that the others wait for). The cards of
    others on the way to one's own are needed and cost nothing; aces and sixes have nothing beyond and score 0.
    """
    reach = 0
    helped = 0
    opened = 0
    between = 0
    distance = 0
    while card != edge:
        card += step
        distance += 1
        if hand >> np.uint64(card) & np.uint64(1):
            reach = distance
        else:
            opened += distance == 1
            helped += 1
            between += reach == 0
    if reach > 0:
        helped -= between
    return 2 * reach - helped - opened


@kernel
def _greedy_choice(s: Any, r: Any) -> int:
    """The legal card with the best score; the lowest id among equals, so that the bot is deterministic."""
    hand = s.hands[s.turn]
    legal = s.legal
    num_ranks = np.int64(r.num_ranks)
    best = int(r.num_cards)  # PASS, for a stuck seat
    best_score = -1000
    while legal:
        card = lowest(legal)
        legal &= legal - np.uint64(1)
        bottom = card // num_ranks * num_ranks
        top = bottom + num_ranks - 1
        starter = bottom + lowest(r.starters)
        score = 0
        if card >= starter:
            score += _side_score(hand, card, top, 1)
        if card <= starter:
            score += _side_score(hand, card, bottom, -1)
        if score > best_score:
            best, best_score = card, score
    return best


@kernel
def _greedy_many(views: States, rules: States, words: Words, actions: Actions) -> None:
    for i in range(len(views)):
        actions[i] = _greedy_choice(views[i], rules[0])


class GreedyBot(CompiledBot):
    """Walks towards its own far cards, opens nothing that helps others more, holds blockers (advice of 000 and 002)."""

    name = "greedy"
    kernel = _greedy_many


SCRIPTED = (RandomBot, GreedyBot)
