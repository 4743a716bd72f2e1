"""The end of a deal: final standings (rules, section 7)."""

from __future__ import annotations

from typing import Any

import numpy as np

from devyatka_env.engine.bitboards import lowest
from devyatka_env.engine.compiling import kernel

_ONE = np.uint64(1)
_ZERO = np.uint64(0)

# --- points and places -----------------------------------------------------------------------------------------------


@kernel
def points_of(mask: np.uint64, r: Any) -> int:
    """Card points of a bitboard (section 7)."""
    total = 0
    while mask:
        total += r.points[lowest(mask)]
        mask &= mask - _ONE
    return total


# --- the end of a deal -----------------------------------------------------------------------------------------------


@kernel
def rank_key(s: Any, r: Any, seat: int) -> int:
    """A number that orders final standings: lower is a better place, equal is a shared place (section 7)."""
    status = int(s.status[seat])
    if status > 0:
        return status
    if status < 0:
        return (1 << 40) + status  # excluded earlier (closer to 0) is lower
    key = (1 << 32) + (int(s.cards_left[seat]) << 24)
    if r.passes_count:
        key += int(s.passes[seat]) << 16
    return key + points_of(s.hands[seat], r)


@kernel
def finish(s: Any, r: Any, reason: int) -> None:
    """End the deal and fill ``places``."""
    s.turn = -1
    s.legal = _ZERO
    s.reason = reason
    keys = (
        rank_key(s, r, 0), rank_key(s, r, 1), rank_key(s, r, 2), rank_key(s, r, 3), rank_key(s, r, 4), rank_key(s, r, 5)
    )  # fmt: skip
    n = np.int64(s.num_players)
    for seat in range(n):
        place = 1
        for other in range(n):
            place += keys[other] < keys[seat]
        s.places[seat] = place
