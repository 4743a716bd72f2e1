"""`Deals`: many deals at once, each of them exactly the `Game` of its seed and index."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from devyatka_env.engine import STATE_DTYPE
from devyatka_env.games import Deals, Game
from devyatka_env.rules import Rules
from tests.helpers.games import COMBINATIONS, choose_rules, fouls, play_random, state_bytes

ALL = np.arange(4)


def assert_same_states(batch: Deals, games: list[Game]) -> None:
    """Every record of the batch is that of its game."""
    for index, game in enumerate(games):
        assert state_bytes(batch.states[index : index + 1]) == state_bytes(game.states), (index, game.position)


def guarded_batch(preset: str = "first_out") -> Deals:
    """Four games amid twelve records, so that a stray write lands in the guards beside them and can be seen."""
    batch = Deals(Rules.of(preset), ALL, seed=3)
    memory, indices = np.zeros(12, STATE_DTYPE), np.zeros(12, np.uint64)
    memory["turn"] = -1
    memory[4:8], indices[4:8] = batch.states, batch.indices
    batch.states, batch.indices = memory[4:8], indices[4:8]
    return batch


# --- the same games as one by one ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_step__plays_the_games_of_the_same_seed(preset: str, seats: int) -> None:
    """Random subsets of the batch move, so that its games drift apart in length; fouls included."""
    rules, rng = Rules.of(preset, num_players=seats), random.Random(f"{preset} {seats}")
    indices = np.array([0, 1, 2**40, 7, 7, 2**63], np.uint64)
    batch = Deals(rules, indices, seed=2**64 - 1)
    games = [Game.deal(rules, 2**64 - 1, int(index)) for index in indices]
    assert_same_states(batch, games)
    while not all(game.is_over for game in games):
        running = [index for index, game in enumerate(games) if not game.is_over]
        which = rng.sample(running, rng.randint(1, len(running)))
        actions = []
        for index in which:
            wrong = fouls(games[index]) if rng.random() < 0.03 else []
            actions.append(rng.choice(wrong or games[index].legal_actions()))
            games[index].play(actions[-1])
        batch.step(np.array(which), np.array(actions))
        assert_same_states(batch, games)
        assert batch.turns.tolist() == [game.turn for game in games]
    payoffs = batch.payoffs(np.arange(len(games)))
    assert payoffs.shape == (6, 6)
    assert payoffs[:, :seats].tolist() == [list(game.result().payoffs) for game in games]
    assert not payoffs[:, seats:].any()


def test_deal__replaces_the_games_named_and_no_others() -> None:
    rules = Rules.of("round", num_players=5)
    batch = Deals(rules, np.arange(5), seed=6)
    batch.step(np.array([0]), np.array([Game.deal(rules, 6, 0).legal_actions()[0]]))
    batch.deal(np.array([3, 1]), np.array([100, 2]))
    assert batch.indices.tolist() == [0, 2, 2, 100, 4]
    first = Game.deal(rules, 6, 0)
    first.play(first.legal_actions()[0])
    assert_same_states(batch, [first, *(Game.deal(rules, 6, index) for index in (2, 2, 100, 4))])
    batch.deal(np.array([0]))
    assert_same_states(batch, [Game.deal(rules, 6, index) for index in (0, 2, 2, 100, 4)])
    assert len(batch) == 5


@pytest.mark.parametrize("seed", range(60))
def test_play_forced__stops_at_a_choice_or_the_end(seed: int) -> None:
    rng = random.Random(seed)
    rules = choose_rules(rng.choice)
    batch, games = Deals(rules, ALL, seed), [Game.deal(rules, seed, index) for index in range(4)]
    while True:
        batch.play_forced(np.array([0, 2, 3]))  # game 1 stays as it is
        for game in (games[0], games[2], games[3]):
            while len(game.legal_actions()) == 1:
                game.play(game.legal_actions()[0])
        assert_same_states(batch, games)
        assert games[1] == Game.deal(rules, seed, 1)
        choosing = [index for index in (0, 2, 3) if not games[index].is_over]
        if not choosing:
            return
        assert all(len(games[index].legal_actions()) > 1 for index in choosing)
        actions = [rng.choice(games[index].legal_actions()) for index in choosing]
        batch.step(np.array(choosing), np.array(actions))
        for index, action in zip(choosing, actions, strict=True):
            games[index].play(action)


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_views__are_what_each_mover_may_know(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    batch, games = Deals(rules, ALL, seed=8), [Game.deal(rules, 8, index) for index in range(4)]
    for index, game in enumerate(games):
        for _ in range(index * 3):
            if not game.is_over:
                batch.step(np.array([index]), np.array(game.legal_actions()[:1]))
                game.play(game.legal_actions()[0])
    which = np.array([index for index in (3, 0, 2) if not games[index].is_over])
    views = batch.views(which)
    assert views.dtype == STATE_DTYPE
    for row, index in enumerate(which.tolist()):
        seat = games[index].turn
        assert state_bytes(views[row : row + 1]) == state_bytes(games[index].view(seat).record)


# --- the random words of decisions -----------------------------------------------------------------------------------


def words_of(rules: Rules, indices: list[int], seed: int, plies: int) -> dict[tuple[int, int, int], int]:
    """The decision word at every (deal index, seat, cards laid) of the batch over some plies."""
    batch = Deals(rules, np.array(indices), seed)
    words: dict[tuple[int, int, int], int] = {}
    for _ in range(plies):
        which = np.flatnonzero(batch.turns >= 0)
        for index, word in zip(which.tolist(), batch.decision_words(which).tolist(), strict=True):
            state = batch.states[index]
            words[int(batch.indices[index]), int(state["turn"]), int(state["num_played"])] = word
        legal = batch.states["legal"][which].tolist()
        actions = [(mask & -mask).bit_length() - 1 if mask else rules.pass_action for mask in legal]
        batch.step(which, np.array(actions))
    return words


@pytest.mark.parametrize("explicit_pass", [False, True])
def test_decision_words__depend_on_deal_seat_and_cards_laid_alone(explicit_pass: bool) -> None:
    rules = Rules.of("first_out", explicit_pass=explicit_pass)  # with it, several seats decide between two cards
    together = words_of(rules, list(range(10)), 5, 12)
    assert words_of(rules, list(range(9, -1, -1)), 5, 12) == together
    alone: dict[tuple[int, int, int], int] = {}
    for index in range(10):
        alone |= words_of(rules, [index], 5, 12)
    assert alone == together
    assert len({*together.values()}) == len(together) == 120  # a repeat among 120 words of 64 bits is a fault
    other = words_of(rules, list(range(10)), 6, 1)
    assert not {*other.values()} & {*together.values()}


def test_decision_words__do_not_depend_on_what_the_cards_were() -> None:
    rules = Rules.of("first_out")
    batch = Deals(rules, np.array([2, 2]), seed=5)
    games = [Game.deal(rules, 5, 2), Game.deal(rules, 5, 2)]
    rngs = [random.Random(1), random.Random(2)]
    seen: list[dict[tuple[int, int], int]] = [{}, {}]
    while not any(game.is_over for game in games):
        words = batch.decision_words(np.arange(2)).tolist()
        actions = []
        for number, game in enumerate(games):
            seen[number][game.turn, len(game.actions)] = words[number]
            actions.append(rngs[number].choice(game.legal_actions()))
            game.play(actions[-1])
        batch.step(np.arange(2), np.array(actions))
    shared = seen[0].keys() & seen[1].keys()
    assert len(shared) >= 4  # the opening and some turns more fall to the same seats
    assert all(seen[0][key] == seen[1][key] for key in shared)
    assert games[0].actions != games[1].actions


def test_decision_words__are_fair_coins_in_every_bit() -> None:
    batch = Deals(Rules.of("first_out"), np.arange(10_000), seed=1)
    words = batch.decision_words(batch.all)
    for bit in range(64):
        heads = int((words >> np.uint64(bit) & np.uint64(1)).sum())
        assert abs(heads - 5_000) < 250  # five standard deviations of 10,000 coins, 50 heads each


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", [0, 36, 37, -1, 2**40])
def test_step__an_illegal_action_names_the_game_and_changes_none(action: int) -> None:
    batch = Deals(Rules.of("first_out"), np.array([10, 11, 12]), seed=3)
    before = state_bytes(batch.states)
    turn = Game.deal("first_out", 3, 12).turn
    message = rf"illegal action {action} in game 2 \(deal 12 of seed 3, seat {turn} to move\); legal: \[12\]"
    with pytest.raises(ValueError, match=message):
        batch.step(np.array([0, 2, 1]), np.array([12, action, 12]))
    assert state_bytes(batch.states) == before
    batch.step(np.array([0, 2, 1]), np.array([12, 12, 12]))
    assert batch.states["num_played"].tolist() == [1, 1, 1]


def test_step__on_a_finished_game_is_refused() -> None:
    rules = Rules.of("first_out")
    game = play_random(Game.deal(rules, 3, 0), random.Random(0))
    batch = Deals(rules, np.array([0, 1]), seed=3)
    for action in game.actions:
        batch.step(np.array([0]), np.array([action]))
    for action in (12, 36):
        with pytest.raises(ValueError, match=r"game 0 .*legal: \[\]"):
            batch.step(np.array([1, 0]), np.array([12, action]))
    assert batch.states["num_played"].tolist()[1] == 0
    batch.play_forced(np.array([0]))
    assert_same_states(batch, [game])


@pytest.mark.parametrize(
    "method", ["step", "deal", "play_forced", "views", "decision_words", "payoffs", "observations"]
)
@pytest.mark.parametrize("index", [4, 6, -5])
def test_which__outside_the_batch_is_refused_by_every_method(method: str, index: int) -> None:
    batch = guarded_batch()
    assert batch.states.base is not None
    memory = state_bytes(batch.states.base)
    arguments = {"step": [np.array([12])]}.get(method, [])
    with pytest.raises((ValueError, IndexError)):
        getattr(batch, method)(np.array([index]), *arguments)
    assert state_bytes(batch.states.base) == memory


def test_step__needs_one_action_for_each_game_and_each_game_once() -> None:
    batch = guarded_batch()
    before = state_bytes(batch.states)
    for which, actions in (([0, 1], [12]), ([0], [12, 12]), ([0, 1], [[12], [12]]), ([1, 1], [12, 12])):
        with pytest.raises(ValueError, match=r"actions|twice|once"):
            batch.step(np.array(which), np.array(actions))
        assert state_bytes(batch.states) == before


@pytest.mark.parametrize("seats", [[4], [-1], [6], [0, 1]])
def test_observations__refuse_seats_that_do_not_exist(seats: list[int]) -> None:
    with pytest.raises(ValueError, match="seat"):
        Deals(Rules.of("first_out"), ALL).observations(np.array([0]), np.array(seats))


def test_payoffs__of_a_game_still_on_are_refused() -> None:
    with pytest.raises(ValueError, match=r"game 2\b.*not over"):
        Deals(Rules.of("first_out"), ALL).payoffs(np.array([2]))


@pytest.mark.parametrize("bad", [[-1], [0.5]])
def test_batch_game__refuses_deal_indices_that_are_none(bad: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"index|indices"):
        Deals(Rules.of("first_out"), np.array(bad))


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, None])
def test_batch_game__refuses_a_seed_out_of_range(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed must be a whole number"):
        Deals(Rules.of("first_out"), ALL, seed)


def test_batch_game__of_no_games_does_nothing() -> None:
    batch = Deals(Rules.of("first_out"), np.array([], np.int64))
    none = np.array([], np.int64)
    batch.step(none, none)
    batch.play_forced(none)
    assert len(batch) == 0
    assert batch.payoffs(none).shape == (0, 6)
    assert batch.observations(none)[0].shape[0] == 0
