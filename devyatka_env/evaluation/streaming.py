"""Measurements that are streamed: deals in spans, only sums kept, ended early by Ctrl-C or by a bot that fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots import Bot
from devyatka_env.bots.best_response import must_be_asked
from devyatka_env.evaluation.arena import spans
from devyatka_env.evaluation.duplicate import Failure, Field, measure, play_rotations, whole_deals
from devyatka_env.evaluation.stats import Estimate, Moments
from devyatka_env.evaluation.workers import WorkerError, Workers
from devyatka_env.solver import StateLimitError

Index = NDArray[np.int64]
# The sums over some deals, None for no deal; and what ended them early.
Part = tuple[Moments | None, Failure | None]
# Called with what is measured, the deals done and their number, now and then.
Progress = Callable[[str, int, int], None]

# Deals at a time where best responses to bots that must be asked are searched, which may take seconds a deal.
FEW_DEALS = 16


@dataclass(frozen=True)
class Measured:
    """What every measurement says of its deals.

    Attributes:
        deals: deals behind it, 0 to ``deals - 1``.
        seconds: wall time.
        interrupted: whether it was stopped before all deals were done.
        failure: the failure that ended it early, if one did.
    """

    deals: int
    seconds: float
    interrupted: bool
    failure: Failure | None


@dataclass(frozen=True)
class WinRate(Measured):
    """A bot's share of first places over duplicate deals, a shared one divided.

    Attributes:
        win_rate: the share; NaN where it is not known.
        unknown: why it is not known; "" where it is.
    """

    win_rate: Estimate
    unknown: str = ""


def stream(
    function: Callable[[Field, tuple[int, int]], Part],
    game: Field,
    tasks: Iterable[tuple[int, int]],
    columns: int,
    workers: Workers,
    progress: Callable[[int], None] | None,
) -> tuple[Moments, Measured]:
    """Add up what a function says of spans of deals, until they end, something fails, or Ctrl-C."""
    sums, failure, interrupted, start = Moments(columns), None, False, time.perf_counter()
    parts = workers.map(function, game, tasks)
    try:
        for moments, failure in parts:
            if moments is not None:
                sums.add(moments)
            if failure is not None:
                break
            if progress:
                progress(sums.count)
    except KeyboardInterrupt:
        interrupted = True
    except WorkerError as error:
        failure = Failure("", sums.count, str(error))
    finally:
        parts.close()
    return sums, Measured(sums.count, time.perf_counter() - start, interrupted, failure)


def is_whole(part: Measured) -> bool:
    """Whether all its deals were done."""
    return not part.interrupted and part.failure is None


def cause(error: StateLimitError) -> str:
    """What its message says before it comes to what one could do."""
    return str(error).partition(";")[0]


def named(progress: Progress | None, name: str, deals: int) -> Callable[[int], None] | None:
    """A `Progress` as the one of one thing measured."""
    return None if progress is None else lambda done: progress(name, done, deals)


def search_spans(deals: int, num_players: int, searched: Sequence[Bot]) -> Iterator[tuple[int, int]]:
    """Spans of deals in which best responses to some bots are searched."""
    if not must_be_asked(searched):
        return spans(deals, num_players)
    return ((first, min(FEW_DEALS, deals - first)) for first in range(0, deals, FEW_DEALS))


def win_rates(game: Field, span: tuple[int, int]) -> Part:
    """The candidate's win rate by deal."""

    def play(some: Index) -> Moments:
        games, seats = play_rotations(game.seating(0), game.rules, some, game.seed, game.move_seconds)
        return Moments.of(measure(games, seats)[:, :1])

    return whole_deals(play, span)
