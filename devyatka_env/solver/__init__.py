"""Exact knowledge of known hands: values, best cards and lines of play, without approximation.

- `solve`: a two-seat game: its value, every card's, and the best line.
- `Solution`: that, in figures.
- `TwoSeatTable`: all positions of a two-seat deal.
- `values_many`: the value of every action in many two-seat records.
- `best_many`: the best card in each of them.
- `margin`: what a payoff is worth beside the other seat's.
- `max_n`: 2 to 6 seats with open hands, every seat for itself.
- `MaxN`: that, in figures.
- `max_n_values`: the same of many records.
- `paranoid`: what one seat gets at least, all others against it.
- `Floor`: that, in figures.
- `paranoid_values`: the same of many records.
- `Workspace`: the memory of a solver that is asked often.
- `workspace`: one for a rule set.
- `StateLimitError`: a deal of more positions than were allowed.
"""

from devyatka_env.solver.lattice import Workspace, workspace
from devyatka_env.solver.open_hands import Floor, MaxN, max_n, max_n_values, paranoid, paranoid_values
from devyatka_env.solver.solution import Solution
from devyatka_env.solver.transpositions import StateLimitError
from devyatka_env.solver.two_seats import TwoSeatTable, best_many, margin, solve, values_many

__all__ = [
    "Floor",
    "MaxN",
    "Solution",
    "StateLimitError",
    "TwoSeatTable",
    "Workspace",
    "best_many",
    "margin",
    "max_n",
    "max_n_values",
    "paranoid",
    "paranoid_values",
    "solve",
    "values_many",
    "workspace",
]
