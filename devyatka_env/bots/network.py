"""Policy networks in torch: one row of `NETWORKS` each. Training and checkpoint bots run this same code.

Imported only where a network is built, so that the package itself does not need torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from devyatka_env.observation import observation_layout

# Not -inf: its product with a probability of 0 is NaN in the entropy. exp() of this is exactly 0 in float32, beside the
# lowest logit that a legal action can have, too.
MASKED_LOGIT = -1e8
MAX_LOGIT = 1e6


class PolicyNetwork(nn.Module, ABC):
    """What every network offers: masked action logits and a value, from the observation's two arrays.

    Shapes, with batch `B`, observation length `D`, cards `C`: observation ``int8 [B, D]``, action mask
    ``int8 [B, C + 1]``, logits ``float32 [B, C + 1]``, value ``float32 [B]`` (expected payoff of the observer).

    Attributes:
        num_cards: deck size.
    """

    num_cards: int

    @abstractmethod
    def raw_logits(self, observation: Tensor) -> Tensor:
        """Action logits before the mask."""

    @abstractmethod
    def value(self, observation: Tensor) -> Tensor:
        """Expected payoff of the observing seat."""

    def logits(self, observation: Tensor, action_mask: Tensor) -> Tensor:
        """Action logits in which an illegal action has no probability left."""
        logits = self.raw_logits(observation).clamp(-MAX_LOGIT, MAX_LOGIT)
        return logits.masked_fill(action_mask == 0, MASKED_LOGIT)


def _trunk(sizes: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(sizes):
        linear = nn.Linear(fan_in, fan_out)
        nn.init.orthogonal_(linear.weight, gain=2**0.5)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers)


def _head(fan_in: int, fan_out: int, gain: float) -> nn.Linear:
    linear = nn.Linear(fan_in, fan_out)
    nn.init.orthogonal_(linear.weight, gain=gain)
    nn.init.zeros_(linear.bias)
    return linear


class MLP(PolicyNetwork):
    """Two separate stacks of fully connected layers, for the policy and for the value.

    Args:
        num_cards: deck size, which fixes the observation's layout.
        hidden: widths of the hidden layers of each stack.
    """

    def __init__(self, num_cards: int, hidden: Sequence[int] = (256, 256)) -> None:
        super().__init__()
        self.num_cards = num_cards
        layout = observation_layout(num_cards)
        high = torch.from_numpy(layout.high.copy()).float()
        # Counts come as they are, up to some tens; bits as 0 or 1. Bring both to the same order of size.
        self.register_buffer("scale", torch.where(high > 1, 0.1, 1.0), persistent=False)
        self.policy_trunk = _trunk([layout.size, *hidden])
        self.value_trunk = _trunk([layout.size, *hidden])
        self.policy_head = _head(hidden[-1], num_cards + 1, gain=0.01)
        self.value_head = _head(hidden[-1], 1, gain=1.0)

    def _scaled(self, observation: Tensor) -> Tensor:
        scale = self.scale
        assert isinstance(scale, Tensor)
        return observation.to(scale.dtype) * scale

    def raw_logits(self, observation: Tensor) -> Tensor:
        """Action logits before the mask."""
        logits: Tensor = self.policy_head(self.policy_trunk(self._scaled(observation)))
        return logits

    def value(self, observation: Tensor) -> Tensor:
        """Expected payoff of the observing seat."""
        value: Tensor = self.value_head(self.value_trunk(self._scaled(observation)))
        return value.squeeze(-1)


NETWORKS: Mapping[str, type[PolicyNetwork]] = {"mlp": MLP}


def build_network(num_cards: int, spec: Mapping[str, Any]) -> PolicyNetwork:
    """Build a network from its description, ``{"kind": "mlp", "hidden": [256, 256]}``.

    Raises:
        ValueError: an unknown kind or an argument that the kind does not take.
    """
    arguments = dict(spec)
    kind = arguments.pop("kind", None)
    if kind not in NETWORKS:
        raise ValueError(f"unknown network kind {kind!r}; the kinds are {', '.join(NETWORKS)}")
    try:
        return NETWORKS[kind](num_cards, **arguments)
    except TypeError as error:
        raise ValueError(f"network {dict(spec)}: {error}") from error
