"""Bots at the table: many games advanced by their players.

Scripted seats are played in compiled code; every other bot is asked once a round for all games in which it is on turn.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots.base import Bot
from devyatka_env.bots.scripted import DRAWS, scripted_choice, scripted_code
from devyatka_env.engine import STATE_DTYPE, States, rules_record
from devyatka_env.engine.bitboards import lowest
from devyatka_env.engine.calls import legal_actions
from devyatka_env.engine.compiling import kernel
from devyatka_env.engine.knowledge import blank
from devyatka_env.engine.randomness import Key, decision_word
from devyatka_env.engine.turn import step
from devyatka_env.games import Deals
from devyatka_env.rules import Rules

# A seat whose actions come from outside: a learner.
OUTSIDE = -1

Index = NDArray[np.int64]


class BotError(RuntimeError):
    """A bot failed, was too slow, or chose an illegal action; the message names the bot and the deal.

    Attributes:
        bot: its name.
        deal: index of the deal.
    """

    def __init__(self, message: str, bot: str = "", deal: int = -1) -> None:
        super().__init__(message)
        self.bot = bot
        self.deal = deal


@kernel
def _play_scripted(
    states: States,
    which: Index,
    rules: States,
    seating: Index,
    codes: Index,
    key: Key,
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
                action = np.int64(lowest(s.legal) if s.legal else r.num_cards)
            elif player == OUTSIDE or codes[player] < 0:
                break
            else:
                blank(s, seat, views[0])
                word = np.uint64(0)
                if codes[player] == DRAWS:  # making words costs more than the others take to choose
                    word = decision_word(key, indices[i], seat, np.int64(s.num_played))
                action = np.int64(scripted_choice(codes[player], views[0], r, word))
            step(s, r, action)


def play_on(
    games: Deals,
    bots: Sequence[Bot],
    seating: Index,
    which: Index,
    *,
    skip_forced: bool = True,
    move_seconds: float | None = None,
) -> None:
    """Play games on until a seat from outside is on turn, or the deal is over.

    Turns with one legal action are played without asking.

    Args:
        games: the deals.
        bots: the players.
        seating: ``int64 [B, n]``, for each game and seat a number in ``bots``, or `OUTSIDE`.
        which: ``int64 [K]``, the games.
        skip_forced: whether turns with one legal action are played for the outside seats, too.
        move_seconds: what a move may take; ``None`` for no limit.

    Raises:
        BotError: a bot failed, was too slow, or chose an illegal action; its games stand where it was asked.
    """
    codes = np.array([scripted_code(bot) for bot in bots], np.int64)
    rules = rules_record(games.rules)
    active = which
    while True:
        _play_scripted(games.states, active, rules, seating, codes, games.word_key, games.indices, skip_forced)
        active = active[games.turns[active] >= 0]
        players = seating[active, games.turns[active]]
        active, players = active[players != OUTSIDE], players[players != OUTSIDE]
        if not len(active):
            return
        ask_bots(games, bots, players, active, move_seconds)


def ask_bots(
    games: Deals, bots: Sequence[Bot], players: Index, which: Index, move_seconds: float | None = None
) -> None:
    """Let the seat on turn act once in each of the games ``which``.

    Args:
        games: the deals.
        bots: the players.
        players: ``int64 [K]``, for each of the games the number in ``bots`` of the player on turn.
        which: ``int64 [K]``, running games.
        move_seconds: what a move may take; ``None`` for no limit.

    Raises:
        BotError: a bot failed, was too slow, or chose an illegal action; its games are unchanged.
    """
    for player in np.unique(players):
        _ask(games, bots[player], which[players == player], move_seconds)


def _ask(games: Deals, bot: Bot, which: Index, move_seconds: float | None) -> None:
    """Let one bot act in the games ``which``: in one call, or game by game if it does so itself and time is kept."""
    views = games.states[which] if bot.sees_all_hands else games.views(which)
    words = games.decision_words(which)
    alone = move_seconds is not None and type(bot).act_batch is Bot.act_batch
    parts = [slice(k, k + 1) for k in range(len(which))] if alone else [slice(None)]
    answers = []
    for part in parts:
        start = time.perf_counter()
        try:
            answers.append(bot.act_batch(views[part], games.rules, words[part]))
        except (Exception, SystemExit) as error:
            raise _failure(
                games, bot, which[part][_failing(bot, views[part], games.rules, words[part])], error
            ) from error
        seconds = (time.perf_counter() - start) / len(which[part])
        if move_seconds is not None and seconds > move_seconds:
            slow = f"a move took {seconds:.3g} s, the limit is {move_seconds:g} s"
            raise _failure(games, bot, which[part][0], slow)
    try:
        actions = np.concatenate(answers)
        games.step(which, actions)
    except Exception as error:
        raise _failure(games, bot, which[_illegal(games, which, answers)], error) from error


def _failing(bot: Bot, views: States, rules: Rules, words: NDArray[np.uint64]) -> int:
    """The first of some views that the bot fails on when asked alone; 0 if it fails on none."""
    for k in range(len(views) if len(views) > 1 else 0):
        try:
            bot.act_batch(views[k : k + 1], rules, words[k : k + 1])
        except (Exception, SystemExit):
            return k
    return 0


def _illegal(games: Deals, which: Index, answers: Sequence[object]) -> int:
    """The first of some games whose answer is no legal action; 0 when there is not one answer a game."""
    actions = np.concatenate([np.ravel(np.asarray(answer)) for answer in answers])
    for k, action in enumerate(actions.tolist() if len(actions) == len(which) else []):
        if action not in legal_actions(games.states[which[k]], games.rules):
            return k
    return 0


def _failure(games: Deals, bot: Bot, game: np.int64, why: object) -> BotError:
    deal = int(games.indices[game])
    return BotError(f"bot {bot.name} failed (deal {deal} of seed {games.seed}): {why}", bot.name, deal)
