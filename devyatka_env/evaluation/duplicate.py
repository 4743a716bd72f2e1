"""Duplicate deals, played and measured: every deal once with the candidate in each seat, the opponents in the rest.

The luck of the deal falls on every seat alike, so it cancels. A bot's coin flips are a function of deal, seat and
moment (`randomness.decision_word`), so all candidates meet the same luck.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots import BOTS, Bot, BotError, ceilings
from devyatka_env.bots.rollout import play_on
from devyatka_env.bots.scripted import scripted_code
from devyatka_env.engine.seeds import Seed
from devyatka_env.evaluation.stats import Floats, Moments
from devyatka_env.games import Deals
from devyatka_env.rules import Rules

T = TypeVar("T")

# Figures of a candidate that every rule set has, in the order of their columns; the win rate by seat and the share of
# each place follow, n columns each.
FIGURES = (
    "win_rate",
    "mean_place",
    "mean_payoff",
    "mean_cards_left",
    "win_rate_opening",
    "win_rate_not_opening",
)

CEILING = "ceiling"
# Bots whose win rates in the candidate's place are controls.
REFERENCES = ("greedy", "blocker")


def num_columns(num_players: int) -> int:
    """Columns of a candidate."""
    return len(FIGURES) + 2 * num_players


@dataclass(frozen=True)
class Field:
    """Candidates that meet the same opponents on the same deals.

    Attributes:
        candidates: each plays alone against the opponents.
        opponents: the other seats, clockwise from the candidate.
        rules: the rule set.
        seed: seed of the deals and of the bots' coin flips.
        move_seconds: what a move may take; ``None`` for no limit.
        controls: names of what is measured of every deal beside the candidates (`control_names`).
    """

    candidates: tuple[Bot, ...]
    opponents: tuple[Bot, ...]
    rules: Rules
    seed: Seed
    move_seconds: float | None = None
    controls: tuple[str, ...] = ()

    def seating(self, candidate: int) -> list[Bot]:
        """All players of the games of a candidate, clockwise from it."""
        return [self.candidates[candidate], *self.opponents]


@dataclass(frozen=True)
class Failure:
    """Why the games of a candidate ended early.

    Attributes:
        bot: name of the bot that failed: the candidate or an opponent.
        deal: index of the deal.
        message: what happened, with both of them.
    """

    bot: str
    deal: int
    message: str


@dataclass(frozen=True)
class Chunk:
    """What some deals in a row gave.

    Attributes:
        moments: of the columns of all candidates, one after the other, and the controls; failed ones hold nothing.
        failures: by candidate.
        before: by candidate that failed, the moments of its columns over the deals before.
        seconds: of play, by candidate.
    """

    moments: Moments
    failures: dict[int, Failure]
    seconds: tuple[float, ...]
    before: dict[int, Moments]


def play_chunk(field: Field, span: tuple[int, int]) -> Chunk:
    """Play the deals ``span = (first, count)`` with every candidate."""
    first, count = span
    columns = num_columns(field.rules.num_players)
    indices = np.arange(first, first + count)
    rows = np.zeros((count, columns * len(field.candidates)))
    failures, seconds, before = {}, [], {}
    for k in range(len(field.candidates)):
        start = time.perf_counter()
        mine, failure = whole_deals(partial(_rows, field, k), span)
        if failure is None:
            rows[:, k * columns : (k + 1) * columns] = mine
        else:
            failures[k] = failure
            before[k] = Moments(columns) if mine is None else Moments.of(mine)
        seconds.append(time.perf_counter() - start)
    return Chunk(Moments.of(np.hstack([rows, _controls(field, indices)])), failures, tuple(seconds), before)


def _rows(field: Field, k: int, indices: NDArray[np.int64]) -> Floats:
    """The columns of a candidate by deal."""
    return measure(*play_rotations(field.seating(k), field.rules, indices, field.seed, field.move_seconds))


def whole_deals(play: Callable[[NDArray[np.int64]], T], span: tuple[int, int]) -> tuple[T | None, Failure | None]:
    """Play deals; where a bot fails, all whole deals before stand.

    They are played again for it, without the deal that failed: side by side they had all been begun.

    Args:
        play: plays the deals of some indices ``int64 [D]``, or raises `BotError`.
        span: ``(first, count)``.

    Returns:
        What ``play`` made of them, ``None`` for no deal; and what ended them early.
    """
    (first, count), failure = span, None
    while count > 0:
        try:
            return play(np.arange(first, first + count)), failure
        except BotError as error:
            failure = Failure(error.bot, error.deal, str(error))
            count = min(count - 1, error.deal - first)  # a bot with a memory may fail elsewhere this time
    return None, failure


def control_names(field: Field) -> tuple[str, ...]:
    """The controls of a field: what is cheap to know of a deal and goes with how candidates do on it.

    `CEILING` is how often anybody at all could win the deal against these opponents, where that is known exactly and
    fast: against scripted bots without chance. A bot's name is its own win rate in the candidate's place.
    """
    exact = all(scripted_code(bot) >= 0 and bot.deterministic for bot in field.opponents)
    return (*([CEILING] if exact else []), *REFERENCES)


def play_controls(field: Field, span: tuple[int, int]) -> Moments:
    """The controls alone of the deals ``span = (first, count)``."""
    first, count = span
    return Moments.of(_controls(field, np.arange(first, first + count)))


def _controls(field: Field, indices: NDArray[np.int64]) -> Floats:
    columns = [np.empty((len(indices), 0))]
    for name in field.controls:
        if name == CEILING:
            columns.append(ceilings(field.rules, field.opponents, indices, field.seed).wins.mean(1, keepdims=True))
        else:
            games, seats = play_rotations([BOTS[name](), *field.opponents], field.rules, indices, field.seed)
            columns.append(measure(games, seats)[:, :1])
    return np.hstack(columns)


def play_rotations(
    bots: Sequence[Bot],
    rules: Rules,
    indices: NDArray[np.int64],
    seed: Seed,
    move_seconds: float | None = None,
) -> tuple[Deals, NDArray[np.int64]]:
    """Play each deal once with bot 0 in every seat; game ``d * n + k`` has it in seat ``k``.

    Returns:
        The finished games, and the seat of bot 0 in each, ``int64 [D * n]``.

    Raises:
        BotError: a bot failed, was too slow, or chose an illegal action.
    """
    n = rules.num_players
    unique = list(dict.fromkeys(bots))  # one call for all seats that the same bot holds
    numbers = np.array([unique.index(bot) for bot in bots])
    seats = np.tile(np.arange(n), len(indices))
    seating = numbers[(np.arange(n)[None, :] - seats[:, None]) % n]
    games = Deals(rules, np.repeat(indices, n), seed)
    play_on(games, unique, seating, games.all, move_seconds=move_seconds)
    return games, seats


def measure(games: Deals, seats: NDArray[np.int64]) -> Floats:
    """The columns of a candidate by deal, ``float64 [D, 6 + 2n]``, from finished games with it in ``seats [D * n]``."""
    n = games.rules.num_players
    rows = games.all
    places = games.states["places"][:, :n].astype(np.float64)
    mine = places[rows, seats]
    sharing = (places == mine[:, None]).sum(1)
    win = np.where(mine == 1, 1.0 / sharing, 0.0).reshape(-1, n)
    opened = (games.states["opener"] == seats).reshape(-1, n)  # in one rotation of each deal
    # A place shared by two is half the one and half the next.
    held = (np.arange(1, n + 1) >= mine[:, None]) & (np.arange(1, n + 1) < (mine + sharing)[:, None])
    return np.column_stack(
        [
            win.mean(1),
            (mine + (sharing - 1) / 2).reshape(-1, n).mean(1),
            games.payoffs(rows)[rows, seats].reshape(-1, n).mean(1),
            games.states["cards_left"][rows, seats].astype(np.float64).reshape(-1, n).mean(1),
            (win * opened).sum(1),
            (win * ~opened).sum(1) / (n - 1),
            win,
            (held / sharing[:, None]).reshape(-1, n, n).mean(1),
        ]
    )
