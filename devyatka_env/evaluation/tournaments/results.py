"""What a tournament says: the cells of its cross table, ratings, chances in a match; and these as a result file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from devyatka_env.engine.seeds import seed_value
from devyatka_env.evaluation.duplicate import FIGURES
from devyatka_env.evaluation.results import estimate_values, header, number, rules_values
from devyatka_env.evaluation.stats import Estimate, holm
from devyatka_env.evaluation.tournaments.pairings import Pairing
from devyatka_env.evaluation.tournaments.ratings import Pair, Ratings, before, best_of, deals_needed, fit, place_chances
from devyatka_env.evaluation.tournaments.round_robin import Tournament

MATCHES = (1, 3, 5, 11, 101)


@dataclass(frozen=True)
class Cell:
    """A cell of the cross table.

    Attributes:
        pairing: what was played.
        p_adjusted: that the win rate is chance, adjusted for the number of cells (`stats.holm`).
        by_rankings: the win rate by the ratings over whole rankings; ``None`` where one of the two has none.
        by_wins: that by the ratings over wins alone.
    """

    pairing: Pairing
    p_adjusted: float
    by_rankings: float | None = None
    by_wins: float | None = None


@dataclass(frozen=True)
class Standings:
    """A tournament's table.

    Attributes:
        tournament: what was played.
        order: numbers of the entrants, best first; those without a rating last.
        rated: of those the ones with a rating, best first: whoever played and did not fail.
        ratings: theirs over whole rankings, by position in ``rated``; ``None`` for less than two.
        wins: theirs over wins alone.
        cells: by candidate and opponent, of the pairings with a deal.
    """

    tournament: Tournament
    order: tuple[int, ...]
    rated: tuple[int, ...]
    ratings: Ratings | None
    wins: Ratings | None
    cells: dict[tuple[int, int], Cell]

    def name(self, entrant: int) -> str:
        """An entrant's name, with a word on cheating."""
        one = self.tournament.entrants[entrant]
        return one.name + (" (cheats)" if one.cheats else "")


def standings(tournament: Tournament) -> Standings:
    """Rate the entrants.

    Raises:
        ImportError: SciPy is not installed.
    """
    played = [one for one in tournament.pairings if one.deals]
    usable = [one for one in played if not {one.candidate, one.opponent} & tournament.failed]
    rated = sorted({k for one in usable for k in (one.candidate, one.opponent)})
    ratings = wins = None
    if rated:
        best = np.argsort(-_fit(usable, rated).abilities, kind="stable")
        rated = [rated[k] for k in best]
        ratings, wins = _fit(usable, rated), _fit(usable, rated, wins_alone=True)
    n = tournament.rules.num_players
    adjusted = holm([_difference_to(one.win_rate, 1 / n).p_value for one in played])
    cells = {
        (one.candidate, one.opponent): Cell(one, p, _expected(ratings, rated, one, n), _expected(wins, rated, one, n))
        for one, p in zip(played, adjusted, strict=True)
    }
    rest = [k for k in range(len(tournament.entrants)) if k not in rated]
    return Standings(tournament, (*rated, *rest), tuple(rated), ratings, wins, cells)


def _fit(pairings: Sequence[Pairing], rated: Sequence[int], *, wins_alone: bool = False) -> Ratings:
    pairs = [Pair(rated.index(one.candidate), rated.index(one.opponent), one.places) for one in pairings]
    return fit(pairs, len(rated), wins_alone=wins_alone)


def _expected(ratings: Ratings | None, rated: Sequence[int], one: Pairing, num_players: int) -> float | None:
    """The win rate of a pairing by ratings."""
    if ratings is None or not {one.candidate, one.opponent} <= set(rated):
        return None
    abilities = ratings.abilities
    gap = abilities[rated.index(one.candidate)] - abilities[rated.index(one.opponent)]
    return float(place_chances(float(gap), num_players)[0])


def _difference_to(estimate: Estimate, value: float) -> Estimate:
    """An estimate less a constant; what only rounding keeps from it is 0."""
    mean = estimate.mean - value
    mean = 0.0 if abs(mean) < 1e-12 else mean
    return dataclasses.replace(estimate, mean=mean, low=estimate.low - value, high=estimate.high - value)


def match_pairs(result: Standings) -> list[tuple[int, int]]:
    """All pairs of positions in ``rated``, the better one first."""
    count = len(result.rated)
    return [(k, other) for k in range(count) for other in range(k + 1, count)]


def match_chance(result: Standings, one: int, other: int) -> tuple[float, float, float]:
    """The chance of a position in ``rated`` to be placed before another in a deal by the ratings, and its interval."""
    assert result.ratings is not None
    difference = result.ratings.difference(one, other)
    return before(difference.mean), before(difference.low), before(difference.high)


# --- as a result file ------------------------------------------------------------------------------------------------


def standings_result(result: Standings) -> dict[str, Any]:
    """Standings as a result of kind ``standings``."""
    event = result.tournament
    names = [one.name for one in event.entrants]
    return {
        **header("standings"),
        **rules_values(event.rules),
        "seed": seed_value(event.seed),
        "deals": event.deals,
        "interrupted": event.interrupted,
        "replaced": list(event.replaced),
        "entrants": [_entrant_values(result, k) for k in result.order],
        "pairings": [
            {
                "candidate": names[one.candidate],
                "opponent": names[one.opponent],
                "deals": one.deals,
                "games": one.deals * event.rules.num_players,
                "seconds": round(one.seconds, 4),
                "failure": one.failure and dataclasses.asdict(one.failure),
                **_pairing_values(one, event.rules.num_players),
                **_cell_values(result.cells.get((one.candidate, one.opponent))),
            }
            for one in event.pairings
        ],
        "matches": _match_values(result),
    }


def _entrant_values(result: Standings, entrant: int) -> dict[str, Any]:
    values: dict[str, Any] = dataclasses.asdict(result.tournament.entrants[entrant])
    values["failed"] = entrant in result.tournament.failed
    for name, ratings in (("rating", result.ratings), ("rating_by_wins", result.wins)):
        values |= {name: None, f"{name}_ci95": None}
        if ratings is not None and entrant in result.rated:
            values |= estimate_values(name, ratings.rating(result.rated.index(entrant)))
    return values


def _pairing_values(one: Pairing, num_players: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for column, name in enumerate(FIGURES):
        values |= estimate_values(name, one.moments.column(column))
    for name, start in (("win_rate_by_seat", len(FIGURES)), ("place_rates", len(FIGURES) + num_players)):
        parts = [one.moments.column(start + k) for k in range(num_players)]
        values[name] = [number(part.mean) for part in parts]
        values[f"{name}_ci95"] = [[number(part.low), number(part.high)] for part in parts]
    return values


def _cell_values(cell: Cell | None) -> dict[str, Any]:
    return {
        "p_adjusted": cell and cell.p_adjusted,
        "win_rate_by_rating": cell and cell.by_rankings,
        "win_rate_by_rating_by_wins": cell and cell.by_wins,
    }


def _match_values(result: Standings) -> list[dict[str, Any]]:
    if result.ratings is None:
        return []
    found = []
    for one, other in match_pairs(result):
        chance, low, high = match_chance(result, one, other)
        needed = deals_needed(chance)
        found.append(
            {
                "better": result.tournament.entrants[result.rated[one]].name,
                "other": result.tournament.entrants[result.rated[other]].name,
                **estimate_values("rating_difference", result.ratings.difference(one, other)),
                "before": chance,
                "before_ci95": [low, high],
                "best_of": {str(deals): best_of(chance, deals) for deals in MATCHES},
                "deals_for_95_percent": number(needed),
            }
        )
    return found
