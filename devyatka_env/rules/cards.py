"""Decks, cards, card ids and bitboards.

A *card id* is ``suit * num_ranks + rank``, lowest rank first, suits in the order ♣ ♦ ♥ ♠ (rules, section 1).
A set of cards is a *bitboard*: an ``int`` whose bit ``i`` stands for card id ``i`` (names end in ``_mask``).
The 36-card deck, most significant bit on the left::

    bit  35        27 26        18 17         9 8          0
         A♠ ....  6♠ | A♥ ....  6♥ | A♦ ....  6♦ | A♣ ....  6♣
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

SUITS = "♣♦♥♠"
RANKS = "23456789TJQKA"
RANKS_36 = "6789TJQKA"
RANKS_52 = RANKS
RANKS_52_ACE_LOW = "A23456789TJQK"

_SUIT_LETTERS = {"♣": "♣", "♦": "♦", "♥": "♥", "♠": "♠", "C": "♣", "D": "♦", "H": "♥", "S": "♠"}
# Russian: трефы or крести, бубны, черви, пики. A suit stands second, so т and к are not read as the ace and the king.
_SUIT_LETTERS |= {"Т": "♣", "К": "♣", "Б": "♦", "Ч": "♥", "П": "♠"}
# Russian letters: валет, дама, король, туз. The last one only looks like the Latin T (the ten).
_RANK_LETTERS = {rank: rank for rank in RANKS} | {"В": "J", "Д": "Q", "К": "K", "Т": "A", "10": "T"}
_POINTS = {"A": 11, "K": 4, "Q": 3, "J": 2, "T": 10} | {str(n): n for n in range(2, 10)}
_CARD = re.compile(r"(10|.)\ufe0f?([♣♦♥♠CDHSТКБЧП])\ufe0f?", re.IGNORECASE)


class CardTextError(ValueError):
    """A text that names no card, or no card of the deck in play."""


class Card(NamedTuple):
    """A card of any deck: a rank letter (``T`` is the ten) and a suit sign."""

    rank: str
    suit: str

    def __str__(self) -> str:
        return f"{'10' if self.rank == 'T' else self.rank}{self.suit}"

    @property
    def points(self) -> int:
        """Card points (rules, section 7): A 11, K 4, Q 3, J 2, ten 10, any other its number."""
        return _POINTS[self.rank]

    @classmethod
    def parse(cls, text: str) -> Card:
        """Read ``9♦``, ``9D``, ``10♥``, ``TD``, ``th``, ``Д♠``, ``Дп`` (Russian В Д К Т for J Q K A; т к б ч п).

        Raises:
            CardTextError: the text is not one card.
        """
        match = _CARD.fullmatch(text.strip())
        rank = _RANK_LETTERS.get(match[1].upper()) if match else None
        if match is None or rank is None:
            raise CardTextError(
                f"{text!r} is not a card: write a rank (2-10, T, J, Q, K, A or В, Д, К, Т)"
                " and a suit (♣ ♦ ♥ ♠, C D H S or т б ч п), such as 9♦, TD or Дп"
            )
        return cls(rank, _SUIT_LETTERS[match[2].upper()])


@dataclass(frozen=True)
class Deck:
    """A pack: the first ``num_suits`` suits, each with ``ranks`` (lowest first)."""

    num_suits: int = 4
    ranks: str = RANKS_36

    @property
    def num_ranks(self) -> int:
        """Ranks in a suit."""
        return len(self.ranks)

    @property
    def num_cards(self) -> int:
        """Cards in the pack; also the PASS action of every environment."""
        return self.num_suits * len(self.ranks)

    @property
    def suits(self) -> str:
        """The suit signs in card order."""
        return SUITS[: self.num_suits]

    @cached_property
    def cards(self) -> tuple[Card, ...]:
        """Every card, indexed by card id."""
        return tuple(Card(rank, suit) for suit in self.suits for rank in self.ranks)

    @cached_property
    def _ids(self) -> dict[Card, int]:
        return {card: index for index, card in enumerate(self.cards)}

    @property
    def mask(self) -> int:
        """The bitboard of the whole pack."""
        return (1 << self.num_cards) - 1

    def rank_mask(self, rank: str) -> int:
        """The bitboard of one rank in every suit."""
        index = self.ranks.index(rank)
        return sum(1 << (suit * self.num_ranks + index) for suit in range(self.num_suits))

    def suit_mask(self, suit: int) -> int:
        """The bitboard of suit number ``suit`` (0 is ♣)."""
        return ((1 << self.num_ranks) - 1) << (suit * self.num_ranks)

    def card_id(self, card: Card | str) -> int:
        """The id of a card given as ``Card`` or text.

        Raises:
            CardTextError: no such card in this pack.
        """
        card = Card.parse(card) if isinstance(card, str) else card
        if card not in self._ids:
            raise CardTextError(f"{card} is not in this deck: ranks {' '.join(self.ranks)}, suits {self.suits}")
        return self._ids[card]

    def text(self, mask: int, separator: str = " ") -> str:
        """The cards of a bitboard in card order, ``6♣ 9♦``."""
        return separator.join(str(self.cards[card]) for card in iter_mask(mask))

    def parse_cards(self, text: str) -> Iterator[int]:
        """Read a list of cards separated by blanks, commas, or nothing at all: ``6♣ 9D,10h`` or ``6♣9♦``; gives ids.

        Raises:
            CardTextError: an unreadable card, or a card of another deck.
        """
        for word in re.split(r"[\s,]+", text.strip()):
            position = 0
            while position < len(word):
                match = _CARD.match(word, position)
                yield self.card_id(match[0] if match else word[position:])
                position = match.end() if match else len(word)

    def parse_mask(self, text: str) -> int:
        """The bitboard of a list of cards (`parse_cards`).

        Raises:
            CardTextError: an unreadable card, a card twice, or a card of another deck.
        """
        mask = 0
        for card in self.parse_cards(text):
            if mask >> card & 1:
                raise CardTextError(f"{self.cards[card]} stands twice in {text!r}")
            mask |= 1 << card
        return mask

    def points(self, mask: int) -> int:
        """Card points of a bitboard (rules, section 7)."""
        return sum(self.cards[card].points for card in iter_mask(mask))

    def draw_rows(self, mask: int) -> str:
        """A bitboard drawn as suit rows, one line a suit: ``♦  ·  ·  8  9 10  ·  ·  ·  ·``."""
        lines = []
        for suit, sign in enumerate(self.suits):
            cells = []
            for index, rank in enumerate(self.ranks):
                laid = mask >> (suit * self.num_ranks + index) & 1
                cells.append(("10" if rank == "T" else rank) if laid else "·")
            lines.append(sign + "".join(cell.rjust(3) for cell in cells))
        return "\n".join(lines)


def iter_mask(mask: int) -> Iterator[int]:
    """The card ids of a bitboard, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def to_mask(cards: Iterable[int]) -> int:
    """The bitboard of some card ids."""
    mask = 0
    for card in cards:
        mask |= 1 << card
    return mask
