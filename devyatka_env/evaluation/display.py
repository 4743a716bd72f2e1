"""Comparisons as a table on the screen, and as a plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from devyatka_env._files import write_figure
from devyatka_env.evaluation.arena import Comparison, Difference, Evaluation


def table(comparison: Comparison) -> str:
    """Candidates against one field side by side: a row each, every figure with its 95 % interval."""
    evaluations: Sequence[Evaluation] = comparison.evaluations
    first = evaluations[0]
    n = first.rules.num_players
    heading = (
        f"{first.rules}, against {field_name(first)}\n{first.deals:,} deals x {n} seats = {first.games:,} games,"
        f" seed {first.seed}; 95 % intervals over deals; chance {1 / n:.4f}"
    )
    if first.rules.deals > 1:
        heading += f"\neach of the {first.rules.deals} deals of a match is counted by itself"
    notes, evaluations = _notes(evaluations), [one for one in evaluations if one.deals]
    parts = [heading]
    if evaluations:
        parts += map(columns, (_totals(evaluations), _by_seat(evaluations), _by_opener(evaluations)))
    if any(one.adjusted for one in evaluations):
        parts.append(columns(_adjusted(evaluations)))
    if comparison.differences:
        parts.append(columns(_differences(comparison.differences)))
    return "\n\n".join([*parts, *(["\n".join(notes)] if notes else [])])


def summary(comparisons: Sequence[Comparison]) -> str:
    """The win rates of the same candidates at several tables, a column each."""
    rows = [["win rate", *(f"{one.evaluations[0].rules.num_players} seats" for one in comparisons)]]
    for k, first in enumerate(comparisons[0].evaluations):
        rows.append([shown(first), *(str(one.evaluations[k].win_rate) for one in comparisons)])
    rows.append(["chance", *(f"{1 / one.evaluations[0].rules.num_players:.4f}" for one in comparisons)])
    return columns(rows)


def _totals(evaluations: Sequence[Evaluation]) -> list[list[str]]:
    rows = [["candidate", "win rate", "mean place", "mean payoff", "cards left", "games/s"]]
    for one in evaluations:
        figures = (one.win_rate, one.mean_place, one.mean_payoff, one.mean_cards_left)
        rows.append([shown(one), *map(str, figures), f"{one.games / max(one.seconds, 1e-9):,.0f}"])
    return rows


def _by_seat(evaluations: Sequence[Evaluation]) -> list[list[str]]:
    seats = range(evaluations[0].rules.num_players)
    rows = [["win rate by seat", *(f"seat {seat}" for seat in seats)]]
    return rows + [[shown(one), *map(str, one.win_rate_by_seat)] for one in evaluations]


def _by_opener(evaluations: Sequence[Evaluation]) -> list[list[str]]:
    rows = [["win rate when", "opening", "not opening"]]
    return rows + [[shown(one), str(one.win_rate_opening), str(one.win_rate_not_opening)] for one in evaluations]


def _adjusted(evaluations: Sequence[Evaluation]) -> list[list[str]]:
    rows = [["luck-adjusted", "win rate", "variance less by", "from deals"]]
    for one in evaluations:
        if one.adjusted:
            factor = f"{one.adjusted.variance_ratio:.2f} x"
            rows.append([shown(one), str(one.adjusted.mean), factor, f"{one.adjusted.count:,}"])
    return rows


def _differences(differences: Sequence[Difference]) -> list[list[str]]:
    """The paired differences; p-values are adjusted for their number."""
    rows = [["paired difference to", "win rate", "mean payoff", "p (Holm)"]]
    for one in differences:
        rows.append([one.reference, signed(one.win_rate), signed(one.mean_payoff), p_text(one.p_adjusted)])
    return rows


def _notes(evaluations: Sequence[Evaluation]) -> list[str]:
    cheats = sorted({name for one in evaluations for name in one.cheats})
    notes = [f"{name} sees all hands, so it cheats: not to be compared with bots that do not" for name in cheats]
    for one in evaluations:
        if one.failure:
            notes.append(f"{one.candidate}: ended after {one.deals:,} deals: {one.failure.message}")
        elif one.interrupted:
            notes.append(f"{one.candidate}: stopped early, after {one.deals:,} deals")
    return notes


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells under each other, the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def signed(value: object) -> str:
    """An estimate of a difference, its sign always shown."""
    text = str(value)
    return text if text.startswith("-") else "+" + text


def p_text(p: float) -> str:
    """A p-value in a few characters."""
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}"


def shown(one: Evaluation) -> str:
    """A candidate's name, with a word on cheating."""
    return one.candidate + (" (cheats)" if one.candidate in one.cheats else "")


def field_name(one: Evaluation) -> str:
    """The opponents in words."""
    names = one.against
    return f"{len(names)} x {names[0]}" if len(set(names)) == 1 else ", ".join(names)


def plot(comparison: Comparison, path: str | Path) -> None:
    """Win rates with their intervals, overall and by seat, as a PNG, SVG or PDF (by the file's ending).

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: an ending that matplotlib does not write.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"plots need matplotlib: pip install 'devyatka-env[train]' ({error})") from error
    evaluations = comparison.evaluations
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
            label=shown(one),
        )
    axis.axhline(1 / n, color="grey", linestyle=":", label="chance")
    axis.set_xticks(range(len(groups)), groups)
    axis.set_ylabel("win rate, 95 % interval")
    axis.set_title(f"{evaluations[0].rules}, against {field_name(evaluations[0])}, {evaluations[0].deals:,} deals")
    figure.legend(loc="outside lower center", ncols=4)
    write_figure(figure, path, dpi=120)
