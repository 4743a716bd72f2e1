"""What a bot gives away by exact values: against a count move by move with `solve`, and for faultless players."""

from __future__ import annotations

import numpy as np
import pytest

from devyatka_env.bots import Bot, make_bot
from devyatka_env.cards import iter_mask
from devyatka_env.evaluation.exact import regret
from devyatka_env.evaluation.stats import ratio
from devyatka_env.game import Game
from devyatka_env.records import States
from devyatka_env.rules import Rules
from devyatka_env.solver import best_many, solve
from devyatka_env.view import PlayerView

TWO = Rules.of("first_out", num_players=2)


class Perfect(Bot):
    """Lays the lowest of the best cards; at two seats its view is the whole position."""

    name = "perfect"

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


def count_by_hand(name: str, num_deals: int, seed: int) -> tuple[int, float, int, int]:
    """Decisions, value lost, mistakes and decisions that mattered of a deterministic bot that plays itself."""
    bot, rng = make_bot(name), np.random.default_rng(0)
    decisions, lost, mistakes, mattered = 0, 0.0, 0, 0
    for index in range(num_deals):
        game = Game.deal(TWO, seed, index)
        while not game.is_over:
            action = game.legal_actions()[0]
            if len(game.legal_actions()) > 1:
                values = solve(game).values
                action = bot.act(game.view(game.turn), rng)
                decisions += 1
                lost += max(values.values()) - values[action]
                mattered += max(values.values()) > 0 > min(values.values())
                mistakes += max(values.values()) > 0 > values[action]
            game.play(action)
    return decisions, lost, mistakes, mattered


def test_regret__equals_a_count_move_by_move() -> None:
    decisions, lost, mistakes, mattered = count_by_hand("greedy", 12, seed=3)
    result = regret("greedy", TWO, 12, seed=3)
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


@pytest.mark.parametrize("seats", [3, 4])
def test_regret__refuses_more_than_two_seats(seats: int) -> None:
    with pytest.raises(ValueError, match=f"the two-seat solver needs num_players=2, not {seats}"):
        regret("greedy", Rules.of("first_out", num_players=seats), 2)


@pytest.mark.parametrize("deals", [0, -1, "many", 1.5])
def test_regret__refuses_what_is_no_number_of_deals(deals: object) -> None:
    with pytest.raises(ValueError, match=f"deals must be .*, not {deals!r}"):
        regret("greedy", TWO, deals)  # type: ignore[arg-type]


def test_ratio__of_groups_of_one_is_the_mean_with_its_usual_interval() -> None:
    values = np.array([1.0, 2.0, 4.0, 9.0])
    estimate = ratio(values, np.ones(4))
    assert estimate.mean == 4.0
    assert estimate.half_width == pytest.approx(1.959964 * values.std(ddof=1) / 2)


def test_ratio__interval_covers_the_truth_as_often_as_it_says() -> None:
    """Decisions of a deal share its luck: 2,000 simulated studies of 200 deals each."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(2000):
        counts = rng.integers(1, 30, 200).astype(float)
        rates = rng.beta(1, 9, 200)
        estimate = ratio(rng.binomial(counts.astype(int), rates).astype(float), counts)
        covered += estimate.low <= 0.1 <= estimate.high
    assert 0.93 < covered / 2000 < 0.965  # three standard errors around 0.95, and the little it lacks at 200 deals
