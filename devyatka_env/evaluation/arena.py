"""The arena: candidates over duplicate deals, on one process or many, to a number of deals or to a precision.

Results are streamed: only sums are kept (`stats.Moments`), so ten million deals take the memory of ten thousand. Chunks
of deals are added in their order whoever played them, so the figures do not depend on the number of workers.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from devyatka_env.bots import BotError, BotSpec, make_bot, make_opponents
from devyatka_env.engine.seeds import Seed, check_source
from devyatka_env.evaluation.duplicate import (
    FIGURES,
    Chunk,
    Failure,
    Field,
    control_names,
    num_columns,
    play_chunk,
    play_controls,
)
from devyatka_env.evaluation.stats import Adjusted, Estimate, Moments, adjust_mean, holm
from devyatka_env.evaluation.workers import WorkerError, Workers
from devyatka_env.rules import Rules

# Games in flight at once: enough for batched networks, few enough that records and observations stay in cache.
GAMES_AT_ONCE = 4096
# The first chunks are small, so that slow bots have something to show soon; each is four times the one before.
FIRST_DEALS = 16
# Before so many deals an interval is too rough to stop by.
MIN_DEALS_TO_STOP = 1000
# What a move may take, by default: far more than any search here, far less than a night.
MOVE_SECONDS = 5.0

Progress = Callable[[int, Estimate], None]


@dataclass(frozen=True)
class Evaluation:
    """How a candidate did over duplicate deals.

    Attributes:
        candidate: its name.
        against: names of the opponents, clockwise from the candidate.
        rules: the rule set.
        seed: seed of the deals.
        deals: deals played, 0 to ``deals - 1``, each `rules.num_players` times.
        seconds: of play, those of several workers added up.
        win_rate: share of first places, a shared one divided.
        mean_place: mean place, a shared one counted as the mean of the places it spans.
        mean_payoff: mean payoff of the rules.
        mean_cards_left: mean cards left in hand.
        win_rate_by_seat: the win rate in each seat.
        win_rate_opening: the win rate in games that the candidate opened.
        win_rate_not_opening: the win rate in the others.
        place_rates: share of each place, a shared one divided.
        interrupted: whether it was stopped before all deals were played.
        cheats: names of players that were shown all hands.
        failure: the failure that ended it early, if one did.
        adjusted: the win rate freed of the luck that is known of the deals, if that was asked for.
    """

    candidate: str
    against: tuple[str, ...]
    rules: Rules
    seed: Seed
    deals: int
    seconds: float
    win_rate: Estimate
    mean_place: Estimate
    mean_payoff: Estimate
    mean_cards_left: Estimate
    win_rate_by_seat: tuple[Estimate, ...]
    win_rate_opening: Estimate
    win_rate_not_opening: Estimate
    place_rates: tuple[Estimate, ...]
    interrupted: bool
    cheats: tuple[str, ...]
    failure: Failure | None = None
    adjusted: Adjusted | None = None

    @property
    def games(self) -> int:
        """Games played."""
        return self.deals * self.rules.num_players


@dataclass(frozen=True)
class Difference:
    """One candidate less another, deal by deal on the same deals.

    Attributes:
        candidate: the one.
        reference: the other.
        win_rate: difference of their win rates.
        mean_payoff: difference of their mean payoffs.
        p_value: two-sided, that the win rates are equal.
        p_adjusted: the same, adjusted for the number of differences looked at (`stats.holm`).
    """

    candidate: str
    reference: str
    win_rate: Estimate
    mean_payoff: Estimate
    p_value: float
    p_adjusted: float


@dataclass(frozen=True)
class Comparison:
    """How candidates did on the same deals against the same opponents.

    Attributes:
        evaluations: by candidate, in the order given.
        differences: the first less each of the others, as far as both played every deal.
        seconds: wall time.
    """

    evaluations: tuple[Evaluation, ...]
    differences: tuple[Difference, ...]
    seconds: float


def evaluate(
    candidate: BotSpec,
    opponents: BotSpec | Sequence[BotSpec],
    rules: Rules | str,
    deals: int,
    seed: Seed = 0,
    progress: Progress | None = None,
    *,
    workers: Workers | None = None,
) -> Evaluation:
    """Play ``deals`` duplicate deals. Ctrl-C stops it early with the result of the deals played so far.

    Args:
        candidate: the bot in question (as `make_bot` takes it).
        opponents: the other seats: one bot for all, or one each, clockwise from the candidate.
        rules: the rule set (as `Rules.of` takes it). Of a match every deal is counted by itself.
        deals: number of deals, each played ``rules.num_players`` times.
        seed: seed of the deals and of the bots' coin flips.
        progress: called with the deals played and the win rate so far, now and then.
        workers: who plays; by default this process.

    Raises:
        ValueError: a wrong number of opponents or deals, or a bot that does not play these rules.
        BotError: a bot failed or chose an illegal action. `compare` keeps what was played until then.
    """
    result = compare([candidate], opponents, rules, deals, seed, progress, workers=workers, move_seconds=None)
    (evaluation,) = result.evaluations
    failure = evaluation.failure
    if failure is not None:
        raise BotError(failure.message, failure.bot, failure.deal)
    return evaluation


def compare(
    candidates: Sequence[BotSpec],
    opponents: BotSpec | Sequence[BotSpec],
    rules: Rules | str,
    deals: int,
    seed: Seed = 0,
    progress: Progress | None = None,
    *,
    workers: Workers | None = None,
    until_ci: float | None = None,
    move_seconds: float | None = MOVE_SECONDS,
    adjust: int = 0,
) -> Comparison:
    """Play the same duplicate deals with each candidate. Ctrl-C stops it early with the deals played so far.

    A bot that fails ends the games of its candidate, whose evaluation says so; the others play on.

    Args:
        candidates: the bots in question (as `make_bot` takes them); the first is compared with each of the others.
        opponents: the other seats: one bot for all, or one each, clockwise from the candidate.
        rules: the rule set (as `Rules.of` takes it). Of a match every deal is counted by itself.
        deals: number of deals, each played ``rules.num_players`` times with each candidate.
        seed: seed of the deals and of the bots' coin flips.
        progress: called with the deals played and the first candidate's win rate so far, now and then.
        workers: who plays; by default this process.
        until_ci: stop before ``deals`` when half the 95 % interval of the first candidate's win rate is at most this.
        move_seconds: a bot that takes longer for a move has failed; ``None`` for no limit.
        adjust: also adjust the win rates for what `control_names` know of the deals, whose means are measured over this
            many times as many deals; 0 for no adjustment.

    Raises:
        ValueError: no candidate, a wrong number of opponents or deals, or a bot that does not play these rules.
        WorkerError: a bot cannot be sent to other processes.
    """
    field = make_field(candidates, opponents, rules, seed, move_seconds)
    if adjust:
        field = dataclasses.replace(field, controls=control_names(field))
    check_deals(deals)
    _check_wishes(until_ci, adjust)
    tally = Tally(field)
    start = time.perf_counter()
    interrupted = False
    workers = workers or Workers()
    chunks = play_chunks(field, deals, workers)
    try:
        for chunk in chunks:
            tally.add(chunk)
            if not tally.playing:
                break
            estimate = tally.first_win_rate()
            if progress:
                progress(tally.joint.count, estimate)
            if until_ci and tally.joint.count >= MIN_DEALS_TO_STOP and estimate.half_width <= until_ci:
                break
        played = tally.joint.count
        for more in workers.map(play_controls, field, spans(adjust * played, field.rules.num_players, played)):
            tally.controls.add(more)
    except KeyboardInterrupt:
        if not tally.joint.count:
            raise
        interrupted = True
    except WorkerError as error:
        if not tally.joint.count:
            raise
        tally.fail_all(str(error))
    finally:
        chunks.close()
    return tally.result(time.perf_counter() - start, interrupted)


def make_field(
    candidates: Sequence[BotSpec],
    opponents: BotSpec | Sequence[BotSpec],
    rules: Rules | str,
    seed: Seed,
    move_seconds: float | None = None,
) -> Field:
    """A field of bots that play these rules.

    Raises:
        ValueError: no candidate, a wrong number of opponents, or a bot that does not play these rules.
    """
    rules = Rules.of(rules)
    if not candidates:
        raise ValueError("no candidate given")
    players = tuple(make_bot(one) for one in candidates), tuple(make_opponents(opponents, rules.num_players - 1))
    for bot in (*players[0], *players[1]):
        bot.check_rules(rules)
    return Field(*players, rules, check_source(seed), move_seconds)


def _check_wishes(until_ci: float | None, adjust: int) -> None:
    if not isinstance(adjust, int) or adjust < 0:
        raise ValueError(f"adjust must be a whole number from 0, not {adjust!r}")
    if until_ci is not None and not until_ci > 0:
        raise ValueError(f"until_ci must be above 0, not {until_ci}")


def check_deals(deals: int) -> None:
    """Refuse a number of deals that is none.

    Raises:
        ValueError: not a whole number from 1.
    """
    if not isinstance(deals, int | np.integer):
        raise ValueError(f"deals must be a whole number, not {deals!r}")
    if deals < 1:
        raise ValueError(f"deals must be at least 1, not {deals}")


def spans(deals: int, num_players: int, first: int = 0) -> Iterator[tuple[int, int]]:
    """The chunks ``(first, count)`` in which deals up to ``deals`` are played."""
    size, most = FIRST_DEALS, max(1, GAMES_AT_ONCE // num_players)
    while first < deals:
        count = min(size, most, deals - first)
        yield first, count
        first, size = first + count, 4 * size


def play_chunks(field: Field, deals: int, workers: Workers, first: int = 0) -> Generator[Chunk]:
    """Play deals ``first`` to ``deals - 1``, chunk by chunk, in their order."""
    return workers.map(play_chunk, field, spans(deals, field.rules.num_players, first))


class Tally:
    """The sums of a field's chunks.

    Attributes:
        field: who plays.
        joint: the columns of all candidates that are still playing, then the controls.
        playing: their numbers.
        controls: the controls, also of deals beyond those of ``joint``.
    """

    def __init__(self, field: Field) -> None:
        self.field = field
        self._columns = num_columns(field.rules.num_players)
        self.playing = list(range(len(field.candidates)))
        self.joint = Moments(self._columns * len(self.playing) + len(field.controls))
        self.controls = Moments(len(field.controls))
        self._ended: dict[int, tuple[Moments, Failure]] = {}
        self._seconds = [0.0] * len(self.playing)

    def add(self, chunk: Chunk) -> None:
        """Take in the next chunk; a candidate that failed in it ends with the whole deals before."""
        for k in [k for k in self.playing if k in chunk.failures]:
            self._end(k, chunk.failures[k], chunk.before[k])
        for k in self.playing:
            self._seconds[k] += chunk.seconds[k]
        controls = range(self._columns * len(self.field.candidates), len(chunk.moments.means))
        columns = [k * self._columns + c for k in self.playing for c in range(self._columns)]
        self.joint.add(chunk.moments.columns([*columns, *controls]))
        self.controls.add(chunk.moments.columns(controls))

    def fail_all(self, message: str) -> None:
        """End every candidate: nobody knows whose fault it was."""
        for k in list(self.playing):
            self._end(k, Failure("", self.joint.count, message))

    def _end(self, k: int, failure: Failure, before: Moments | None = None) -> None:
        moments = self._of(k)
        if before is not None:
            moments.add(before)
        self._ended[k] = moments, failure
        gone = self._span(k)
        self.joint = self.joint.columns([c for c in range(len(self.joint.means)) if c not in gone])
        self.playing.remove(k)

    def _span(self, k: int) -> range:
        """The columns of a candidate that is playing."""
        first = self.playing.index(k) * self._columns
        return range(first, first + self._columns)

    def _of(self, k: int) -> Moments:
        return self.joint.columns(self._span(k))

    def first_win_rate(self) -> Estimate:
        """The win rate so far of the first candidate that is still playing."""
        return self.joint.column(0)

    def result(self, seconds: float, interrupted: bool) -> Comparison:
        """What all deals taken in so far say."""
        evaluations = tuple(self._evaluation(k, interrupted) for k in range(len(self.field.candidates)))
        return Comparison(evaluations, self._differences(), seconds)

    def _evaluation(self, k: int, interrupted: bool) -> Evaluation:
        field, n = self.field, self.field.rules.num_players
        moments, failure = self._ended[k] if k in self._ended else (self._of(k), None)
        estimates = [moments.column(c) for c in range(self._columns)]
        figures = dict(zip(FIGURES, estimates, strict=False))
        players = field.seating(k)
        return Evaluation(
            candidate=players[0].name,
            against=tuple(bot.name for bot in players[1:]),
            rules=field.rules,
            seed=field.seed,
            deals=moments.count,
            seconds=self._seconds[k],
            **figures,
            win_rate_by_seat=tuple(estimates[len(FIGURES) : len(FIGURES) + n]),
            place_rates=tuple(estimates[len(FIGURES) + n :]),
            interrupted=interrupted,
            cheats=tuple(sorted({bot.name for bot in players if bot.sees_all_hands})),
            failure=failure,
            adjusted=self._adjusted(k) if field.controls and k in self.playing else None,
        )

    def _adjusted(self, k: int) -> Adjusted:
        controls = range(len(self.joint.means) - len(self.field.controls), len(self.joint.means))
        return adjust_mean(self.joint.columns([self._span(k)[0], *controls]), self.controls)

    def _differences(self) -> tuple[Difference, ...]:
        if 0 not in self.playing or not self.joint.count:
            return ()
        found = []
        for k in self.playing[1:]:
            weights = np.zeros(len(self.joint.means))
            weights[self._span(0)[0]], weights[self._span(k)[0]] = 1, -1
            payoff = FIGURES.index("mean_payoff")
            found.append((k, self.joint.estimate(weights), self.joint.estimate(np.roll(weights, payoff))))
        adjusted = holm([wins.p_value for _, wins, _ in found])
        names = [bot.name for bot in self.field.candidates]
        return tuple(
            Difference(names[0], names[k], wins, payoff, wins.p_value, p)
            for (k, wins, payoff), p in zip(found, adjusted, strict=True)
        )
