"""Tournaments: everyone against everyone, cross tables, ratings.

- `play_tournament`: play one, or go on with one.
- `Tournament`: what was played.
- `standings`: what it says.
- `Standings`: that, in figures.
- `Ratings`: abilities by Plackett-Luce.
"""

from devyatka_env.evaluation.tournaments.ratings import Ratings
from devyatka_env.evaluation.tournaments.results import Standings, standings
from devyatka_env.evaluation.tournaments.round_robin import Tournament, play_tournament

__all__ = [
    "Ratings",
    "Standings",
    "Tournament",
    "play_tournament",
    "standings",
]
