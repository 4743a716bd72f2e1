"""Import and first steps in a fresh process, with cached kernels and without a cache: one environment, and a batch.

python -m benchmarks.startup
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

_ENVIRONMENT = """
import time
start = time.perf_counter()
import devyatka_env
imported = time.perf_counter()
env = devyatka_env.env()
env.reset(seed=0)
for _ in range(100):
    if not env.agents:
        env.reset()
    _, _, over, _, info = env.last()
    env.step(None if over else int(info["action_mask"].argmax()))
print(imported - start, time.perf_counter() - imported)
"""
_BATCH = """
import time
start = time.perf_counter()
import numpy
from devyatka_env.games.batch import BatchGame
imported = time.perf_counter()
games = BatchGame("first_out", 4096)
games.step(games.sample_actions(numpy.random.default_rng(0)))
games.observations(), games.action_masks()
print(imported - start, time.perf_counter() - imported)
"""
PROGRAMS = {"reset + 100 steps": _ENVIRONMENT, "a batch's first step": _BATCH}


def measure(program: str, cache: str) -> tuple[float, float]:
    """Seconds of the import, and of the first steps."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    imported, played = map(float, run.stdout.split())
    return imported, played


def main() -> None:
    """Print both, with and without a cache."""
    for name, program in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as cache:
            compiled = measure(program, cache)
            cached = min((measure(program, cache) for _ in range(3)), key=sum)
        print(f"cached kernels   import {cached[0]:.2f} s, {name} {cached[1]:.2f} s")
        print(f"without a cache  import {compiled[0]:.2f} s, {name} {compiled[1]:.2f} s (kernels compile)")


if __name__ == "__main__":
    main()
