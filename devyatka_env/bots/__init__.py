"""Bots: what plays a seat. `make_bot` accepts them in every form that the project takes.

- `Bot`: the class of them all: `act`, and for many games at once `act_batch`.
- `ActFunction`: a function that may stand for one.
- `CallableBot`: such a function as a bot.
- `BotSpec`: what `make_bot` takes.
- `make_bot`: a bot from a name, a checkpoint, ``module:name``, a function, or a bot.
- `make_opponents`: the bots of several seats.
- `register_bot`: a name for a bot of one's own.
- `bot_names`: the names there are.
- `BOTS`: the bots that come with the package.
- `BotError`: a bot that failed or chose an illegal action.
- `ScriptedBot`: a bot that is a compiled rule.
- `RandomBot`: `random`.
- `GreedyBot`: `greedy`.
- `BlockerBot`: `blocker`.
- `RunnerBot`: `runner`.
- `ClosedBot`: `closed`.
- `PassWatcherBot`: `pass_watcher`.
- `PimcBot`: `pimc`.
- `ReaderBot`: `reader`.
- `OracleBot`: `oracle`, which sees all hands.
- `CardEstimate`: what a search finds about a card.
- `PolicyBot`: a checkpoint's network.
- `CheckpointError`: a checkpoint that cannot be read.
- `ceiling`: the most that a seat can get against given bots on a deal.
- `Ceiling`: that, with the play that gets it.
- `ceilings`: the same of many deals.
- `Ceilings`: that, in arrays.
"""

from devyatka_env.bots.base import ActFunction, Bot, CallableBot
from devyatka_env.bots.ceiling_values import Ceiling, Ceilings, ceiling, ceilings
from devyatka_env.bots.checkpoint import CheckpointError
from devyatka_env.bots.policy import PolicyBot
from devyatka_env.bots.registry import BOTS, BotSpec, bot_names, make_bot, make_opponents, register_bot
from devyatka_env.bots.rollout import BotError
from devyatka_env.bots.scripted import (
    BlockerBot,
    ClosedBot,
    GreedyBot,
    PassWatcherBot,
    RandomBot,
    RunnerBot,
    ScriptedBot,
)
from devyatka_env.bots.search import CardEstimate, OracleBot, PimcBot, ReaderBot

__all__ = [
    "BOTS",
    "ActFunction",
    "BlockerBot",
    "Bot",
    "BotError",
    "BotSpec",
    "CallableBot",
    "CardEstimate",
    "Ceiling",
    "Ceilings",
    "CheckpointError",
    "ClosedBot",
    "GreedyBot",
    "OracleBot",
    "PassWatcherBot",
    "PimcBot",
    "PolicyBot",
    "RandomBot",
    "ReaderBot",
    "RunnerBot",
    "ScriptedBot",
    "bot_names",
    "ceiling",
    "ceilings",
    "make_bot",
    "make_opponents",
    "register_bot",
]
