"""Everyone against everyone: each entrant alone among copies of each other one, all on the same duplicate deals.

A tournament lives in a folder (`pairings`), so it can be stopped at any moment and taken up again, with more deals or
more entrants, and nothing is played twice.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots import Bot, BotSpec, make_bot
from devyatka_env.engine.seeds import Seed, check_source
from devyatka_env.evaluation.arena import MOVE_SECONDS, check_deals, make_field, spans
from devyatka_env.evaluation.duplicate import Failure, Field, measure, play_rotations, whole_deals
from devyatka_env.evaluation.stats import Floats, Moments
from devyatka_env.evaluation.tournaments.pairings import Entrant, Pairing, Part, Store
from devyatka_env.evaluation.workers import WorkerError, Workers
from devyatka_env.rules import Rules

# What a kill may lose.
SAVE_SECONDS = 5.0


@dataclass(frozen=True)
class Tournament:
    """What was played.

    Attributes:
        entrants: in the order given.
        rules: the rule set.
        seed: seed of the deals.
        deals: deals of each pairing that were asked for.
        pairings: every ordered pair, K(K - 1) of them.
        interrupted: whether it was stopped before all were played.
        replaced: for each entrant that is not what it was when the folder was last played, what was done about it.
    """

    entrants: tuple[Entrant, ...]
    rules: Rules
    seed: Seed
    deals: int
    pairings: tuple[Pairing, ...]
    interrupted: bool = False
    replaced: tuple[str, ...] = ()

    @property
    def failed(self) -> frozenset[int]:
        """Entrants that failed."""
        names = {one.failure.bot for one in self.pairings if one.failure}
        return frozenset(k for k, entrant in enumerate(self.entrants) if entrant.name in names)


# Called with the number of the pairing in play, from 1, how many there are, and the pairing so far.
Progress = Callable[[int, int, Pairing], None]


def play_tournament(
    entrants: Sequence[BotSpec],
    rules: Rules | str,
    deals: int,
    folder: str | Path,
    seed: Seed = 0,
    progress: Progress | None = None,
    *,
    workers: Workers | None = None,
    move_seconds: float | None = MOVE_SECONDS,
) -> Tournament:
    """Play what a tournament's folder lacks. Ctrl-C stops it early with what was played so far.

    A bot that fails ends its pairing, and its other pairings are not begun; all others are played. A pairing that
    failed is tried again, from the deal where it ended, whenever the folder is played again. What an entrant of the
    same name but another `identity` played is put aside (``*.old.json``) and played again.

    Args:
        entrants: two or more bots (as `make_bot` takes them) of different names.
        rules: the rule set (as `Rules.of` takes it). Of a match every deal is counted by itself.
        deals: deals of each pairing; one that has more keeps them.
        folder: the tournament, new or begun.
        seed: seed of the deals and of the bots' coin flips.
        progress: called now and then.
        workers: who plays; by default this process.
        move_seconds: a bot that takes longer for a move has failed; ``None`` for no limit.

    Raises:
        ValueError: less than two entrants or two of one name, a wrong number of deals, a bot that does not play these
            rules, or a folder of other rules or another seed.
        ResultError: a file in the folder that cannot be read.
        KeyboardInterrupt: stopped before anything was played.
    """
    rules = Rules.of(rules)
    check_deals(deals)
    bots = [make_bot(one) for one in entrants]
    for bot in bots:
        make_field([bot], bot, rules, seed)
    store = Store(Path(folder), [Entrant.of(bot) for bot in bots], rules, check_source(seed), deals)
    run = _Run(store, bots, store.load(), workers or Workers(), move_seconds, progress)
    interrupted = False
    try:
        run.play()
    except KeyboardInterrupt:
        if not any(one.deals for one in run.pairings):
            raise
        interrupted = True
    return Tournament(
        tuple(store.entrants), rules, seed, deals, tuple(run.pairings), interrupted, tuple(store.replaced)
    )


def play_part(game: Field, span: tuple[int, int]) -> tuple[Part | None, Failure | None]:
    """Play the deals ``span = (first, count)`` of a pairing: those up to one that fails, and why it does."""
    start = time.perf_counter()

    def play(indices: NDArray[np.int64]) -> tuple[Moments, Floats]:
        games, seats = play_rotations(game.seating(0), game.rules, indices, game.seed, game.move_seconds)
        rows = measure(games, seats)
        return Moments.of(rows), rows[:, rows.shape[1] - game.rules.num_players :]

    played, failure = whole_deals(play, span)
    return None if played is None else Part(*played, time.perf_counter() - start), failure


@dataclass
class _Run:
    """Plays what the pairings lack, one after the other."""

    store: Store
    bots: Sequence[Bot]
    pairings: list[Pairing]
    workers: Workers
    move_seconds: float | None
    progress: Progress | None
    failed: set[str] = field(default_factory=set)

    def play(self) -> None:
        """Play them; `pairings` holds what was played at any moment."""
        for k, pairing in enumerate(self.pairings):
            names = {self.bots[pairing.candidate].name, self.bots[pairing.opponent].name}
            if pairing.deals < self.store.deals and not names & self.failed:
                self._play(k)

    def _play(self, k: int) -> None:
        store, pairing = self.store, self.pairings[k]
        game = make_field(
            [self.bots[pairing.candidate]],
            self.bots[pairing.opponent],
            store.rules,
            store.seed,
            self.move_seconds,
        )
        parts = self.workers.map(play_part, game, spans(store.deals, store.rules.num_players, pairing.deals))
        self.pairings[k] = dataclasses.replace(pairing, failure=None)
        saved = time.monotonic()
        try:
            for part, failure in parts:
                if part is not None:
                    self.pairings[k] = self.pairings[k].plus(part)
                if failure is not None:
                    self._fail(k, failure)
                    break
                if self.progress:
                    self.progress(k + 1, len(self.pairings), self.pairings[k])
                if time.monotonic() - saved > SAVE_SECONDS:
                    store.save(self.pairings[k])
                    saved = time.monotonic()
        except WorkerError as error:  # nobody knows whose fault it was
            self._fail(k, Failure("", self.pairings[k].deals, str(error)))
        finally:
            parts.close()
            store.save(self.pairings[k])

    def _fail(self, k: int, failure: Failure) -> None:
        self.pairings[k] = dataclasses.replace(self.pairings[k], failure=failure)
        self.failed.add(failure.bot)
