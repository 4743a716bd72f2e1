"""Bots at the table: many games advanced by their players.

Scripted seats are played in compiled code; every other bot is asked once a round for all games in which it is on turn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from devyatka_env import engine
from devyatka_env.bots.base import Bot
from devyatka_env.bots.scripted import scripted_choice, scripted_code
from devyatka_env.deals import Deals
from devyatka_env.records import STATE_DTYPE, States, decision_word, kernel, lowest, rules_record

# A seat whose actions come from outside: a learner.
OUTSIDE = -1

Index = NDArray[np.int64]


class BotError(RuntimeError):
    """A bot failed or chose an illegal action; the message names the bot and the deal."""


@kernel
def _play_scripted(
    states: States,
    which: Index,
    rules: States,
    seating: Index,
    codes: Index,
    seed: np.uint64,
    indices: NDArray[np.uint64],
    skip_forced: bool,
) -> None:
    """Play the games ``which`` on until a seat must be asked that is not scripted, or the deal is over.

    A scripted bot, too, gets a record in which all that its seat cannot know is blanked.
    """
    r = rules[0]
    views = np.empty(1, STATE_DTYPE)
    for i in which:
        s = states[i]
        while s.turn >= 0:
            seat = np.int64(s.turn)
            player = seating[i, seat]
            if s.legal & (s.legal - np.uint64(1)) == np.uint64(0) and (player != OUTSIDE or skip_forced):
                action = lowest(s.legal) if s.legal else np.int64(r.num_cards)
            elif player == OUTSIDE or codes[player] < 0:
                break
            else:
                engine.blank(s, seat, views[0])
                word = decision_word(seed, indices[i], seat, np.int64(s.num_played))
                action = scripted_choice(codes[player], views[0], r, word)
            engine.step(s, r, action)


def play_on(games: Deals, bots: Sequence[Bot], seating: Index, which: Index, *, skip_forced: bool = True) -> None:
    """Play games on until a seat from outside is on turn, or the deal is over.

    Turns with one legal action are played without asking.

    Args:
        games: the deals.
        bots: the players.
        seating: ``int64 [B, n]``, for each game and seat a number in ``bots``, or `OUTSIDE`.
        which: ``int64 [K]``, the games.
        skip_forced: whether turns with one legal action are played for the outside seats, too.

    Raises:
        BotError: a bot failed or chose an illegal action; its games stand where it was asked.
    """
    codes = np.array([scripted_code(bot) for bot in bots], np.int64)
    rules = rules_record(games.rules)
    active = which
    while True:
        _play_scripted(games.states, active, rules, seating, codes, np.uint64(games.seed), games.indices, skip_forced)
        active = active[games.turns[active] >= 0]
        players = seating[active, games.turns[active]]
        active, players = active[players != OUTSIDE], players[players != OUTSIDE]
        if not len(active):
            return
        ask_bots(games, bots, players, active)


def ask_bots(games: Deals, bots: Sequence[Bot], players: Index, which: Index) -> None:
    """Let the seat on turn act once in each of the games ``which``.

    Args:
        games: the deals.
        bots: the players.
        players: ``int64 [K]``, for each of the games the number in ``bots`` of the player on turn.
        which: ``int64 [K]``, running games.

    Raises:
        BotError: a bot failed or chose an illegal action; its games are unchanged.
    """
    for player in np.unique(players):
        _ask(games, bots[player], which[players == player])


def _ask(games: Deals, bot: Bot, which: Index) -> None:
    """Let one bot act in the games ``which``, in one call."""
    views = games.states[which] if bot.sees_all_hands else games.views(which)
    try:
        games.step(which, bot.act_batch(views, games.rules, games.decision_words(which)))
    except Exception as error:
        deals = f"deal {int(games.indices[which[0]])}" + (f" and {len(which) - 1} more" if len(which) > 1 else "")
        raise BotError(f"bot {bot.name} failed ({deals} of seed {games.seed}): {error}") from error
