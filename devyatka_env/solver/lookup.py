"""Values from a filled lattice: kernels over two-seat records, for bots, evaluation and training targets.

Each takes a state record ``s``, the record ``r`` of its rule set and a `lattice.Workspace` made for these rules. The
record holds both hands: a true deal, or one of those that a player thinks possible. The workspace keeps the table last
filled, so positions of one deal in playing order cost one table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from devyatka_env.engine.bitboards import lowest
from devyatka_env.engine.compiling import kernel
from devyatka_env.solver.lattice import (
    BANKED,
    FEWER_PASSES,
    SHARED_BANK,
    SUITS,
    bits,
    fill,
    lay_out,
    opened,
    run_down,
    run_up,
    sign,
)

_ONE, _ZERO = np.uint64(1), np.uint64(0)


@kernel
def cell_of(p: Any, r: Any, table: np.uint64) -> int:
    """Where the lattice keeps a table with seat 0 to move (seat 1: ``p.lanes`` further); -1 when it is not in it."""
    if table & ~(p.base | p.given[0] | p.given[1]) != _ZERO:
        return -1
    starter = np.int64(lowest(r.starters))
    ranks = bits(0, np.int64(r.num_ranks))
    word = lane = np.int64(0)
    for suit in range(SUITS):
        shift = np.uint64(suit) * np.uint64(r.num_ranks)
        row = table >> shift & ranks
        state = np.int64(0)
        if row != _ZERO:
            ups, downs = run_up(row, starter + 1), run_down(row, starter)
            i, j = downs - p.laid_downs[suit], ups - p.laid_ups[suit]
            inside = 0 <= i <= p.downs[suit] and 0 <= j <= p.ups[suit]
            if not inside or row != bits(starter - downs, starter + ups + 1):
                return -1
            state = p.closed[suit] + i * (p.ups[suit] + 1) + j
        elif p.base >> shift & ranks != _ZERO:
            return -1
        if suit == p.suits[SUITS - 1]:
            lane = state
        else:
            word += state * p.stride[suit]
    return word * 2 * p.lanes + lane


@kernel
def value_of(p: Any, r: Any, units: int, seat: int, passes: Any) -> float:
    """The value of a cell to ``seat``, given the ``passes`` of both seats so far."""
    ahead = np.int64(passes[1]) - np.int64(passes[0])
    value = float(units)
    if p.form == BANKED:
        lost = np.int64(passes[1]) + units - 1 if units > 0 else np.int64(passes[0]) - units - 1
        value = (r.ante + r.pass_fee * lost) * sign(units)
    elif p.form == FEWER_PASSES:
        value = float(sign(units + ahead) if units + ahead != 0 else p.level)
    elif p.form == SHARED_BANK:
        value = r.pass_fee * (units + ahead) / 2.0
    return value if seat == 0 else 0.0 - value


@kernel
def ready(s: Any, r: Any, work: Any) -> int:
    """Fill the table above a running record, unless the workspace has it already; returns the positions filled."""
    p = work.lattice[0]
    given = p.given[0] == s.hands[0] | s.played[0] and p.given[1] == s.hands[1] | s.played[1]
    if given and cell_of(p, r, opened(s, r)) >= 0:
        return 0
    lay_out(s, r, p)
    return fill(p, r, work.cells)


@kernel
def value_after(s: Any, r: Any, work: Any, laid: np.uint64) -> float:
    """The value to the seat on turn of laying ``laid``, one legal card; of its turn as it is for no card.

    The table must be filled (`ready`).
    """
    p = work.lattice[0]
    seat = np.int64(s.turn)
    then = seat if laid == _ZERO else 1 - seat
    cell = cell_of(p, r, s.table | laid) + then * p.lanes
    return value_of(p, r, np.int64(work.cells[cell]), seat, s.passes)


@kernel
def action_values(s: Any, r: Any, work: Any, out: Any) -> int:
    """Write the value of every action to the seat on turn into ``out[:num_cards + 1]``, NaN for those not legal.

    Exact, for a two-seat record ``s`` under the rules record ``r`` that the workspace was made for; a finished deal has
    no legal action. The table is filled when the workspace has another: positions of one deal in playing order share
    one. Returns the positions filled.
    """
    out[: r.num_cards + 1] = np.nan
    if s.turn < 0:
        return 0
    filled = ready(s, r, work)
    legal = s.legal
    if legal == _ZERO:
        out[r.num_cards] = value_after(s, r, work, _ZERO)
    while legal:
        out[lowest(legal)] = value_after(s, r, work, legal & (_ZERO - legal))
        legal &= legal - _ONE
    return filled


@kernel
def best_cards(s: Any, r: Any, work: Any) -> np.uint64:
    """The legal cards of the highest value, as a bitboard; 0 for a stuck seat. Reads and fills as `action_values`."""
    best = _ZERO
    legal = s.legal
    if legal & (legal - _ONE) == _ZERO:
        return legal
    ready(s, r, work)
    top = -np.inf
    while legal:
        card = legal & (_ZERO - legal)
        legal ^= card
        value = value_after(s, r, work, card)
        if value > top:
            best, top = card, value
        elif value == top:
            best |= card
    return best
