"""The bots that come with the package, as rows of a table: for `devyatka bots` and for the README."""

from __future__ import annotations

from typing import NamedTuple

from devyatka_env.bots.parameters import parameters_of
from devyatka_env.bots.registry import BOTS


class BotRow(NamedTuple):
    """A bot in words."""

    name: str
    source: str  # the rule pages whose advice it follows
    sees: str  # "its view", or "all hands": then it cheats, as every report says
    choice: str  # "fixed" by what it sees, or "random"
    summary: str  # the first line of its class, and its parameters with their defaults


HEADING = BotRow("bot", "source", "sees", "choice", "what it does")


def bot_rows() -> list[BotRow]:
    """A row for each of `BOTS`, in its order."""
    rows = []
    for name, bot in BOTS.items():
        summary = str(bot.__doc__).splitlines()[0].removesuffix(".")
        parameters = ", ".join(f"{key}={value}" for key, (_, value) in parameters_of(bot).items())
        rows.append(
            BotRow(
                name,
                bot.source or "-",
                "all hands" if bot.sees_all_hands else "its view",
                "fixed" if bot.deterministic else "random",
                f"{summary} ({parameters})" if parameters else summary,
            )
        )
    return rows
