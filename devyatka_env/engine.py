"""The rules, executed: compiled kernels over one record per game. Nothing else in the project plays a card.

Kernels take a record ``s`` (an element of a state array; a single game is a batch of one) and ``r``, the record of the
rule set (`devyatka_env.records`). Sections cited are those of the rules page (docs/rules.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.cards import iter_mask
from devyatka_env.records import (
    BLOCKED,
    LAST_HOLDER,
    LAST_SEAT,
    MAX_CARDS,
    ON,
    OUT,
    STOPPED,
    States,
    count,
    kernel,
    lowest,
    shuffle,
    stream,
)
from devyatka_env.rules import MAX_PLAYERS, PAYOFFS, Rules

# What `step` answers.
OK, FOUL, ILLEGAL = range(3)
_WIN, _LOSE, _WIN_LOSE, _PLACE, _CARDS, _POINTS, _BANK = range(len(PAYOFFS))

_ONE = np.uint64(1)
_ZERO = np.uint64(0)

# --- what fits, and whose turn it is ---------------------------------------------------------------------------------


@kernel
def points_of(mask: np.uint64, r: Any) -> int:
    """Card points of a bitboard (section 7)."""
    total = 0
    while mask:
        total += r.points[lowest(mask)]
        mask &= mask - _ONE
    return total


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


# --- the start of a deal ---------------------------------------------------------------------------------------------


@kernel
def clear(s: Any, num_players: int, dealer: int) -> None:
    """Blank a record for a new deal."""
    for seat in range(MAX_PLAYERS):
        s.hands[seat] = _ZERO
        s.played[seat] = _ZERO
        s.cannot_hold[seat] = _ZERO
        s.cards_left[seat] = 0
        s.dealt[seat] = 0
        s.passes[seat] = 0
        s.status[seat] = 0
        s.places[seat] = 0
    for i in range(MAX_CARDS):
        s.log[i] = 0
    s.table = _ZERO
    s.legal = _ZERO
    s.num_players = num_players
    s.num_in = num_players
    s.num_out = 0
    s.num_excluded = 0
    s.num_played = 0
    s.dealer = dealer
    s.opener = -1
    s.turn = -1
    s.any_starter = 0
    s.reason = ON


@kernel
def begin(s: Any, r: Any) -> bool:
    """Open the deal whose hands and dealer stand in ``s`` (section 3). False: it cannot begin (section 2)."""
    held = _ZERO
    for seat in range(s.num_players):
        held |= s.hands[seat]
        s.cards_left[seat] = count(s.hands[seat])
        s.dealt[seat] = s.cards_left[seat]
    if r.left_of_dealer:
        if held & r.starters == _ZERO:
            return False
        s.any_starter = 1
        pass_on(s, r, s.dealer)
        return True
    for seat in range(s.num_players):
        if s.hands[seat] & r.opening_card:
            s.opener = seat
            s.turn = seat
            s.legal = r.opening_card
        else:
            s.cannot_hold[seat] = r.opening_card  # who moves first is public
    return True


@kernel
def deal(s: Any, r: Any, num_players: int, dealer: int, seed: np.uint64, index: np.uint64) -> None:
    """Deal and open game ``index`` of ``seed``: a pure function of the rules and these numbers (section 2)."""
    pack = np.empty(MAX_CARDS, np.uint8)
    state = stream(seed, index)
    per_seat = np.int64(r.cards_per_seat)
    num_dealt = per_seat * num_players if per_seat else np.int64(r.num_cards)
    while True:  # a deal in which no seat holds a starter is dealt again from the same stream
        clear(s, num_players, dealer)
        state = shuffle(state, np.int64(r.num_cards), pack)
        seat = dealer
        for i in range(num_dealt):
            seat += 1
            if seat >= num_players:
                seat = 0
            s.hands[seat] |= _ONE << np.uint64(pack[i])
        if begin(s, r):
            return


@kernel
def deal_index(s: Any, r: Any, num_players: int, seed: np.uint64, index: np.uint64) -> None:
    """`deal`, with the dealer that the deal's place in its match gives (section 9; `Rules.dealer`)."""
    dealer = (num_players - 1 + np.int64(index % np.uint64(r.deals))) % num_players
    deal(s, r, num_players, dealer, seed, index)


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


# --- the end of a deal -----------------------------------------------------------------------------------------------


@kernel
def rank_key(s: Any, r: Any, seat: int) -> int:
    """A number that orders final standings: lower is a better place, equal is a shared place (section 7)."""
    status = int(s.status[seat])
    if status > 0:
        return status
    if status < 0:
        return (1 << 40) + status  # excluded earlier (closer to 0) is lower
    key = (1 << 32) + (int(s.cards_left[seat]) << 24)
    if r.passes_count:
        key += int(s.passes[seat]) << 16
    return key + points_of(s.hands[seat], r)


@kernel
def finish(s: Any, r: Any, reason: int) -> None:
    """End the deal and fill ``places``."""
    s.turn = -1
    s.legal = _ZERO
    s.reason = reason
    keys = (
        rank_key(s, r, 0), rank_key(s, r, 1), rank_key(s, r, 2), rank_key(s, r, 3), rank_key(s, r, 4), rank_key(s, r, 5)
    )  # fmt: skip
    n = np.int64(s.num_players)
    for seat in range(n):
        place = 1
        for other in range(n):
            place += keys[other] < keys[seat]
        s.places[seat] = place


@kernel
def share_payoff(s: Any, place: int, sign: float, out: NDArray[np.float64]) -> None:
    """The seats of ``place`` divide ``sign``, the others divide ``-sign``; nothing when all share (section 8)."""
    n = np.int64(s.num_players)
    sharing = 0
    for seat in range(n):
        sharing += s.places[seat] == place
    if sharing == n:
        return
    for seat in range(n):
        out[seat] += sign / sharing if s.places[seat] == place else -sign / (n - sharing)


@kernel
def place_payoff(s: Any, r: Any, seat: int, worst: int) -> float:
    """The payoff of one seat by its place or its cards alone (section 8)."""
    n = np.int64(s.num_players)
    place = np.int64(s.places[seat])
    sharing = 0
    for other in range(n):
        sharing += s.places[other] == place
    if r.payoff == _PLACE:
        return 1.0 - 2.0 * (place - 1 + (sharing - 1) / 2.0) / (n - 1)
    if r.payoff == _CARDS:
        return 0.0 - float(s.cards_left[seat])
    if r.payoff == _POINTS:
        return 0.0 - float(points_of(s.hands[seat], r))
    if sharing < n and place == 1:  # win_lose
        return 1.0 / sharing
    return -1.0 / sharing if sharing < n and place == worst else 0.0


@kernel
def payoffs(s: Any, r: Any, out: NDArray[np.float64]) -> None:
    """Write the payoffs of a finished deal into ``out[:num_players]`` (section 8); further entries become 0."""
    worst = 1
    for seat in range(len(out)):
        out[seat] = 0.0
    for seat in range(s.num_players):
        worst = max(worst, int(s.places[seat]))
    if r.payoff == _WIN:
        share_payoff(s, 1, 1.0, out)
    elif r.payoff == _LOSE:
        share_payoff(s, worst, -1.0, out)
    elif r.payoff == _BANK:
        bank_payoffs(s, r, out)
    else:
        for seat in range(s.num_players):
            out[seat] = place_payoff(s, r, seat, worst)


@kernel
def bank_payoffs(s: Any, r: Any, out: NDArray[np.float64]) -> None:
    """Every seat pays its ante and pass fees; place 1 takes, or shares, the bank (section 8)."""
    bank = 0.0
    winners = 0
    for seat in range(s.num_players):
        paid = r.ante + r.pass_fee * s.passes[seat]
        out[seat] -= paid
        bank += paid
        winners += s.places[seat] == 1
    for seat in range(s.num_players):
        if s.places[seat] == 1:
            out[seat] += bank / winners


# --- what one seat may know ------------------------------------------------------------------------------------------


@kernel
def blank(s: Any, seat: int, out: Any) -> None:
    """Copy ``s`` into ``out`` without what ``seat`` cannot know: the other hands, and the mover's legal cards."""
    for other in range(MAX_PLAYERS):
        out.hands[other] = s.hands[other] if other == seat else _ZERO
        out.played[other] = s.played[other]
        out.cannot_hold[other] = s.cannot_hold[other]
        out.cards_left[other] = s.cards_left[other]
        out.dealt[other] = s.dealt[other]
        out.passes[other] = s.passes[other]
        out.status[other] = s.status[other]
        out.places[other] = s.places[other]
    for i in range(MAX_CARDS):
        out.log[i] = s.log[i]
    out.table = s.table
    out.legal = s.legal if s.turn == seat else _ZERO
    out.num_players = s.num_players
    out.num_in = s.num_in
    out.num_out = s.num_out
    out.num_excluded = s.num_excluded
    out.num_played = s.num_played
    out.dealer = s.dealer
    out.opener = s.opener
    out.turn = s.turn
    out.any_starter = s.any_starter
    out.reason = s.reason


@kernel
def reveal(s: Any, r: Any, hands: NDArray[np.uint64]) -> None:
    """Put ``hands [num_players]`` into a view record, as if they had been dealt: the counterpart of `blank`."""
    for seat in range(s.num_players):
        s.hands[seat] = hands[seat]
    s.legal = s.hands[s.turn] & fitting(s, r) if s.turn >= 0 else _ZERO


@kernel
def could_hold(s: Any, r: Any, viewer: int, seat: int) -> np.uint64:
    """The cards that ``viewer`` must think possible in the hand of another ``seat``.

    Neither on the table, nor the viewer's own, nor ruled out by a pass; none for a seat whose hand is empty. Reads only
    what the viewer may know.
    """
    if seat == viewer:
        return s.hands[seat]
    if s.cards_left[seat] == 0:
        return _ZERO
    return r.deck & ~s.table & ~s.hands[viewer] & ~s.cannot_hold[seat]


# --- entry points over state arrays, for Python callers --------------------------------------------------------------


@kernel
def deal_at(
    states: States, i: int, rules: States, num_players: int, dealer: int, seed: np.uint64, index: np.uint64
) -> None:
    """`deal` into ``states[i]``."""
    deal(states[i], rules[0], num_players, dealer, seed, index)


@kernel
def begin_at(states: States, i: int, rules: States, hands: NDArray[np.uint64], num_players: int, dealer: int) -> bool:
    """Open a deal of given ``hands`` (``uint64 [num_players]``) in ``states[i]``; False when it cannot begin."""
    s = states[i]
    clear(s, num_players, dealer)
    for seat in range(num_players):
        s.hands[seat] = hands[seat]
    return begin(s, rules[0])


@kernel
def step_at(states: States, i: int, rules: States, action: int) -> int:
    """`step` on ``states[i]``."""
    return step(states[i], rules[0], action)


@kernel
def stop_at(states: States, i: int) -> None:
    """Break off the deal in ``states[i]`` (an environment's answer to an illegal action): over, without places."""
    states[i].turn = -1
    states[i].legal = _ZERO
    states[i].reason = STOPPED


@kernel
def payoffs_at(states: States, i: int, rules: States, out: NDArray[np.float64]) -> None:
    """`payoffs` of ``states[i]``."""
    payoffs(states[i], rules[0], out)


@kernel
def blank_at(states: States, i: int, seat: int, out: States) -> None:
    """The view record of ``seat`` in ``states[i]`` into ``out[0]``."""
    blank(states[i], seat, out[0])


@kernel
def fitting_at(states: States, i: int, rules: States) -> np.uint64:
    """`fitting` of ``states[i]``."""
    return fitting(states[i], rules[0])


@kernel
def could_hold_at(states: States, i: int, rules: States, viewer: int, seat: int) -> np.uint64:
    """`could_hold` in ``states[i]``."""
    return could_hold(states[i], rules[0], viewer, seat)


def legal_actions(record: np.void, rules: Rules) -> list[int]:
    """The legal actions of the seat on turn: card ids, else PASS for a stuck seat; none when the deal is over."""
    if record["turn"] < 0:
        return []
    return list(iter_mask(int(record["legal"]))) or [rules.pass_action]
