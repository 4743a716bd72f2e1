"""The searches behind `devyatka_env.solver.open_hands`, compiled: paranoid (alpha-beta) and max^n, depth-first.

Both keep a stack of records, one for each card since the position searched, and play forced turns without branching.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine import STATE_DTYPE, States
from devyatka_env.engine.bitboards import count, lowest
from devyatka_env.engine.compiling import kernel
from devyatka_env.engine.ending import points_of
from devyatka_env.engine.payoffs import write_payoffs
from devyatka_env.engine.records import MAX_CARDS
from devyatka_env.engine.turn import step
from devyatka_env.rules import MAX_PLAYERS
from devyatka_env.rules.rule_set import PAYOFFS
from devyatka_env.solver.transpositions import FULL, STAMP, USED, Meter, Numbers, add, find, position_key

Values = NDArray[np.float64]

EVERYBODY = -1  # as the seat that values are for: every seat for itself

_WIN, _LOSE, _WIN_LOSE, _PLACE, _CARDS, _POINTS, _BANK = range(len(PAYOFFS))
_ONE, _ZERO = np.uint64(1), np.uint64(0)

# --- what both searches need -----------------------------------------------------------------------------------------


@kernel
def is_settled(s: Any, r: Any, seat: int) -> bool:
    """Whether it is seen at a glance that nothing that follows can change the payoff of ``seat`` (of any seat: -1)."""
    if s.num_out == 0:
        return False
    if r.payoff == _WIN:
        return True
    if seat < 0 or s.status[seat] <= 0:
        return False
    if r.payoff == _BANK:
        return bool(s.status[seat] > 1 or r.pass_fee == 0.0)  # the bank grows with every pass
    return bool(r.payoff != _LOSE or not can_block(s, r))  # in a blocked deal several seats may be last


@kernel
def can_block(s: Any, r: Any) -> bool:
    """Whether cards are out of play: only then can a deal be blocked, and place 1 be shared (rules, sections 6, 7)."""
    seen = s.table
    for seat in range(s.num_players):
        if s.status[seat] == 0:
            seen |= s.hands[seat]
    return bool(seen != r.deck)


@kernel
def payoff_range(s: Any, r: Any, seat: int) -> tuple[float, float]:
    """Bounds that the payoff of ``seat`` cannot pass from here on (rules, section 8); as narrow as is easily known."""
    others = np.float64(s.num_players - 1)
    if r.payoff == _BANK:
        return -np.inf, np.inf
    if r.payoff == _CARDS:
        return 0.0 - np.float64(s.cards_left[seat]), 0.0
    if r.payoff == _POINTS:
        return 0.0 - np.float64(points_of(s.hands[seat], r)), 0.0
    if r.payoff == _WIN and not can_block(s, r):
        return -1.0 / others, 1.0
    if r.payoff == _LOSE and r.last_holder and not can_block(s, r):
        return -1.0, 1.0 / others
    return -1.0, 1.0


@kernel
def play_on(s: Any, r: Any, seat: int, action: np.int64) -> None:
    """Take an action, then all that are forced; to the end once all is settled for ``seat`` (-1: for every seat).

    The one place of the searches that calls the engine's step: compiled into each caller, it is what takes long.
    """
    while True:
        step(s, r, action)
        legal = s.legal
        if s.turn < 0 or (legal & (legal - _ONE) and not is_settled(s, r, seat)):
            return
        action = np.int64(lowest(legal) if legal else r.num_cards)


@kernel
def first_try(s: Any, r: Any, cards: np.uint64) -> np.int64:
    """The card to search first: one that lets the mover go on in that row, and lets nobody else. Changes no value."""
    hand = s.hands[s.turn]
    best, best_score = np.int64(0), np.int64(-1000)
    while cards:
        card = np.int64(lowest(cards))
        cards &= cards - _ONE
        bit = _ONE << np.uint64(card)
        next_cards = ((bit & ~r.tops) << _ONE | (bit & ~r.bottoms) >> _ONE) & ~s.table
        score = 2 * np.int64(count(next_cards & hand)) - 3 * np.int64(count(next_cards & ~hand))
        if score > best_score:
            best, best_score = card, score
    return best


# --- paranoid --------------------------------------------------------------------------------------------------------

# Of a position: the seat gets at least, and at most.
_LEAST, _MOST = 0, 1


@kernel
def _known(bounds: Any, low: float, high: float) -> bool:
    """Whether a position's bounds answer the question how it stands to the window ``low`` to ``high``."""
    return bool(bounds[_LEAST] == bounds[_MOST] or bounds[_LEAST] >= high or bounds[_MOST] <= low)


@kernel
def _search_paranoid(
    stack: States, r: Any, seat: int, action: np.int64, keys: States, numbers: Numbers, meter: Meter
) -> tuple[float, States, Numbers]:
    """What ``seat`` gets after ``action`` in ``stack[0]`` (spoilt).

    Fail-soft alpha-beta. Each level of the stack is a position with a choice, but for the last.
    """
    levels = MAX_CARDS + 1
    where, what, todo = np.empty(levels, np.uint64), np.empty(levels, np.uint64), np.empty(levels, np.uint64)
    best, window, asked = np.empty(levels), np.empty((levels, 2)), np.empty((levels, 2))
    payoffs = np.empty(MAX_PLAYERS)
    low, high = payoff_range(stack[0], r, seat)
    depth = 0
    while True:
        s = stack[depth]
        play_on(s, r, seat, action)
        value, is_known = 0.0, s.turn < 0
        if is_known:
            write_payoffs(s, r, payoffs)
            value = payoffs[seat]
        else:
            where[depth], what[depth] = position_key(s, r, seat)
            i = find(keys, where[depth], what[depth], meter[STAMP])
            if keys[i].stamp == meter[STAMP]:
                is_known = _known(numbers[i], low, high)
                value = numbers[i, _MOST] if numbers[i, _MOST] <= low else numbers[i, _LEAST]
                low, high = max(low, numbers[i, _LEAST]), min(high, numbers[i, _MOST])
            todo[depth] = s.legal
            best[depth] = -np.inf if s.turn == seat else np.inf
            window[depth, 0], window[depth, 1] = low, high
            asked[depth] = window[depth]
        while is_known:  # hand the value to the position above, which may be known by it
            depth -= 1
            if depth < 0:
                return value, keys, numbers
            if stack[depth].turn == seat:
                value = best[depth] = max(best[depth], value)
                window[depth, 0] = max(window[depth, 0], value)
            else:
                value = best[depth] = min(best[depth], value)
                window[depth, 1] = min(window[depth, 1], value)
            is_known = todo[depth] == _ZERO or window[depth, 0] >= window[depth, 1]
            if is_known:
                keys, numbers = _note_bounds(keys, numbers, meter, where[depth], what[depth], value, asked[depth])
                if meter[FULL]:
                    return np.nan, keys, numbers
        low, high = window[depth, 0], window[depth, 1]
        action = first_try(stack[depth], r, todo[depth])
        todo[depth] ^= _ONE << np.uint64(action)
        stack[depth + 1] = stack[depth]
        depth += 1


@kernel
def _note_bounds(
    keys: States, numbers: Numbers, meter: Meter, where: np.uint64, what: np.uint64, value: float, asked: Any
) -> tuple[States, Numbers]:
    """Keep what a search with the window ``asked`` has found out about a position."""
    i = find(keys, where, what, meter[STAMP])
    if keys[i].stamp != meter[STAMP]:
        keys, numbers, i = add(keys, numbers, meter, where, what)
        numbers[i, _LEAST], numbers[i, _MOST] = -np.inf, np.inf
    if value > asked[0]:
        numbers[i, _LEAST] = value
    if value < asked[1]:
        numbers[i, _MOST] = value
    return keys, numbers


# --- max^n -----------------------------------------------------------------------------------------------------------


@kernel
def prefers(seat: int, num_players: int, one: Any, other: Any) -> bool:
    """Whether ``seat`` would rather have payoffs ``one`` than ``other``, by the tie rule of the module."""
    if one[seat] != other[seat]:
        return bool(one[seat] > other[seat])
    for k in range(1, num_players):
        after = (seat + k) % num_players
        if one[after] != other[after]:
            return bool(one[after] < other[after])
    return False


@kernel
def _search_max_n(
    stack: States, r: Any, action: np.int64, keys: States, numbers: Numbers, meter: Meter, value: Values
) -> tuple[States, Numbers]:
    """Write the max^n payoffs after ``action`` in ``stack[0]`` (spoilt) into ``value [n]``."""
    levels = MAX_CARDS + 1
    n = np.int64(stack[0].num_players)
    where, what, todo = np.empty(levels, np.uint64), np.empty(levels, np.uint64), np.empty(levels, np.uint64)
    best = np.empty((levels, n))
    # A win leaves nothing open: the others share the loss alike. So a seat that can win need not look further.
    enough = 1.0 if r.payoff == _WIN and not can_block(stack[0], r) else np.inf
    depth = 0
    while True:
        s = stack[depth]
        play_on(s, r, np.int64(EVERYBODY), action)
        is_known = s.turn < 0
        if is_known:
            write_payoffs(s, r, value)
        else:
            where[depth], what[depth] = position_key(s, r, np.int64(EVERYBODY))
            i = find(keys, where[depth], what[depth], meter[STAMP])
            is_known = keys[i].stamp == meter[STAMP]
            if is_known:
                value[:] = numbers[i]
            todo[depth] = s.legal
            best[depth] = -np.inf
        while is_known:
            depth -= 1
            if depth < 0:
                return keys, numbers
            seat = np.int64(stack[depth].turn)
            if prefers(seat, n, value, best[depth]):
                best[depth] = value
            is_known = todo[depth] == _ZERO or best[depth, seat] >= enough
            if is_known:
                value[:] = best[depth]
                keys, numbers, i = add(keys, numbers, meter, where[depth], what[depth])
                numbers[i] = value
                if meter[FULL]:
                    return keys, numbers
        action = first_try(stack[depth], r, todo[depth])
        todo[depth] ^= _ONE << np.uint64(action)
        stack[depth + 1] = stack[depth]
        depth += 1


# --- both, over many records -----------------------------------------------------------------------------------------


@kernel
def payoffs_many(
    states: States,
    rules: States,
    seats: NDArray[np.int64],
    keys: States,
    numbers: Numbers,
    meter: Meter,
    afresh: bool,
    out: Values,
) -> tuple[int, States, Numbers]:
    """Write what every action in every record leads to, into ``out [B, C + 1, W]``; NaN for those not legal.

    With a seat in ``seats [B]`` that is its paranoid value (W is 1), with `EVERYBODY` the max^n payoffs of all W seats.
    Returns the first record that takes too many positions, or -1, and the table. Unless the table is to be emptied
    ``afresh`` for each record, all must be of one deal, and the seat one and the same.
    """
    r = rules[0]
    stack = np.empty(MAX_CARDS + 2, STATE_DTYPE)
    out[:] = np.nan
    for i in range(len(states)):
        if afresh:
            meter[STAMP] += 1
            meter[USED] = 0
        todo = _ZERO
        if states[i].turn >= 0:
            todo = states[i].legal if states[i].legal else _ONE << np.uint64(r.num_cards)
        while todo:
            action = np.int64(lowest(todo))
            todo &= todo - _ONE
            stack[0] = states[i]
            if seats[i] == EVERYBODY:
                keys, numbers = _search_max_n(stack, r, action, keys, numbers, meter, out[i, action])
            else:
                value, keys, numbers = _search_paranoid(stack, r, seats[i], action, keys, numbers, meter)
                out[i, action, 0] = value
            if meter[FULL]:
                return i, keys, numbers
    return -1, keys, numbers
