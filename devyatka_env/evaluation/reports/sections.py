"""The contents of a report: the verdict, and what was measured, in words, tables and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from devyatka_env.bots.checkpoint import package_versions
from devyatka_env.evaluation.display import p_text
from devyatka_env.evaluation.exact_regret import Regret
from devyatka_env.evaluation.reports import charts
from devyatka_env.evaluation.reports.measurements import CONTROL_DEALS, REFERENCE, Duel, Exact, Measurements
from devyatka_env.evaluation.reports.page import Block, Code, Line, Page, Paragraph, Pictures, Section, Table, Tile
from devyatka_env.evaluation.reports.provenance import (
    again_section,
    environment_section,
    rules_section,
    subject_section,
    training_section,
)
from devyatka_env.evaluation.reports.wording import listed, measure, per_thousand, percent, share, table_labels
from devyatka_env.evaluation.stats import holm

LEVEL = 0.05
_DUEL_CHARTS = (charts.strength, charts.by_opening, charts.by_seat, charts.by_place)


def page_of(measurements: Measurements, command: str) -> Page:
    """The report.

    Args:
        measurements: what was measured.
        command: the command that makes it again.
    """
    subject = measurements.subject
    sections = [_field_section(measurements, field, number) for number, field in enumerate(measurements.fields, 1)]
    sections += [_exact_section(measurements), training_section(subject), rules_section(measurements)]
    sections += [subject_section(subject), again_section(measurements, command), environment_section(measurements)]
    return Page(
        title=("Report on ", Code(subject.text)),
        verdict=verdict(measurements),
        notices=tuple(_notices(measurements)),
        tiles=tuple(_tiles(measurements)),
        sections=tuple(one for one in sections if one.blocks),
        footer=f"Made {measurements.time} by devyatka-env {package_versions().get('devyatka-env', '')}".rstrip(),
    )


# --- the top ---------------------------------------------------------------------------------------------------------


def verdict(measurements: Measurements) -> Line:
    """The result in a line, by the first field: above, about or below what equal players win, at the 5 % level."""
    field = measurements.fields[0]
    duels = measurements.of_field(field)
    if not duels:
        return "Nothing was measured."
    groups: dict[str, list[str]] = {"more than": [], "about": [], "less than": []}
    for one, label, p in zip(duels, _labels(duels), holm([one.p_value for one in duels]), strict=True):
        above = "more than" if one.win_rate.mean > one.chance else "less than"
        groups[above if p < LEVEL else "about"].append(label)
    words = [f"{word} its share at {_seats(labels)}" for word, labels in groups.items() if labels]
    line = (f"Wins {', '.join(words)} against ", Code(field))
    return (*line, *(piece for one in measurements.exact for piece in _exact_verdict(one.regret)), ".")


def _seats(labels: Sequence[str]) -> str:
    """Labels in a row; "seats" is said once."""
    if all(label.endswith(" seats") for label in labels):
        return listed([label.removesuffix(" seats") for label in labels]) + " seats"
    return listed([f"({label})" for label in labels])


def _exact_verdict(found: Regret) -> tuple[str, ...]:
    if not found.mattered:
        return ()
    lost = round(found.mistakes.mean * found.decisions)
    return (f"; gives away {lost:,} of {found.mattered:,} won two-seat positions that could be lost",)


def _notices(measurements: Measurements) -> Iterator[Line]:
    if measurements.interrupted:
        yield "Stopped early by Ctrl-C: this page has what was measured until then, of fewer deals or fewer fields."
    names = sorted({name for one in measurements.duels for name in one.own.cheats})
    for name in names:
        yield (Code(name), " sees all hands, so it cheats: not to be compared with bots that do not.")
    yield from measurements.notes
    if not charts.can_draw():
        yield (
            "This page has no pictures: matplotlib is not installed (",
            Code("pip install 'devyatka-env[train]'"),
            ").",
        )


def _tiles(measurements: Measurements) -> Iterator[Tile]:
    duels = measurements.of_field(measurements.fields[0])
    for one, label in zip(duels, _labels(duels), strict=True):
        most = f", at most {share(one.ceiling.mean, 1)}" if one.ceiling else ""
        note = f"against {one.field}; chance {share(one.chance, 1)}{most}"
        yield Tile(f"wins at {label}", share(one.own.win_rate.mean, 1), note)  # of the ceiling's deals
    for exact in measurements.exact:
        if exact.regret.decisions:
            note = f"in 1,000 choices at 2 seats, by exact values of {exact.regret.decisions:,}"
            yield Tile("won deals given away", f"{1000 * exact.regret.mistakes.mean:.2f}", note)


def _labels(duels: Sequence[Duel]) -> list[str]:
    return table_labels([one.rules for one in duels])


# --- strength --------------------------------------------------------------------------------------------------------


def _field_section(measurements: Measurements, field: str, number: int) -> Section:
    duels = measurements.of_field(field)
    if not duels:
        return Section("", ())
    labels = _labels(duels)
    name: Line = (
        "Each deal is played once from every seat, ",
        Code(measurements.subject.spec),
        " in one and ",
        Code(field),
        f" in all others; seed {measurements.seed}. ± is half a 95 % interval over deals.",
    )
    blocks: list[Block] = [Paragraph(name), _main_table(duels, labels)]
    if charts.can_draw():
        blocks.append(Pictures([draw(duels, labels, number) for draw in _DUEL_CHARTS]))
    return Section(f"Against {field}", (*blocks, _more_table(duels, labels), _seat_table(duels, labels)))


def _main_table(duels: Sequence[Duel], labels: Sequence[str]) -> Table:
    limits = any(one.ceiling for one in duels)
    compared = any(len(one.comparison.evaluations) > 1 for one in duels)
    head: list[Line] = ["table", "chance", "wins", "luck-adjusted", "p (Holm)"]
    head += ["most possible", "gain reached"] if limits else []
    head += [("more than ", Code(REFERENCE), " there")] if compared else []
    rows = []
    for one, label, p in zip(duels, labels, holm([one.p_value for one in duels]), strict=True):
        row: list[Line] = [label, share(one.chance), percent(one.own.win_rate)]
        row += [percent(one.adjusted) if one.adjusted else "–", p_text(p)]
        row += _limit_cells(one) if limits else []
        row += [_difference_cell(one)] if compared else []
        rows.append(row)
    caption = (
        "p: that the wins are chance, adjusted for the number of tables (Holm). Luck-adjusted: freed of what scripted"
        " bots and, where it is known, the ceiling tell of the luck of these deals, measured on"
        f" {CONTROL_DEALS} times as many."
    )
    if limits:
        caption += (
            " Most possible: the exact best response to this field, seeing all hands; gain reached is the part of the"
            " way from chance to it."
        )
    return Table(head, rows, caption)


def _limit_cells(one: Duel) -> list[Line]:
    return [percent(one.ceiling) if one.ceiling else "–", percent(one.gain, 1) if one.gain else "–"]


def _difference_cell(one: Duel) -> Line:
    differences = one.comparison.differences
    return percent(differences[0].win_rate, signed=True) if differences else "–"


def _more_table(duels: Sequence[Duel], labels: Sequence[str]) -> Table:
    head = ("table", "wins opening", "wins not opening", "mean place", "mean payoff", "cards left", "deals", "games")
    rows = [
        [
            label,
            percent(one.own.win_rate_opening),
            percent(one.own.win_rate_not_opening),
            measure(one.own.mean_place),
            measure(one.own.mean_payoff),
            measure(one.own.mean_cards_left),
            f"{one.own.deals:,}",
            f"{one.own.games:,}",
        ]
        for one, label in zip(duels, labels, strict=True)
    ]
    return Table(head, rows)


def _seat_table(duels: Sequence[Duel], labels: Sequence[str]) -> Table:
    seats = max(one.rules.num_players for one in duels)
    rows = []
    for one, label in zip(duels, labels, strict=True):
        cells = [percent(value) for value in one.own.win_rate_by_seat]
        rows.append([label, *cells, *[""] * (seats - len(cells))])
    caption = (
        "Wins by seat. The first card is dealt to seat 0, so seats differ in their number of cards and in who opens."
    )
    return Table(("table", *(f"seat {seat}" for seat in range(seats))), rows, caption)


def _exact_section(measurements: Measurements) -> Section:
    if not measurements.exact:
        return Section("", ())
    first = measurements.exact[0].regret
    blocks: list[Block] = [
        Paragraph(
            "With two seats and the whole pack dealt every position has an exact value, so every choice of the bot,"
            f" playing itself over {first.match.deals:,} deals, is held against the best card. A choice mattered when"
            " the deal was won and some legal card would have given it away. A perfect player wins half its games"
            " against perfect play, and half against the best response, which sees all hands and knows the bot's play:"
            " what is lacking there is how far the bot can be exploited."
        )
    ]
    for one in measurements.exact:
        blocks.append(Table((Code(str(one.rules)), "measured", "perfect", "of"), _exact_rows(one)))
        if one.rules.cards_per_seat is not None and 2 * one.rules.cards_per_seat < one.rules.deck.num_cards:
            blocks.append(
                Paragraph("Cards are out of play here: these are values of open hands, unknown to the seats.")
            )
    return Section("Against perfect play", blocks)


def _exact_rows(one: Exact) -> list[list[Line]]:
    lost = one.regret
    choices = f"{lost.decisions:,} choices"
    rows: list[list[Line]] = [
        ["value lost a choice", measure(lost.value_lost, 5), "0", choices],
        ["won deals given away, in 1,000 choices", per_thousand(lost.mistakes), "0", choices],
        ["given away where it mattered", percent(lost.mistakes_of_mattered), "0 %", f"{lost.mattered:,} choices"],
    ]
    for name, part in (("perfect play", one.against_oracle), ("the best response to it", one.best_response)):
        if part and part.deals:
            rows.append([f"wins against {name}", percent(part.win_rate), "50 %", f"{part.deals:,} deals"])
    if one.best_response is None:
        rows.append(
            ["wins against the best response to it", ("not searched: see ", Code("devyatka exact")), "50 %", ""]
        )
    elif one.best_response.unknown:
        rows.append(["wins against the best response to it", "not known: it plays by chance", "50 %", ""])
    return rows
