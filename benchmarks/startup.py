"""Import, first reset and 100 steps in a fresh process, with cached kernels and without a cache.

python -m benchmarks.startup
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

_PROGRAM = """
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


def measure(cache: str) -> tuple[float, float]:
    """Seconds of the import, and of the first reset and 100 steps."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    run = subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, check=True)
    imported, played = map(float, run.stdout.split())
    return imported, played


def main() -> None:
    """Print both."""
    with tempfile.TemporaryDirectory() as cache:
        compiled = measure(cache)
        cached = min((measure(cache) for _ in range(3)), key=sum)
    print(f"without a cache  import {compiled[0]:.2f} s, reset + 100 steps {compiled[1]:.2f} s (kernels compile)")
    print(f"cached kernels   import {cached[0]:.2f} s, reset + 100 steps {cached[1]:.2f} s")


if __name__ == "__main__":
    main()
