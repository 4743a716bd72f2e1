"""Moves per second of the Gymnasium vector environment and of the SB3 `VecEnv` beside the raw batch, 1,024 games.

Four seats, greedy opponents in the environments; the moves of all seats count. The learner's action is its first legal
one in an order of the cards drawn afresh at every step. All run in turn, several rounds; ratios are taken within a
round.

python -m benchmarks.vector
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

import devyatka_env  # noqa: F401 - registers the environment
from devyatka_env.games import BatchGame
from devyatka_env.rules import Rules

GAMES = 1024
STEPS = 200  # of the environments: some twenty deals a game
ROUNDS = 9
PROMISED = 0.3

Runner = Callable[[], float]


def first_legal(masks: Any, rng: np.random.Generator) -> Any:
    """The first legal action of every row, in a order common to all rows: random play that is cheap to draw."""
    order = (rng.permutation(masks.shape[1]) + 1).astype(np.uint8)
    return (masks.view(np.uint8) * order).argmax(axis=1)


def raw() -> Runner:
    """`BatchGame` as in `benchmarks.compare`: every step is one move, and passes aren't counted."""
    games = BatchGame(Rules.of("first_out", num_players=4), GAMES, seed=1)
    rng = np.random.default_rng(0)

    def run() -> float:
        start = time.perf_counter()
        for _ in range(5 * STEPS):
            games.step(games.sample_actions(rng), check=False)
            games.observations()
            games.action_masks()
        return 5 * STEPS * GAMES / (time.perf_counter() - start)

    return run


def vector() -> Runner:
    """``gymnasium.make_vec``, native."""
    env = gymnasium.make_vec("devyatka/Devyatka-v0", num_envs=GAMES, opponents="greedy")
    rng = np.random.default_rng(0)
    observation, _ = env.reset(seed=1)
    masks = observation["action_mask"]

    def run() -> float:
        nonlocal masks
        before = env.unwrapped.moves
        start = time.perf_counter()
        for _ in range(STEPS):
            observation, *_ = env.step(first_legal(masks, rng))
            masks = observation["action_mask"]
        return (env.unwrapped.moves - before) / (time.perf_counter() - start)

    return run


def sb3() -> Runner:
    """`DevyatkaVecEnv`; needs stable-baselines3."""
    from devyatka_env.envs import DevyatkaVecEnv

    env = DevyatkaVecEnv(Rules.of("first_out", num_players=4), GAMES, "greedy", seed=1)
    rng = np.random.default_rng(0)
    masks = env.reset()["action_mask"]

    def run() -> float:
        nonlocal masks
        before = env.moves
        start = time.perf_counter()
        for _ in range(STEPS):
            masks = env.step(first_legal(masks, rng))[0]["action_mask"]
        return (env.moves - before) / (time.perf_counter() - start)

    return run


def main() -> None:
    """Print the speeds, and the share of the raw batch's that each environment reaches."""
    runners: dict[str, Runner] = {"BatchGame": raw()}
    for name, make in (("gymnasium.make_vec", vector), ("DevyatkaVecEnv (SB3)", sb3)):
        try:
            runners[name] = make()
        except ImportError as missing:
            print(f"skipped: {name} ({missing})")
    for run in runners.values():
        run()
    rounds = [{name: run() for name, run in runners.items()} for _ in range(ROUNDS)]
    for name in runners:
        speeds, shares = [r[name] for r in rounds], [r[name] / r["BatchGame"] for r in rounds]
        share = statistics.median(shares)
        line = f"{name:22} {statistics.median(speeds):>12,.0f} moves/s (fastest {max(speeds):,.0f})"
        if name != "BatchGame":
            best = max(speeds) / max(r["BatchGame"] for r in rounds)
            verdict = "holds" if share >= PROMISED else "MISSED"
            line += f"  {share:.0%} of the batch's ({best:.0%})  >= {PROMISED:.0%} {verdict}"
        print(line)


if __name__ == "__main__":
    main()
