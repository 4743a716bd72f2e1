"""How far from perfect bots are: by counts move by move, `ceilings` and the solver study, and for faultless players."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from devyatka_env.bots import Bot, BotError, ceilings, make_bot
from devyatka_env.bots.best_response import best_ends
from devyatka_env.engine import States
from devyatka_env.evaluation import Workers, evaluate, regret, standing, two_seats
from devyatka_env.evaluation import exact_regret as exact
from devyatka_env.evaluation.stats import Moments, ratio
from devyatka_env.evaluation.streaming import Measured
from devyatka_env.games import Game
from devyatka_env.rules import Rules, iter_mask
from devyatka_env.solver import best_many, solve
from devyatka_env.views import PlayerView

TWO = Rules.of("first_out", num_players=2)
MINI = Rules.of("first_out num_players=2 num_suits=3 ranks=789TJ starter=8")
STUDY = Path(__file__).resolve().parents[2] / "docs" / "perfect_play.json"


def lowest(view: PlayerView, rng: np.random.Generator) -> int:
    return view.legal_actions()[0]


class Lowest(Bot):
    """Lays its lowest legal card; must be asked, and reads nothing else."""

    name = "lowest"
    deterministic = True
    reads_history = False
    reads_order = False

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        return lowest(view, rng)


class Breaks(Lowest):
    """Fails when asked for the 1,500th time."""

    name = "breaks"

    def __init__(self) -> None:
        self.asked = 0

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        self.asked += 1
        if self.asked >= 1500:
            raise RuntimeError("out of cards to think of")
        return lowest(view, rng)


def without_seconds(found: Measured) -> Measured:
    return dataclasses.replace(found, seconds=0.0)


class Perfect(Bot):
    """Lays the lowest of the best cards; at two seats its view is the whole position."""

    name = "perfect"
    deterministic = True
    reads_history = False
    reads_order = False

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        raise AssertionError("asked for batches only")

    def act_batch(self, views: States, rules: Rules, words: np.ndarray) -> np.ndarray:
        full = views.copy()
        rows, seats = np.arange(len(full)), full["turn"].astype(np.int64)
        own = full["hands"][rows, seats]
        assert (full["hands"][rows, 1 - seats] == 0).all()  # a bot that does not cheat is shown no other hand
        full["hands"][rows, 1 - seats] = np.uint64(rules.deck.mask) & ~full["table"] & ~own
        best = best_many(full, rules)
        return np.array([next(iter_mask(int(mask))) for mask in best])


def test_regret__is_zero_for_perfect_play() -> None:
    result = regret(Perfect(), TWO, 60, seed=5, opponent="greedy")
    assert result.decisions > 1000
    assert result.mattered > 50
    assert result.value_lost.mean == result.mistakes.mean == result.mistakes_of_mattered.mean == 0


def count_by_hand(name: str, rules: Rules, num_deals: int, seed: int) -> tuple[int, float, int, int]:
    """Decisions, value lost, mistakes and decisions that mattered of a deterministic bot that plays itself."""
    bot, rng = make_bot(name), np.random.default_rng(0)
    decisions, lost, mistakes, mattered = 0, 0.0, 0, 0
    for index in range(num_deals):
        game = Game.deal(rules, seed, index)
        while not game.is_over:
            action = game.legal_actions()[0]
            if len(game.legal_actions()) > 1:
                values = solve(game).values
                action = bot.act(game.view(game.turn), rng)
                decisions += 1
                lost += max(values.values()) - values[action]
                mattered += max(values.values()) > 0 >= min(values.values())
                mistakes += max(values.values()) > 0 >= values[action]
            game.play(action)
    return decisions, lost, mistakes, mattered


@pytest.mark.parametrize("rules", [TWO, Rules.of("round", num_players=2)], ids=lambda rules: rules.payoff)
def test_regret__equals_a_count_move_by_move(rules: Rules) -> None:
    decisions, lost, mistakes, mattered = count_by_hand("greedy", rules, 12, seed=3)
    result = regret("greedy", rules, 12, seed=3)
    # Both games of a deal are the same one here, and the recorded seat is each of the two in turn.
    assert result.decisions == decisions
    assert result.mattered == mattered
    assert mistakes > 0
    assert result.value_lost.mean == pytest.approx(lost / decisions)
    assert result.mistakes.mean == pytest.approx(mistakes / decisions)
    assert result.mistakes_of_mattered.mean == pytest.approx(mistakes / mattered)


def test_regret__does_not_depend_on_how_many_deals_are_kept_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = regret("greedy", TWO, 20)
    monkeypatch.setattr("devyatka_env.evaluation.arena.GAMES_AT_ONCE", 6)
    parts = regret("greedy", TWO, 20)
    assert (parts.decisions, parts.mattered) == (whole.decisions, whole.mattered)
    assert parts.value_lost.mean == pytest.approx(whole.value_lost.mean)
    assert parts.value_lost.half_width == pytest.approx(whole.value_lost.half_width)


@pytest.mark.parametrize("field", ["greedy", "random"])
def test_regret__agrees_with_the_solver_study(field: str) -> None:
    """Fresh deals, three standard errors; the study's own error is a fourth of theirs."""
    saved = json.loads(STUDY.read_text(encoding="utf-8"))["two_seats"][field]
    found = regret(field, TWO, 1200, seed=17)
    for estimate, figure in (
        (found.mistakes, saved["mistakes_per_1000_decisions"] / 1000),
        (found.mistakes_of_mattered, saved["mistakes_share_of_mattered"]),
    ):
        assert estimate.half_width < 0.2 * figure
        assert abs(estimate.mean - figure) < 1.5 * estimate.half_width
    mattered = saved["mattered_share_of_turns"] / saved["decisions_share_of_turns"]
    assert found.mattered / found.decisions == pytest.approx(mattered, rel=0.05)
    # A mistake turns +1 into -1.
    assert found.value_lost.mean == pytest.approx(2 * found.mistakes.mean)


def test_regret__counts_deals_that_have_the_same_cards_or_leave_no_choice() -> None:
    """Of six cards two each: 60 deals repeat each other, and in some of them nobody ever has a choice."""
    tiny = Rules.of("nine_each num_players=2 cards_per_seat=2 num_suits=2 ranks=789 starter=8")
    decisions = []
    for index in range(60):
        game = Game.deal(tiny, 1, index)
        decisions.append(0)
        while not game.is_over:
            decisions[-1] += len(game.legal_actions()) > 1
            game.play(game.legal_actions()[0])
    found = regret(Lowest(), tiny, 60, seed=1)
    assert 0 in decisions
    assert found.decisions == sum(decisions)
    assert found.match.deals == found.value_lost.count == 60


def test_regret__a_foul_is_no_play_that_has_a_value() -> None:
    rules = Rules.of("winner_and_loser", num_players=2)

    def passes(view: PlayerView, rng: np.random.Generator) -> int:
        return rules.pass_action

    with pytest.raises(BotError, match=r"passes fouled \(deal 0 of seed 4\): exact values are of play by the rules"):
        regret(passes, rules, 3, seed=4)


# --- two seats -------------------------------------------------------------------------------------------------------


def test_two_seats__the_oracle_loses_nothing() -> None:
    found = two_seats("oracle", TWO, 40, seed=2)
    assert found.cheats
    assert found.hands_known
    assert found.regret.mattered > 100
    assert found.regret.value_lost.mean == found.regret.mistakes.mean == found.regret.mistakes_of_mattered.mean == 0
    assert found.against_oracle is not None
    assert found.against_oracle.win_rate.mean == 0.5
    assert found.against_oracle.win_rate.half_width == 0
    assert found.best_response is not None
    assert found.best_response.unknown == "no exact best response to oracle: not deterministic"
    assert np.isnan(found.best_response.win_rate.mean)


def test_two_seats__perfect_play_cannot_be_exploited() -> None:
    found = two_seats(Perfect(), TWO, 20, seed=5)
    assert found.against_oracle is not None
    assert found.best_response is not None
    assert found.best_response.deals == 20
    assert found.against_oracle.win_rate.mean == found.best_response.win_rate.mean == 0.5
    assert not found.cheats


def test_two_seats__perfect_play_is_a_response_but_not_the_best() -> None:
    found = two_seats("greedy", TWO, 80, seed=6)
    assert found.against_oracle is not None
    assert found.best_response is not None
    assert found.against_oracle.win_rate.mean == evaluate("greedy", "oracle", TWO, 80, seed=6).win_rate.mean
    assert found.best_response.win_rate.mean < found.against_oracle.win_rate.mean < 0.5


@pytest.mark.parametrize(
    "text",
    ["first_out", "round", "bank", "one_loser", "any_nine", "nine_each", "nine_each cards_per_seat=14", "sevens"],
)
def test_best_response__is_that_of_ceilings(text: str) -> None:
    rules = Rules.of(f"{text} num_players=2")
    found = two_seats("greedy", rules, 20, seed=9).best_response
    assert found is not None
    wins = ceilings(rules, "greedy", np.arange(20), seed=9).wins
    assert found.win_rate.mean == pytest.approx(1 - wins.mean(), abs=1e-12)
    assert found.deals == 20


@pytest.mark.parametrize("text", ["first_out", "bank", "any_nine", "nine_each cards_per_seat=6"])
def test_best_response__to_a_bot_that_must_be_asked_is_that_of_ceilings(text: str) -> None:
    rules = Rules.of(f"{text} num_players=2 num_suits=3 ranks=789TJ starter=8")
    found = two_seats(Lowest(), rules, 40, seed=9).best_response
    assert found is not None
    wins = ceilings(rules, Lowest(), np.arange(40), seed=9).wins
    assert found.win_rate.mean == pytest.approx(1 - wins.mean(), abs=1e-12)
    assert found.deals == 40


def test_best_response__that_takes_too_many_positions_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "best_ends", partial(best_ends, max_states=2))
    found = two_seats("greedy", TWO, 20).best_response
    assert found is not None
    assert found.unknown.startswith("no exact best response to greedy: more than max_states=2 positions")
    assert np.isnan(found.win_rate.mean)
    assert found.failure is None


@pytest.mark.parametrize(
    ("text", "known"), [("first_out", True), ("nine_each", False), ("nine_each cards_per_seat=18", True)]
)
def test_two_seats__says_whether_the_seats_know_each_others_hands(text: str, known: bool) -> None:
    assert two_seats("greedy", Rules.of(f"{text} num_players=2"), 2).hands_known is known


def test_two_seats__a_bot_that_fails_is_named_and_what_was_done_is_kept() -> None:
    found = two_seats(Breaks(), TWO, 200, seed=3)
    match = found.regret.match
    assert match.failure is not None
    assert match.failure.bot == "breaks"
    assert "out of cards to think of" in match.failure.message
    assert match.deals > 0
    assert found.regret.decisions > 0
    assert found.against_oracle is None
    assert found.best_response is None
    assert found.parts == (match,)
    with pytest.raises(BotError, match="bot breaks failed"):
        regret(Breaks(), TWO, 200, seed=3)


@pytest.mark.parametrize("part", ["choices", "perfect play", "best responses"])
def test_two_seats__ctrl_c_keeps_what_was_done(part: str) -> None:
    def stop(name: str, done: int, deals: int) -> None:
        assert deals == 30
        if name == part:
            raise KeyboardInterrupt

    whole, found = two_seats("greedy", TWO, 30), two_seats("greedy", TWO, 30, progress=stop)
    names = ["choices", "perfect play", "best responses"]
    number = names.index(part)
    assert len(found.parts) == number + 1
    assert [one.interrupted for one in found.parts] == [False] * number + [True]
    assert [one.deals for one in found.parts] == [30] * number + [16]
    for kept, full in zip(found.parts[:number], whole.parts, strict=False):
        assert without_seconds(kept) == without_seconds(full)


@pytest.mark.parametrize("measure", [partial(regret, "greedy", TWO, 5), partial(two_seats, "greedy", TWO, 5),
                                     partial(standing, "greedy", "random", TWO, 5)])  # fmt: skip
def test_ctrl_c__before_anything_was_done_is_passed_on(measure: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    for place in ("exact_regret", "streaming", "against_ceiling"):
        monkeypatch.setattr(f"devyatka_env.evaluation.{place}.play_rotations", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measure()  # type: ignore[operator]


# --- standing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seats", [2, 3, 4, 5, 6])
def test_standing__of_the_field_itself_is_chance(seats: int) -> None:
    found = standing("greedy", "greedy", Rules.of(num_players=seats), 60, seed=4)
    assert found.win_rate.mean == pytest.approx(1 / seats)
    assert found.share.mean == pytest.approx(0)
    assert found.share.half_width == pytest.approx(0, abs=1e-9)
    assert found.ceiling.mean > 1 / seats


def test_standing__of_the_best_response_is_the_ceiling() -> None:
    """The oracle beyond two seats is the best response to `greedy`."""
    found = standing("oracle", "greedy", Rules.of(num_players=3), 60, seed=4)
    assert found.share.mean == pytest.approx(1)
    assert found.share.half_width == pytest.approx(0, abs=1e-9)
    assert found.cheats == ("oracle",)


def test_standing__is_made_of_the_arenas_win_rate_and_the_ceiling() -> None:
    rules, against, deals = Rules.of("one_loser", num_players=3), ["greedy", "blocker"], 300
    found = standing("runner", against, rules, deals, seed=8)
    wins = ceilings(rules, against, np.arange(deals), seed=8).wins.mean(1)
    played = evaluate("runner", against, rules, deals, seed=8).win_rate
    assert found.win_rate.mean == pytest.approx(played.mean, abs=1e-12)
    assert found.win_rate.half_width == pytest.approx(played.half_width)
    assert found.ceiling.mean == pytest.approx(wins.mean())
    assert found.share.mean == pytest.approx((played.mean - 1 / 3) / (wins.mean() - 1 / 3))
    assert (found.bot, found.against, found.deals, found.cheats) == ("runner", ("greedy", "blocker"), deals, ())


def test_standing__against_chance_has_no_ceiling_but_a_win_rate() -> None:
    rules = Rules.of(num_players=4)
    found = standing("greedy", ["greedy", "random", "random"], rules, 40, seed=1)
    assert found.unknown == "no exact ceiling against random: not deterministic"
    assert found.win_rate == evaluate("greedy", ["greedy", "random", "random"], rules, 40, seed=1).win_rate
    assert np.isnan(found.ceiling.mean)
    assert np.isnan(found.share.mean)


def test_standing__whose_ceiling_takes_too_many_positions_has_a_win_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devyatka_env.evaluation.against_ceiling.ceilings", partial(ceilings, max_states=2))
    found = standing("random", "greedy", Rules.of(num_players=3), 40)
    assert found.unknown.startswith("no exact ceiling: more than max_states=2 positions")
    assert found.deals == found.win_rate.count == 40
    assert np.isnan(found.share.mean)


def test_standing__a_bot_that_fails_is_named_and_what_was_done_is_kept() -> None:
    found = standing(Breaks(), "greedy", Rules.of(num_players=3), 300)
    assert found.failure is not None
    assert found.failure.bot == "breaks"
    assert 0 < found.deals == found.win_rate.count < 300


@pytest.mark.parametrize("deals", [0, -1, "many", 1.5])
def test_exact__refuses_what_is_no_number_of_deals(deals: object) -> None:
    for measure in (partial(regret, "greedy"), partial(two_seats, "greedy"), partial(standing, "greedy", "greedy")):
        with pytest.raises(ValueError, match=f"deals must be .*, not {deals!r}"):
            measure(TWO, deals)


@pytest.mark.parametrize("measure", [regret, two_seats])
@pytest.mark.parametrize("seats", [3, 4])
def test_exact_values__refuse_more_than_two_seats(seats: int, measure: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match=f"the two-seat solver needs num_players=2, not {seats}"):
        measure("greedy", Rules.of("first_out", num_players=seats), 2)


@pytest.mark.slow
def test_exact__is_the_same_on_two_processes() -> None:
    with Workers(2) as workers:
        for alone, together in (
            (two_seats("greedy", TWO, 90), two_seats("greedy", TWO, 90, workers=workers)),
            (two_seats(Lowest(), MINI, 40), two_seats(Lowest(), MINI, 40, workers=workers)),
        ):
            assert alone.regret.value_lost == together.regret.value_lost
            assert [without_seconds(part) for part in alone.parts] == [without_seconds(part) for part in together.parts]
        rules = Rules.of(num_players=3)
        alone, together = (
            standing("random", "greedy", rules, 300),
            standing("random", "greedy", rules, 300, workers=workers),
        )
        assert without_seconds(alone) == without_seconds(together)


# --- ratios ----------------------------------------------------------------------------------------------------------


def test_ratio__of_groups_of_one_is_the_mean_with_its_usual_interval() -> None:
    values = np.array([1.0, 2.0, 4.0, 9.0])
    estimate = ratio(Moments.of(np.column_stack([values, np.ones(4)])), 0, 1)
    assert estimate.mean == 4.0
    assert estimate.count == 4
    assert estimate.half_width == pytest.approx(1.959964 * values.std(ddof=1) / 2)


def test_ratio__over_nothing_is_not_known() -> None:
    for sums in (Moments(2), Moments.of(np.array([[1.0, 0.0], [2.0, 0.0]]))):
        assert np.isnan(ratio(sums, 0, 1).mean)
    assert np.isnan(ratio(Moments.of(np.array([[0.5, 0.25], [0.5, 0.25]])), 0, 1, less=0.25).mean)


@pytest.mark.parametrize("less", [0.0, -1.0])
def test_ratio__interval_covers_the_truth_as_often_as_it_says(less: float) -> None:
    """Decisions of a deal share its luck: 2,000 simulated studies of 200 deals each."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(2000):
        counts = rng.integers(1, 30, 200).astype(float)
        rates = rng.beta(1, 9, 200)
        sums = rng.binomial(counts.astype(int), rates).astype(float)
        estimate = ratio(Moments.of(np.column_stack([sums, counts])), 0, 1, less)
        covered += estimate.low <= (1.5 - less) / (15 - less) <= estimate.high
    assert 0.93 < covered / 2000 < 0.965  # three standard errors around 0.95, and the little it lacks at 200 deals
