"""Searching bots: exact at two seats, honest, legal everywhere, and stronger than what they search with."""

from __future__ import annotations

import random

import numpy as np
import pytest

from devyatka_env.bots import OracleBot, PimcBot, ReaderBot, ceilings, make_bot
from devyatka_env.evaluation import evaluate, regret
from devyatka_env.games import Deals, Game
from devyatka_env.rules import PRESETS, Rules, RulesError
from devyatka_env.solver import solve
from devyatka_env.views import PlayerView
from tests.helpers.games import random_moment
from tests.helpers.redeal import redeal

SEARCHING = ("pimc:worlds=20", "reader:worlds=10:candidates=40", "oracle:worlds=5")
HONEST = SEARCHING[:2]
TWO = Rules.of("first_out", num_players=2)


def tables() -> list[Rules]:
    """Every preset at two seats and at the most it takes, 52 cards included."""
    found = []
    for preset in PRESETS:
        for seats in (2, 4, 6):
            try:
                found.append(Rules.of(preset, num_players=seats))
            except RulesError:
                continue
    return found


@pytest.mark.parametrize("name", SEARCHING)
@pytest.mark.parametrize("rules", tables(), ids=str)
def test_search__plays_whole_deals_of_every_preset(name: str, rules: Rules) -> None:
    result = evaluate(name, "greedy", rules, 2, seed=3)  # an illegal action is a BotError
    assert result.deals == 2


# Where hidden cards can lie in more ways than one: cards out of play at two seats, passes told, fouls.
REDEALT = (
    "nine_each num_players=2",
    "nine_each num_players=3 explicit_pass=True",
    "first_out num_players=3",
    "first_out num_players=6",
    "winner_and_loser num_players=4",
)


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("text", REDEALT)
def test_search__choice_does_not_depend_on_hidden_hands(name: str, text: str) -> None:
    bot, rng, rules = make_bot(name), random.Random(1), Rules.of(text)
    compared = 0
    for seed in range(40):
        game = random_moment(rules, seed, foul_rate=0.05 if rules.foul == "exclude" else 0.0)
        if len(game.legal_actions()) < 2:
            continue
        other = redeal(game, game.turn, rng)
        if other.hand_masks == game.hand_masks:
            continue
        chosen = [bot.act(one.view(game.turn), np.random.default_rng(9)) for one in (game, other)]
        assert chosen[0] == chosen[1]
        compared += 1
    assert compared >= 8


@pytest.mark.parametrize("name", SEARCHING)
def test_search__batch_is_many_single_calls(name: str) -> None:
    bot, rng = make_bot(name), np.random.default_rng(2)
    deals = Deals(Rules.of("first_out", num_players=3), np.arange(12), seed=4)
    for _ in range(5):
        on = np.flatnonzero(deals.turns >= 0)
        legal = [np.flatnonzero(row[:-1]) for row in deals.observations(on)[1]]
        deals.step(on, np.array([rng.choice(cards) for cards in legal]))
        deals.play_forced(on)
    on = np.flatnonzero(deals.turns >= 0)
    views = deals.states[on] if bot.sees_all_hands else deals.views(on)
    words = deals.decision_words(on)
    together = bot.act_batch(views, deals.rules, words)
    alone = [bot.act_batch(views[i : i + 1], deals.rules, words[i : i + 1])[0] for i in range(len(on))]
    assert together.tolist() == alone
    assert together.tolist() == bot.act_batch(views, deals.rules, words).tolist()


@pytest.mark.parametrize("name", SEARCHING)
def test_search__gives_nothing_away_at_two_seats(name: str) -> None:
    result = regret(name, TWO, 40, seed=6, opponent="greedy")
    assert result.mattered > 50
    assert result.value_lost.mean == 0


@pytest.mark.parametrize("preset", ["round", "bank", "deck_52", "one_loser"])
def test_pimc__is_exact_at_two_seats_under_other_payoffs_and_decks(preset: str) -> None:
    assert regret("pimc:worlds=3", Rules.of(preset, num_players=2), 6, seed=1, opponent="random").value_lost.mean == 0


@pytest.mark.parametrize(("opponent", "deals"), [("greedy", 300), ("random", 100), ("blocker", 100)])
def test_oracle__never_loses_what_it_values_as_won(opponent: str, deals: int) -> None:
    result = regret("oracle:worlds=1", TWO, deals, seed=8, opponent=opponent)
    assert result.mattered > deals
    assert result.mistakes.mean == result.value_lost.mean == 0
    assert result.match.win_rate.mean > 0.5


def test_oracle__against_itself_is_exactly_balanced() -> None:
    result = evaluate("oracle:worlds=1", "oracle:worlds=1", TWO, 300, seed=2)
    assert result.win_rate.mean == 0.5
    assert result.cheats == ("oracle:worlds=1",)


def test_oracle__is_a_cheat_by_type_name_and_docstring() -> None:
    assert OracleBot.sees_all_hands
    assert "heats" in str(OracleBot.__doc__).splitlines()[0]
    assert not PimcBot.sees_all_hands
    assert not ReaderBot.sees_all_hands


def test_search__beats_greedy_at_two_seats() -> None:
    assert evaluate("pimc:worlds=50", "greedy", TWO, 400, seed=5).win_rate.low > 0.53


@pytest.mark.slow
@pytest.mark.parametrize("seats", [3, 4, 5, 6])
def test_reader__is_above_chance_against_greedy(seats: int) -> None:
    rules = Rules.of("first_out", num_players=seats)
    assert evaluate("reader", "greedy", rules, 3000, seed=5).win_rate.low > 1 / seats


def test_reader__is_better_than_pimc_against_the_bot_it_models() -> None:
    rules = Rules.of("first_out", num_players=4)
    plain = evaluate("pimc:worlds=30", "greedy", rules, 150, seed=7).win_rate
    reading = evaluate("reader:worlds=30:candidates=1000", "greedy", rules, 150, seed=7).win_rate
    assert reading.mean > plain.mean


def test_evaluate_cards__is_what_the_bot_chooses_by() -> None:
    bot = PimcBot(worlds=50)
    deals = Deals(Rules.of("first_out", num_players=4), np.arange(20), seed=1)
    deals.play_forced(deals.all)
    views = deals.views(deals.all)
    for i in range(20):
        view = PlayerView(views[i : i + 1], deals.rules, int(views["turn"][i]))
        action = bot.act(view, np.random.default_rng(i))
        cards = bot.evaluate_cards(view, np.random.default_rng(i))
        assert list(cards) == view.legal_actions()
        assert cards[action].payoff == max(card.payoff for card in cards.values())
        for card in cards.values():
            assert card.value is None
            assert 0 <= card.win <= 1
            assert card.payoff == pytest.approx(card.win - (1 - card.win) / 3)  # the payoff `win` at 4 seats
            assert card.win_error == pytest.approx(np.sqrt(card.win * (1 - card.win) / 50))
            assert card.payoff_error == pytest.approx(card.win_error * 4 / 3)


def test_evaluate_cards__has_exact_values_at_two_seats() -> None:
    game = Game.deal(TWO, 3)
    while len(game.legal_actions()) < 2:
        game.play(game.legal_actions()[0])
    cards = PimcBot(worlds=10).evaluate_cards(game.view(game.turn), np.random.default_rng(0))
    assert {card: estimate.value for card, estimate in cards.items()} == pytest.approx(solve(game).values)


def test_evaluate_cards__refuses_a_seat_without_a_choice() -> None:
    game, rng = Game.deal(TWO, 3), np.random.default_rng(0)
    mover, other = game.turn, 1 - game.turn
    with pytest.raises(ValueError, match=f"seat {mover} has no choice to search"):
        PimcBot().evaluate_cards(game.view(mover), rng)
    with pytest.raises(ValueError, match=f"seat {other} is not on turn, seat {mover} is"):
        PimcBot().evaluate_cards(game.view(other), rng)
    with pytest.raises(ValueError, match=r"view must be a PlayerView \(game.view\(seat\)\), not "):
        PimcBot().evaluate_cards(game, rng)  # type: ignore[arg-type]
    game.play("9♦")
    with pytest.raises(ValueError, match=r"rng must be a numpy Generator, such as .*, not 5"):
        PimcBot().evaluate_cards(game.view(game.turn), 5)  # type: ignore[arg-type]
    while not game.is_over:
        game.play(game.legal_actions()[0])
    with pytest.raises(ValueError, match="is not on turn, the deal is over"):
        PimcBot().evaluate_cards(game.view(0), rng)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pimc:worlds=0", "worlds must be a whole number from 1 to 100,000, not 0"),
        ("pimc:worlds=99999999999999999999", "worlds must be a whole number from 1 to 100,000, not 9999"),
        ("pimc:worlds=1_000", "parameter worlds of bot pimc must be a whole number, not '1_000'"),
        ("pimc:worlds= 5", "parameter worlds of bot pimc must be a whole number, not ' 5'"),
        ("pimc:worlds=5 ", "parameter worlds of bot pimc must be a whole number, not '5 '"),
        ("reader:model=oracle", "model must be one of random, greedy"),
        ("reader:candidates=0", "candidates must be a whole number from 1 to 1,000,000, not 0"),
        ("pimc:playout=clever", "playout must be one of random, greedy"),
        ("pimc:wrlds=3", "no parameter 'wrlds': its parameters are worlds, playout"),
        ("reader:worlds=50:candidates=10", r"candidates must be at least worlds \(50\), not 10"),
        ("reader:model=random", "uses no randomness"),
        ("oracle:worlds=-1", "worlds must be a whole number from 1 to 100,000, not -1"),
    ],
)
def test_search__bad_parameter_is_named_with_what_is_allowed(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_bot(name)


@pytest.mark.parametrize("bad", [2.5, 5.0, True, "5", None, 0, 10**30, np.nan])
def test_search__numbers_of_worlds_and_candidates_are_whole(bad: object) -> None:
    for bot in (PimcBot, ReaderBot, OracleBot):
        with pytest.raises(ValueError, match="worlds must be a whole number from 1 to 100,000, not "):
            bot(worlds=bad)  # type: ignore[arg-type]
    if bad is not None:
        with pytest.raises(ValueError, match="candidates must be a whole number from 1 to 1,000,000, not "):
            ReaderBot(candidates=bad)  # type: ignore[arg-type]


def test_reader__draws_from_ten_times_the_worlds_unless_told() -> None:
    assert [make_bot(f"reader:worlds={n}").candidates for n in (1, 200, 3000)] == [10, 2000, 30_000]  # type: ignore[attr-defined]
    assert ReaderBot(5, 40).with_worlds(30).candidates == 40
    with pytest.raises(ValueError, match=r"candidates must be at least worlds \(50\), not 40"):
        ReaderBot(5, 40).with_worlds(50)


@pytest.mark.parametrize("seats", [2, 3])
def test_oracle__refuses_a_view_with_blank_hands(seats: int) -> None:
    game = random_moment(Rules.of("first_out", num_players=seats), 1)
    with pytest.raises(ValueError, match="oracle needs all hands: record 0 lacks a hand"):
        OracleBot().act(game.view(game.turn), np.random.default_rng(0))


def test_evaluate_cards__differences_to_the_card_laid_are_of_the_same_playouts() -> None:
    """By sums of squares: the error of a difference of two means of the same worlds, and the worlds of many seeds."""
    game = random_moment(Rules.of("first_out", num_players=4), 12)
    while len(game.legal_actions()) < 2:
        game.play(game.legal_actions()[0])
    view, bot = game.view(game.turn), PimcBot(worlds=300)
    chosen = bot.act(view, np.random.default_rng(0))
    found = [bot.evaluate_cards(view, np.random.default_rng(seed)) for seed in range(60)]
    assert (found[0][chosen].behind, found[0][chosen].behind_error) == (0, 0)
    other = next(card for card in found[0] if card != chosen)
    spread = np.std([one[other].payoff - one[chosen].payoff for one in found])
    one = found[0][other]
    assert one.behind == pytest.approx(one.payoff - found[0][chosen].payoff)
    assert one.behind_error == pytest.approx(spread, rel=0.4)  # 60 draws: 5 standard errors
    assert one.behind_error < np.hypot(one.payoff_error, found[0][chosen].payoff_error)


def test_oracle__with_more_seats_wins_as_often_as_the_exact_best_response_to_greedy() -> None:
    rules = Rules.of("first_out", num_players=4)
    won = evaluate("oracle", "greedy", rules, 40, seed=3).win_rate.mean
    assert won == pytest.approx(ceilings(rules, "greedy", np.arange(40), seed=3).wins.mean())
