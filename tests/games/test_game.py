"""`Game` and `Match`: building, playing, results, copies, records (rules, sections 2-9 and the positions of 11)."""

from __future__ import annotations

import copy
import json
import pickle
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from devyatka_env.engine import STATE_DTYPE
from devyatka_env.games import Game, IllegalActionError, Match
from devyatka_env.rules import Card, CardTextError, Rules
from tests.helpers.games import COMBINATIONS, fouls, play_random, random_moment, state_bytes

# Four cards a seat, so that a position can be written down; no seat is passed over unless a test says so.
FOUR = Rules.of("nine_each", cards_per_seat=4)
# Two suits of 8 9 10, three seats; 9♦ opens.
TINY = Rules.of({"num_suits": 2, "ranks": "89T", "num_players": 3, "end": "last_holder"})
TINY_EXCLUDE = Rules.of(TINY, foul="exclude", explicit_pass=True, payoff="win_lose")


def texts(cards: Any) -> str:
    """Cards as one text."""
    return " ".join(map(str, cards))


# --- worked positions of rules, section 11 ---------------------------------------------------------------------------


def eight_nine_ten() -> Game:
    """Table 8♦ 9♦ 10♦, seat 0 to move with 6♦ 7♦ J♦ Q♥."""
    hands = ["6♦ 7♦ J♦ Q♥", "9♦ 9♠ Q♠ K♠", "8♦ 8♠ 7♠ A♠", "10♦ 10♠ J♠ 6♠"]
    game = Game.from_hands(FOUR, hands, dealer=0)
    for card in ("9♦", "8♦", "10♦"):
        game.play(card)
    return game


def test_position__eight_nine_ten_takes_seven_and_jack() -> None:
    game = eight_nine_ten()
    assert texts(game.table) == "8♦ 9♦ 10♦"
    diamonds = game.rules.deck.suit_mask(1)
    assert game.rules.deck.text(game.view(0).fitting_mask & diamonds) == "7♦ J♦"
    assert (game.turn, texts(game.legal_cards())) == (0, "7♦ J♦")


def test_play__one_card_a_turn_even_if_the_next_fits() -> None:
    game = eight_nine_ten().play("7♦")
    assert texts(game.hands[0]) == "6♦ J♦ Q♥"
    assert game.view(0).fitting_mask >> game.rules.deck.card_id("6♦") & 1
    assert game.turn == 1
    with pytest.raises(IllegalActionError):
        game.play("6♦")


def test_position__nine_and_ten_take_jack_eight_and_another_nine() -> None:
    rules = Rules.of("nine_each", num_players=3, cards_per_seat=3)
    others = ["9♦ Q♦ K♦", "10♦ 6♥ 7♥"]
    game = Game.from_hands(rules, ["J♦ 9♠ Q♣", *others], dealer=0).play("9♦").play("10♦")
    assert texts(game.legal_cards()) == "J♦ 9♠"  # the row of Q♣ is not open
    game = Game.from_hands(rules, ["J♦ 9♠ 8♦", *others], dealer=0).play("9♦").play("10♦")
    assert texts(game.legal_cards()) == "8♦ J♦ 9♠"


@pytest.mark.parametrize(("preset", "opening"), [("first_out", "9♦"), ("deck_52", "9♦"), ("sevens", "7♦")])
def test_first_move__holder_of_the_opening_card_has_one_legal_card(preset: str, opening: str) -> None:
    rules = Rules.of(preset, num_players=2)
    starters = [card for card in rules.deck.cards if card.rank == rules.starter]
    rest = [card for card in rules.deck.cards if card not in starters]
    size = rules.deck.num_cards // 2
    game = Game.from_hands(rules, [rest[:size], starters + rest[size:]])
    assert (game.turn, texts(game.legal_cards())) == (1, opening)


@pytest.mark.parametrize(
    ("preset", "row", "below"),
    [
        ("first_out", "6♦ 7♦ 8♦ 9♦ 10♦ J♦ Q♦ K♦ A♦", 3),
        ("deck_52", "2♦ 3♦ 4♦ 5♦ 6♦ 7♦ 8♦ 9♦ 10♦ J♦ Q♦ K♦ A♦", 7),
        ("sevens", "A♦ 2♦ 3♦ 4♦ 5♦ 6♦ 7♦ 8♦ 9♦ 10♦ J♦ Q♦ K♦", 6),
    ],
)
def test_full_row__grows_from_the_starter_and_does_not_wrap(preset: str, row: str, below: int) -> None:
    rules = Rules.of(preset)
    suits = [rules.deck.suit_mask(suit) for suit in range(4)]
    names = row.split()
    game = Game.from_hands(rules, suits)  # each seat owns a suit; seat 1 lays its row downwards, then upwards
    for name in [*names[below::-1], *names[below + 1 :]]:
        if not game.table_mask & suits[1]:
            allowed = {names[below]}
        else:
            laid = [i for i, card in enumerate(names) if card in texts(game.table).split()]
            allowed = {names[i] for i in (laid[0] - 1, laid[-1] + 1) if 0 <= i < len(names)}
        assert {*texts(game.legal_cards()).split()} == allowed
        game.play(name)
        while not game.is_over and game.turn != 1:
            game.play(game.legal_actions()[0])
    assert rules.deck.text(game.table_mask & suits[1]) == row
    assert game.view(0).fitting_mask & suits[1] == 0


# --- playing ---------------------------------------------------------------------------------------------------------


def test_play__takes_ids_cards_and_texts_alike() -> None:
    game = Game.deal("first_out", 3)
    for action in (12, np.int64(12), Card("9", "♦"), "9♦", "9d"):
        assert game.clone().play(action).actions == [12]
    stuck = Game.from_hands(Rules.of(TINY, explicit_pass=True), ["9♦ 10♦", "8♣ 10♣", "9♣ 8♦"]).play("9♦")
    assert (stuck.turn, stuck.legal_actions(), stuck.legal_cards()) == (1, [6], [])
    for action in (6, "-", "pass", " PASS "):
        passed = stuck.clone().play(action)
        assert (passed.turn, passed.actions) == (2, [4, 6])


def test_play__an_illegal_action_says_everything_and_changes_nothing() -> None:
    game = eight_nine_ten()
    before, actions = state_bytes(game.states), list(game.actions)
    for action in ("6♦", "Q♥", "9♦", "9♣", "-", 36, 35, -1, 37, 300, 2**70, True, 7.0, None, Card("A", "♠")):
        with pytest.raises(IllegalActionError) as caught:
            game.play(action)  # type: ignore[arg-type]
        error = caught.value
        assert isinstance(error, ValueError)
        assert error.action == action
        assert error.legal == [10, 14]
        assert str(action) in str(error)
        assert "legal: 7♦ J♦" in str(error)
        assert Game.from_position(error.position).turn == 0
        assert error.position in str(error)
        assert (state_bytes(game.states), game.actions) == (before, actions)
    with pytest.raises(CardTextError, match="'seven' is not a card"):
        game.play("seven")
    assert state_bytes(game.states) == before


def test_play__after_the_end_is_refused() -> None:
    game = play_random(Game.deal("first_out", 1), random.Random(1))
    assert (game.turn, game.legal_actions(), game.legal_cards(), game.legal_mask) == (-1, [], [], 0)
    for action in range(37):
        with pytest.raises(IllegalActionError, match="the deal is over"):
            game.play(action)


def test_illegal_action_error__survives_pickling() -> None:
    with pytest.raises(IllegalActionError) as caught:  # worker processes hand exceptions over as pickles
        Game.deal("first_out", 1).play(36)
    twin = pickle.loads(pickle.dumps(caught.value))
    assert str(twin) == str(caught.value)
    assert (twin.action, twin.legal, twin.position) == (36, caught.value.legal, caught.value.position)


def test_play__last_card_ends_the_deal() -> None:
    rules = Rules.of(TINY, end="first_out", payoff="win")
    game = Game.from_hands(rules, ["9♦ 10♦", "8♣ 10♣", "9♣ 8♦"])
    game.play("9♦")
    with pytest.raises(ValueError, match="the deal is not over: seat 2 is to move"):
        game.result()
    game.play("8♦").play("10♦")
    result = game.result()
    assert (result.reason, result.winners, result.places) == ("out", (0,), (1, 3, 2))
    assert (result.cards_left, result.card_points, result.passes) == ((0, 2, 1), (0, 18, 9), (0, 1, 0))
    assert result.payoffs == (1.0, -0.5, -0.5)


def test_play__last_holder_goes_on_until_one_seat_holds_cards() -> None:
    game = Game.from_hands(TINY, ["9♦ 10♦", "8♣ 10♣", "9♣ 8♦"])
    for card in ("9♦", "8♦", "10♦", "9♣"):
        assert not game.is_over
        game.play(card)
    assert game.result().reason == "last_holder"
    assert game.result().places == (1, 3, 2)


def test_foul__excludes_and_the_next_seat_opens_with_any_starter() -> None:
    game = Game.from_hands(TINY_EXCLUDE, ["9♦ 8♣", "8♦ 9♣", "10♦ 10♣"])
    assert fouls(game) == [0, 6]
    with pytest.raises(IllegalActionError):
        game.play("8♦")  # another seat's card is no foul
    game.play("-")
    assert (game.turn, texts(game.legal_cards())) == (1, "9♣")
    result = game.play("9♣").play("10♣").result()
    assert (result.reason, result.places, result.payoffs) == ("blocked", (3, 1, 2), (-1.0, 1.0, 0.0))
    assert result.cards_left == (2, 1, 1)


def test_payoffs__a_winner_owes_nothing_rather_than_minus_nothing() -> None:
    for payoff in ("cards", "points"):
        game = play_random(Game.deal(Rules.of("first_out", payoff=payoff), 1), random.Random(1))
        assert [str(paid) for paid in game.result().payoffs if paid == 0] == ["0.0"]


# --- history, copies, records ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_history__is_the_game_as_played_with_explicit_passes(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    for seed in range(6):
        game = play_random(Game.deal(rules, seed), random.Random(seed))
        spoken = Game.from_hands(Rules.of(rules, explicit_pass=True), game.dealt_masks, game.dealer)
        for seat, action in game.history:
            assert spoken.turn == seat
            spoken.play(action)
        assert spoken.result() == game.result()
        played = [action for _, action in game.history if action != rules.pass_action or rules.explicit_pass]
        assert played == game.actions


def test_history__begins_with_the_seats_that_cannot_open() -> None:
    rules = Rules.of("nine_each", num_players=3, cards_per_seat=2)
    game = Game.from_hands(rules, ["9♣ A♣", "6♣ 6♦", "7♣ 8♦"], dealer=0)
    assert game.history == ((1, 36), (2, 36))
    assert game.play("9♣").history == ((1, 36), (2, 36), (0, 3))
    assert game.result().reason == "blocked"


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_copies__continue_as_the_game_does_and_leave_it_alone(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    for seed in range(3):
        game = random_moment(rules, seed, foul_rate=0.02)
        before, position = state_bytes(game.states), game.position
        copies = [game.clone(), copy.deepcopy(game), pickle.loads(pickle.dumps(game))]
        copies += [Game.from_json(game.to_json()), Game.from_position(position)]
        for twin in copies:
            assert twin == game
            assert state_bytes(twin.states) == before
            play_random(twin, random.Random(seed))
            assert twin != game
        assert len({(state_bytes(twin.states), tuple(twin.actions)) for twin in copies}) == 1
        assert (state_bytes(game.states), game.position) == (before, position)


def test_equality__needs_the_same_rules_deal_and_actions() -> None:
    game = Game.deal("first_out", 1)
    assert game == Game.deal("first_out", 1)
    assert game != Game.deal("first_out", 2)
    assert game != Game.deal("one_loser", 1)
    assert game != Game.deal("first_out", 1).play("9♦")
    assert game != game.position
    with pytest.raises(TypeError, match="unhashable"):
        hash(game)


def test_equality__looks_at_facts_and_not_at_padding() -> None:
    game = Game.deal("first_out", 1)
    memory: Any = np.full(STATE_DTYPE.itemsize, 255, np.uint8)  # NumPy copies fields and leaves what lies between
    record = memory.view(STATE_DTYPE)
    record[0] = game.states[0]
    assert Game(game.rules, record) == game == game.clone()


def test_json__records_what_a_replay_needs() -> None:
    game = Game.deal("bank", 4).play("9♦")
    content = json.loads(game.to_json())
    assert list(content) == ["format", "rules", "fingerprint", "dealer", "hands", "actions"]
    assert content["actions"] == ["9♦"]
    assert content["rules"] == game.rules.to_dict()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", 2, "format 1"),
        ("format", None, "format 1"),
        ("rules", {"preset": "poker"}, "poker"),
        ("rules", None, "rules must be"),
        ("rules", {"preset": "one_loser"}, "played under rules"),
        ("fingerprint", "0" * 16, "played under rules 0000"),
        ("dealer", 9, "dealer must be .* at most 5, not 9"),
        ("dealer", None, "dealer"),
        ("dealer", "3", "dealer must be a whole number .* not '3'"),
        ("hands", [], "0 hands"),
        ("hands", None, "hands"),
        ("hands", [None, None, None, None], r"hands\[0\] must be a text"),
        ("rules", {"preset": "x" * 10_000}, "unknown rules preset 'x+…$"),
        ("hands", ["6♣", "7♣", "8♣", "9♣"], "whole pack"),
        ("hands", ["1♣", "7♣", "8♣", "9♣"], "'1♣' is not a card"),
        ("actions", ["6♣"], "illegal action 6♣"),
        ("actions", ["9♦", "9♦"], "illegal action 9♦"),
        ("actions", ["?"], "not a card"),
        ("actions", None, "actions"),
        ("actions", "", "actions"),
        ("actions", [None], r"actions\[0\] must be a text"),
    ],
)
def test_from_json__refuses_a_damaged_record(field: str, value: Any, message: str) -> None:
    content = json.loads(Game.deal("first_out", 4).to_json())
    assert Game.from_json(json.dumps(content)) == Game.deal("first_out", 4)
    with pytest.raises(ValueError, match=message):
        Game.from_json(json.dumps(content | {field: value}))
    del content[field]
    with pytest.raises(ValueError, match="format" if field == "format" else f"lacks {field}"):
        Game.from_json(json.dumps(content))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", '"game"'])
def test_from_json__refuses_what_is_no_record(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|format 1"):
        Game.from_json(text)


def test_view__refuses_a_seat_that_does_not_exist() -> None:
    for seat in (-1, 4, 6):
        with pytest.raises(ValueError, match=f"seat must be 0 to 3, not {seat}"):
            Game.deal("first_out", 1).view(seat)


# --- matches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "seats"), [("round", 5), ("round", 3), ("first_out", 4), ("bank", 6)])
def test_match__plays_the_deals_of_the_seed_and_adds_up_the_payoffs(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    match, totals = Match(rules, seed=7, index=3), [0.0] * seats
    rng = random.Random(seats)
    for number in range(rules.deals):
        assert not match.is_over
        assert match.deal_number == number
        assert match.game == Game.deal(rules, 7, 3 * rules.deals + number)
        assert match.game.dealer == (seats - 1 + number) % seats
        sizes = [36 // seats + ((seat - match.game.dealer - 1) % seats < 36 % seats) for seat in range(seats)]
        assert [len(hand) for hand in match.game.hands] == sizes
        with pytest.raises(ValueError, match="the deal is not over"):
            match.next_deal()
        payoffs = play_random(match.game, rng).result().payoffs
        totals = [total + payoff for total, payoff in zip(totals, payoffs, strict=True)]
        assert (match.next_deal() is None) == (number == rules.deals - 1)
        assert match.totals == pytest.approx(totals)
    assert match.is_over
    assert match.places() == tuple(1 + sum(other > mine + 1e-9 for other in totals) for mine in totals)
    with pytest.raises(ValueError, match="is over"):
        match.next_deal()


def test_match__equal_totals_share_a_place_whatever_the_order_of_the_payoffs() -> None:
    rules = Rules.of("first_out", deals=4)  # a win pays 1, a loss -1/3: sums that floats round by order
    for index in range(30):
        match, exact = Match(rules, 0, index), [Fraction(0)] * 4
        while not match.is_over:
            winner = play_random(match.game, random.Random(index)).result().winners[0]
            exact = [total + (1 if seat == winner else Fraction(-1, 3)) for seat, total in enumerate(exact)]
            match.next_deal()
        assert match.places() == tuple(1 + sum(other > mine for other in exact) for mine in exact), match.totals
