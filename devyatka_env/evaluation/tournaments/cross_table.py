"""Standings for people: tables on the screen, and a picture."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from devyatka_env.evaluation.display import columns, p_text, signed
from devyatka_env.evaluation.stats import Estimate, holm
from devyatka_env.evaluation.tournaments.pairings import Pairing
from devyatka_env.evaluation.tournaments.ratings import Ratings, best_of, deals_needed
from devyatka_env.evaluation.tournaments.results import MATCHES, Standings, match_chance, match_pairs
from devyatka_env.evaluation.tournaments.round_robin import Tournament

LEVEL = 0.05
# Of more entrants the screen shows matches of neighbours alone.
ALL_MATCHES = 6


def table(result: Standings, width: int) -> str:
    """All tables for a screen of so many columns. Tables with long names may be wider; text is wrapped."""
    parts = [_heading(result, width), _cross_table(result, width)]
    if result.ratings is not None and result.wins is not None:
        parts += [_ratings_table(result, result.ratings, result.wins, width), _matches_table(result, width)]
    parts.append("\n".join(_wrapped(line, width) for line in notes(result)))
    return "\n\n".join(part for part in parts if part)


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_on_hyphens=False, break_long_words=False)


def _heading(result: Standings, width: int) -> str:
    event, n = result.tournament, result.tournament.rules.num_players
    games = sum(one.deals for one in event.pairings) * n
    text = (
        f"{len(event.pairings)} pairings, one of each among {n - 1} of each other, of {event.deals:,} deals x {n}"
        f" seats, the same deals in all; {games:,} games; 95 % intervals over deals."
    )
    if event.rules.deals > 1:
        text += f" Each of the {event.rules.deals} deals of a match is counted by itself."
    return f"{event.rules}, seed {event.seed}\n{_wrapped(text, width)}"


def _cross_table(result: Standings, width: int) -> str:
    """The cross table, its columns in groups that fit the screen."""
    order, n = result.order, result.tournament.rules.num_players
    labels = [f"{place} {result.name(k)}" for place, k in enumerate(order, 1)]
    body = [[_cell_text(result, row, column) for column in order] for row in order]
    first = max(map(len, [*labels, "one among"]))
    size = max(len(text) for row in body for text in row)
    group = max(1, (width - first) // (size + 2))
    lines = []
    for start in range(0, len(order), group):
        end = min(start + group, len(order))
        heads = [f"{place}{' ' * (size // 2)}" for place in range(start + 1, end + 1)]
        rows = [["one among", *heads]]
        rows += [[label, *cells[start:end]] for label, cells in zip(labels, body, strict=True)]
        lines.append(columns(rows))
    stars = sum(cell.p_adjusted < LEVEL for cell in result.cells.values())
    text = (
        f"Win rate in percent; chance is {100 / n:.2f}. * is not chance at the {100 * LEVEL:.0f} % level, adjusted for"
        f" {len(result.cells)} cells (Holm): {stars} of them."
    )
    if any(one.failure for one in result.tournament.pairings):
        text += " ! failed."
    lines.append(_wrapped(text, width))
    return "\n\n".join(lines)


def _cell_text(result: Standings, row: int, column: int) -> str:
    cell = result.cells.get((row, column))
    if cell is None:
        ended = any(one.failure for one in result.tournament.pairings if (one.candidate, one.opponent) == (row, column))
        return "" if row == column else ("!" if ended else "-") + " " * 7
    win_rate = cell.pairing.win_rate
    mark = "!" if cell.pairing.failure else "*" if cell.p_adjusted < LEVEL else " "
    return f"{100 * win_rate.mean:.2f} ±{100 * win_rate.half_width:.2f}{mark}"


def _ratings_table(result: Standings, ratings: Ratings, wins: Ratings, width: int) -> str:
    last, ranking = len(result.rated) - 1, result.tournament.rules.num_players > 2
    leads = [ratings.difference(k, k + 1) for k in range(last)]
    adjusted = [*map(p_text, holm([lead.p_value for lead in leads])), ""]
    rows = [["   entrant", "rating", "ahead of the next", "p (Holm)", *(["by wins alone"] if ranking else [])]]
    for k, entrant in enumerate(result.rated):
        row = [f"{k + 1:2} {result.name(entrant)}", _points(ratings.rating(k))]
        row += [_points(leads[k]) if k < last else "", adjusted[k]]
        rows.append(row + ([_points(wins.rating(k))] if ranking else []))
    text = (
        "Plackett-Luce over whole rankings; 400 points more are odds of 10 to 1 to be placed before the other at one"
        " table, and 0 is the mean."
    )
    if ranking:
        text += " By wins alone: odds to win, whoever comes next."
    return "\n".join([columns(rows), *(_wrapped(line, width) for line in (text, *_fits(result, ranking)))])


def _fits(result: Standings, ranking: bool) -> list[str]:
    """How far the ratings miss the cells: one number a player cannot say everything."""
    lines = []
    for words, by in (("Ratings miss", "by_rankings"), ("By wins alone they miss", "by_wins"))[: 1 + ranking]:
        gaps = {
            key: abs(cell.pairing.win_rate.mean - value)
            for key, cell in result.cells.items()
            if (value := getattr(cell, by)) is not None
        }
        worst = result.cells[max(gaps, key=gaps.__getitem__)]
        lines.append(
            f"{words} win rates by {100 * max(gaps.values()):.2f} % at most"
            f" ({_versus(result.tournament, worst.pairing)}: {100 * getattr(worst, by):.2f} %)."
        )
    return lines


def _points(value: Estimate) -> str:
    return signed(f"{value.mean:.1f} ± {value.half_width:.1f}")


def _matches_table(result: Standings, width: int) -> str:
    rows = [["best of, the first wins", *map(str, MATCHES), "deals for 95 %"]]
    everybody = len(result.rated) <= ALL_MATCHES
    for one, other in match_pairs(result):
        if not everybody and other > one + 1:
            continue
        chance, low, high = match_chance(result, one, other)
        names = " - ".join(result.tournament.entrants[result.rated[k]].name for k in (one, other))
        half = f" ±{50 * (high - low):.1f}"
        chances = [f"{100 * best_of(chance, deals):.1f}" for deals in MATCHES]
        needed = deals_needed(chance)
        rows.append([names, chances[0] + half, *chances[1:], f"{needed:,.0f}" if needed < 1e6 else "over a million"])
    text = (
        "Chance in percent to be placed before the other in more of so many deals that both sit in, their seats drawn"
        " anew for each; by the ratings."
    )
    if not everybody:
        text += " Neighbours only: the JSON result has all pairs."
    return f"{columns(rows)}\n{_wrapped(text, width)}"


def notes(result: Standings) -> list[str]:
    """What else must be said: cheats, failures, what was not played, what the ratings do not bound."""
    event = result.tournament
    lines = [
        f"{one.name} sees all hands, so it cheats: not to be compared with bots that do not"
        for one in event.entrants
        if one.cheats
    ]
    for one in event.pairings:
        if one.failure:
            lines.append(f"! {_versus(event, one)}: ended after {one.deals:,} deals: {one.failure.message}")
    for k in sorted(event.failed):
        skipped = [one for one in event.pairings if k in (one.candidate, one.opponent) and not one.failure]
        skipped = [one for one in skipped if one.deals < event.deals]
        rest = f"; {len(skipped)} of its pairings were not played to the end" if skipped else ""
        lines.append(f"! {event.entrants[k].name} failed, so it has no rating{rest}")
    if event.interrupted:
        left = sum(one.deals < event.deals for one in event.pairings)
        lines.append(f"stopped early: {left} pairings are not finished; the same command goes on with them")
    if result.ratings is not None and len(set(result.ratings.groups.tolist())) > 1:
        lines.append(
            "some were never placed before some others, or never met them: between those the ratings have no bound"
            " (± inf)"
        )
    return lines


def _versus(event: Tournament, one: Pairing) -> str:
    return f"{event.entrants[one.candidate].name} among {event.entrants[one.opponent].name}"


# --- as a picture ----------------------------------------------------------------------------------------------------


def plot(result: Standings, path: str | Path) -> None:
    """The cross table as a heat map, the ratings with their intervals beside it (by the file's ending).

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: an ending that matplotlib does not write.
    """
    try:
        from matplotlib.colors import TwoSlopeNorm
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"plots need matplotlib: pip install 'devyatka-env[train]' ({error})") from error
    event, order, count = result.tournament, result.order, len(result.order)
    chance = 100 / event.rules.num_players
    values = [[_percent(result, row, column) for column in order] for row in order]
    names = [result.name(k) for k in order]
    height = 2.2 + 0.5 * count
    figure = Figure(figsize=(max(7.0, 4.5 + 1.15 * count), height), layout="constrained")
    cross, ladder = figure.subplots(1, 2, sharey=True, width_ratios=(max(2, count), 2.2))
    known = [value for row in values for value in row if value == value]
    spread = max([1.0, *(abs(value - chance) for value in known)])
    image = cross.imshow(
        values, cmap="RdBu", norm=TwoSlopeNorm(chance, chance - spread, chance + spread), aspect="auto"
    )
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            if value == value:
                dark = abs(value - chance) > 0.6 * spread
                cell = result.cells[order[row], order[column]]
                text = f"{value:.1f}{'*' if cell.p_adjusted < LEVEL else ''}"
                cross.text(column, row, text, ha="center", va="center", color="white" if dark else "black", fontsize=9)
    cross.set_xticks(range(count), [str(place) for place in range(1, count + 1)])
    cross.set_yticks(range(count), [f"{place} {name}" for place, name in enumerate(names, 1)])
    cross.xaxis.tick_top()
    cross.xaxis.set_label_position("top")
    cross.set_xlabel(f"win rate in %: one of the row among {event.rules.num_players - 1} of the column")
    figure.colorbar(image, ax=cross, label=f"chance {chance:.1f} %", shrink=0.9)
    _draw_ratings(result, ladder)
    figure.suptitle(f"{event.rules}, {event.deals:,} deals a pairing, seed {event.seed}", fontsize=11)
    figure.savefig(path, dpi=120)


def _percent(result: Standings, row: int, column: int) -> float:
    cell = result.cells.get((row, column))
    return float("nan") if cell is None else 100 * cell.pairing.win_rate.mean


def _draw_ratings(result: Standings, axis: Any) -> None:
    axis.axvline(0, color="grey", linestyle=":")
    axis.tick_params(left=False, top=True, labeltop=True, bottom=False, labelbottom=False)
    axis.xaxis.set_label_position("top")
    axis.set_xlabel("rating, 95 % interval")
    if result.ratings is None:
        return
    estimates = [result.ratings.rating(k) for k in range(len(result.rated))]
    halves = [one.half_width if one.half_width < float("inf") else 0.0 for one in estimates]
    axis.errorbar([one.mean for one in estimates], range(len(estimates)), xerr=halves, fmt="o", capsize=3, color="C0")
    for place, one in enumerate(estimates):
        axis.annotate(
            f"{one.mean:+.0f}", (one.mean, place), (0, 7), textcoords="offset points", ha="center", fontsize=8
        )
    axis.margins(x=0.2)
