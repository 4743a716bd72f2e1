"""Encoders: records to ``int8`` vectors, as the tables of `devyatka_env.views.layout` lay them out.

They read a view record or a full record alike: of the hands the observation touches the observer's own only. Rows are
filled from low to high, since a store may run over into what is filled next (`devyatka_env.engine.spread`). The kernels
are internal: they check nothing. `encode_views` and `PlayerView.observation` are for callers from outside.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine import States, rules_record
from devyatka_env.engine.checks import check_records
from devyatka_env.engine.compiling import inlined, kernel
from devyatka_env.engine.knowledge import could_hold
from devyatka_env.engine.spread import spread, spread_exactly, store_8_bits, store_8_bytes
from devyatka_env.engine.turn import fitting
from devyatka_env.rules import MAX_PLAYERS, Rules
from devyatka_env.views.layout import (
    FLAGS,
    LAYOUT_VERSION,
    Int8Array,
    Layout,
    Segment,
    observation_layout,
    state_layout,
)

# What the seat counts and the rule flags after them take, in bytes.
_TAIL = 5 * MAX_PLAYERS + len(FLAGS)

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@inlined
def write_tail(s: Any, r: Any, origin: int, out: Int8Array, at: int) -> None:
    """The seat counts and rule flags that both layouts end with, seats counted from ``origin``.

    Six counts of a byte each make a word: its store runs two bytes into the counts that are stored next.
    """
    n = np.uint64(s.num_players)
    turn = np.uint64(s.turn)
    seat = np.uint64(origin)
    left, passes, still_in, on_turn, shift = _ZERO, _ZERO, _ZERO, _ZERO, _ZERO
    for _ in range(n):
        left |= np.uint64(s.cards_left[seat]) << shift
        passes |= np.uint64(s.passes[seat]) << shift
        still_in |= np.uint64(s.status[seat] == 0) << shift
        on_turn |= np.uint64(turn == seat) << shift
        shift += np.uint64(8)
        seat += _ONE
        if seat == n:
            seat = _ZERO
    store_8_bytes(out, at, left)
    store_8_bytes(out, at + MAX_PLAYERS, passes)
    store_8_bytes(out, at + 2 * MAX_PLAYERS, still_in)
    store_8_bytes(out, at + 3 * MAX_PLAYERS, np.uint64(0x010101010101) & ((_ONE << shift) - _ONE))
    store_8_bytes(out, at + 4 * MAX_PLAYERS, on_turn)
    undealt = r.cards_per_seat > 0 and np.int64(r.cards_per_seat) * np.int64(n) < np.int64(r.num_cards)
    flags = np.uint64(r.left_of_dealer) | np.uint64(r.last_holder) << _ONE | np.uint64(r.explicit_pass) << np.uint64(2)
    flags |= np.uint64(r.exclude) << np.uint64(3) | np.uint64(r.passes_count) << np.uint64(4)
    flags |= np.uint64(undealt) << np.uint64(5) | _ONE << np.uint64(6 + r.payoff)
    store_8_bits(out, at + 5 * MAX_PLAYERS, flags)  # 13 flags: two stores of 8 that overlap
    store_8_bits(out, at + 5 * MAX_PLAYERS + 5, flags >> np.uint64(5))


@kernel
def encode_seat(s: Any, r: Any, seat: int, out: Int8Array, at: int) -> None:
    """The observation of ``seat`` into the flat ``out[at: at + D]``."""
    n = np.uint64(s.num_players)
    width = int(r.num_cards)
    room = width + _TAIL  # what is left of the row behind the last run of cards
    fits = fitting(s, r)
    viewer = np.uint64(seat)
    hand = s.hands[viewer]
    spread(hand, width, out, at, room)
    spread(s.table, width, out, at + width, room)
    spread(fits, width, out, at + 2 * width, room)
    spread(hand & fits if s.status[viewer] == 0 else _ZERO, width, out, at + 3 * width, room)
    place = at + 4 * width
    other = viewer
    for k in range(1, MAX_PLAYERS):
        mask = _ZERO
        if k < n:
            other += _ONE
            if other == n:
                other = _ZERO
            mask = could_hold(s, r, viewer, other)
        spread(mask, width, out, place, room)
        place += width
    other = viewer
    for k in range(MAX_PLAYERS):
        spread(s.played[other] if k < n else _ZERO, width, out, place, room)
        place += width
        other += _ONE
        if other == n:
            other = _ZERO
    write_tail(s, r, seat, out, place)


@kernel
def encode_state(s: Any, r: Any, out: Int8Array, at: int) -> None:
    """The full-information state into the flat ``out[at: at + D_state]``."""
    width = int(r.num_cards)
    room = width + _TAIL
    undealt = r.deck & ~s.table
    place = at
    for seat in range(MAX_PLAYERS):  # seats beyond the game's hold nothing
        spread(s.hands[seat], width, out, place, room)
        undealt &= ~s.hands[seat]
        place += width
    spread(s.table, width, out, place, room)
    spread(fitting(s, r), width, out, place + width, room)
    spread(s.legal, width, out, place + 2 * width, room)
    spread(undealt, width, out, place + 3 * width, room)
    place += 4 * width
    for seat in range(MAX_PLAYERS):
        spread(s.played[seat], width, out, place, room)
        place += width
    write_tail(s, r, 0, out, place)


@inlined
def write_action_mask(s: Any, r: Any, seat: int, out: Int8Array, at: int) -> None:
    """The action mask of ``seat`` into the flat ``out[at: at + C + 1]``.

    Its legal cards on its turn, else PASS alone; never all 0.
    """
    legal = s.legal if s.turn == seat else _ZERO
    if legal == _ZERO:
        legal = _ONE << np.uint64(r.num_cards)
    spread_exactly(legal, np.int64(r.num_cards) + 1, out, at)


# --- entry points, for Python callers; arrays are C-contiguous --------------------------------------------------------


@kernel
def encode_at(states: States, i: int, rules: States, seat: int, out: Int8Array, mask: Int8Array) -> None:
    """Observation ``[D]`` and action mask ``[C + 1]`` of one seat in ``states[i]``."""
    encode_seat(states[i], rules[0], seat, out, 0)
    write_action_mask(states[i], rules[0], seat, mask, 0)


@kernel
def encode_state_at(states: States, i: int, rules: States, out: Int8Array) -> None:
    """State vector ``[D_state]`` of ``states[i]``."""
    encode_state(states[i], rules[0], out, 0)


@kernel
def encode_movers(states: States, rules: States, out: Int8Array, masks: Int8Array) -> None:
    """Observations ``[B, D]`` and action masks ``[B, C + 1]`` of the seat to move in every record (seat 0 if over)."""
    flat, flat_masks = out.reshape(-1), masks.reshape(-1)
    size, actions = out.shape[1], masks.shape[1]
    for i in range(len(states)):
        seat = max(np.int64(states[i].turn), 0)
        encode_seat(states[i], rules[0], seat, flat, i * size)
        write_action_mask(states[i], rules[0], seat, flat_masks, i * actions)


@kernel
def encode_seats(states: States, rules: States, seats: NDArray[np.int64], out: Int8Array, masks: Int8Array) -> None:
    """Observations ``[B, D]`` and action masks ``[B, C + 1]`` of ``seats [B]``."""
    flat, flat_masks = out.reshape(-1), masks.reshape(-1)
    size, actions = out.shape[1], masks.shape[1]
    for i in range(len(states)):
        encode_seat(states[i], rules[0], seats[i], flat, i * size)
        write_action_mask(states[i], rules[0], seats[i], flat_masks, i * actions)


def encode_views(records: States, rules: Rules) -> tuple[Int8Array, Int8Array]:
    """What networks are shown of view records, each from the side of its seat on turn.

    Args:
        records: ``[B]`` view records of `STATE_DTYPE`, as `Bot.act_batch` gets them.
        rules: their rule set.

    Returns:
        Observations ``int8 [B, D]`` and action masks ``int8 [B, C + 1]``.

    Raises:
        ValueError: no such array, a record that cannot be of these rules, or one of a deal that is over.
    """
    check_records(records, rules, "records")
    over = np.flatnonzero(records["turn"] < 0)
    if len(over):
        raise ValueError(f"record {int(over[0])} is of a deal that is over: no seat is on turn in it")
    out = np.empty((len(records), observation_layout(rules.deck.num_cards).size), np.int8)
    masks = np.empty((len(records), rules.pass_action + 1), np.int8)
    encode_movers(np.ascontiguousarray(records), rules_record(rules), out, masks)
    return out, masks


def describe(observation: Int8Array, rules: Rules | str = "first_out") -> str:
    """An observation, or a full-information state, in words: one line a segment.

    Args:
        observation: ``int8 [D]`` or ``int8 [D_state]``.
        rules: the rule set it was made under (its deck names the cards).

    Raises:
        ValueError: a vector of another length.
    """
    rules = Rules.of(rules)
    state = state_layout(rules.deck.num_cards)
    layout = state if np.shape(observation) == (state.size,) else observation_layout(rules.deck.num_cards)
    return layout.describe(observation, rules)


__all__ = [
    "FLAGS",
    "LAYOUT_VERSION",
    "Int8Array",
    "Layout",
    "Segment",
    "describe",
    "encode_at",
    "encode_movers",
    "encode_seat",
    "encode_seats",
    "encode_state",
    "encode_state_at",
    "encode_views",
    "observation_layout",
    "state_layout",
    "write_action_mask",
]
