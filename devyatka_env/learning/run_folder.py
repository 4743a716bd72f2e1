"""The folder of a run: config, metrics, checkpoints, and what `--resume` needs.

::

    runs/NAME/config.yaml        the resolved settings
    runs/NAME/metrics.jsonl      one JSON object a line, by decisions trained
    runs/NAME/curves.png         the same as pictures
    runs/NAME/tensorboard/       the same for TensorBoard
    runs/NAME/checkpoints/last   the newest checkpoint; `best` is the strongest so far
    runs/NAME/pool/              snapshots that serve as opponents
    runs/NAME/resume.pt          weights, optimizer state and counters (tensors and numbers only)
    runs/NAME/.lock              held by the process that trains there; .lock.pid has its number
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from numbers import Real
from pathlib import Path
from typing import Any

import torch
import yaml
from stable_baselines3.common.logger import KVWriter

from devyatka_env._files import read_yaml, shown, write_whole
from devyatka_env.bots.checkpoint import MANIFEST, OTHER_WEIGHTS, WEIGHTS
from devyatka_env.engine.seeds import WORD_SCHEME
from devyatka_env.learning.config import ConfigError, TrainConfig, read_config
from devyatka_env.learning.owner import LOCK, NUMBER, Owner
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
        self._owner = Owner(folder)

    def checkpoint(self, name: str) -> Path:
        """The folder of checkpoint ``last`` or ``best``."""
        return self.folder / "checkpoints" / name

    @classmethod
    def named(cls, config: TrainConfig) -> Run:
        """The run of a config's name, which need not be there."""
        return cls(RUNS / config.name)

    @classmethod
    def create(cls, config: TrainConfig) -> Run:
        """Make the folder of a new run, and take it: nobody else can train there until `release`.

        Raises:
            ConfigError: something of that name exists already, or another process is about to train there.
        """
        run = cls.named(config)
        run.check_free()
        run.folder.mkdir(parents=True, exist_ok=True)
        run.take()
        try:
            run.check_free()  # the last owner may have got on since
            for path in run._contents():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            run.write_config(config)
        except BaseException:
            run.release()
            raise
        return run

    def take(self) -> None:
        """Become the only process that writes here, until `release` or the end of the process.

        Raises:
            ConfigError: another one is; the message has its number.
        """
        self._owner.take()

    def release(self) -> None:
        """Let others write here."""
        self._owner.release()

    def check_free(self) -> None:
        """Refuse a name that is taken; what is left of a run that failed before it had anything to keep is not.

        Raises:
            ConfigError: it is taken.
        """
        if (self.folder.exists() or self.folder.is_symlink()) and not self._is_failed():
            found = f"continue it with --resume {self.folder}" if self._is_ours() else "it is no run"
            raise ConfigError(f"{self.folder} exists: {found}, or choose another --name")

    def _contents(self) -> list[Path]:
        return [path for path in self.folder.iterdir() if path.name not in (LOCK, NUMBER)]

    def _is_ours(self) -> bool:
        """Whether the settings there are a whole config of a training."""
        with suppress(OSError, ValueError):
            content = read_yaml(self._config)
            names = {field.name for field in dataclasses.fields(TrainConfig)}
            return isinstance(content, Mapping) and content.keys() == names
        return False

    def _is_failed(self) -> bool:
        """Whether all that is there is what a run of ours leaves that had nothing to keep yet: no line, no weights."""
        if not self.folder.is_dir():
            return False
        found = self._contents()
        if not all(_is_leftover(path) for path in found) or any(path.is_symlink() for path in self.folder.rglob("*")):
            return False
        return self._is_ours() or not [path for path in found if not path.name.startswith(".config.yaml.")]

    def write_config(self, config: TrainConfig) -> None:
        """Write the resolved settings."""
        text = yaml.safe_dump(config.to_dict(), sort_keys=False, allow_unicode=True)
        write_whole(self._config, text)

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
        torch.save({**state, "words": WORD_SCHEME}, data)  # on a full disk torch's own writer raises no OSError
        write_whole(self._resume, data.getvalue())

    def load_state(self) -> dict[str, Any] | None:
        """Read it back; ``None`` when the run stopped before its first checkpoint. Nothing is unpickled freely.

        Raises:
            ConfigError: a damaged file, or one of release 0.1; the message names it, the field, and the checkpoint that
                is left.
        """
        if not self._resume.exists():
            return None
        try:
            state = torch.load(self._resume, weights_only=True, map_location="cpu")
        except Exception as error:  # torch raises whatever the bytes lead to
            raise self.damaged(shown(str(error), 300)) from error
        if not isinstance(state, dict):
            raise self.damaged(f"it holds {type(state).__name__}")
        if "words" not in state and "decisions" in state:
            raise ConfigError(
                f"{self._resume} is of release 0.1, whose bots drew their random words in another way, so this run"
                f" cannot go on as it began: {self._way_out()}"
            )
        for key, check in _STATE.items():
            if key not in state:
                raise self.damaged(f"it lacks {key}")
            if not check(state[key]):
                raise self.damaged(f"{key} is {shown(state[key])}")
        return state

    def damaged(self, why: str) -> ConfigError:
        """The error of a resume file that cannot be used."""
        return ConfigError(f"{self._resume} is damaged ({why}): {self._way_out()}")

    def _way_out(self) -> str:
        return f"begin a new run from its last checkpoint with --start-from {self.checkpoint('last')}"

    def sweep(self) -> None:
        """Remove what writers that were killed left half written, in the places where runs write."""
        for folder in (self.folder, *self.folder.glob("checkpoints/*"), *self.folder.glob("pool/*")):
            for path in folder.glob(".*.*.new"):
                if path.name.split(".")[-2].isdigit():
                    path.unlink()

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
        write_whole(self.metrics, "".join(json.dumps(row) + "\n" for row in rows))


def label(rules: Rules) -> str:
    """A rule set in the names of metrics: ``first_out_4``; a part of the fingerprint follows where fields differ."""
    plain = rules == Rules.of(rules.preset, num_players=rules.num_players)
    return f"{rules.preset}_{rules.num_players}" + ("" if plain else f"_{rules.fingerprint[:6]}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def _is_record(value: object) -> bool:
    """Whether it is the record of the opponents' strengths."""
    return isinstance(value, dict) and all(
        isinstance(name, str) and isinstance(one, float) and math.isfinite(one) for name, one in value.items()
    )


# By field of the resume file: whether a value is of its kind. Shapes are compared with the model (`monitor.restore`).
_STATE: Mapping[str, Callable[[Any], bool]] = {
    "policy": lambda value: isinstance(value, dict),
    "optimizer": lambda value: isinstance(value, dict),
    "decisions": _is_count,
    "updates": _is_count,
    "next_deal": _is_count,
    "next_lesson": _is_count,
    "strengths": _is_record,
    "torch_rng": lambda value: isinstance(value, torch.Tensor) and value.dtype == torch.uint8,
    "words": lambda value: value == WORD_SCHEME,
}


def _is_leftover(path: Path) -> bool:
    """Whether a file or folder of a run holds nothing but what is there before anything has been learned."""
    if path.name == "config.yaml" or path.name.startswith(".config.yaml."):
        return path.is_file()
    if path.name == "metrics.jsonl":
        return path.is_file() and not path.stat().st_size
    if path.name == "tensorboard":
        return path.is_dir() and all(one.is_file() and "tfevents" in one.name for one in path.iterdir())
    if path.name == "pool":  # the weights that the run began with
        names = {MANIFEST, WEIGHTS, OTHER_WEIGHTS}
        files = [one for one in path.rglob("*") if not one.is_dir()]
        return path.is_dir() and all(one.parent == path / f"{0:012d}" and _plain(one.name) in names for one in files)
    return False


def _plain(name: str) -> str:
    """A name without what marks a file that is being written."""
    return name[1:].rsplit(".", 2)[0] if name.startswith(".") and name.endswith(".new") else name


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
