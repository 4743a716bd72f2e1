"""Training settings: one frozen dataclass. The text under each field is its help on the command line."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from devyatka_env._files import FileFormatError, quoted, read_yaml, shown
from devyatka_env._schema import check
from devyatka_env.bots import make_bot
from devyatka_env.bots.network import build_network
from devyatka_env.rules import Rules


class ConfigError(ValueError):
    """A setting that does not exist or cannot be used."""


@dataclass(frozen=True)
class TrainConfig:
    """Settings of a self-play run. A config file holds only what differs from these defaults."""

    name: str = "run"
    """Name of the run; its folder is runs/NAME."""
    rules: tuple[str, ...] = ("first_out num_players=4",)
    """Rule sets that share the games evenly: presets, and any field=value after each; or YAML files."""
    total_decisions: int = 1_000_000
    """Learner's decisions to train on (forced turns do not count)."""
    seed: int = 0
    """Seed of the deals, the network, and the draws."""

    num_games: int = 1024
    """Games side by side."""
    rounds: int = 32
    """Decisions taken in each game between two updates."""
    batch_size: int = 2048
    """Decisions in a minibatch; what is left over of a rollout waits for the next update."""
    epochs: int = 2
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
    network: str = "suits"
    """Kind of network: suits (the same weights for every suit) or mlp."""
    width: int = 128
    """Width of its hidden layers."""
    layers: int = 2
    """Number of its hidden layers."""
    start_from: str = ""
    """Checkpoint folder whose weights the run starts with; empty for a fresh network."""

    lessons: int = 0
    """Exactly solved two-seat positions to learn from after each update (`devyatka_env.learning.teacher`)."""

    opponent_share: float = 0.2
    """Share of the deals in which opponents take some seats; all seats of the others are the learner's."""
    learner_seats: int = 0
    """The learner's seats in deals with opponents; 0 draws 1 to all but one."""
    bots: tuple[str, ...] = ("greedy",)
    """Fixed opponents (names or checkpoint folders)."""
    bot_share: float = 0.5
    """Share of the deals with opponents that the fixed ones get; snapshots of the learner get the rest."""
    snapshot_every: int = 500_000
    """Decisions between two snapshots of the learner."""
    pool_size: int = 8
    """Snapshots kept: the latest, and earlier ones spread over the run; 0 for no such opponents."""

    eval_every: int = 500_000
    """Decisions between two evaluations."""
    eval_deals: int = 1000
    """Duplicate deals of an evaluation under each rule set, each played from every seat."""
    eval_against: tuple[str, ...] = ("random", "greedy")
    """Fields of an evaluation; the last one decides which checkpoint is the best."""
    checkpoint_every: int = 200_000
    """Decisions between two checkpoints."""

    device: str = "cpu"
    """Torch device: cpu or cuda."""
    bfloat16: bool = True
    """Multiply matrices in bfloat16 while training (weights stay float32): twice as fast where the CPU has it."""
    threads: int = 1
    """Torch threads. 2 are faster on an idle machine and many times slower on a busy one."""

    def __post_init__(self) -> None:
        _check_types(self)
        _check_numbers(self)
        if re.fullmatch(r"cpu|cuda(:\d+)?", self.device) is None:
            raise ConfigError(f"device must be cpu or cuda (or cuda:1 and so on), not {self.device!r}")
        if not self.name or self.name in (".", "..") or Path(self.name).name != self.name:
            raise ConfigError(f"name must be a plain folder name, not {self.name!r}")
        if not self.rules or not self.eval_against:
            raise ConfigError("rules needs a rule set, and eval_against a bot")
        if self.opponent_share > 0 and not (self.bots and self.bot_share > 0) and not self.pool_size:
            raise ConfigError(
                "deals with opponents need bots with a bot_share above 0, or a pool_size; or opponent_share=0"
            )
        rules = [Rules.of(one) for one in self.rules]
        object.__setattr__(self, "rules", tuple(str(one) for one in rules))  # a file, too, is resolved to what it says
        if len({one.deck.num_cards for one in rules}) != 1:
            raise ConfigError(f"one network plays decks of one size; rules has {', '.join(self.rules) or 'none'}")
        if self.network == "suits" and len({one.deck.num_suits for one in rules}) != 1:
            raise ConfigError(f"network=suits plays one number of suits; rules has {', '.join(self.rules)}")
        if len(rules) > self.num_games:
            raise ConfigError(f"{len(rules)} rule sets need at least as many num_games, not {self.num_games}")
        if self.lessons and not any(one.num_players == 2 for one in rules):
            raise ConfigError(f"lessons are of two seats, and no rule set has two: {', '.join(self.rules)}")
        for bot in (*self.bots, *self.eval_against):
            for one in rules:
                make_bot(bot).check_rules(one)
        build_network(rules[0].deck.num_cards, self.network_spec)

    @property
    def parsed_rules(self) -> tuple[Rules, ...]:
        """The rule sets."""
        return tuple(Rules.of(one) for one in self.rules)

    @property
    def network_spec(self) -> dict[str, Any]:
        """The network's description (`devyatka_env.bots.network`)."""
        if self.network == "mlp":
            return {"kind": "mlp", "hidden": [self.width] * self.layers}
        spec = {"kind": self.network, "width": self.width, "layers": self.layers}
        num_suits = self.parsed_rules[0].deck.num_suits
        return spec if num_suits == 4 else {**spec, "num_suits": num_suits}  # 4 is the network's own default

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain YAML and JSON values."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(self).items()}


# YAML takes 3e-4, without a point, for a text.
_NUMBER = re.compile(r"[+-]?\d[\d_]*(\.\d*)?([eE][+-]?\d+)?")
_POSITIVE = (
    "total_decisions", "num_games", "rounds", "batch_size", "epochs", "learning_rate", "clip_range", "max_grad_norm",
    "width", "layers", "snapshot_every", "eval_every", "eval_deals", "checkpoint_every", "threads",
)  # fmt: skip


def _check_numbers(config: TrainConfig) -> None:
    """Check the ranges of the numbers."""
    for key in _POSITIVE:
        if not 0 < getattr(config, key) < math.inf:
            raise ConfigError(f"{key} must be above 0, not {getattr(config, key)!r}")
    for key in ("gamma", "gae_lambda", "bot_share", "opponent_share"):
        if not 0 <= getattr(config, key) <= 1:
            raise ConfigError(f"{key} must be from 0 to 1, not {getattr(config, key)!r}")
    for key in ("entropy_coefficient", "value_coefficient", "lessons", "learner_seats", "pool_size"):
        if not 0 <= getattr(config, key) < math.inf:
            raise ConfigError(f"{key} must be at least 0, not {getattr(config, key)!r}")
    if not 0 <= config.seed < 2**32:
        raise ConfigError(f"seed must be from 0 to 2**32 - 1, not {config.seed}")
    if config.batch_size < 2:
        raise ConfigError("batch_size must be at least 2: the advantages of one decision have no spread to divide by")


def _check_types(config: TrainConfig) -> None:
    """Check every field against its annotation; a YAML list becomes a tuple, a whole number a float."""
    for key, hint in get_type_hints(TrainConfig).items():
        value = getattr(config, key)
        if hint == tuple[str, ...] and isinstance(value, str | list | tuple):  # one text is a list of it
            object.__setattr__(config, key, (value,) if isinstance(value, str) else tuple(value))
            fits = all(isinstance(one, str) for one in getattr(config, key))
        elif hint is float and isinstance(value, int | str) and not isinstance(value, bool):
            fits = _NUMBER.fullmatch(str(value)) is not None
            if fits:
                object.__setattr__(config, key, float(value))
        elif hint is bool:
            fits = isinstance(value, bool)
        else:
            fits = hint in (int, float, str) and isinstance(value, hint) and not isinstance(value, bool)
        if not fits:
            raise ConfigError(f"{key} must be {getattr(hint, '__name__', hint)}, not {shown(repr(value))}")


# What a file may say at all, so that no file takes minutes; `TrainConfig` says what makes sense.
_FILE_SCHEMA = {
    "properties": {"width": {"maximum": 16384}, "layers": {"maximum": 1024}},
    "additionalProperties": {
        "type": ["boolean", "number", "string", "array"],
        "maxLength": 1000,
        "maxItems": 100,
        "items": {"type": "string", "maxLength": 1000},
    },
}


def read_config(path: str | Path) -> TrainConfig:
    """Read a YAML file of settings that differ from the defaults; ``name`` defaults to the file's name.

    Raises:
        ConfigError: unreadable, an unknown key, or a bad value; the message names the file.
    """
    try:
        content = read_yaml(path) or {}
    except FileFormatError as error:
        raise ConfigError(f"cannot read the config {error}") from error
    except OSError as error:
        raise ConfigError(f"cannot read the config {path}: {error}") from error
    if not isinstance(content, Mapping):
        raise ConfigError(f"{path}: expected `setting: value` lines, found {quoted(content)}")
    known = [field.name for field in dataclasses.fields(TrainConfig)]
    unknown = sorted(set(map(str, content)) - set(known))
    if unknown:
        raise ConfigError(f"{path}: unknown setting {shown(', '.join(unknown))}; the settings are {', '.join(known)}")
    try:
        check(dict(content), _FILE_SCHEMA, str(path))
    except FileFormatError as error:
        raise ConfigError(str(error)) from error
    try:
        return TrainConfig(**{"name": Path(path).stem, **content})
    except (ValueError, OSError) as error:  # OSError: a bot's name that no path can be
        raise ConfigError(f"{path}: {shown(str(error), 400)}") from error
