"""Training curves as one PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # no screen needed

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from devyatka_env._files import write_figure
from devyatka_env.learning.config import TrainConfig
from devyatka_env.learning.run_folder import label

Rows = Sequence[Mapping[str, float]]


def draw_curves(rows: Rows, config: TrainConfig, path: Path) -> None:
    """Draw strength with intervals, the matrix of snapshots, entropy, explained variance and speed over decisions."""
    figure = Figure(figsize=(13, 7), layout="constrained")
    axes = figure.subplots(2, 3).flatten()
    last = config.eval_against[-1]
    for rules in config.parsed_rules:
        key = f"eval/{last}/{label(rules)}_strength"
        x, y = _series(rows, key)
        low, high = _series(rows, key + "_low")[1], _series(rows, key + "_high")[1]
        axes[0].plot(x, y, marker=".", label=label(rules))
        axes[0].fill_between(x, low, high, alpha=0.25)
    axes[0].axhline(1, color="grey", linestyle=":", label="par")
    axes[0].legend(fontsize="small")
    axes[0].set_title(f"strength against {last}, 1 = par (95 % interval)")
    _matrix(axes[1], rows)
    _plot(axes[2], rows, "train/entropy_loss", "entropy (nats)", sign=-1)
    _plot(axes[3], rows, "train/explained_variance", "explained variance of the value")
    _plot(axes[4], rows, "train/approx_kl", "approximate KL of an update")
    _plot(axes[5], rows, "time/moves_per_second", "moves per second, all seats")
    for axis in axes:
        axis.set_xlabel("decisions")
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
        axis.grid(alpha=0.3)
    figure.suptitle(f"{config.name}: {', '.join(config.rules)}")
    write_figure(figure, path, dpi=100)


def _matrix(axis: Axes, rows: Rows) -> None:
    """The learner over time against each snapshot: a cycle would show as a fall against an old one."""
    for key in sorted({key for row in rows for key in row if key.startswith("matrix/")}):
        x, y = _series(rows, key)
        axis.plot(x, y, marker=".", label=EngFormatter(sep="")(int(key.removeprefix("matrix/"))))
    axis.axhline(1, color="grey", linestyle=":")
    axis.set_title("wins against earlier snapshots, 1 = chance")
    if axis.lines[:-1]:
        axis.legend(fontsize="small", title="snapshot", ncols=2)


def _series(rows: Rows, key: str) -> tuple[list[float], list[float]]:
    found = [(row["decisions"], row[key]) for row in rows if key in row]
    return [x for x, _ in found], [y for _, y in found]


def _plot(axis: Axes, rows: Rows, key: str, title: str, sign: int = 1) -> None:
    x, y = _series(rows, key)
    axis.plot(x, [sign * value for value in y])
    axis.set_title(title)
