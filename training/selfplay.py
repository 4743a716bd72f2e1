"""Train by PPO self-play.

python -m training.selfplay --config configs/train/quick.yaml [--setting value ...]
python -m training.selfplay --resume runs/quick [--setting value ...]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import tyro

from devyatka_env import _console, _signals
from devyatka_env.bots import BotError
from devyatka_env.learning import ConfigError, Run, TrainConfig, read_config, train
from devyatka_env.learning.monitor import TrainingStoppedError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    _console.take_any_sign()
    try:
        with _signals.handled_by(_signals.interrupt):
            config, run, is_resumed = read_arguments(arguments)
            return train(config, run, is_resumed)
    except (ValueError, OSError, BotError, TrainingStoppedError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130


def read_arguments(arguments: Sequence[str] | None) -> tuple[TrainConfig, Run, bool]:
    """The settings, the run's folder, and whether it continues an earlier run; nothing is written yet.

    Raises:
        ValueError: settings that cannot be used.
        SystemExit: an unknown option, or ``--help``.
    """
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--resume", type=Path)
    known, rest = parser.parse_known_args(arguments)
    if known.config and known.resume:
        raise ConfigError("--resume continues a run with its own config; leave out --config")
    run = None
    config = TrainConfig()
    if known.resume:
        run, config = Run.open(known.resume)
    elif known.config:
        config = read_config(known.config)
    elif "--help" not in rest and "-h" not in rest:
        raise ConfigError("name a config (--config configs/train/quick.yaml) or a run to continue (--resume runs/NAME)")
    before = config
    config = tyro.cli(TrainConfig, args=rest, default=config, prog="python -m training.selfplay", description=__doc__)
    if run is None:
        return config, Run.named(config), False
    for key in ("name", "rules", "network", "width", "layers", "start_from", "eval_against"):
        if getattr(config, key) != getattr(before, key):
            raise ConfigError(
                f"{key} cannot change on --resume: the run has {getattr(before, key)!r}, not {getattr(config, key)!r}"
            )
    return config, run, True


if __name__ == "__main__":
    sys.exit(main())
