"""Scripted bots: compiled, honest, a few lines each.

All but `random` lay the legal card with the best score, and differ in the score. A new one is its lines in
`_side_score` or `_best_choice` (or a kernel of its own in `scripted_choice`), a class and its place in `SCRIPTED`.
Sources: 000, 001 and 002 are the three rule pages that docs/rules.md cites.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots.base import Bot
from devyatka_env.engine import States, rules_record
from devyatka_env.engine.bitboards import lowest, random_card
from devyatka_env.engine.checks import check_views
from devyatka_env.engine.compiling import inlined, kernel
from devyatka_env.engine.knowledge import could_hold
from devyatka_env.engine.turn import fitting
from devyatka_env.rules import Rules
from devyatka_env.views import PlayerView

Actions = NDArray[np.int64]
Words = NDArray[np.uint64]


@kernel
def random_choice(s: Any, r: Any, word: np.uint64) -> int:
    """A uniformly random legal card; PASS for a stuck seat."""
    legal = s.legal
    if legal == np.uint64(0):
        return int(r.num_cards)
    return random_card(legal, word)


# The bots' codes in the kernels: their places in `SCRIPTED`, at the end of this module.
_RANDOM, _GREEDY, _BLOCKER, _RUNNER, _CLOSED, _PASS_WATCHER = range(6)
DRAWS = _RANDOM  # the one that uses its word


@inlined
def _side_score(code: int, hand: np.uint64, card: int, edge: int, step: int, seats: int) -> int:
    """What laying ``card`` is worth to ``hand`` on one side of the row, out to the suit's last card ``edge``.

    An ace or a six has nothing beyond it: 0. ``seats`` is the number of seats still in.
    """
    reach = 0  # ranks to the farthest own card
    others = 0  # cards of others out there,
    between = 0  # and those of them before the nearest own card (all of them, if there is none)
    distance = 0
    while card != edge:
        card += step
        distance += 1
        if hand >> np.uint64(card) & np.uint64(1):
            reach = distance
        else:
            others += 1
            between += reach == 0
    beyond = distance - reach  # cards of others beyond the farthest own card
    if code == _RUNNER:
        return 2 * (distance - others) - beyond
    if code in (_BLOCKER, _PASS_WATCHER):
        return 2 * seats * reach - (2 * beyond if reach > 0 else 5 * beyond)
    # Greedy and closed: +2 a rank on the way to the farthest own card (002: a six or ace that hangs far out must be
    # walked to); -1 when the next card belongs to somebody else (000: a nine lets everyone play the 8 and the 10 beside
    # it); -1 for each card of others beyond one's own nearest (000: hold the card that the others wait for). The cards
    # of others on the way to one's own are needed and cost nothing.
    helped = others - between if reach > 0 else others
    return 2 * reach - helped - (between > 0)


@kernel
def _beside(card: int, bottom: int, top: int, starter: int) -> np.uint64:
    """The cards that the row takes only once ``card`` lies: its neighbours, on the side that it is laid on."""
    cards = np.uint64(0)
    if starter <= card < top:
        cards |= np.uint64(1) << np.uint64(card + 1)
    if bottom < card <= starter:
        cards |= np.uint64(1) << np.uint64(card - 1)
    return cards


@kernel
def _stuck_seats(s: Any, r: Any) -> int:
    """The number of other seats that cannot hold a card that fits now, as their passes and one's own hand prove."""
    fits = fitting(s, r)
    stuck = 0
    for seat in range(s.num_players):
        stuck += s.status[seat] == 0 and could_hold(s, r, s.turn, seat) & fits == np.uint64(0)
    return stuck


@inlined
def _best_choice(code: int, s: Any, r: Any) -> int:
    """The legal card with the best score; the lowest id among equals, so that the bot is deterministic."""
    hand = s.hands[s.turn]
    legal = s.legal
    num_ranks = np.int64(r.num_ranks)
    seats = int(s.num_in)
    stuck = _stuck_seats(s, r) if code == _PASS_WATCHER else 0
    best = int(r.num_cards)  # PASS, for a stuck seat
    best_score = -100_000
    while legal:
        card = lowest(legal)
        legal &= legal - np.uint64(1)
        bottom = card // num_ranks * num_ranks
        top = bottom + num_ranks - 1
        starter = bottom + lowest(r.starters)
        score = 0
        if card >= starter:
            score += _side_score(code, hand, card, top, 1, seats)
        if card <= starter:
            score += _side_score(code, hand, card, bottom, -1, seats)
        beside = _beside(card, bottom, top, starter)
        if code == _PASS_WATCHER and beside & ~hand != np.uint64(0):
            score -= 2 * seats * stuck
        if code == _CLOSED and card == starter and beside & hand == np.uint64(0):
            score -= 1000
        if score > best_score:
            best, best_score = card, score
    return best


@kernel
def scripted_choice(code: int, s: Any, r: Any, word: np.uint64) -> int:
    """The action of scripted bot number ``code`` (an index into `SCRIPTED`) in view record ``s``."""
    if code == _RANDOM:
        return random_choice(s, r, word)
    if code == _GREEDY:  # the usual opponent: compiled apart, so that it does not pay for what the others count
        return _best_choice(_GREEDY, s, r)
    return _best_choice(code, s, r)


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
        """Choose for every view record.

        Raises:
            ValueError: no view records with a seat on turn, or not a word each.
        """
        check_views(views, words)
        actions = np.empty(len(views), np.int64)
        code = next(SCRIPTED.index(one) for one in type(self).__mro__ if one in SCRIPTED)
        _choose_many(code, views, rules_record(rules), words, actions)
        return actions


class RandomBot(ScriptedBot):
    """Plays a uniformly random legal card.

    The floor of every table.
    """

    name = "random"
    reads_history = False
    reads_order = False


class _ScoringBot(ScriptedBot):
    """Lays the legal card with the best score."""

    deterministic = True
    reads_history = False
    reads_order = False


class GreedyBot(_ScoringBot):
    """Walks to its far cards, holds what others wait for.

    The advice of 000 and 002, each in ranks and cards: `_side_score`.
    """

    name = "greedy"
    source = "000, 002"


class BlockerBot(_ScoringBot):
    """Holds longest what only others wait for.

    Like greedy, but with another price of help. Beyond its farthest card of a row it has nothing to gain, and it alone
    stops the others there: each of their cards costs 2, and 5 where it has none itself. What stands between its own
    cards is free. A rank on the way to its farthest card is worth twice the number of seats still in: help is shared
    by the others, so among few it costs more. Aces and sixes cost nothing and go before any card that it holds back.
    """

    name = "blocker"
    source = "000"


class RunnerBot(_ScoringBot):
    """Runs the rows in which it has most cards to come.

    Counts 2 for each own card further out, -1 for each card of others beyond its last.
    """

    name = "runner"
    source = "002"


class ClosedBot(_ScoringBot):
    """Greedy that opens a suit only with a card to follow.

    It lays a nine without the eight or the ten of its suit when it has nothing else.
    """

    name = "closed"
    source = "000, 002"


class PassWatcherBot(_ScoringBot):
    """Blocker that does not let in seats proved stuck.

    A pass proves that a seat holds no card that fits. While none of those cards is laid and no new card fits, it must
    pass again. So a lay after which a new card fits that is not its own costs a rank of the way for each stuck seat.
    """

    name = "pass_watcher"
    source = "000, 002"
    reads_history = True


# A bot's place here is its code in `scripted_choice`. Append only.
SCRIPTED: tuple[type[ScriptedBot], ...] = (RandomBot, GreedyBot, BlockerBot, RunnerBot, ClosedBot, PassWatcherBot)


def scripted_code(bot: Bot) -> int:
    """The code of a scripted bot; -1 for any other, a subclass included: it may play another way."""
    return SCRIPTED.index(type(bot)) if type(bot) in SCRIPTED else -1
