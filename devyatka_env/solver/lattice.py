"""The positions of a two-seat deal as a lattice of row states, filled with exact values from its end backwards.

For known hands all that matters is how far each row has come and whose turn it is. A row's *live* cards are those above
and below its present ends that somebody holds, up to the first gap; with ``ups`` and ``downs`` of them it stands in one
of ``closed + (downs + 1) * (ups + 1)`` states (``closed``: 1 while the row is not open, else 0)::

    state 0                      not open (only when closed is 1); its starter leads to state 1
    closed + i * (ups + 1) + j   i live cards laid below, j above: the next card above leads 1 on, below ups + 1 on

A cell is one state of every row: 25**4 of them in a closed 36-card deal, few near the end. Every card leads to a higher
cell, so one pass from the highest cell down finds each position's followers done. Cards out of play end a row early;
what lies beyond, in hand, is *dead*: never laid. A seat with dead cards never goes out, and a deal in which both have
some ends blocked, always in the highest cell and so with the same hands.

Cells are stored as ``[words, 2, lanes]``: the row with most states (the *inner* one) along the lanes, padded to whole
vectors; the turn; and a word for the states of the other rows. The moves of the outer rows are taken for all lanes of a
word at once. A cell holds its value to seat 0 in *units*, small whole numbers that need no history::

    payoff              units                                              value
    win, lose,          1 when seat 0 wins, -1 when seat 1 does,           the same
    win_lose, place     0 for a shared place
    cards, points       seat 1's cards (card points) left less seat 0's    the same
    bank                1 + passes to come of seat 1 when seat 0 wins,     ante + pass_fee * passes of the loser, past
                        -1 - those of seat 0 when seat 1 does              ones too; from the loser to the winner
    decided by passes   passes to come of seat 1 less those of seat 0      all passes compared

The last line is for blocked deals whose places hang on passes, or whose bank is shared (`_set_ends`). In each line the
value rises with the units, whatever passes lie behind; so best play by units is best play.

What fits, who passes, goes out or is blocked is repeated here in the form that the lattice needs, and so are the
payoffs of two seats. This is the one exception to the rule that only `devyatka_env.engine` executes the rules,
made for speed (some 3 ns a position); tests/solver/test_solver.py holds it to the engine and to a search written from
the rules page.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine import States
from devyatka_env.engine.bitboards import count, lowest
from devyatka_env.engine.compiling import kernel
from devyatka_env.engine.ending import points_of
from devyatka_env.rules import Rules
from devyatka_env.rules.rule_set import PAYOFFS

_ONE, _ZERO = np.uint64(1), np.uint64(0)
SUITS = 4
_STATES = 64  # states of a row, at most 1 + 7 * 7
_VECTOR = 32  # lanes are padded to a multiple of this
_NOBODY = 2
_CARDS, _POINTS, _BANK = (PAYOFFS.index(name) for name in ("cards", "points", "bank"))

# How values follow from units.
PLAIN, BANKED, FEWER_PASSES, SHARED_BANK = range(4)

# The lattice above one position. Fields of rows are indexed by suit, "by" fields by suit and state.
LATTICE_DTYPE = np.dtype(
    [
        ("rules", np.uint64),  # fingerprint of the rule set
        ("given", np.uint64, (2,)),  # each seat's cards as dealt
        ("base", np.uint64),  # the table that the lattice starts from
        ("suits", np.int64, (SUITS,)),  # the outer suits, then the inner one
        ("size", np.int64, (SUITS,)),  # states of the row
        ("stride", np.int64, (SUITS,)),  # words from one state to the next; lanes for the inner row
        ("closed", np.int64, (SUITS,)),
        ("ups", np.int64, (SUITS,)),
        ("downs", np.int64, (SUITS,)),
        ("laid_ups", np.int64, (SUITS,)),  # cards of `base` above the starter
        ("laid_downs", np.int64, (SUITS,)),
        ("up_by", np.int8, (SUITS, _STATES)),  # who holds the next card above; `_NOBODY`: none is live
        ("down_by", np.int8, (SUITS, _STATES)),
        ("left", np.int16, (SUITS, 2, _STATES)),  # live cards that a seat still holds, by suit, seat and state
        ("worth", np.int16, (SUITS, 2, _STATES)),  # what they cost their holder when the other seat goes out
        ("dead", np.uint64, (2,)),  # cards of each seat that are not live
        ("words", np.int64),
        ("lanes", np.int64),
        ("none", np.int64),  # above any units: a seat that has no card to lay
        ("win", np.int64),  # units of going out, beside the worth of the loser's cards
        ("blocked", np.int64),  # units of a blocked deal
        ("form", np.int64),  # `PLAIN` and so on
        ("level", np.int64),  # 1, 0 or -1: how places stand for seat 0 when passes are equal
        ("lost_pass", np.int64),  # what a pass costs a seat that loses, in units
        ("won_pass", np.int64),  # and one that does not
    ],
    align=True,
)


class Workspace(NamedTuple):
    """Memory of the solver's kernels, made by `workspace` for one rule set. It keeps the table last filled.

    Attributes:
        lattice: an array ``[1]`` of `LATTICE_DTYPE`.
        cells: units to seat 0, ``[words, 2, lanes]`` flattened; ``int8``, or ``int16`` for ``points``.
    """

    lattice: States
    cells: NDArray[np.signedinteger[Any]]


def workspace(rules: Rules) -> Workspace:
    """Memory for deals of ``rules``: 1 MB for 36 cards, 15 MB for 52 (twice that for ``points``).

    Raises:
        ValueError: rules that the two-seat solver does not solve.
    """
    check_rules(rules)
    low = rules.ranks.index(rules.starter)
    size = 1 + (low + 1) * (rules.deck.num_ranks - low)
    units = np.int16 if rules.payoff == "points" else np.int8
    lattice = np.zeros(1, LATTICE_DTYPE)
    lattice["rules"] = int(rules.fingerprint, 16)
    lattice["none"] = np.iinfo(units).max
    return Workspace(lattice, np.zeros(size ** (rules.num_suits - 1) * 2 * (size + _VECTOR), units))


def is_solved(rules: Rules) -> bool:
    """Whether the two-seat solver takes these rules (`check_rules`)."""
    past_counts = rules.payoff == "bank" and rules.passes_count and rules.cards_per_seat is not None
    return rules.num_players == 2 and not past_counts


def check_rules(rules: Rules) -> None:
    """Refuse what the two-seat solver does not solve.

    Raises:
        ValueError: more than two seats; or a bank that goes, in a blocked deal, to the seat with fewer passes.
    """
    if rules.num_players != 2:
        raise ValueError(
            f"the two-seat solver needs num_players=2, not {rules.num_players}: with more seats, `paranoid` and"
            " `max_n` of devyatka_env.solver give open-hands values"
        )
    if not is_solved(rules):
        raise ValueError(
            "payoff=bank with passes_count=True and cards_per_seat is not solved: when a deal is blocked, the passes so"
            " far of both seats decide who takes the bank and how much is in it, so a position has no value of its own;"
            " `paranoid` and `max_n` of devyatka_env.solver are exact there, too; or set passes_count=False, or another"
            " payoff"
        )


# --- the lattice above a position ------------------------------------------------------------------------------------


@kernel
def bits(low: int, high: int) -> np.uint64:
    """The ranks ``low`` to ``high - 1`` of a row as a bitboard."""
    return ((_ONE << np.uint64(high - low)) - _ONE) << np.uint64(low)


@kernel
def run_up(mask: np.uint64, rank: int) -> np.int64:
    """How many ranks from ``rank`` up are in ``mask`` without a gap."""
    return np.int64(lowest(~(mask >> np.uint64(rank))))


@kernel
def run_down(mask: np.uint64, rank: int) -> int:
    """How many ranks below ``rank`` are in ``mask`` without a gap."""
    run = 0
    while run < rank and mask >> np.uint64(rank - 1 - run) & _ONE:
        run += 1
    return run


@kernel
def _worth(mask: np.uint64, r: Any) -> np.int64:
    """What these cards cost their holder when the other seat goes out."""
    if r.payoff == _POINTS:
        return np.int64(points_of(mask, r))
    return np.int64(count(mask) if r.payoff == _CARDS else 0)


@kernel
def _set_state(p: Any, r: Any, suit: int, state: int, first: np.uint64, second: np.uint64, live: np.uint64) -> None:
    """Note what each seat still holds of the ``live`` cards of a row."""
    shift = np.uint64(suit) * np.uint64(r.num_ranks)
    p.left[suit, 0, state] = count(first & live)
    p.left[suit, 1, state] = count(second & live)
    p.worth[suit, 0, state] = _worth((first & live) << shift, r)
    p.worth[suit, 1, state] = _worth((second & live) << shift, r)


@kernel
def _set_row(p: Any, r: Any, suit: int, row: np.uint64, first: np.uint64, second: np.uint64) -> np.uint64:
    """Lay out the states of a row, given the suit's cards laid and those in the two hands; returns its live cards."""
    starter = np.int64(lowest(r.starters))
    held = first | second
    opens = row != _ZERO or held >> np.uint64(starter) & _ONE != _ZERO
    closed = int(row == _ZERO and opens)
    laid_ups, laid_downs = run_up(row, starter + 1), run_down(row, starter)
    top, bottom = starter + laid_ups, starter - laid_downs
    ups = run_up(held, top + 1) if opens else 0
    downs = run_down(held, bottom) if opens else 0
    p.closed[suit], p.laid_ups[suit], p.laid_downs[suit] = closed, laid_ups, laid_downs
    p.ups[suit], p.downs[suit], p.size[suit] = ups, downs, closed + (ups + 1) * (downs + 1)
    for i in range(downs + 1):
        for j in range(ups + 1):
            state = closed + i * (ups + 1) + j
            p.up_by[suit, state] = _NOBODY if j == ups else np.int64(second >> np.uint64(top + 1 + j) & _ONE)
            p.down_by[suit, state] = _NOBODY if i == downs else np.int64(second >> np.uint64(bottom - 1 - i) & _ONE)
            live = bits(bottom - downs, bottom - i) | bits(top + 1 + j, top + 1 + ups)
            _set_state(p, r, suit, state, first, second, live)
    live = held & bits(bottom - downs, top + 1 + ups) if opens else _ZERO
    if closed:
        p.up_by[suit, 0] = np.int64(second >> np.uint64(starter) & _ONE)
        p.down_by[suit, 0] = _NOBODY
        _set_state(p, r, suit, 0, first, second, live)
    return live


@kernel
def sign(number: int) -> int:
    """1, 0 or -1."""
    return int(number > 0) - int(number < 0)


@kernel
def _set_ends(p: Any, r: Any) -> None:
    """Choose the units of the deal's possible ends."""
    p.win = int(r.payoff != _CARDS and r.payoff != _POINTS)
    p.form = BANKED if r.payoff == _BANK else PLAIN
    p.blocked = p.level = 0
    if p.dead[0] != _ZERO and p.dead[1] != _ZERO:  # section 7: fewer cards, then fewer passes, then fewer points
        cards = sign(np.int64(count(p.dead[1])) - np.int64(count(p.dead[0])))
        p.level = cards if cards != 0 else sign(np.int64(points_of(p.dead[1], r)) - np.int64(points_of(p.dead[0], r)))
        if p.win == 0:
            p.blocked = _worth(p.dead[1], r) - _worth(p.dead[0], r)
        elif cards == 0 and r.passes_count:
            p.form = FEWER_PASSES
        elif p.level == 0 and r.payoff == _BANK:  # each takes half of the bank, whatever it has paid
            p.form = SHARED_BANK
        else:
            p.blocked = p.level
    p.lost_pass = int(p.form != PLAIN)
    p.won_pass = int(p.form == FEWER_PASSES or p.form == SHARED_BANK)


@kernel
def opened(s: Any, r: Any) -> np.uint64:
    """The table of a record, or the table after the opening card where that is the only way to open."""
    return r.opening_card if s.table == _ZERO and s.any_starter == 0 else s.table


@kernel
def lay_out(s: Any, r: Any, p: Any) -> None:
    """Set up the lattice above the position of a running record."""
    base = opened(s, r)
    first, second = s.hands[0] & ~base, s.hands[1] & ~base
    p.base, p.given[0], p.given[1] = base, s.hands[0] | s.played[0], s.hands[1] | s.played[1]
    ranks = bits(0, np.int64(r.num_ranks))
    live = _ZERO
    inner = 0
    for suit in range(SUITS):  # suits that the deck lacks have a single state
        shift = np.uint64(suit) * np.uint64(r.num_ranks)
        row = _set_row(p, r, suit, base >> shift & ranks, first >> shift & ranks, second >> shift & ranks)
        live |= row << shift
        if p.size[suit] > p.size[inner]:
            inner = suit
    p.dead[0], p.dead[1] = first & ~live, second & ~live
    p.words = 1
    place = 0
    for suit in range(SUITS):
        if suit != inner:
            p.suits[place] = suit
            p.stride[suit] = p.words
            p.words *= p.size[suit]
            place += 1
    p.suits[place] = inner
    p.stride[inner] = 1
    p.lanes = (p.size[inner] + _VECTOR - 1) // _VECTOR * _VECTOR
    _set_ends(p, r)


# --- filling it ------------------------------------------------------------------------------------------------------


@kernel
def _try_word(best: Any, grid: Any, word: int, by: int) -> None:
    """Improve ``best`` by a move to ``word`` that seat ``by`` may make, in all lanes."""
    if by == 0:
        mine, then = best[0], grid[word, 1]
        for lane in range(len(then)):
            value = then[lane]
            mine[lane] = value if value > mine[lane] else mine[lane]
    elif by == 1:
        mine, then = best[1], grid[word, 0]
        for lane in range(len(then)):
            value = then[lane]
            mine[lane] = value if value < mine[lane] else mine[lane]


@kernel
def _fill_word(p: Any, cells: Any, best: Any, left: Any, worth: Any) -> None:
    """Fill the cells ``[2, lanes]`` of a word from its highest down.

    ``best`` holds what the outer rows' moves give each seat, ``left`` and ``worth`` each seat's cards outside the
    inner row.
    """
    suit = p.suits[SUITS - 1]
    none, lost_pass, won_pass, below = p.none, p.lost_pass, p.won_pass, p.ups[suit] + 1
    may_end = left[0] == 0 or left[1] == 0
    for state in range(p.size[suit] - 1, -1, -1):
        first, second = np.int64(best[0, state]), np.int64(best[1, state])
        by = p.up_by[suit, state]
        if by == 0:
            first = max(first, np.int64(cells[1, state + 1]))
        elif by == 1:
            second = min(second, np.int64(cells[0, state + 1]))
        by = p.down_by[suit, state]
        if by == 0:
            first = max(first, np.int64(cells[1, state + below]))
        elif by == 1:
            second = min(second, np.int64(cells[0, state + below]))
        if first == -none and second == none:  # nobody can ever lay again
            first = second = p.blocked
        elif first == -none:  # seat 0 passes
            first = second - (lost_pass if second < 0 else won_pass)
        elif second == none:
            second = first + (lost_pass if first > 0 else won_pass)
        if may_end:
            first, second = _ended(p, suit, state, left, worth, first, second)
        cells[0, state] = first
        cells[1, state] = second


@kernel
def _ended(p: Any, suit: int, state: int, left: Any, worth: Any, first: int, second: int) -> tuple[int, int]:
    """The units of both turns where a seat has gone out; else ``first`` and ``second``."""
    if left[0] + p.left[suit, 0, state] == 0:
        first = second = p.win + worth[1] + p.worth[suit, 1, state]
    elif left[1] + p.left[suit, 1, state] == 0:
        first = second = -p.win - worth[0] - p.worth[suit, 0, state]
    return first, second


@kernel
def fill(p: Any, r: Any, cells: Any) -> int:
    """Fill the lattice that `lay_out` has set up; returns how many positions it has, turns counted apart."""
    grid = cells[: p.words * 2 * p.lanes].reshape((p.words, 2, p.lanes))
    best = np.empty((2, p.lanes), cells.dtype)
    left, worth = np.empty(2, np.int64), np.empty(2, np.int64)
    state = np.empty(3, np.int64)
    for outer in range(3):
        state[outer] = p.size[p.suits[outer]] - 1
    for word in range(p.words - 1, -1, -1):
        best[0, :] = -p.none
        best[1, :] = p.none
        for seat in range(2):
            left[seat], worth[seat] = count(p.dead[seat]), _worth(p.dead[seat], r)
        for outer in range(3):
            suit, now = p.suits[outer], state[outer]
            _try_word(best, grid, word + p.stride[suit], np.int64(p.up_by[suit, now]))
            _try_word(best, grid, word + p.stride[suit] * (p.ups[suit] + 1), np.int64(p.down_by[suit, now]))
            for seat in range(2):
                left[seat] += p.left[suit, seat, now]
                worth[seat] += p.worth[suit, seat, now]
        _fill_word(p, grid[word], best, left, worth)
        for outer in range(3):  # the states of the next lower word
            state[outer] -= 1
            if state[outer] >= 0:
                break
            state[outer] = p.size[p.suits[outer]] - 1
    return int(p.words * 2 * p.size[p.suits[SUITS - 1]])
