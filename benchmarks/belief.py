"""Exact beliefs: the table of ways, probabilities and random worlds, by seats and cards laid.

python -m benchmarks.belief
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

import numpy as np

from devyatka_env.engine import STATE_DTYPE, rules_record
from devyatka_env.games import Game
from devyatka_env.rules import Rules
from devyatka_env.views import Belief, PlayerView
from devyatka_env.views.worlds import sample_worlds_at

LAID = (0, 4, 12, 20)
GAMES = 40
REPEATS = 5
WORLDS = 2000
# The largest tables of any rules: six seats, 52 cards, seven a seat, ten out of play.
LARGEST = {"preset": "any_nine", "ranks": "23456789TJQKA", "cards_per_seat": 7}


def mover_views(rules: Rules, laid: int) -> list[PlayerView]:
    """Views of the seat on turn in random games when so many cards are laid."""
    views = []
    for seed in range(10 * GAMES):
        game, rng = Game.deal(rules, seed), random.Random(seed)
        while not game.is_over and int(game.record["num_played"]) < laid:
            game.play(rng.choice(game.legal_actions()))
        if not game.is_over and len(views) < GAMES:
            views.append(game.view(game.turn))
    return views


def microseconds(work: Callable[[], object]) -> float:
    """The fastest of a few runs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e6 * min(times)


def measure(view: PlayerView) -> tuple[float, float, float, float]:
    """The deals; microseconds of the count, of the probabilities, and of one world more."""
    belief, rules, worlds = Belief(view), rules_record(view.rules), np.empty(WORLDS, STATE_DTYPE)
    # Other worlds in every run, or the processor learns their branches by heart.
    words = iter(np.arange(2 * REPEATS, dtype=np.uint64))

    def sample(number: int) -> float:
        return microseconds(lambda: sample_worlds_at(view.record, 0, rules, view.seat, next(words), worlds[:number]))

    counted = microseconds(lambda: Belief(view))
    weighed = microseconds(lambda: Belief(view).marginals) - counted
    return belief.count, counted, weighed, (sample(WORLDS) - sample(1)) / (WORLDS - 1)


def everything(view: PlayerView) -> None:
    """Count, probabilities and 100 samples."""
    belief = Belief(view)
    _ = belief.count, belief.marginals, belief.sample(np.random.default_rng(0), 100)


def main() -> None:
    """Print medians over positions of random games, and the whole cost at a fresh four-seat deal."""
    packs = [Rules.of(num_players=seats) for seats in (3, 4, 5, 6)]
    packs += [Rules.of("deck_52", num_players=6), Rules.of(LARGEST, num_players=6)]
    measure(mover_views(packs[0], 0)[0])  # warm up
    for rules in packs:
        for laid in LAID:
            rows = [measure(view) for view in mover_views(rules, laid)]
            deals, counted, weighed, world = (statistics.median(column) for column in zip(*rows, strict=True))
            print(
                f"{rules.num_players} seats, {rules.deck.num_cards} cards{', 7 each' if rules.cards_per_seat else ''}, "
                f"{laid:2} laid   {deals:7.1e} deals   count {counted:7,.0f} µs   "
                f"marginals {weighed:7,.0f} µs   a world {world:5.2f} µs"
            )
    fresh = mover_views(Rules.of(num_players=4), 0)
    everything(fresh[0])
    spent = [microseconds(lambda view=view: everything(view)) for view in fresh]
    print(f"4 seats, fresh: count, marginals and 100 samples {statistics.median(spent) / 1000:.3f} ms")


if __name__ == "__main__":
    main()
