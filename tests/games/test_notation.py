"""Position lines and the drawn table: whatever a game writes, it reads back."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devyatka_env.games import Game, IllegalActionError, PositionTextError
from devyatka_env.games.game import DealError
from devyatka_env.games.notation import action_text, draw_table, parse_action, parse_position
from devyatka_env.rules import CardTextError, Rules, RulesError
from tests.helpers.games import COMBINATIONS, play_random, rule_sets, state_bytes

# Two suits of 8 9 10 for two seats; 9♦ opens.
TINY = "first_out num_players=2 num_suits=2 ranks=89T | dealer 1 | 9♣ 8♦ 9♦ / 8♣ 10♣ 10♦ | 9♦ 10♦"
SEEDS = st.integers(0, 2**64 - 1)


# --- position lines --------------------------------------------------------------------------------------------------


@given(st.sampled_from(COMBINATIONS), SEEDS, st.integers(0, 60))
def test_position__of_any_moment_of_any_preset_reads_back(combination: tuple[str, int], seed: int, plies: int) -> None:
    preset, seats = combination
    game = Game.deal(Rules.of(preset, num_players=seats), seed, index=seed % 7)
    assert_reads_back(play_random(game, random.Random(seed), plies, foul_rate=0.05))


@given(rule_sets(), SEEDS, st.integers(0, 60))
def test_position__of_any_moment_of_any_rule_set_reads_back(rules: Rules, seed: int, plies: int) -> None:
    game = Game.deal(rules, seed, index=seed % 7)
    assert_reads_back(play_random(game, random.Random(seed), plies, foul_rate=0.05))


def assert_reads_back(game: Game) -> None:
    """The position line is one line and gives the same game again, with the same line."""
    line = game.position
    twin = Game.from_position(line)
    assert "\n" not in line
    assert twin.rules == game.rules
    assert twin.actions == game.actions
    assert state_bytes(twin.states) == state_bytes(game.states)
    assert twin.position == line
    assert repr(game) == f"<Game {line}>"


def test_position__has_four_fields_as_a_person_would_write_them() -> None:
    game = Game.from_position(TINY)
    assert (game.turn, game.dealer, game.actions) == (0, 1, [4, 5])
    assert game.position == TINY
    loose = "first_out  num_suits=2 ranks=89T num_players=2|dealer 1|9D,8d 9♣/8C TC TD|9d  10D"
    assert Game.from_position(loose).position == TINY


def test_position__without_actions_and_with_explicit_passes() -> None:
    start = TINY[: TINY.rindex("|") + 1]
    assert Game.from_position(start).position == start
    rules = "first_out num_players=2 num_suits=2 ranks=89T explicit_pass=True"
    stuck = f"{rules} | dealer 1 | 9♣ 9♦ 10♦ / 8♣ 10♣ 8♦ | 9♦ 8♦ 10♦ -"
    game = Game.from_position(stuck)
    assert (game.turn, game.actions[-1], game.record["passes"].tolist()[:2]) == (0, 6, [0, 1])
    assert game.position == stuck


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("", PositionTextError, "4 fields.*found 1"),
        ("first_out", PositionTextError, "4 fields.*found 1"),
        (TINY + " | ", PositionTextError, "4 fields.*found 5"),
        (TINY.replace("first_out", "poker"), RulesError, "preset 'poker'"),
        (TINY.replace("ranks", "rank"), RulesError, "field 'rank'"),
        (TINY.replace("num_players=2", "num_players=9"), RulesError, "num_players"),
        (TINY.replace("dealer 1", "1"), PositionTextError, "second field must be 'dealer N', not '1'"),
        (TINY.replace("dealer 1", "dealer -1"), PositionTextError, "second field must be 'dealer N'"),
        (TINY.replace("dealer 1", ""), PositionTextError, "second field must be 'dealer N', not ''"),
        (TINY.replace("dealer 1", "dealer 2"), DealError, "dealer must be a seat, 0 to 1, not 2"),
        (TINY.replace("8♣", "1♣"), PositionTextError, "hands: '1♣' is not a card"),
        (TINY.replace("8♣", "7♣"), PositionTextError, "hands: 7♣ is not in this deck"),
        (TINY.replace("8♣", "10♣"), PositionTextError, "hands: 10♣ stands twice"),
        (TINY.replace("8♣", "9♣"), DealError, "9♣ dealt twice"),
        (TINY.replace(" / ", " "), DealError, "1 hands for num_players=2"),
        (TINY.replace("8♣ ", ""), DealError, "missing: 8♣"),
        (TINY + " ?", PositionTextError, "actions: '\\?' is not a card"),
        (TINY + " 7♦", PositionTextError, "actions: 7♦ is not in this deck"),
        (TINY + " 8♣", IllegalActionError, "illegal action 0 \\(8♣\\); legal: 9♣ 8♦"),
        (TINY + " -", IllegalActionError, "illegal action 6 \\(-\\); legal: 9♣ 8♦"),
        (TINY[TINY.index(" | ") :], (PositionTextError, RulesError), "rules|preset"),
    ],
)
def test_from_position__refuses_and_names_the_field(line: str, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        Game.from_position(line)


def test_parse_position__reads_without_judging_whether_it_happened() -> None:
    position = parse_position(TINY + " 8♣")
    assert position.hands == (0b011010, 0b100101)
    assert (position.dealer, position.actions) == (1, (4, 5, 0))
    assert position.rules == Rules.of({"num_suits": 2, "ranks": "89T", "num_players": 2})


# --- actions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["first_out", "deck_52", "sevens"])
def test_action_text__of_every_action_reads_back(preset: str) -> None:
    rules = Rules.of(preset)
    written = [action_text(action, rules) for action in range(rules.pass_action + 1)]
    assert [parse_action(text, rules) for text in written] == list(range(rules.pass_action + 1))
    assert written[-1] == "-"
    assert parse_action(" Pass ", rules) == rules.pass_action


@pytest.mark.parametrize("text", ["", "--", "passes", "36", "9"])
def test_parse_action__refuses_what_is_neither_card_nor_pass(text: str) -> None:
    with pytest.raises(CardTextError, match="is not a card"):
        parse_action(text, Rules.of("first_out"))


# --- the drawn table -------------------------------------------------------------------------------------------------


def test_str__draws_rows_seats_and_the_end() -> None:
    game = Game.from_position(TINY)
    assert str(game) == (
        "♣  ·  ·  ·\n"
        "♦  ·  9 10\n"
        ">seat 0  2 cards   0 passes   9♣ 8♦\n"
        " seat 1  2 cards   0 passes   8♣ 10♣"
    )  # fmt: skip
    assert str(game.play("8♦").play("9♣")) == (
        "♣  ·  9  ·\n"
        "♦  8  9 10\n"
        " seat 0  0 cards   0 passes   out, place 1\n"
        " seat 1  2 cards   1 pass     place 2  8♣ 10♣\n"
        "The deal is over (out)."
    )  # fmt: skip


def test_str__marks_an_excluded_seat() -> None:
    rules = "winner_and_loser num_players=3 num_suits=2 ranks=89T"
    game = Game.from_position(f"{rules} | dealer 2 | 8♣ 9♦ / 9♣ 8♦ / 10♣ 10♦ | -")
    assert str(game).splitlines()[2:] == [
        " seat 0  2 cards   0 passes   excluded  8♣ 9♦",
        ">seat 1  2 cards   0 passes   9♣ 8♦",
        " seat 2  2 cards   0 passes   10♣ 10♦",
    ]


@given(st.sampled_from(COMBINATIONS), SEEDS, st.integers(0, 30))
def test_draw_table__of_a_view_shows_the_own_hand_alone(combination: tuple[str, int], seed: int, plies: int) -> None:
    preset, seats = combination
    game = play_random(Game.deal(Rules.of(preset, num_players=seats), seed), random.Random(seed), plies)
    seat = seed % seats
    lines = draw_table(game.view(seat).record[0], game.rules).splitlines()
    full: list[Any] = str(game).splitlines()
    first = game.rules.num_suits
    assert lines[:first] == full[:first]
    for other in range(seats):
        cards = game.rules.deck.text(game.hand_masks[other])
        expected = full[first + other] if other == seat else full[first + other].removesuffix(cards).rstrip()
        assert lines[first + other] == expected
