"""Train by PPO self-play.

python -m training.selfplay --config configs/train/quick.yaml [--setting value ...]
python -m training.selfplay --resume runs/quick [--setting value ...]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
import tyro
from stable_baselines3 import PPO
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat
from stable_baselines3.common.utils import set_random_seed

from devyatka_env.bots import BotError
from devyatka_env.envs.sb3 import DevyatkaVecEnv
from training.config import ConfigError, TrainConfig, read_config
from training.monitor import Monitor, TrainingStoppedError, restore
from training.policy import MaskedPolicy
from training.pool import OpponentPool
from training.run import JsonLines, Run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    try:
        config, run, is_resumed = read_arguments(arguments)
        return train(config, run, is_resumed)
    except (ValueError, OSError, BotError, TrainingStoppedError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130


def train(config: TrainConfig, run: Run, is_resumed: bool) -> int:
    """Train until ``config.total_decisions`` or Ctrl-C; returns the exit code (130 when interrupted)."""
    if config.device != "cpu" and not torch.cuda.is_available():
        raise ConfigError(f"device={config.device}, but torch finds no CUDA here: use --device cpu")
    torch.set_num_threads(config.threads)
    set_random_seed(config.seed)
    state = run.load_state() if is_resumed else None
    decisions = int(state["decisions"]) if state else 0
    if decisions >= config.total_decisions:
        print(f"{run.folder} has been trained on {decisions} decisions already: raise --total-decisions to go on")
        return 0
    if is_resumed:
        run.write_config(config)

    pool = OpponentPool(run.pool, config.bots, config.bot_share, config.pool_size)
    env = DevyatkaVecEnv(
        config.parsed_rules, config.num_envs, seed=config.seed, first_deal=int(state["next_deal"]) if state else 0
    )
    model = build_model(config, env)
    if is_resumed:
        pool.restore(decisions)
        run.cut_metrics(decisions)
    if state:
        restore(model, state)
    monitor = Monitor(config, run, env, pool)

    outputs: list[KVWriter] = [JsonLines(run.metrics), TensorBoardOutputFormat(str(run.tensorboard))]
    model.set_logger(Logger(str(run.folder), outputs))
    print(
        f"Training {run.folder} on {config.rules}: {config.total_decisions:,} decisions, torch threads {config.threads}"
    )
    try:
        with monitor.clean_interrupts(), monitor.numbers_only():
            left = config.total_decisions - decisions
            model.learn(left, callback=monitor, reset_num_timesteps=False, log_interval=None)  # type: ignore[arg-type] # the monitor logs
            monitor.finish()
    finally:
        monitor.close()
        model.logger.close()
    if monitor.stopped:
        print(
            f"Stopped after {model.num_timesteps:,} decisions."
            f" To go on: python -m training.selfplay --resume {run.folder}"
        )
        return 130
    print(f"Done. Checkpoint: {run.checkpoint('last')}  curves: {run.curves}")
    return 0


def build_model(config: TrainConfig, env: DevyatkaVecEnv) -> PPO:
    """stable-baselines3's PPO with the masked policy."""
    return PPO(
        MaskedPolicy,
        env,
        learning_rate=lambda remaining: config.learning_rate * (0.1 + 0.9 * remaining),
        n_steps=config.rollout_steps,
        batch_size=config.batch_size,
        n_epochs=config.epochs,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_range,
        ent_coef=config.entropy_coefficient,
        vf_coef=config.value_coefficient,
        max_grad_norm=config.max_grad_norm,
        policy_kwargs={"network": config.network},
        seed=config.seed,
        device=config.device,
        stats_window_size=5000,  # deals behind the mean payoff: luck is large
    )


def read_arguments(arguments: Sequence[str] | None) -> tuple[TrainConfig, Run, bool]:
    """The settings, the run's folder, and whether it continues an earlier run.

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
        return config, Run.create(config), False
    for key in ("name", "rules", "hidden"):
        if getattr(config, key) != getattr(before, key):
            raise ConfigError(
                f"{key} cannot change on --resume: the run has {getattr(before, key)!r}, not {getattr(config, key)!r}"
            )
    return config, run, True


if __name__ == "__main__":
    sys.exit(main())
