"""Cards, decks and bitboards (rules, sections 1 and 7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devyatka_env.rules import Card, CardTextError, Deck, iter_mask, to_mask
from devyatka_env.rules.cards import RANKS_36, RANKS_52, RANKS_52_ACE_LOW
from tests.helpers.games import card_ids

DECKS = [Deck(), Deck(4, RANKS_52), Deck(4, RANKS_52_ACE_LOW), Deck(2, "789"), Deck(3, "9TJQ")]
DECK_36 = DECKS[0]


# --- card ids --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deck", "text", "card"),
    [
        (DECK_36, "6♣", 0),
        (DECK_36, "9♦", 12),
        (DECK_36, "A♠", 35),
        (DECKS[1], "2♣", 0),
        (DECKS[1], "A♠", 51),
        (DECKS[2], "A♣", 0),
        (DECKS[2], "7♦", 19),
        (DECKS[2], "K♠", 51),
        (DECKS[3], "8♦", 4),
    ],
)
def test_card_id__suit_times_ranks_plus_rank(deck: Deck, text: str, card: int) -> None:
    assert deck.card_id(text) == card
    assert deck.card_id(Card.parse(text)) == card
    assert str(deck.cards[card]) == text


@pytest.mark.parametrize("deck", DECKS)
def test_cards__stand_in_suit_then_rank_order_and_keep_their_text(deck: Deck) -> None:
    assert deck.num_cards == len(deck.cards) == len(set(deck.cards)) == deck.num_suits * len(deck.ranks)
    for card, name in enumerate(deck.cards):
        assert name.suit == "♣♦♥♠"[card // len(deck.ranks)]
        assert name.rank == deck.ranks[card % len(deck.ranks)]
        assert deck.card_id(str(name)) == card


# --- card text -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "card"),
    [
        ("9♦", "9♦"),
        ("9D", "9♦"),
        ("TD", "10♦"),
        ("10h", "10♥"),
        ("10♥", "10♥"),
        ("th", "10♥"),
        ("as", "A♠"),
        (" qc ", "Q♣"),
        ("В♦", "J♦"),
        ("Д♠", "Q♠"),
        ("К♣", "K♣"),
        ("Т♥", "A♥"),
        ("т♥", "A♥"),
        ("д♠", "Q♠"),
        ("Дп", "Q♠"),
        ("10б", "10♦"),
        ("6Ч", "6♥"),
        ("тт", "A♣"),  # the ace of трефы
        ("тк", "A♣"),  # which are крести, too
        ("кт", "K♣"),
        ("9♦️", "9♦"),  # with the variation selector that phones put behind a suit sign
    ],
)
def test_parse__takes_every_spelling_of_a_card(text: str, card: str) -> None:
    assert str(Card.parse(text)) == card


@pytest.mark.parametrize(
    "text", ["", "9", "♦", "D9", "1♦", "11♦", "0♦", "X♦", "9X", "9♦♦", "99♦", "10 ♦", "9♦ 8♦", "-", "12", "joker"]
)
def test_parse__refuses_what_is_no_card_and_names_it(text: str) -> None:
    with pytest.raises(CardTextError, match="is not a card") as caught:
        Card.parse(text)
    assert repr(text) in str(caught.value)


def test_card_id__refuses_a_card_of_another_deck_and_names_the_ranks() -> None:
    with pytest.raises(CardTextError, match=r"5♦ is not in this deck: ranks 6 7 8 9 T J Q K A"):
        DECK_36.card_id("5♦")
    with pytest.raises(CardTextError, match=r"9♥ is not in this deck.*suits ♣♦$"):
        Deck(2, "89T").card_id("9H")


def test_points__as_the_rules_page_counts_them() -> None:
    expected = {
        "A": 11,
        "K": 4,
        "Q": 3,
        "J": 2,
        "T": 10,
        "9": 9,
        "8": 8,
        "7": 7,
        "6": 6,
        "5": 5,
        "4": 4,
        "3": 3,
        "2": 2,
    }
    assert {rank: Card(rank, "♠").points for rank in RANKS_52} == expected
    assert DECK_36.points(DECK_36.parse_mask("A♠ K♦ 10♣ 6♥")) == 31
    assert DECK_36.points(0) == 0
    assert DECK_36.points(DECK_36.mask) == 4 * (11 + 4 + 3 + 2 + 10 + 9 + 8 + 7 + 6)


# --- bitboards -------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**52 - 1))
def test_iter_mask__and_to_mask_are_inverse(mask: int) -> None:
    assert list(iter_mask(mask)) == card_ids(mask)
    assert to_mask(iter_mask(mask)) == mask


@given(st.data(), st.sampled_from(DECKS), st.sampled_from([" ", "", ", ", ",", "  "]))
def test_text__of_any_hand_reads_back_with_any_separator(data: st.DataObject, deck: Deck, separator: str) -> None:
    mask = data.draw(st.integers(0, deck.mask))
    assert deck.parse_mask(deck.text(mask, separator)) == mask
    shuffled = data.draw(st.permutations(deck.text(mask).split()))
    assert deck.parse_mask(" ".join(shuffled)) == mask
    assert deck.text(mask).split() == [str(deck.cards[card]) for card in card_ids(mask)]


def test_parse_mask__mixed_spellings() -> None:
    expected = {"6♣", "9♦", "10♥", "A♠"}
    mask = DECK_36.parse_mask(" 6♣9D, th\tТ♠ ")
    assert {str(DECK_36.cards[card]) for card in card_ids(mask)} == expected
    assert DECK_36.parse_mask("") == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9♦ TD 9d", "9♦ stands twice"),
        ("9♦9♦", "9♦ stands twice"),
        ("9♦ 5♦", "5♦ is not in this deck"),
        ("9♦ x", "'x' is not a card"),
        ("9♦x8♦", "'x8♦' is not a card"),
        ("1010♦", "'1010♦' is not a card"),
    ],
)
def test_parse_mask__refuses_and_names_the_card(text: str, message: str) -> None:
    with pytest.raises(CardTextError, match=message):
        DECK_36.parse_mask(text)


@pytest.mark.parametrize("deck", DECKS)
def test_masks__of_suits_and_of_ranks_each_partition_the_pack(deck: Deck) -> None:
    suits = [deck.suit_mask(suit) for suit in range(deck.num_suits)]
    ranks = [deck.rank_mask(rank) for rank in deck.ranks]
    for parts, size in ((suits, len(deck.ranks)), (ranks, deck.num_suits)):
        assert sum(parts) == deck.mask  # a sum without carries: no card stands in two parts
        assert {len(card_ids(part)) for part in parts} == {size}
    assert deck.suit_mask(1) & deck.rank_mask(deck.ranks[2]) == 1 << (len(deck.ranks) + 2)
    assert deck.mask == 2**deck.num_cards - 1


def test_draw_rows__one_line_a_suit() -> None:
    deck = Deck(2, RANKS_36)
    assert deck.draw_rows(deck.parse_mask("8♦ 9♦ 10♦")) == (
        "♣  ·  ·  ·  ·  ·  ·  ·  ·  ·\n"
        "♦  ·  ·  8  9 10  ·  ·  ·  ·"
    )  # fmt: skip
