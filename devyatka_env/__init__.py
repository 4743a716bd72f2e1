"""Devyatka, the card game, for reinforcement learning.

PettingZoo: `env` (AEC), `parallel_env`, or ``pettingzoo.make("aec", "devyatka/Devyatka-v0")``.
Gymnasium: ``gymnasium.make("devyatka/Devyatka-v0", opponents="greedy")``.
In plain Python: `Game`, `Match`, `Rules`, `make_bot`, `devyatka_env.evaluation.evaluate`.
"""

import gymnasium as _gymnasium
import pettingzoo as _pettingzoo
from pettingzoo.env_registry.registration import aec_registry as _aec_registry

from devyatka_env.bots import Bot, bot_names, make_bot, register_bot
from devyatka_env.cards import Card, CardTextError, Deck
from devyatka_env.dealing import DealError
from devyatka_env.envs.aec import env, raw_env
from devyatka_env.envs.parallel import parallel_env
from devyatka_env.game import Game, IllegalActionError, Result
from devyatka_env.match import Match
from devyatka_env.rules import PRESETS, Rules, RulesError
from devyatka_env.view import PlayerView

__version__ = "0.1.0"
ENV_ID = "devyatka/Devyatka-v0"

if ENV_ID not in _aec_registry:  # a reload of this module must not register twice
    _pettingzoo.register("aec", ENV_ID, entry_point="devyatka_env.envs.aec:env")
    _pettingzoo.register("parallel", ENV_ID, entry_point="devyatka_env.envs.parallel:parallel_env")
    _gymnasium.register(
        ENV_ID,
        entry_point="devyatka_env.envs.single_agent:DevyatkaEnv",
        vector_entry_point="devyatka_env.envs.vector:DevyatkaVectorEnv",
    )

__all__ = [
    "ENV_ID",
    "PRESETS",
    "Bot",
    "Card",
    "CardTextError",
    "DealError",
    "Deck",
    "Game",
    "IllegalActionError",
    "Match",
    "PlayerView",
    "Result",
    "Rules",
    "RulesError",
    "bot_names",
    "env",
    "make_bot",
    "parallel_env",
    "raw_env",
    "register_bot",
]
