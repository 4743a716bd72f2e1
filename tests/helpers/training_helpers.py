"""What the tests of training share: a deck that plays in microseconds, a run that trains in a second, legal actions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from numpy.typing import NDArray

from devyatka_env.views.observation import Int8Array

# Small networks on several threads are many times slower on a busy machine, and their sums may differ.
torch.set_num_threads(1)

# Two seats, fifteen cards: deals of some four decisions, in which greedy beats random.
MINI = "first_out num_players=2 num_suits=3 ranks=789TJ starter=8"

# Opponents in every deal but a fifth, so that a run of 2,048 decisions meets bots and snapshots alike.
TINY_RUN: dict[str, Any] = {
    "rules": MINI,
    "total_decisions": 2048,
    "num_games": 32,
    "rounds": 8,
    "batch_size": 64,
    "epochs": 1,
    "width": 8,
    "layers": 1,
    "opponent_share": 0.8,
    "bots": ["random", "greedy"],
    "snapshot_every": 512,
    "pool_size": 2,
    "eval_every": 1024,
    "eval_deals": 20,
    "checkpoint_every": 1024,
    "bfloat16": False,
}


def write_settings(path: Path, **changes: Any) -> Path:
    """A config file of the tiny run, with some settings changed."""
    path.write_text(yaml.safe_dump({**TINY_RUN, **changes}), encoding="utf-8")
    return path


def metric_rows(run: Path) -> list[dict[str, float]]:
    """The lines of a run's metrics; every one must be JSON."""
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def random_legal(masks: Int8Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """A uniformly random legal action for every row of action masks ``[B, C + 1]``."""
    actions: NDArray[np.int64] = (rng.random(masks.shape) * (masks != 0)).argmax(1)
    return actions


def plain(text: str) -> str:
    """Terminal output on one line, without colours, boxes and the line breaks that they force."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]", " ", text).split())
