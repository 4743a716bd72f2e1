"""What the kernels take on trust, checked where callers of ours come in: arrays, seats, and records that can be.

A record that breaks these could make a kernel read beside its array, or go round for ever looking for the next seat.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine.records import MAX_CARDS, REASONS, STATE_DTYPE, States
from devyatka_env.rules import MAX_PLAYERS, Rules
from devyatka_env.rules.hands import hand_sizes
from devyatka_env.rules.numbers import is_whole

Faults = list[tuple[NDArray[np.bool_], str]]


def check_seat(seat: object, num_players: int) -> int:
    """Return a seat as an ``int``.

    Raises:
        ValueError: no whole number from 0 to ``num_players - 1``.
    """
    if not is_whole(seat) or not 0 <= seat < num_players:
        raise ValueError(f"seat must be 0 to {num_players - 1}, not {seat!r}")
    return int(seat)


def check_records(states: object, rules: object, name: str = "states", shape: tuple[int, ...] | None = None) -> None:
    """Refuse what is no array of records that can be of these rules: full records, or views of them.

    Args:
        states: shall be ``[B]`` of `STATE_DTYPE`, C-contiguous.
        rules: shall be a `Rules`.
        name: what the array is called in errors.
        shape: the shape that it must have; any ``[B]`` by default.

    Raises:
        ValueError: it is not; the message names the record and what is wrong with it.
    """
    if not isinstance(rules, Rules):
        raise ValueError(f"rules must be a Rules, not {rules!r}")
    if not isinstance(states, np.ndarray) or states.dtype != STATE_DTYPE or states.ndim != 1:
        raise ValueError(f"{name} must be an array [B] of STATE_DTYPE, not {_shown(states)}")
    if shape is not None and states.shape != shape:
        raise ValueError(f"{name} must be of shape {shape}, not {states.shape}")
    fault = fault_of(states, rules, full=False)
    if fault is not None:
        raise ValueError(f"{name}: record {fault[0]} {fault[1]}")


def check_views(views: object, words: object) -> None:
    """Refuse what a bot's `act_batch` cannot take; quickly, for it is asked often: a look at types and turns alone.

    Raises:
        ValueError: no view records ``[B]`` with a seat on turn in each, or not one word ``uint64`` a view.
    """
    if not isinstance(views, np.ndarray) or views.dtype != STATE_DTYPE or views.ndim != 1:
        raise ValueError(f"views must be an array [B] of STATE_DTYPE, not {_shown(views)}")
    if not isinstance(words, np.ndarray) or words.dtype != np.uint64 or words.shape != views.shape:
        raise ValueError(f"words must be an array uint64 [{len(views)}], not {_shown(words)}")
    turns = views["turn"]
    if len(turns) and not 0 <= int(turns.min()) <= int(turns.max()) < MAX_PLAYERS:
        raise ValueError("views must have a seat on turn")


def _shown(value: object) -> str:
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(value)[:80]


def fault_of(states: States, rules: Rules, *, full: bool) -> tuple[int, str] | None:
    """The number of a record that cannot be of these rules, and what is wrong with it; ``None`` where all can be.

    Args:
        states: ``[B]`` records of `STATE_DTYPE`.
        rules: the rule set.
        full: whether every hand must be there; else all but one may be blank, as in a view.
    """
    for wrong, what in _of_seats(states, rules) or [*_of_cards(states, rules, full=full), *_of_standing(states, rules)]:
        if wrong.any():
            return int(np.argmax(wrong)), what
    return None


@lru_cache(maxsize=256)
def _sizes(rules: Rules) -> NDArray[np.int64]:
    """Cards dealt, ``int64 [n, n]`` by dealer and seat."""
    return np.array([hand_sizes(rules, dealer) for dealer in range(rules.num_players)])


def _of_seats(states: States, rules: Rules) -> Faults:
    """What is wrong with the seats; if anything is, the rest cannot be looked at."""
    n, seats, dealer, turn = rules.num_players, states["num_players"], states["dealer"], states["turn"]
    is_seat = (dealer >= 0) & (dealer < n) & (turn >= -1) & (turn < n)
    other = seats != n
    found = [
        (other, f"has {int(seats[np.argmax(other)])} seats, the rules have {n}" if other.any() else ""),
        (~is_seat, f"has a dealer or a turn that is no seat from 0 to {n - 1}"),
    ]
    return [(wrong, what) for wrong, what in found if wrong.any()]


def _of_cards(states: States, rules: Rules, *, full: bool) -> Faults:
    """What is wrong with hands, table and counts."""
    n, deck = rules.num_players, rules.deck
    hands, played, table = states["hands"][:, :n], states["played"][:, :n], states["table"]
    left, on = states["cards_left"][:, :n].astype(np.int64), states["turn"] >= 0
    held, laid = np.bitwise_count(hands), np.bitwise_count(played)
    cards = np.bitwise_or.reduce(hands, axis=1) | table
    is_blank = (held == 0) & (left > 0)
    lacks = (held != left) & ~(is_blank if not full else np.zeros_like(is_blank))
    log = np.arange(MAX_CARDS) < states["num_played"][:, None]
    return [
        (cards & ~np.uint64(deck.mask) != 0, f"has cards outside the deck of {deck.num_cards}"),
        (
            (left + laid != _sizes(rules)[states["dealer"]]).any(axis=1),
            f"is of a deal with other hand sizes than those of {rules}",
        ),
        (
            (on if full else np.True_) & lacks.any(axis=1),
            "lacks a hand, or has one of another size than its cards left: values need all hands, a view has but one",
        ),
        (
            (np.bitwise_or.reduce(played, axis=1) != table) | (laid.sum(axis=1) != np.bitwise_count(table)),
            "has other cards on the table than those that the seats have laid",
        ),
        (held.sum(axis=1) + np.bitwise_count(table) != np.bitwise_count(cards), "has a card in two places"),
        (
            (states["num_played"] != np.bitwise_count(table)) | (log & (states["log"] >= deck.num_cards)).any(axis=1),
            "has a log that is not of the cards on the table",
        ),
        (on & (states["legal"] & ~_of_mover(states, states["hands"]) != 0), "has a legal card that its mover lacks"),
    ]


def _of_mover(states: States, by_seat: NDArray[Any]) -> NDArray[Any]:
    """Of values by seat ``[B, 6]`` that of the seat on turn, ``[B]``; of seat 0 where the deal is over."""
    seats = np.maximum(states["turn"], 0).astype(np.int64)
    of_mover: NDArray[Any] = np.take_along_axis(by_seat, seats[:, None], 1)[:, 0]
    return of_mover


def _of_standing(states: States, rules: Rules) -> Faults:
    """What is wrong with who is in, out and excluded, and how the deal ended."""
    n, on = rules.num_players, states["turn"] >= 0
    status = states["status"][:, :n]
    counts = ((status == 0).sum(1), (status > 0).sum(1), (status < 0).sum(1))
    told = (states["num_in"], states["num_out"], states["num_excluded"])
    absent = _of_mover(states, states["status"]) != 0
    over_early = on & ((rules.end == "first_out") & (states["num_out"] > 0))
    excluded = (states["num_excluded"] > 0) & (rules.foul != "exclude")
    return [
        (
            over_early | excluded,
            f"goes on after a seat went out or was excluded, which these rules do not ({rules})",
        ),
        (np.any([one != other for one, other in zip(counts, told, strict=True)], axis=0), "counts seats that are not"),
        (on & (absent | (counts[0] < 2)), "has a turn of a seat that is not in, or of the last one"),
        ((np.abs(status.astype(np.int64)) > n).any(axis=1), "has a seat that went out in no place"),
        (states["reason"] >= len(REASONS), f"ended for a reason that is none of {len(REASONS)}"),
        ((states["places"] > n).any(axis=1), f"has a place beyond {n}"),
        (np.any(states["hands"][:, n:MAX_PLAYERS] != 0, axis=1), f"has cards in seats beyond {n}"),
    ]
