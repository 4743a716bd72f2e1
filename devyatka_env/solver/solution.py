"""What a solver answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Solution:
    """The exact values of a position, and what they cost.

    Attributes:
        value: what the seat to move gets, in the units of the rules' payoff; from `two_seats.solve`, for ``cards`` and
            ``points``, its payoff less the other seat's.
        values: the same for each of its legal actions, by action id, ascending.
        best: the actions of the highest value, ascending.
        line: a line of best play from here to the end of the deal, as action ids; of equal actions the lowest.
        states: positions visited.
        seconds: time taken.
    """

    value: float
    values: Mapping[int, float]
    best: tuple[int, ...]
    line: tuple[int, ...]
    states: int
    seconds: float
