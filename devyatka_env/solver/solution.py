"""What solvers are asked and what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

import numpy as np

from devyatka_env.game import Game
from devyatka_env.rules import Rules


@dataclass(frozen=True, eq=False)
class Frozen:
    """A base for frozen dataclasses whose mappings and arrays must not be changed either.

    Copies and pickles are made anew from the fields, so these are frozen as well. (`dataclasses.asdict` and `json` do
    not take such mappings; ``dict(...)`` gives a plain one.)
    """

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Mapping):
                object.__setattr__(self, field.name, MappingProxyType(dict(value)))
            elif isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        values = [getattr(self, field.name) for field in fields(self)]
        return type(self), tuple(dict(value) if isinstance(value, MappingProxyType) else value for value in values)


@dataclass(frozen=True)
class Solution(Frozen):
    """The exact values of a position, and what they cost.

    Attributes:
        value: what the seat to move gets, in the units of the rules' payoff; from `two_seats.solve`, for ``cards`` and
            ``points``, its payoff less the other seat's.
        values: the same for each of its legal actions, by action id, ascending.
        best: the actions of the highest value, ascending.
        line: a line of best play from here to the end of the deal, as action ids; of equal actions the lowest.
        states: positions visited.
        seconds: time taken by the search; loading or compiling its kernels is not counted.
    """

    value: float
    values: Mapping[int, float]
    best: tuple[int, ...]
    line: tuple[int, ...]
    states: int
    seconds: float


def check_game(game: Game) -> None:
    """Refuse what is no running deal.

    Raises:
        ValueError: no `Game`, or one that is over.
    """
    if not isinstance(game, Game):
        raise ValueError(f"game must be a Game (from Game.deal, from_hands or from_position), not {game!r}")
    if game.is_over:
        raise ValueError(f"the deal is over: there is nothing left to solve in {game.position}")


def small_deal(payoff: str = "win") -> Game:
    """A two-seat position with choices for both: solving it loads or compiles kernels before a clock starts."""
    rules = Rules.of("first_out", num_players=2, num_suits=2, ranks="789TJ", payoff=payoff)
    return Game.deal(rules).play("9♦")
