"""What a bot is: one that chooses a card from what its seat may know.

A bot implements `Bot.act`. A faster one also overrides `Bot.act_batch`, which serves many games in one call; arena,
environments and training call only `act_batch`, so a bot plays alike in each of them.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine import States
from devyatka_env.rules import Rules
from devyatka_env.views import PlayerView

ActFunction = Callable[[PlayerView, np.random.Generator], int]


class Bot(ABC):
    """A player of one seat.

    Attributes:
        name: how tables and reports call it.
        source: the rule pages whose advice it follows (docs/rules.md); "" for none.
        sees_all_hands: True for a bot that is shown the hands (an oracle): a cheat, named as such in every report.
        deterministic: True for a bot whose choice is a function of the view: it uses no randomness and keeps no memory.
            An exact best response (`devyatka_env.bots.ceiling_values`) exists only against such bots.
        reads_history: False for a bot that looks at nothing but its hand, its legal cards, the table, who laid which of
            its cards, and how many each seat has left: to it a position is the same however it came about.
        reads_order: False for a bot that doesn't look at the order in which the cards were laid (`PlayerView.laid`).
    """

    name: str
    source: ClassVar[str] = ""
    sees_all_hands: ClassVar[bool] = False
    deterministic: bool = False
    reads_history: ClassVar[bool] = True
    reads_order: ClassVar[bool] = True

    @abstractmethod
    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        """Choose an action for ``view.seat``, which is on turn: one of ``view.legal_actions()``."""

    def act_batch(self, views: States, rules: Rules, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Choose an action for the seat on turn in every view record.

        Args:
            views: ``[B]`` view records of `records.STATE_DTYPE`, blanked for their mover.
            rules: the rule set of all of them.
            words: ``uint64 [B]``, the randomness of each decision.

        Returns:
            ``int64 [B]`` actions.
        """
        actions = np.empty(len(views), np.int64)
        for i, word in enumerate(words):
            view = PlayerView._of(views[i : i + 1].copy(), rules, int(views["turn"][i]))
            answer = self.act(view, np.random.Generator(np.random.PCG64(int(word))))
            actions[i] = whole_action(answer, self.name)
        return actions

    def check_rules(self, rules: Rules) -> None:  # noqa: B027 - most bots play anything
        """Refuse rule sets that this bot does not play.

        Raises:
            ValueError: it does not play ``rules``.
        """

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class CallableBot(Bot):
    """A function ``(view, rng) -> action`` as a bot; ``deterministic`` is the caller's word that it draws nothing."""

    def __init__(self, function: ActFunction, name: str | None = None, *, deterministic: bool = False) -> None:
        self._function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.deterministic = deterministic

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        """Ask the function."""
        return whole_action(self._function(view, rng), self.name)


def whole_action(answer: object, name: str) -> int:
    """What a bot answered, as an ``int``; one that the engine can refuse if it is no action.

    Raises:
        TypeError: no whole number (3.9 and "3" are none, nor is ``True``).
    """
    try:
        if isinstance(answer, bool | np.bool_):
            raise TypeError
        number = operator.index(answer)  # type: ignore[arg-type]  # it is to say
    except TypeError:
        shown = " ".join(repr(answer).split())[:80]
        raise TypeError(f"bot {name} answered {shown}, which is no whole number: not an action") from None
    return number if -1 <= number <= 255 else -1


def unit_interval(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Random words as uniform numbers in [0, 1), ``float64 [B]``."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
