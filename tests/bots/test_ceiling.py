"""Exact best responses against a search that tries every course of a deal and asks the bots themselves."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from devyatka_env.bots import (
    Bot,
    BotError,
    CallableBot,
    Ceiling,
    GreedyBot,
    PolicyBot,
    RandomBot,
    ceiling,
    ceilings,
    make_bot,
)
from devyatka_env.bots.best_response import best_ends
from devyatka_env.bots.rollout import play_on
from devyatka_env.engine.randomness import mix
from devyatka_env.games import Deals, Game
from devyatka_env.rules import Rules
from devyatka_env.solver import StateLimitError, paranoid
from devyatka_env.views import PlayerView
from tests.helpers.games import COMBINATIONS, choose_rules, fouls, play_random

CHECKPOINT = Path(__file__).resolve().parents[1] / "data" / "checkpoint_v1"
every_combination = pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)


class GreedyAsked(GreedyBot):
    """Greedy, but asked from Python: no scripted bot's own class."""

    name = "greedy_asked"


class GreedyWithHistory(GreedyBot):
    name = "greedy_with_history"
    reads_history = True


class GreedyWithOrder(GreedyWithHistory):
    name = "greedy_with_order"
    reads_order = True


class Historian(Bot):
    """Chooses by the passes and what they prove: a bot to which one position is many."""

    name = "historian"
    deterministic = True
    reads_order = False

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        actions = view.legal_actions()
        return actions[hash((view.passes, view.cannot_hold_masks)) % len(actions)]


def orderly(view: PlayerView, rng: np.random.Generator) -> int:
    """Chooses by the order in which the cards were laid."""
    word = 0
    for card in view.record["log"][0, : int(view.record["num_played"][0])].tolist():
        word = int(mix(np.uint64(word ^ (card + 1))))
    actions = view.legal_actions()
    return actions[word % len(actions)]


ORDERLY = CallableBot(orderly, deterministic=True)
NO_RNG = np.random.default_rng(0)


def best_by_trying(game: Game, seat: int, bots: Sequence[Bot]) -> float:
    """The best payoff of ``seat`` over all its courses, without memory."""
    if game.is_over:
        return game.result().payoffs[seat]
    actions = game.legal_actions()
    if len(actions) > 1 and game.turn != seat:
        bot = bots[(game.turn - seat - 1) % game.num_players]
        actions = [bot.act(game.view(game.turn), NO_RNG)]
    return max(best_by_trying(game.clone().play(action), seat, bots) for action in actions)


def assert_exact(game: Game, seat: int, bots: Sequence[Bot]) -> Ceiling:
    """The ceiling is what trying everything gives, and its line leads there, the bots playing as they do."""
    found = ceiling(game, seat, bots)
    assert found.value == best_by_trying(game, seat, bots), game.position
    end = game.clone()
    for action in found.line:
        if end.turn != seat and len(end.legal_actions()) > 1:
            assert action == bots[(end.turn - seat - 1) % end.num_players].act(end.view(end.turn), NO_RNG)
        end.play(action)
    result = end.result()
    assert (found.payoffs, found.places) == (result.payoffs, result.places)
    assert found.value == result.payoffs[seat]
    assert found.won == (seat in result.winners)
    return found


def moments(rules: Rules, seed: int, cards: int) -> list[Game]:
    """A random game where so many cards are left in the hands; none when it was over before."""
    game, rng = Game.deal(rules, seed), random.Random(seed)
    while not game.is_over and sum(game.record["cards_left"].tolist()) > cards:
        play_random(game, rng, 1)
    return [] if game.is_over else [game]


# --- exactness -------------------------------------------------------------------------------------------------------

OPPONENTS: list[Bot] = [GreedyBot(), GreedyAsked(), Historian(), ORDERLY]


@every_combination
def test_ceiling__of_endgames_of_every_preset(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    for game in moments(rules, seed=seats, cards=14 if seats == 2 else 20):
        for seat in range(seats):
            assert_exact(game, seat, [GreedyBot()] * (seats - 1))


@pytest.mark.parametrize("bot", OPPONENTS, ids=lambda bot: bot.name)
def test_ceiling__of_endgames_of_any_rules(bot: Bot) -> None:
    exact = 0
    for seed in range(60):
        rules = choose_rules(random.Random(seed).choice)
        for game in moments(rules, seed, cards=12):
            assert_exact(game, seed % rules.num_players, [bot] * (rules.num_players - 1))
            exact += 1
    assert exact > 25


# Clockwise from the seat: each must sit in its own place.
MIXED: dict[str, list[Bot]] = {
    "compiled": [make_bot(name) for name in ("greedy", "blocker", "runner", "closed")],
    "asked": [make_bot("pass_watcher"), GreedyAsked(), ORDERLY, make_bot("blocker")],
    "asked for what they know": [Historian(), make_bot("closed"), make_bot("pass_watcher"), Historian()],
}


@pytest.mark.parametrize("kind", MIXED)
def test_ceiling__of_whole_deals_against_bots_of_several_kinds(kind: str) -> None:
    for seed in range(5):
        assert_exact(Game.deal(Rules.of("first_out", num_players=5), seed), seed, MIXED[kind])


@pytest.mark.parametrize(("seats", "seed"), [(4, 1), (5, 52)])
def test_ceiling__one_position_is_two_to_a_bot_that_reads_the_history(seats: int, seed: int) -> None:
    # Two of a few hundred deals in which a search that takes them for one finds less than there is.
    game = Game.deal(Rules.of("first_out_passes", num_players=seats), seed)
    assert_exact(game, 0, [Historian()] * (seats - 1))


def test_ceiling__two_courses_to_one_position_are_searched_once_where_the_bots_cannot_tell() -> None:
    game = next(game for seed in range(9) for game in moments(Rules.of("first_out", num_players=2), seed, cards=16))
    bots: list[Bot] = [GreedyBot(), GreedyAsked(), GreedyWithHistory(), GreedyWithOrder()]
    rules = Rules.of(game.rules, payoff="points")  # no payoff ends the search early, but for the best of all
    game = Game(rules, game.states, game.actions)
    found = [ceiling(game, 0, bot) for bot in bots]
    assert len({one.value for one in found}) == 1
    states = [one.states for one in found]
    assert states[0] <= states[1] < states[3]
    assert states[1] <= states[2] <= states[3]


def test_ceilings__are_the_ceiling_of_every_seat_and_deal() -> None:
    for rules in (Rules.of("first_out", num_players=3), Rules.of("winner_and_loser", payoff="place", num_players=4)):
        indices = np.array([5, 0, 7])
        n, to_win = rules.num_players, Rules.of(rules, payoff="win")
        for opponents in ("greedy", [GreedyAsked(), *[GreedyBot()] * (n - 2)]):
            many = ceilings(rules, opponents, indices, seed=11)
            assert many.values.shape == many.wins.shape == many.states.shape == (3, n)
            for d, index in enumerate(indices.tolist()):
                for seat in range(n):
                    one = ceiling(Game.deal(rules, 11, index), seat, opponents)
                    assert many.values[d, seat] == one.value
                    won = ceiling(Game(to_win, Game.deal(rules, 11, index).states), seat, opponents)
                    assert many.wins[d, seat] == (won.won / won.places.count(1) if won.won else 0)
                    assert many.states[d, seat] >= one.states
        assert (many.indices == indices).all()
        assert many.against == ("greedy_asked", *["greedy"] * (n - 2))


def test_ceilings__cannot_be_changed_and_nor_can_their_copies() -> None:
    found = ceilings("first_out", "greedy", [3, 1])
    for many in (found, copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        for name in ("indices", "values", "wins", "states"):
            np.testing.assert_array_equal(getattr(many, name), getattr(found, name))
            with pytest.raises(ValueError, match="read-only"):
                getattr(many, name)[0] = 0


@pytest.mark.parametrize("bot", [GreedyAsked(), GreedyWithHistory()], ids=lambda bot: bot.name)
@pytest.mark.parametrize(
    "text", ["one_loser num_players=6", "bank num_players=4", "bank num_players=5 end=last_holder"]
)
def test_ceilings__however_found_and_however_many_together_are_the_same(text: str, bot: Bot) -> None:
    rules = Rules.of(text)
    together = ceilings(rules, bot, np.arange(70))  # more than are searched at a time
    compiled = ceilings(rules, "greedy", np.arange(70))
    np.testing.assert_array_equal(together.values, compiled.values)
    np.testing.assert_array_equal(together.wins, compiled.wins)
    last = ceilings(rules, bot, np.arange(66, 70))
    np.testing.assert_array_equal(together.values[66:], last.values)
    np.testing.assert_array_equal(together.wins[66:], last.wins)


# --- a ceiling, and what lies below it -------------------------------------------------------------------------------


@every_combination
def test_ceiling__no_bot_gets_more_in_that_seat_on_that_deal(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    small = rules.deck.num_cards == 36
    indices = np.arange(40 if small else 4)
    limits = ceilings(rules, "greedy", indices, seed=1)
    for name in ("greedy", "random"):
        games = Deals(rules, np.repeat(indices, seats), seed=1)
        responds = np.tile(np.arange(seats), len(indices))
        seating = np.where(np.arange(seats) == responds[:, None], 1, 0)
        play_on(games, [GreedyBot(), make_bot(name)], seating, games.all)
        payoffs = games.payoffs(games.all)[games.all, responds].reshape(-1, seats)
        firsts = games.states["places"] == 1
        wins = (firsts[games.all, responds] / firsts.sum(1)).reshape(-1, seats)
        assert (payoffs <= limits.values).all()
        assert (wins <= limits.wins).all()
    # Random, the last of them, falls short; in a deal of nine_each a choice seldom matters.
    assert (payoffs < limits.values).any() or preset == "nine_each"


def test_ceiling__is_not_below_the_floor_that_the_seat_has_against_anybody() -> None:
    for preset in ("first_out", "first_out_passes", "one_loser", "bank", "nine_each"):
        for seed in range(4):
            game = Game.deal(Rules.of(preset, num_players=4), seed)
            for seat in range(4):
                assert paranoid(game, seat).value <= ceiling(game, seat, "greedy").value


def test_ceiling__against_greedy_is_far_from_winning_every_deal() -> None:
    # 42 % at four seats over 20,000 deals; the standard error of 500 deals is below 1 %. No bot can do better.
    wins = ceilings("first_out", "greedy", np.arange(500)).wins
    assert 0.36 < wins.mean() < 0.48


def test_ceiling__against_a_checkpoint() -> None:
    pytest.importorskip("torch")
    bot = PolicyBot.load(CHECKPOINT)
    assert bot.deterministic
    assert not PolicyBot.load(CHECKPOINT, sample=True).deterministic
    assert bot.rules is not None
    rules = bot.rules[0]
    n = rules.num_players
    found = ceilings(rules, bot, np.arange(30))
    games = Deals(rules, np.repeat(np.arange(30), n))
    play_on(games, [bot], np.zeros((30 * n, n), np.int64), games.all)
    own = games.payoffs(games.all)[games.all, np.tile(np.arange(n), 30)].reshape(30, n)
    assert (own <= found.values).all()
    assert own.sum() < found.values.sum()
    for seed in range(3):
        assert_exact(Game.deal(rules, seed), seed % n, [bot] * (n - 1))


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bot", [RandomBot(), CallableBot(orderly)], ids=lambda bot: bot.name)
def test_ceiling__refuses_bots_that_are_not_deterministic(bot: Bot) -> None:
    with pytest.raises(ValueError, match=f"bot {bot.name} is not deterministic, so no best response to it is exact"):
        ceiling(Game.deal("first_out"), 0, ["greedy", bot, "greedy"])
    with pytest.raises(ValueError, match="is not deterministic"):
        ceilings("first_out", bot, np.arange(2))


def test_ceiling__refuses_what_it_cannot_answer() -> None:
    game = Game.deal("first_out")
    for seat in (-1, 4, 0.5, "0", None):
        with pytest.raises(ValueError, match="seat must be 0 to 3, not"):
            ceiling(game, seat, "greedy")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="2 opponents given; 3 seats need 1"):
        ceiling(game, 0, ["greedy"] * 2)
    with pytest.raises(ValueError, match="unknown bot 'gredy'"):
        ceilings("first_out", "gredy", np.arange(2))
    for none in (np.arange(0), [], 5, [[1, 2]]):
        with pytest.raises(ValueError, match="no deal indices given: they must be a list of at least one whole number"):
            ceilings("first_out", "greedy", none)  # type: ignore[arg-type]
    for bad in ([-1], [0.5], ["a"], [True]):
        with pytest.raises(ValueError, match=r"deal indices must be whole numbers from 0, not \["):
            ceilings("first_out", "greedy", bad)  # type: ignore[arg-type]
    for limit in (0, -1, "x", None):
        for bot in (GreedyBot(), GreedyAsked()):
            with pytest.raises(ValueError, match=f"max_states must be a whole number, at least 1, not {limit!r}"):
                ceiling(game, 0, bot, max_states=limit)  # type: ignore[arg-type]
            with pytest.raises(ValueError, match=f"max_states must be a whole number, at least 1, not {limit!r}"):
                ceilings("first_out", bot, [0], max_states=limit)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"game must be a Game .*, not 'foo'"):
        ceiling("foo", 0, "greedy")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the deal is over"):
        ceiling(play_random(game, random.Random(0)), 0, "greedy")


def test_ceiling__refuses_a_checkpoint_of_other_rules() -> None:
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="was trained for"):
        ceilings(Rules.of("bank", num_players=6), PolicyBot.load(CHECKPOINT), np.arange(2))


@pytest.mark.parametrize("bot", [GreedyBot(), GreedyAsked()], ids=lambda bot: bot.name)
def test_limit__is_an_error_and_never_a_wrong_value(bot: Bot) -> None:
    rules = Rules.of("round", num_players=2)
    game = Game.deal(rules, 1)
    need = ceiling(game, 0, bot).states
    assert need > 10
    assert ceiling(game, 0, bot, max_states=need).states == need
    with pytest.raises(
        StateLimitError, match=rf"max_states={need - 1:,} positions .* the responses of seat 0 in round"
    ):
        ceiling(game, 0, bot, max_states=need - 1)
    with pytest.raises(StateLimitError, match=r"max_states=1 positions .* seat 0 in deal 9 of seed 5"):
        ceilings(rules, bot, np.array([9]), seed=5, max_states=1)


def test_ceiling__a_bot_that_breaks_the_rules_is_named() -> None:
    def cheat(view: PlayerView, rng: np.random.Generator) -> int:
        return 99

    def foul(view: PlayerView, rng: np.random.Generator) -> int:
        return view.rules.pass_action

    with pytest.raises(BotError, match="bot cheat failed"):
        ceiling(Game.deal("first_out"), 0, CallableBot(cheat, deterministic=True))
    game = Game.deal("winner_and_loser")
    while not (fouls(game) and len(game.legal_actions()) > 1 and game.turn != 0):
        game.play(game.legal_actions()[0])
    with pytest.raises(BotError, match="a bot fouled"):
        ceiling(game, 0, CallableBot(foul, deterministic=True))


def test_best_ends__of_seats_that_have_no_choice_left() -> None:
    rules = Rules.of("one_loser", num_players=4)
    game = play_random(Game.deal(rules, 0), random.Random(0), 27)
    while 0 not in game.hand_masks:
        play_random(game, random.Random(1), 1)
    out = game.hand_masks.index(0)
    deals = Deals(rules, np.zeros(1, np.int64))
    deals.states[:] = game.states
    for bot in (GreedyBot(), GreedyAsked()):
        ends = best_ends(deals, np.array([out]), [bot] * 3)
        assert ends.states.tolist() == [0]
        assert ends.payoffs[0, out] == 1 / 3
