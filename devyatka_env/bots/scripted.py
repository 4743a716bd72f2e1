"""Scripted bots: compiled, honest, a few lines each.

A new one is a kernel, its line in `scripted_choice`, a class and its place in `SCRIPTED`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots.base import Bot
from devyatka_env.records import States, kernel, lowest, random_card, rules_record
from devyatka_env.rules import Rules
from devyatka_env.view import PlayerView

Actions = NDArray[np.int64]
Words = NDArray[np.uint64]


@kernel
def random_choice(s: Any, r: Any, word: np.uint64) -> int:
    """A uniformly random legal card; PASS for a stuck seat."""
    legal = s.legal
    if legal == np.uint64(0):
        return int(r.num_cards)
    return random_card(legal, word)


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
def greedy_choice(s: Any, r: Any) -> int:
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
def scripted_choice(code: int, s: Any, r: Any, word: np.uint64) -> int:
    """The action of scripted bot number ``code`` (an index into `SCRIPTED`) in view record ``s``."""
    if code == 0:
        return random_choice(s, r, word)
    return greedy_choice(s, r)


@kernel
def _choose_many(code: int, views: States, rules: States, words: Words, actions: Actions) -> None:
    for i in range(len(views)):
        actions[i] = scripted_choice(code, views[i], rules[0], words[i])


class ScriptedBot(Bot):
    """A bot whose choice is a compiled kernel, so that whole games run without leaving compiled code."""

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        """Choose for a single view."""
        word = rng.integers(0, 2**64, size=1, dtype=np.uint64)
        return int(self.act_batch(view.record, view.rules, word)[0])

    def act_batch(self, views: States, rules: Rules, words: Words) -> Actions:
        """Choose for every view record."""
        actions = np.empty(len(views), np.int64)
        code = next(SCRIPTED.index(one) for one in type(self).__mro__ if one in SCRIPTED)
        _choose_many(code, views, rules_record(rules), words, actions)
        return actions


class RandomBot(ScriptedBot):
    """Plays a uniformly random legal card: the floor of every table."""

    name = "random"


class GreedyBot(ScriptedBot):
    """Walks towards its own far cards, opens nothing that helps others more, holds blockers (advice of 000 and 002)."""

    name = "greedy"


# A bot's place here is its code in `scripted_choice`.
SCRIPTED: tuple[type[ScriptedBot], ...] = (RandomBot, GreedyBot)


def scripted_code(bot: Bot) -> int:
    """The code of a scripted bot; -1 for any other, a subclass included: it may play another way."""
    return SCRIPTED.index(type(bot)) if type(bot) in SCRIPTED else -1
