"""Write the checkpoint that every later release must still load, and the actions that it chose when it was written.

    python tests/data/make_checkpoint_v1.py

Only for a new format: the committed files of an old one stay as they are. Until release 0.1.0 this one may be remade.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from devyatka_env.bots import PolicyBot, RandomBot
from devyatka_env.bots.checkpoint import write_checkpoint
from devyatka_env.bots.network import build_network
from devyatka_env.bots.rollout import ask_bots
from devyatka_env.engine import States
from devyatka_env.games import Deals
from devyatka_env.rules import Rules

FOLDER = Path(__file__).parent / "checkpoint_v1"
ACTIONS = Path(__file__).parent / "checkpoint_v1_actions.json"
# A mini-deck and a tiny network, for a file of a few kB.
RULES = Rules.of("first_out", num_players=3, num_suits=3, ranks="789TJ")
NETWORK = {"kind": "mlp", "hidden": [8, 8]}
GAMES, PLIES, SEED = 60, 4, 1


def moments() -> tuple[States, np.ndarray]:
    """View records of seeded games some plies in, and the random word of each decision."""
    games = Deals(RULES, np.arange(GAMES), SEED)
    for _ in range(PLIES):
        ask_bots(games, [RandomBot()], np.zeros(GAMES, np.int64), games.all)
    return games.views(games.all), games.decision_words(games.all)


def chosen() -> dict[str, list[int]]:
    """What the checkpoint plays at these moments: its most probable card, and one drawn by probability."""
    views, words = moments()
    return {
        kind: PolicyBot.load(FOLDER, sample=kind == "sample").act_batch(views, RULES, words).tolist()
        for kind in ("argmax", "sample")
    }


def main() -> None:
    """Write both files."""
    torch.manual_seed(0)
    network = build_network(RULES.deck.num_cards, NETWORK)
    with torch.no_grad():
        network.get_parameter("policy_head.weight").mul_(200)  # far from uniform, and from ties
    write_checkpoint(
        FOLDER, network.state_dict(), [RULES], NETWORK, steps=12345, seed=7, training={"note": "untrained"}
    )
    ACTIONS.write_text(json.dumps(chosen()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
