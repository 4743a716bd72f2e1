"""PPO self-play as a story: environment, model, lessons, monitor, learn; resumed where it stopped."""

from __future__ import annotations

import sys
from typing import Any

import torch
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat
from stable_baselines3.common.utils import set_random_seed

from devyatka_env.bots import CheckpointError
from devyatka_env.bots.checkpoint import read_manifest
from devyatka_env.bots.policy import load_network
from devyatka_env.learning import stops
from devyatka_env.learning.config import ConfigError, TrainConfig
from devyatka_env.learning.monitor import Monitor, restore
from devyatka_env.learning.policy import MaskedPolicy, policy_of
from devyatka_env.learning.pool import OpponentPool
from devyatka_env.learning.ppo import SelfPlayPPO, TablesEnv
from devyatka_env.learning.run_folder import JsonLines, Run
from devyatka_env.learning.teacher import Teacher


def train(config: TrainConfig, run: Run, is_resumed: bool) -> int:
    """Train until ``config.total_decisions``, Ctrl-C or SIGTERM; returns the exit code (130 when interrupted).

    All is checked before the first file is written.

    Args:
        config: the settings.
        run: the run's folder; a new one is made here.
        is_resumed: whether it is there already, and goes on.

    Raises:
        ConfigError: settings that cannot be used, a folder that is in use or not free, or a damaged resume file.
        CheckpointError: weights to start from that cannot be read, or are of another network.
        TrainingStoppedError: training cannot go on.
    """
    check_device(config.device)
    torch.set_num_threads(config.threads)
    set_random_seed(config.seed)
    if is_resumed:
        run.take()
    else:
        run.check_free()
    try:
        state = run.load_state() if is_resumed else None
        decisions = int(state["decisions"]) if state else 0
        if decisions >= config.total_decisions:
            print(f"{run.folder} has been trained on {decisions} decisions already: raise --total-decisions to go on")
            return 0
        pool = OpponentPool(run.pool, config.bots, config.bot_share, config.pool_size, config.seed)
        env = TablesEnv(config.parsed_rules, config.num_games, config.seed, int(state["next_deal"]) if state else 0)
        model = prepare(config, env, run, state)
        if state:
            pool.strengths = dict(state["strengths"])
        if is_resumed:
            run.sweep()
            for warning in pool.restore(decisions):
                print(f"warning: {warning}", file=sys.stderr)
            run.cut_metrics(decisions)
            run.write_config(config)
        else:
            run = Run.create(config)
        return learn(config, run, model, Monitor(config, run, env.tables, pool))
    finally:
        run.release()


def check_device(device: str) -> None:
    """Check that a device is there.

    Raises:
        ConfigError: it is not.
    """
    if device == "cpu":
        return
    if not torch.cuda.is_available():
        raise ConfigError(f"device={device}, but torch finds no CUDA here: use --device cpu")
    number = int(device.partition(":")[2] or 0)
    if number >= torch.cuda.device_count():
        raise ConfigError(f"device={device}, but torch finds {torch.cuda.device_count()} CUDA devices, from 0 on")


def prepare(config: TrainConfig, env: TablesEnv, run: Run, state: dict[str, Any] | None) -> SelfPlayPPO:
    """The model as it begins, or as it was when its ``state`` was saved.

    Raises:
        ConfigError: a state that is not of this model.
        CheckpointError: weights to start from that cannot be read, or are of another network.
    """
    model = build_model(config, env)
    if config.start_from and not state:
        start_from(model, config)
    if config.lessons:
        two_seats = next(one for one in config.parsed_rules if one.num_players == 2)
        first_lesson = int(state["next_lesson"]) if state else 0
        model.teacher = Teacher(two_seats, config.seed, config.lessons, first_lesson, config.device)
    if state:
        set_random_seed(config.seed + int(state["decisions"]))  # not the draws of the first update again
        restore(model, state, run)
    return model


def learn(config: TrainConfig, run: Run, model: SelfPlayPPO, monitor: Monitor) -> int:
    """Let a model learn to the end of the settings, or until it is interrupted; returns the exit code."""
    outputs: list[KVWriter] = [JsonLines(run.metrics), TensorBoardOutputFormat(str(run.tensorboard))]
    model.set_logger(Logger(str(run.folder), outputs))
    stops.say(
        f"Training {run.folder} on {', '.join(config.rules)}: {config.total_decisions:,} decisions,"
        f" torch threads {config.threads}"
    )
    with monitor.clean_interrupts(), monitor.named_stops():
        try:
            left = config.total_decisions - model.num_timesteps
            model.learn(left, callback=monitor, reset_num_timesteps=False, log_interval=None)  # type: ignore[arg-type] # the monitor logs
            monitor.finish()
        finally:
            monitor.close()
            model.logger.close()  # on a full disk TensorBoard's writer raises once more
    if monitor.stopped:
        stops.say(
            f"Stopped after {model.num_timesteps:,} decisions."
            f" To go on: python -m training.selfplay --resume {run.folder}"
        )
        return 130
    stops.say(f"Done. Checkpoint: {run.checkpoint('last')}  curves: {run.curves}")
    return 0


def build_model(config: TrainConfig, env: TablesEnv) -> SelfPlayPPO:
    """PPO over all seats, with the masked policy."""
    return SelfPlayPPO(
        MaskedPolicy,
        env,
        learning_rate=lambda remaining: (
            config.learning_rate * (0.1 + 0.9 * max(remaining, 0.0))
        ),  # the last rollout may go beyond the end
        n_steps=config.rounds,
        batch_size=config.batch_size,
        n_epochs=config.epochs,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_range,
        ent_coef=config.entropy_coefficient,
        vf_coef=config.value_coefficient,
        max_grad_norm=config.max_grad_norm,
        policy_kwargs={"network": config.network_spec, "bfloat16": config.bfloat16},
        seed=config.seed,
        device=config.device,
    )


def start_from(model: SelfPlayPPO, config: TrainConfig) -> None:
    """Give a fresh model the weights of the checkpoint that the config names.

    Raises:
        CheckpointError: it cannot be read, or its network is another.
    """
    manifest = read_manifest(config.start_from)
    num_cards = config.parsed_rules[0].deck.num_cards
    if manifest.num_cards != num_cards:
        raise CheckpointError(f"{config.start_from} plays decks of {manifest.num_cards} cards, the config {num_cards}")
    if dict(manifest.network) != config.network_spec:
        raise CheckpointError(
            f"{config.start_from} has network {dict(manifest.network)}, the config {config.network_spec}"
        )
    policy_of(model).network.load_state_dict(load_network(config.start_from, manifest).state_dict())
