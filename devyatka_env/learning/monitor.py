"""What happens beside the updates: logging, evaluation, snapshots, checkpoints, progress, and a clean stop."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from tqdm import tqdm

from devyatka_env import _signals
from devyatka_env._files import shown
from devyatka_env.bots import Bot, CheckpointError, PolicyBot, make_bot
from devyatka_env.bots.checkpoint import read_manifest, write_checkpoint
from devyatka_env.evaluation import Estimate, Evaluation, evaluate, regret
from devyatka_env.learning import stops
from devyatka_env.learning.config import TrainConfig
from devyatka_env.learning.curves import draw_curves
from devyatka_env.learning.policy import MaskedPolicy, policy_of
from devyatka_env.learning.pool import OpponentPool
from devyatka_env.learning.ppo import SelfPlayPPO
from devyatka_env.learning.run_folder import Run, label
from devyatka_env.learning.tables import Tables
from devyatka_env.rules import Rules
from devyatka_env.solver.lattice import is_solved

# Two-seat deals in which every decision is held against the exact values.
REGRET_DEALS = 100
# Deals of the evaluations; training deals come from the run's own seed, so none is trained on.
EVALUATION_SEED = 2**63
# Deals under each rule set behind an entry of the matrix of snapshots: a trend, not a measurement.
MATRIX_DEALS = 200
# Rollouts between two draws of the snapshots that play.
DRAW_EVERY = 4


class TrainingStoppedError(RuntimeError):
    """Training cannot go on; the message names the last good checkpoint."""


class Monitor(BaseCallback):
    """Watches a run. Its work is done between rollouts, where weights and games are in a consistent state."""

    def __init__(self, config: TrainConfig, run: Run, tables: Tables, pool: OpponentPool) -> None:
        super().__init__()
        self._config, self._run, self._tables, self._pool = config, run, tables, pool
        self._stop = False
        self._best = -math.inf
        self._due: dict[str, int] = {}
        self._results: dict[tuple[str, Rules], Evaluation] = {}  # by opponent and rule set
        self._bar: tqdm[Any] | None = None
        self._mark = (time.perf_counter(), 0, 0)
        self._rollouts = 0  # of this process

    def _init_callback(self) -> None:
        self._best = self._strength_of_best()
        for task in ("snapshot", "eval", "checkpoint"):
            every = getattr(self._config, f"{task}_every")
            self._due[task] = (self.model.num_timesteps // every + 1) * every

    def _strength_of_best(self) -> float:
        """By what the best checkpoint was chosen: as it says itself, since a crash costs metrics their last lines."""
        try:
            evaluation = read_manifest(self._run.checkpoint("best")).evaluation
        except CheckpointError:
            return -math.inf  # whatever is written there is better than none
        known = evaluation.get("best_by")
        if isinstance(known, float) and math.isfinite(known):
            return known
        return max((row.get("eval/best_by", -math.inf) for row in self._run.read_metrics()), default=-math.inf)

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C asked for an end."""
        return self._stop

    @property
    def _policy(self) -> MaskedPolicy:
        assert isinstance(self.model, PPO)
        return policy_of(self.model)

    # --- stable-baselines3's hooks ---

    def _on_training_start(self) -> None:
        self._bar = tqdm(
            total=self._config.total_decisions,
            initial=self.num_timesteps,
            unit="decision",
            unit_scale=True,
            dynamic_ncols=True,
            mininterval=0.5,
            file=stops.Onlooker(),
        )
        self._mark = (time.perf_counter(), self.num_timesteps, self._tables.moves)
        if self._pool.takes_snapshots and not self._pool.snapshots:
            self.take_snapshot()
        self._draw_opponents()

    def _draw_opponents(self) -> None:
        self._tables.set_lineup(self._pool.lineup(self._config.opponent_share, self._config.learner_seats or None))

    def _on_step(self) -> bool:
        self._pool.note(self.locals["finished"])
        return not self._stop

    def _on_rollout_start(self) -> None:
        """The last update is done: log it and its rollout in one line; what is written now leaves nothing out."""
        self._check_weights()
        start = time.perf_counter()
        if self._rollouts:
            if self._is_due("eval"):
                self._evaluate()
            self._log()
        if self._is_due("snapshot") and self._pool.takes_snapshots:
            self.take_snapshot()
        if self._rollouts % DRAW_EVERY == 0:
            self._draw_opponents()
        if self._is_due("checkpoint"):
            self.save()
        self._mark = (
            self._mark[0] + time.perf_counter() - start,
            *self._mark[1:],
        )  # speeds are those of training alone

    def _on_rollout_end(self) -> None:
        assert self._bar is not None
        now, steps, moves = time.perf_counter(), self.num_timesteps, self._tables.moves
        seconds = now - self._mark[0]
        if self._rollouts:  # the first rollout has no update to pay for
            self.logger.record("time/decisions_per_second", (steps - self._mark[1]) / seconds)
            self.logger.record("time/moves_per_second", (moves - self._mark[2]) / seconds)
        for name, strength in self._pool.strengths.items():
            self.logger.record(f"pool/{name}", strength, exclude="tensorboard" if "snapshot" in name else None)
        self._rollouts += 1
        self._mark = (now, steps, moves)
        self._bar.update(steps - self._bar.n)

    # --- its work ---

    def _check_weights(self, *, are_broken: bool = False) -> None:
        """Stop when the weights are not numbers any more.

        Raises:
            TrainingStoppedError: they are not.
        """
        if self._policy.all_finite() and not are_broken:
            return
        raise TrainingStoppedError(
            f"the weights are no longer numbers after {self.num_timesteps} decisions; a lower learning_rate may help."
            f" {self._last_good()}"
        )

    def _last_good(self) -> str:
        last = self._run.checkpoint("last")
        return f"The last good checkpoint is {last}" if last.exists() else "No checkpoint had been written yet"

    def _log(self) -> None:
        assert isinstance(self.model, PPO)
        self.model.dump_logs()

    def _is_due(self, task: str) -> bool:
        if self.num_timesteps < self._due[task]:
            return False
        every = getattr(self._config, f"{task}_every")
        self._due[task] = (self.num_timesteps // every + 1) * every
        return True

    def _evaluate(self) -> None:
        bot = PolicyBot(self._policy.network, name="learner")
        strengths = []
        for rules in self._config.parsed_rules:
            for name in self._config.eval_against:
                result = self._play(bot, make_bot(name), rules, self._config.eval_deals)
                self._results[name, rules] = result
                key = f"eval/{name}/{label(rules)}"
                self._record(key, result.win_rate)
                self._record(key + "_strength", strength(result))
            strengths.append(strength(result).mean)  # against the last field
            if is_solved(rules):
                found = regret(bot, rules, REGRET_DEALS, EVALUATION_SEED)
                if found.match.interrupted:
                    raise KeyboardInterrupt
                self._record(f"eval/regret/{label(rules)}", found.value_lost)
                self._record(f"eval/mistakes/{label(rules)}", found.mistakes)
        for step, snapshot in self._pool.snapshots:  # a row of the matrix of all snapshots over time
            wins = [
                self._play(bot, snapshot, rules, MATRIX_DEALS).win_rate.mean * rules.num_players
                for rules in self._config.parsed_rules
            ]
            self.logger.record(f"matrix/{step:012d}", float(np.mean(wins)))
        decisive = float(np.mean(strengths))
        self.logger.record("eval/best_by", decisive)
        assert self._bar is not None
        last = self._config.eval_against[-1]
        self._bar.set_postfix_str(f"strength {decisive:.3f} against {last}")
        if decisive > self._best:
            self._best = decisive
            self._write(self._run.checkpoint("best"), {"best_by": decisive})

    def _record(self, key: str, estimate: Estimate) -> None:
        for ending, value in (("", estimate.mean), ("_low", estimate.low), ("_high", estimate.high)):
            self.logger.record(key + ending, value)

    def _play(self, bot: Bot, opponent: Bot, rules: Rules, deals: int) -> Evaluation:
        result = evaluate(bot, [opponent] * (rules.num_players - 1), rules, deals, EVALUATION_SEED)
        if result.interrupted:
            raise KeyboardInterrupt  # a part of the deals must not decide which checkpoint is the best
        return result

    def take_snapshot(self) -> None:
        """Keep the learner of now as an opponent."""
        self._write(self._pool.path(self.num_timesteps))
        self._pool.add(self.num_timesteps, self._policy.network)

    def save(self) -> None:
        """Write checkpoint ``last``, the resume state and the curves."""
        self._write(self._run.checkpoint("last"))
        self._run.save_state(
            {
                "policy": self._policy.state_dict(),
                "optimizer": self._policy.optimizer.state_dict(),
                "decisions": self.num_timesteps,
                "updates": self.model._n_updates,
                "next_deal": self._tables.next_deal,
                "next_lesson": self._next_lesson,
                "strengths": dict(self._pool.strengths),
                "torch_rng": torch.get_rng_state(),
            }
        )
        draw_curves(self._run.read_metrics(), self._config, self._run.curves)

    @property
    def _next_lesson(self) -> int:
        assert isinstance(self.model, SelfPlayPPO)
        return self.model.teacher.next_deal if self.model.teacher else 0

    def _write(self, folder: Path, more: Mapping[str, float] | None = None) -> None:
        config = self._config
        summary: dict[str, dict[str, Any]] = {}
        for (name, rules), r in self._results.items():
            interval = [r.win_rate.low, r.win_rate.high]
            entry = {"win_rate": r.win_rate.mean, "win_rate_ci95": interval, "deals": r.deals}
            summary.setdefault(name, {})[str(rules)] = entry
        write_checkpoint(
            folder,
            self._policy.network.state_dict(),
            list(config.parsed_rules),
            config.network_spec,
            steps=self.num_timesteps,
            seed=config.seed,
            training=config.to_dict(),
            evaluation={"against": summary, **(more or {})},
        )

    def finish(self) -> None:
        """Evaluate and save the final weights; after Ctrl-C save them at once, whoever pressed it does not wait."""
        self._check_weights()
        if not self.stopped:
            self._evaluate()
        self._log()
        if self._is_due("snapshot") and self._pool.takes_snapshots:
            self.take_snapshot()
        self.save()

    @contextmanager
    def named_stops(self) -> Iterator[None]:
        """Say what stopped a run, and which checkpoint is good, where the error itself does not.

        Raises:
            TrainingStoppedError: the weights are not numbers any more, or a file could not be written.
        """
        try:
            yield
        except ValueError as error:  # torch's distributions refuse such logits in the middle of an update
            if "logits" not in str(error):
                raise
            self._check_weights(are_broken=True)
        except OSError as error:  # a full disk
            raise TrainingStoppedError(f"{error} after {self.num_timesteps} decisions. {self._last_good()}") from error

    # --- Ctrl-C ---

    @contextmanager
    def clean_interrupts(self) -> Iterator[None]:
        """Turn the first Ctrl-C, SIGTERM or SIGHUP into a clean stop after the current step; a second stops at once."""

        def stop(number: int, frame: FrameType | None) -> None:
            self._stop = True
            give_back()
            stops.say("Stopping after the current update; checkpoint and curves will be saved (Ctrl-C again: at once).")

        with _signals.handled_by(stop) as give_back:
            yield

    def close(self) -> None:
        """Take the progress bar off the terminal."""
        if self._bar is not None:
            self._bar.close()


def strength(result: Evaluation) -> Estimate:
    """How good an agent is at what its rules pay for, 1 for an equal among equals in most.

    Where a win is all that is paid, the win rate times the seats; else one more than the mean payoff.
    """
    paid = result.win_rate if result.rules.payoff == "win" else result.mean_payoff
    scale, shift = (result.rules.num_players, 0) if result.rules.payoff == "win" else (1, 1)
    mean, low, high = (scale * value + shift for value in (paid.mean, paid.low, paid.high))
    return Estimate(mean, low, high, paid.count)


def restore(model: PPO, state: dict[str, Any], run: Run) -> None:
    """Put a saved state back into a freshly built model.

    Raises:
        ConfigError: it is not of this model; the message names the file and the field.
    """
    key = ""
    try:
        key = "policy"
        model.policy.load_state_dict(state[key])
        key = "optimizer"
        _check_optimizer(model.policy.optimizer, state[key])
        model.policy.optimizer.load_state_dict(state[key])
        key = "torch_rng"
        torch.set_rng_state(state[key])
    except (ValueError, RuntimeError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise run.damaged(f"{key}: {shown(str(error), 300)}") from error
    model.num_timesteps = int(state["decisions"])
    model._n_updates = int(state["updates"])


def _check_optimizer(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Check what torch takes on trust, and would fail of in the first update.

    Raises:
        ValueError: other settings, or averages of another shape than their weights.
    """
    own = optimizer.state_dict()["param_groups"]
    for group, mine in zip(state["param_groups"], own, strict=True):
        for name, value in mine.items():  # other releases of torch have other settings besides
            is_other = not isinstance(group["lr"], float) if name == "lr" else group.get(name, value) != value
            if is_other:
                raise ValueError(f"param_groups has {name}={shown(group[name])}, not {shown(value)}")
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    for number, averages in state["state"].items():
        for name, value in averages.items():
            shape = () if name == "step" else weights[number].shape
            if not isinstance(value, torch.Tensor) or value.shape != shape or not bool(torch.isfinite(value).all()):
                raise ValueError(f"{name} of weights {number} does not fit them")
