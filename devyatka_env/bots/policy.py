"""A checkpoint as a bot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env import _files
from devyatka_env.bots.base import Bot, unit_interval
from devyatka_env.bots.checkpoint import CheckpointError, Manifest, read_manifest, read_weights
from devyatka_env.engine import States, rules_record
from devyatka_env.rules import Rules
from devyatka_env.views import PlayerView, observation

if TYPE_CHECKING:
    from torch import Tensor

    from devyatka_env.bots.network import PolicyNetwork


class PolicyBot(Bot):
    """A policy network that plays its most probable legal card, or with ``sample`` one drawn by its probabilities.

    Attributes:
        network: the network, in evaluation mode.
        rules: the rule sets it may play; ``None`` for any of its deck size.
    """

    reads_order = False  # no observation tells it

    def __init__(
        self,
        network: PolicyNetwork,
        rules: tuple[Rules, ...] | None = None,
        *,
        sample: bool = False,
        name: str = "policy",
    ) -> None:
        self.network = network.eval()
        self.rules = rules
        self.sample = sample
        self.deterministic = not sample
        self.name = name
        self.num_cards = network.num_cards
        self._fingerprints = {known.fingerprint for known in rules or ()}

    @classmethod
    def load(
        cls, folder: str | Path, *, sample: bool = False, any_rules: bool = False, device: str = "cpu"
    ) -> PolicyBot:
        """Load a checkpoint folder. Nothing in it is executed.

        Args:
            folder: the checkpoint.
            sample: draw cards by their probabilities instead of playing the most probable one.
            any_rules: let it play rule sets it was not trained for.
            device: torch device of the network.

        Raises:
            CheckpointError: unreadable, damaged, or made for another observation layout.
            ImportError: torch is not installed.
        """
        manifest = read_manifest(folder)
        name = str(folder) + ("+sample" if sample else "") + ("+any_rules" if any_rules else "")
        network = load_network(folder, manifest).to(device)
        return cls(network, None if any_rules else manifest.rules, sample=sample, name=name)

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        """Choose for a single view."""
        word = rng.integers(0, 2**64, size=1, dtype=np.uint64)
        return int(self.act_batch(view.record, view.rules, word)[0])

    def act_batch(self, views: States, rules: Rules, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Choose for every view record in one forward pass.

        Raises:
            CheckpointError: other rules than it was trained for, or a network that answers NaN.
        """
        self.check_rules(rules)
        num_cards = rules.deck.num_cards
        out = np.empty((len(views), observation.observation_layout(num_cards).size), np.int8)
        masks = np.empty((len(views), num_cards + 1), np.int8)
        observation.encode_movers(views, rules_record(rules), out, masks)
        return self.choose(out, masks, words)

    def choose(
        self, observations: observation.Int8Array, masks: observation.Int8Array, words: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """Actions ``int64 [B]`` for observations ``[B, D]`` and action masks ``[B, C + 1]``."""
        import torch

        device = next(self.network.parameters()).device
        with torch.inference_mode():
            logits = self.network.raw_logits(torch.from_numpy(observations).to(device))
            if not bool(torch.isfinite(logits).all()):
                raise CheckpointError(f"the network of {self.name} answers NaN or infinite logits")
            logits = logits.masked_fill(torch.from_numpy(masks).to(device) == 0, -torch.inf)
            if not self.sample:
                best: NDArray[np.int64] = logits.argmax(1).cpu().numpy()
                return best
            mass = torch.softmax(logits.double(), 1).cumsum(1).cpu().numpy()
        # Inverse of the distribution function. The last legal action takes what rounding leaves over.
        draw = (mass > unit_interval(words)[:, None] * mass[:, -1:]) & (masks == 1)
        actions: NDArray[np.int64] = draw.argmax(1)
        return actions

    def check_rules(self, rules: Rules) -> None:
        """Check that this bot may play ``rules``.

        Raises:
            CheckpointError: it may not; the message names both sides.
        """
        if self.rules is not None and rules.fingerprint not in self._fingerprints:
            known = "; ".join(f"{own} ({own.fingerprint})" for own in self.rules)
            raise CheckpointError(
                f"{self.name} was trained for {known}, not for {rules} ({rules.fingerprint});"
                " add +any_rules to its path to let it try"
            )
        if rules.deck.num_cards != self.num_cards:
            raise CheckpointError(
                f"{self.name} plays decks of {self.num_cards} cards, not {rules} with {rules.deck.num_cards}"
            )


def load_network(folder: str | Path, manifest: Manifest) -> PolicyNetwork:
    """Build a checkpoint's network and fill in its weights.

    Raises:
        CheckpointError: the weights do not fit the network that the manifest describes.
    """
    try:
        from devyatka_env.bots.network import build_network
    except ImportError as error:
        raise ImportError(
            f"checkpoints need torch and safetensors: pip install 'devyatka-env[train]' ({error})"
        ) from error
    import torch

    weights = read_weights(folder, manifest)
    description = _files.shown(dict(manifest.network), 400)
    try:
        _check_size(manifest.network, weights)
        with torch.device("meta"):  # shapes alone: a false description must not cost the time to build what it claims
            network = build_network(manifest.num_cards, manifest.network)
        network.load_state_dict({name: weight.float() for name, weight in weights.items()}, assign=True)
    except (ValueError, RuntimeError, TypeError, IndexError, OverflowError, RecursionError) as error:
        why = _files.shown(str(error), 400)
        raise CheckpointError(f"{folder}: the weights do not fit network {description}: {why}") from error
    return network


def _check_size(network: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """Refuse a description that has more layers than the weights have tensors.

    Raises:
        ValueError: it has.
    """
    layers = network.get("layers", 0)
    most = max(len(value) if isinstance(value, list) else 0 for value in (*network.values(), 0))
    if most > len(weights) or (isinstance(layers, int) and layers > len(weights)):
        raise ValueError(f"{len(weights)} tensors are too few")
