"""The opponents of self-play: snapshots of the learner on disk, and scripted bots."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Sequence
from pathlib import Path

from devyatka_env.bots import Bot, PolicyBot, make_bot
from devyatka_env.bots.network import PolicyNetwork


class OpponentPool:
    """Snapshots that play as the learner did, sampling their cards, next to scripted bots.

    Of more than ``size`` snapshots the one whose neighbours in time are closest is dropped, so that what remains is
    spread over the whole run: old habits stay punished, and cycles show.

    Attributes:
        snapshots: decisions trained at each snapshot, and its bot.
    """

    def __init__(self, folder: Path, bots: Sequence[str], bot_share: float, size: int) -> None:
        self._folder = folder
        self._bots = [make_bot(name) for name in bots]
        self._bot_share = bot_share
        self._size = size
        self.snapshots: list[tuple[int, PolicyBot]] = []

    def path(self, step: int) -> Path:
        """The checkpoint folder of the snapshot taken at ``step``."""
        return self._folder / f"{step:012d}"

    def add(self, step: int, network: PolicyNetwork) -> None:
        """Take a snapshot; for a resumed run its checkpoint must stand at `path`."""
        self.snapshots.append((step, PolicyBot(copy.deepcopy(network), sample=True, name=f"snapshot {step}")))
        while len(self.snapshots) > self._size:
            steps = [0, *(step for step, _ in self.snapshots)]
            middle = range(len(self.snapshots) - 1)
            gone = min(middle, key=lambda i: steps[i + 2] - steps[i], default=0)
            shutil.rmtree(self.path(self.snapshots.pop(gone)[0]), ignore_errors=True)

    def restore(self, up_to: int) -> None:
        """Load the snapshots on disk, taken at or before ``up_to`` decisions; later ones are removed."""
        folders = sorted(path for path in self._folder.glob("[0-9]*") if path.name.isdigit())
        for folder in folders:
            step = int(folder.name)
            if step > up_to:
                shutil.rmtree(folder)
            else:
                self.add(step, PolicyBot.load(folder).network)

    def lineup(self) -> tuple[list[Bot], list[float]]:
        """The bots and the probability of each to take a seat; half of the snapshots' share is the latest one's.

        There must be a snapshot.
        """
        share = self._bot_share if self._bots else 0.0
        bots: list[Bot] = [*self._bots, *(bot for _, bot in self.snapshots)]
        weights = [share / len(self._bots)] * len(self._bots) if self._bots else []
        count = len(self.snapshots)
        old = (1 - share) / 2 / (count - 1) if count > 1 else 0.0
        weights += [old] * (count - 1) + [1 - share - old * (count - 1)]
        return bots, weights
