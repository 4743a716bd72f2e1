"""The folder of a run: config, metrics, checkpoints, and what `--resume` needs.

::

    runs/NAME/config.yaml        the resolved settings
    runs/NAME/metrics.jsonl      one JSON object a line, by decisions trained
    runs/NAME/curves.png         the same as pictures
    runs/NAME/tensorboard/       the same for TensorBoard
    runs/NAME/checkpoints/last   the newest checkpoint; `best` is the strongest so far
    runs/NAME/pool/              snapshots that serve as opponents
    runs/NAME/resume.pt          weights, optimizer state and counters (tensors and numbers only)
"""

from __future__ import annotations

import io
import json
import math
import shutil
from contextlib import suppress
from numbers import Real
from pathlib import Path
from typing import Any

import torch
import yaml
from stable_baselines3.common.logger import KVWriter

from devyatka_env.learning.config import ConfigError, TrainConfig, read_config
from devyatka_env.rules import Rules

RUNS = Path("runs")


class Run:
    """Paths and files of one run.

    Attributes:
        folder: where it stands.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.metrics = folder / "metrics.jsonl"
        self.curves = folder / "curves.png"
        self.tensorboard = folder / "tensorboard"
        self.pool = folder / "pool"
        self._config = folder / "config.yaml"
        self._resume = folder / "resume.pt"

    def checkpoint(self, name: str) -> Path:
        """The folder of checkpoint ``last`` or ``best``."""
        return self.folder / "checkpoints" / name

    @classmethod
    def create(cls, config: TrainConfig) -> Run:
        """Make the folder of a new run.

        Raises:
            ConfigError: a run of that name exists already.
        """
        run = cls(RUNS / config.name)
        if run.folder.exists() and not run._resume.exists() and not run.read_metrics():
            shutil.rmtree(run.folder)  # a run that failed before it had anything to keep
        if run.folder.exists():
            raise ConfigError(f"{run.folder} exists: continue it with --resume {run.folder}, or choose another --name")
        run.folder.mkdir(parents=True)
        run.write_config(config)
        return run

    def write_config(self, config: TrainConfig) -> None:
        """Write the resolved settings."""
        text = yaml.safe_dump(config.to_dict(), sort_keys=False, allow_unicode=True)
        write_whole(self._config, text.encode())

    @classmethod
    def open(cls, folder: Path) -> tuple[Run, TrainConfig]:
        """Open the folder of an earlier run.

        Raises:
            ConfigError: no run there, or its settings cannot be read.
        """
        run = cls(folder)
        if not run._config.exists():
            raise ConfigError(f"no run at {folder} (no config.yaml in it)")
        if not run._config.read_bytes().strip():
            raise ConfigError(f"{run._config} is empty: it has lost the run's settings")
        return run, read_config(run._config)

    def save_state(self, state: dict[str, Any]) -> None:
        """Write what a resumed run needs, whole or not at all."""
        data = io.BytesIO()
        torch.save(state, data)  # into memory: on a full disk torch's own writer raises no OSError
        write_whole(self._resume, data.getvalue())

    def load_state(self) -> dict[str, Any] | None:
        """Read it back; ``None`` when the run stopped before its first checkpoint. Nothing is unpickled freely.

        Raises:
            ConfigError: a damaged file; the message names it and the checkpoint that is left.
        """
        if not self._resume.exists():
            return None
        try:
            state: dict[str, Any] = torch.load(self._resume, weights_only=True, map_location="cpu")
        except Exception as error:  # torch raises whatever the bytes lead to
            raise ConfigError(
                f"{self._resume} is damaged ({error}); its last checkpoint is {self.checkpoint('last')}:"
                " begin a new run from it with --start-from"
            ) from error
        return state

    def read_metrics(self) -> list[dict[str, float]]:
        """The lines of the metrics file, in order; a line cut short or damaged by a crash is left out."""
        if not self.metrics.exists():
            return []
        rows = []
        for line in self.metrics.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError):
                row = json.loads(line)
                if isinstance(row, dict) and "decisions" in row:
                    rows.append(row)
        return rows

    def cut_metrics(self, up_to: int) -> None:
        """Drop the lines beyond ``up_to`` decisions: a resumed run writes them anew."""
        rows = [row for row in self.read_metrics() if row["decisions"] <= up_to]
        write_whole(self.metrics, "".join(json.dumps(row) + "\n" for row in rows).encode())


def label(rules: Rules) -> str:
    """A rule set in the names of metrics: ``first_out_4``; a part of the fingerprint follows where fields differ."""
    plain = rules == Rules.of(rules.preset, num_players=rules.num_players)
    return f"{rules.preset}_{rules.num_players}" + ("" if plain else f"_{rules.fingerprint[:6]}")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves the old or the new one, never a part."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(data)
    fresh.replace(path)


class JsonLines(KVWriter):
    """A stable-baselines3 log output that appends JSON lines and survives a resume (its own one starts over)."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Append one line."""
        numbers = {key: float(value) for key, value in sorted(key_values.items()) if isinstance(value, Real)}
        finite = {key: value for key, value in numbers.items() if math.isfinite(value)}
        self._file.write(json.dumps({"decisions": step, **finite}) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # of a line that could not be written: `write` has raised it
            self._file.close()
