"""Positions of one deal as keys of a hash table, for searches that meet a position by several ways.

For a fixed deal the hands follow from the table, so the cards on the table and the turn say how the play goes on. What
a payoff needs beyond them (who went out when, passes) is part of the key where it matters, and only there.

A table is made of two arrays, ``keys [L]`` and ``numbers [L, W]`` (what the search notes of a position), and a
``meter``: ``int64 [4]``, see `STAMP` to `FULL`. It grows by itself, up to a limit. An entry with an old stamp is empty:
raising the stamp empties the table at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine import States
from devyatka_env.engine.compiling import kernel
from devyatka_env.engine.randomness import mix
from devyatka_env.rules.numbers import is_whole
from devyatka_env.rules.rule_set import PAYOFFS

# 24 bytes a position. A table is at most three quarters full.
KEY_DTYPE = np.dtype([("where", np.uint64), ("what", np.uint64), ("stamp", np.int64)], align=True)
START_SIZE = 1 << 12  # entries, a power of two

# The meter: the stamp of entries that count, how many there are, how many there may be, whether more were needed.
STAMP, USED, LIMIT, FULL = range(4)

Meter = NDArray[np.int64]
Numbers = NDArray[np.float64]

_WIN, _LOSE, _WIN_LOSE, _PLACE, _CARDS, _POINTS, _BANK = range(len(PAYOFFS))
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


class StateLimitError(RuntimeError):
    """A search needs more positions than it was allowed; nothing is known of its value."""


@kernel
def passes_matter(r: Any) -> bool:
    """Whether a payoff can depend on passes made so far (rules, sections 7 and 8)."""
    if r.payoff == _BANK:
        return bool(r.pass_fee > 0.0)
    return bool(r.passes_count) and r.payoff != _CARDS and r.payoff != _POINTS


@kernel
def position_key(s: Any, r: Any, seat: int) -> tuple[np.uint64, np.uint64]:
    """What tells the running positions of one deal apart, as far as payoffs go.

    With a ``seat`` only that seat's payoff counts, while it is not settled (`tree_search.is_settled`): to a seat that
    is still in, the order in which others went out is all one. With -1 every payoff counts. Two words::

        where   63 ranks of seats 2, 1, 0   55 54 turn  52 51        table         0
        what    56 ranks of seats 5, 4, 3   48 47 passes of seats 5, 4, 3, 2, 1, 0 0
    """
    where = s.table | np.uint64(s.turn) << np.uint64(52)
    what = _ZERO
    if passes_matter(r):
        for other in range(s.num_players):
            what |= np.uint64(s.passes[other]) << np.uint64(8 * other)
    if seat >= 0 or not r.last_holder or r.payoff == _LOSE or r.payoff == _CARDS or r.payoff == _POINTS:
        return where, what  # that a seat is out the table tells; when it went is of no account
    for other in range(s.num_players):
        rank = np.int64(s.status[other])
        if rank == 1 or (rank > 1 and r.payoff == _PLACE):
            if other < 3:
                where |= np.uint64(rank) << np.uint64(55 + 3 * other)
            else:
                what |= np.uint64(rank) << np.uint64(48 + 3 * (other - 3))
    return where, what


@kernel
def find(keys: States, where: np.uint64, what: np.uint64, stamp: int) -> int:
    """The entry of a key, or the free one where it belongs."""
    last = np.uint64(len(keys) - 1)
    i = mix(where ^ mix(what)) & last
    while keys[i].stamp == stamp and (keys[i].where != where or keys[i].what != what):
        i = (i + _ONE) & last
    return int(i)


@kernel
def add(keys: States, numbers: Numbers, meter: Meter, where: np.uint64, what: np.uint64) -> tuple[States, Numbers, int]:
    """Make the entry of a key that has none; returns the arrays, grown if need be, and its place."""
    stamp = meter[STAMP]
    meter[USED] += 1
    if meter[USED] > meter[LIMIT]:
        meter[FULL] = 1
    elif 4 * meter[USED] > 3 * len(keys):
        old_keys, old_numbers = keys, numbers
        keys = np.zeros(2 * len(old_keys), KEY_DTYPE)
        numbers = np.empty((2 * len(old_keys), numbers.shape[1]))
        for k in range(len(old_keys)):
            if old_keys[k].stamp == stamp:
                i = find(keys, old_keys[k].where, old_keys[k].what, stamp)
                keys[i] = old_keys[k]
                numbers[i] = old_numbers[k]
    i = find(keys, where, what, stamp)
    entry = keys[i]
    entry.where = where
    entry.what = what
    entry.stamp = stamp
    return keys, numbers, i


def empty_table(width: int) -> tuple[States, Numbers]:
    """A table that notes ``width`` numbers of each position."""
    return np.zeros(START_SIZE, KEY_DTYPE), np.empty((START_SIZE, width))


def check_limit(max_states: int) -> None:
    """Refuse what is no number of positions.

    Raises:
        ValueError: not a whole number from 1 to 2**63 - 1, which the meter holds.
    """
    if not is_whole(max_states) or max_states < 1:
        raise ValueError(f"max_states must be a whole number, at least 1, not {max_states!r}")
    if max_states >= 2**63:
        raise ValueError(f"max_states must be at most 2**63 - 1, not {max_states!r}")


def new_meter(max_states: int) -> Meter:
    """The meter of a table of at most ``max_states`` positions.

    Raises:
        ValueError: not a whole number from 1.
    """
    check_limit(max_states)
    meter = np.zeros(4, np.int64)
    meter[STAMP], meter[LIMIT] = 1, max_states
    return meter


def limit_error(max_states: int, what: str) -> StateLimitError:
    """The error of a search of ``what`` that has met too many positions."""
    return StateLimitError(
        f"more than max_states={max_states:,} positions are needed to search {what}; allow more, some 100 bytes"
        " of memory each, or start from a later moment of the deal"
    )
