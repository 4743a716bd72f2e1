"""What one seat can conclude about the cards it does not see: exact counts, probabilities and random deals.

A *deal* here is a way in which the hidden cards can lie that agrees with the view record of a running deal; all of them
are equally likely. That is the truth for a pack dealt at random and players of whom nothing is assumed: what the
*choice* of a card may tell about a hand is not used. A deal agrees with the record when

- every seat holds as many cards as it has left, an excluded one too, and the rest is out of play;
- no seat holds a card that the opening or one of its passes has ruled out (``cannot_hold``);
- under automatic passes the seat on turn holds a card that fits, for it was not passed over; under explicit passes some
  seat still in does, or the deal would have been over as blocked (rules, section 6).

Nothing else is known. The last line holds for every earlier moment, too, but the card laid next proves it there. A deal
without a starter, which is dealt again, never has a first card. Any hand can commit a foul, and the record does not
tell which it was. A finished deal is refused: its places depend on the points of hidden cards.

**Method.** The hidden cards are dealt out one by one to the *slots*: the seats and, last, the cards out of play. In how
many ways that can be finished depends only on the room left in each slot, which tells also how many cards, and so which
ones, are still to come: a table with one entry for each vector of rooms, at most 8**5 * 11 = 360,448 under any rules
(11.5 MB). The cards that fit come first, and a second column counts while none of them has gone to a seat that must
hold one. Counts are exact, in 128 bits: without any knowledge they would be at most 51!/(8!**3 * 9!**3) < 2**119. So
deals can be numbered, the table leads to deal number k, and a uniform random number gives a uniform random deal.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.dealing import is_whole
from devyatka_env.engine import fitting, reveal
from devyatka_env.records import (
    MAX_CARDS,
    STATE_DTYPE,
    States,
    count,
    kernel,
    lowest,
    mix,
    next_word,
    rules_record,
)
from devyatka_env.rules import MAX_PLAYERS
from devyatka_env.view import PlayerView

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


class BeliefError(ValueError):
    """A view of a finished deal, or one that no deal agrees with."""


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


# --- for people and tools --------------------------------------------------------------------------------------------


@kernel
def _table_of(views: States, rules: States, viewer: int, frames: States) -> Table:
    ways = np.empty((frame(views[0], rules[0], viewer, frames[0]), 4), np.uint64)
    if len(ways):
        count_ways(frames[0], ways)
    return ways


@kernel
def _deal_out_all(frames: States, ways: Table, numbers: NDArray[np.uint64], hands: NDArray[np.uint64]) -> None:
    for i in range(len(numbers)):
        deal_out(frames[0], ways, numbers[i, 0], numbers[i, 1], hands[i])


@kernel
def _random_deals(frames: States, ways: Table, state: np.uint64, hands: NDArray[np.uint64]) -> None:
    for i in range(len(hands)):
        state = random_deal(frames[0], ways, state, hands[i])


@kernel
def _weigh_all(frames: States, ways: Table, out: NDArray[np.float64]) -> None:
    weigh(frames[0], ways, out)


@kernel
def _make_worlds(views: States, rules: States, frames: States, ways: Table, state: np.uint64, worlds: States) -> None:
    make_worlds(views[0], rules[0], frames[0], ways, state, worlds)


class Belief:
    """The deals that agree with a view, all equally likely.

    Slots are the seats in order and, last, the cards out of play (none when the whole pack is dealt). An excluded seat
    still holds its cards.

    Attributes:
        view: the view at the time.
        count: the number of deals, exact.
    """

    def __init__(self, view: PlayerView) -> None:
        """Count the deals.

        Raises:
            ValueError: no `PlayerView`.
            BeliefError: the deal is over, or no deal agrees with the view.
        """
        if not isinstance(view, PlayerView):
            raise ValueError(f"view must be a PlayerView, what one seat knows: game.view(seat), not {view!r}")
        self.view = PlayerView(view.record.copy(), view.rules, view.seat)
        self._frames = np.zeros(1, HIDDEN_DTYPE)
        self._ways: Table = _table_of(self.view.record, rules_record(view.rules), view.seat, self._frames)
        if view.is_over:
            raise BeliefError(f"{view!r}: the deal is over; beliefs are for running deals")
        if not len(self._ways):
            raise BeliefError(
                f"{view!r}: {view.unseen_mask.bit_count()} cards are hidden, but the other seats have"
                f" {sum(view.cards_left) - view.cards_left[view.seat]} left and"
                f" {view.rules.deck.num_cards - sum(self.view.record['dealt'][0].tolist())} were not dealt"
            )
        low, high = self._ways[-1].tolist()[2 * int(self._frames["pending"][0]) :][:2]
        self.count: int = low + (high << 64)
        if not self.count:
            raise BeliefError(f"{view!r}: the cards cannot lie in any way that agrees with the passes and the turn")

    @cached_property
    def marginals(self) -> NDArray[np.float64]:
        """``float64 [num_players + 1, C]``, read-only: the probability that a slot holds a card.

        0 is written for what is impossible and for nothing else; any other value has a relative error below 1e-11, the
        bound for adding up the positive terms, and in practice below 1e-13. Cards on the table are 0 everywhere, the
        viewer's row is its hand.
        """
        out = np.empty((self.view.num_players + 1, self.view.rules.deck.num_cards))
        _weigh_all(self._frames, self._ways, out)
        out.flags.writeable = False
        return out

    @cached_property
    def void_masks(self) -> tuple[int, ...]:
        """By slot, the cards it certainly does not hold: by the opening, by passes, by counting, or seen elsewhere."""
        rows = self.marginals == 0
        return tuple(sum(1 << card for card in np.flatnonzero(row).tolist()) for row in rows)

    def deals(self, numbers: Sequence[int]) -> NDArray[np.uint64]:
        """Some of the deals by their numbers, each from 0 to ``count - 1``: ``range(count)`` gives every deal once.

        Returns:
            ``uint64 [len(numbers), num_players + 1]``, the hand of each slot.

        Raises:
            ValueError: no such number.
        """
        halves = np.empty((len(numbers), 2), np.uint64)
        for i, number in enumerate(map(operator.index, numbers)):
            if not 0 <= number < self.count:
                raise ValueError(f"deals are numbered 0 to {self.count - 1}, not {number!r}")
            halves[i] = number & 0xFFFFFFFFFFFFFFFF, number >> 64
        hands = np.empty((len(numbers), NUM_SLOTS), np.uint64)
        _deal_out_all(self._frames, self._ways, halves, hands)
        return hands[:, : self.view.num_players + 1]

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.uint64]:
        """Draw ``n`` deals, each uniform among all and independent of the others.

        Returns:
            ``uint64 [n, num_players + 1]``, the hand of each slot.

        Raises:
            ValueError: no generator, or ``n`` is not a whole number from 0.
        """
        _check_number(n)
        hands = np.empty((n, NUM_SLOTS), np.uint64)
        _random_deals(self._frames, self._ways, random_word(rng), hands)
        return hands[:, : self.view.num_players + 1]

    def sample_states(self, rng: np.random.Generator, n: int) -> States:
        """Draw ``n`` deals as engine records ``[n]`` of `STATE_DTYPE`, ready to be played on.

        The same deals as `sample` draws from the same generator, and the same errors.
        """
        _check_number(n)
        worlds = np.empty(n, STATE_DTYPE)
        _make_worlds(
            self.view.record, rules_record(self.view.rules), self._frames, self._ways, random_word(rng), worlds
        )
        return worlds


def _check_number(n: int) -> None:
    if not is_whole(n) or n < 0:
        raise ValueError(f"n must be a whole number, at least 0, not {n!r}")


def random_word(rng: np.random.Generator) -> np.uint64:
    """64 random bits.

    Raises:
        ValueError: no numpy generator.
    """
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a numpy Generator, such as np.random.default_rng(0), not {rng!r}")
    return rng.integers(0, 2**64, dtype=np.uint64)
