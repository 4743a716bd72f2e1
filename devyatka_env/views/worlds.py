"""The deals that agree with a view record, compiled: counted, numbered and drawn (`devyatka_env.views.belief`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine import States
from devyatka_env.engine.bitboards import count, lowest
from devyatka_env.engine.compiling import kernel
from devyatka_env.engine.knowledge import reveal
from devyatka_env.engine.randomness import mix, next_word
from devyatka_env.engine.records import MAX_CARDS
from devyatka_env.engine.turn import fitting
from devyatka_env.rules import MAX_PLAYERS

NUM_SLOTS = MAX_PLAYERS + 1

# The hidden cards and who may hold them. Slots without hidden cards are left out: ``room[k]`` belongs to ``slot[k]``.
HIDDEN_DTYPE = np.dtype(
    [
        ("slot", np.uint8, (NUM_SLOTS,)),  # a seat, or the number of seats for the cards out of play
        ("room", np.uint8, (NUM_SLOTS,)),  # hidden cards in the slot
        ("step", np.int64, (NUM_SLOTS,)),  # a table index falls by this with each card dealt to the slot
        ("card", np.uint8, (MAX_CARDS,)),  # hidden cards; they are dealt out from the last to the first
        ("holders", np.uint8, (MAX_CARDS,)),  # bit k: slot[k] may hold that card
        ("hand", np.uint64),  # the viewer's own cards
        ("viewer", np.int64),
        ("num_slots", np.int64),
        ("num_hidden", np.int64),
        ("size", np.int64),  # entries of the table; 0: there is none
        ("needy", np.uint8),  # bit k: slot[k] is one of those of which one must hold a card of card[num_free:]
        ("pending", np.int64),  # 1: there is such a condition
        ("num_free", np.int64),
    ],
    align=True,
)

Table = NDArray[np.uint64]  # [size, 4]: low and high half of the ways to finish, then of those while pending

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_BYTE = np.uint64(255)


# --- what the record tells -------------------------------------------------------------------------------------------


@kernel
def must_fit(s: Any, r: Any) -> int:
    """Seats, a bit each, of which at least one is known to hold a card that fits, since the deal is on."""
    if not r.explicit_pass:
        return 1 << int(s.turn)
    seats = 0
    for seat in range(s.num_players):
        if s.status[seat] == 0:
            seats |= 1 << seat
    return seats


@kernel
def frame(s: Any, r: Any, viewer: int, h: Any) -> int:
    """Write into ``h``, a record of `HIDDEN_DTYPE`, what ``viewer`` knows from its view record ``s``.

    Returns the number of entries of the table that `count_ways` fills; 0 when the deal is over or the numbers of cards
    do not add up.
    """
    h.size = 0
    if s.turn < 0:
        return 0
    fits = fitting(s, r)
    needy = must_fit(s, r)
    if needy >> viewer & 1 and s.hands[viewer] & fits:
        needy = 0
    h.viewer, h.hand = viewer, s.hands[viewer]
    h.num_slots, h.needy, h.num_hidden = 0, 0, 0
    size = np.int64(1)
    not_dealt = np.int64(r.num_cards)
    for slot in range(s.num_players + 1):
        if slot < s.num_players:
            not_dealt -= s.dealt[slot]
            room = np.int64(s.cards_left[slot])
        else:
            room = not_dealt
        if slot != viewer and room > 0:
            k = h.num_slots
            h.slot[k], h.room[k], h.step[k] = slot, room, size
            h.needy |= (needy >> slot & 1) << k
            h.num_slots += 1
            h.num_hidden += room
            size *= room + 1
    hidden = r.deck & ~s.table & ~s.hands[viewer]
    if h.num_hidden != np.int64(count(hidden)) or not_dealt < 0:
        return 0
    h.size = size
    h.pending = needy != 0
    h.num_free = h.num_hidden
    if needy:
        h.num_free -= np.int64(count(hidden & fits))
    order_cards(s, h, hidden & ~fits, hidden & fits)
    return int(size)


@kernel
def order_cards(s: Any, h: Any, free: np.uint64, fit: np.uint64) -> None:
    """Put the hidden cards and their possible holders into ``h``; those that fit are dealt out first and stand last."""
    place = 0
    for cards in (free, fit):
        while cards:
            card = lowest(cards)
            cards &= cards - _ONE
            holders = 0
            for k in range(h.num_slots):
                slot = h.slot[k]
                if slot == s.num_players or not s.cannot_hold[slot] >> np.uint64(card) & _ONE:
                    holders |= 1 << k
            h.card[place], h.holders[place] = card, holders
            place += 1


# --- the table of ways -----------------------------------------------------------------------------------------------


@kernel
def count_ways(h: Any, ways: Table) -> None:
    """Fill the table: for every vector of rooms, in how many ways the cards that fill them can be dealt out."""
    room, step, holding = h.room, h.step, h.holders
    num_slots, num_free, needy = h.num_slots, h.num_free, np.int64(h.needy)
    left = _ZERO  # the vector of rooms, a byte each
    place = -1
    ways[0, 0] = _ONE
    ways[0, 1] = ways[0, 2] = ways[0, 3] = _ZERO
    for index in range(1, h.size):
        k = 0
        while left >> np.uint64(8 * k) & _BYTE == room[k]:
            left ^= np.uint64(room[k]) << np.uint64(8 * k)
            place -= room[k]
            k += 1
        left += _ONE << np.uint64(8 * k)
        place += 1
        low = high = open_low = open_high = _ZERO
        holders = np.int64(holding[place])
        for k in range(num_slots):
            if holders >> k & 1 and left >> np.uint64(8 * k) & _BYTE:
                rest = index - step[k]
                low += ways[rest, 0]
                high += ways[rest, 1] + np.uint64(low < ways[rest, 0])
                if place >= num_free:
                    column = 0 if needy >> k & 1 else 2
                    open_low += ways[rest, column]
                    open_high += ways[rest, column + 1] + np.uint64(open_low < ways[rest, column])
        ways[index, 0], ways[index, 1], ways[index, 2], ways[index, 3] = low, high, open_low, open_high


@kernel
def deal_out(h: Any, ways: Table, low: np.uint64, high: np.uint64, hands: NDArray[np.uint64]) -> None:
    """Write deal number ``high * 2**64 + low`` into ``hands`` (``uint64 [NUM_SLOTS]``). The number must exist."""
    slot, room, step, cards, holding = h.slot, h.room, h.step, h.card, h.holders
    num_slots, num_free, needy = h.num_slots, h.num_free, np.int64(h.needy)
    hands[:] = _ZERO
    hands[h.viewer] = h.hand
    left = _ZERO
    for k in range(num_slots):
        left |= np.uint64(room[k]) << np.uint64(8 * k)
    index, column = h.size - 1, 2 * h.pending
    for place in range(h.num_hidden - 1, -1, -1):
        holders = np.int64(holding[place])
        for k in range(num_slots):
            if holders >> k & 1 and left >> np.uint64(8 * k) & _BYTE:
                rest = index - step[k]
                then = 0 if place >= num_free and needy >> k & 1 else column
                many, more = ways[rest, then], ways[rest, then + 1]
                if high < more or (high == more and low < many):
                    break
                high -= more + np.uint64(low < many)
                low -= many
        index, column = rest, then
        left -= _ONE << np.uint64(8 * k)
        hands[slot[k]] |= _ONE << np.uint64(cards[place])


@kernel
def below(bound: np.uint64) -> np.uint64:
    """All bits up to the highest one of ``bound``."""
    for shift in (1, 2, 4, 8, 16, 32):
        bound |= bound >> np.uint64(shift)
    return bound


@kernel
def random_deal(h: Any, ways: Table, state: np.uint64, hands: NDArray[np.uint64]) -> np.uint64:
    """Write a uniformly random deal into ``hands`` (``uint64 [NUM_SLOTS]``); returns the advanced random state.

    There must be one. The number is drawn in just as many bits as the highest has, and again while it is too large: of
    any draw at least half are kept.
    """
    low, high = ways[h.size - 1, 2 * h.pending], ways[h.size - 1, 2 * h.pending + 1]
    high -= np.uint64(low == _ZERO)
    low -= _ONE  # the highest number
    high_bits = below(high)
    low_bits = below(low) if high_bits == _ZERO else ~_ZERO
    while True:
        state = next_word(state)
        number = mix(state) & low_bits
        more = _ZERO
        if high_bits:
            state = next_word(state)
            more = mix(state) & high_bits
        if more < high or (more == high and number <= low):
            deal_out(h, ways, number, more, hands)
            return state


@kernel
def weigh(h: Any, ways: Table, out: NDArray[np.float64]) -> None:
    """Write the probability that each slot holds each card into ``out`` (``float64 [num_players + 1, C]``)."""
    slot, room, step, cards, holding = h.slot, h.room, h.step, h.card, h.holders
    num_slots, num_free, needy = h.num_slots, h.num_free, np.int64(h.needy)
    mass = np.zeros((NUM_SLOTS, MAX_CARDS))
    reached = np.zeros((h.size, 2))  # in how many ways the cards before can have been dealt out
    reached[h.size - 1, h.pending] = 1.0
    left = _ZERO
    for k in range(num_slots):
        left |= np.uint64(room[k]) << np.uint64(8 * k)
    place = h.num_hidden - 1
    for index in range(h.size - 1, 0, -1):
        holders = np.int64(holding[place])
        for k in range(num_slots):
            if holders >> k & 1 and left >> np.uint64(8 * k) & _BYTE:
                rest = index - step[k]
                for now in range(2):
                    then = 0 if place >= num_free and needy >> k & 1 else now
                    finish = ways[rest, 2 * then] + 2.0**64 * ways[rest, 2 * then + 1]
                    mass[k, place] += reached[index, now] * finish
                    reached[rest, then] += reached[index, now]
        k = 0
        while left >> np.uint64(8 * k) & _BYTE == _ZERO:
            left |= np.uint64(room[k]) << np.uint64(8 * k)
            place += room[k]
            k += 1
        left -= _ONE << np.uint64(8 * k)
        place -= 1
    out[:] = 0.0
    for place in range(h.num_hidden):
        for k in range(num_slots):
            out[slot[k], cards[place]] = mass[k, place] / mass[:, place].sum()
    hand = h.hand
    while hand:
        out[h.viewer, lowest(hand)] = 1.0
        hand &= hand - _ONE


# --- for bots: whole worlds ------------------------------------------------------------------------------------------
#
# A world is a copy of the view record with the hidden hands and the mover's legal cards put in: a deal to play on.


@kernel
def make_worlds(s: Any, r: Any, h: Any, ways: Table, state: np.uint64, worlds: States) -> np.uint64:
    """Fill ``worlds`` (of `STATE_DTYPE`) with random deals of view record ``s``; returns the advanced random state."""
    hands = np.empty(NUM_SLOTS, np.uint64)
    for i in range(len(worlds)):
        state = random_deal(h, ways, state, hands)
        worlds[i] = s
        reveal(worlds[i], r, hands)
    return state


@kernel
def sample_worlds(s: Any, r: Any, viewer: int, word: np.uint64, worlds: States) -> bool:
    """`make_worlds` from a view record alone; ``word`` is all the randomness.

    Returns False, and writes nothing, when the deal is over or no deal agrees with the record.
    """
    # The record of an array does not keep it alive: numba frees `frames` after its last use, so that is the last line.
    frames = np.empty(1, HIDDEN_DTYPE)
    h = frames[0]
    ways = np.empty((frame(s, r, viewer, h), 4), np.uint64)
    agrees = False
    if h.size > 0:
        count_ways(h, ways)
        agrees = ways[h.size - 1, 2 * h.pending] | ways[h.size - 1, 2 * h.pending + 1] != _ZERO
        if agrees:
            make_worlds(s, r, h, ways, word, worlds)
    return agrees and len(frames) == 1


@kernel
def sample_worlds_at(views: States, i: int, rules: States, viewer: int, word: np.uint64, worlds: States) -> bool:
    """`sample_worlds` of ``views[i]``, for Python callers."""
    return bool(sample_worlds(views[i], rules[0], viewer, word, worlds))
