"""The rollout buffer of all-seats self-play: every seat's decisions are a trajectory of its own.

A deal pays each seat at its end, often after other seats' turns. So a decision's advantage is known when its deal is
over: then the decisions of each seat are walked back from its payoff (generalised advantage estimation, Schulman et al.
2016, over that seat's own turns). An update gets whole minibatches of decisions whose deals have ended; the others wait
for the next one, none is used twice and none is lost. No value is ever needed for a position off turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictRolloutBuffer
from stable_baselines3.common.type_aliases import DictRolloutBufferSamples

from devyatka_env.engine.compiling import kernel
from devyatka_env.rules import MAX_PLAYERS

Floats = NDArray[np.float32]
Index = NDArray[np.int64]


@kernel
def _credit(
    games: Index,
    payoffs: NDArray[np.float64],
    last: Index,
    previous: Index,
    values: Floats,
    gamma: float,
    gae_lambda: float,
    advantages: Floats,
    complete: NDArray[np.bool_],
) -> None:
    """Give every decision of the finished deals its advantage, each seat's back from its own payoff."""
    for k in range(len(games)):
        for seat in range(last.shape[1]):
            slot = last[games[k], seat]
            last[games[k], seat] = -1
            target, advantage = payoffs[k, seat], 0.0  # the value of the next turn; beyond the last one the payoff
            decay = 0.0
            while slot >= 0:
                advantage = target - values[slot] + decay * advantage
                advantages[slot] = advantage
                complete[slot] = True
                target, decay = gamma * values[slot], gamma * gae_lambda
                slot = previous[slot]


class SeatBuffer(DictRolloutBuffer):
    """Decisions of many seats in many games, for stable-baselines3's `PPO.train`.

    `advantages`, `returns` and `values` are those of the finished deals, ``float32 [M]``, once `collect_finished` was
    called.

    Args:
        buffer_size: rounds of a rollout.
        observation_space: the policy's observations.
        action_space: ``Discrete(C + 1)``.
        device: where samples go.
        gae_lambda: lambda of the advantages.
        gamma: discount of a decision.
        n_envs: games, `N` below.
    """

    observation_space: spaces.Dict
    action_space: spaces.Discrete

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Dict,
        action_space: spaces.Discrete,
        device: torch.device | str = "cpu",
        gae_lambda: float = 1.0,
        gamma: float = 1.0,
        n_envs: int = 1,
    ) -> None:
        capacity = 2 * n_envs * buffer_size  # a rollout, and about as many decisions of deals in play
        self.rows: dict[str, NDArray[Any]] = {
            key: np.zeros((capacity, *space.shape), np.int8)
            for key, space in observation_space.spaces.items()
            if space.shape is not None
        }
        self.rows["action"] = np.zeros(capacity, np.int64)
        for key in ("value", "log_prob", "advantage"):
            self.rows[key] = np.zeros(capacity, np.float32)
        self._size = 0
        self._complete = np.zeros(capacity, np.bool_)
        self._used = np.zeros(capacity, np.bool_)
        self._previous: Index = np.full(capacity, -1)  # the same seat's decision before, in the same deal
        self._last: Index = np.full((n_envs, MAX_PLAYERS), -1)  # the latest decision of each seat of a deal in play
        self._finished: Index = np.zeros(0, np.int64)
        super().__init__(buffer_size, observation_space, action_space, device, gae_lambda, gamma, n_envs)

    def reset(self) -> None:
        """Drop the decisions that the last update used; the others move to the front."""
        self._used[self._finished] = True
        kept = np.flatnonzero(~self._used[: self._size])
        moved = np.full(len(self._complete) + 1, -1)  # the last entry stands for "none"
        moved[kept] = np.arange(len(kept))
        for rows in self.rows.values():
            rows[: len(kept)] = rows[kept]
        self._previous[: len(kept)] = moved[self._previous[kept]]
        self._last = moved[self._last]
        self._complete[: len(kept)] = self._complete[kept]
        self._complete[len(kept) :] = False
        self._used[:] = False
        self._finished = np.zeros(0, np.int64)
        self._size = len(kept)

    def add_decisions(self, games: Index, seats: Index, **columns: NDArray[Any]) -> None:
        """Append a decision of ``seats [K]`` in ``games [K]``; ``columns`` are rows of each kind."""
        while self._size + len(games) > len(self._complete):
            self._grow()
        slots = np.arange(self._size, self._size + len(games))
        for key, values in columns.items():
            self.rows[key][slots] = values
        self._previous[slots] = self._last[games, seats]
        self._last[games, seats] = slots
        self._size += len(games)

    def _grow(self) -> None:
        """Double the room."""
        self.rows = {key: np.concatenate([rows, np.zeros_like(rows)]) for key, rows in self.rows.items()}
        self._complete = np.concatenate([self._complete, np.zeros_like(self._complete)])
        self._used = np.concatenate([self._used, np.zeros_like(self._used)])
        self._previous = np.concatenate([self._previous, np.full_like(self._previous, -1)])

    def finish(self, games: Index, payoffs: NDArray[np.float64]) -> None:
        """Give the decisions of finished deals their advantages.

        Args:
            games: ``int64 [K]``.
            payoffs: ``float64 [K, 6]`` by seat.
        """
        rows = self.rows
        _credit(
            games,
            payoffs,
            self._last,
            self._previous,
            rows["value"],
            self.gamma,
            self.gae_lambda,
            rows["advantage"],
            self._complete,
        )

    @property
    def num_complete(self) -> int:
        """Decisions whose deals have ended."""
        return int(self._complete[: self._size].sum())

    def collect_finished(self, batch_size: int) -> int:
        """Fix the decisions that an update will get, the oldest whole minibatches; returns their number.

        Every minibatch is of one size: torch keeps compiled kernels and memory for every size that it meets.
        """
        finished = np.flatnonzero(self._complete[: self._size])
        self._finished = finished[: len(finished) // batch_size * batch_size]
        self.values = self.rows["value"][self._finished]
        self.advantages = self.rows["advantage"][self._finished]
        self.returns = self.advantages + self.values
        return len(self._finished)

    def get(self, batch_size: int | None = None) -> Iterator[DictRolloutBufferSamples]:  # type: ignore[override]
        """The decisions that `collect_finished` fixed once each, in random order, in minibatches of ``batch_size``."""
        count = len(self._finished)
        order = torch.randperm(count).numpy()
        for start in range(0, count, batch_size or count):
            yield self._sample(order[start : start + (batch_size or count)])

    def _sample(self, chosen: Index) -> DictRolloutBufferSamples:
        rows = self.rows
        slots = self._finished[chosen]
        tensor = self.to_torch
        return DictRolloutBufferSamples(
            observations={key: tensor(rows[key][slots]) for key in self.observation_space.spaces},
            actions=tensor(rows["action"][slots]),
            old_values=tensor(self.values[chosen]),
            old_log_prob=tensor(rows["log_prob"][slots]),
            advantages=tensor(self.advantages[chosen]),
            returns=tensor(self.returns[chosen]),
        )
