"""The opponents of self-play: snapshots of the learner on disk, and fixed bots."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from devyatka_env.bots import Bot, CheckpointError, PolicyBot, make_bot
from devyatka_env.bots.checkpoint import MANIFEST, remove_checkpoint
from devyatka_env.bots.network import PolicyNetwork
from devyatka_env.learning.tables import LEARNER, Finished, Lineup

# Snapshots that play at a time: each is one more forward pass a round.
ACTIVE = 2
# Weight of a new deal in an opponent's running record.
_MEMORY = 1 / 2000


class OpponentPool:
    """Snapshots that play as the learner did, sampling their cards, next to fixed bots.

    Of more than ``size`` snapshots the one whose neighbours in time are closest is dropped, so that what remains is
    spread over the whole run: old habits stay punished, and cycles show. Opponents are drawn by how well they do
    against the learner: the weight of each is the square of its share of wins in the deals they played, relative to
    chance (prioritised fictitious self-play, Vinyals et al. 2019).

    Args:
        folder: where the snapshots lie, a checkpoint each.
        bots: names of the fixed bots.
        bot_share: share of the deals with opponents that the fixed bots get.
        size: snapshots kept; 0 for none.
        seed: seed of the draws.

    Attributes:
        snapshots: decisions trained at each snapshot, and its bot.
        strengths: by name, the running record of each opponent: 1 is as good as the learner.
    """

    def __init__(self, folder: Path, bots: Sequence[str], bot_share: float, size: int, seed: int = 0) -> None:
        self._folder = folder
        self._bots = [make_bot(name) for name in bots]
        self._bot_share = bot_share if self._bots else 0.0
        if not size:
            self._bot_share = 1.0
        self._size = size
        self._rng = np.random.default_rng([seed, 1])
        self._active: list[Bot] = []
        self.snapshots: list[tuple[int, PolicyBot]] = []
        self.strengths: dict[str, float] = {}

    def path(self, step: int) -> Path:
        """The checkpoint folder of the snapshot taken at ``step``."""
        return self._folder / f"{step:012d}"

    @property
    def takes_snapshots(self) -> bool:
        """Whether the learner's snapshots are opponents."""
        return self._size > 0

    def add(self, step: int, network: PolicyNetwork) -> None:
        """Take a snapshot; for a resumed run its checkpoint must stand at `path`."""
        self.snapshots.append((step, PolicyBot(copy.deepcopy(network), sample=True, name=f"snapshot {step}")))
        while len(self.snapshots) > self._size:
            steps = [0, *(step for step, _ in self.snapshots)]
            middle = range(len(self.snapshots) - 1)
            gone = min(middle, key=lambda i: steps[i + 2] - steps[i], default=0)
            with suppress(OSError):  # it plays no more, on disk or not
                remove_checkpoint(self.path(self.snapshots.pop(gone)[0]))

    def restore(self, up_to: int) -> list[str]:
        """Load the snapshots on disk, taken at or before ``up_to`` decisions; later ones are removed.

        Returns:
            A line for each that cannot be read, and is left out. One without a manifest was being written or removed
            when the run was killed, and is removed; a damaged one stays where it is.
        """
        warnings = []
        for folder in sorted(path for path in self._folder.glob("[0-9]*") if path.name.isdigit()):
            step = int(folder.name)
            if step > up_to:
                remove_checkpoint(folder)
                continue
            try:
                self.add(step, PolicyBot.load(folder).network)
            except CheckpointError as error:
                warnings.append(f"a snapshot is left out: {error}")
                if not (folder / MANIFEST).exists():
                    remove_checkpoint(folder)
        return warnings

    def lineup(self, share: float, learner_seats: int | None) -> Lineup:
        """Draw who plays next: all fixed bots, and `ACTIVE` snapshots.

        Args:
            share: share of the deals that get opponents.
            learner_seats: the learner's seats in these.
        """
        fixed = self._weigh([bot.name for bot in self._bots]) * self._bot_share
        active: list[Bot] = []
        if self.snapshots:
            weights = self._weigh([bot.name for _, bot in self.snapshots])
            drawn = self._rng.choice(len(self.snapshots), size=ACTIVE, p=weights)
            active = [self.snapshots[k][1] for k in drawn]
        self._active = [*self._bots, *active]
        rest = [(1 - self._bot_share) / len(active) for _ in active]
        return Lineup(self._active, [*fixed, *rest], share if self._active else 0.0, learner_seats)

    def _weigh(self, names: Sequence[str]) -> np.ndarray:
        weights = np.array([max(self.strengths.get(name, 1.0), 0.1) ** 2 for name in names])
        return weights / weights.sum() if len(weights) else weights

    def note(self, finished: Finished) -> None:
        """Take finished deals into the record of the opponents that played them."""
        players, wins = finished.players, finished.wins
        for number, bot in enumerate(self._active, start=1):
            deals = (players == number).any(1) & (players == LEARNER).any(1)
            if not deals.any():
                continue
            theirs = np.where(players == number, wins, 0.0)[deals].sum(1)
            seats, n = (players == number)[deals].sum(1), (players >= 0)[deals].sum(1)
            relative = float((theirs * n / seats).mean())  # 1: as many wins as its seats would bring by chance
            step = 1 - (1 - _MEMORY) ** int(deals.sum())
            self.strengths[bot.name] = (1 - step) * self.strengths.get(bot.name, 1.0) + step * relative
