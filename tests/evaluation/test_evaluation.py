"""The evaluator: means and intervals, duplicate deals against a naive arena, symmetry, interruptions, failures."""

from __future__ import annotations

import dataclasses
import json
import math
import multiprocessing
import os
import re
import resource
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from devyatka_env import Game, PlayerView, Rules, make_bot
from devyatka_env.bots import Bot, BotError, CallableBot, GreedyBot, RandomBot
from devyatka_env.engine import States
from devyatka_env.engine.randomness import decision_word
from devyatka_env.engine.seeds import word_key
from devyatka_env.evaluation import Comparison, Estimate, Evaluation, Workers, arena, compare, evaluate
from devyatka_env.evaluation.stats import Moments, adjust_mean, holm, mean_of
from devyatka_env.evaluation.workers import WorkerError

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

values = st.floats(-1e6, 1e6)


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(values, values), max_size=20), max_size=8))
def test_moments__streamed_in_any_chunks_are_numpys(chunks: list[list[tuple[float, float]]]) -> None:
    moments = Moments(2)
    for chunk in chunks:
        moments.add(Moments.of(np.array(chunk, np.float64).reshape(-1, 2)))
    moments = Moments.from_json(json.loads(json.dumps(moments.to_json())))
    seen = np.array([row for chunk in chunks for row in chunk], np.float64).reshape(-1, 2)
    estimate = moments.estimate(np.array([1.0, -1.0]))
    assert estimate.count == len(seen)
    if len(seen) == 0:
        assert all(map(math.isnan, (estimate.mean, estimate.low, estimate.high)))
        return
    difference = seen[:, 0] - seen[:, 1]
    scale = max(1.0, float(np.abs(seen).max()))
    assert estimate.mean == pytest.approx(difference.mean(), abs=1e-9 * scale)
    if len(seen) == 1:
        assert (estimate.low, estimate.high) == (-math.inf, math.inf)
        return
    half = 1.959964 * difference.std(ddof=1) / math.sqrt(len(seen))
    assert estimate.half_width == pytest.approx(half, rel=1e-4, abs=1e-6 * scale)
    assert estimate.low + estimate.high == pytest.approx(2 * estimate.mean, abs=1e-9 * scale)
    assert moments.covariance() == pytest.approx(np.cov(seen.T), rel=1e-6, abs=1e-6 * scale**2)


def test_moments__keep_their_digits_far_from_zero() -> None:
    # The textbook sum of squares would lose every digit of this variance.
    moments, rng = Moments(1), np.random.default_rng(0)
    data = 1e9 + rng.normal(size=10_000)
    for chunk in np.split(data, 100):
        moments.add(Moments.of(chunk[:, None]))
    assert moments.column(0).half_width == pytest.approx(1.959964 * data.std(ddof=1) / 100, rel=1e-4)


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
        estimate = mean_of(row)
        covered += estimate.low <= 0.25 <= estimate.high
    # 4,000 coin flips of 0.95: standard deviation 0.0034, so 0.015 is four of them, with 0.001 to spare for the
    # normal law's small deficit at 400 units.
    assert covered / repeats == pytest.approx(0.95, abs=0.015)


def test_estimate__p_value_is_that_of_the_normal_law() -> None:
    assert Estimate.of(1.959964, 1.0, 100).p_value == pytest.approx(0.05, abs=1e-6)
    assert Estimate.of(-2.575829, 1.0, 100).p_value == pytest.approx(0.01, abs=1e-6)
    assert Estimate.of(0.0, 0.0, 100).p_value == 1
    assert Estimate.of(1e-16, 0.0, 100).p_value == 1  # rounding
    assert Estimate.of(0.1, 0.0, 100).p_value == 0
    assert Estimate.of(0.1, 0.0, 1).p_value == 1  # one deal tells nothing


def test_holm__is_as_in_the_textbook() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm__false_alarms_among_many_equal_players_stay_at_the_level() -> None:
    rng, repeats = np.random.default_rng(2), 2000
    p_values = rng.uniform(size=(repeats, 10))
    alarms = sum(min(holm(row.tolist())) < 0.05 for row in p_values)
    assert alarms / repeats == pytest.approx(0.05, abs=0.02)
    assert sum(row.min() < 0.05 for row in p_values) / repeats > 0.35  # unadjusted


@pytest.mark.parametrize("explained", [0.0, 0.5, 0.99])
def test_adjusted_mean__covers_the_truth_and_gains_what_it_says(explained: float) -> None:
    rng, repeats, few, many = np.random.default_rng(3), 1000, 200, 2000
    covered, errors, plain, ratios = 0, [], [], []
    for _ in range(repeats):
        controls = rng.normal(size=(many, 2))
        luck = controls @ np.array([0.8, -0.6])
        outcome = 0.25 + math.sqrt(explained) * luck[:few] + math.sqrt(1 - explained) * rng.normal(size=few)
        rows = np.column_stack([outcome, controls[:few], controls[:few, :1]])  # one control twice
        all_controls = np.column_stack([controls, controls[:, :1]])
        found = adjust_mean(Moments.of(rows), Moments.of(all_controls))
        covered += found.mean.low <= 0.25 <= found.mean.high
        errors.append(found.mean.mean - 0.25)
        plain.append(outcome.mean() - 0.25)
        ratios.append(found.variance_ratio)
    assert covered / repeats == pytest.approx(0.95, abs=0.03)
    assert np.mean(ratios) == pytest.approx(np.var(plain) / np.var(errors), rel=0.15)
    assert np.mean(ratios) == pytest.approx(1 / (1 - explained * (1 - few / many)), rel=0.1)


def test_adjusted_mean__of_what_never_varies_is_itself() -> None:
    (row,) = compare(["greedy"], "greedy", "nine_each num_players=3", 100, adjust=3).evaluations
    assert row.adjusted is not None
    assert row.adjusted.mean == row.win_rate
    assert row.adjusted.variance_ratio == 1


def test_adjusted_mean__of_too_few_deals_has_no_interval() -> None:
    (row,) = compare(["random"], "greedy", BASE, 3, adjust=20).evaluations
    assert row.adjusted is not None
    assert (row.adjusted.mean.low, row.adjusted.mean.high) == (-math.inf, math.inf)


@pytest.mark.parametrize("adjust", [-1, 1.5])
def test_compare__an_adjustment_that_is_no_number_of_times_is_refused(adjust: Any) -> None:
    with pytest.raises(ValueError, match=f"adjust must be a whole number from 0, not {adjust}"):
        compare(["random"], "greedy", BASE, 3, adjust=adjust)


def test_compare__an_agent_that_exits_is_named_like_one_that_fails() -> None:
    def leaves(view: PlayerView, rng: np.random.Generator) -> int:
        raise SystemExit(5)

    first, last = compare([leaves, RandomBot()], "greedy", BASE, 20).evaluations
    assert first.failure is not None
    assert (first.failure.bot, first.failure.deal, last.deals) == ("leaves", 0, 20)


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
                word = decision_word(word_key(seed), np.uint64(deal), game.turn, int(game.record["num_played"]))
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


# --- comparisons -----------------------------------------------------------------------------------------------------


def test_compare__differences_are_deal_by_deal_with_their_own_interval() -> None:
    rules, deals, seed = Rules.of("one_loser", num_players=3), 40, 6
    candidates, opponents = [GreedyBot(), CallableBot(highest), RandomBot()], [OtherRandom(), GreedyBot()]
    result = compare(candidates, opponents, rules, deals, seed)
    by_deal = {}
    for bot, one in zip(candidates, result.evaluations, strict=True):
        assert_same_figures(one, evaluate(bot, opponents, rules, deals, seed))
        figures = naive([bot, *opponents], rules, deals, seed)
        by_deal[bot.name] = figures["win"].mean(1), figures["payoff"].mean(1)
    assert [(one.candidate, one.reference) for one in result.differences] == [
        ("greedy", "highest"),
        ("greedy", "random"),
    ]
    for one in result.differences:
        for estimate, k in ((one.win_rate, 0), (one.mean_payoff, 1)):
            apart = by_deal["greedy"][k] - by_deal[one.reference][k]
            assert estimate.mean == pytest.approx(apart.mean())
            assert estimate.half_width == pytest.approx(1.959964 * apart.std(ddof=1) / math.sqrt(deals), rel=1e-4)
    assert [one.p_adjusted for one in result.differences] == holm([one.p_value for one in result.differences])


def test_compare__a_candidate_twice_differs_by_nothing() -> None:
    (difference,) = compare(["random", RandomBot()], "greedy", BASE, 100).differences
    assert (difference.win_rate.mean, difference.win_rate.half_width, difference.p_value) == (0, 0, 1)


def test_evaluation__place_rates_are_shares_of_the_places() -> None:
    for seats in (2, 5):
        rules = Rules.of("first_out", num_players=seats)
        result = evaluate(OtherRandom(), "greedy", rules, 60)
        rates = [rate.mean for rate in result.place_rates]
        assert sum(rates) == pytest.approx(1)
        assert rates[0] == pytest.approx(result.win_rate.mean)
        assert np.dot(rates, range(1, seats + 1)) == pytest.approx(result.mean_place.mean)


def dealt(view: PlayerView) -> int:
    """The hand that the view's seat was dealt."""
    return int(view.record["hands"][0][view.seat] | view.record["played"][0][view.seat])


class FailsAt(GreedyBot):
    """Greedy until it meets a certain hand."""

    name = "fails"

    def __init__(self, hand: int, how: str) -> None:
        self.hand, self.how = hand, how

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        word = rng.integers(0, 2**64, size=1, dtype=np.uint64)
        if dealt(view) != self.hand:
            return int(GreedyBot.act_batch(self, view.record, view.rules, word)[0])
        if self.how == "slow":
            time.sleep(1.1)
            return view.legal_actions()[0]
        return -1 if self.how == "illegal" else 1 // 0

    act_batch = Bot.act_batch


@pytest.mark.parametrize(
    ("how", "message"),
    [("illegal", "illegal action -1"), ("crash", "division"), ("slow", "a move took 1.* s, the limit is 1 s")],
)
def test_compare__a_candidate_that_fails_ends_with_its_name_and_deal_and_the_others_play_on(
    how: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arena, "FIRST_DEALS", 4)
    monkeypatch.setattr(arena, "GAMES_AT_ONCE", 40)  # chunks of 4 and then 10 deals
    broken = FailsAt(Game.deal(BASE, 0, 17).dealt_masks[2], how)
    result = compare([GreedyBot(), broken, RandomBot()], "random", BASE, 40, move_seconds=1.0)
    first, failed, last = result.evaluations
    assert (first.deals, failed.deals, last.deals) == (40, 17, 40)  # all whole deals before the failure stand
    assert failed.failure is not None
    assert (failed.failure.bot, failed.failure.deal) == ("fails", 17)
    assert re.search(message, failed.failure.message)
    assert (first.failure, last.failure) == (None, None)
    assert_same_figures(failed, evaluate(GreedyBot(), "random", BASE, 17))
    assert_same_figures(last, evaluate(RandomBot(), "random", BASE, 40))
    assert [one.reference for one in result.differences] == ["random"]
    as_opponent = compare([GreedyBot(), RandomBot()], [broken, "random", "random"], BASE, 40, move_seconds=1.0)
    assert [(one.deals, one.failure and one.failure.bot) for one in as_opponent.evaluations] == [(17, "fails")] * 2


# --- workers ---------------------------------------------------------------------------------------------------------


def assert_identical(one: Comparison, other: Comparison) -> None:
    """To the last bit, but for the seconds."""
    for first, second in zip(one.evaluations, other.evaluations, strict=True):
        assert dataclasses.replace(first, seconds=0) == dataclasses.replace(second, seconds=0)
    assert one.differences == other.differences


def test_workers__give_the_same_figures_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "GAMES_AT_ONCE", 100)
    candidates = [CallableBot(highest), "random", lambda view, rng: int(rng.choice(view.legal_actions()))]
    alone = compare(candidates, "greedy", BASE, 120, 3, adjust=2)
    with Workers(jobs=2) as workers:
        assert_identical(compare(candidates, "greedy", BASE, 120, 3, adjust=2, workers=workers), alone)
        # Of a failure, too; the workers live on.
        broken = compare([FailsAt(Game.deal(BASE, 0, 30).dealt_masks[2], "crash")], "random", BASE, 60, workers=workers)
        assert broken.evaluations[0].failure is not None
        assert (broken.evaluations[0].failure.deal, broken.evaluations[0].deals) == (30, 30)
        assert_identical(compare(candidates, "greedy", BASE, 120, 3, adjust=2, workers=workers), alone)


def test_workers__one_that_dies_leaves_what_was_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "GAMES_AT_ONCE", 40)
    hand = Game.deal(BASE, 0, 100).dealt_masks[0]

    def dies(view: PlayerView, rng: np.random.Generator) -> int:
        if dealt(view) == hand:
            os._exit(1)
        return view.legal_actions()[0]

    with Workers(jobs=2) as workers:
        (result,) = compare([dies], "greedy", BASE, 2000, workers=workers).evaluations
        assert result.failure is not None
        assert "a worker process died" in result.failure.message
        assert 10 <= result.deals < 101
        assert evaluate("random", "greedy", BASE, 20, workers=workers).deals == 20  # others start in its place


def test_workers__what_cannot_be_sent_is_refused_with_a_word() -> None:
    lock = threading.Lock()
    with Workers(jobs=2) as workers, pytest.raises(WorkerError, match=r"cannot be sent to other processes.*jobs=1"):
        compare([lambda view, rng: (lock, view.legal_actions()[0])[1]], "greedy", BASE, 20, workers=workers)


def test_workers__are_ended_in_the_middle_of_a_move_that_never_ends() -> None:
    def endless(view: PlayerView, rng: np.random.Generator) -> int:
        while True:
            time.sleep(0.01)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)  # stands for Ctrl-C
    try:
        with Workers(jobs=2) as workers:
            evaluate("greedy", "greedy", BASE, 20, workers=workers)  # the processes are there
            signal.alarm(1)
            with pytest.raises(KeyboardInterrupt):
                evaluate(endless, "greedy", BASE, 20, workers=workers)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("jobs", [0, -1])
def test_workers__less_than_one_job_is_refused(jobs: int) -> None:
    with pytest.raises(ValueError, match=f"jobs must be at least 1, not {jobs}"):
        Workers(jobs)


def test_memory__does_not_grow_with_the_deals() -> None:
    evaluate("greedy", "greedy", BASE, 5000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    evaluate("greedy", "greedy", BASE, 200_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 * 1024  # KiB


@pytest.mark.filterwarnings("default")  # Ray's own: deprecations, and sockets that it leaves to its processes
def test_workers__a_local_ray_cluster_gives_the_same_figures_to_the_last_bit() -> None:
    pytest.importorskip("ray", reason="Ray has no wheel for this Python")
    candidates = ["random", CallableBot(highest)]
    alone = compare(candidates, "greedy", BASE, 300, 3)
    with Workers(jobs=2, ray="local") as workers:
        assert_identical(compare(candidates, "greedy", BASE, 300, 3, workers=workers), alone)
