"""PPO self-play as a story: environment, model, lessons, monitor, learn; resumed where it stopped."""

from __future__ import annotations

import torch
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat
from stable_baselines3.common.utils import set_random_seed

from devyatka_env.bots import CheckpointError
from devyatka_env.bots.checkpoint import read_manifest
from devyatka_env.bots.policy import load_network
from devyatka_env.learning.config import ConfigError, TrainConfig
from devyatka_env.learning.monitor import Monitor, restore
from devyatka_env.learning.policy import MaskedPolicy, policy_of
from devyatka_env.learning.pool import OpponentPool
from devyatka_env.learning.ppo import SelfPlayPPO, TablesEnv
from devyatka_env.learning.run_folder import JsonLines, Run
from devyatka_env.learning.teacher import Teacher


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
    pool = OpponentPool(run.pool, config.bots, config.bot_share, config.pool_size, config.seed)
    first_deal = int(state["next_deal"]) if state else 0
    env = TablesEnv(config.parsed_rules, config.num_games, config.seed, first_deal)
    model = build_model(config, env)
    if config.start_from and not state:
        start_from(model, config)
    if config.lessons:
        two_seats = next(one for one in config.parsed_rules if one.num_players == 2)
        first_lesson = int(state["next_lesson"]) if state else 0
        model.teacher = Teacher(two_seats, config.seed, config.lessons, first_lesson, config.device)
    if is_resumed:
        pool.restore(decisions)
        run.cut_metrics(decisions)
    if state:
        restore(model, state)
        pool.strengths = dict(state["strengths"])
        set_random_seed(config.seed + decisions)  # not the draws of the first update again
        torch.set_rng_state(state["torch_rng"])
    if is_resumed:
        run.write_config(config)  # all that is needed could be read
    monitor = Monitor(config, run, env.tables, pool)

    outputs: list[KVWriter] = [JsonLines(run.metrics), TensorBoardOutputFormat(str(run.tensorboard))]
    model.set_logger(Logger(str(run.folder), outputs))
    print(
        f"Training {run.folder} on {', '.join(config.rules)}: {config.total_decisions:,} decisions,"
        f" torch threads {config.threads}"
    )
    with monitor.clean_interrupts(), monitor.named_stops():
        try:
            left = config.total_decisions - decisions
            model.learn(left, callback=monitor, reset_num_timesteps=False, log_interval=None)  # type: ignore[arg-type] # the monitor logs
            monitor.finish()
        finally:
            monitor.close()
            model.logger.close()  # on a full disk TensorBoard's writer raises once more
    if monitor.stopped:
        print(
            f"Stopped after {model.num_timesteps:,} decisions."
            f" To go on: python -m training.selfplay --resume {run.folder}"
        )
        return 130
    print(f"Done. Checkpoint: {run.checkpoint('last')}  curves: {run.curves}")
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
