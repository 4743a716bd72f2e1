"""Asking a bot about moments of deals, one by one, and keeping a record of what goes wrong.

While a bot is asked, the deal lies open in the process as it does when the arena plays it: as a `Game` and as `Deals`,
in the frame that calls the bot and for the garbage collector to find. Nothing else in the process tells hands: moments
are kept as plain numbers. So whoever peeks sees the hands of just the deal it is asked about.
"""

from __future__ import annotations

import dataclasses
import operator
import random
import signal
import sys
import sysconfig
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots import Bot, CallableBot
from devyatka_env.engine.seeds import Seed
from devyatka_env.games import Deals, Game
from devyatka_env.games.notation import action_text
from devyatka_env.rules import Rules
from devyatka_env.views import Belief, PlayerView

# A move that takes so many times its limit is broken off: it may never end. The first one may load or compile things.
_BREAK_OFF, _BREAK_OFF_FIRST = 4, 12
_PACKAGE = str(Path(__file__).resolve().parents[2])
_PCG_FACTOR = 0x2360ED051FC65DA44385DF649FCCF645  # of the PCG64 generator (O'Neill 2014)

# What can go wrong when a bot is asked: the names of the items in a report.
LEGAL, EXCEPTIONS, TYPE, ARGUMENTS, TIME = "legal choices", "exceptions", "answer type", "arguments", "time per move"


class TooSlowError(BaseException):
    """A move took too long. No `Exception`, so that a bot that swallows those does not swallow this."""


@dataclass(frozen=True)
class Moment:
    """A running deal at which a bot is asked.

    Attributes:
        rules: the rule set.
        seed: seed of the deal.
        deal: its index.
        hands: each seat's cards as they were dealt, as bitboards.
        dealer: the dealer's seat.
        actions: the actions taken so far.
        seat: the seat on turn.
        legal: its legal actions.
        word: the randomness of the decision.
    """

    rules: Rules
    seed: Seed
    deal: int
    hands: tuple[int, ...]
    dealer: int
    actions: tuple[int, ...]
    seat: int
    legal: tuple[int, ...]
    word: int

    @classmethod
    def of(cls, game: Game, seed: Seed, deal: int, word: int) -> Moment:
        """The moment at which a running game stands."""
        hands, legal = game.dealt_masks, tuple(game.legal_actions())
        return cls(game.rules, seed, deal, hands, game.dealer, tuple(game.actions), game.turn, legal, word)

    def game(self) -> Game:
        """The deal, played again up to the moment."""
        game = Game.from_hands(self.rules, self.hands, self.dealer)
        for action in self.actions:
            game.play(action)
        return game

    def others(self, count: int) -> list[Moment]:
        """Up to ``count`` moments that differ from this in the hidden cards alone; none where these are known."""
        game = self.game()
        belief = Belief(game.view(self.seat))
        if belief.count == 1:
            return []
        draws = belief.sample(np.random.Generator(np.random.PCG64(self.word)), 2 * count)[:, : len(self.hands)]
        dealt = [tuple(hands) for hands in (draws | game.record["played"][: len(self.hands)]).tolist()]
        different = [hands for hands in dict.fromkeys(dealt) if hands != self.hands][:count]
        return [dataclasses.replace(self, hands=hands, deal=self.deal + 1 + k) for k, hands in enumerate(different)]

    def __str__(self) -> str:
        return f"{self.rules}, deal {self.deal} of seed {self.seed}, seat {self.seat}"


class Asker:
    """Asks a bot, and keeps what goes wrong, by item.

    Attributes:
        bot: the bot.
        has_batch: whether it has an `act_batch` of its own.
        first: the first moment of each item that has a fault, and what happened.
        count: how often.
        seconds: what each move took.
        slow_start: seconds that the first move took, if that was more than the limit and the next was not; else 0.
    """

    def __init__(self, bot: Bot, move_seconds: float) -> None:
        self.bot = bot
        self.has_batch = type(bot).act_batch is not Bot.act_batch
        self.first: dict[str, tuple[Moment, str]] = {}
        self.count: Counter[str] = Counter()
        self.seconds: list[float] = []
        self.slow_start = 0.0
        self._limit = move_seconds
        # `CallableBot.act` turns the answer of its function into an int: here the answer itself matters.
        self._act = bot._function if isinstance(bot, CallableBot) else bot.act

    def ask(
        self, moment: Moment, *, batch: bool | None = None, rng: np.random.Generator | None = None, state: int = 0
    ) -> int | None:
        """Ask once.

        Args:
            moment: where; its word is the randomness.
            batch: by `act_batch` instead of `act`; by default if the bot has its own.
            rng: the generator for `act`, instead of the one that `Bot.act_batch` makes of the word.
            state: a number that the global generators are set by.

        Returns:
            The action, maybe an illegal one; ``None`` if it failed or gave none.

        Raises:
            TooSlowError: it took longer than the limit.
        """
        if self.has_batch if batch is None else batch:
            return self.ask_batch([moment], state=state)[0]
        game = moment.game()  # an agent that looks for the hands may find them here
        games = _deals([moment], [game])
        view = PlayerView._of(games.states.copy(), game.rules, game.turn)
        if not self.bot.sees_all_hands:
            view = game.view(game.turn)
        before = view.record.tobytes()
        rng = rng or plain_generator(moment.word)
        answer: object = _NOTHING
        with self._watched([moment], state):
            answer = self._act(view, rng)
        if view.record.tobytes() != before or view.rules is not game.rules or view.seat != moment.seat:
            self._note(ARGUMENTS, moment, "changed the view that it was given")
        return None if answer is _NOTHING else self._read(moment, answer)

    def ask_batch(self, moments: Sequence[Moment], *, state: int = 0) -> list[int | None]:
        """Ask `act_batch` about moments of one rule set, in one call; answers and errors as `ask` has them."""
        played = [moment.game() for moment in moments]
        game, games = played[0], _deals(moments, played)
        views = games.states.copy()
        if not self.bot.sees_all_hands:
            views = np.concatenate([one.view(one.turn).record for one in played])
        words = np.array([moment.word for moment in moments], np.uint64)
        before = views.tobytes(), words.tobytes()
        answer: object = _NOTHING
        with self._watched(moments, state):
            answer = self.bot.act_batch(views, game.rules, words)
        if (views.tobytes(), words.tobytes()) != before:
            self._note(ARGUMENTS, moments[0], "changed the views or words that act_batch was given")
        if answer is _NOTHING:
            return [None] * len(moments)
        actions = np.asarray(answer)
        if actions.shape != (len(moments),) or not np.issubdtype(actions.dtype, np.integer):
            shown = f"{actions.dtype} {list(actions.shape)}"
            self._note(TYPE, moments[0], f"act_batch answered {shown}, wanted are whole numbers [{len(moments)}]")
            return [None] * len(moments)
        return [self._read(moment, action) for moment, action in zip(moments, actions, strict=True)]

    @property
    def usual_seconds(self) -> list[float]:
        """What each move took, without a first one that was slow alone."""
        return self.seconds[1:] if self.slow_start else self.seconds

    @contextmanager
    def _watched(self, moments: Sequence[Moment], state: int) -> Iterator[None]:
        """Keep the time, and note an exception instead of passing it on."""
        first = not self.seconds
        limit = self._limit * (_BREAK_OFF_FIRST if first else _BREAK_OFF) * len(moments)
        _set_generators(state)
        start = time.perf_counter()
        try:
            with _broken_off_after(limit):
                yield
        except TooSlowError:
            self._slow(moments[0], f"a move was broken off after {limit:.3g} s, the limit is {self._limit:g} s")
        except (Exception, SystemExit) as error:
            self._note(EXCEPTIONS, moments[0], f"{type(error).__name__}: {error}{_line_of(error.__traceback__)}")
        seconds = (time.perf_counter() - start) / len(moments)
        self.seconds += [seconds] * len(moments)
        if seconds <= self._limit:
            return
        if first:
            self.slow_start = seconds  # the next move tells whether it was only loading something
        else:
            self._slow(moments[0], f"a move took {seconds:.3g} s, the limit is {self._limit:g} s")

    def _slow(self, moment: Moment, what: str) -> None:
        self._note(TIME, moment, what)
        raise TooSlowError(what)

    def _read(self, moment: Moment, answer: Any) -> int | None:
        """The action that an answer stands for; notes a wrong type, and an illegal action."""
        action: int | None = None
        if hasattr(type(answer), "__index__") and np.ndim(answer) == 0:
            action = operator.index(answer)
        elif isinstance(answer, float | np.floating) and float(answer).is_integer():
            action = int(answer)
        if action is None or isinstance(answer, bool | float | np.floating):
            kind = type(answer).__name__
            shown = kind if answer is None else f"{kind} {shortened(repr(answer))}"
            self._note(TYPE, moment, f"answered {shown}, not a whole number")
        if action is not None and action not in moment.legal:
            legal = " ".join(action_text(one, moment.rules) for one in moment.legal)
            self._note(LEGAL, moment, f"chose {named(action, moment.rules)}; legal: {legal}")
        return action

    def _note(self, item: str, moment: Moment, what: str) -> None:
        self.first.setdefault(item, (moment, what))
        self.count[item] += 1


_NOTHING = object()


def named(action: int, rules: Rules) -> str:
    """``17 (Q♦)``; the number alone if it is no action."""
    return f"{action} ({action_text(action, rules)})" if 0 <= action <= rules.pass_action else str(action)


def plain_generator(word: int) -> np.random.Generator:
    """The generator that `Bot.act_batch` makes of a word for `act`."""
    return np.random.Generator(np.random.PCG64(word))


def generator_of(word: int) -> np.random.Generator:
    """A generator whose first 64 bits are ``word``: as bots draw it that do their work in `act_batch`.

    PCG64 puts out its 128-bit state with the halves xored and rotated by its top bits: the state ``word`` puts out
    ``word``.
    """
    bits = np.random.PCG64(0)
    inc = bits.state["state"]["inc"]
    before = (word - inc) * pow(_PCG_FACTOR, -1, 1 << 128) % (1 << 128)
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": before, "inc": inc},
        "has_uint32": 0,
        "uinteger": 0,
    }
    return np.random.Generator(bits)


def _deals(moments: Sequence[Moment], played: Sequence[Game]) -> Deals:
    """The games as the arena holds them."""
    deals = Deals(moments[0].rules, np.array([moment.deal for moment in moments], np.uint64), moments[0].seed)
    deals.states[:] = np.concatenate([game.states for game in played])
    return deals


def shortened(text: str, most: int = 60) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _line_of(trace: TracebackType | None) -> str:
    """The last line of a traceback that is neither this package's nor of an installed library; "" if there is none."""
    libraries = (_PACKAGE, sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    own = [one for one in traceback.extract_tb(trace) if not one.filename.startswith((*libraries, "<"))]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno}: {shortened(str(own[-1].line))})" if own else ""


# --- the state of the process ----------------------------------------------------------------------------------------


@contextmanager
def _broken_off_after(seconds: float) -> Iterator[None]:
    """Raise `TooSlowError` in what takes longer; only in the main thread, and only where the system has such clocks."""

    def stop(number: int, frame: object) -> None:
        raise TooSlowError

    try:
        before = signal.signal(signal.SIGALRM, stop)
    except (ValueError, AttributeError):
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _set_generators(seed: int) -> None:
    """Set the global generators of Python, NumPy and, where it is loaded, torch: a bot may draw from them."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the state that a bot may use is meant
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(seed)


@contextmanager
def generators_kept() -> Iterator[None]:
    """Put the global generators back afterwards."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - as above
    torch = sys.modules.get("torch")
    state = torch and torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        if torch:
            torch.set_rng_state(state)


# --- do two bunches of answers differ? -------------------------------------------------------------------------------


def chance(pairs: Sequence[tuple[Sequence[int], Sequence[int]]], rng: np.random.Generator, draws: int = 4999) -> float:
    """The probability of so great a difference within pairs of equally many answers, if both are drawn alike.

    A permutation test: the answers of each pair are dealt out anew ``draws`` times. The difference is the sum over
    pairs and answers of the squared difference of their numbers, over their sum.
    """
    totals = np.zeros(draws + 1)
    for one, other in pairs:
        answers: NDArray[np.int64] = np.array([*one, *other])
        signs = np.repeat([1.0, -1.0], len(one))
        dealt = np.vstack([signs, rng.permuted(np.tile(signs, (draws, 1)), axis=1)])
        for answer in np.unique(answers):
            totals += (dealt @ (answers == answer)) ** 2 / (answers == answer).sum()
    return float((totals >= totals[0] - 1e-9).mean())
