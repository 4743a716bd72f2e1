"""The referee against the worked positions and small deals worked out by hand."""

import random
from dataclasses import replace

import pytest

from tests.helpers.referee import Referee, RefereeError, RefereeRules

SUITS = "CDHS"
BASE = RefereeRules()
# Two suits of 8 9 T: 8C 0, 9C 1, TC 2, 8D 3, 9D 4, TD 5; PASS 6.
TINY = RefereeRules(num_players=3, suits=2, ranks="89T", end="last_holder")
TINY_EXCLUDE = replace(TINY, foul="exclude", payoff="win_lose")


def cards(text: str, ranks: str = BASE.ranks) -> list[int]:
    """The ids of cards written as `9D TD`, ascending."""
    return sorted(SUITS.index(c[1]) * len(ranks) + ranks.index(c[0]) for c in text.split())


def deal(rules: RefereeRules, *hands: str, dealer: int = 0) -> Referee:
    """A deal with these hands."""
    return Referee(rules, [cards(hand, rules.ranks) for hand in hands], dealer)


def play(referee: Referee, text: str) -> None:
    """Play these cards (or `pass`) in turn."""
    for word in text.split():
        deck = referee.rules.deck_size
        referee.play(deck if word == "pass" else cards(word, referee.rules.ranks)[0])


def payoffs(referee: Referee, kind: str, **other: float) -> list[float]:
    """The payoffs of a finished deal, had the rules named this payoff."""
    referee.rules = replace(referee.rules, payoff=kind, **other)  # type: ignore[arg-type]
    return referee.payoffs()


# -- rules, section 11 ----------------------------------------------------------------------


def small(seats: int, **other: object) -> RefereeRules:
    """Rules with few cards a seat, so that a position needs few plays."""
    return replace(BASE, num_players=seats, cards_per_seat=2, **other)  # type: ignore[arg-type]


def test_only_seven_and_jack_fit() -> None:
    diamonds = "6D 7D JD QD KD AD"
    referee = deal(small(4), diamonds, "9D 6C", "8D 7C", "TD 8C")
    play(referee, "9D 8D TD")
    assert referee.turn == 0
    assert referee.legal_actions() == cards("7D JD")


def test_one_card_a_turn() -> None:
    rules = small(4, explicit_pass=True)
    referee = deal(rules, "6D 7D JD QH", "9D 6C", "8D 7C", "TD 8C")
    play(referee, "9D 8D TD")
    assert referee.legal_actions() == cards("7D JD")
    play(referee, "7D")
    assert referee.turn == 1
    assert referee.hands[0] == cards("6D JD QH")
    play(referee, "pass pass pass")
    assert referee.legal_actions() == cards("6D JD")
    assert referee.passes == [0, 1, 1, 1]


def test_open_row_and_nine_of_another() -> None:
    referee = deal(small(3), "JD 9S QC", "9D 6C", "TD 7C")
    play(referee, "9D TD")
    assert referee.legal_actions() == cards("JD 9S")
    referee = deal(small(3), "JD 9S QC 8D", "9D 6C", "TD 7C")
    play(referee, "9D TD")
    assert referee.legal_actions() == cards("8D JD 9S")


def test_first_move_is_nine_of_diamonds() -> None:
    referee = deal(small(2), "8D TD", "9C 9D 9H 9S 8C")
    assert referee.turn == 1
    assert referee.legal_actions() == cards("9D")
    with pytest.raises(RefereeError):
        play(referee, "9C")
    with pytest.raises(RefereeError):
        play(referee, "pass")
    assert referee.hands[1] == cards("9C 9D 9H 9S 8C")


@pytest.mark.parametrize(("ranks", "below"), [("6789TJQKA", 3), ("23456789TJQKA", 7)])
def test_full_row(ranks: str, below: int) -> None:
    rules = replace(small(2, explicit_pass=True), ranks=ranks)
    row = "".join(f"{rank}D " for rank in ranks)
    referee = deal(rules, f"{row} 6C", "6H")
    for rank in "9TJQKA" + ranks[below - 1 :: -1]:
        play(referee, f"{rank}D")
        if not referee.is_over:
            play(referee, "pass")
    assert referee.rows[1] == list(range(len(ranks)))
    assert referee.reason == "blocked"
    assert referee.passes == [0, len(ranks) - 1]


# -- hand-made ends -------------------------------------------------------------------------


def test_first_out_with_a_shared_place() -> None:
    referee = deal(small(4), "9D 8D", "6C KC", "6H KH", "AC AH")
    play(referee, "9D 8D")
    assert (referee.reason, referee.turn, referee.legal_actions()) == ("out", -1, [])
    assert referee.went_out == [0]
    assert referee.passes == [0, 1, 1, 1]
    assert referee.places() == [1, 2, 2, 4]
    third = 1 / 3
    assert payoffs(referee, "win") == pytest.approx([1, -third, -third, -third])
    assert payoffs(referee, "lose") == pytest.approx([third, third, third, -1])
    assert payoffs(referee, "win_lose") == pytest.approx([1, 0, 0, -1])
    assert payoffs(referee, "place") == pytest.approx([1, 0, 0, -1])
    assert payoffs(referee, "cards") == [0, -2, -2, -2]
    assert payoffs(referee, "points") == [0, -10, -10, -22]
    assert payoffs(referee, "bank", pass_fee=0.5) == pytest.approx([4.5, -1.5, -1.5, -1.5])
    with pytest.raises(RefereeError):
        play(referee, "pass")


@pytest.mark.parametrize(("count", "places"), [(False, [1, 3, 2]), (True, [1, 2, 3])])
def test_passes_before_points(count: bool, places: list[int]) -> None:
    referee = deal(small(3, passes_count=count), "9D TD", "8D AC AH", "6C 6H")
    play(referee, "9D 8D TD")
    assert referee.passes == [0, 0, 1]
    assert referee.places() == places


def test_last_holder() -> None:
    referee = deal(TINY, "9D 9C", "8D TC", "TD 8C")
    play(referee, "9D 8D TD 9C")
    assert (referee.is_over, referee.went_out, referee.turn) == (False, [0], 1)
    play(referee, "TC")
    assert (referee.reason, referee.went_out) == ("last_holder", [0, 1])
    assert referee.places() == [1, 2, 3]
    assert payoffs(referee, "lose") == [0.5, 0.5, -1]
    assert payoffs(referee, "points") == [0, 0, -8]


def test_empty_seats_are_skipped_and_pass_no_more() -> None:
    rules = replace(BASE, num_players=3, cards_per_seat=1, end="last_holder")
    referee = deal(rules, "9D", "8D 7D 9C", "6D 8C AH")
    play(referee, "9D 8D")  # seat 2 holds no 7D, TD, nor a nine: it passes, seat 0 is gone
    assert (referee.turn, referee.passes) == (1, [0, 0, 1])
    play(referee, "9C 8C 7D")
    assert (referee.reason, referee.places()) == ("last_holder", [1, 2, 3])


def test_left_of_dealer_without_a_starter_passes() -> None:
    rules = small(2, opening="left_of_dealer")
    referee = deal(rules, "9C AD", "6H KD", dealer=0)
    assert (referee.turn, referee.passes) == (0, [0, 1])
    play(referee, "9C")
    assert (referee.reason, referee.passes) == ("blocked", [0, 1])
    assert referee.places() == [1, 2]
    assert deal(rules, "9C 9D 8H", "6H KD", dealer=1).legal_actions() == cards("9C 9D")
    assert not Referee.can_begin(rules, [cards("8C TC"), cards("8D TD")])
    with pytest.raises(RefereeError):
        deal(rules, "8C TC", "8D TD")


def test_blocked_with_all_sharing() -> None:
    referee = deal(small(2, opening="left_of_dealer"), "9C 6H", "9D 6S", dealer=1)
    play(referee, "9C 9D")
    assert (referee.reason, referee.passes, referee.places()) == ("blocked", [0, 0], [1, 1])
    for kind in ("win", "lose", "win_lose", "place", "bank"):
        assert payoffs(referee, kind) == [0, 0]


def test_opener_excluded_then_any_starter() -> None:
    referee = deal(TINY_EXCLUDE, "9D 8C", "8D 9C", "TD TC")
    assert [action for action in range(-1, 8) if referee.is_foul(action)] == [0, 6]
    with pytest.raises(RefereeError):
        play(referee, "8D")
    play(referee, "pass")
    assert (referee.excluded, referee.turn, referee.legal_actions()) == ([0], 1, [1])
    play(referee, "9C TC")
    assert (referee.reason, referee.passes) == ("blocked", [0, 0, 0])
    assert referee.places() == [3, 1, 2]
    assert referee.payoffs() == [-1, 1, 0]
    assert payoffs(referee, "cards") == [-2, -1, -1]
    assert payoffs(referee, "bank") == [-1, 2, -1]


def test_exclusions_leave_a_single_seat() -> None:
    referee = deal(TINY_EXCLUDE, "9D 8C", "8D TC", "TD 9C")
    play(referee, "8C")
    assert (referee.turn, referee.legal_actions()) == (1, [6])
    assert [action for action in range(-1, 8) if referee.is_foul(action)] == [2, 3]
    play(referee, "pass")
    assert (referee.passes, referee.legal_actions()) == ([0, 1, 0], [1])
    play(referee, "TD")
    assert (referee.reason, referee.turn, referee.excluded) == ("last_seat", -1, [0, 2])
    assert referee.places() == [3, 1, 2]
    assert payoffs(referee, "bank") == [-1, 2, -1]  # paid 1 2 1


def test_a_foul_that_blocks() -> None:
    referee = deal(TINY_EXCLUDE, "9D 9C", "8D TC", "TD 8C")
    play(referee, "9C")
    assert (referee.reason, referee.excluded, referee.passes) == ("blocked", [0], [0, 0, 0])
    assert referee.places() == [3, 1, 1]
    assert referee.payoffs() == [-1, 0.5, 0.5]
    assert payoffs(referee, "place") == pytest.approx([-1, 0.5, 0.5])


def test_mini_deck_opens_with_the_second_suit_and_low_ace_counts_eleven() -> None:
    rules = RefereeRules(num_players=2, suits=2, ranks="A23", starter="2")
    referee = Referee(rules, [[0, 1, 2], [3, 4, 5]], 0)
    assert (referee.turn, referee.legal_actions()) == (1, [4])
    assert referee.card_points() == [16, 16]


# -- random deals ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(150))
def test_random_deals_keep_the_invariants(seed: int) -> None:
    rng = random.Random(seed)
    rules = RefereeRules(
        num_players=rng.randint(2, 6),
        suits=rng.randint(2, 4),
        ranks=rng.choice(["89T", "789TJ", BASE.ranks, "23456789TJQKA"]),
        opening=rng.choice(["holder", "left_of_dealer"]),
        end=rng.choice(["first_out", "last_holder"]),
        explicit_pass=rng.random() < 0.5,
        foul=rng.choice(["error", "exclude"]),
        passes_count=rng.random() < 0.5,
    )
    pack = rng.sample(range(rules.deck_size), rules.deck_size)
    n = rules.num_players
    if rng.random() < 0.5:
        rules = replace(rules, cards_per_seat=rng.randint(1, rules.deck_size // n))
        pack = pack[: n * (rules.cards_per_seat or 0)]
    hands = [pack[seat::n] for seat in range(n)]
    if not Referee.can_begin(rules, hands):
        return
    referee = Referee(rules, hands, rng.randrange(n))
    while not referee.is_over:
        fouls = [a for a in range(rules.deck_size + 1) if referee.is_foul(a)]
        assert not set(fouls) & set(referee.legal_actions())
        wrong = fouls and rng.random() < 0.03
        referee.play(rng.choice(fouls if wrong else referee.legal_actions()))
    places = referee.places()
    assert places == [1 + sum(better < mine for better in places) for mine in places]
    if rules.cards_per_seat is None and not referee.excluded:
        assert referee.reason in ("out", "last_holder")
    for kind in ("win", "lose", "win_lose", "place", "bank"):
        assert sum(payoffs(referee, kind)) == pytest.approx(0)
