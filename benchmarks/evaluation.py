"""What an evaluation costs and how far its deals go.

python -m benchmarks.evaluation

Prints games/s of the arena beside the same matches played through the AEC environment; what duplicate deals with all
seats and control variates do to the errors; and the memory of ten thousand and ten million games.
"""

from __future__ import annotations

import resource
import time

import numpy as np
import torch

import devyatka_env
from devyatka_env.bots import Bot, PolicyBot, make_bot, make_opponents
from devyatka_env.bots.network import build_network
from devyatka_env.evaluation import Workers, compare, evaluate
from devyatka_env.evaluation.duplicate import FIGURES, measure, play_rotations
from devyatka_env.rules import Rules

FOUR = Rules.of("first_out", num_players=4)
AEC_GAMES = 300
SCRIPTED_DEALS = 250_000
NETWORK_DEALS = 25_000
ERROR_DEALS = 2000
CONTROL_DEALS = 20  # to one of the evaluation
MANY_GAMES = 10_000_000


def network_bot(width: int = 256) -> Bot:
    """An untrained network of two hidden layers: it costs what a trained one does."""
    torch.manual_seed(0)
    network = build_network(36, {"kind": "mlp", "hidden": [width, width]})
    return PolicyBot(network, name=f"network {width} x {width}")


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


def arena_games_per_second(candidate: Bot, opponents: list[Bot], rules: Rules, deals: int, workers: Workers) -> float:
    """Wall time of one evaluation, the processes and kernels being there."""
    evaluate(candidate, opponents, rules, 50 * workers.jobs, workers=workers)
    start = time.perf_counter()
    result = evaluate(candidate, opponents, rules, deals, workers=workers)
    return result.games / (time.perf_counter() - start)


def speed() -> None:
    """Games/s of the arena on one and two processes, beside the AEC loop."""
    torch.set_num_threads(1)
    with Workers(jobs=1) as one, Workers(jobs=2) as two:
        for seats in (2, 3, 4, 5, 6):
            rules = Rules.of(num_players=seats)
            _row(f"greedy against random, {seats} seats", "greedy", "random", rules, SCRIPTED_DEALS, (one, two))
        _row("greedy against greedy, 4 seats", "greedy", "greedy", FOUR, SCRIPTED_DEALS, (one, two))
        _row("256 x 256 network against greedy, 4 seats", network_bot(), "greedy", FOUR, NETWORK_DEALS, (one, two))


def _row(
    name: str, candidate: Bot | str, against: str, rules: Rules, deals: int, workers: tuple[Workers, Workers]
) -> None:
    bot, opponents = make_bot(candidate), make_opponents(against, rules.num_players - 1)
    rates = [arena_games_per_second(bot, opponents, rules, deals, some) for some in workers]
    slow = aec_games_per_second([bot, *opponents], rules)
    print(
        f"{name:42}  1 process {rates[0]:>9,.0f} games/s  2 processes {rates[1]:>9,.0f}"
        f"  AEC loop {slow:>6,.0f}  ratio {rates[1] / slow:>6.0f}",
        flush=True,
    )


def errors() -> None:
    """Standard errors of a difference of two candidates, of as many games each, in three ways."""
    print("\nstandard error of a difference of win rates, 4 seats, against greedy, for the same number of games")
    for one, other in (
        ("checkpoints/universal", "blocker"),
        ("checkpoints/universal", "random"),
        ("blocker", "closed"),
    ):
        rows = []
        for name in (one, other):
            bots = [make_bot(name), *make_opponents("greedy", 3)]
            rows.append(measure(*play_rotations(bots, FOUR, np.arange(ERROR_DEALS), 0)))
        wins = [row[:, len(FIGURES) : len(FIGURES) + 4] for row in rows]
        games = wins[0].size
        independent = np.sqrt(sum(won.var() for won in wins) / games)  # each game its own deal and seat
        duplicate = np.sqrt(sum(won.mean(1).var() for won in wins) / ERROR_DEALS)  # all seats, deals of their own
        paired = np.sqrt((wins[0].mean(1) - wins[1].mean(1)).var() / ERROR_DEALS)  # all seats, the same deals
        print(
            f"{one + ' - ' + other:42}  independent {independent:.5f}  all seats {duplicate:.5f}"
            f"  all seats, same deals {paired:.5f}  factor {independent / paired:.2f}"
        )
    print(f"\nluck-adjusted win rate (controls over {CONTROL_DEALS} times the deals), checkpoints/universal")
    for against in ("greedy", "random"):
        for seats in (2, 3, 4, 5, 6):
            rules = Rules.of(num_players=seats)
            (found,) = compare(["checkpoints/universal"], against, rules, 1000, adjust=CONTROL_DEALS).evaluations
            assert found.adjusted is not None
            print(
                f"against {against}, {seats} seats  plain {found.win_rate}  adjusted {found.adjusted.mean}"
                f"  variance {found.adjusted.variance_ratio:.2f} x less"
            )


def memory() -> None:
    """Peak memory of this process after few and after many games."""
    evaluate("greedy", "greedy", FOUR, 2500)
    few = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    evaluate("greedy", "greedy", FOUR, MANY_GAMES // 4)
    many = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"\npeak memory {few / 1024:.1f} MB after 10 thousand games, {many / 1024:.1f} MB after {MANY_GAMES:,}"
        f" ({time.perf_counter() - start:.0f} s)"
    )


def main() -> None:
    """Print everything. The memory first: what comes after raises the peak."""
    memory()
    speed()
    errors()


if __name__ == "__main__":  # worker processes import this module, too
    main()
