"""Numbers given by a caller: whole ones, in their range."""

from __future__ import annotations

from typing import TypeGuard

import numpy as np


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number (``True`` is none)."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_seed(seed: object, name: str = "seed") -> int:
    """Return ``seed`` as an ``int`` of 64 bits.

    Raises:
        ValueError: not a whole number from 0 to 2**64 - 1.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= int(seed) < 2**64:
        raise ValueError(f"{name} must be a whole number from 0 to 2**64 - 1, not {seed!r}")
    return int(seed)


def check_whole(name: str, value: object, low: int, high: int) -> int:
    """A parameter that is a whole number in a range.

    Raises:
        ValueError: it is none.
    """
    if not is_whole(value) or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number from {low} to {high:,}, not {value!r}")
    return int(value)
