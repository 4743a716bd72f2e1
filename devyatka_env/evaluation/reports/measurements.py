"""All that is measured for a report on one bot, checkpoint or training run, in steps that Ctrl-C may end."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from devyatka_env.bots import BotError, make_bot, make_opponents
from devyatka_env.bots.best_response import must_be_asked
from devyatka_env.evaluation.against_ceiling import Standing, standing
from devyatka_env.evaluation.arena import Comparison, Evaluation, check_deals, compare, make_field
from devyatka_env.evaluation.duplicate import CEILING, control_names
from devyatka_env.evaluation.exact_regret import Regret, regret, two_seats
from devyatka_env.evaluation.reports.reported_agent import ReportedAgent
from devyatka_env.evaluation.stats import Estimate
from devyatka_env.evaluation.streaming import Measured, WinRate
from devyatka_env.evaluation.workers import Workers
from devyatka_env.rules import Rules
from devyatka_env.rules.numbers import check_seed

# Deals over which the means of the controls are measured, to one that is played: at two seats four halve the interval,
# and with more seats the time is better spent on deals.
CONTROL_DEALS = 4
# Of the deals one in so many is also held against exact values, and one in so many, but these at least, played against
# perfect play: that takes longer, and says more by deal.
EXACT_SHARE, PERFECT_SHARE, PERFECT_LEAST = 4, 40, 100
# What only rounding made: sums of fractions that are equal on paper.
_ROUNDING = 1e-9
# Who sits in the candidate's place for comparison.
REFERENCE = "greedy"

# Called with the number of the step, their number, and what it does: now and then.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Duel:
    """The bot against one field under one rule set.

    Attributes:
        field: who takes all other seats.
        comparison: of the bot, and of `REFERENCE` in its place where that says something.
        standing: where the bot stands between chance and the ceiling on these deals, where that is known.
    """

    field: str
    comparison: Comparison
    standing: Standing | None

    @property
    def own(self) -> Evaluation:
        """The bot's own figures."""
        return self.comparison.evaluations[0]

    @property
    def rules(self) -> Rules:
        """The rule set."""
        return self.own.rules

    @property
    def chance(self) -> float:
        """What equal players win."""
        return 1 / self.rules.num_players

    @property
    def ceiling(self) -> Estimate | None:
        """The most that anybody could have won, where it is known."""
        return self.standing.ceiling if self.standing and self.standing.ceiling.count else None

    @property
    def gain(self) -> Estimate | None:
        """The part of the way from chance to the ceiling, where there is one."""
        room = self.ceiling.mean - self.chance if self.ceiling else 0.0
        return self.standing.share if self.standing and room > _ROUNDING else None

    @property
    def adjusted(self) -> Estimate | None:
        """The win rate freed of luck, where that was measured and deals differ at all."""
        differ = self.own.win_rate.half_width > _ROUNDING
        return self.own.adjusted.mean if self.own.adjusted and differ else None

    @property
    def win_rate(self) -> Estimate:
        """The win rate, freed of luck where that is known: the figure that verdicts go by."""
        return self.adjusted or self.own.win_rate

    @property
    def p_value(self) -> float:
        """Two-sided, that the win rate is chance."""
        gap = self.win_rate.mean - self.chance
        if abs(gap) < _ROUNDING:
            return 1.0
        low, high = self.win_rate.low - self.chance, self.win_rate.high - self.chance
        return dataclasses.replace(self.win_rate, mean=gap, low=low, high=high).p_value


@dataclass(frozen=True)
class Exact:
    """The bot at two seats, by exact values.

    Attributes:
        regret: what it gives away against itself.
        rules: the rule set.
        against_oracle: how it does against perfect play; ``None`` where nothing was played.
        best_response: how it does against the exact best response to it; ``None`` where that was not searched, as for
            networks, which takes minutes (`devyatka exact` does).
    """

    rules: Rules
    regret: Regret
    against_oracle: WinRate | None = None
    best_response: WinRate | None = None


@dataclass(frozen=True)
class Measurements:
    """What was measured.

    Attributes:
        subject: of whom.
        tables: the rule sets asked for.
        fields: the fields asked for.
        deals: deals asked for of each duel.
        seed: their seed.
        duels: what was played, by field and rule set, in their order.
        exact: the bot at two seats, by rule set, as far as that is solved.
        notes: failures, and what could not be measured.
        failed: whether a bot failed.
        interrupted: whether Ctrl-C ended it early.
        time: when it was finished, ISO 8601, UTC.
    """

    subject: ReportedAgent
    tables: tuple[Rules, ...]
    fields: tuple[str, ...]
    deals: int
    seed: int
    duels: tuple[Duel, ...]
    exact: tuple[Exact, ...]
    notes: tuple[str, ...]
    failed: bool
    interrupted: bool
    time: str

    def of_field(self, field: str) -> list[Duel]:
        """The duels against one field in which something was played."""
        return [one for one in self.duels if one.field == field and one.own.deals]


def measure_agent(
    subject: ReportedAgent,
    tables: Sequence[Rules],
    fields: Sequence[str],
    deals: int,
    seed: int = 0,
    progress: Progress | None = None,
    *,
    workers: Workers | None = None,
    move_seconds: float | None = None,
) -> Measurements:
    """Measure a bot. Ctrl-C ends it with what was measured so far; so does, for its own duels, a bot that fails.

    Args:
        subject: whom.
        tables: under which rule sets.
        fields: against which bots; each takes all other seats.
        deals: duplicate deals of each field and rule set; the exact values take `EXACT_SHARE` of them.
        seed: seed of the deals.
        progress: called now and then.
        workers: who plays; by default this process.
        move_seconds: a bot that takes longer for a move has failed; ``None`` for no limit.

    Raises:
        ValueError: a wrong number of deals, no field, or a bot that does not play the rules.
    """
    check_deals(deals)
    if not fields:
        raise ValueError("no field given: name a bot to play against")
    for field in fields:
        for rules in tables:
            for bot in (subject.bot, *make_opponents(field, rules.num_players - 1)):
                bot.check_rules(rules)
    painter = _Measurer(
        subject, tuple(tables), tuple(fields), deals, check_seed(seed), workers or Workers(), move_seconds
    )
    return painter.measure_agent(progress)


class _Measurer:
    """Measures step by step and keeps what it has."""

    def __init__(
        self,
        subject: ReportedAgent,
        tables: tuple[Rules, ...],
        fields: tuple[str, ...],
        deals: int,
        seed: int,
        workers: Workers,
        move_seconds: float | None,
    ) -> None:
        self._subject, self._tables, self._fields, self._deals, self._seed = subject, tables, fields, deals, seed
        self._who: dict[str, Any] = {"workers": workers, "move_seconds": move_seconds}
        self._duels: list[Duel] = []
        self._exact: list[Exact] = []
        self._notes: list[str] = []
        self._failed = self._interrupted = False
        self._say: Callable[[str], None] = lambda _: None

    def measure_agent(self, progress: Progress | None) -> Measurements:
        """Take all steps, or those before Ctrl-C."""
        duels = [(self._duel, rules, field) for field in self._fields for rules in self._tables]
        exact = [(self._hold, rules, "") for rules in self._tables if rules.num_players == 2]
        steps = [*duels[: len(self._tables)], *exact, *duels[len(self._tables) :]]  # what matters most comes first
        for number, (step, rules, field) in enumerate(steps, 1):
            if progress:
                self._say = lambda text, number=number: progress(number, len(steps), text)  # type: ignore[misc]
            try:
                step(rules, field)
            except KeyboardInterrupt:
                self._interrupted = True
            if self._interrupted:
                break
        return Measurements(
            subject=self._subject,
            tables=self._tables,
            fields=self._fields,
            deals=self._deals,
            seed=self._seed,
            duels=tuple(sorted(self._duels, key=lambda one: self._fields.index(one.field))),
            exact=tuple(self._exact),
            notes=tuple(self._notes),
            failed=self._failed,
            interrupted=self._interrupted,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _duel(self, rules: Rules, field: str) -> None:
        """Play against a field."""
        bot, where = self._subject.bot, f"against {field}, {rules}"
        self._say(where)
        candidates = [bot] if REFERENCE in (field, bot.name) else [bot, make_bot(REFERENCE)]
        comparison = compare(
            candidates,
            field,
            rules,
            self._deals,
            self._seed,
            lambda played, rate: self._say(f"{where}: {played:,} of {self._deals:,} deals, win rate {rate}"),
            adjust=CONTROL_DEALS,
            **self._who,
        )
        duel = Duel(field, comparison, None)
        self._duels.append(duel)
        self._interrupted = duel.own.interrupted
        if duel.own.failure:
            self._fail(f"{where}: ended after {duel.own.deals:,} deals: {duel.own.failure.message}")
        elif not self._interrupted and CEILING in control_names(make_field([bot], field, rules, self._seed)):
            found = standing(bot, field, rules, self._deals, self._seed, self._follow(f"ceiling {where}"), **self._who)
            self._duels[-1] = dataclasses.replace(duel, standing=found)
            self._interrupted = found.interrupted

    def _hold(self, rules: Rules, _: str) -> None:
        """Hold the bot's two-seat decisions against the exact values, and play it against perfect play."""
        bot, where = self._subject.bot, f"exact values, {rules}"
        if any(one.own.failure for one in self._duels if one.rules == rules):
            return  # it would fail again, or take for ever
        self._say(where)
        try:
            given_away = regret(bot, rules, -(-self._deals // EXACT_SHARE), self._seed)
        except BotError as error:
            self._fail(f"{where}: {error}")
            return
        except ValueError as error:  # rules that are not solved
            self._notes.append(f"no exact values for {rules}: {error}")
            return
        self._exact.append(Exact(rules, given_away))
        self._interrupted = given_away.match.interrupted
        if not self._interrupted:
            self._exact[-1] = self._perfect(Exact(rules, given_away), f"perfect play, {rules}")

    def _perfect(self, exact: Exact, where: str) -> Exact:
        """Add how it does against perfect play; and against the best response to it, unless that takes minutes."""
        bot, follow = self._subject.bot, self._follow(where)
        deals = min(self._deals, max(PERFECT_LEAST, self._deals // PERFECT_SHARE))
        if must_be_asked([bot]):
            played = standing(bot, "oracle", exact.rules, deals, self._seed, follow, **self._who)
            measured = {one.name: getattr(played, one.name) for one in dataclasses.fields(Measured)}
            exact = dataclasses.replace(exact, against_oracle=WinRate(**measured, win_rate=played.win_rate))
        else:
            found = two_seats(bot, exact.rules, deals, self._seed, follow, **self._who)
            exact = dataclasses.replace(exact, against_oracle=found.against_oracle, best_response=found.best_response)
        for part in (exact.against_oracle, exact.best_response):
            if part and part.failure:
                self._fail(f"{where}: ended after {part.deals:,} deals: {part.failure.message}")
            self._interrupted |= bool(part and part.interrupted)
        return exact

    def _follow(self, where: str) -> Callable[[str, int, int], None]:
        return lambda _, done, deals: self._say(f"{where}: {done:,} of {deals:,} deals")

    def _fail(self, note: str) -> None:
        self._notes.append(note)
        self._failed = True
