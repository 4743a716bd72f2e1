"""Training settings: one frozen dataclass. The text under each field is its help on the command line."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import yaml

from devyatka_env.bots import make_bot
from devyatka_env.rules import Rules


class ConfigError(ValueError):
    """A setting that does not exist or cannot be used."""


@dataclass(frozen=True)
class TrainConfig:
    """Settings of a self-play run. A config file holds only what differs from these defaults."""

    name: str = "run"
    """Name of the run; its folder is runs/NAME."""
    rules: str = "first_out num_players=4"
    """Rules: a preset, and any field=value after it; or a YAML file."""
    total_decisions: int = 1_000_000
    """Learner's decisions to train on (forced turns do not count)."""
    seed: int = 0
    """Seed of the deals, the network, and the draws."""

    num_envs: int = 512
    """Games side by side."""
    rollout_steps: int = 16
    """Decisions taken in each game between two updates."""
    batch_size: int = 1024
    """Decisions in a minibatch; must divide num_envs * rollout_steps."""
    epochs: int = 3
    """Passes over the rollout in an update."""
    learning_rate: float = 1e-3
    """Adam's step size at the start; it falls linearly to a tenth."""
    gamma: float = 1.0
    """Discount a decision. A deal is short and paid at its end, so 1."""
    gae_lambda: float = 0.95
    """Lambda of generalised advantage estimation (Schulman et al. 2016)."""
    clip_range: float = 0.2
    """PPO's clip of the probability ratio (Schulman et al. 2017)."""
    entropy_coefficient: float = 0.01
    """Weight of the entropy bonus."""
    value_coefficient: float = 0.5
    """Weight of the value loss."""
    max_grad_norm: float = 0.5
    """Gradients are scaled down to this norm."""
    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers of the policy and of the value stack."""

    bots: tuple[str, ...] = ("random", "greedy")
    """Scripted opponents (names or checkpoint folders)."""
    bot_share: float = 0.5
    """Share of opponents' seats that scripted bots take; snapshots of the learner take the rest."""
    snapshot_every: int = 100_000
    """Decisions between two snapshots of the learner."""
    pool_size: int = 4
    """Snapshots kept: the latest, and earlier ones spread over the run."""

    eval_every: int = 100_000
    """Decisions between two evaluations."""
    eval_deals: int = 1000
    """Duplicate deals of an evaluation, each played from every seat."""
    eval_against: tuple[str, ...] = ("random", "greedy")
    """Fields of an evaluation; the last one decides which checkpoint is the best."""
    checkpoint_every: int = 100_000
    """Decisions between two checkpoints."""

    device: str = "cpu"
    """Torch device: cpu or cuda."""
    threads: int = 1
    """Torch threads. 2 are faster on an idle machine and many times slower on a busy one."""

    def __post_init__(self) -> None:
        _check_types(self)
        _check_numbers(self)
        if self.num_envs * self.rollout_steps % self.batch_size:
            raise ConfigError(
                f"batch_size={self.batch_size} does not divide a rollout of num_envs * rollout_steps ="
                f" {self.num_envs * self.rollout_steps} decisions; the rest of a minibatch would be too small"
            )
        if re.fullmatch(r"cpu|cuda(:\d+)?", self.device) is None:
            raise ConfigError(f"device must be cpu or cuda (or cuda:1 and so on), not {self.device!r}")
        if not self.name or self.name in (".", "..") or Path(self.name).name != self.name:
            raise ConfigError(f"name must be a plain folder name, not {self.name!r}")
        if not self.eval_against or (self.bot_share > 0 and not self.bots):
            raise ConfigError("eval_against needs a bot, and bots too unless bot_share=0")
        rules = Rules.of(self.rules)
        object.__setattr__(self, "rules", str(rules))  # a file, too, is resolved to what it says
        for bot in (*self.bots, *self.eval_against):
            make_bot(bot).check_rules(rules)

    @property
    def parsed_rules(self) -> Rules:
        """The rule set."""
        return Rules.of(self.rules)

    @property
    def network(self) -> dict[str, Any]:
        """The network's description (`devyatka_env.bots.network`)."""
        return {"kind": "mlp", "hidden": list(self.hidden)}

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain YAML and JSON values."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(self).items()}


# YAML takes 3e-4, without a point, for a text.
_NUMBER = re.compile(r"[+-]?\d[\d_]*(\.\d*)?([eE][+-]?\d+)?")
_POSITIVE = (
    "total_decisions", "num_envs", "rollout_steps", "batch_size", "epochs", "learning_rate", "clip_range",
    "max_grad_norm", "snapshot_every", "pool_size", "eval_every", "eval_deals", "checkpoint_every", "threads",
)  # fmt: skip


def _check_numbers(config: TrainConfig) -> None:
    """Check the ranges of the numbers."""
    for key in _POSITIVE:
        if not 0 < getattr(config, key) < math.inf:
            raise ConfigError(f"{key} must be above 0, not {getattr(config, key)!r}")
    for key in ("gamma", "gae_lambda", "bot_share"):
        if not 0 <= getattr(config, key) <= 1:
            raise ConfigError(f"{key} must be from 0 to 1, not {getattr(config, key)!r}")
    for key in ("entropy_coefficient", "value_coefficient"):
        if not 0 <= getattr(config, key) < math.inf:
            raise ConfigError(f"{key} must be at least 0, not {getattr(config, key)!r}")
    if not 0 <= config.seed < 2**32:
        raise ConfigError(f"seed must be from 0 to 2**32 - 1, not {config.seed}")
    if config.batch_size < 2:
        raise ConfigError("batch_size must be at least 2: the advantages of one decision have no spread to divide by")
    if not config.hidden or min(config.hidden) < 1:
        raise ConfigError(f"hidden must hold a width of at least 1 for each layer, not {list(config.hidden)}")


def _check_types(config: TrainConfig) -> None:
    """Check every field against its annotation; a YAML list becomes a tuple, a whole number a float."""
    for key, hint in get_type_hints(TrainConfig).items():
        value = getattr(config, key)
        if hint in (tuple[int, ...], tuple[str, ...]) and isinstance(value, list | tuple):
            object.__setattr__(config, key, tuple(value))
            item = int if hint == tuple[int, ...] else str
            fits = all(isinstance(one, item) and not isinstance(one, bool) for one in value)
        elif hint is float and isinstance(value, int | str) and not isinstance(value, bool):
            fits = _NUMBER.fullmatch(str(value)) is not None
            if fits:
                object.__setattr__(config, key, float(value))
        else:
            fits = hint in (int, float, str) and isinstance(value, hint) and not isinstance(value, bool)
        if not fits:
            raise ConfigError(f"{key} must be {getattr(hint, '__name__', hint)}, not {value!r}")


def read_config(path: str | Path) -> TrainConfig:
    """Read a YAML file of settings that differ from the defaults; ``name`` defaults to the file's name.

    Raises:
        ConfigError: unreadable, an unknown key, or a bad value; the message names the file.
    """
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read the config {path}: {error}") from error
    if not isinstance(content, Mapping):
        raise ConfigError(f"{path}: expected `setting: value` lines, found {content!r}")
    known = [field.name for field in dataclasses.fields(TrainConfig)]
    unknown = sorted(set(map(str, content)) - set(known))
    if unknown:
        raise ConfigError(f"{path}: unknown setting {', '.join(unknown)}; the settings are {', '.join(known)}")
    try:
        return TrainConfig(**{"name": Path(path).stem, **content})
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error
