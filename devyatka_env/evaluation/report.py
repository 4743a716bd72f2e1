"""Evaluations as a table, as JSON, and as a plot."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from devyatka_env.bots.checkpoint import git_commit, package_versions
from devyatka_env.evaluation.arena import Evaluation
from devyatka_env.evaluation.stats import Estimate

RESULT_FORMAT = 1


def table(evaluations: Sequence[Evaluation]) -> str:
    """Evaluations of one field side by side: a row a candidate, each figure with its 95 % interval."""
    first = evaluations[0]
    n = first.rules.num_players
    totals = [["candidate", "win rate", "mean place", "mean payoff", "cards left", "games/s"]]
    by_seat = [["win rate by seat", *(f"seat {seat}" for seat in range(n))]]
    by_opener = [["win rate when", "opening", "not opening"]]
    for one in evaluations:
        figures = (one.win_rate, one.mean_place, one.mean_payoff, one.mean_cards_left)
        totals.append([_shown(one), *map(str, figures), f"{one.games / max(one.seconds, 1e-9):,.0f}"])
        by_seat.append([_shown(one), *map(str, one.win_rate_by_seat)])
        by_opener.append([_shown(one), str(one.win_rate_opening), str(one.win_rate_not_opening)])
    cheats = sorted({name for one in evaluations for name in one.cheats})
    notes = [f"{name} sees all hands, so it cheats: not to be compared with bots that do not" for name in cheats]
    notes += [f"{one.candidate}: stopped early, after {one.deals:,} deals" for one in evaluations if one.interrupted]
    heading = (
        f"{first.rules}, against {_field(first)}\n{first.deals:,} deals x {n} seats = {first.games:,} games,"
        f" seed {first.seed}; 95 % intervals over deals; chance {1 / n:.4f}"
    )
    if first.rules.deals > 1:
        heading += f"\neach of the {first.rules.deals} deals of a match is counted by itself"
    parts = [heading, *map(_columns, (totals, by_seat, by_opener)), *(["\n".join(notes)] if notes else [])]
    return "\n\n".join(parts)


def _columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells under each other, the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _shown(one: Evaluation) -> str:
    return one.candidate + (" (cheats)" if one.candidate in one.cheats else "")


def _field(one: Evaluation) -> str:
    names = one.against
    return f"{len(names)} x {names[0]}" if len(set(names)) == 1 else ", ".join(names)


def to_json(evaluation: Evaluation, references: Sequence[Evaluation] = ()) -> dict[str, Any]:
    """An evaluation as JSON values, with its reference rows and what is needed to reproduce it."""
    return {
        "format": RESULT_FORMAT,
        **_figures(evaluation),
        "rules": evaluation.rules.to_dict(),
        "rules_fingerprint": evaluation.rules.fingerprint,
        "references": [_figures(one) for one in references],
        "versions": package_versions(),
        "commit": git_commit(),
    }


def _figures(one: Evaluation) -> dict[str, Any]:
    values: dict[str, Any] = {
        "candidate": one.candidate,
        "against": list(one.against),
        "seed": one.seed,
        "deals": one.deals,
        "games": one.games,
        "seconds": round(one.seconds, 4),
        "interrupted": one.interrupted,
        "cheats": list(one.cheats),
    }
    for field in dataclasses.fields(one):
        value = getattr(one, field.name)
        if isinstance(value, Estimate):
            values[field.name] = _number(value.mean)
            values[f"{field.name}_ci95"] = [_number(value.low), _number(value.high)]
    values["win_rate_by_seat"] = [_number(e.mean) for e in one.win_rate_by_seat]
    values["win_rate_by_seat_ci95"] = [[_number(e.low), _number(e.high)] for e in one.win_rate_by_seat]
    return values


def _number(value: float) -> float | None:
    """A float as JSON has it: NaN and infinity become null."""
    return value if abs(value) < float("inf") else None


def plot(evaluations: Sequence[Evaluation], path: str | Path) -> None:
    """Win rates with their intervals, overall and by seat, as a PNG, SVG or PDF (by the file's ending).

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: an ending that matplotlib does not write.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"plots need matplotlib: pip install 'devyatka-env[train]' ({error})") from error
    n = evaluations[0].rules.num_players
    figure = Figure(figsize=(9, 4), layout="constrained")
    axis = figure.subplots()
    groups = ["all seats", *(f"seat {seat}" for seat in range(n)), "opening", "not opening"]
    for k, one in enumerate(evaluations):
        estimates = [one.win_rate, *one.win_rate_by_seat, one.win_rate_opening, one.win_rate_not_opening]
        places = [i + (k - (len(evaluations) - 1) / 2) * 0.8 / len(evaluations) for i in range(len(groups))]
        axis.bar(
            places,
            [e.mean for e in estimates],
            0.8 / len(evaluations),
            yerr=[e.half_width if e.count > 1 else 0.0 for e in estimates],
            capsize=2,
            label=_shown(one),
        )
    axis.axhline(1 / n, color="grey", linestyle=":", label="chance")
    axis.set_xticks(range(len(groups)), groups)
    axis.set_ylabel("win rate, 95 % interval")
    axis.set_title(f"{evaluations[0].rules}, against {_field(evaluations[0])}, {evaluations[0].deals:,} deals")
    figure.legend(loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=120)
