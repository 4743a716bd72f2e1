"""A turn, executed: what fits, who is to act, and what an action does (rules, sections 4 to 6).

Kernels take a record ``s`` (an element of a state array; a single game is a batch of one) and ``r``, the record of the
rule set (`devyatka_env.engine.records`). Sections cited are those of the rules page (docs/rules.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from devyatka_env.engine.compiling import kernel
from devyatka_env.engine.ending import finish
from devyatka_env.engine.records import BLOCKED, LAST_HOLDER, LAST_SEAT, OUT

# What `step` answers.
OK, FOUL, ILLEGAL = range(3)

_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@kernel
def fitting(s: Any, r: Any) -> np.uint64:
    """The cards that the rows take now, whoever holds them (sections 3 and 4). Public.

    Three shifts: the starters, the card above each card on the table, the card below each, less the table itself.
    A row has no gaps, so "next to any card of it" and "next to its ends" are the same cards.
    """
    if s.table == _ZERO and s.any_starter == 0:
        return r.opening_card
    above = (s.table & ~r.tops) << _ONE
    below = (s.table & ~r.bottoms) >> _ONE
    return ~s.table & (r.starters | above | below)


@kernel
def next_seat(s: Any, seat: int) -> int:
    """The next seat clockwise that is still in (section 4)."""
    while True:
        seat += 1
        if seat == s.num_players:
            seat = 0
        if s.status[seat] == 0:
            return seat


# --- a turn ----------------------------------------------------------------------------------------------------------


@kernel
def note_pass(s: Any, seat: int, fits: np.uint64) -> None:
    """Count a pass; it is public proof that the seat holds none of the cards that fit now."""
    s.passes[seat] += 1
    s.cannot_hold[seat] |= fits


@kernel
def pass_on(s: Any, r: Any, seat: int) -> None:
    """Give the turn to the next seat that can act after ``seat``, or end the deal when nobody ever can (section 6)."""
    fits = fitting(s, r)
    mover = next_seat(s, seat)
    legal = s.hands[mover] & fits
    if legal == _ZERO:  # somebody passes, unless the deal is blocked
        held = _ZERO
        for other in range(s.num_players):
            if s.status[other] == 0:
                held |= s.hands[other]
        if held & fits == _ZERO:
            finish(s, r, BLOCKED)
            return
        while legal == _ZERO and not r.explicit_pass:
            note_pass(s, mover, fits)
            mover = next_seat(s, mover)
            legal = s.hands[mover] & fits
    s.turn = mover
    s.legal = legal


@kernel
def play_card(s: Any, r: Any, card: int) -> None:
    """The seat on turn lays a legal card. Unchecked."""
    seat = np.int64(s.turn)
    bit = _ONE << np.uint64(card)
    s.hands[seat] ^= bit
    s.played[seat] |= bit
    s.table |= bit
    s.log[s.num_played] = card
    if s.num_played == 0:
        s.opener = seat
    s.num_played += 1
    s.cards_left[seat] -= 1
    if s.cards_left[seat] == 0:
        s.num_out += 1
        s.num_in -= 1
        s.status[seat] = s.num_out
        if not r.last_holder:
            finish(s, r, OUT)
            return
        if s.num_in == 1:
            finish(s, r, LAST_HOLDER)
            return
    pass_on(s, r, seat)


@kernel
def exclude_seat(s: Any, r: Any) -> None:
    """The seat on turn leaves the deal for a foul, and its cards with it (section 5)."""
    seat = np.int64(s.turn)
    s.num_excluded += 1
    s.num_in -= 1
    s.status[seat] = -s.num_excluded
    if s.table == _ZERO and s.hands[seat] & r.opening_card:
        s.any_starter = 1  # section 6: the next seat in turn may open with any starter
    if s.num_in == 1:
        finish(s, r, LAST_SEAT)
    else:
        pass_on(s, r, seat)


@kernel
def step(s: Any, r: Any, action: int) -> int:
    """Take an action (a card id, or PASS = number of cards) for the seat on turn.

    Returns `OK`; `FOUL` (the seat was excluded); or `ILLEGAL` (refused, the record is unchanged).
    """
    if s.turn < 0 or action < 0 or action > r.num_cards:
        return ILLEGAL
    if action < r.num_cards:
        bit = _ONE << np.uint64(action)
        if s.legal & bit:
            play_card(s, r, action)
            return OK
        if not r.exclude or not s.hands[s.turn] & bit:
            return ILLEGAL
    elif not r.explicit_pass:
        return ILLEGAL
    elif s.legal == _ZERO:
        note_pass(s, s.turn, fitting(s, r))
        pass_on(s, r, np.int64(s.turn))
        return OK
    elif not r.exclude:
        return ILLEGAL
    exclude_seat(s, r)
    return FOUL
