"""Games per second of the arena, beside the same matches played through the AEC environment.

python -m benchmarks.evaluation
"""

from __future__ import annotations

import time

import numpy as np

import devyatka_env
from devyatka_env.bots import Bot, make_bot, make_opponents
from devyatka_env.evaluation import evaluate
from devyatka_env.rules import Rules

SEATS = (2, 3, 4, 5, 6)
DEALS = 20_000
AEC_GAMES = 500


def aec_games_per_second(bots: list[Bot], rules: Rules) -> float:
    """The same bots, asked one turn at a time through `env`."""
    env = devyatka_env.env(rules)
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    start = time.perf_counter()
    for _ in range(AEC_GAMES):
        env.reset()
        while not all(env.terminations.values()):
            seat = env.possible_agents.index(env.agent_selection)
            env.step(bots[seat].act(env.view(env.agent_selection), rng))
    return AEC_GAMES / (time.perf_counter() - start)


def main() -> None:
    """Print both and their ratio, for greedy against random, at every seat count."""
    greedy, random_bot = make_bot("greedy"), make_bot("random")
    for seats in SEATS:
        rules = Rules.of(num_players=seats)
        opponents = make_opponents(random_bot, seats - 1)
        evaluate(greedy, opponents, rules, 100)  # warm up
        result = evaluate(greedy, opponents, rules, DEALS)
        ours = result.games / result.seconds
        slow = aec_games_per_second([greedy, *opponents], rules)
        print(f"{seats} seats  arena {ours:>8,.0f} games/s  AEC loop {slow:>6,.0f} games/s  ratio {ours / slow:>5.0f}")


if __name__ == "__main__":
    main()
