"""The policy that stable-baselines3's PPO trains: a `PolicyNetwork` that reads the action mask from the observation.

Training, `predict`, evaluation callbacks and a restored model all go through it, so none can forget the mask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.distributions import CategoricalDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor

from devyatka_env.bots.network import PolicyNetwork, build_network, masked

Observation = Mapping[str, Tensor]


def _distribution(logits: Tensor) -> CategoricalDistribution:
    return CategoricalDistribution(logits.shape[1]).proba_distribution(action_logits=logits)


def policy_of(model: PPO) -> MaskedPolicy:
    """The masked policy of a PPO model built with one."""
    assert isinstance(model.policy, MaskedPolicy)
    return model.policy


class MaskedPolicy(ActorCriticPolicy):
    """An actor-critic policy whose illegal actions have probability 0.

    Args:
        observation_space: ``{"observation": int8 [D], "action_mask": int8 [C + 1]}``.
        action_space: ``Discrete(C + 1)``.
        lr_schedule: step size by the remaining share of training.
        network: the network's description (`devyatka_env.bots.network.build_network`).
        bfloat16: multiply matrices in bfloat16 while training; weights stay float32.
        **kwargs: what stable-baselines3 passes on.
    """

    network: PolicyNetwork

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        network: Mapping[str, Any],
        bfloat16: bool = False,
        **kwargs: Any,
    ) -> None:
        self._network_spec = dict(network)
        self._bfloat16 = bfloat16
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        assert isinstance(self.action_space, spaces.Discrete)
        self.network = build_network(int(self.action_space.n) - 1, self._network_spec)
        self.optimizer = self.optimizer_class(  # type: ignore[call-arg] # Adam has the argument
            self.network.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            **super()._get_constructor_parameters(),
            "network": self._network_spec,
            "bfloat16": self._bfloat16,
        }

    def _both(self, obs: Observation) -> tuple[CategoricalDistribution, Tensor]:
        """The distribution over legal actions and the values ``[B, 1]``."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._bfloat16):
            logits, values = self.network.both(obs["observation"])
        return _distribution(masked(logits.float(), obs["action_mask"])), values.float().unsqueeze(1)

    def log_probs(self, obs: Observation) -> tuple[Tensor, Tensor]:
        """Log-probabilities ``[B, C + 1]`` of all actions, and values ``[B]``."""
        distribution, values = self._both(obs)
        return distribution.distribution.logits, values[:, 0]

    def forward(self, obs: Observation, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:  # type: ignore[override] # always a Dict
        """Actions ``int64 [B]``, values ``[B, 1]`` and log-probabilities ``[B]``."""
        distribution, values = self._both(obs)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, values, distribution.log_prob(actions)

    def evaluate_actions(self, obs: Observation, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # type: ignore[override]
        """Values ``[B, 1]``, log-probabilities ``[B]`` and entropies ``[B]`` of given actions."""
        distribution, values = self._both(obs)
        return values, distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: Observation) -> CategoricalDistribution:  # type: ignore[override]
        """The distribution over legal actions."""
        return _distribution(self.network.logits(obs["observation"], obs["action_mask"]))

    def predict_values(self, obs: Observation) -> Tensor:  # type: ignore[override]
        """Values ``[B, 1]``."""
        return self.network.value(obs["observation"]).unsqueeze(1)

    def all_finite(self) -> bool:
        """Whether every weight is a number."""
        return all(bool(torch.isfinite(weight).all()) for weight in self.parameters())
