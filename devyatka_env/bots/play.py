"""Bots at the table: one turn of many games, each bot asked once for all games in which it is on turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from devyatka_env.batch import BatchGame
from devyatka_env.bots.base import Bot


class BotError(RuntimeError):
    """A bot failed or chose an illegal action; the message names the bot and the deal."""


def ask_bots(games: BatchGame, bots: Sequence[Bot], players: NDArray[np.int64], which: NDArray[np.int64]) -> None:
    """Let the seat on turn act once in each of the games ``which``.

    Args:
        games: the batch.
        bots: the players.
        players: ``int64 [K]``, for each of the games the number in ``bots`` of the player on turn.
        which: ``int64 [K]``, running games.

    Raises:
        BotError: a bot failed or chose an illegal action; its games are unchanged.
    """
    for player in np.unique(players):
        _ask(games, bots[player], which[players == player])


def play_out(games: BatchGame, bots: Sequence[Bot], seating: NDArray[np.int64]) -> None:
    """Play every game of a batch to its end; turns with one legal action are played without asking.

    Args:
        games: the batch.
        bots: the players.
        seating: ``int64 [B, n]``, for each game and seat a number in ``bots``.

    Raises:
        BotError: a bot failed or chose an illegal action.
    """
    active = games.all
    while True:
        games.play_forced(active)
        active = active[games.turns[active] >= 0]
        if not len(active):
            return
        ask_bots(games, bots, seating[active, games.turns[active]], active)


def _ask(games: BatchGame, bot: Bot, which: NDArray[np.int64]) -> None:
    views = games.states[which] if bot.sees_all_hands else games.views(which)
    try:
        games.step(which, bot.act_batch(views, games.rules, games.decision_words(which)))
    except Exception as error:
        deals = f"deal {int(games.indices[which[0]])}" + (f" and {len(which) - 1} more" if len(which) > 1 else "")
        raise BotError(f"bot {bot.name} failed ({deals} of seed {games.seed}): {error}") from error
