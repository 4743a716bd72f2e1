"""The text of what a person sees, both ways, and what is said of a wrong one."""

from __future__ import annotations

import functools
import itertools
import random
import re
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from devyatka_env.bots import BlockerBot, GreedyBot, PassWatcherBot
from devyatka_env.bots.rollout import play_on
from devyatka_env.engine import rules_record
from devyatka_env.games import Deals, Game
from devyatka_env.rules import Rules, RulesError
from devyatka_env.rules.hands import hand_sizes
from devyatka_env.views import (
    Belief,
    InformationStateError,
    PlayerView,
    format_information_state,
    parse_information_state,
)
from devyatka_env.views.information_state import FIELDS, passes_known, untold_history, view_text
from devyatka_env.views.observation import encode_at, observation_layout
from tests.helpers.games import COMBINATIONS, play_random, random_moment, rule_sets

FOUL_RATE = 0.1

# Four seats, 36 cards: seat 0 opened with 9♦, seat 1 laid 10♦, seat 2 passed, and so on (`EXAMPLE_LINE`).
EXAMPLE = {
    "hand": "7♣ 8♣ Q♣ 6♦ K♦ 8♥ A♠",
    "table": "9♣ 8♦ 9♦ 10♦ 9♥ 10♥ 9♠",
    "left": "7 8 7",
    "passes": "0 1 0",
    "cannot": "2: J♦",
    "laid": "0: 8♦ 9♦; 1: 10♦ 9♥; 2: 10♥; 3: 9♣ 9♠",
    "order": "9♦ 10♦ 9♣ 8♦ 9♥ 10♥ 9♠",
}


def text(**changes: str | None) -> str:
    """The example with some fields changed, added, or (``None``) left out."""
    fields = {name: content for name, content in {**EXAMPLE, **changes}.items() if content is not None}
    return " | ".join(f"{name} {content}" for name, content in fields.items())


def short(**changes: str | None) -> str:
    """The example's needed fields alone, with some changed or added."""
    return text(**{"passes": None, "cannot": None, "laid": None, "order": None, **changes})


def seen_by(view: PlayerView) -> tuple[bytes, bytes]:
    """The observation and the action mask of a view's seat."""
    num_cards = view.rules.deck.num_cards
    observation = np.zeros(observation_layout(num_cards).size, np.int8)
    mask = np.zeros(num_cards + 1, np.int8)
    encode_at(view.record, 0, rules_record(view.rules), view.seat, observation, mask)
    return observation.tobytes(), mask.tobytes()


def check_record(view: PlayerView, read: PlayerView) -> None:
    """The record read is the one of the view, seats counted from the writer.

    What an exclusion hides is not compared: at which turn it was, and so what the passes before proved of cards laid
    since.
    """
    n = view.num_players
    clockwise = [(view.seat + k) % n for k in range(n)]
    hidden = ("cannot_hold", "status") if min(view.status) < 0 else ()
    for name in view.record.dtype.names or ():
        true, found = view.record[name][0], read.record[name][0]
        if name in ("hands", "played", "cannot_hold", "cards_left", "dealt", "passes", "status", "places"):
            if name not in hidden:
                assert true[clockwise].tolist() == found[:n].tolist(), name
        elif name in ("turn", "opener"):
            assert (int(true) - view.seat) % n == found or true == found == -1, name
        elif name != "dealer":
            assert (true == found).all(), name


def check_round_trip(game: Game) -> str | None:
    """A game's view on turn, written and read: beliefs, observation, order and text stay. Its text, if it has one."""
    if not game.legal_mask:
        return None  # it must pass
    view, n = game.view(game.turn), game.num_players
    words = format_information_state(view)
    read = parse_information_state(words, game.rules)
    assert (read.seat, read.turn, read.rules) == (0, 0, game.rules)
    assert format_information_state(read) == words
    assert seen_by(read) == seen_by(view)
    check_record(view, read)
    without = leave_out(words, "laid|order")
    clockwise = [*((view.seat + k) % n for k in range(n)), n]
    belief = Belief(view)
    for same in (read, parse_information_state(without, game.rules)):
        assert Belief(same).count == belief.count
        np.testing.assert_allclose(Belief(same).marginals, belief.marginals[clockwise], rtol=1e-9)
        assert [same.could_hold_mask(k) for k in range(n)] == [view.could_hold_mask(seat) for seat in clockwise[:n]]
        assert same.legal_mask == view.legal_mask
    if min(view.status) >= 0 and view.table_mask and game.rules.opening == "holder":
        assert (
            parse_information_state(leave_out(words, "passes|cannot"), game.rules) == read
        )  # they follow from the course
    return words


def leave_out(words: str, fields: str) -> str:
    """A text without some fields."""
    return " | ".join(part for part in words.split(" | ") if not re.match(fields, part))


# --- both ways -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_read_seen__of_what_format_seen_writes_has_the_same_beliefs(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    written = [check_round_trip(random_moment(rules, seed, FOUL_RATE)) for seed in range(8)]
    assert sum(one is not None for one in written) >= 4


def test_read_seen__round_trips_meet_every_kind_of_moment() -> None:
    """The cases above would prove little without them."""
    rules = Rules.of("winner_and_loser", num_players=5)
    written = [check_round_trip(random_moment(rules, seed, seed % 2 * 0.2)) or "" for seed in range(80)]
    for kind in (r"excluded \d \d", "cannot 0:", r"left [\d ]*\b0\b", "table - "):
        assert any(re.search(kind, one) for one in written), kind


@settings(max_examples=60)
@given(rule_sets(), st.integers(0, 2**20))
def test_read_seen__of_any_rules_and_mini_decks_too(rules: Rules, seed: int) -> None:
    game = random_moment(rules, seed, FOUL_RATE)
    assume(game.legal_mask)
    check_round_trip(game)


@pytest.mark.slow
@settings(max_examples=3000)
@given(rule_sets(), st.integers(0, 2**20), st.sampled_from([0.0, 0.3]))
def test_read_seen__of_any_rules_many_times(rules: Rules, seed: int, foul_rate: float) -> None:
    check_round_trip(random_moment(rules, seed, foul_rate))


@pytest.mark.parametrize("bot", [GreedyBot(), BlockerBot(), PassWatcherBot()])
def test_read_seen__shows_a_bot_the_same_position(bot: GreedyBot) -> None:
    for seed in range(60):
        game = random_moment(Rules.of("first_out", num_players=2 + seed % 5), seed)
        if game.legal_mask:
            views = [
                game.view(game.turn),
                parse_information_state(format_information_state(game.view(game.turn)), game.rules),
            ]
            rng = np.random.default_rng(0)
            assert bot.act(views[1], rng) == bot.act(views[0], rng)


def test_format_seen__refuses_a_seat_that_has_nothing_to_choose() -> None:
    game = Game.deal("first_out", 1)
    with pytest.raises(ValueError, match="only what a seat on turn sees"):
        format_information_state(game.view((game.turn + 1) % 4))
    with pytest.raises(ValueError, match="only what a seat on turn sees"):
        format_information_state(play_random(game, random.Random(1)).view(0))


# --- reading ---------------------------------------------------------------------------------------------------------


def test_read_seen__the_example_is_the_view_of_a_game() -> None:
    others = "Q♠ 10♦ 9♥ 6♣ 7♦ A♥ 6♥ 7♥ 6♠ / 10♥ 7♠ 8♠ 10♠ A♣ A♦ J♥ Q♥ J♠ / 9♣ 9♠ J♦ Q♦ 10♣ J♣ K♣ K♥ K♠"
    line = f"first_out | dealer 3 | 9♦ 8♦ {EXAMPLE['hand']} / {others} | {EXAMPLE['order']}"
    view = Game.from_position(line).view(0)
    assert view.passes == (0, 0, 1, 0)
    read = parse_information_state(text())
    assert format_information_state(read) == format_information_state(view)
    assert (read.dealer, read.opener, read.cards_left) == (3, 0, (7, 7, 8, 7))
    deck = view.rules.deck
    assert read.cannot_hold_masks[2] & ~read.table_mask == deck.parse_mask("J♦")
    assert deck.text(read.legal_mask) == "8♣ 8♥"


def test_read_seen__the_examples_of_the_documentation_are_read() -> None:
    found = re.search(r"^    (hand .*)$", view_text.__doc__ or "", re.MULTILINE)
    assert found is not None
    assert parse_information_state(found[1]) == parse_information_state(
        short(passes=EXAMPLE["passes"], cannot=EXAMPLE["cannot"])
    )
    rows = re.findall(r"^(\w+)\s+\w", (view_text.__doc__ or "").split("======== ===")[1], re.MULTILINE)
    assert [row for row in rows if row in FIELDS] == list(FIELDS)


@pytest.mark.parametrize(
    "spelling",
    [
        "LEFT: 7, 8, 7|hand 7c,8c Qc 6d KD 8h AS|Table: 9C 8D 9D TD 9H 10h 9S",
        "table 9♣8♦9♦10♦9♥10♥9♠ | left 7 8 7 | hand 7♣8♣Q♣6♦K♦8♥A♠",
        "hand 7т 8т Дт 6б Кб 8ч Тп | table 9к 8б 9Б 10б 9ч 10Ч 9п | left 7 8 7",
        "hand 7♣ 8♣ Д♣ 6♦ К♦ 8♥ Т♠\n| table\n9♣ 8♦ 9♦ 10♦\n9♥ 10♥ 9♠\n| left 7\t8 7",
    ],
)
def test_read_seen__takes_any_order_case_and_card_letters(spelling: str) -> None:
    assert parse_information_state(spelling) == parse_information_state(short())


def test_read_seen__passes_begin_with_the_others_or_with_the_writer() -> None:
    assert parse_information_state(text(passes="0 1 0")) == parse_information_state(text(passes="0 0 1 0"))
    assert parse_information_state(short(passes="1 1 2 1")).passes == (1, 1, 2, 1)
    for most, opener in (("5 5 6 5", 0), ("4 5 6 5", 1)):  # a card in every round that the writer began
        assert parse_information_state(short(passes=most, laid=f"{opener}: 9♦")).passes == tuple(map(int, most.split()))


def test_read_seen__an_opening_has_an_empty_table() -> None:
    hand = "9♦ 7♣ 8♣ Q♣ 6♦ K♦ 8♥ A♠ J♠"
    for words in ("table -", "table"):
        view = parse_information_state(f"hand {hand} | {words} | left 9 9 9")
        assert (view.table_mask, view.opener, view.legal_mask) == (0, 0, 1 << 12)
        assert Belief(view).count == 227_873_431_500  # 27! / 9!**3


def test_read_seen__the_number_of_seats_is_that_of_left() -> None:
    view = parse_information_state(
        "hand 6♣ 9♦ | table - | left 2 2", "first_out ranks=89T num_suits=2".replace("89T", "69T")
    )
    assert view.num_players == 3
    assert view.rules == Rules.of("first_out", ranks="69T", num_suits=2, num_players=3)


def test_read_seen__the_course_of_the_deal_tells_the_passes() -> None:
    told = parse_information_state(short(laid=EXAMPLE["laid"], order=EXAMPLE["order"]))
    assert told == parse_information_state(text())
    assert told.passes == (0, 0, 1, 0)
    deck = told.rules.deck
    assert deck.text(told.cannot_hold_masks[2] & ~(1 << 12)) == "9♣ 8♦ J♦ 9♥ 9♠"


@pytest.mark.parametrize("preset", ["any_nine", "nine_each"])
def test_read_seen__the_course_tells_the_dealer_where_it_opens(preset: str) -> None:
    """Who passed before the first card tells who dealt; told no passes, it takes the seat before the opener."""
    found = set()
    for seed in range(40):
        game = random_moment(Rules.of(preset, num_players=4), seed)
        if not game.legal_mask or not game.table_mask:
            continue
        view = game.view(game.turn)
        words = format_information_state(view)
        assert (parse_information_state(words, game.rules).dealer + view.seat) % 4 == game.dealer
        fewest = parse_information_state(leave_out(words, "passes|cannot"), game.rules)
        assert fewest.dealer == (fewest.opener - 1) % 4
        found.add((view.opener - game.dealer - 1) % 4)
    assert found >= {0, 1}


@pytest.mark.parametrize(("preset", "seats"), [("first_out", 4), ("one_loser", 6), ("any_nine", 5), ("bank", 3)])
def test_read_seen__a_course_told_can_be_played_again_in_every_world(preset: str, seats: int) -> None:
    """Bots that read the others' plays do so, without checks."""
    rules = Rules.of(preset, num_players=seats)
    for seed in range(10):
        game = random_moment(rules, seed)
        if not game.legal_mask:
            continue
        view = parse_information_state(
            leave_out(format_information_state(game.view(game.turn)), "passes|cannot"), rules
        )
        for world in Belief(view).sample_states(np.random.default_rng(seed), 5):
            again = Game.from_hands(rules, (world["hands"] | world["played"])[:seats].tolist(), view.dealer)
            for card in view.laid:
                again.play(card)
            assert again.view(again.turn) == view


# --- what the text leaves open ---------------------------------------------------------------------------------------


def test_read_seen__cards_that_laid_does_not_name_go_round_from_the_writer() -> None:
    deck = Rules.of("first_out").deck
    # 9 were dealt to each: 2, 2, 1 and 2 are laid.
    shares = [deck.text(mask) for mask in parse_information_state(short()).played_masks]
    assert shares == ["9♣ 9♦", "8♦ 10♦", "9♥", "10♥ 9♠"]
    shares = [deck.text(mask) for mask in parse_information_state(short(laid="3: 9♣; 1: 9♥")).played_masks]
    assert shares == ["8♦ 9♦", "10♦ 9♥", "10♥", "9♣ 9♠"]
    # Seats 1 and 2 lacked the last three cards, and seat 3 has room for two of them: for 9♠ seat 0 hands 9♣ on.
    shares = [
        deck.text(mask) for mask in parse_information_state(short(cannot="1: 9♥ 10♥ 9♠; 2: 9♥ 10♥ 9♠")).played_masks
    ]
    assert shares == ["9♦ 9♠", "8♦ 10♦", "9♣", "9♥ 10♥"]


def test_read_seen__cards_were_laid_from_the_starters_outwards_the_opening_card_first() -> None:
    view = parse_information_state(short())
    assert view.rules.deck.text(0) == ""
    assert [str(card) for card in view.laid] == ["9♦", "9♣", "9♥", "9♠", "8♦", "10♦", "10♥"]
    assert view.opener == 0


def test_read_seen__finds_a_dealer_that_gives_hands_of_these_sizes() -> None:
    """Five seats: 8 7 7 7 7, the 8 to the seat after the dealer."""
    hand = "7♣ 8♣ Q♣ 8♦ K♦ 8♥"
    views = [parse_information_state(f"hand {hand} | table 9♦ 10♦ | left {left}") for left in ("7 8 7 6", "7 7 7 7")]
    assert [view.dealer for view in views] == [1, 4]
    assert [view.record["dealt"][0, :5].tolist() for view in views] == [[7, 7, 8, 7, 7], [8, 7, 7, 7, 7]]


def test_passes_known__is_of_their_moments_or_numbers() -> None:
    assert passes_known(text()) == "course"
    assert passes_known(text(order=None)) == "numbers"
    assert passes_known(short()) == "nothing"
    assert passes_known(text(excluded="1"), "winner_and_loser") == "numbers"  # nothing tells when that was
    hand = "hand 9♦ 7♣ 8♣ Q♣ 6♦ K♦ 8♥ A♠ J♠ | table - | left 9 9 9"
    assert passes_known(hand) == "course"  # nobody passes before the opening card
    assert passes_known(hand, "any_nine") == "nothing"
    assert passes_known(f"{hand} | passes 0 1 1", "any_nine") == "course"  # when all starters fitted


def test_left_open__names_what_a_bot_may_miss() -> None:
    assert untold_history(text()) == ()
    assert untold_history(short()) == ("laid", "order")
    assert untold_history(text(order=None)) == ("order",)
    assert untold_history(text(laid="0: 8♦ 9♦")) == ("laid",)
    hand = "9♦ 7♣ 8♣ Q♣ 6♦ K♦ 8♥ A♠ J♠"
    assert untold_history(f"hand {hand} | table - | left 9 9 9") == ()


@pytest.mark.parametrize(("preset", "seats"), [("first_out", 4), ("one_loser", 6), ("nine_each", 3), ("bank", 2)])
def test_read_seen__gives_worlds_that_are_played_to_their_end(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    for seed in range(6):
        game = random_moment(rules, seed)
        if not game.legal_mask:
            continue
        belief = Belief(
            parse_information_state(
                leave_out(format_information_state(game.view(game.turn)), "laid|order|passes"), rules
            )
        )
        games = Deals(rules, np.arange(20))
        games.states[:] = belief.sample_states(np.random.default_rng(seed), 20)
        play_on(games, [PassWatcherBot()], np.zeros((20, seats), np.int64), games.all)
        assert np.isfinite(games.payoffs(games.all)).all()


# --- the turns of passes told ----------------------------------------------------------------------------------------


@functools.cache
def turn_counts(seats: int, first: int, rounds: int) -> list[int]:
    """Turns by seat, walked one by one from the first mover until seat 0 has had ``rounds`` turns and is on turn."""
    turns, seat = [0] * seats, first
    while seat or turns[0] < rounds:
        turns[seat] += 1
        seat = (seat + 1) % seats
    return turns


def can_be(view: PlayerView, passes: Sequence[int]) -> bool:
    """Whether some dealer, first mover and number of rounds give these turns; ``passes`` from the seat on turn on."""
    rules, n = view.rules, view.num_players
    seats = [(view.turn + k) % n for k in range(n)]
    left = [view.cards_left[seat] for seat in seats]
    foul = [view.status[seat] < 0 for seat in seats]
    gone = [view.status[seat] != 0 for seat in seats]
    at_large = min((-view.status[seat], k) for k, seat in enumerate(seats) if foul[k])[1] if any(foul) else -1
    events = view.table_mask.bit_count() + sum(foul)
    opening = 1 << rules.opening_card
    for dealer in range(n):
        laid = [size - cards for size, cards in zip(hand_sizes(rules, dealer), left, strict=True)]
        if min(laid) < 0:
            continue
        firsts = [k for k in range(n) if laid[k]]
        if rules.opening == "left_of_dealer":
            firsts = [(dealer + 1) % n]
        elif not view.table_mask & opening:
            firsts = [at_large] if at_large >= 0 else [0]
        for first in firsts:
            for rounds in range(events + 1):
                turns = turn_counts(n, first, rounds)
                acts = [a + b + c for a, b, c in zip(laid, passes, foul, strict=True)]
                if rounds + (first > 0 and rules.opening == "holder") <= events and all(
                    had >= act if is_gone else had == act for had, act, is_gone in zip(turns, acts, gone, strict=True)
                ):
                    return True
    return False


def refusal(words: str, rules: Rules, passes: Sequence[int]) -> str:
    """What is said of a text with these passes; empty when it is read, and the passes with it."""
    try:
        read = parse_information_state(f"{words} | passes {' '.join(map(str, passes))}", rules)
    except InformationStateError as error:
        return str(error)
    assert read.passes == tuple(passes)
    return ""


def views_on_turn(preset: str) -> Iterator[PlayerView]:
    """At each number of seats, moments all over the deal, with a foul now and then where rules exclude for it."""
    for name, seats in COMBINATIONS:
        for game in (
            random_moment(Rules.of(name, num_players=seats), s, FOUL_RATE) for s in range(6 * (name == preset))
        ):
            if game.legal_mask:
                yield game.view(game.turn)


TURN_PRESETS = ("first_out", "one_loser", "winner_and_loser", "any_nine", "nine_each", "deck_52")


@pytest.mark.parametrize("preset", TURN_PRESETS)
def test_read_seen__takes_the_passes_that_turns_allow_and_no_others(preset: str) -> None:
    """True ones are taken; some more or fewer of a seat exactly where some course of turns has them."""
    bounds: list[str] = []
    for view in views_on_turn(preset):
        seats = view.num_players
        words = leave_out(format_information_state(view), "passes|cannot|laid|order")
        true = [view.passes[(view.turn + k) % seats] for k in range(seats)]
        for seat, more in itertools.product(range(seats), (-2, -1, 1, 5)):
            told = [*true[:seat], true[seat] + more, *true[seat + 1 :]]
            if told[seat] < 0:
                continue
            said = refusal(words, view.rules, told)
            bound = re.match(r"passes: seat \d .* passed (at least|at most) \d+ times? so far, not", said)
            if bound or not said:
                assert can_be(view, told) != bool(said), (words, told, said)
                bounds += [bound[1]] if bound else []
            else:  # a first pass of this seat: by what it proves
                assert re.match("passes: (nobody could hold|the other seats cannot share|you hold)", said), said
                assert more > 0 == true[seat]
    assert min(map(bounds.count, ("at least", "at most"))) > 15


@pytest.mark.parametrize("preset", TURN_PRESETS)
def test_read_seen__passes_rule_out_only_what_the_true_ones_do(preset: str) -> None:
    """Told, or forced by the counts alone; and those not told are filled in so that the turns agree."""
    num_ruled_out = 0
    for view in views_on_turn(preset):
        seats = view.num_players
        words = leave_out(format_information_state(view), "passes|cannot|laid|order")
        clockwise = [(view.turn + k) % seats for k in range(seats)]
        passes = [view.passes[seat] for seat in clockwise]
        for told in (passes, passes[1:], []):
            read = parse_information_state(
                f"{words} | passes {' '.join(map(str, told))}" if told else words, view.rules
            )
            assert list(read.passes)[seats - len(told) :] == told
            assert can_be(view, read.passes)
            for seat, mask in zip(clockwise, read.cannot_hold_masks, strict=False):
                hidden = mask & ~view.table_mask
                assert not hidden & ~view.cannot_hold_masks[seat], (words, told)
                num_ruled_out += hidden.bit_count()
    assert num_ruled_out > 15


def test_read_seen__a_seat_that_passed_holds_nothing_that_fitted_all_along() -> None:
    deck = Rules.of("first_out").deck
    hand = "hand 7♣ 8♣ Q♣ 6♦ K♦ 8♥ A♠ J♠ | table 9♦ 10♦ J♦ 9♥ | left 8 9 7"
    ruled_out = parse_information_state(f"{hand} | passes 0 0 1 0").cannot_hold_masks
    assert [deck.text(mask & deck.parse_mask("8♦ 9♣ 9♠ 8♥ Q♦")) for mask in ruled_out] == ["", "", "9♣ 8♦ 9♠", ""]
    # Seat 1 has laid four cards and seat 2 none: it has passed three times at least, whoever opened.
    forced = parse_information_state(
        "hand 7♣ 8♣ Q♣ 6♦ K♦ 8♥ A♠ J♠ | table 9♦ 10♦ J♦ 9♥ Q♦ | left 5 9 9"
    ).cannot_hold_masks
    assert [deck.text(mask & deck.parse_mask("8♦ 9♣ 9♠ 10♥")) for mask in forced] == ["9♣ 8♦ 9♠", "", *["9♣ 8♦ 9♠"] * 2]


# --- refusals --------------------------------------------------------------------------------------------------------

FIRST_ROUND = "hand 7♣ 8♣ Q♣ 8♦ K♦ 8♥ A♠ J♠ 10♠ | table 9♦ | left 9 9 8"  # seat 3 opened
NINE_KEPT = "hand 7♣ 8♣ Q♣ 6♦ 9♠ 8♥ A♠ J♣ | table 9♣ 8♦ 9♦ 10♦ 9♥ 10♥ 7♦"
ALL_PASSED = "hand 7♣ 8♣ Q♣ 6♦ K♦ 8♥ A♠ J♠ | table 9♦ 10♦ J♦ Q♦ | left 8 8 8 | passes 1 1 1 1"
BAD_TEXTS = {
    # the fields
    "": r"part 1 of the text, '', begins with no field: the fields are hand, table, left, passes, cannot, laid, order,",
    short() + " | hands 7♣": r"part 4 of the text, 'hands 7♣', begins with no field",
    short() + " | left 7 8 7": r"left stands twice, the second time in part 4",
    "hand 7♣ | left 7 8 7": r"table is missing: hand, table, left are needed \(`table -` for no cards\)",
    # words
    short(hand="7♣ 8♣ 1♣ 6♦ K♦ 8♥ A♠"): r"hand, word 3: '1♣' is not a card: write a rank",
    short(table="9♣ 8♦ 9♦ 10♦, 5♦"): r"table, word 5: 5♦ is not in this deck: ranks 6 7 8",
    short(left="7 8 seven"): r"left, word 3: 'seven' is not a number",
    short(left="7 8 ٧"): r"left, word 3: '٧' is not a number",
    text(passes="0 -1 0"): r"passes, word 2: '-1' is not a number",
    text(passes="1 0"): r"passes: 2 numbers; give 3, one for each other seat clockwise from you, or 4 with your own",
    text(passes="0 8 0"): r"passes: seat 2 has passed 1 times by `laid` and `order`, not 8",
    text(cannot="J♦"): r"cannot: 'J♦' is not SEAT: CARDS, with seats 1 to 3 clockwise from you \(0 is you\)",
    text(laid="4: 9♦"): r"laid: '4: 9♦' is not SEAT: CARDS",
    text(laid="1: 9♦; 1: 8♦"): r"laid: seat 1 stands twice",
    text(cannot="2: J♦ Z"): r"cannot 2, word 2: 'Z' is not a card",
    # seats
    short(left="-"): r"left, word 1: '-' is not a number",
    short(left=""): r"left: with you and 0 other seats: num_players must be 2 to 6, not 1",
    short(left="1 2 3 4 5 6"): r"left: with you and 6 other seats: num_players must be 2 to 6, not 7",
    short(left="0 11 11"): r"left: seat 1 has no card left, so the deal is over",
    text(excluded="2"): r"excluded: a foul excludes nobody under these rules \(foul=error\)",
    # one card, one place
    short(hand="7♣ 8♣ 7♣ 6♦ K♦ 8♥ A♠"): r"hand, word 3: 7♣ stands twice",
    short(table="9♣ 8♦8♦"): r"table, word 2: 8♦ stands twice",
    short(hand="7♣ 8♣ Q♣ 9♦ K♦ 8♥ A♠"): r"table: 9♦ is also in your hand",
    short(table="9♣ 8♦ 9♦ J♦ 9♥ 10♥ 9♠"): r"table: J♦ can not lie there: a row is laid without a gap from its 9 on",
    short(table="9♣ 8♦ 9♦ 10♦ 8♥ 10♥ 9♠", hand="7♣ 8♣ Q♣ 6♦ K♦ 7♥ A♠"): r"table: 8♥ 10♥ can not lie there",
    text(laid="1: K♣"): r"laid 1: K♣ is not on the table",
    text(laid="1: 9♦; 2: 9♦"): r"laid 2: 9♦ was laid by an earlier seat, too",
    # numbers
    short(
        left="7 8 6"
    ): r"left: 7 \+ 8 \+ 6 of the other seats, 7 in your hand and 7 on the table are 35 cards; 36 were",
    short(left="5 10 7"): r"left: seat 2 has 10 cards; 9 were dealt",
    text(laid="2: 9♥ 10♥", order=None): r"left: seat 2 has 8 cards and has laid 2; 9 were dealt",
    short(hand="6♣ 7♣ 8♣ Q♣ 6♦ K♦ 8♥ A♠ J♠ Q♠", left="6 6 7"): r"hand: you have 10 cards; 9 were dealt",
    short(cannot="0: 9♣ 8♦ 9♦ 10♦ 9♥ 10♥"): r"cannot be divided so that each seat has laid the difference",
    # the opening
    short(table="9♣ 9♥ 9♠ 8♣", hand="7♣ Q♣ 6♦ K♦ 8♥ A♠ 10♥ 10♠", left="8 8 8"): r"table: 9♦ is not on it, with which",
    short(table="-", hand="7♣ 8♣ Q♣ 6♦ K♦ 8♥ A♠ 10♥ 10♠", left="9 9 9"): r"hand: the table is empty and you are on",
    short(table="9♣ 9♥ 9♠ 8♣", hand="9♦ Q♣ 6♦ K♦ 8♥ A♠ 10♥ 10♠", left="8 8 8"): r"hand: you hold 9♦, with which the",
    # the order
    text(order="9♦ 10♦ 9♣ 8♦ 9♥ 10♥"): r"order: it lacks 9♠; name every card on the table",
    text(order="9♦ 10♦ 9♣ 8♦ 9♥ 10♥ 9♠ 8♠"): r"order: it names 8♠, which is not on the table",
    text(order="9♦ 10♦ 9♣ 8♦ 10♥ 9♥ 9♠"): r"order, word 5: 10♥ did not fit then",
    text(order="9♣ 9♦ 10♦ 8♦ 9♥ 10♥ 9♠"): r"order: the deal begins with 9♦, not with 9♣",
    # the course
    text(
        order="9♦ 9♣ 10♦ 8♦ 9♥ 10♥ 9♠", passes=None, cannot=None
    ): r"order, word 3: seat 1 laid 10♦, but it had passed",
    text(passes="0 0 0", cannot=None): r"passes: seat 2 has passed 1 times by `laid` and `order`, not 0",
    text(passes=None, cannot="2: J♥"): r"cannot 2: by `laid` and `order` no pass of this seat proves J♥",
    short(
        left="6 8 8", laid="0: 9♦ 9♠; 1: 9♣ 9♥ 8♦; 2: 10♦; 3: 10♥", order="9♦ 9♣ 10♦ 9♠ 9♥ 10♥ 8♦"
    ): r"order: you passed when 8♣ 8♥ fitted, which you hold",
    # what passes prove
    text(
        cannot="2: J♦ Q♠"
    ): r"cannot 2: a pass proves nothing of Q♠, which has not fitted so far; now fit 8♣ 10♣ 7♦ J♦",
    text(cannot="1: J♦"): r"cannot 1: J♦, but by `passes` seat 1 has not passed",
    text(cannot="2: 10♥"): r"cannot 2: 10♥ was laid by this very seat",
    text(cannot="0: 8♣", passes=None): r"cannot 0: 8♣ is in your hand",
    short(cannot="1: J♦; 2: J♦; 3: J♦"): r"cannot: nobody could hold J♦",
    short(
        hand="6♣ 7♣ Q♣ 6♦ K♦ 6♥ A♠ 8♠",
        table="9♣ 9♦ 9♥ 9♠",
        left="8 8 8",
        cannot="1: 8♣ 10♣ 8♦ 10♦ 8♥ 10♥ 10♠; 2: 8♣ 10♣ 8♦ 10♦ 8♥ 10♥ 10♠; 3: 8♣",
    ): r"cannot: nobody could hold 8♣",
    # turns: seats 0 to 3 have laid 2, 2, 1 and 2 cards
    short(
        passes="0 0 0"
    ): r"passes: seat 2 must have passed at least 1 time so far, not 0: it has laid 1 card, seat 0 has"
    r" had 2 turns \(2 cards\), and the turn goes round from the seat that moved first to you",
    short(
        passes="0 7 0"
    ): r"passes: seat 2 can have passed at most 2 times so far, not 7: it has laid 1 card, seat 1 has",
    short(passes="0 2 0", laid="0: 9♦"): r"passes: seat 2 can have passed at most 1 time so far, not 2",
    short(passes="6 6 7 6"): r"passes: seat 0 can have passed at most 5 times so far, not 6: it has laid 2 cards,"
    r" somebody lays or is excluded in every round, which has happened 7 times",
    short(passes="5 6 7 6", laid="1: 9♦"): r"passes: seat 0 can have passed at most 4 times so far, not 5",
    short(
        passes="3 0 1 0"
    ): r"passes: seat 1 must have passed at least 3 times so far, not 0: it has laid 2 cards, seat 0"
    r" has had 5 turns \(2 cards \+ 3 passes\)",
    FIRST_ROUND + " | passes 1 0 0": r"passes: seat 1 can have passed at most 0 times so far, not 1",
    FIRST_ROUND + " | cannot 1: 10♦": r"cannot 1: seat 1 can have passed at most 0 times so far, not 1",
    NINE_KEPT + " | left 8 7 6 | passes 1 2 2 2": r"passes: you hold 9♠, which has fitted all along, so you have",
    NINE_KEPT
    + " | left 8 7 6 | cannot 0: 10♣": r"cannot 0: you hold 9♠, which has fitted all along, so you have never",
    NINE_KEPT + " | left 5 8 8": r"hand: seat 0 must have passed at least 2 times so far, but nobody who holds 9♠ has"
    r" passed: it has laid 1 card, seat 1 has had 4 turns \(4 cards\)",
    NINE_KEPT + " | left 7 7 7 | passes 1 1 1": r"passes: seat 1 can have passed at most 0 times so far, not 1",
    ALL_PASSED: r"passes: nobody could hold 9♣ 8♦ 9♥ 9♠",
    short(hand="7♣ 6♣ Q♣ 6♦ K♦ 7♥ A♠"): r"hand: none of 6♣ 7♣ Q♣ 6♦ K♦ 7♥ A♠ fits \(8♣ 10♣ 7♦ J♦ 8♥ J♥ 8♠ 10♠ would\)",
}


@pytest.mark.parametrize(("words", "message"), BAD_TEXTS.items())
def test_read_seen__names_the_field_the_words_and_what_is_allowed(words: str, message: str) -> None:
    with pytest.raises(InformationStateError, match=message):
        parse_information_state(words)


def test_read_seen__refuses_a_cannot_that_leaves_too_little_room() -> None:
    """Seat 1 holds none of five fitting cards, so seat 2, which could hold each, would hold all of them."""
    table = "6♣ 7♣ 8♣ 9♣ 10♣ J♣ Q♣ 6♦ 7♦ 8♦ 9♦ 10♦ J♦ Q♦ 8♥ 9♥ 10♥ J♥ 8♠ 9♠ 10♠ J♠"
    seen = f"hand 7♥ A♣ A♦ A♥ A♠ 6♥ | table {table} | cannot 1: K♣ K♦ Q♥ 7♠ Q♠"
    with pytest.raises(
        InformationStateError, match="cannot: the other seats cannot share the hidden cards so that each holds"
    ):
        parse_information_state(f"{seen} | left 6 2")
    assert Belief(parse_information_state(f"{seen} | left 3 5")).count == 1


BAD_UNDER = {
    ("one_loser", "hand 8♣ 8♥ | table 9♣ 9♦ 9♥ | left 0 0 31"): r"left: seat 3 has 31 cards; 9 were dealt",
    (
        "one_loser num_players=2 ranks=89T num_suits=2",
        "hand 8♣ | table 9♦ 9♣ 8♦ 10♦ 10♣ | left 0",
    ): "no other seat is in",
    ("winner_and_loser", text(excluded="2 2")): r"excluded: 2 is not another one of the seats 1 to 3",
    ("winner_and_loser", text(excluded="0")): r"excluded: 0 is not another one of the seats 1 to 3",
    ("winner_and_loser", text(excluded="1 2 3")): r"left: no other seat is in, so the deal is over",
    ("nine_each", short(left="7 8 7 5")): r"left: with you and 4 other seats: 5 seats of cards_per_seat=9 do not fit",
}


@pytest.mark.parametrize(("rules", "words"), BAD_UNDER)
def test_read_seen__names_what_these_rules_forbid(rules: str, words: str) -> None:
    with pytest.raises(InformationStateError, match=BAD_UNDER[rules, words]):
        parse_information_state(words, rules)


def test_read_seen__refuses_unknown_rules() -> None:
    with pytest.raises(RulesError, match="unknown rules preset 'whist'"):
        parse_information_state(text(), "whist")
