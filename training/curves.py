"""Training curves as one PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # no screen needed

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from training.config import TrainConfig

Rows = Sequence[Mapping[str, float]]


def draw_curves(rows: Rows, config: TrainConfig, path: Path) -> None:
    """Draw win rates with their intervals, reward, entropy, explained variance and speed over decisions trained."""
    figure = Figure(figsize=(12, 7), layout="constrained")
    axes = figure.subplots(2, 3).flatten()
    num_players = config.parsed_rules.num_players
    for name in config.eval_against:
        x, y = _series(rows, f"eval/win_rate_{name}")
        low, high = _series(rows, f"eval/win_rate_{name}_low")[1], _series(rows, f"eval/win_rate_{name}_high")[1]
        axes[0].plot(x, y, marker=".", label=f"against {name}")
        axes[0].fill_between(x, low, high, alpha=0.25)
    axes[0].axhline(1 / num_players, color="grey", linestyle=":", label="chance")
    axes[0].legend()
    axes[0].set_title("win rate (95 % interval)")
    _plot(axes[1], rows, "rollout/ep_rew_mean", "mean payoff in training")
    _plot(axes[2], rows, "train/entropy_loss", "entropy (nats)", sign=-1)
    _plot(axes[3], rows, "train/explained_variance", "explained variance of the value")
    _plot(axes[4], rows, "train/approx_kl", "approximate KL of an update")
    _plot(axes[5], rows, "time/moves_per_second", "moves per second, all seats")
    for axis in axes:
        axis.set_xlabel("decisions")
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
        axis.grid(alpha=0.3)
    figure.suptitle(f"{config.name}: {config.rules}")
    figure.savefig(path, dpi=100)


def _series(rows: Rows, key: str) -> tuple[list[float], list[float]]:
    found = [(row["decisions"], row[key]) for row in rows if key in row]
    return [x for x, _ in found], [y for _, y in found]


def _plot(axis: Axes, rows: Rows, key: str, title: str, sign: int = 1) -> None:
    x, y = _series(rows, key)
    axis.plot(x, [sign * value for value in y])
    axis.set_title(title)
