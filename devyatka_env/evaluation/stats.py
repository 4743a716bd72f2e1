"""Means with 95 % intervals, streamed: the memory does not grow with the number of deals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

# Two-sided 95 % of the normal law. The units are deals, hundreds or more, so the law of large numbers carries it.
Z95 = NormalDist().inv_cdf(0.975)


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

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.half_width:.4f}"


class Mean:
    """A running mean and variance over independent units (Chan, Golub and LeVeque 1979, the pairwise update)."""

    def __init__(self) -> None:
        self._count = 0
        self._mean = 0.0
        self._squares = 0.0

    def add(self, values: NDArray[np.float64]) -> None:
        """Add values ``[K]``, one a unit; NaN stands for a unit that says nothing and is left out."""
        values = values[~np.isnan(values)]
        if not len(values):
            return
        mean = float(values.mean())
        total = self._count + len(values)
        delta = mean - self._mean
        self._squares += float(((values - mean) ** 2).sum()) + delta**2 * self._count * len(values) / total
        self._mean += delta * len(values) / total
        self._count = total

    def estimate(self) -> Estimate:
        """The mean and its 95 % interval. One unit alone gives an infinite interval, none gives NaN."""
        if not self._count:
            return Estimate(math.nan, math.nan, math.nan, 0)
        if self._count == 1:
            return Estimate(self._mean, -math.inf, math.inf, 1)
        half = Z95 * math.sqrt(self._squares / (self._count - 1) / self._count)
        return Estimate(self._mean, self._mean - half, self._mean + half, self._count)


def ratio(sums: NDArray[np.float64], counts: NDArray[np.float64]) -> Estimate:
    """The mean of things that come in groups of different size, with an interval over the groups.

    The groups (deals) are independent, the things in one (its decisions) are not; the ratio estimator of cluster
    sampling (Cochran 1977, section 6.3).

    Args:
        sums: of each group, ``[K]``.
        counts: things in each group, ``[K]``.
    """
    total, groups = float(counts.sum()), len(counts)
    if not total:
        return Estimate(math.nan, math.nan, math.nan, 0)
    mean = float(sums.sum()) / total
    if groups == 1:
        return Estimate(mean, -math.inf, math.inf, 1)
    spread = float(((sums - mean * counts) ** 2).sum()) * groups / (groups - 1)
    half = Z95 * math.sqrt(spread) / total
    return Estimate(mean, mean - half, mean + half, groups)
