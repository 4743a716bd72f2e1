"""Questions that tell whether an agent's answers depend on more than its view and the randomness it is given.

Each changes one thing and nothing else: the state of the global generators, the randomness given, the hidden cards, the
other views of a batch, the order of the questions.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from devyatka_env.evaluation.agent_checks.harness import Asker, Moment, chance, generator_of, named, plain_generator
from devyatka_env.rules import Rules

T = TypeVar("T")
Answers = list[int | None]

OK, FAULT, NOTE, SKIPPED = "ok", "fault", "note", "skipped"
REPRODUCIBLE, DETERMINISTIC, HIDDEN = "reproducible", "deterministic", "hidden cards"
BATCH, MEMORY = "batch form", "memory"

# Where statistics must judge, of a thousand honest agents one is wronged.
LEVEL = 0.001
_REPEATS = 12  # answers of each kind at a moment, where statistics judge
_MOMENTS_BY_CHANCE = 60  # and the moments
_FEW = 5  # moments that are looked at even when the agent is slow; fewer tell nothing by statistics
_FEW_HIDDEN = 60  # where the hidden cards are dealt anew, if the agent is not much slower than a search
_SLOW_SECONDS = 0.2  # a move
_BATCH = 16  # views in a batch
_WORDS = 4  # random words with which an agent that says it uses none is asked
# A network's logits depend on the batch in the last digits, so that near ties may flip: not more often than this.
_ROUNDING = 0.01
_CANNOT_BE_TOLD = "cannot be told, because its answers are not reproducible"


@dataclass(frozen=True)
class AgentItem:
    """A verdict.

    Attributes:
        name: what was looked at.
        verdict: ``ok``, ``fault``, ``note`` (worth knowing, no fault) or ``skipped`` (it could not be told).
        detail: why.
        deal: index of the first deal where it was seen; ``None`` for none.
        position: that moment as a position line (`Game.from_position` reads it); "" for none.
    """

    name: str
    verdict: str
    detail: str
    deal: int | None = None
    position: str = ""

    @classmethod
    def at(cls, moment: Moment, name: str, verdict: str, detail: str) -> AgentItem:
        """A verdict with the moment where it was seen."""
        return cls(name, verdict, f"{detail} ({moment})", moment.deal, moment.game().position)


class Prober:
    """Asks an agent again, at moments at which it had a choice.

    Args:
        asker: asks the agent.
        choices: the moments, with its answers in play.
        seconds: after which a part ends.
        others: ways to deal the hidden cards, at each moment.
        rng: the randomness.
    """

    def __init__(
        self,
        asker: Asker,
        choices: Sequence[tuple[Moment, int]],
        seconds: float,
        others: int,
        rng: np.random.Generator,
    ) -> None:
        self._asker = asker
        self._choices = choices
        self._seconds = seconds
        self._others = others
        self._rng = rng
        self._changed: list[tuple[Moment, str]] = []  # answers that were others at another time
        self._is_reproducible = True
        self._draws_itself = False  # not even with the global generators set alike
        # The arena calls `act_batch`, people call `act`: a bot that has its own of both is asked by both.
        self._forms = (True, False) if asker.has_batch else (False,)

    def items(self) -> Iterator[AgentItem]:
        """The verdicts, one by one.

        Raises:
            TooSlowError: a move took too long.
        """
        yield self._ask_again()
        if self._asker.bot.deterministic and self._is_reproducible:
            yield self._vary_words()
        yield self._deal_anew()
        if self._asker.has_batch:
            yield self._ask_in_batches()
        yield self._judge_memory()

    def _some(self, things: Sequence[T], few: int = _FEW) -> Iterator[T]:
        """As many as there is time for, a few in any case."""
        deadline = time.perf_counter() + self._seconds
        for k, thing in enumerate(things):
            if k >= few and time.perf_counter() > deadline:
                return
            yield thing

    # --- the same question again ---

    def _ask_again(self) -> AgentItem:
        """Ask twice with the global generators in other states."""
        differed = compared = 0
        for moment, played in self._some(self._choices):
            for batch in self._forms:
                one, two = (self._asker.ask(moment, batch=batch, state=state) for state in (0, 1))
                if one is None or two is None:
                    continue
                compared += 1
                if batch == self._forms[0] and one == two:
                    self._compare(moment, played, one)
                if one == two:
                    continue
                differed += 1
                what = f"of the same view and generator it chose {_or((one, two), moment.rules)}"
                cause = self._cause(moment, batch)
                if cause or differed > 1:  # an agent with a memory may change its mind once, and just here
                    self._is_reproducible = False
                    return AgentItem.at(moment, REPRODUCIBLE, FAULT, f"{what}: {cause or 'now and then'}")
                self._changed.append((moment, what))
        if not compared:
            return AgentItem(REPRODUCIBLE, SKIPPED, "it gave no answers to compare")
        return AgentItem(REPRODUCIBLE, OK, f"{compared:,} answers given twice")

    def _cause(self, moment: Moment, batch: bool) -> str:
        """Why an answer differs from itself; "" if it does no more."""
        answers = [{self._asker.ask(moment, batch=batch, state=state) for _ in range(4)} for state in (0, 1)]
        if max(map(len, answers)) > 1:
            self._draws_itself = True
            return "it draws from a generator of its own, or counts its calls"
        if answers[0] != answers[1]:
            return "it draws from a global generator (random, np.random or torch), not from the one it is given"
        return ""

    def _compare(self, moment: Moment, before: int, now: int) -> None:
        """Keep an answer that is another one than in play."""
        if now != before:
            first, second = named(before, moment.rules), named(now, moment.rules)
            self._changed.append((moment, f"it chose {first} in play, {second} when asked again later"))

    def _judge_memory(self) -> AgentItem:
        if not self._is_reproducible:
            return AgentItem(MEMORY, SKIPPED, _CANNOT_BE_TOLD)
        if self._changed:
            moment, what = self._changed[0]
            if self._asker.bot.deterministic:
                return AgentItem.at(moment, MEMORY, FAULT, f"says it is deterministic, but keeps a memory: {what}")
            return AgentItem.at(moment, MEMORY, NOTE, f"its answers depend on what it was asked before: {what}")
        return AgentItem(MEMORY, OK, "the same answers in another order, after other games")

    def _vary_words(self) -> AgentItem:
        """Change the randomness, which a bot that says it is deterministic must not heed."""
        compared = 0
        for moment, _ in self._some(self._choices):
            words = [dataclasses.replace(moment, word=moment.word ^ k) for k in range(_WORDS)]
            for batch in self._forms:
                answers = [self._asker.ask(one, batch=batch) for one in words]
                compared += 1
                differ = len(set(answers)) > 1 and None not in answers
                if differ and answers == [self._asker.ask(one, batch=batch) for one in words]:
                    chose = _or(answers, moment.rules)
                    what = f"says it is deterministic, but by the randomness given it chose {chose} of the same view"
                    return AgentItem.at(moment, DETERMINISTIC, FAULT, what)
        return AgentItem(DETERMINISTIC, OK, f"no randomness used in {compared:,} choices")

    # --- other hidden cards ---

    def _deal_anew(self) -> AgentItem:
        """Deal the hidden cards anew, as they may lie."""
        if self._asker.bot.sees_all_hands:
            return AgentItem(HIDDEN, NOTE, "is shown all hands, and says so: a cheat, as every report calls it")
        if self._draws_itself:
            return self._deal_anew_by_chance()
        compared, has_hidden = 0, False
        usual = self._asker.usual_seconds
        is_slow = sum(usual) > _SLOW_SECONDS * len(usual)
        for moment, played in self._some(self._choices[::-1], _FEW if is_slow else _FEW_HIDDEN):
            others = moment.others(self._others)
            has_hidden |= bool(others)
            for batch in self._forms if others else ():
                answers = self._answers(moment, others, batch)
                if batch == self._forms[0] and answers[0] is not None and answers[0] == answers[-1]:
                    self._compare(moment, played, answers[0])
                if _is_leak(answers) and answers == self._answers(moment, others, batch):
                    what = f"of the same view it chose {_or(answers, moment.rules)}, depending on the hidden cards"
                    return AgentItem.at(moment, HIDDEN, FAULT, what)
                compared += len(others)
        if not has_hidden:
            return AgentItem(HIDDEN, SKIPPED, "there are none: who sees one hand knows them all")
        what = f"the same answers with the hidden cards dealt anew {compared:,} times"
        if compared < _FEW_HIDDEN:
            return AgentItem(HIDDEN, NOTE, f"{what}, which is too seldom to tell: it is slow")
        return AgentItem(HIDDEN, OK, what)

    def _answers(self, moment: Moment, others: Sequence[Moment], batch: bool) -> Answers:
        """The answers at a moment, at others, and at the first once more."""
        return [self._asker.ask(one, batch=batch) for one in (moment, *others, moment)]

    def _deal_anew_by_chance(self) -> AgentItem:
        """The same by statistics, for an agent whose answers are not reproducible."""
        pairs = []
        for moment, _ in self._some(self._choices[:_MOMENTS_BY_CHANCE]):
            for other in moment.others(1):
                answers: list[int | None] = [None] * (2 * _REPEATS)
                for k in self._rng.permutation(
                    len(answers)
                ):  # by chance, lest an agent that counts its calls look guilty
                    answers[k] = self._asker.ask((moment, other)[k % 2])
                pairs += _pairs(answers)
        if len(pairs) < _FEW:
            return AgentItem(HIDDEN, SKIPPED, _CANNOT_BE_TOLD)
        p_value = chance(pairs, self._rng)
        seen = f"{len(pairs) * _REPEATS:,} answers with the hidden cards as dealt and as many with them dealt anew"
        if p_value < LEVEL:
            return AgentItem(HIDDEN, FAULT, f"{seen} differ by more than chance (p = {p_value:.1g})")
        return AgentItem(HIDDEN, OK, f"{seen} do not differ (p = {p_value:.2g}; its answers are not reproducible)")

    # --- batches ---

    def _ask_in_batches(self) -> AgentItem:
        """`act_batch` must answer as `act` does, whatever else is in the batch."""
        if not self._is_reproducible:
            return AgentItem(BATCH, SKIPPED, _CANNOT_BE_TOLD)
        compared, wrong = self._ask_with_neighbours()
        if len(wrong) > max(1, _ROUNDING * compared):
            what = f"answers depend on what else is in the batch; {len(wrong):,} of {compared:,} times"
            return AgentItem.at(wrong[0], BATCH, FAULT, what)
        item = self._ask_by_both_forms()
        if item.verdict == OK and wrong:
            what = f"{len(wrong):,} of {compared:,} answers depend on the batch: rounding, if it is a network"
            return AgentItem.at(wrong[0], BATCH, NOTE, what)
        return item

    def _ask_with_neighbours(self) -> tuple[int, list[Moment]]:
        """How many answers in batches were compared with those alone, and the moments where they differ."""
        by_rules: dict[Rules, list[Moment]] = {}
        for moment, _ in self._choices:
            by_rules.setdefault(moment.rules, []).append(moment)
        groups = [group[k : k + _BATCH] for group in by_rules.values() for k in range(0, len(group), _BATCH)]
        compared, wrong = 0, []
        for moments in self._some(groups, 1):
            alone = {moment: self._asker.ask(moment, batch=True) for moment in moments}
            for batch in (moments, moments[::-1], moments * 2):
                answers = self._asker.ask_batch(batch)
                pairs = [(moment, answer) for moment, answer in zip(batch, answers, strict=True) if answer is not None]
                wrong += [moment for moment, answer in pairs if answer != alone[moment]]
                compared += len(pairs)
        return compared, wrong

    def _ask_by_both_forms(self) -> AgentItem:
        """`act` must answer as `act_batch`.

        With the same word: `act` may draw from the generator that `Bot.act_batch` makes of it, or take it as the first
        draw of its generator. Where both give other answers, statistics tell whether at least the choices are alike.
        """
        differ: tuple[list[Moment], ...] = ([], [])
        compared = 0
        for moment, _ in self._some(self._choices):
            expected = self._asker.ask(moment, batch=True)
            compared += 1
            for make, found in zip((generator_of, plain_generator), differ, strict=True):
                if self._asker.ask(moment, batch=False, rng=make(moment.word)) != expected:
                    found.append(moment)
        wrong = min(differ, key=len)
        if not wrong:
            return AgentItem(BATCH, OK, f"act_batch answers as act, whatever is in the batch, {compared:,} times")
        pairs = []
        for moment in self._some(wrong[:_MOMENTS_BY_CHANCE]):
            words = self._rng.integers(0, 2**64, _REPEATS, np.uint64).tolist()
            asked = [dataclasses.replace(moment, word=word) for word in words]
            pairs += _pairs([self._asker.ask(one, batch=batch) for one in asked for batch in (True, False)])
        if pairs and chance(pairs, self._rng) < LEVEL:
            what = f"act_batch and act choose differently; {len(wrong):,} of {compared:,} times"
            return AgentItem.at(wrong[0], BATCH, FAULT, what)
        what = "act_batch and act draw differently from the same word: games by the one do not repeat the other's"
        return AgentItem.at(wrong[0], BATCH, NOTE, what)


def _is_leak(answers: Answers) -> bool:
    return None not in answers and answers[0] == answers[-1] and len(set(answers)) > 1


def _pairs(answers: Answers) -> list[tuple[list[int], list[int]]]:
    """Answers of two kinds in turn as a pair for `chance`; nothing where one of them is missing."""
    whole = [answer for answer in answers if answer is not None]
    return [(whole[::2], whole[1::2])] if len(whole) == len(answers) else []


def _or(actions: Sequence[int | None], rules: Rules) -> str:
    """Different actions as ``12 (9♦) or 17 (Q♦)``."""
    return " or ".join(named(action, rules) for action in dict.fromkeys(actions) if action is not None)
