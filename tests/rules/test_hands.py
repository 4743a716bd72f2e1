"""Dealing: hand sizes, given hands, deals as a pure and fair function of seed and index (rules, sections 2 and 3)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from devyatka_env.games import Deals, Game
from devyatka_env.rules import CardTextError, DealError, Rules
from tests.helpers.games import COMBINATIONS, card_ids, state_bytes

# Two suits of 8 9 10: 8♣ 0, 9♣ 1, 10♣ 2, 8♦ 3, 9♦ 4, 10♦ 5.
TINY = Rules.of({"num_suits": 2, "ranks": "89T", "num_players": 3, "end": "last_holder"})

# The first deals, frozen: a deal is the same on every platform and in every release, or recorded seeds mean nothing.
# To make new ones: print(Game.deal(Rules.of(preset, num_players=seats), seed, index).position)
FIRST_DEALS = {
    ("first_out", 4, 0, 0): (
        "first_out num_players=4 | dealer 3 | 9♣ Q♣ Q♦ 9♥ 10♥ J♥ Q♥ A♥ J♠ / "
        "8♣ 10♣ 8♦ J♦ K♦ 8♥ K♥ 10♠ K♠ / "
        "K♣ 6♦ 7♦ 10♦ A♦ 6♠ 8♠ 9♠ Q♠ / "
        "6♣ 7♣ J♣ A♣ 9♦ 6♥ 7♥ 7♠ A♠ |"
    ),
    ("round", 5, 0, 1): (
        "round num_players=5 | dealer 0 | 9♣ 10♣ 6♦ 9♦ 7♥ 8♠ 9♠ / "
        "K♣ 7♦ 10♦ Q♥ 6♠ 7♠ K♠ A♠ / "
        "6♣ J♦ A♦ 8♥ 10♥ J♥ J♠ / "
        "7♣ A♣ 8♦ Q♦ K♦ K♥ Q♠ / "
        "8♣ J♣ Q♣ 6♥ 9♥ A♥ 10♠ |"
    ),
    ("nine_each", 2, 7, 0): (
        "nine_each num_players=2 | dealer 1 | 7♣ 9♣ 6♦ 7♦ 9♦ 10♦ J♦ Q♦ 8♥ / 6♣ J♣ K♣ K♦ 9♥ A♥ 8♠ 10♠ J♠ |"
    ),
    ("sevens", 3, 18446744073709551615, 0): (
        "sevens num_players=3 | dealer 2 | A♣ 7♣ 8♣ K♣ A♦ 4♦ 7♦ 9♦ K♦ A♥ 2♥ 4♥ 6♥ Q♥ 4♠ 10♠ J♠ K♠ / "
        "2♣ 6♣ 10♣ J♣ 3♦ 5♦ J♦ Q♦ 5♥ 10♥ J♥ 2♠ 5♠ 6♠ 7♠ 8♠ 9♠ / "
        "3♣ 4♣ 5♣ 9♣ Q♣ 2♦ 6♦ 8♦ 10♦ 3♥ 7♥ 8♥ 9♥ K♥ A♠ 3♠ Q♠ |"
    ),
}
# One digest over deals 0 to 9 of seed 1 at every seat count, 36 cards, 52 cards and nine cards a seat.
DIGEST = "f23db7c4abf47571"


# --- hand sizes and given hands --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "seats", "index", "sizes"),
    [
        ("first_out", 5, 0, (8, 7, 7, 7, 7)),
        ("deck_52", 3, 0, (18, 17, 17)),
        ("deck_52", 5, 0, (11, 11, 10, 10, 10)),
        ("deck_52", 6, 0, (9, 9, 9, 9, 8, 8)),
        ("first_out", 6, 0, (6, 6, 6, 6, 6, 6)),
        ("nine_each", 3, 0, (9, 9, 9)),
        ("round", 5, 1, (7, 8, 7, 7, 7)),  # the dealer has moved to seat 0
        ("round", 5, 4, (7, 7, 7, 7, 8)),
    ],
)
def test_deal__extra_cards_go_to_the_first_seats_dealt(
    preset: str, seats: int, index: int, sizes: tuple[int, ...]
) -> None:
    for seed in range(20):
        game = Game.deal(Rules.of(preset, num_players=seats), seed, index)
        assert tuple(len(hand) for hand in game.hands) == sizes
        dealt = [card for mask in game.hand_masks for card in card_ids(mask)]
        assert len(set(dealt)) == sum(sizes)  # no card twice


@pytest.mark.parametrize("dealer", range(5))
def test_from_hands__takes_the_sizes_of_the_dealer_alone(dealer: int) -> None:
    pack = list(range(36))
    hands = [pack[seat * 7 : seat * 7 + 7] for seat in range(5)]
    lucky = (dealer + 1) % 5
    hands[lucky].append(35)
    rules = Rules.of("first_out", num_players=5)
    assert Game.from_hands(rules, hands, dealer).dealer == dealer
    with pytest.raises(DealError, match=r"seat \d has \d cards; with dealer"):
        Game.from_hands(rules, hands, lucky)


def test_from_hands__takes_texts_bitboards_cards_and_ids_alike() -> None:
    game = Game.deal(TINY, 5)
    deck = TINY.deck
    forms: list[list[Any]] = [
        [deck.text(mask) for mask in game.hand_masks],
        list(game.hand_masks),
        [np.uint64(mask) for mask in game.hand_masks],
        [list(hand) for hand in game.hands],
        [[deck.card_id(card) for card in hand] for hand in game.hands],
        [[str(card) for card in hand] for hand in game.hands],
    ]
    for hands in forms:
        assert Game.from_hands(TINY, hands) == game


@pytest.mark.parametrize(
    ("hands", "dealer", "message"),
    [
        (["8♣ 9♣", "10♣ 8♦"], None, "2 hands for num_players=3"),
        (["8♣ 9♣", "10♣ 8♦", "9♦ 8♣"], None, "8♣ dealt twice, the second time to seat 2"),
        (["8♣ 9♣", "10♣ 8♦", "9♦"], None, "whole pack.*missing: 10♦"),
        (["8♣ 9♣ 10♣", "8♦", "9♦ 10♦"], None, "seat 0 has 3 cards.*it gets 2"),
        (["8♣ 9♣", "10♣ 8♦", [4, 4]], None, "9♦ stands twice in one hand"),
        (["8♣ 9♣", "10♣ 8♦", [4, 6]], None, "card id must be 0 to 5, not 6"),
        (["8♣ 9♣", "10♣ 8♦", [4, -1]], None, "card id must be 0 to 5, not -1"),
        (["8♣ 9♣", "10♣ 8♦", 1 << 6], None, "outside the deck of 6"),
        (["8♣ 9♣", "10♣ 8♦", -1], None, "outside the deck of 6"),
        (["8♣ 9♣", "10♣ 8♦", "9♦ 10♦"], 3, "dealer must be a seat, 0 to 2, not 3"),
        (["8♣ 9♣", "10♣ 8♦", "9♦ 10♦"], -1, "dealer must be a seat, 0 to 2, not -1"),
        (["8♣ 9♣", "10♣ 8♦", "9♦ 10♦"], True, "dealer must be a seat, 0 to 2, not True"),
    ],
)
def test_from_hands__refuses_what_is_no_deal(hands: Any, dealer: Any, message: str) -> None:
    with pytest.raises(DealError, match=message):
        Game.from_hands(TINY, hands, dealer)


def test_from_hands__refuses_foreign_cards_and_hands_that_cannot_open() -> None:
    with pytest.raises(CardTextError, match="J♦ is not in this deck"):
        Game.from_hands(TINY, ["8♣ 9♣", "10♣ 8♦", "9♦ J♦"])
    with pytest.raises(DealError, match=r"no hand holds a starter \(9\)"):
        Game.from_hands(Rules.of("nine_each", num_players=2, cards_per_seat=1), ["8♣", "10♣"])


# --- a pure function of rules, seed and index ------------------------------------------------------------------------


def digest_of_deals() -> str:
    """A hash of ten deals of each pack at every seat count."""
    hands = [
        Game.deal(Rules.of(preset, num_players=seats), 1, index).hand_masks
        for preset, most in (("first_out", 6), ("deck_52", 6), ("nine_each", 4))
        for seats in range(2, most + 1)
        for index in range(10)
    ]
    return hashlib.sha256(repr(hands).encode()).hexdigest()[:16]


def test_deal__first_deals_are_frozen() -> None:
    found = {key: Game.deal(Rules.of(key[0], num_players=key[1]), key[2], key[3]).position for key in FIRST_DEALS}
    assert found == FIRST_DEALS
    assert digest_of_deals() == DIGEST


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_deal__depends_on_seed_and_index_and_on_nothing_dealt_before(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    forward = [Game.deal(rules, seed, index).position for seed in (0, 1) for index in range(20)]
    backward = [Game.deal(rules, seed, index).position for seed in (1, 0) for index in reversed(range(20))]
    assert forward == backward[::-1]
    assert len(set(forward)) == len(forward)
    batch = Deals(rules, np.array([19, 3, 3, 0]), seed=1)
    for game, index in enumerate((19, 3, 3, 0)):
        assert state_bytes(batch.states[game : game + 1]) == state_bytes(Game.deal(rules, 1, index).states)


def test_deal__rules_that_do_not_touch_the_cards_share_the_deal() -> None:
    presets = ["first_out", "first_out_passes", "one_loser", "winner_and_loser", "any_nine", "bank", "round"]
    assert len({Game.deal(preset, 5).hand_masks for preset in presets}) == 1


@pytest.mark.parametrize("bad", [-1, 2**64, 1.0, "1", True, None])
def test_deal__refuses_seeds_and_indices_out_of_range(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"seed must be a whole number from 0 to 2\*\*64 - 1, not"):
        Game.deal("first_out", seed=bad)
    with pytest.raises(ValueError, match=r"index must be a whole number from 0 to 2\*\*64 - 1, not"):
        Game.deal("first_out", index=bad)


def test_deal__takes_the_whole_range_of_seeds() -> None:
    largest = 2**64 - 1
    deals = [Game.deal("first_out", seed, index) for seed in (0, largest) for index in (0, largest)]
    assert len({game.hand_masks for game in deals}) == 4
    assert Game.deal("first_out", np.uint64(largest), np.int64(0)) == deals[2]


# --- a fair deal -----------------------------------------------------------------------------------------------------


def assert_chi_square(statistic: float, freedom: int) -> None:
    """The statistic is a draw of the chi-square distribution, as far as five standard deviations can tell.

    Its mean is ``freedom`` and its variance twice that. Seeds are fixed, so a passing test stays passed; a shuffle that
    swaps with any position instead of the remaining ones misses by hundreds of deviations in the tests below.
    """
    assert abs(statistic - freedom) < 5 * (2 * freedom) ** 0.5, (statistic, freedom)


def chi_square(counts: Iterable[int], expected: float) -> float:
    """Pearson's statistic of cells that expect the same count."""
    return sum((count - expected) ** 2 / expected for count in counts)


def test_deal__every_card_goes_to_every_seat_equally_often() -> None:
    deals = 20_000
    hands = Deals(Rules.of("first_out"), np.arange(deals)).states["hands"][:, :4]
    cells = [int((hands[:, seat] >> np.uint64(card) & np.uint64(1)).sum()) for card in range(36) for seat in range(4)]
    # Hand sizes are fixed, which makes the cells of a seat a little too even: hence 35/36 (Friedman's statistic).
    assert_chi_square(chi_square(cells, deals / 4) * 35 / 36, freedom=35 * 3)


def tiny_deals(seed: int, indices: np.ndarray) -> list[tuple[int, ...]]:
    """Deals of six cards to two seats: 20 are possible."""
    rules = Rules.of(TINY, num_players=2)
    return [tuple(hands) for hands in Deals(rules, indices, seed).states["hands"][:, :2].tolist()]


def test_deal__every_deal_of_a_mini_deck_is_equally_likely() -> None:
    counts = Counter(tiny_deals(3, np.arange(20_000)))
    assert len(counts) == 20
    assert_chi_square(chi_square(counts.values(), 1_000), freedom=19)


@pytest.mark.parametrize("neighbour", ["index", "seed"])
def test_deal__neighbouring_deals_are_independent(neighbour: str) -> None:
    if neighbour == "index":
        deals = tiny_deals(3, np.arange(40_000))
        pairs = Counter(zip(deals[::2], deals[1::2], strict=True))
    else:
        pairs = Counter(zip(*(tiny_deals(seed, np.arange(20_000)) for seed in (3, 4)), strict=True))
    cells = [pairs[key] for key in pairs] + [0] * (400 - len(pairs))
    assert_chi_square(chi_square(cells, 50), freedom=399)


def test_deal__without_a_starter_is_dealt_again_and_stays_fair() -> None:
    rules = Rules.of(TINY, num_players=2, opening="left_of_dealer", cards_per_seat=1)
    hands = Deals(rules, np.arange(18_000), seed=1).states["hands"][:, :2].tolist()
    counts = Counter(tuple(pair) for pair in hands)
    starters = {1 << 1, 1 << 4}
    possible = {(1 << a, 1 << b) for a in range(6) for b in range(6) if a != b and {1 << a, 1 << b} & starters}
    assert counts.keys() == possible  # 18 of the 30 deals
    assert_chi_square(chi_square(counts.values(), 1_000), freedom=17)
