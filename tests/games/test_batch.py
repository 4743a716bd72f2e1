"""`BatchGame`: games side by side that never end, each deal of them exactly the `Game` of its seed and index."""

from __future__ import annotations

import copy
import dataclasses
import os
import random
from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from devyatka_env.engine import STATE_DTYPE, rules_record
from devyatka_env.games import BatchGame, Finished, Game
from devyatka_env.rules import PRESETS, Rules, RulesError
from devyatka_env.views.observation import Int8Array, encode_at, encode_state_at, observation_layout, state_layout
from tests.helpers.games import COMBINATIONS, card_ids, choose_rules, fouls, state_bytes

SEED = 2**64 - 1
TWO = min(2, int(numba.config.NUMBA_NUM_THREADS))  # type: ignore[attr-defined] # a machine of one core has one
ALL_FORCED = "first_out num_players=2 num_suits=2 ranks=789 starter=8 cards_per_seat=1 opening=left_of_dealer"

Numbers = NDArray[np.integer[Any]]


def seated(rules: Rules, seats: int) -> Rules:
    """The rules of a game of ``seats`` seats in a mixed batch: all else, the length of a match too, is shared."""
    return dataclasses.replace(rules, num_players=seats)


def results(finished: Finished) -> list[tuple[Any, ...]]:
    """A `Finished` as values that compare."""
    return list(zip(*(array.tolist() for array in finished), strict=True))


def random_actions(batch: BatchGame, seed: int) -> NDArray[np.int64]:
    return batch.sample_actions(np.random.default_rng(seed))


def play(batch: BatchGame, steps: int, seed: int = 0) -> list[Any]:
    """Play random legal cards, all that came back in values that compare."""
    rng, trace = np.random.default_rng(seed), []
    for _ in range(steps):
        seen = batch.observations().tobytes(), batch.action_masks().tobytes(), batch.seats().tolist()
        trace.append((*seen, results(batch.step(batch.sample_actions(rng))), state_bytes(batch.states)))
    return trace


def expected_row(game: Game, seat: int) -> tuple[Int8Array, Int8Array]:
    """Observation and mask of one game, made one by one."""
    out = np.empty(observation_layout(game.rules.pass_action).size, np.int8)
    mask = np.empty(game.rules.pass_action + 1, np.int8)
    encode_at(game.states, 0, rules_record(game.rules), seat, out, mask)
    return out, mask


# --- the same games as one by one ------------------------------------------------------------------------------------


def assert_plays_as_game(rules: Rules, players: list[int], deals: int, mixed: bool) -> None:
    """Step a batch beside `Game`s through some deals of each game, comparing everything; now and then a foul."""
    rng, size = random.Random(f"{rules} {players}"), len(players)
    batch = BatchGame(rules, size, SEED, num_players=players if mixed else None)
    dealt = list(range(size))
    games = [Game.deal(seated(rules, n), SEED, i) for i, n in enumerate(players)]
    while min(dealt) < deals * size:
        assert batch.indices.tolist() == dealt
        observations, masks = batch.observations(), batch.action_masks()
        actions = []
        for i, game in enumerate(games):
            assert state_bytes(batch.states[i : i + 1]) == state_bytes(game.states), (i, game.position)
            assert [row.tobytes() for row in expected_row(game, game.turn)] == [
                observations[i].tobytes(),
                masks[i].tobytes(),
            ]
            wrong = fouls(game) if rng.random() < 0.03 else []
            actions.append(rng.choice(wrong or game.legal_actions()))
        assert batch.seats().tolist() == [game.turn for game in games]
        assert batch.forced().tolist() == [len(game.legal_actions()) == 1 for game in games]
        finished = batch.step(np.array(actions))
        expected = []
        for i, (game, action) in enumerate(zip(games, actions, strict=True)):
            if game.play(action).is_over:
                rest = [0] * (6 - game.num_players)
                result = game.result()
                expected.append((i, dealt[i], [*result.payoffs, *rest], [*result.places, *rest]))
                dealt[i] += size
                games[i] = Game.deal(game.rules, SEED, dealt[i])
        assert results(finished) == expected


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_step__plays_the_games_of_the_same_seed(preset: str, seats: int) -> None:
    assert_plays_as_game(Rules.of(preset, num_players=seats), [seats] * 3, deals=3, mixed=False)


@pytest.mark.parametrize("preset", PRESETS)
def test_step__of_a_batch_of_mixed_seat_counts_plays_the_games_of_the_same_seed(preset: str) -> None:
    players = [n for name, n in COMBINATIONS if name == preset]
    assert_plays_as_game(Rules.of(preset), [*players, *players[::-1]], deals=2, mixed=True)


@pytest.mark.parametrize("seed", range(40))
def test_step__plays_drawn_rule_sets_like_game(seed: int) -> None:
    rules = choose_rules(random.Random(seed).choice)
    assert_plays_as_game(rules, [rules.num_players] * 2, deals=3, mixed=False)


def test_finished__arrays_have_their_shapes_and_types_and_belong_to_the_caller() -> None:
    batch = BatchGame(Rules.of("bank", num_players=3), 50, 1)
    kept, deals = [], 0
    for step in range(150):
        finished = batch.step(random_actions(batch, step))
        count = len(finished.games)
        shapes = [(array.shape, array.dtype) for array in finished]
        assert shapes == [((count,), np.int64), ((count,), np.uint64), ((count, 6), np.float64), ((count, 6), np.uint8)]
        assert (finished.games == np.sort(finished.games)).all()
        assert (finished.deals % np.uint64(50) == finished.games).all()
        assert np.abs(finished.payoffs.sum(1)).max(initial=0) < 1e-9  # a bank takes in what it pays out
        assert not finished.places[:, 3:].any()
        assert (finished.places[:, :3].min(1, initial=1) == 1).all()
        assert (batch.states["num_played"][finished.games] == 0).all()  # dealt anew
        deals += count
        kept += [(array, array.copy()) for array in finished]
    assert deals > 150
    assert all((array == then).all() for array, then in kept)


# --- what results do not depend on -----------------------------------------------------------------------------------


def play_by_deal(batch: BatchGame, deals: int) -> dict[int, Any]:
    """Play each game's lowest legal action (so that the deal decides all) until deals 0 .. ``deals`` are over."""
    found: dict[int, Any] = {}
    while not set(range(deals)) <= set(found):
        finished = batch.step(batch.action_masks().argmax(1))
        found |= {int(deal): result for _, deal, *result in results(finished)}
    return {deal: found[deal] for deal in range(deals)}


@pytest.mark.parametrize("text", ["first_out", "round num_players=5", "winner_and_loser", "any_nine deals=3"])
def test_results__do_not_depend_on_the_batch_size(text: str) -> None:
    rules = Rules.from_text(text)
    alone = play_by_deal(BatchGame(rules, 1, 9), 60)
    for size in (2, 7, 60):
        assert play_by_deal(BatchGame(rules, size, 9), 60) == alone


@pytest.mark.parametrize("size", [1, 15, 16, 333])  # fewer games than the runs that threads take, as many, more
@pytest.mark.parametrize("text", ["first_out", "winner_and_loser num_players=6"])
def test_results__do_not_depend_on_the_threads(text: str, size: int) -> None:
    one, two = (BatchGame(Rules.from_text(text), size, 4, num_threads=threads) for threads in (1, TWO))
    for _ in range(3):
        assert play(one, 30) == play(two, 30)
        assert results(one.play_forced()) == results(two.play_forced())
        assert state_bytes(one.states) == state_bytes(two.states)


def test_reset__deals_the_first_deals_again_and_those_of_another_seed() -> None:
    batch = BatchGame(Rules.of("first_out"), 20, 3)
    trace = play(batch, 60)
    batch.reset()
    assert batch.indices.tolist() == list(range(20))
    assert play(batch, 60) == trace
    batch.reset(7)
    assert batch.seed == 7
    fresh = play(BatchGame(Rules.of("first_out"), 20, 7), 60)
    assert play(batch, 60) == fresh != trace
    batch.reset()  # of the seed given last
    assert play(batch, 60) == fresh


def test_deepcopy__continues_identically_and_apart() -> None:
    batch = BatchGame(Rules.of("one_loser"), 10, 3)
    play(batch, 20)
    twin = copy.deepcopy(batch)
    ahead = play(batch, 40, seed=1)
    assert play(twin, 40, seed=1) == ahead


# --- illegal actions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", [0, 36, 37, 99, -1, 12 - 64, 2**40, -(2**40)])
def test_step__an_illegal_action_names_the_game_and_changes_none(action: int) -> None:
    batch = BatchGame(Rules.of("first_out"), 6, 3)
    before, indices = state_bytes(batch.states), batch.indices.copy()
    actions = np.full(6, 12)  # the nine of diamonds, with which every deal opens
    actions[4:] = action
    turn = Game.deal("first_out", 3, 4).turn
    message = rf"illegal action {action} in game 4 \(deal 4 of seed 3, seat {turn} to move\); legal: \[12\]"
    with pytest.raises(ValueError, match=message):
        batch.step(actions)
    assert state_bytes(batch.states) == before
    assert (batch.indices == indices).all()
    batch.step(np.full(6, 12))
    assert (batch.states["num_played"] == 1).all()


@pytest.mark.parametrize("action", [0, 36, 37, 99, -1, 12 - 64, 12 + 64, 2**40, -(2**40)])
@pytest.mark.parametrize("threads", [1, TWO])
def test_step__unchecked_leaves_the_game_of_an_illegal_action_as_it_was(action: int, threads: int) -> None:
    batch = BatchGame(Rules.of("first_out"), 20, 3, num_threads=threads)
    before = [state_bytes(batch.states[i : i + 1]) for i in range(20)]
    actions = np.full(20, 12)
    actions[7] = action
    finished = batch.step(actions, check=False)
    assert len(finished.games) == 0
    assert state_bytes(batch.states[7:8]) == before[7]
    assert (np.delete(batch.states["num_played"], 7) == 1).all()


def test_step__a_foul_is_an_action_where_the_rules_say_so() -> None:
    batch = BatchGame(Rules.of("winner_and_loser"), 3, 3)
    batch.step(np.full(3, 36))  # PASS with a card that fits
    assert (batch.states["num_excluded"] == 1).all()


@pytest.mark.parametrize(
    "actions", [[12, 12], [12, 12, 12, 12], [[12, 12, 12]], 12, [12.0, 12.0, 12.0], [True, True, True], [None] * 3]
)
@pytest.mark.parametrize("check", [True, False])
def test_step__needs_one_whole_number_a_game(actions: Any, check: bool) -> None:
    batch = BatchGame(Rules.of("first_out"), 3, 3)
    before = state_bytes(batch.states)
    with pytest.raises(ValueError, match="actions must be 3 whole numbers, not"):
        batch.step(np.array(actions), check=check)
    assert state_bytes(batch.states) == before


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_step__takes_whole_numbers_of_any_type(dtype: Any) -> None:
    batch = BatchGame(Rules.of("first_out"), 3, 3)
    batch.step(np.full(3, 12, dtype))
    assert (batch.states["num_played"] == 1).all()


# --- buffers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["observations", "action_masks"])
@pytest.mark.parametrize("text", ["first_out", "sevens num_players=2", "first_out num_suits=2 ranks=789 starter=8"])
@pytest.mark.parametrize("threads", [1, TWO])
def test_buffers__are_reused_or_the_callers_and_nothing_is_written_beside_them(
    name: str, text: str, threads: int
) -> None:
    batch = BatchGame(Rules.from_text(text), 40, num_threads=threads)
    fill = getattr(batch, name)
    own = fill()
    assert own.dtype == np.int8
    assert fill() is own
    size = own.shape[1]
    memory = np.full((44, size), 77, np.int8)
    given = memory[2:42]
    for step in range(40):
        batch.step(random_actions(batch, step))
        assert fill(given) is given
        assert (given == fill()).all()
        assert (memory[:2] == 77).all()
        assert (memory[42:] == 77).all()


@pytest.mark.parametrize("name", ["observations", "action_masks"])
def test_buffers__that_do_not_fit_are_refused_untouched(name: str) -> None:
    batch = BatchGame(Rules.of("first_out"), 4)
    fill = getattr(batch, name)
    rows, size = fill().shape
    locked = np.full((rows, size), 77, np.int8)
    locked.flags.writeable = False
    bad = [
        np.full((rows, size), 77, np.uint8),
        np.full((rows, size), 77, np.int64),
        np.full((rows - 1, size), 77, np.int8),
        np.full((rows, size + 1), 77, np.int8),
        np.full(rows * size, 77, np.int8),
        np.full((size, rows), 77, np.int8).T,
        np.full((rows, 2 * size), 77, np.int8)[:, ::2],
        locked,
    ]
    for buffer in bad:
        with pytest.raises(ValueError, match="buffer must be"):
            fill(buffer)
        assert (buffer == 77).all()


# --- forced turns ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_play_forced__stops_at_a_choice_or_at_the_start_of_the_next_deal(seed: int) -> None:
    rng = random.Random(seed)
    rules = choose_rules(rng.choice)
    batch, games = BatchGame(rules, 4, seed), [Game.deal(rules, seed, i) for i in range(4)]
    dealt = [0, 1, 2, 3]
    for _ in range(30):
        finished, expected = batch.play_forced(), []
        for i, game in enumerate(games):
            while not game.is_over and len(game.legal_actions()) == 1:
                game.play(game.legal_actions()[0])
            if game.is_over:
                rest = [0] * (6 - rules.num_players)
                expected.append((i, dealt[i], [*game.result().payoffs, *rest], [*game.result().places, *rest]))
                dealt[i] += 4
                games[i] = Game.deal(rules, seed, dealt[i])
            assert state_bytes(batch.states[i : i + 1]) == state_bytes(games[i].states)
        assert results(finished) == expected
        ended = {game for game, *_ in expected}
        assert all(not batch.forced()[i] for i in range(4) if i not in ended)
        actions = [rng.choice(game.legal_actions()) for game in games]
        batch.step(np.array(actions))
        for i, (game, action) in enumerate(zip(games, actions, strict=True)):
            if game.play(action).is_over:
                dealt[i] += 4
                games[i] = Game.deal(rules, seed, dealt[i])


def test_play_forced__of_deals_that_are_forced_throughout_ends_one_deal_a_call() -> None:
    batch = BatchGame(Rules.from_text(ALL_FORCED), 8)
    for call in range(20):
        finished = batch.play_forced()
        assert finished.games.tolist() == list(range(8))
        assert finished.deals.tolist() == list(range(8 * call, 8 * call + 8))
    assert batch.forced().all()


def test_play_forced__plays_the_passes_of_stuck_seats() -> None:
    batch = BatchGame(Rules.of("first_out", explicit_pass=True), 100)
    for step in range(12):
        batch.step(random_actions(batch, step))
    stuck = batch.states["legal"] == 0
    assert stuck.sum() >= 5
    assert batch.forced()[stuck].all()
    assert (batch.action_masks()[stuck].argmax(1) == 36).all()
    batch.play_forced()
    assert not batch.forced().any()  # nobody is near the end


# --- random actions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["first_out", "winner_and_loser num_players=6", "sevens", "nine_each num_players=2"])
def test_sample_actions__are_legal(text: str) -> None:
    batch = BatchGame(Rules.from_text(text), 200)
    rng = np.random.default_rng(0)
    for _ in range(150):
        actions = batch.sample_actions(rng)
        assert (actions.shape, actions.dtype) == ((200,), np.int64)
        assert batch.action_masks()[np.arange(200), actions].all()
        batch.step(actions)


def test_sample_actions__follow_the_generator_alone() -> None:
    batch = BatchGame(Rules.of("first_out"), 50)
    batch.step(np.full(50, 12))
    rng = np.random.default_rng(1)
    first, second = batch.sample_actions(rng), batch.sample_actions(rng)
    assert (first != second).any()
    assert (batch.sample_actions(np.random.default_rng(1)) == first).all()


def test_sample_actions__are_uniform_over_the_legal_cards() -> None:
    """Chi-square of the chosen card's rank among its game's legal cards, games and draws together.

    For each number of legal cards k the statistic has k - 1 degrees of freedom. A fair sampler exceeds the 1e-6
    quantile (mean + 5 sd + 12 bounds it for few degrees of freedom) about once in a million runs; the seeds are fixed.
    """
    batch = BatchGame(Rules.of("first_out", num_players=2), 20_000)
    for step in range(6):
        batch.step(random_actions(batch, step))
    masks = batch.action_masks().copy()
    options = masks.sum(1)
    rng, tested = np.random.default_rng(5), 0
    counts = np.zeros((37, 37), np.int64)
    for _ in range(20):
        actions = batch.sample_actions(rng)
        ranks = np.cumsum(masks, 1)[np.arange(len(masks)), actions] - 1
        np.add.at(counts, (options, ranks), 1)
    for k in range(2, 37):
        total = counts[k, :k].sum()
        assert not counts[k, k:].any()
        if total < 50 * k:
            continue
        tested += 1
        chi = ((counts[k, :k] - total / k) ** 2 / (total / k)).sum()
        freedom = k - 1
        assert chi < freedom + 5 * (2 * freedom) ** 0.5 + 12, (k, counts[k, :k])
    assert tested >= 4


def test_sample_actions__of_different_games_are_independent() -> None:
    """All games stand alike (the same deal, by hand), so equal choices of neighbours show a shared stream."""
    batch = BatchGame(Rules.of("first_out"), 20_000)
    batch.step(np.full(20_000, 12))
    batch.play_forced()
    choosing = int(np.bitwise_count(batch.states["legal"]).argmax())
    batch.states[:] = batch.states[choosing]
    options = len(card_ids(int(batch.states["legal"][0])))
    assert options >= 4
    actions = random_actions(batch, 3)
    equal = float((actions[1:] == actions[:-1]).mean())
    assert abs(equal - 1 / options) < 5 * (1 / options * (1 - 1 / options) / 20_000) ** 0.5  # five standard deviations


# --- views and states ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "seats"), [("first_out", 4), ("winner_and_loser", 6), ("nine_each", 3)])
def test_views__are_what_each_mover_may_know(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    batch, games = BatchGame(rules, 5, 8), [Game.deal(rules, 8, i) for i in range(5)]
    for step in range(10):
        views = batch.views()
        assert views.dtype == STATE_DTYPE
        for i, game in enumerate(games):
            assert state_bytes(views[i : i + 1]) == state_bytes(game.view(game.turn).record)
            assert [seat for seat in range(6) if views["hands"][i, seat]] == [game.turn]
        views["hands"] = 0  # a copy: the games are not the caller's to change
        actions = random_actions(batch, step)
        batch.step(actions)
        for game, action in zip(games, actions.tolist(), strict=True):
            game.play(action)


@pytest.mark.parametrize("text", ["round num_players=3", "sevens"])
def test_state_vectors__are_those_of_single_games(text: str) -> None:
    rules = Rules.from_text(text)
    batch, games = BatchGame(rules, 5, 8), [Game.deal(rules, 8, i) for i in range(5)]
    for step in range(8):
        vectors = batch.state_vectors()
        assert (vectors.shape, vectors.dtype) == ((5, state_layout(rules.pass_action).size), np.int8)
        for i, game in enumerate(games):
            expected = np.empty(vectors.shape[1], np.int8)
            encode_state_at(game.states, 0, rules_record(rules), expected)
            assert (vectors[i] == expected).all()
        vectors[:] = 1
        actions = random_actions(batch, step)
        batch.step(actions)
        for game, action in zip(games, actions.tolist(), strict=True):
            game.play(action)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("games", [0, -3])
def test_batch__refuses_a_number_of_games_that_cannot_be(games: int) -> None:
    with pytest.raises(ValueError, match=f"num_games must be .*not {games}"):
        BatchGame(Rules.of("first_out"), games)


@pytest.mark.parametrize("players", [[4], [4, 4, 4], [[4, 4]], [4.0, 4.0], 4, ["4", "4"], [True, True]])
def test_batch__refuses_seat_counts_that_are_not_one_a_game(players: Any) -> None:
    with pytest.raises(ValueError, match="num_players must be 2 whole numbers"):
        BatchGame(Rules.of("first_out"), 2, num_players=players)


@pytest.mark.parametrize(("preset", "players"), [("first_out", [4, 7]), ("first_out", [1, 4]), ("nine_each", [2, 5])])
def test_batch__refuses_rules_that_one_of_its_seat_counts_cannot_play(preset: str, players: list[int]) -> None:
    with pytest.raises(RulesError):
        BatchGame(Rules.of(preset), 2, num_players=players)


@pytest.mark.parametrize("threads", [0, -1, 10_000, 1.5, "1", None])
def test_batch__refuses_threads_that_it_cannot_have(threads: Any) -> None:
    with pytest.raises(ValueError, match=f"num_threads must be 1 to .*not {threads!r}"):
        BatchGame(Rules.of("first_out"), 2, num_threads=threads)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1", True])
def test_seed__out_of_range_is_refused_and_changes_nothing(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed must be a whole number"):
        BatchGame(Rules.of("first_out"), 2, seed)
    batch = BatchGame(Rules.of("first_out"), 2, 5)
    batch.step(np.full(2, 12))
    before = state_bytes(batch.states)
    with pytest.raises(ValueError, match="seed must be a whole number"):
        batch.reset(seed)
    assert (batch.seed, state_bytes(batch.states)) == (5, before)


def test_len__is_the_number_of_games() -> None:
    assert len(BatchGame(Rules.of("first_out"), 17)) == 17


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX")
def test_threads__are_refused_in_a_fork_instead_of_hanging(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = BatchGame("first_out", 128, 1, num_threads=2)
    batch.observations()
    monkeypatch.setattr(os, "getpid", lambda: -1)  # as in a fork; a real one of this process would be unsafe
    with pytest.raises(RuntimeError, match="whose threads are not in its fork"):
        batch.observations()
    alone = BatchGame("first_out", 128, 1)
    monkeypatch.setattr(os, "getpid", lambda: -2)
    alone.observations()
