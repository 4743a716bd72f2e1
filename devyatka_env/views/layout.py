"""The tables that lay out what one seat observes, and the full-information state.

Encoders (`devyatka_env.views.observation`), space bounds, `Layout.describe` and the tables in the docs follow them. The
observation counts seats from the observer, clockwise (0 is the observer), and is padded to six, so one network plays
2-6 seats and every preset of a deck size. The state counts seats from seat 0. Both are ``int8`` vectors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine.records import MAX_CARDS
from devyatka_env.rules import MAX_PLAYERS, Rules, to_mask
from devyatka_env.rules.rule_set import PAYOFFS

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
