"""Exact knowledge of known hands: values, best cards and lines of play, without approximation."""

from devyatka_env.solver.lattice import Workspace, workspace
from devyatka_env.solver.memo import StateLimitError
from devyatka_env.solver.open_hands import Floor, MaxN, max_n, max_n_values, paranoid, paranoid_values
from devyatka_env.solver.solution import Solution
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
