"""Exact open-hands values for 2-6 seats: `paranoid` (a floor for one seat) and `max_n` (every seat for itself).

Both search the whole deal (`devyatka_env.solver.tree_search`), under every preset and payoff. Values are payoffs of the
rules. Actions are the legal ones: fouls (``foul="exclude"``) are not searched.

- `paranoid` (Sturtevant and Korf 2000): one seat against all others, who care for nothing but to lower its payoff. With
  open hands the seat can be sure of that much, whoever plays the others.
- `max_n` (Luckhardt and Irani 1986): every seat raises its own payoff, and knows that the others do. The payoffs hang
  on what an indifferent seat does. The rule here: **of equal own payoffs, it takes the one that leaves the next seat
  clockwise least, then the seat after that, and so on.** So payoffs do not depend on the names of the suits. They are
  an equilibrium: no seat gets less than its `paranoid` value.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine import States, rules_record
from devyatka_env.engine.compiling import call
from devyatka_env.games import Game
from devyatka_env.rules import Rules
from devyatka_env.rules.numbers import is_whole
from devyatka_env.solver.solution import Solution, check_game, check_states, small_deal
from devyatka_env.solver.transpositions import LIMIT, USED, empty_table, limit_error, new_meter
from devyatka_env.solver.tree_search import EVERYBODY, Values, payoffs_many, prefers

# Positions that one search may keep: 1 GB. Max^n from the opening takes most: with 36 cards up to some 500,000, with 52
# cards up to 6 million (10 seconds); only `win` takes less.
MAX_STATES = 10_000_000


@dataclass(frozen=True)
class Floor(Solution):
    """What one seat can be sure of with open hands: a `Solution` in which all values are those of ``seat``.

    When another seat is on turn, ``best`` are the actions of the lowest value, and ``value`` is that.

    Attributes:
        seat: the seat that the values are for.
    """

    seat: int


@dataclass(frozen=True)
class MaxN(Solution):
    """Every seat for itself: a `Solution` for the seat on turn, and the payoffs of all seats.

    ``best`` are the actions of the highest own payoff; the line follows the tie rule among them.

    Attributes:
        payoffs: of every seat, at the end of the line.
        payoffs_by_action: the same for each legal action.
    """

    payoffs: tuple[float, ...]
    payoffs_by_action: Mapping[int, tuple[float, ...]] = field(hash=False)


# --- one deal --------------------------------------------------------------------------------------------------------


def paranoid(game: Game, seat: int | None = None, *, max_states: int = MAX_STATES) -> Floor:
    """What ``seat`` can be sure of when all hands are open and all others play against it.

    Args:
        game: a running deal.
        seat: whose payoff; ``None`` for the seat on turn.
        max_states: positions with a choice that the search may keep, some 100 bytes each.

    Raises:
        ValueError: no game, the deal is over, a hand is blank, there is no such seat, or ``max_states`` is no number
            from 1.
        StateLimitError: more positions would be needed.
    """
    check_game(game)
    _load_kernels()
    search = _Search(game, max_states)
    seat = game.turn if seat is None else seat
    if not is_whole(seat) or not 0 <= seat < game.num_players:
        raise ValueError(f"seat must be 0 to {game.num_players - 1}, not {seat!r}")
    search.seat = seat = int(seat)
    payoffs = search.payoffs(game)
    values = {action: row[0] for action, row in payoffs.items()}
    value = values[search.choice(game, payoffs)]
    return Floor(
        value=value,
        values=values,
        best=tuple(action for action in values if values[action] == value),
        states=int(search.meter[USED]),
        line=search.line(),
        seconds=time.perf_counter() - search.start,
        seat=seat,
    )


def max_n(game: Game, *, max_states: int = MAX_STATES) -> MaxN:
    """The payoffs when every seat sees all hands and plays for itself, by the tie rule of the module.

    Args:
        game: a running deal.
        max_states: positions with a choice that the search may keep, some 100 bytes each.

    Raises:
        ValueError: no game, the deal is over, a hand is blank, or ``max_states`` is no number from 1.
        StateLimitError: more positions would be needed.
    """
    check_game(game)
    _load_kernels()
    search = _Search(game, max_states)
    payoffs = search.payoffs(game)
    chosen = payoffs[search.choice(game, payoffs)]
    values = {action: row[game.turn] for action, row in payoffs.items()}
    return MaxN(
        value=chosen[game.turn],
        values=values,
        best=tuple(action for action in values if values[action] == chosen[game.turn]),
        states=int(search.meter[USED]),
        line=search.line(),
        seconds=time.perf_counter() - search.start,
        payoffs=tuple(chosen),
        payoffs_by_action={action: tuple(row) for action, row in payoffs.items()},
    )


class _Search:
    """Searches over the positions of one deal, which share a table.

    Attributes:
        seat: whose payoff, or `EVERYBODY`.
        meter: of the table (`devyatka_env.solver.transpositions`).
    """

    def __init__(self, game: Game, max_states: int) -> None:
        self.seat = EVERYBODY
        self.start = time.perf_counter()
        self.meter = new_meter(max_states)
        self._game = game
        self._table: Sequence[Any] = empty_table(max(2, game.num_players))

    def payoffs(self, game: Game) -> dict[int, list[float]]:
        """What each legal action leads to for every seat (or one value, for `seat`), by action id, ascending."""
        width = game.num_players if self.seat == EVERYBODY else 1
        out = np.empty((1, game.rules.pass_action + 1, width))
        record, seats = rules_record(game.rules), np.array([self.seat])
        bad, *self._table = call(payoffs_many, game.states, record, seats, *self._table, self.meter, False, out)
        if bad >= 0:
            raise limit_error(int(self.meter[LIMIT]), game.position)
        rows = out[0].tolist()
        return {action: rows[action] for action in game.legal_actions()}

    def choice(self, game: Game, payoffs: Mapping[int, list[float]]) -> int:
        """The action that the seat on turn takes; of equal ones the lowest."""
        best, *others = payoffs
        for action in others:
            if self.seat == EVERYBODY:
                better = prefers(game.turn, game.num_players, np.array(payoffs[action]), np.array(payoffs[best]))
            else:
                gain = payoffs[action][0] - payoffs[best][0]
                better = gain > 0 if game.turn == self.seat else gain < 0
            best = action if better else best
        return best

    def line(self) -> tuple[int, ...]:
        """Play to the end of the deal by these values."""
        end = self._game.clone()
        while not end.is_over:
            actions = end.legal_actions()
            end.play(actions[0] if len(actions) == 1 else self.choice(end, self.payoffs(end)))
        return tuple(end.actions[len(self._game.actions) :])


@cache
def _load_kernels() -> None:
    """Load or compile the kernels before a clock starts."""
    game = small_deal()
    for seat in (EVERYBODY, game.turn):
        search = _Search(game, MAX_STATES)
        search.seat = seat
        search.line()


# --- many records ----------------------------------------------------------------------------------------------------


def paranoid_values(
    states: States, rules: Rules | str, seats: NDArray[np.integer] | None = None, *, max_states: int = MAX_STATES
) -> Values:
    """The paranoid value of every action in many records.

    Args:
        states: ``[B]`` of `records.STATE_DTYPE`, with all hands in them.
        rules: the rule set of all of them (as `Rules.of` takes it).
        seats: ``[B]``, whose payoff; ``None`` for the seats on turn.
        max_states: positions with a choice that the search of one record may keep.

    Returns:
        ``float64 [B, C + 1]`` by action; NaN for actions that are not legal, and for finished deals.

    Raises:
        ValueError: records that are not of these rules, views, or seats that do not exist.
        StateLimitError: a record needs more positions; the message names it.
    """
    rules = Rules.of(rules)
    check_states(states, rules)
    on = states["turn"] >= 0
    seats = states["turn"] if seats is None else np.asarray(seats)
    if seats.shape != states.shape or not ((seats[on] >= 0) & (seats[on] < rules.num_players)).all():
        raise ValueError(f"{len(states)} records need as many seats from 0 to {rules.num_players - 1}, not {seats}")
    return _many(states, rules, seats.astype(np.int64), 1, max_states)[:, :, 0]


def max_n_values(states: States, rules: Rules | str, *, max_states: int = MAX_STATES) -> Values:
    """The max^n value of every action to the seat on turn in many records.

    Arguments, result and errors are those of `paranoid_values`.
    """
    rules = Rules.of(rules)
    check_states(states, rules)
    payoffs = _many(states, rules, np.full(len(states), EVERYBODY), rules.num_players, max_states)
    return payoffs[np.arange(len(states)), :, states["turn"]]


def _many(states: States, rules: Rules, seats: NDArray[np.int64], width: int, max_states: int) -> Values:
    """``[B, C + 1, width]``, as `payoffs_many` writes it."""
    out = np.empty((len(states), rules.pass_action + 1, width))
    states, record, meter = np.ascontiguousarray(states), rules_record(rules), new_meter(max_states)
    table = empty_table(max(width, 2))  # a paranoid search notes two bounds
    bad, *_ = call(payoffs_many, states, record, seats, *table, meter, True, out)
    if bad >= 0:
        raise limit_error(max_states, f"record {bad}")
    return out
