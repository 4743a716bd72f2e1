"""stable-baselines3's PPO, fed by every seat of every game.

Only where decisions come from is ours (`SelfPlayPPO.collect_rollouts`, `SeatBuffer`); the loss, the schedules, the
logger, callbacks, `save` and `load` are stable-baselines3's.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from devyatka_env.learning.buffer import SeatBuffer
from devyatka_env.learning.policy import policy_of
from devyatka_env.learning.tables import LEARNER, Finished, Tables
from devyatka_env.learning.teacher import Teacher
from devyatka_env.rules import Rules
from devyatka_env.views import observation_layout
from devyatka_env.views.observation import Int8Array

# The learner is asked for a multiple of so many rows: torch keeps compiled kernels and memory for every size it meets.
ROWS = 256


class TablesEnv(VecEnv):
    """`Tables` as the environment that stable-baselines3 asks for. `SelfPlayPPO` steps the tables itself.

    Attributes:
        tables: the games.
    """

    def __init__(self, rules: Sequence[Rules], num_games: int, seed: int, first_deal: int = 0) -> None:
        self.tables = Tables(rules, num_games, seed, first_deal)
        num_cards = rules[0].deck.num_cards
        layout = observation_layout(num_cards)
        observed = spaces.Dict(
            {
                "observation": spaces.Box(np.zeros(layout.size, np.int8), layout.high, dtype=np.int8),
                "action_mask": spaces.Box(0, 1, (num_cards + 1,), np.int8),
            }
        )
        super().__init__(num_games, observed, spaces.Discrete(num_cards + 1))

    def reset(self) -> dict[str, Int8Array]:
        """What is pending in every game, in arrays that the tables go on to use."""
        return self.observed()

    def observed(self) -> dict[str, Int8Array]:
        """The observations of all games, ``[N, …]`` each, in arrays that the tables go on to use."""
        return {"observation": self.tables.observations, "action_mask": self.tables.action_masks}

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Not to be used: a step of this environment has a reward for every seat, later than its action."""
        raise RuntimeError(
            "the seats of `Tables` are stepped by SelfPlayPPO; for one learner's seat use DevyatkaVecEnv"
        )

    def step_wait(self) -> VecEnvStepReturn:
        """Not to be used, as `step_async`."""
        raise RuntimeError(
            "the seats of `Tables` are stepped by SelfPlayPPO; for one learner's seat use DevyatkaVecEnv"
        )

    def close(self) -> None:
        """Release nothing."""

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The value of an attribute, the same for each of the games asked for."""
        value = None if attr_name == "render_mode" else getattr(self, attr_name)
        return [value] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of all games."""
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> list[Any]:
        """Call a method once; its result for each of the games asked for."""
        return [getattr(self, method_name)(*args, **kwargs)] * len(list(self._get_indices(indices)))

    def env_is_wrapped(self, wrapper_class: Any, indices: VecEnvIndices = None) -> list[bool]:
        """No game is wrapped."""
        return [False] * len(list(self._get_indices(indices)))


class SelfPlayPPO(PPO):
    """PPO in which every decision of every learner's seat becomes a step of that seat's own trajectory.

    ``n_steps`` counts rounds: decisions taken in each game between two updates. `num_timesteps` counts decisions of the
    learner; those of opponents and forced turns do not count.

    Attributes:
        teacher: gives lessons after each update, if there is one.
    """

    def __init__(self, policy: Any, env: TablesEnv, **kwargs: Any) -> None:
        with warnings.catch_warnings():  # that `batch_size` does not divide a rollout: the rest waits in `SeatBuffer`
            warnings.filterwarnings("ignore", "You have specified a mini-batch size", UserWarning)
            super().__init__(policy, env, rollout_buffer_class=SeatBuffer, **kwargs)
        self.teacher: Teacher | None = None

    def train(self) -> None:
        """PPO's update, then the teacher's lessons if there is one."""
        super().train()
        if self.teacher is not None:
            loss, right = self.teacher.train(policy_of(self), self.batch_size, self.max_grad_norm)
            self.logger.record("teacher/loss", loss)
            self.logger.record("teacher/right", right)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "teacher", "_last_obs"]

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        """Play ``n_rollout_steps`` rounds, more until there is a minibatch of decisions whose deals have ended."""
        assert isinstance(env, TablesEnv)
        assert isinstance(rollout_buffer, SeatBuffer)
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        callback.on_rollout_start()
        rounds = 0
        while rounds < n_rollout_steps or rollout_buffer.num_complete < self.batch_size:
            finished = self._play_round(env, rollout_buffer)  # among the locals, for the callback
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            rounds += 1
        rollout_buffer.collect_finished(self.batch_size)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _play_round(self, env: TablesEnv, buffer: SeatBuffer) -> Finished:
        """One decision in every game: one forward pass of the learner, and one of each network that is an opponent."""
        tables, rows = env.tables, env.observed()
        actions = np.zeros(tables.num_games, np.int64)
        own = np.flatnonzero(tables.pending == LEARNER)
        if len(own) < tables.num_games:
            padded = np.resize(own, -(-len(own) // ROWS) * ROWS)
            rows = {key: values[padded] for key, values in rows.items()}
            players_of: dict[Any, list[np.int64]] = {}  # two opponents may be the same snapshot
            for player in np.unique(tables.pending[tables.pending != LEARNER]):
                players_of.setdefault(tables.network(player), []).append(player)
            for network, players in players_of.items():
                theirs = np.flatnonzero(np.isin(tables.pending, players))
                observations, masks = tables.observations[theirs], tables.action_masks[theirs]
                actions[theirs] = network.choose(observations, masks, tables.words(theirs))
        if len(own):
            with torch.no_grad():
                tensors = {key: torch.from_numpy(values).to(self.device) for key, values in rows.items()}
                chosen, values, log_probs = self.policy(tensors)
            columns = {
                **rows,
                "action": chosen.cpu().numpy(),
                "value": values.cpu().numpy()[:, 0],
                "log_prob": log_probs.cpu().numpy(),
            }
            columns = {key: column[: len(own)] for key, column in columns.items()}
            actions[own] = columns["action"]
            buffer.add_decisions(own, tables.seats[own], **columns)
        finished = tables.step(actions)
        buffer.finish(finished.games, finished.payoffs)
        self.num_timesteps += len(own)
        return finished
