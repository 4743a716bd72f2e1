"""Exact values of two-seat deals: `solve`, the table of a whole deal, and batches of positions.

With two seats and known hands Devyatka is a game of perfect information, solved here without approximation for every
preset, both decks and mini-decks (`devyatka_env.solver.lattice`). A *value* is what best play of both seats gives the
seat on turn:

- ``win``, ``lose``, ``win_lose``, ``place``, ``bank``: its payoff (one seat's gain is the other's loss);
- ``cards``, ``points``: its payoff less the other seat's. The winner of a deal pays nothing, whatever the loser holds,
  so the margin is what both play for: a match goes to the seat with fewer penalty points in all.

Fouls (``foul="exclude"``) are no legal actions and have no value.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine import States, rules_record
from devyatka_env.engine.compiling import call, kernel
from devyatka_env.games import Game, Result
from devyatka_env.rules import Card, Rules
from devyatka_env.rules.numbers import is_whole
from devyatka_env.solver.lattice import Workspace, check_rules, workspace
from devyatka_env.solver.lookup import action_values, best_cards, cell_of, value_of
from devyatka_env.solver.solution import Solution, check_game, check_states, small_deal

Values = NDArray[np.float64]

_MAX_PASSES = 255  # what a record holds


@kernel
def _values_many(states: States, rules: States, work: Workspace, out: Values) -> int:
    """`action_values` of every record; returns the positions filled."""
    filled = 0
    for i in range(len(states)):
        filled += action_values(states[i], rules[0], work, out[i])
    return filled


@kernel
def _best_many(states: States, rules: States, work: Workspace, out: NDArray[np.uint64]) -> None:
    for i in range(len(states)):
        out[i] = best_cards(states[i], rules[0], work)


@kernel
def _look_up(work: Workspace, rules: States, table: np.uint64, turn: int, passes: NDArray[np.int64]) -> float:
    """The value of a position to the seat on turn; NaN when the table is not in the lattice."""
    p = work.lattice[0]
    cell = cell_of(p, rules[0], table)
    if cell < 0:
        return np.nan
    return float(value_of(p, rules[0], np.int64(work.cells[cell + turn * p.lanes]), turn, passes))


class TwoSeatTable:
    """The exact values of every position of a two-seat deal, from its opening on (`of`: from a later moment on).

    Attributes:
        rules: the rule set.
        hands: both hands as dealt, bitboards.
        positions: how many positions the table holds, the turn counted.
        seconds: the time it took to fill.
    """

    def __init__(
        self, rules: Rules | str, hands: Sequence[int | str | Sequence[Card | str | int]], dealer: int | None = None
    ) -> None:
        """Fill the table of a deal; the arguments are those of `Game.from_hands`.

        Raises:
            ValueError: hands that cannot be dealt (`DealError`), or rules that are not solved (`lattice.check_rules`).
        """
        game = Game.from_hands(rules, hands, dealer)
        _prepare(game)
        self._fill(game)

    @classmethod
    def of(cls, game: Game) -> TwoSeatTable:
        """The table of the positions that can follow a game's present one.

        Raises:
            ValueError: no game, a finished one, one with a blank hand, or rules that are not solved.
        """
        _prepare(game)
        return cls._of(game)

    @classmethod
    def _of(cls, game: Game) -> TwoSeatTable:
        table = object.__new__(cls)
        table._fill(game)
        return table

    def _fill(self, game: Game) -> None:
        self.rules = game.rules
        self._work = workspace(game.rules)
        self.hands = game.dealt_masks
        self._record = rules_record(game.rules)
        self._row = np.empty((1, game.rules.pass_action + 1))
        start = time.perf_counter()
        self.positions = int(call(_values_many, game.states, self._record, self._work, self._row))
        self.seconds = time.perf_counter() - start

    def value(self, table_mask: int, turn: int, passes: Sequence[int] = (0, 0)) -> float:
        """The value of a position to the seat on turn.

        Args:
            table_mask: the cards on the table.
            turn: the seat on turn. A seat that must pass has the value of what follows.
            passes: of each seat so far; they matter to ``bank``, and to ``passes_count`` when cards are out of play.

        Raises:
            ValueError: no position of this table, no such turn, or passes that are not two numbers from 0 to 255.
        """
        if not is_whole(turn) or turn not in (0, 1):
            raise ValueError(f"turn must be 0 or 1, not {turn!r}")
        if not is_whole(table_mask):
            raise ValueError(
                f"table_mask must be a bitboard (`deck.parse_mask` makes one of a text), not {table_mask!r}"
            )
        if np.shape(passes) != (2,) or not all(is_whole(one) and 0 <= one <= _MAX_PASSES for one in passes):
            raise ValueError(f"passes must be two whole numbers from 0 to {_MAX_PASSES}, not {passes!r}")
        if not 0 <= table_mask <= self.rules.deck.mask:
            raise ValueError(f"table bitboard {table_mask!r} has cards outside the deck of {self.rules.deck.num_cards}")
        table, then = table_mask, turn
        opening = 1 << self.rules.opening_card
        if table == 0 and self.rules.opening == "holder":
            if not self.hands[turn] & opening:
                raise ValueError(f"seat {1 - turn} opens this deal, not seat {turn}")
            table, then = opening, 1 - turn  # its one legal card
        counted = np.array(passes, np.int64)
        value = float(_look_up(self._work, self._record, np.uint64(table), then, counted))
        if math.isnan(value) or not (self.hands[0] | self.hands[1]) & ~table:  # one seat goes out before the other
            shown = self.rules.deck.text(table_mask) or "empty"
            raise ValueError(f"no position of this deal's table: {shown}")
        return value if then == turn else 0.0 - value

    def values(self, game: Game) -> dict[int, float]:
        """The value of each legal action to the seat on turn, by action id, ascending.

        Raises:
            ValueError: the game is over, of another deal or of other rules, or before this table's first position.
        """
        check_game(game)
        if game.rules != self.rules or game.dealt_masks != self.hands:
            raise ValueError(f"the game is not of this table's deal and rules: {game.position}")
        return self._values(game)

    def _values(self, game: Game) -> dict[int, float]:
        self.value(game.table_mask, game.turn)  # refuses a position that the kernel would fill a new table for
        _values_many(game.states, self._record, self._work, self._row)
        row = self._row[0].tolist()
        return {action: row[action] for action in game.legal_actions()}

    def line(self, game: Game) -> tuple[int, ...]:
        """Best play from a game's position to the end of the deal, as action ids; of equal actions the lowest.

        Raises:
            ValueError: as `values`.
        """
        self.values(game)
        return self._line(game)

    def _line(self, game: Game) -> tuple[int, ...]:
        end = game.clone()
        while not end.is_over:
            end.play(_best(self._values(end))[0])
        return tuple(end.actions[len(game.actions) :])


def solve(game: Game) -> Solution:
    """The exact value of every legal action of a two-seat game, and a line of best play.

    Values are those of the module: payoffs, and margins for ``cards`` and ``points``.

    Raises:
        ValueError: no game; the deal is over; a hand is blank; or rules that are not solved (`lattice.check_rules`),
            more than two seats among them.
    """
    _prepare(game)
    start = time.perf_counter()
    table = TwoSeatTable._of(game)
    values = table._values(game)
    return Solution(
        value=max(values.values()),
        values=values,
        best=_best(values),
        line=table._line(game),
        states=table.positions,
        seconds=time.perf_counter() - start,
    )


def _prepare(game: Game) -> None:
    """Refuse what cannot be solved, and see to it that clocks measure no loading or compiling of kernels."""
    check_game(game)
    check_rules(game.rules)
    _load_kernels(game.rules.payoff == "points")


@cache
def _load_kernels(for_points: bool) -> None:
    """Load or compile the kernels, which are others for ``points``, whose units are wider."""
    game = small_deal("points" if for_points else "win")
    TwoSeatTable._of(game)._line(game)


def margin(result: Result, seat: int, rules: Rules) -> float:
    """What a finished two-seat deal was worth to ``seat``, counted as values are: its payoff, or its margin."""
    if rules.payoff in ("cards", "points"):
        return result.payoffs[seat] - result.payoffs[1 - seat]
    return result.payoffs[seat]


def values_many(states: States, rules: Rules | str, work: Workspace | None = None) -> Values:
    """The value of every action in many two-seat records.

    Args:
        states: ``[B]`` of `records.STATE_DTYPE`, with both hands in them; positions of one deal in playing order share
            one table.
        rules: the rule set of all of them (as `Rules.of` takes it).
        work: memory to use again, made by `workspace` for these rules; it keeps its last table between calls.

    Returns:
        ``float64 [B, C + 1]`` values to the seat on turn, by action; NaN for actions that are not legal.

    Raises:
        ValueError: records that are not of these rules, views, a workspace of other rules, or rules that are not
            solved.
    """
    rules = Rules.of(rules)
    work = _checked(states, rules, work)
    out = np.empty((len(states), rules.pass_action + 1))
    call(_values_many, np.ascontiguousarray(states), rules_record(rules), work, out)
    return out


def best_many(states: States, rules: Rules | str, work: Workspace | None = None) -> NDArray[np.uint64]:
    """The best legal cards in many two-seat records as bitboards ``uint64 [B]``; 0 for stuck seats and finished deals.

    Arguments and errors are those of `values_many`.
    """
    rules = Rules.of(rules)
    work = _checked(states, rules, work)
    out = np.empty(len(states), np.uint64)
    call(_best_many, np.ascontiguousarray(states), rules_record(rules), work, out)
    return out


def _checked(states: States, rules: Rules, work: Workspace | None) -> Workspace:
    """Refuse what the kernels would misread; returns memory to work in."""
    work = workspace(rules) if work is None else work
    if work.lattice["rules"][0] != int(rules.fingerprint, 16):
        raise ValueError(f"this workspace was made for other rules than {rules}")
    check_states(states, rules)
    return work


def _best(values: dict[int, float]) -> tuple[int, ...]:
    top = max(values.values())
    return tuple(action for action, value in values.items() if value == top)
