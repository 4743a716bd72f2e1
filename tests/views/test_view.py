"""`PlayerView`: what a seat may know, no less, and nothing that depends on cards it cannot know."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from devyatka_env.engine import STATE_DTYPE, rules_record
from devyatka_env.engine.calls import fitting_at
from devyatka_env.games import Deals, Game
from devyatka_env.rules import Rules, to_mask
from devyatka_env.views import PlayerView
from devyatka_env.views.observation import encode_at, observation_layout
from tests.helpers.games import COMBINATIONS, card_ids, play_random, random_moment, state_bytes
from tests.helpers.redeal import redeal

FOUL_RATE = 0.03


def encoded(game: Game, seat: int) -> tuple[bytes, bytes]:
    """The observation and the action mask of a seat."""
    num_cards = game.rules.deck.num_cards
    observation = np.zeros(observation_layout(num_cards).size, np.int8)
    mask = np.zeros(num_cards + 1, np.int8)
    encode_at(game.states, 0, rules_record(game.rules), seat, observation, mask)
    return observation.tobytes(), mask.tobytes()


def replayed(game: Game, hands: list[int]) -> Game | None:
    """The game's actions from other dealt hands; ``None`` where they break the rules there."""
    twin = Game.from_hands(game.rules, hands, game.dealer)
    try:
        for action in game.actions:
            twin.play(action)
    except ValueError:
        return None
    return twin


# --- hidden cards change nothing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_view__does_not_depend_on_how_the_hidden_cards_lie(preset: str, seats: int) -> None:
    rules, changed = Rules.of(preset, num_players=seats), 0
    for seed in range(30):
        game = random_moment(rules, seed, FOUL_RATE)
        for seat in range(seats):
            other = redeal(game, seat, random.Random(seed))
            changed += other.hand_masks != game.hand_masks
            view = game.view(seat)
            assert other.view(seat) == view
            assert state_bytes(other.view(seat).record) == state_bytes(view.record)
            assert encoded(other, seat) == encoded(game, seat)
            for asked in range(seats):
                assert other.view(seat).could_hold_mask(asked) == view.could_hold_mask(asked)
    # Two seats without cards out of play hide nothing from each other; elsewhere most moments can lie otherwise.
    if seats > 2 or rules.cards_per_seat is not None:
        assert changed > 30 * seats / 2


@pytest.mark.parametrize(("preset", "seats"), [pair for pair in COMBINATIONS if pair[1] > 2 or pair[0] == "nine_each"])
def test_view__of_whole_games_that_differ_in_hidden_cards_alone_is_the_same(preset: str, seats: int) -> None:
    """The other deal is played from its start: what looks alike now has looked alike at every earlier moment."""
    rules, compared = Rules.of(preset, num_players=seats), 0
    for seed in range(8):
        game = random_moment(rules, seed)
        seat = seed % seats
        other = redeal(game, seat, random.Random(seed))
        twin = replayed(game, list(other.dealt_masks))
        assert twin is not None, "the actions so far can have led to the other deal too"
        assert twin.hand_masks == other.hand_masks
        for plies in range(len(game.actions) + 1):
            moments = []
            for hands in (game.dealt_masks, twin.dealt_masks):
                moment = Game.from_hands(rules, hands, game.dealer)
                for action in game.actions[:plies]:
                    moment.play(action)
                moments.append((state_bytes(moment.view(seat).record), encoded(moment, seat)))
            assert moments[0] == moments[1]
        compared += twin.hand_masks != game.hand_masks
    assert compared >= 4  # of 8: the worlds compared were mostly different ones


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_view__record_holds_no_other_hand_and_nobody_elses_legal_cards(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    for seed in range(6):
        game = random_moment(rules, seed, FOUL_RATE)
        full = game.states
        for seat in range(seats):
            record = game.view(seat).record
            hands = record["hands"][0].tolist()
            assert hands == [game.hand_masks[seat] if other == seat else 0 for other in range(6)]
            assert int(record["legal"][0]) == (game.legal_mask if seat == game.turn else 0)
            public = [name for name in STATE_DTYPE.names or () if name not in ("hands", "legal")]
            for name in public:
                assert record[name].tobytes() == full[name].tobytes(), name


def test_view__is_a_copy_that_later_play_does_not_touch() -> None:
    game = Game.deal("first_out", 1)
    view = game.view(1)
    before = state_bytes(view.record)
    game.play("9♦")
    assert state_bytes(view.record) == before
    assert game.view(1) != view


# --- what passes prove -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_could_hold__never_rules_out_a_card_that_is_held(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    ruled_out = 0
    for seed in range(4):
        game, rng = Game.deal(rules, seed), random.Random(seed)
        while not game.is_over:
            for viewer in range(seats):
                view = game.view(viewer)
                for seat, hand in enumerate(game.hand_masks):
                    possible = view.could_hold_mask(seat)
                    assert hand & ~possible == 0
                    assert not hand & view.cannot_hold_masks[seat]
                    assert possible == hand if seat == viewer else possible & ~view.unseen_mask == 0
                    ruled_out += (view.unseen_mask & ~possible).bit_count() if hand and seat != viewer else 0
            play_random(game, rng, 1, FOUL_RATE)
    # Some pass proved something, but for two seats without cards out of play: the other one holds all that is unseen.
    assert (ruled_out > 0) == (seats > 2 or rules.cards_per_seat is not None)


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_cannot_hold__is_what_the_history_proves_and_no_more(preset: str, seats: int) -> None:
    """Each pass rules out the cards that fitted then; the opening move rules its card out for all but the opener."""
    rules = Rules.of(preset, num_players=seats)
    for seed in range(6):
        game = random_moment(rules, seed)
        proved = [0] * seats
        if rules.opening == "holder":
            opener = next(seat for seat, hand in enumerate(game.dealt_masks) if hand >> rules.opening_card & 1)
            proved = [0 if seat == opener else 1 << rules.opening_card for seat in range(seats)]
        spoken = Game.from_hands(Rules.of(rules, explicit_pass=True), game.dealt_masks, game.dealer)
        for seat, action in game.history:
            if action == rules.pass_action:
                proved[seat] |= spoken.view(seat).fitting_mask
            spoken.play(action)
        assert list(game.view(0).cannot_hold_masks) == proved


@pytest.mark.parametrize("preset", ["one_loser", "any_nine"])
def test_could_hold__of_a_seat_that_went_out_is_empty(preset: str) -> None:
    game, rng = Game.deal(preset, 3), random.Random(3)
    while 0 not in game.record["cards_left"][:4].tolist():
        play_random(game, rng, 1)
    out = game.record["cards_left"].tolist().index(0)
    for viewer in range(4):
        view = game.view(viewer)
        assert view.unseen_mask & ~view.cannot_hold_masks[out]  # passes alone do not rule everything out
        for seat in range(4):
            assert (view.could_hold_mask(seat) == 0) == (seat == out)


@pytest.mark.parametrize("seat", [-1, 4, 6, 100])
def test_could_hold__refuses_a_seat_that_does_not_exist(seat: int) -> None:
    with pytest.raises(ValueError, match=f"seat must be 0 to 3, not {seat}"):
        Game.deal("first_out", 1).view(0).could_hold_mask(seat)


# --- the properties of a view ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_view__properties_say_what_the_game_knows(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    for seed in range(6):
        game = random_moment(rules, seed, FOUL_RATE)
        record = game.record
        deck = rules.deck
        for seat in range(seats):
            view = game.view(seat)
            assert (view.num_players, view.seat, view.rules) == (seats, seat, rules)
            assert view.hand_mask == game.hand_masks[seat]
            assert view.hand == game.hands[seat]
            assert view.table_mask == game.table_mask
            assert (view.turn, view.is_over, view.dealer) == (game.turn, game.is_over, game.dealer)
            assert view.opener == int(record["opener"])
            mine = game.legal_actions() if seat == game.turn else [rules.pass_action]
            assert view.legal_actions() == mine
            assert card_ids(view.legal_mask) == [action for action in mine if action != rules.pass_action]
            counts: dict[str, tuple[int, ...]] = {
                "cards_left": view.cards_left,
                "passes": view.passes,
                "status": view.status,
                "played": view.played_masks,
            }
            for name, values in counts.items():
                assert values == tuple(record[name].tolist()[:seats])
            assert view.unseen_mask == deck.mask & ~view.table_mask & ~view.hand_mask
            laid = [deck.card_id(card) for card in view.laid]
            assert to_mask(laid) == game.table_mask
            assert [action for action in game.actions if action in laid] == laid
            assert deck.text(view.hand_mask) in repr(view)
            assert view.fitting_mask == int(fitting_at(game.states, 0, rules_record(rules)))


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_opener__is_the_holder_or_the_seat_that_lays_the_first_card(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    for seed in range(4):
        game = Game.deal(rules, seed)
        assert game.view(0).opener == (game.turn if rules.opening == "holder" else -1)
        if rules.foul == "exclude" and seats > 2:
            game.play(rules.pass_action)  # the holder fouls: somebody else will open
        first = game.turn
        game.play(game.legal_actions()[0])
        while len(game.view(0).laid) == 0:
            first = game.turn
            game.play(game.legal_actions()[0])
        assert game.view(0).opener == first
        assert play_random(game, random.Random(seed)).view(0).opener == first


def test_view__after_the_end_offers_pass_alone() -> None:
    game = play_random(Game.deal("first_out", 1), random.Random(1))
    for seat in range(4):
        view = game.view(seat)
        assert (view.is_over, view.turn, view.legal_mask, view.legal_actions()) == (True, -1, 0, [36])


def test_equality__needs_the_same_seat_rules_and_knowledge() -> None:
    game = Game.deal("first_out", 1)
    assert game.view(0) == game.view(0)
    assert game.view(0) != game.view(1)
    assert game.view(0) != Game.deal("first_out", 2).view(0)
    assert game.view(0) != Game.deal("first_out_passes", 1).view(0)
    assert game.view(0) != game
    with pytest.raises(TypeError, match="unhashable"):
        hash(game.view(0))


def test_equality__looks_at_facts_and_not_at_padding() -> None:
    """Records of a batch come from used memory: what lies between the fields is anything."""
    rules = Rules.of("first_out")
    game = Game.deal(rules, 2, 5)
    memory: Any = np.full(STATE_DTYPE.itemsize, 255, np.uint8)
    record = memory.view(STATE_DTYPE)
    record[0] = Deals(rules, np.array([5]), seed=2).views(np.array([0]))[0]
    assert PlayerView(record, rules, game.turn) == game.view(game.turn)
