"""Leak and sanity checks of an agent: it plays every preset and number of seats, and is asked again in other ways.

What is found: illegal choices, exceptions, answers of a wrong type, slow moves, changed arguments; and answers that
depend on more than the view and the randomness given (`devyatka_env.evaluation.agent_checks.probes`). Above all on the
hidden cards: they are dealt anew (`devyatka_env.views.belief`), so that the view stays the same byte for byte, while
the deal lies open in the process (`devyatka_env.evaluation.agent_checks.harness`). An agent that reaches past its view,
be it by a global, the garbage collector or the frames of its callers, then answers otherwise.

An agent that works out hands from the random words it is given is offered bait (`devyatka_env.evaluation.agent_checks.
bait`). What is not found: the leak of an agent that keeps its answers by view, and gives the same one again; and an
agent that knows a deal by a seed that it guesses, against which deals of a secret help (`--secret`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from devyatka_env.bots import Bot, BotError, BotSpec, CallableBot, make_bot
from devyatka_env.bots.rollout import play_on
from devyatka_env.engine.seeds import Seed, check_source, entropy
from devyatka_env.evaluation.agent_checks.bait import chance_of, gains_by_bait
from devyatka_env.evaluation.agent_checks.harness import (
    ARGUMENTS,
    EXCEPTIONS,
    LEGAL,
    TIME,
    TYPE,
    Asker,
    Moment,
    TooSlowError,
    generators_kept,
    shortened,
)
from devyatka_env.evaluation.agent_checks.probes import (
    BATCH,
    DETERMINISTIC,
    FAULT,
    HIDDEN,
    LEVEL,
    MEMORY,
    NOTE,
    OK,
    REPRODUCIBLE,
    SKIPPED,
    AgentItem,
    Prober,
)
from devyatka_env.games import Deals, Game
from devyatka_env.rules import MAX_PLAYERS, MIN_PLAYERS, PRESETS, Rules, RulesError

Progress = Callable[[str], None]

RULES, WORDS = "rules", "words"
_OF_MOVES = (LEGAL, TYPE, EXCEPTIONS, ARGUMENTS, TIME)  # what every move tells of

_BAIT_PARTS = 8  # the bait may take so many times as long as another part: who computes is slow
_FEW_BAITED = 40  # fewer deals tell nothing
_MOST_GAMES = 20  # of a rule set: enough for all the moments, if the agent can play at all


@dataclass(frozen=True)
class _Extent:
    games: int  # deals of each rule set, at least
    every_table: bool  # whether each rule set is played once, however slow the agent is
    moments: int  # at which the agent is asked again, over all rule sets
    others: int  # ways to deal the hidden cards, at each of them
    baited: int  # deals that are played with words that tell the hands, and without
    seconds: float  # after which a part of the check ends


_FULL = _Extent(games=3, every_table=True, moments=400, others=4, baited=200, seconds=5.0)
_QUICK = _Extent(games=1, every_table=False, moments=60, others=2, baited=60, seconds=0.5)


@dataclass(frozen=True)
class AgentReport:
    """What the checks found.

    Attributes:
        agent: its name.
        rules: the rule sets that were played.
        seed: seed of the deals.
        moves: how often the agent was asked.
        mean_ms: milliseconds a move.
        worst_ms: those of the slowest move.
        seconds: of the whole check.
        items: the verdicts.
    """

    agent: str
    rules: tuple[Rules, ...]
    seed: Seed
    moves: int
    mean_ms: float
    worst_ms: float
    seconds: float
    items: tuple[AgentItem, ...]

    @property
    def faults(self) -> tuple[AgentItem, ...]:
        """The items that are faults."""
        return tuple(item for item in self.items if item.verdict == FAULT)

    @property
    def ok(self) -> bool:
        """Whether no fault was found."""
        return not self.faults

    def item(self, name: str) -> AgentItem:
        """The item of a name.

        Raises:
            KeyError: there is none.
        """
        return {item.name: item for item in self.items}[name]


def check_agent(
    bot_spec: BotSpec,
    *,
    games: int | None = None,
    seed: Seed = 0,
    quick: bool = False,
    move_seconds: float = 5.0,
    rules: Rules | str | None = None,
    progress: Progress | None = None,
) -> AgentReport:
    """Play an agent through every preset and number of seats that it accepts, and look for faults.

    Args:
        bot_spec: the agent (as `make_bot` takes it).
        games: deals of each rule set; by default as many as give enough moments. In the first the agent has one seat,
            in the others all of them.
        seed: seed of the deals.
        quick: about two seconds: fewer moments, and not every rule set if the agent is slow.
        move_seconds: an agent that takes longer for a move is at fault, and is not asked any more.
        rules: play this rule set alone.
        progress: called with what is being done, now and then.

    Raises:
        ValueError: no such bot, no game, no time, or no rule set.
    """
    bot, tables = make_bot(bot_spec), _presets() if rules is None else [Rules.of(rules)]
    extent = _QUICK if quick else _FULL
    if games is not None and games < 1:
        raise ValueError(f"games must be at least 1, not {games}")
    if not move_seconds > 0:
        raise ValueError(f"move_seconds must be above 0, not {move_seconds:g}")
    check = _Check(Asker(bot, move_seconds), extent, games, check_source(seed), progress or (lambda text: None))
    with generators_kept():
        _load_kernels(bot, tables)
        return check.run(tables)


def _load_kernels(bot: Bot, tables: Sequence[Rules]) -> None:
    """Let a bot of this package play a deal of two seats and one of more: to compile its kernels is no move of its."""
    if isinstance(bot, CallableBot) or type(bot).__module__.partition(".")[0] != "devyatka_env":
        return
    for two in (True, False):
        for rules in tables:
            if (rules.num_players == 2) == two:
                games = Deals(rules, np.zeros(1, np.int64))
                # What it fails at is for the check to find.
                with suppress(BotError, ValueError):
                    bot.check_rules(rules)
                    play_on(games, [bot], np.zeros((1, rules.num_players), np.int64), games.all)
                    break


def _presets() -> list[Rules]:
    """Every preset at every number of seats that it can be played at."""
    found = []
    for preset in PRESETS:
        for seats in range(MIN_PLAYERS, MAX_PLAYERS + 1):
            try:
                found.append(Rules.of(preset, num_players=seats))
            except RulesError:
                continue
    return found


class _Check:
    """The check of one agent."""

    def __init__(self, asker: Asker, extent: _Extent, games: int | None, seed: Seed, progress: Progress) -> None:
        self._asker = asker
        self._extent = extent
        self._games = games
        self._seed = seed
        self._progress = progress
        self._rng = np.random.Generator(np.random.PCG64(entropy(seed, b"devyatka check")))
        self._played: list[Rules] = []
        self._items: dict[str, AgentItem] = {}

    def run(self, tables: Sequence[Rules]) -> AgentReport:
        """Play, then ask again, up to the first move that takes too long."""
        start = time.perf_counter()
        asker, extent = self._asker, self._extent
        accepted, refusal = self._accepted(tables)
        why_not = "it gave no answers" if accepted else "it was not asked"
        try:
            choices = self._play(accepted) if accepted else []
            if choices:
                self._progress("asking again in other ways")
                for item in Prober(asker, choices, extent.seconds, extent.others, self._rng).items():
                    self._items[item.name] = item
                self._items[WORDS] = self._bait(accepted)
        except TooSlowError:
            why_not = "not looked at any further, since a move took too long"
        self._judge_rules(tables, accepted, refusal)
        self._judge_moves(why_not)
        names = [RULES, *_OF_MOVES, HIDDEN, WORDS, REPRODUCIBLE, MEMORY]
        names += [DETERMINISTIC] if asker.bot.deterministic else []
        names += [BATCH] if asker.has_batch else []
        seconds = asker.usual_seconds
        return AgentReport(
            agent=asker.bot.name,
            rules=tuple(self._played),
            seed=self._seed,
            moves=len(asker.seconds),
            mean_ms=1000 * sum(seconds) / max(len(seconds), 1),
            worst_ms=1000 * max(seconds, default=0.0),
            seconds=time.perf_counter() - start,
            items=tuple(self._items.get(name, AgentItem(name, SKIPPED, why_not)) for name in names),
        )

    # --- play ---

    def _accepted(self, tables: Sequence[Rules]) -> tuple[list[Rules], str]:
        """The rule sets that the agent plays, and why it refuses the first of the others."""
        accepted, refusal = [], ""
        for rules in tables:
            try:
                self._asker.bot.check_rules(rules)
                accepted.append(rules)
            except ValueError as error:
                refusal = refusal or str(error)
        return accepted, refusal

    def _play(self, tables: Sequence[Rules]) -> list[tuple[Moment, int]]:
        """Play the rule sets; moments at which the agent had a choice, in random order, and its answers."""
        quota = -(-self._extent.moments // len(tables))
        found: list[list[tuple[Moment, int]]] = [[] for _ in tables]
        order = self._rng.permutation(len(tables)).tolist()
        deadline = float("inf")
        for deal, number in itertools.product(range(self._games or _MOST_GAMES), order):
            rules = tables[number]
            needed = deal == 0 and (self._extent.every_table or not self._played)
            if not needed and time.perf_counter() > deadline:
                break
            if self._games is None and deal >= self._extent.games and len(found[number]) >= quota:
                continue
            if deal == 0:
                self._played.append(rules)
            self._progress(f"playing {rules}, deal {deal}")
            seats = {number % rules.num_players} if deal == 0 else set(range(rules.num_players))
            found[number] += self._play_deal(rules, deal, seats)
            if number == order[0] and deal == 0:  # what is loaded or compiled at first does not count
                deadline = time.perf_counter() + self._extent.seconds
        kept = [one[k] for one in found for k in self._rng.permutation(len(one))[:quota].tolist()]
        return [kept[k] for k in self._rng.permutation(len(kept)).tolist()]

    def _play_deal(self, rules: Rules, deal: int, seats: set[int]) -> list[tuple[Moment, int]]:
        """Play a deal with the agent in ``seats``, random cards in the others; the agent's moments and answers.

        A random card takes the place of an answer that cannot be played. The deal ends when the agent fails.
        """
        found = []
        game = Game.deal(rules, self._seed, deal)
        while not game.is_over:
            word = int(self._rng.integers(0, 2**64, dtype=np.uint64))
            moment = Moment.of(game, self._seed, deal, word)
            action = int(self._rng.choice(moment.legal))
            if moment.seat in seats:
                failed = self._asker.count[EXCEPTIONS]
                answer = self._asker.ask(moment, state=word & 0xFFFFFFFF)
                if self._asker.count[EXCEPTIONS] > failed:
                    break
                if answer is not None and len(moment.legal) > 1:
                    found.append((moment, answer))
                action = answer if answer in moment.legal else action
            game.play(action)
        return found

    # --- bait ---

    def _bait(self, accepted: Sequence[Rules]) -> AgentItem:
        """Whether the agent wins more by words that tell the hands, twice on different deals."""
        hidden = [rules for rules in accepted if rules.num_players > 2]
        if not hidden:
            return AgentItem(WORDS, SKIPPED, "no rules with three seats or more are played, where hands are hidden")
        rules = Rules.of() if Rules.of() in hidden else hidden[0]
        # Half of the cards of a deal are laid without a choice; each deal is played from every seat, twice.
        seconds_a_deal = sum(self._asker.usual_seconds) / len(self._asker.usual_seconds) * rules.deck.num_cards
        most = min(self._extent.baited, int(_BAIT_PARTS * self._extent.seconds / max(seconds_a_deal, 1e-9)))
        if most < _FEW_BAITED:
            return AgentItem(WORDS, SKIPPED, "cannot be told in the time there is: it is slow")
        self._progress("offering bait")
        return self._judge_gains(rules, most)

    def _judge_gains(self, rules: Rules, deals: int) -> AgentItem:
        """Whether it gains by bait on some deals, and if so on as many others: of a million honest agents one does."""
        p_values: list[float] = []
        for label in (b"devyatka bait", b"devyatka bait 2"):
            try:
                gains = gains_by_bait(self._asker.bot, rules, entropy(self._seed, label), deals)
            except BotError as error:
                return AgentItem(WORDS, SKIPPED, f"it failed: {shortened(str(error), 120)}")
            p_values.append(chance_of(gains))
            if p_values[-1] >= LEVEL:
                what = f"words that tell the hands do not make it win more, in {deals * len(p_values):,} deals"
                return AgentItem(WORDS, OK, what)
        what = f"wins {100 * gains.mean():.1f} points more by words that tell the hands (p = {max(p_values):.1g})"
        return AgentItem(WORDS, FAULT, f"{what}, in {2 * deals:,} deals of {rules}: it computes hands from its words")

    # --- verdicts ---

    def _judge_rules(self, tables: Sequence[Rules], accepted: Sequence[Rules], refusal: str) -> None:
        if not accepted:
            self._items[RULES] = AgentItem(RULES, FAULT, f"plays none of {len(tables)}: {refusal}")
            return
        self._played.sort(key=tables.index)
        refused = [rules for rules in tables if rules not in accepted]
        late = [rules for rules in accepted if rules not in self._played]
        detail = f"played {len(self._played)} of {len(tables)}: {_by_preset(self._played)}"
        detail += f"; not reached: {_by_preset(late)}" if late else ""
        detail += f"; refused: {_by_preset(refused)} ({shortened(refusal, 120)})" if refused else ""
        self._items[RULES] = AgentItem(RULES, SKIPPED if refused or late else OK, detail)

    def _judge_moves(self, why_not: str) -> None:
        asked, count, seconds = len(self._asker.seconds), self._asker.count, self._asker.usual_seconds
        for name in _OF_MOVES:
            if count[name]:
                moment, what = self._asker.first[name]
                what += f"; {count[name]:,} of {asked:,} times" if count[name] > 1 else ""
                self._items[name] = AgentItem.at(moment, name, FAULT, what)
            elif name == TIME and seconds:
                first = self._asker.slow_start
                what = f"mean {1000 * sum(seconds) / len(seconds):.3g} ms, worst {1000 * max(seconds):.3g} ms"
                what += f"; but the first took {first:.3g} s, which the arena does not forgive" if first else ""
                self._items[name] = AgentItem(name, NOTE if first else OK, what)
            elif asked > count[EXCEPTIONS] and not count[TIME]:
                self._items[name] = AgentItem(name, OK, f"in {asked:,} moves")
            else:
                self._items[name] = AgentItem(name, SKIPPED, why_not)


def _by_preset(tables: Sequence[Rules]) -> str:
    """Rule sets as ``first_out 2-6, nine_each 2-4``: presets with their seats, anything else in full."""
    seats: dict[str, list[int]] = {}
    texts = []
    for rules in tables:
        if rules == Rules.of(rules.preset, num_players=rules.num_players):
            seats.setdefault(rules.preset, []).append(rules.num_players)
        else:
            texts.append(str(rules))
    for preset, counts in seats.items():
        runs: list[list[int]] = []
        for count in counts:
            if runs and count == runs[-1][-1] + 1:
                runs[-1].append(count)
            else:
                runs.append([count])
        texts.append(f"{preset} " + " and ".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in runs))
    return ", ".join(texts)
