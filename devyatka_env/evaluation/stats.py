"""Means, differences and adjusted means with 95 % intervals, streamed: the memory does not grow with the deals.

The independent units are deals, never games: the games of one deal share its luck.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Two-sided 95 % of the normal law. The units are deals, hundreds or more, so the law of large numbers carries it.
Z95 = NormalDist().inv_cdf(0.975)

# What adding up floats may leave of a difference of nothing.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval.

    Attributes:
        mean: the estimate; NaN when nothing was measured.
        low: lower end of the interval.
        high: upper end.
        count: independent units (deals) behind it.
    """

    mean: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, mean: float, variance: float, count: int) -> Estimate:
        """The normal interval of a mean whose own variance (not that of a unit) is known."""
        half = Z95 * math.sqrt(variance) if count > 1 else math.inf
        return cls(mean, mean - half, mean + half, count)

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    @property
    def p_value(self) -> float:
        """Two-sided p-value of "the true mean is 0": 1 when nothing is known, 0 when all units agree on another."""
        if not math.isfinite(self.half_width) or abs(self.mean) < ROUNDING:
            return 1.0
        error = self.half_width / Z95
        return math.erfc(abs(self.mean) / error / math.sqrt(2)) if error else 0.0

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.half_width:.4f}"


class Moments:
    """Running means and covariances of ``m`` columns over independent units.

    Updated by whole batches of units (Chan, Golub and LeVeque 1979), which keeps the digits of columns far from zero.

    Attributes:
        count: units seen.
        means: ``float64 [m]``.
        products: ``float64 [m, m]``, sums of products of deviations from the means.
    """

    def __init__(self, size: int) -> None:
        self.count = 0
        self.means: Floats = np.zeros(size)
        self.products: Floats = np.zeros((size, size))

    @classmethod
    def of(cls, rows: Floats) -> Moments:
        """Those of units ``[K, m]``."""
        self = cls(rows.shape[1])
        if len(rows):
            self.count = len(rows)
            self.means = rows.mean(0)
            centred = rows - self.means
            self.products = centred.T @ centred
        return self

    def add(self, other: Moments) -> None:
        """Take in the units of ``other``."""
        total = self.count + other.count
        if not other.count:
            return
        delta = other.means - self.means
        self.products = self.products + other.products + np.outer(delta, delta) * (self.count * other.count / total)
        self.means = self.means + delta * (other.count / total)
        self.count = total

    def columns(self, which: Sequence[int]) -> Moments:
        """Those of some of the columns."""
        part = Moments(len(which))
        part.count, part.means = self.count, self.means[list(which)]
        part.products = self.products[np.ix_(which, which)]
        return part

    def covariance(self) -> Floats:
        """Unbiased covariances ``[m, m]`` of a unit; zeros for less than two units."""
        return self.products / max(1, self.count - 1)

    def estimate(self, weights: Floats) -> Estimate:
        """The mean of a weighted sum of the columns. One unit gives an infinite interval, none gives NaN."""
        if not self.count:
            return Estimate(math.nan, math.nan, math.nan, 0)
        variance = max(0.0, float(weights @ self.covariance() @ weights)) / self.count
        return Estimate.of(float(weights @ self.means), variance, self.count)

    def column(self, index: int) -> Estimate:
        """The mean of one column."""
        return self.estimate(np.eye(len(self.means))[index])

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {"count": self.count, "means": self.means.tolist(), "products": self.products.tolist()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Moments:
        """Read `to_json` back."""
        self = cls(len(values["means"]))
        self.count = int(values["count"])
        self.means, self.products = np.array(values["means"], float), np.array(values["products"], float)
        return self


@dataclass(frozen=True)
class Adjusted:
    """A mean freed of luck that control variates explain.

    Attributes:
        mean: the adjusted mean, with its interval.
        variance_ratio: variance of the plain mean over that of this one, as measured; 1 is no gain.
        explained: share of a unit's variance that the controls explain (R²).
        count: units of the controls behind it, those of the plain mean among them.
    """

    mean: Estimate
    variance_ratio: float
    explained: float
    count: int


def adjust_mean(joint: Moments, controls: Moments) -> Adjusted:
    """The regression estimator of double sampling (Cochran 1977, section 12.6).

    Controls are cheap, so their means are measured over many more units than the column in question; what the few units
    had more or less of them than the many is luck, and the regression takes it out.

    Args:
        joint: of the few units; column 0 is the one in question, the others are the controls.
        controls: of all units, ``joint``'s among them, the controls alone.
    """
    covariance = joint.covariance()
    inside, toward = covariance[1:, 1:], covariance[1:, 0]
    slopes = np.linalg.lstsq(inside, toward, rcond=1e-9)[0]  # controls may repeat each other
    whole, few, many = float(covariance[0, 0]), joint.count, controls.count
    if whole < ROUNDING**2:  # every unit says the same
        return Adjusted(joint.column(0), variance_ratio=1.0, explained=0.0, count=many)
    explained = min(max(0.0, float(slopes @ toward)), whole)
    left = few - 1 - len(slopes)  # the slopes are fitted to these very units
    free = (few - 1) / left if left > 0 else math.inf
    variance = (whole - explained) * free / few + explained / many
    mean = float(joint.means[0] + slopes @ (controls.means - joint.means[1:]))
    return Adjusted(
        mean=Estimate.of(mean, variance, few),
        variance_ratio=whole / few / variance,  # 0 where too few units tell nothing
        explained=explained / whole,
        count=many,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number (Holm 1979): the chance of a false alarm among them stays at the level."""
    count, highest = len(p_values), 0.0
    adjusted = [0.0] * count
    for rank, index in enumerate(sorted(range(count), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def mean_of(values: Floats) -> Estimate:
    """The mean of values ``[K]``, one a unit."""
    return Moments.of(np.asarray(values, np.float64)[:, None]).column(0)


def ratio(sums: Moments, top: int, bottom: int, less: float = 0.0) -> Estimate:
    """The mean of one column over that of another, ``less`` being taken from both; NaN over nothing.

    The units (deals) are independent, the things in one (its decisions) are not; the ratio estimator of cluster
    sampling (Cochran 1977, section 6.3).

    Args:
        sums: moments of the columns.
        top: the column above the line.
        bottom: the column below it.
        less: what is taken from both.
    """
    over, under = (float(sums.means[column]) - less for column in (top, bottom))
    if not under > ROUNDING:
        return Estimate(math.nan, math.nan, math.nan, 0)
    weights: Floats = np.zeros(len(sums.means))
    weights[top], weights[bottom] = 1 / under, -over / under**2
    variance = max(0.0, float(weights @ sums.covariance() @ weights)) / sums.count
    return Estimate.of(over / under, variance, sums.count)
