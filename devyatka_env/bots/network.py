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

from devyatka_env.views.observation import observation_layout

# Not -inf: its product with a probability of 0 is NaN in the entropy. exp() of this is exactly 0 in float32, beside the
# lowest logit that a legal action can have, too.
MASKED_LOGIT = -1e8
MAX_LOGIT = 1e6


def masked(logits: Tensor, action_mask: Tensor) -> Tensor:
    """Logits in which an illegal action has no probability left."""
    return logits.clamp(-MAX_LOGIT, MAX_LOGIT).masked_fill(action_mask == 0, MASKED_LOGIT)


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

    def both(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """`raw_logits` and `value`; a network whose policy and value share layers computes these once."""
        return self.raw_logits(observation), self.value(observation)

    def logits(self, observation: Tensor, action_mask: Tensor) -> Tensor:
        """Action logits in which an illegal action has no probability left."""
        return masked(self.raw_logits(observation), action_mask)


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


class SuitNetwork(PolicyNetwork):
    """One network for each suit, the same weights in all: suits are interchangeable but for the opening card.

    Each suit has its rows of the observation (its part of hand, table, could_hold, ...) and what all suits share
    (cards left, passes, rule flags). In every layer a suit sees its own activations and the mean over all suits; so
    relabelling the suits relabels the logits. Policy and value share the layers.

    Args:
        num_cards: deck size, which fixes the observation's layout.
        width: activations of each suit in each layer.
        layers: layers of suits, the first included.
        num_suits: suits of the deck.

    Raises:
        ValueError: suits that cannot be of equal length.
    """

    def __init__(self, num_cards: int, width: int = 128, layers: int = 2, num_suits: int = 4) -> None:
        super().__init__()
        if num_suits < 1 or num_cards % num_suits:
            raise ValueError(f"num_suits must divide the deck of {num_cards} cards, not {num_suits!r}")
        self.num_cards = num_cards
        self._num_suits, self._num_ranks = num_suits, num_cards // num_suits
        layout = observation_layout(num_cards)
        self._num_rows = sum(s.rows for s in layout.segments if s.cards)
        self._cards = self._num_rows * num_cards
        high = torch.from_numpy(layout.high[self._cards :].copy()).float()
        self.register_buffer("scale", torch.where(high > 1, 0.1, 1.0), persistent=False)
        self.suit_in = _head(self._num_rows * self._num_ranks, width, gain=2**0.5)
        self.shared_in = _head(len(high), width, gain=1.0)
        self.own = nn.ModuleList(_head(width, width, gain=1.0) for _ in range(layers - 1))
        self.others = nn.ModuleList(_head(width, width, gain=1.0) for _ in range(layers - 1))
        self.policy_head = _head(width, self._num_ranks, gain=0.01)
        self.pass_logit = nn.Parameter(torch.zeros(1))
        self.value_layer = _head(width, width, gain=2**0.5)
        self.value_head = _head(width, 1, gain=1.0)

    def _trunk(self, observation: Tensor) -> Tensor:
        """Activations ``[B, suits, width]``."""
        scale = self.scale
        assert isinstance(scale, Tensor)
        batch = observation.shape[0]
        cards = observation[:, : self._cards]
        rows = cards.reshape(batch, -1, self._num_suits, self._num_ranks).transpose(1, 2)
        suits = rows.reshape(batch, self._num_suits, -1).to(scale.dtype)
        shared = observation[:, self._cards :].to(scale.dtype) * scale
        x = torch.relu(self.suit_in(suits) + self.shared_in(shared).unsqueeze(1))
        for own, others in zip(self.own, self.others, strict=True):
            x = torch.relu(own(x) + others(x.mean(1)).unsqueeze(1))
        return x

    def _logits(self, x: Tensor) -> Tensor:
        cards = self.policy_head(x).flatten(1)
        return torch.cat([cards, self.pass_logit.expand(len(cards), 1)], 1)

    def _value(self, x: Tensor) -> Tensor:
        value: Tensor = self.value_head(torch.relu(self.value_layer(x.mean(1)))).squeeze(-1)
        return value

    def raw_logits(self, observation: Tensor) -> Tensor:
        """Action logits before the mask."""
        return self._logits(self._trunk(observation))

    def value(self, observation: Tensor) -> Tensor:
        """Expected payoff of the observing seat."""
        return self._value(self._trunk(observation))

    def both(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Logits before the mask, and the value."""
        x = self._trunk(observation)
        return self._logits(x), self._value(x)


NETWORKS: Mapping[str, type[PolicyNetwork]] = {"mlp": MLP, "suits": SuitNetwork}


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
