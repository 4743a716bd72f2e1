"""The text of what a person sees, taken apart: fields, words, numbers and cards."""

from __future__ import annotations

import re
from dataclasses import dataclass

from devyatka_env.rules import CardTextError, Deck, Rules, RulesError, iter_mask, to_mask

NEEDED = ("hand", "table", "left")
FIELDS = (*NEEDED, "passes", "cannot", "laid", "order", "excluded")
NOTHING = "-"


class InformationStateError(ValueError):
    """A text of what a seat sees that cannot be read, or cannot be true; the message names the field."""


@dataclass(frozen=True)
class InformationState:
    """The fields as read, by seat: the writer is seat 0."""

    rules: Rules
    hand: int
    table: int
    left: tuple[int, ...]
    passes: tuple[int, ...]
    passes_told: int  # seats, a bit each, whose passes the text tells
    cannot: tuple[int, ...]
    laid: tuple[int, ...]
    order: tuple[int, ...]  # card ids; empty: not told
    excluded: tuple[int, ...]

    @property
    def is_course_told(self) -> bool:
        """Whether it is told who laid each card, and in which order."""
        return sum(self.laid) == self.table and len(self.order) == self.table.bit_count()

    @property
    def is_followed(self) -> bool:
        """Whether the passes, and what they prove, follow: the course is told, and no foul stands somewhere in it."""
        return self.is_course_told and self.table != 0 and not self.excluded

    @property
    def is_at_large(self) -> bool:
        """Whether the card that should open the deal left with the first seat excluded."""
        opening = 1 << self.rules.opening_card
        return self.rules.opening == "holder" and not (self.table | self.hand) & opening

    @property
    def may_open_with_any(self) -> bool:
        """Whether any starter could be laid on an empty table."""
        return self.rules.opening == "left_of_dealer" or self.is_at_large


def read_fields(text: str, rules: Rules) -> InformationState:
    """Read a text (`devyatka_env.views.information_state`); its number of seats goes before that of ``rules``.

    Raises:
        InformationStateError: it cannot be read.
    """
    fields = _split(text)
    left = _numbers("left", fields["left"])
    n = len(left) + 1
    try:
        rules = Rules.of(rules, num_players=n)
    except RulesError as error:
        raise InformationStateError(f"left: with you and {n - 1} other seats: {error}") from error
    deck = rules.deck
    hand = _cards("hand", fields["hand"], deck)
    passes = _numbers("passes", fields["passes"]) if "passes" in fields else []
    if "passes" in fields and len(passes) not in (n - 1, n):
        raise InformationStateError(
            f"passes: {len(passes)} numbers; give {n - 1}, one for each other seat clockwise from you,"
            f" or {n} with your own first"
        )
    told = range(n - len(passes), n)
    excluded = _numbers("excluded", fields.get("excluded", ""))
    table = _cards("table", fields["table"], deck)
    order = _card_list("order", fields.get("order", ""), deck)
    if not order and table.bit_count() == 1:
        order = [*iter_mask(table)]
    return InformationState(
        rules=rules,
        hand=hand,
        table=table,
        left=(hand.bit_count(), *left),
        passes=(0,) * (n - len(passes)) + tuple(passes),
        passes_told=sum(1 << seat for seat in told) if passes else 0,
        cannot=_by_seat("cannot", fields.get("cannot", ""), n, deck),
        laid=_by_seat("laid", fields.get("laid", ""), n, deck),
        order=tuple(order),
        excluded=tuple(excluded),
    )


def _split(text: str) -> dict[str, str]:
    """The contents of the fields by name."""
    fields: dict[str, str] = {}
    for place, part in enumerate(text.split("|"), 1):
        match = re.fullmatch(r"\s*([^\W\d_]*)\s*:?(.*)", part, re.DOTALL)
        name = match[1].lower() if match else ""
        if match is None or name not in FIELDS:
            raise InformationStateError(
                f"part {place} of the text, {part.strip()!r}, begins with no field: the fields are {', '.join(FIELDS)},"
                " split by '|'"
            )
        if name in fields:
            raise InformationStateError(f"{name} stands twice, the second time in part {place}")
        fields[name] = match[2].strip()
    for name in NEEDED:
        if name not in fields:
            raise InformationStateError(
                f"{name} is missing: {', '.join(NEEDED)} are needed (`table {NOTHING}` for no cards)"
            )
    return fields


def _words(content: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", content) if word]


def _numbers(name: str, content: str) -> list[int]:
    """Numbers of a field."""
    numbers = []
    for place, word in enumerate(_words(content), 1):
        if not re.fullmatch(r"\d{1,3}", word, re.ASCII):
            raise InformationStateError(f"{name}, word {place}: {word!r} is not a number")
        numbers.append(int(word))
    return numbers


def _card_list(name: str, content: str, deck: Deck) -> list[int]:
    """The cards of a field, or of a seat's part of it, as they stand."""
    cards: list[int] = []
    for place, word in enumerate([] if content == NOTHING else _words(content), 1):
        try:
            for card in deck.parse_cards(word):
                if card in cards:
                    raise CardTextError(f"{deck.cards[card]} stands twice")
                cards.append(card)
        except CardTextError as error:
            raise InformationStateError(f"{name}, word {place}: {error}") from error
    return cards


def _cards(name: str, content: str, deck: Deck) -> int:
    return to_mask(_card_list(name, content, deck))


def _by_seat(name: str, content: str, n: int, deck: Deck) -> tuple[int, ...]:
    """Cards by seat, from ``1: 9♦ 8♦; 2: 10♦``."""
    masks: dict[int, int] = {}
    for part in filter(None, map(str.strip, content.split(";"))):
        match = re.fullmatch(r"(\d+)\s*:(.*)", part, re.DOTALL)
        seat = int(match[1]) if match else n
        if match is None or seat >= n:
            raise InformationStateError(
                f"{name}: {part!r} is not SEAT: CARDS, with seats 1 to {n - 1} clockwise from you (0 is you),"
                " and ';' between seats"
            )
        if seat in masks:
            raise InformationStateError(f"{name}: seat {seat} stands twice")
        masks[seat] = _cards(f"{name} {seat}", match[2].strip(), deck)
    return tuple(masks.get(seat, 0) for seat in range(n))
