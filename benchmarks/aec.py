"""The AEC loop against PettingZoo's tictactoe_v3: same process, same loop, same sampler.

python -m benchmarks.aec
"""

from __future__ import annotations

import random
import statistics
import time
import warnings
from typing import Any

import devyatka_env

REPEATS = 5
SECONDS = 1.0


def turns_per_second(env: Any) -> float:
    """Play whole games with random legal actions; observation, mask and info made at every turn."""
    turns = 0
    start = time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        env.reset()
        for _ in env.agent_iter():
            observation, _, termination, truncation, _ = env.last()
            if termination or truncation:
                env.step(None)
            else:
                env.step(random.choice(observation["action_mask"].nonzero()[0]))
                turns += 1
    return turns / (time.perf_counter() - start)


def main() -> None:
    """Print turns per second of both, and the median ratio of paired runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # PettingZoo's versioned modules
        from pettingzoo.classic import tictactoe_v3
    ours, theirs = devyatka_env.env(num_players=4), tictactoe_v3.env()
    turns_per_second(ours), turns_per_second(theirs)  # warm up
    pairs = [(turns_per_second(ours), turns_per_second(theirs)) for _ in range(REPEATS)]
    ratios = sorted(a / b for a, b in pairs)
    print(f"devyatka_env.env(), 4 seats  {statistics.median(a for a, _ in pairs):>9,.0f} turns/s")
    print(f"tictactoe_v3.env()           {statistics.median(b for _, b in pairs):>9,.0f} turns/s")
    print(f"ratio                        {statistics.median(ratios):>9.2f}   ({ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
