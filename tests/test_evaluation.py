"""The evaluator: means and intervals, duplicate deals against a naive arena, symmetry, interruptions, failures."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from devyatka_env import Game, PlayerView, Rules, make_bot
from devyatka_env.bots import Bot, BotError, CallableBot, GreedyBot, RandomBot
from devyatka_env.evaluation import Estimate, Evaluation, arena, evaluate
from devyatka_env.evaluation.stats import Mean
from devyatka_env.records import States, decision_word

BASE = Rules.of("first_out")


def highest(view: PlayerView, rng: np.random.Generator) -> int:
    """A weak deterministic bot given as a function."""
    return view.legal_actions()[-1]


class OtherRandom(RandomBot):
    """Plays at random by the half of each word that `random` does not use: independent of it in the same game."""

    name = "other_random"

    def act_batch(self, views: States, rules: Rules, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        half = np.uint64(32)
        return super().act_batch(views, rules, (words << half) | (words >> half))


def estimates(result: Evaluation) -> dict[str, Estimate]:
    """Every estimate of a result by name."""
    named = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    named |= {f"seat {seat}": estimate for seat, estimate in enumerate(result.win_rate_by_seat)}
    return {name: value for name, value in named.items() if isinstance(value, Estimate)}


def assert_same_figures(one: Evaluation, other: Evaluation) -> None:
    """The two results say the same, up to the order in which floats were added."""
    first, second = estimates(one), estimates(other)
    assert len(first) == 6 + one.rules.num_players
    for name, estimate in first.items():
        assert dataclasses.astuple(estimate) == pytest.approx(
            dataclasses.astuple(second[name]), rel=1e-9, abs=1e-9, nan_ok=True
        ), name
    assert (one.deals, one.games, one.cheats) == (other.deals, other.games, other.cheats)


# --- statistics ------------------------------------------------------------------------------------------------------

values = st.floats(-1e6, 1e6) | st.just(math.nan)


@settings(deadline=None)
@given(st.lists(st.lists(values, max_size=20), max_size=8))
def test_mean__streamed_in_any_chunks_is_numpys(chunks: list[list[float]]) -> None:
    mean = Mean()
    for chunk in chunks:
        mean.add(np.array(chunk, np.float64))
    seen = np.array([value for chunk in chunks for value in chunk if not math.isnan(value)])
    estimate = mean.estimate()
    assert estimate.count == len(seen)
    if len(seen) == 0:
        assert all(map(math.isnan, (estimate.mean, estimate.low, estimate.high)))
        return
    scale = max(1.0, float(np.abs(seen).max()))
    assert estimate.mean == pytest.approx(seen.mean(), abs=1e-9 * scale)
    if len(seen) == 1:
        assert (estimate.low, estimate.high) == (-math.inf, math.inf)
        return
    half = 1.959964 * seen.std(ddof=1) / math.sqrt(len(seen))
    assert estimate.half_width == pytest.approx(half, rel=1e-4, abs=1e-7 * scale)
    assert estimate.low + estimate.high == pytest.approx(2 * estimate.mean, abs=1e-9 * scale)


def test_mean__keeps_its_digits_far_from_zero() -> None:
    # The textbook sum of squares would lose every digit of this variance.
    mean, rng = Mean(), np.random.default_rng(0)
    data = 1e9 + rng.normal(size=10_000)
    for chunk in np.split(data, 100):
        mean.add(chunk)
    assert mean.estimate().half_width == pytest.approx(1.959964 * data.std(ddof=1) / 100, rel=1e-4)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, shape: rng.normal(0.25, 1.0, shape),
        lambda rng, shape: rng.binomial(1, 0.25, shape).astype(np.float64),
        # A deal of four seats: 0, 1, 2 or 4 wins of the candidate, a quarter each.
        lambda rng, shape: rng.choice([0.0, 0.25, 0.5, 1.0], p=[0.5, 0.25, 0.125, 0.125], size=shape),
    ],
    ids=["normal", "coin", "deal"],
)
def test_estimate__intervals_cover_the_truth_95_times_in_100(
    draw: Callable[[np.random.Generator, tuple[int, int]], NDArray[np.float64]],
) -> None:
    rng, repeats, deals = np.random.default_rng(1), 4000, 400
    data = draw(rng, (repeats, deals))
    covered = 0
    for row in data:
        mean = Mean()
        mean.add(row)
        estimate = mean.estimate()
        covered += estimate.low <= 0.25 <= estimate.high
    # 4,000 coin flips of 0.95: standard deviation 0.0034, so 0.015 is four of them, with 0.001 to spare for the
    # normal law's small deficit at 400 units.
    assert covered / repeats == pytest.approx(0.95, abs=0.015)


def test_estimate__prints_its_mean_and_half_width() -> None:
    assert str(Estimate(0.25, 0.2, 0.3, 100)) == "0.2500 ± 0.0500"


# --- duplicate deals -------------------------------------------------------------------------------------------------


def naive(bots: list[Bot], rules: Rules, deals: int, seed: int) -> dict[str, NDArray[np.float64]]:
    """Every figure by deal and the candidate's seat, ``[deals, n]``, from plain `Game`s played one after another."""
    n = rules.num_players
    figures = {name: np.zeros((deals, n)) for name in ("win", "place", "payoff", "cards", "opened")}
    for deal in range(deals):
        for seat in range(n):
            game = Game.deal(rules, seed, deal)
            while not game.is_over:
                bot = bots[(game.turn - seat) % n]
                word = decision_word(np.uint64(seed), np.uint64(deal), game.turn, int(game.record["num_played"]))
                view = game.view(game.turn)
                game.play(int(bot.act_batch(view.record, rules, np.array([word], np.uint64))[0]))
            result = game.result()
            sharing = result.places.count(result.places[seat])
            figures["win"][deal, seat] = 1 / sharing if result.places[seat] == 1 else 0
            figures["place"][deal, seat] = result.places[seat] + (sharing - 1) / 2
            figures["payoff"][deal, seat] = result.payoffs[seat]
            figures["cards"][deal, seat] = result.cards_left[seat]
            figures["opened"][deal, seat] = game.view(0).opener == seat
    return figures


@pytest.mark.parametrize(
    ("preset", "seats"), [("first_out", 4), ("nine_each", 3), ("winner_and_loser", 3), ("round", 2), ("bank", 5)]
)
def test_evaluate__agrees_with_a_naive_arena(preset: str, seats: int) -> None:
    rules, deals, seed = Rules.of(preset, num_players=seats), 25, 6
    bots = [GreedyBot(), RandomBot(), CallableBot(highest), OtherRandom(), GreedyBot()][:seats]
    result = evaluate(bots[0], bots[1:], rules, deals, seed)
    figures = naive(bots, rules, deals, seed)
    opened = figures["opened"] == 1
    with np.errstate(invalid="ignore"):
        split = [(figures["win"] * part).sum(1) / part.sum(1) for part in (opened, ~opened)]
    expected = {
        "win_rate": figures["win"].mean(1),
        "mean_place": figures["place"].mean(1),
        "mean_payoff": figures["payoff"].mean(1),
        "mean_cards_left": figures["cards"].mean(1),
        "win_rate_opening": split[0],
        "win_rate_not_opening": split[1],
        **{f"seat {seat}": figures["win"][:, seat] for seat in range(seats)},
    }
    for name, estimate in estimates(result).items():
        by_deal = expected[name][~np.isnan(expected[name])]
        assert estimate.count == len(by_deal)
        assert estimate.mean == pytest.approx(by_deal.mean())
        half = 1.959964 * by_deal.std(ddof=1) / math.sqrt(len(by_deal))  # over deals, never over games
        assert estimate.half_width == pytest.approx(half, rel=1e-4, abs=1e-12)
    assert (result.candidate, result.against) == (bots[0].name, tuple(bot.name for bot in bots[1:]))
    assert (result.deals, result.games, result.seed, result.rules) == (deals, deals * seats, seed, rules)


@pytest.mark.parametrize("seats", range(2, 7))
@pytest.mark.parametrize("preset", ["first_out", "one_loser", "any_nine"])
def test_evaluate__a_bot_against_itself_wins_exactly_its_share(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    for bot in (make_bot("greedy"), make_bot("random"), CallableBot(highest)):
        result = evaluate(bot, [bot] * (seats - 1), rules, deals=60, seed=1)
        assert result.win_rate.mean == pytest.approx(1 / seats, abs=1e-12)
        assert result.mean_place.mean == pytest.approx((seats + 1) / 2, abs=1e-12)
        assert result.mean_payoff.mean == pytest.approx(0, abs=1e-12)
        assert result.win_rate.half_width == pytest.approx(0, abs=1e-9)  # the luck of the deal cancels altogether


@pytest.mark.parametrize("seats", range(2, 7))
def test_evaluate__two_players_at_random_are_equal(seats: int) -> None:
    rules = Rules.of("first_out", num_players=seats)
    result = evaluate(OtherRandom(), [RandomBot()] * (seats - 1), rules, deals=20_000, seed=2)
    assert 0 < result.win_rate.half_width < 0.01
    # Two half-widths are 3.9 standard errors: a right arena fails with one seed in 10,000, and these are fixed.
    assert abs(result.win_rate.mean - 1 / seats) < 2 * result.win_rate.half_width


@pytest.mark.parametrize("games_at_once", [1, 7, 64])
def test_evaluate__does_not_depend_on_how_deals_are_chunked(
    monkeypatch: pytest.MonkeyPatch, games_at_once: int
) -> None:
    opponents = [RandomBot(), CallableBot(highest), OtherRandom()]
    whole = evaluate(GreedyBot(), opponents, BASE, deals=50, seed=3)
    monkeypatch.setattr(arena, "GAMES_AT_ONCE", games_at_once)
    assert_same_figures(evaluate(GreedyBot(), opponents, BASE, deals=50, seed=3), whole)


def test_evaluate__the_splits_average_to_the_whole() -> None:
    for seats in range(2, 7):
        rules = Rules.of("first_out", num_players=seats)  # one seat opens, so one rotation in n has the candidate open
        result = evaluate(GreedyBot(), [RandomBot()] * (seats - 1), rules, deals=200)
        assert np.mean([seat.mean for seat in result.win_rate_by_seat]) == pytest.approx(result.win_rate.mean)
        opening, other = result.win_rate_opening, result.win_rate_not_opening
        assert opening.mean / seats + other.mean * (seats - 1) / seats == pytest.approx(result.win_rate.mean)
        assert opening.count == other.count == 200


def test_evaluate__the_opener_has_the_lead_that_it_is_known_to_have() -> None:
    # Measured elsewhere over millions of games: of four seats at random, the holder of the nine of diamonds wins 41 %.
    result = evaluate(OtherRandom(), [RandomBot()] * 3, BASE, deals=20_000)
    assert result.win_rate_opening.mean == pytest.approx(0.41, abs=0.01)
    assert result.win_rate_opening.half_width < 0.01
    assert result.win_rate_not_opening.high < 0.21


@pytest.mark.parametrize("preset", ["first_out", "nine_each", "one_loser"])
def test_evaluate__win_rates_of_a_whole_field_add_up_to_one(preset: str) -> None:
    rules = Rules.of(preset, num_players=3)
    field: list[Bot] = [GreedyBot(), RandomBot(), CallableBot(highest)]
    results = [evaluate(field[k], field[k + 1 :] + field[:k], rules, deals=80, seed=4) for k in range(3)]
    assert sum(result.win_rate.mean for result in results) == pytest.approx(1)
    assert sum(result.mean_place.mean for result in results) == pytest.approx(1 + 2 + 3)
    assert sum(result.mean_payoff.mean for result in results) == pytest.approx(0, abs=1e-12)


def test_evaluate__the_seed_chooses_the_deals() -> None:
    results = [evaluate(GreedyBot(), [RandomBot()] * 3, BASE, deals=40, seed=seed) for seed in (1, 1, 2)]
    assert_same_figures(results[0], results[1])
    assert results[0].mean_cards_left.mean != results[2].mean_cards_left.mean


# --- cheats, failures, interruptions ---------------------------------------------------------------------------------


class Peeker(Bot):
    """Counts the hands that it is shown, and plays its lowest card."""

    name = "peeker"

    def __init__(self) -> None:
        self.hands_seen: set[int] = set()

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        self.hands_seen.add(sum(mask > 0 for mask in view.record["hands"][0].tolist()))
        return view.legal_actions()[0]


class Oracle(Peeker):
    """The same, allowed to."""

    name = "oracle"
    sees_all_hands = True


def test_evaluate__only_declared_cheats_see_the_hands_and_they_are_named() -> None:
    honest, cheat = Peeker(), Oracle()
    result = evaluate(cheat, [honest, RandomBot(), GreedyBot()], BASE, deals=5)
    assert result.cheats == ("oracle",)
    assert cheat.hands_seen == {4}
    assert honest.hands_seen == {1}
    assert evaluate(honest, [RandomBot(), cheat, cheat], BASE, deals=1).cheats == ("oracle",)
    assert evaluate(honest, [RandomBot()] * 3, BASE, deals=1).cheats == ()


def test_evaluate__a_failing_or_illegal_bot_is_named_with_its_deal() -> None:
    def broken(view: PlayerView, rng: np.random.Generator) -> int:
        raise ZeroDivisionError("no clue")

    def cheeky(view: PlayerView, rng: np.random.Generator) -> int:
        return view.rules.pass_action

    for bot, why in ((broken, "no clue"), (cheeky, "illegal action 36")):
        with pytest.raises(BotError, match=rf"bot {bot.__name__} failed \(deal 0.* of seed 9\): .*{why}"):
            evaluate(GreedyBot(), [RandomBot(), make_bot(bot), RandomBot()], BASE, deals=3, seed=9)


@pytest.mark.parametrize("opponents", [0, 2, 4])
def test_evaluate__a_wrong_number_of_opponents_is_refused(opponents: int) -> None:
    with pytest.raises(ValueError, match=f"{opponents} opponents given; 3 seats need"):
        evaluate(GreedyBot(), [RandomBot()] * opponents, BASE, deals=1)


@pytest.mark.parametrize("deals", [0, -5])
def test_evaluate__less_than_one_deal_is_refused(deals: int) -> None:
    with pytest.raises(ValueError, match=f"deals must be at least 1, not {deals}"):
        evaluate(GreedyBot(), [RandomBot()] * 3, BASE, deals)


class Interrupted(GreedyBot):
    """Stands for Ctrl-C in the middle of a batch of games."""

    def __init__(self, after: int) -> None:
        self.left = after

    def act_batch(self, views: States, rules: Rules, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().act_batch(views, rules, words)


def test_evaluate__ctrl_c_returns_the_result_of_the_deals_played_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "GAMES_AT_ONCE", 40)
    seen: list[tuple[int, Any]] = []
    result = evaluate(Interrupted(70), [RandomBot()] * 3, BASE, deals=1000, progress=lambda *news: seen.append(news))
    assert result.interrupted
    assert 0 < result.deals < 1000
    assert result.deals % 10 == 0  # whole batches of ten deals
    assert [deals for deals, _ in seen] == list(range(10, result.deals + 1, 10))
    assert seen[-1][1] == result.win_rate
    whole = evaluate(GreedyBot(), [RandomBot()] * 3, BASE, deals=result.deals)
    assert not whole.interrupted
    assert_same_figures(result, whole)


def test_evaluate__ctrl_c_before_the_first_result_is_passed_on() -> None:
    with pytest.raises(KeyboardInterrupt):
        evaluate(Interrupted(1), [RandomBot()] * 3, BASE, deals=10)
