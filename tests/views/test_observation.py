"""Observations and states: the compiled encoders against a naive one, the layout tables, their words and hashes."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from devyatka_env.engine import rules_record
from devyatka_env.games import Deals, Game
from devyatka_env.rules import Rules
from devyatka_env.rules.rule_set import PAYOFFS
from devyatka_env.views import PlayerView, describe
from devyatka_env.views.observation import (
    FLAGS,
    LAYOUT_VERSION,
    Int8Array,
    Layout,
    encode_at,
    encode_movers,
    encode_seats,
    encode_state_at,
    observation_layout,
    state_layout,
)
from tests.helpers.games import COMBINATIONS, choose_rules, play_random, random_moment

FOUL_RATE = 0.03
LAYOUTS = [observation_layout(36), observation_layout(52), state_layout(36), state_layout(52)]
# A checkpoint names the hash of its layout and loads under no other: change one only together with LAYOUT_VERSION.
HASHES = {
    ("observation", 36): "04094ff7ec4a7aa9",
    ("observation", 52): "30eeae0c46cfb6bc",
    ("state", 36): "d1e4bb325f4e0cde",
    ("state", 52): "52cab3a4efd097e1",
}
# The documented order: segment, rows, width (0: the deck size).
OBSERVATION = [
    ("hand", 1, 0), ("table", 1, 0), ("fitting", 1, 0), ("legal", 1, 0), ("could_hold", 5, 0), ("played", 6, 0),
    ("cards_left", 1, 6), ("passes", 1, 6), ("seats_in", 1, 6), ("seats_dealt", 1, 6), ("turn", 1, 6),
    ("rule_flags", 1, 13),
]  # fmt: skip
STATE = [
    ("hands", 6, 0), ("table", 1, 0), ("fitting", 1, 0), ("legal", 1, 0), ("undealt", 1, 0), ("played", 6, 0),
    ("cards_left", 1, 6), ("passes", 1, 6), ("seats_in", 1, 6), ("seats_dealt", 1, 6), ("turn", 1, 6),
    ("rule_flags", 1, 13),
]  # fmt: skip


# --- a naive encoder -------------------------------------------------------------------------------------------------


def rows(masks: list[int], num_rows: int, num_cards: int) -> list[list[int]]:
    """Bitboards as rows of 0 and 1, padded with empty rows."""
    padded = masks + [0] * (num_rows - len(masks))
    return [[mask >> card & 1 for card in range(num_cards)] for mask in padded]


def seats_row(values: list[int]) -> list[list[int]]:
    """One value a seat, padded to six seats."""
    return [values + [0] * (6 - len(values))]


def naive_flags(rules: Rules) -> list[list[int]]:
    """The rule flags by name."""
    facts = {
        "left_of_dealer": rules.opening == "left_of_dealer",
        "last_holder": rules.end == "last_holder",
        "explicit_pass": rules.explicit_pass,
        "exclude": rules.foul == "exclude",
        "passes_count": rules.passes_count,
        "undealt_cards": (rules.cards_per_seat or rules.deck.num_cards) * rules.num_players < rules.deck.num_cards,
    } | {f"payoff_{name}": rules.payoff == name for name in PAYOFFS}
    return [[int(facts[name]) for name in FLAGS]]


def naive_observation(view: PlayerView) -> dict[str, list[list[int]]]:
    """The observation of a view by segment, from its properties alone."""
    n, num_cards = view.num_players, view.rules.deck.num_cards
    order = [(view.seat + k) % n for k in range(n)]
    is_in = [view.status[seat] == 0 for seat in order]
    could_hold = [
        view.unseen_mask & ~view.cannot_hold_masks[seat] if view.cards_left[seat] else 0 for seat in order[1:]
    ]
    return {
        "hand": rows([view.hand_mask], 1, num_cards),
        "table": rows([view.table_mask], 1, num_cards),
        "fitting": rows([view.fitting_mask], 1, num_cards),
        "legal": rows([view.hand_mask & view.fitting_mask if is_in[0] else 0], 1, num_cards),
        "could_hold": rows(could_hold, 5, num_cards),
        "played": rows([view.played_masks[seat] for seat in order], 6, num_cards),
        "cards_left": seats_row([view.cards_left[seat] for seat in order]),
        "passes": seats_row([view.passes[seat] for seat in order]),
        "seats_in": seats_row([int(value) for value in is_in]),
        "seats_dealt": seats_row([1] * n),
        "turn": seats_row([int(view.turn == seat) for seat in order]),
        "rule_flags": naive_flags(view.rules),
    }


def naive_state(game: Game) -> dict[str, list[list[int]]]:
    """The full-information state by segment."""
    n, num_cards = game.num_players, game.rules.deck.num_cards
    views = [game.view(seat) for seat in range(n)]
    dealt = sum(game.dealt_masks)
    return {
        "hands": rows(list(game.hand_masks), 6, num_cards),
        "table": rows([game.table_mask], 1, num_cards),
        "fitting": rows([views[0].fitting_mask], 1, num_cards),
        "legal": rows([game.legal_mask], 1, num_cards),
        "undealt": rows([game.rules.deck.mask & ~dealt], 1, num_cards),
        "played": rows(list(views[0].played_masks), 6, num_cards),
        "cards_left": seats_row([len(hand) for hand in game.hands]),
        "passes": seats_row(list(views[0].passes)),
        "seats_in": seats_row([int(status == 0) for status in views[0].status]),
        "seats_dealt": seats_row([1] * n),
        "turn": seats_row([int(game.turn == seat) for seat in range(n)]),
        "rule_flags": naive_flags(game.rules),
    }


def flat(segments: dict[str, list[list[int]]], table: list[tuple[str, int, int]]) -> list[int]:
    """The vector of some segments in the documented order."""
    return [value for name, _, _ in table for row in segments[name] for value in row]


# --- the compiled encoders -------------------------------------------------------------------------------------------


def encode(game: Game, seat: int) -> tuple[Int8Array, Int8Array]:
    """Observation and action mask by the compiled encoder, into arrays that hold rubbish before."""
    num_cards = game.rules.deck.num_cards
    observation = np.full(observation_layout(num_cards).size, -7, np.int8)
    mask = np.full(num_cards + 1, -7, np.int8)
    encode_at(game.states, 0, rules_record(game.rules), seat, observation, mask)
    return observation, mask


def encode_full(game: Game) -> Int8Array:
    """The state vector by the compiled encoder, into an array that holds rubbish before."""
    state = np.full(state_layout(game.rules.deck.num_cards).size, -7, np.int8)
    encode_state_at(game.states, 0, rules_record(game.rules), state)
    return state


def assert_encodes(game: Game) -> None:
    """Observations of every seat, their masks and the state are the naive ones, within their bounds."""
    layout, full = observation_layout(game.rules.deck.num_cards), state_layout(game.rules.deck.num_cards)
    for seat in range(game.num_players):
        observation, mask = encode(game, seat)
        assert observation.tolist() == flat(naive_observation(game.view(seat)), OBSERVATION), (seat, game.position)
        assert ((observation >= 0) & (observation <= layout.high)).all()
        legal = game.legal_actions() if seat == game.turn else [game.rules.pass_action]
        assert np.flatnonzero(mask).tolist() == legal
        assert {*mask.tolist()} <= {0, 1}
    state = encode_full(game)
    assert state.tolist() == flat(naive_state(game), STATE), game.position
    assert ((state >= 0) & (state <= full.high)).all()


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_encoders__agree_with_the_naive_encoder_in_every_preset(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    for seed in range(4):
        assert_encodes(random_moment(rules, seed, FOUL_RATE))


@pytest.mark.parametrize("seed", range(40))
def test_encoders__agree_with_the_naive_encoder_under_any_rule_set_to_the_end(seed: int) -> None:
    rng = random.Random(seed)
    game = Game.deal(choose_rules(rng.choice), seed)
    assert_encodes(game)
    while not game.is_over:
        assert_encodes(play_random(game, rng, 3, FOUL_RATE))


def test_action_mask__after_the_end_is_pass_for_every_seat() -> None:
    game = play_random(Game.deal("one_loser", 1), random.Random(1))
    for seat in range(4):
        observation, mask = encode(game, seat)
        assert np.flatnonzero(mask).tolist() == [36]
        assert not observation_layout(36).split(observation)["turn"].any()


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_batch_encoders__give_the_rows_of_the_single_encoder(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    games = [random_moment(rules, seed) for seed in range(5)]
    games.append(play_random(Game.deal(rules, 9), random.Random(9)))
    states = np.concatenate([game.states for game in games])
    shapes = (len(games), observation_layout(rules.deck.num_cards).size), (len(games), rules.deck.num_cards + 1)
    chosen = np.array([(3 * index) % seats for index in range(len(games))])
    movers = np.array([max(game.turn, 0) for game in games])  # a game that is over shows seat 0
    for seats_asked, encoder in ((movers, None), (chosen, encode_seats)):
        out, masks = np.full(shapes[0], -7, np.int8), np.full(shapes[1], -7, np.int8)
        if encoder is None:
            encode_movers(states, rules_record(rules), out, masks)
        else:
            encoder(states, rules_record(rules), seats_asked, out, masks)
        for index, seat in enumerate(seats_asked.tolist()):
            observation, mask = encode(games[index], seat)
            assert out[index].tolist() == observation.tolist()
            assert masks[index].tolist() == mask.tolist()


def test_batch_game__observations_are_those_of_its_games() -> None:
    rules = Rules.of("any_nine", num_players=3)
    batch = Deals(rules, np.arange(6), seed=4)
    which, seats = np.array([5, 1, 1]), np.array([0, 2, 1])
    for asked in (None, seats):
        observations, masks = batch.observations(which, asked)
        assert (observations.dtype, masks.dtype) == (np.int8, np.int8)
        for row, index in enumerate(which.tolist()):
            game = Game.deal(rules, 4, index)
            observation, mask = encode(game, game.turn if asked is None else int(seats[row]))
            assert observations[row].tolist() == observation.tolist()
            assert masks[row].tolist() == mask.tolist()


# --- the layout tables -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout.kind}-{layout.num_cards}")
def test_layout__slices_cover_the_vector_in_the_documented_order(layout: Layout) -> None:
    table = OBSERVATION if layout.kind == "observation" else STATE
    shapes = [(name, num_rows, width or layout.num_cards) for name, num_rows, width in table]
    assert [(s.name, s.rows, s.width) for s in layout.segments] == shapes
    places = list(layout.slices.values())
    assert places[0].start == 0
    assert all(one.stop == other.start for one, other in pairwise(places))
    assert places[-1].stop == layout.size == len(layout.high) == sum(r * width for _, r, width in shapes)
    for segment in layout.segments:
        assert set(layout.high[layout.slices[segment.name]].tolist()) == {segment.high}
    assert layout.high.dtype == np.int8


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout.kind}-{layout.num_cards}")
def test_layout__split_and_markdown_follow_the_table(layout: Layout) -> None:
    vector = np.arange(layout.size) % 100
    parts = layout.split(vector.astype(np.int8))
    assert np.concatenate([part.ravel() for part in parts.values()]).tolist() == vector.tolist()
    lines = layout.markdown().splitlines()[2:]
    assert len(lines) == len(layout.segments)
    for line, segment in zip(lines, layout.segments, strict=True):
        place = layout.slices[segment.name]
        for text in (f"`{segment.name}`", f"{place.start}–{place.stop - 1}", f"0–{segment.high}", segment.meaning):
            assert text in line
    for shape in ((layout.size - 1,), (layout.size + 1,), (1, layout.size)):
        with pytest.raises(ValueError, match=rf"layout has shape \({layout.size},\), not"):
            layout.split(np.zeros(shape, np.int8))


def test_layout__hashes_are_frozen() -> None:
    assert LAYOUT_VERSION == 1
    assert {(layout.kind, layout.num_cards): layout.hash for layout in LAYOUTS} == HASHES
    assert len({*HASHES.values()}) == 4


# --- in words --------------------------------------------------------------------------------------------------------


def test_describe__says_what_the_seat_sees() -> None:
    rules = "one_loser num_players=3 num_suits=2 ranks=89TJ"
    game = Game.from_position(f"{rules} | dealer 2 | 8♣ 9♦ J♦ / 9♣ 8♦ 10♦ / 10♣ J♣ | 9♦ 8♦")
    assert (game.turn, game.view(2).passes) == (1, (1, 0, 1))
    assert describe(encode(game, 0)[0], game.rules).splitlines() == [
        "hand: 8♣ J♦",
        "table: 8♦ 9♦",
        "fitting: 9♣ 10♦",
        "legal: -",
        "could_hold: [0] 9♣ 10♣ J♣ 10♦; [1] 10♣ J♣",
        "played: [0] 9♦; [1] 8♦",
        "cards_left: 2 2 2 0 0 0",
        "passes: 1 0 1 0 0 0",
        "seats_in: 1 1 1 0 0 0",
        "seats_dealt: 1 1 1 0 0 0",
        "turn: 0 1 0 0 0 0",
        "rule_flags: last_holder payoff_lose",
    ]
    state = state_layout(8).describe(encode_full(game), game.rules).splitlines()
    assert state[:5] == [
        "hands: [0] 8♣ J♦; [1] 9♣ 10♦; [2] 10♣ J♣",
        "table: 8♦ 9♦",
        "fitting: 9♣ 10♦",
        "legal: 9♣ 10♦",
        "undealt: -",
    ]


def test_describe__counts_stay_counts_in_a_deck_of_six_cards() -> None:
    # A deck as large as the number of seats: a row of counts is no row of cards there.
    game = Game.from_position("first_out num_players=2 num_suits=2 ranks=89T | dealer 1 | 8♣ 9♣ 9♦ / 10♣ 8♦ 10♦ |")
    words = describe(encode(game, 1)[0], game.rules)
    assert "cards_left: 3 3 0 0 0 0" in words
    assert "turn: 0 1 0 0 0 0" in words


def test_describe__refuses_a_vector_of_another_length_or_deck() -> None:
    observation, _ = encode(Game.deal("first_out", 1), 0)
    with pytest.raises(ValueError, match="shape"):
        describe(observation[:-1], "first_out")
    with pytest.raises(ValueError, match="shape"):
        describe(observation, "deck_52")
    with pytest.raises(ValueError, match="36 cards cannot describe a deck of 52"):
        observation_layout(36).describe(observation, Rules.of("deck_52"))
