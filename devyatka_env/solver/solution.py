"""What solvers are asked and what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np

from devyatka_env.engine import STATE_DTYPE, States
from devyatka_env.engine.checks import fault_of
from devyatka_env.games import Game
from devyatka_env.rules import Rules


@dataclass(frozen=True, eq=False)
class Frozen:
    """A base for frozen dataclasses whose mappings and arrays must not be changed either.

    Mappings have no hash: a dataclass that compares by value leaves them out of its own (``field(hash=False)``).
    Copies and pickles are made anew from the fields, so these are frozen as well. (`dataclasses.asdict` and `json` do
    not take such mappings; ``dict(...)`` gives a plain one.)
    """

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, Mapping):
                object.__setattr__(self, one.name, MappingProxyType(dict(value)))
            elif isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        values = [getattr(self, one.name) for one in fields(self)]
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
    values: Mapping[int, float] = field(hash=False)
    best: tuple[int, ...]
    line: tuple[int, ...]
    states: int
    seconds: float


def check_game(game: Game) -> None:
    """Refuse what is no running deal with all hands known.

    Raises:
        ValueError: no `Game`, one that is over, or one whose record is a view's or not of its rules.
    """
    if not isinstance(game, Game):
        raise ValueError(f"game must be a Game (from Game.deal, from_hands or from_position), not {game!r}")
    if game.is_over:
        raise ValueError(f"the deal is over: there is nothing left to solve in {game.position}")
    fault = fault_of(game.states, game.rules, full=True)
    if fault is not None:
        raise ValueError(f"the record of the game {fault[1]}")


def check_states(states: States, rules: Rules) -> None:
    """Refuse records that the kernels would misread.

    Raises:
        ValueError: no array ``[B]`` of `records.STATE_DTYPE`; or a record that is not of a deal of ``rules``, that
            contradicts itself, or in which a hand is blank: a view's. The message names the record.
    """
    if not isinstance(states, np.ndarray) or states.dtype != STATE_DTYPE or states.ndim != 1:
        shown = f"{states.dtype} of shape {states.shape}" if isinstance(states, np.ndarray) else repr(states)
        raise ValueError(f"states must be an array [B] of STATE_DTYPE, not {shown}")
    fault = fault_of(states, rules, full=True)
    if fault is not None:
        raise ValueError(f"record {fault[0]} {fault[1]}")


def small_deal(payoff: str = "win") -> Game:
    """A two-seat position with choices for both: solving it loads or compiles kernels before a clock starts."""
    rules = Rules.of("first_out", num_players=2, num_suits=2, ranks="789TJ", payoff=payoff)
    return Game.deal(rules).play("9♦")
