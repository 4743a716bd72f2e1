"""Compiled kernels are cached on disk: a change of the engine must reach the modules that are compiled around it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import devyatka_env

# One step by the engine's own entry point, the same by the batch's, which has the engine's kernels compiled into it.
PLAY_BOTH = """
import numpy as np
from devyatka_env import Game, Rules
from devyatka_env.deals import Deals
rules = Rules.of("first_out")
game, games = Game.deal(rules), Deals(rules, np.zeros(1, np.int64))
game.play("9♦")
games.step(games.all, np.array([rules.opening_card]))
print(int(game.record["num_played"]), int(games.states["num_played"][0]))
"""


def play_both(folder: Path) -> str:
    """What the package in ``folder`` answers, in a fresh process."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", PLAY_BOTH]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow  # it compiles twice
def test_cache__follows_a_change_of_the_engine_into_every_module(tmp_path: Path) -> None:
    # Regression: numba looks only at the file of the kernel itself, so after an edit of engine.py the batch (and bots,
    # observations) went on playing by the old rules while single games played by the new ones.
    ignored = shutil.ignore_patterns("__pycache__")
    package = shutil.copytree(Path(devyatka_env.__file__).parent, tmp_path / "devyatka_env", ignore=ignored)
    assert play_both(tmp_path).split() == ["1", "1"]
    engine = package / "engine.py"
    source = engine.read_text(encoding="utf-8")
    assert source.count("s.num_played += 1") == 1
    engine.write_text(source.replace("s.num_played += 1", "s.num_played += 2"), encoding="utf-8")
    assert play_both(tmp_path).split() == ["2", "2"]
