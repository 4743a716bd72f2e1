"""The pictures of a report, each small enough for a phone: strength by seats, seat and opening, and training curves."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from devyatka_env._files import printable
from devyatka_env.evaluation.reports.measurements import Duel
from devyatka_env.evaluation.reports.page import INK, Picture
from devyatka_env.evaluation.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, float]]

SIZE = (4.8, 3.2)  # inches; at 9 points the letters are still read on a phone
# Told apart on white and on near-black, by those who do not see red and green as well (after Okabe and Ito).
COLOURS = ("#2f7fc1", "#d5762a", "#1f9e77", "#b565a7", "#8a7a3c", "#c44e52")
GREY = "#8b949e"
_LEAST_SPAN = 0.02  # of an axis of rates over chance


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def new_figure(title: str, x: str, y: str) -> tuple[Figure, Axes]:
    """An empty picture in the page's ink.

    Raises:
        ImportError: matplotlib is not installed.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    style: dict[Any, Any] = {
        **dict.fromkeys(inked, INK),
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.facecolor": "none",
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=SIZE, layout="constrained")
        axis = figure.subplots()
        axis.set_title(title, loc="left", fontweight="bold")
        axis.set_xlabel(x)
        axis.set_ylabel(y)
        axis.tick_params(length=0)
        axis.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    return figure, axis


def _settle(figure: Figure, axis: Axes) -> None:
    """Show no difference that only rounding made; and the legend under the picture, where it hides nothing."""
    low, high = axis.get_ylim()
    if high - low < _LEAST_SPAN:
        axis.set_ylim((low + high - _LEAST_SPAN) / 2, (low + high + _LEAST_SPAN) / 2)
    figure.legend(fontsize=8, frameon=False, labelcolor=INK, ncols=4, loc="outside lower center")


def _points(
    axis: Axes, xs: Sequence[float], values: Sequence[Estimate], scale: Sequence[float], **style: object
) -> None:
    """Estimates with their intervals, each scaled."""
    halves = [one.half_width if math.isfinite(one.half_width) else 0.0 for one in values]
    axis.errorbar(
        xs,
        [one.mean * by for one, by in zip(values, scale, strict=True)],
        yerr=[half * by for half, by in zip(halves, scale, strict=True)],
        capsize=3,
        markersize=4.5,
        linewidth=1.2,
        **style,  # type: ignore[arg-type]
    )


def _chance(axis: Axes) -> None:
    axis.axhline(1, color=GREY, linestyle=(0, (4, 3)), linewidth=1.2, label="chance", zorder=1)


def strength(duels: Sequence[Duel], labels: Sequence[str], number: int) -> Picture:
    """Wins in units of chance at every table, with the ceiling where it is known."""
    field = duels[0].field
    figure, axis = new_figure(f"Wins against {_short(field)}", "", "win rate / chance")
    _chance(axis)
    places = [float(k) for k in range(len(duels))]
    counts = [float(one.rules.num_players) for one in duels]
    known = [(k, one.ceiling.mean) for k, one in enumerate(duels) if one.ceiling]
    if known:
        tops = [top * counts[k] for k, top in known]
        lefts, rights = ([k + side for k, _ in known] for side in (-0.3, 0.3))
        axis.hlines(tops, lefts, rights, color=COLOURS[1], linewidth=2, label="most possible")
    _points(axis, places, [one.win_rate for one in duels], counts, fmt="o", color=COLOURS[0], label="measured, 95 %")
    axis.set_xticks(places, labels)
    axis.set_xlim(-0.6, len(duels) - 0.4)
    axis.margins(y=0.12)
    _settle(figure, axis)
    figures = ", ".join(
        f"{label}: {one.win_rate.mean / one.chance:.3f}" for label, one in zip(labels, duels, strict=True)
    )
    return Picture(f"strength-{number}", f"Win rate over chance against {field}. {figures}", figure)


def by_seat(duels: Sequence[Duel], labels: Sequence[str], number: int) -> Picture:
    """Wins in units of chance in each seat, a line a table."""
    rates = [one.own.win_rate_by_seat for one in duels]
    figure = _lines(duels, labels, rates, ("By seat", "seat (0 is dealt the first card)", "win rate / chance"), 0)
    text = f"Win rate over chance in each seat against {duels[0].field}; figures in the table"
    return Picture(f"by-seat-{number}", text, figure)


def by_place(duels: Sequence[Duel], labels: Sequence[str], number: int) -> Picture:
    """How often it took each place, in units of chance, a line a table."""
    rates = [one.own.place_rates for one in duels]
    figure = _lines(duels, labels, rates, ("By place", "place", "share / chance"), 1)
    text = f"Share of each place over chance against {duels[0].field}"
    return Picture(f"by-place-{number}", text, figure)


def _lines(
    duels: Sequence[Duel],
    labels: Sequence[str],
    rates: Sequence[Sequence[Estimate]],
    titles: tuple[str, str, str],
    first: int,
) -> Figure:
    """A line of rates over chance for each table, from ``first`` on, the intervals side by side."""
    title, x, y = titles
    figure, axis = new_figure(f"{title}, against {_short(duels[0].field)}", x, y)
    _chance(axis)
    for k, (values, label) in enumerate(zip(rates, labels, strict=True)):
        n, shift = len(values), (k - (len(duels) - 1) / 2) * 0.06
        xs = [first + place + shift for place in range(n)]
        _points(axis, xs, values, [float(n)] * n, fmt="o-", color=COLOURS[k % len(COLOURS)], label=label)
    axis.set_xticks(range(first, first + max(map(len, rates))))
    _settle(figure, axis)
    return figure


def by_opening(duels: Sequence[Duel], labels: Sequence[str], number: int) -> Picture:
    """Wins in units of chance when opening and when not, at every table."""
    field = duels[0].field
    figure, axis = new_figure(f"Opening or not, against {_short(field)}", "", "win rate / chance")
    _chance(axis)
    counts = [float(one.rules.num_players) for one in duels]
    opening, others = ([one.own.win_rate_opening for one in duels], [one.own.win_rate_not_opening for one in duels])
    places = range(len(duels))
    _points(axis, [k - 0.1 for k in places], opening, counts, fmt="o", color=COLOURS[0], label="opening")
    _points(axis, [k + 0.1 for k in places], others, counts, fmt="s", color=COLOURS[1], label="not opening")
    axis.set_xticks(places, labels)
    axis.set_xlim(-0.6, len(duels) - 0.4)
    axis.margins(y=0.12)
    _settle(figure, axis)
    return Picture(
        f"opening-{number}", f"Win rate over chance against {field}, opening and not; figures in the table", figure
    )


def _short(name: str) -> str:
    """A name that fits over a picture: the end of a path. A dollar would begin a formula."""
    name = printable(name)
    short = name if len(name) <= 30 else "…" + name[-29:]
    return short.replace("$", r"\$")


# --- training --------------------------------------------------------------------------------------------------------

# `eval/FIELD/LABEL` with LABEL a preset, the number of seats, and where fields differ a part of the fingerprint.
_EVALUATION = re.compile(r"eval/(.+)/(\w+_([2-6])(?:_[0-9a-f]{6})?)")
_EXACT = ("regret", "mistakes")
_MISTAKES = re.compile(r"eval/mistakes/\w+_2(?:_[0-9a-f]{6})?")


def evaluations(rows: Rows) -> dict[str, dict[str, int]]:
    """Fields and rule sets that a run was evaluated with, and their numbers of seats, from its metrics."""
    found: dict[str, dict[str, int]] = {}
    for key in sorted({key for row in rows for key in row}):
        match = _EVALUATION.fullmatch(key)
        if match and match[1] not in _EXACT:
            found.setdefault(match[1], {})[match[2]] = int(match[3])
    return found


def series(rows: Rows, key: str) -> tuple[list[float], list[float]]:
    """Decisions, and the values of a key there."""
    found = [(row["decisions"], row[key]) for row in rows if key in row]
    return [x for x, _ in found], [y for _, y in found]


def training_curves(rows: Rows) -> list[Picture]:
    """Win rates, wins against snapshots, losses and speed of a run, as far as its metrics have them."""
    pictures = [
        _evaluation_curve(rows, field, tables, number)
        for number, (field, tables) in enumerate(evaluations(rows).items(), 1)
    ]
    pictures += [*_matrix_curve(rows), *_mistakes_curve(rows)]
    for name, title, key, sign in _CURVES:
        xs, ys = series(rows, key)
        if xs:
            figure, axis = new_figure(title, "decisions", "")
            axis.plot(xs, [sign * y for y in ys], color=COLOURS[0], linewidth=1.1)
            _mark_decisions(axis)
            pictures.append(Picture(f"training-{name}", f"{title}, over the decisions trained on", figure))
    return pictures


# Name, title, key of the metrics, sign.
_CURVES = (
    ("value", "Value loss", "train/value_loss", 1),
    ("policy", "Policy loss", "train/policy_gradient_loss", 1),
    ("explained", "Explained variance of the value", "train/explained_variance", 1),
    ("entropy", "Entropy of the policy (nats)", "train/entropy_loss", -1),
    ("kl", "Approximate KL of an update", "train/approx_kl", 1),
    ("lessons", "Solved positions answered right", "teacher/right", 1),
    ("speed", "Decisions trained on a second", "time/decisions_per_second", 1),
)


def _evaluation_curve(rows: Rows, field: str, tables: Mapping[str, int], number: int) -> Picture:
    figure, axis = new_figure(f"Wins against {_short(field)}", "decisions", "win rate / chance")
    _chance(axis)
    for k, (label, n) in enumerate(tables.items()):
        key, colour = f"eval/{field}/{label}", COLOURS[k % len(COLOURS)]
        xs, ys = series(rows, key)
        axis.plot(xs, [n * y for y in ys], marker=".", color=colour, linewidth=1.2, label=label)
        lows, highs = series(rows, key + "_low"), series(rows, key + "_high")
        if lows[0] == highs[0] == xs:
            axis.fill_between(
                xs, [n * y for y in lows[1]], [n * y for y in highs[1]], alpha=0.2, color=colour, linewidth=0
            )
    _mark_decisions(axis)
    _settle(figure, axis)
    return Picture(
        f"training-wins-{number}", f"Win rate over chance against {field}, over the decisions trained on", figure
    )


def _matrix_curve(rows: Rows) -> list[Picture]:
    """The learner over time against its earlier selves: a cycle would show as a fall against an old one."""
    keys = sorted({key for row in rows for key in row if key.startswith("matrix/")})
    if not keys:
        return []
    figure, axis = new_figure("Wins against earlier snapshots", "decisions", "win rate / chance")
    _chance(axis)
    for k, key in enumerate(keys):  # older ones fainter
        axis.plot(*series(rows, key), color=COLOURS[0], alpha=0.25 + 0.75 * k / max(1, len(keys) - 1), linewidth=1.1,
                  label={0: "oldest", len(keys) - 1: "newest"}.get(k, "_"))  # fmt: skip
    _mark_decisions(axis)
    _settle(figure, axis)
    text = f"Win rate over chance against {len(keys)} earlier snapshots of itself, over the decisions trained on"
    return [Picture("training-snapshots", text, figure)]


def _mistakes_curve(rows: Rows) -> list[Picture]:
    """Won two-seat deals given away, where the run counted them."""
    keys = sorted({key for row in rows for key in row if _MISTAKES.fullmatch(key)})
    if not keys:
        return []
    figure, axis = new_figure("Won deals given away, in 1,000 choices", "decisions", "")
    for k, key in enumerate(keys):
        xs, ys = series(rows, key)
        label, colour = key.rpartition("/")[2], COLOURS[k % len(COLOURS)]
        axis.plot(xs, [1000 * y for y in ys], marker=".", color=colour, linewidth=1.2, label=label)
    _mark_decisions(axis)
    _settle(figure, axis)
    text = "Won two-seat deals given away in 1,000 choices, by exact values, over the decisions trained on"
    return [Picture("training-mistakes", text, figure)]


def _mark_decisions(axis: Axes) -> None:
    """Decisions as 10k, 20M."""
    from matplotlib.ticker import EngFormatter

    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
