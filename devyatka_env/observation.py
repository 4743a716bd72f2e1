"""The observation of one seat and the full-information state, each laid out by one table.

`segments` is the table: encoders, space bounds, `Layout.describe`, and the tables in the docs follow it. All seats are
counted from the observer, clockwise (0 is the observer), and padded to six, so one network plays 2-6 seats and every
preset of a deck size. The state counts seats from seat 0. Both are ``int8`` vectors.

Encoders read a view record or a full record alike: of the hands they touch the observer's own only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env import engine
from devyatka_env.cards import to_mask
from devyatka_env.records import MAX_CARDS, States, kernel
from devyatka_env.rules import MAX_PLAYERS, PAYOFFS, Rules

LAYOUT_VERSION = 1
FLAGS = (
    "left_of_dealer",
    "last_holder",
    "explicit_pass",
    "exclude",
    "passes_count",
    "undealt_cards",
    *(f"payoff_{name}" for name in PAYOFFS),
)
_NUM_FLAGS = len(FLAGS)
_OPPONENTS = MAX_PLAYERS - 1
_OBSERVATION_MASKS = 4 + _OPPONENTS + MAX_PLAYERS
_STATE_MASKS = 4 + 2 * MAX_PLAYERS
_COUNTS = 5

Int8Array = NDArray[np.int8]


@dataclass(frozen=True)
class Segment:
    """A named run of an observation: ``rows`` times ``width`` values, each 0 to ``high``.

    A row of ``cards`` is a set of cards, one position a card id.
    """

    name: str
    rows: int
    width: int
    high: int
    meaning: str
    cards: bool = True


@dataclass(frozen=True)
class Layout:
    """A table of segments, in the order they stand in the vector.

    Attributes:
        kind: ``observation`` or ``state``.
        num_cards: the deck size it is for.
        segments: the table.
    """

    kind: str
    num_cards: int
    segments: tuple[Segment, ...]

    @cached_property
    def slices(self) -> Mapping[str, slice]:
        """Where each segment stands."""
        places, start = {}, 0
        for segment in self.segments:
            places[segment.name] = slice(start, start + segment.rows * segment.width)
            start = places[segment.name].stop
        return places

    @cached_property
    def size(self) -> int:
        """Length of the vector."""
        return sum(segment.rows * segment.width for segment in self.segments)

    @cached_property
    def high(self) -> Int8Array:
        """Upper bounds ``int8 [size]``; the lower bounds are 0."""
        runs = [np.full(segment.rows * segment.width, segment.high) for segment in self.segments]
        return np.concatenate(runs).astype(np.int8)

    @cached_property
    def hash(self) -> str:
        """16 hex digits that change whenever the meaning of a position in the vector could have changed."""
        rows = [[s.name, s.rows, s.width, s.high, s.meaning] for s in self.segments]
        canonical = json.dumps([LAYOUT_VERSION, self.kind, self.num_cards, rows, FLAGS])
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]

    def split(self, vector: Int8Array) -> dict[str, Int8Array]:
        """The segments of one vector ``[size]`` by name, each shaped ``[rows, width]``.

        Raises:
            ValueError: a vector of another length.
        """
        vector = np.asarray(vector)
        if vector.shape != (self.size,):
            raise ValueError(f"this {self.kind} layout has shape ({self.size},), not {vector.shape}")
        return {s.name: vector[self.slices[s.name]].reshape(s.rows, s.width) for s in self.segments}

    def markdown(self) -> str:
        """The table as documentation shows it."""
        lines = ["| index | segment | shape | values | meaning |", "|---|---|---|---|---|"]
        for s in self.segments:
            place = self.slices[s.name]
            shape = f"{s.rows} × {s.width}" if s.rows > 1 else f"{s.width}"
            lines.append(f"| {place.start}–{place.stop - 1} | `{s.name}` | {shape} | 0–{s.high} | {s.meaning} |")
        return "\n".join(lines)

    def describe(self, vector: Int8Array, rules: Rules) -> str:
        """A vector in words, one line a segment; all-zero rows are left out."""
        if rules.deck.num_cards != self.num_cards:
            raise ValueError(f"a layout for {self.num_cards} cards cannot describe a deck of {rules.deck.num_cards}")
        lines = []
        for s, rows in zip(self.segments, self.split(vector).values(), strict=True):
            if s.cards:
                texts = [rules.deck.text(to_mask(np.flatnonzero(row).tolist())) for row in rows]
                shown = "; ".join(f"[{i}] {text}" for i, text in enumerate(texts) if text) if s.rows > 1 else texts[0]
            elif s.name == "rule_flags":
                shown = " ".join(name for name, flag in zip(FLAGS, rows[0], strict=True) if flag)
            else:
                shown = " ".join(str(value) for value in rows[0])
            lines.append(f"{s.name}: {shown or '-'}")
        return "\n".join(lines)


def _common(num_cards: int, origin: str) -> tuple[Segment, ...]:
    seats = MAX_PLAYERS
    return (
        Segment("cards_left", 1, seats, MAX_CARDS, f"cards in each hand, {origin}", cards=False),
        Segment("passes", 1, seats, MAX_CARDS, f"passes of each seat, {origin}", cards=False),
        Segment("seats_in", 1, seats, 1, f"seats still in the deal, {origin}", cards=False),
        Segment("seats_dealt", 1, seats, 1, f"seats that exist in this game, {origin}", cards=False),
        Segment("turn", 1, seats, 1, f"the seat to move, {origin}; all 0 when the deal is over", cards=False),
        Segment("rule_flags", 1, _NUM_FLAGS, 1, "the rule set: " + ", ".join(FLAGS), cards=False),
    )


@lru_cache
def observation_layout(num_cards: int) -> Layout:
    """The layout of what one seat sees, for a deck of ``num_cards``."""
    own = "clockwise from the observer"
    return Layout(
        "observation",
        num_cards,
        (
            Segment("hand", 1, num_cards, 1, "the observer's cards"),
            Segment("table", 1, num_cards, 1, "the cards on the table"),
            Segment("fitting", 1, num_cards, 1, "the cards that the rows take now, whoever holds them"),
            Segment("legal", 1, num_cards, 1, "the observer's cards that fit now (also when it is not on turn)"),
            Segment(
                "could_hold",
                _OPPONENTS,
                num_cards,
                1,
                "cards each opponent may hold: unseen, and not ruled out by its passes",
            ),
            Segment("played", MAX_PLAYERS, num_cards, 1, f"cards each seat has laid, {own}"),
            *_common(num_cards, own),
        ),
    )


@lru_cache
def state_layout(num_cards: int) -> Layout:
    """The layout of the full-information state, for a deck of ``num_cards``."""
    origin = "from seat 0"
    return Layout(
        "state",
        num_cards,
        (
            Segment(
                "hands",
                MAX_PLAYERS,
                num_cards,
                1,
                f"cards of each seat, {origin} (an excluded seat keeps its own)",
            ),
            Segment("table", 1, num_cards, 1, "the cards on the table"),
            Segment("fitting", 1, num_cards, 1, "the cards that the rows take now"),
            Segment("legal", 1, num_cards, 1, "the legal cards of the seat to move"),
            Segment("undealt", 1, num_cards, 1, "the cards dealt to no seat"),
            Segment("played", MAX_PLAYERS, num_cards, 1, f"cards each seat has laid, {origin}"),
            *_common(num_cards, origin),
        ),
    )


# --- encoders --------------------------------------------------------------------------------------------------------


@kernel
def write_masks(masks: NDArray[np.uint64], num_cards: int, out: Int8Array) -> None:
    """Spread bitboards over bytes, one card a byte: ``masks [M]`` into ``out[: M * num_cards]``."""
    at = 0
    for mask in masks:
        for card in range(num_cards):
            out[at + card] = (mask >> np.uint64(card)) & np.uint64(1)
        at += num_cards


@kernel
def write_common(s: Any, r: Any, origin: int, out: Int8Array) -> None:
    """The seat counts and rule flags that both layouts end with, seats counted from ``origin``."""
    n = np.int64(s.num_players)
    for i in range(len(out)):
        out[i] = 0
    dealt = 0
    for k in range(n):
        seat = (origin + k) % n
        out[k] = s.cards_left[seat]
        out[MAX_PLAYERS + k] = s.passes[seat]
        out[2 * MAX_PLAYERS + k] = s.status[seat] == 0
        out[3 * MAX_PLAYERS + k] = 1
        out[4 * MAX_PLAYERS + k] = s.turn == seat
        dealt += s.dealt[seat]
    at = _COUNTS * MAX_PLAYERS
    out[at] = r.left_of_dealer
    out[at + 1] = r.last_holder
    out[at + 2] = r.explicit_pass
    out[at + 3] = r.exclude
    out[at + 4] = r.passes_count
    out[at + 5] = dealt < r.num_cards
    out[at + 6 + r.payoff] = 1


@kernel
def encode_seat(s: Any, r: Any, seat: int, out: Int8Array) -> None:
    """The observation of ``seat`` into ``out [D]``."""
    n = np.int64(s.num_players)
    num_cards = np.int64(r.num_cards)
    masks = np.zeros(_OBSERVATION_MASKS, np.uint64)
    fits = engine.fitting(s, r)
    masks[0] = s.hands[seat]
    masks[1] = s.table
    masks[2] = fits
    masks[3] = s.hands[seat] & fits if s.status[seat] == 0 else np.uint64(0)
    for k in range(1, n):
        masks[3 + k] = engine.could_hold(s, r, seat, (seat + k) % n)
    for k in range(n):
        masks[4 + _OPPONENTS + k] = s.played[(seat + k) % n]
    write_masks(masks, num_cards, out)
    write_common(s, r, seat, out[_OBSERVATION_MASKS * num_cards :])


@kernel
def encode_state(s: Any, r: Any, out: Int8Array) -> None:
    """The full-information state into ``out [D_state]``."""
    num_cards = np.int64(r.num_cards)
    masks = np.zeros(_STATE_MASKS, np.uint64)
    undealt = r.deck & ~s.table
    for seat in range(s.num_players):
        masks[seat] = s.hands[seat]
        undealt &= ~s.hands[seat]
        masks[4 + MAX_PLAYERS + seat] = s.played[seat]
    masks[MAX_PLAYERS] = s.table
    masks[MAX_PLAYERS + 1] = engine.fitting(s, r)
    masks[MAX_PLAYERS + 2] = s.legal
    masks[MAX_PLAYERS + 3] = undealt
    write_masks(masks, num_cards, out)
    write_common(s, r, 0, out[_STATE_MASKS * num_cards :])


@kernel
def write_action_mask(s: Any, r: Any, seat: int, out: Int8Array) -> None:
    """The action mask of ``seat`` into ``out [C + 1]``: its legal cards on its turn, else PASS alone; never all 0."""
    num_cards = np.int64(r.num_cards)
    legal = s.legal if s.turn == seat else np.uint64(0)
    for card in range(num_cards):
        out[card] = (legal >> np.uint64(card)) & np.uint64(1)
    out[num_cards] = legal == np.uint64(0)


@kernel
def encode_at(states: States, i: int, rules: States, seat: int, out: Int8Array, mask: Int8Array) -> None:
    """Observation ``[D]`` and action mask ``[C + 1]`` of one seat in ``states[i]``."""
    encode_seat(states[i], rules[0], seat, out)
    write_action_mask(states[i], rules[0], seat, mask)


@kernel
def encode_state_at(states: States, i: int, rules: States, out: Int8Array) -> None:
    """State vector ``[D_state]`` of ``states[i]``."""
    encode_state(states[i], rules[0], out)


@kernel
def encode_movers(states: States, rules: States, out: Int8Array, masks: Int8Array) -> None:
    """Observations ``[B, D]`` and action masks ``[B, C + 1]`` of the seat to move in every record (seat 0 if over)."""
    for i in range(len(states)):
        seat = max(np.int64(states[i].turn), 0)
        encode_seat(states[i], rules[0], seat, out[i])
        write_action_mask(states[i], rules[0], seat, masks[i])


@kernel
def encode_seats(states: States, rules: States, seats: NDArray[np.int64], out: Int8Array, masks: Int8Array) -> None:
    """Observations ``[B, D]`` and action masks ``[B, C + 1]`` of ``seats [B]``."""
    for i in range(len(states)):
        encode_seat(states[i], rules[0], seats[i], out[i])
        write_action_mask(states[i], rules[0], seats[i], masks[i])


def describe(observation: Int8Array, rules: Rules | str = "first_out") -> str:
    """An observation in words, one line a segment.

    Args:
        observation: ``int8 [D]``.
        rules: the rule set it was made under (its deck names the cards).

    Raises:
        ValueError: a vector of another length.
    """
    rules = Rules.of(rules)
    return observation_layout(rules.deck.num_cards).describe(observation, rules)
