"""Devyatka, the card game, for reinforcement learning.

PettingZoo: `env` (AEC), `parallel_env`, or ``pettingzoo.make("aec", "devyatka/Devyatka-v0")``.
Gymnasium: ``gymnasium.make("devyatka/Devyatka-v0", opponents="greedy")``.
In plain Python: `Game`, `Match`, `Rules`, `make_bot`, `evaluate`; thousands of games at once: `BatchGame`, `Deals`.

What most users need is here; the rest is in the rooms, each of which lists what is public in it, from the bottom up:
`rules`, `engine`, `views`, `games`, `solver`, `bots`, `envs`, `evaluation`, `learning`. What no room lists is internal.
"""

from typing import TYPE_CHECKING

import gymnasium as _gymnasium
import pettingzoo as _pettingzoo
from pettingzoo.env_registry.registration import aec_registry as _aec_registry

from devyatka_env._package import lazy_attributes as _lazy_attributes
from devyatka_env.bots import Bot, BotError, bot_names, make_bot, register_bot
from devyatka_env.envs import env, parallel_env, raw_env
from devyatka_env.games import Deals, Game, IllegalActionError, Match, Result
from devyatka_env.rules import PRESETS, Card, CardTextError, DealError, Deck, Rules, RulesError
from devyatka_env.solver import solve
from devyatka_env.views import Belief, PlayerView

if TYPE_CHECKING:
    from devyatka_env.evaluation import advise, compare, evaluate
    from devyatka_env.games import BatchGame

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
    "BatchGame",
    "Belief",
    "Bot",
    "BotError",
    "Card",
    "CardTextError",
    "DealError",
    "Deals",
    "Deck",
    "Game",
    "IllegalActionError",
    "Match",
    "PlayerView",
    "Result",
    "Rules",
    "RulesError",
    "advise",
    "bot_names",
    "compare",
    "env",
    "evaluate",
    "make_bot",
    "parallel_env",
    "raw_env",
    "register_bot",
    "solve",
]

__getattr__, __dir__ = _lazy_attributes(
    __name__,
    __all__,
    {
        "BatchGame": "devyatka_env.games.batch",
        "advise": "devyatka_env.evaluation.advice",
        "compare": "devyatka_env.evaluation.arena",
        "evaluate": "devyatka_env.evaluation.arena",
    },
)
