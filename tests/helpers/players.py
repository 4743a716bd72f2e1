"""Players that several test modules seat: a deterministic one, with and without a view, and a tiny network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from devyatka_env import PlayerView, Rules
from devyatka_env.bots import RandomBot
from devyatka_env.bots.network import MLP
from devyatka_env.bots.rollout import ask_bots
from devyatka_env.envs import DevyatkaEnv
from devyatka_env.games import Deals

RULES = Rules.of("first_out")
NETWORK = {"kind": "mlp", "hidden": [8, 8]}


def lowest(view: PlayerView, rng: np.random.Generator) -> int:
    """A player that an environment's user can copy without a view: its lowest legal action."""
    return view.legal_actions()[0]


def play_match(env: DevyatkaEnv, choose: Callable[[np.ndarray[Any, Any]], int]) -> list[tuple[Any, ...]]:
    """Play the match from now on, choosing by the action mask; every step's answer."""
    answers: list[tuple[Any, ...]] = []
    while not answers or not answers[-1][2]:
        answers.append(env.step(choose(env.action_masks())))
    return answers


def play_lowest(env: DevyatkaEnv) -> list[tuple[Any, ...]]:
    """Play the match from now on as `lowest` would."""
    return play_match(env, lambda mask: int(mask.argmax()))


def tiny_network(seed: int = 0, gain: float = 100.0) -> MLP:
    """A small untrained network for 36 cards, as `NETWORK` describes it; its policy is far from uniform."""
    torch.manual_seed(seed)
    network = MLP(36, (8, 8))
    with torch.no_grad():
        network.policy_head.weight.mul_(gain)
    return network


def moments(count: int = 300, plies: int = 6) -> Deals:
    """Games of `RULES` some random plies in, all of them on."""
    games = Deals(RULES, np.arange(count), 1)
    for _ in range(plies):
        ask_bots(games, [RandomBot()], np.zeros(count, np.int64), games.all)
    return games
