"""Payoffs of a finished deal (rules, section 8)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine.compiling import kernel
from devyatka_env.engine.ending import points_of
from devyatka_env.rules.rule_set import PAYOFFS

_WIN, _LOSE, _WIN_LOSE, _PLACE, _CARDS, _POINTS, _BANK = range(len(PAYOFFS))


@kernel
def share_payoff(s: Any, place: int, sign: float, out: NDArray[np.float64]) -> None:
    """The seats of ``place`` divide ``sign``, the others divide ``-sign``; nothing when all share (section 8)."""
    n = np.int64(s.num_players)
    sharing = 0
    for seat in range(n):
        sharing += s.places[seat] == place
    if sharing == n:
        return
    for seat in range(n):
        out[seat] += sign / sharing if s.places[seat] == place else -sign / (n - sharing)


@kernel
def place_payoff(s: Any, r: Any, seat: int, worst: int) -> float:
    """The payoff of one seat by its place or its cards alone (section 8)."""
    n = np.int64(s.num_players)
    place = np.int64(s.places[seat])
    sharing = 0
    for other in range(n):
        sharing += s.places[other] == place
    if r.payoff == _PLACE:
        return 1.0 - 2.0 * (place - 1 + (sharing - 1) / 2.0) / (n - 1)
    if r.payoff == _CARDS:
        return 0.0 - float(s.cards_left[seat])
    if r.payoff == _POINTS:
        return 0.0 - float(points_of(s.hands[seat], r))
    if sharing < n and place == 1:  # win_lose
        return 1.0 / sharing
    return -1.0 / sharing if sharing < n and place == worst else 0.0


@kernel
def write_payoffs(s: Any, r: Any, out: NDArray[np.float64]) -> None:
    """Write the payoffs of a finished deal into ``out[:num_players]`` (section 8); further entries become 0."""
    worst = 1
    for seat in range(len(out)):
        out[seat] = 0.0
    for seat in range(s.num_players):
        worst = max(worst, int(s.places[seat]))
    if r.payoff == _WIN:
        share_payoff(s, 1, 1.0, out)
    elif r.payoff == _LOSE:
        share_payoff(s, worst, -1.0, out)
    elif r.payoff == _BANK:
        bank_payoffs(s, r, out)
    else:
        for seat in range(s.num_players):
            out[seat] = place_payoff(s, r, seat, worst)


@kernel
def bank_payoffs(s: Any, r: Any, out: NDArray[np.float64]) -> None:
    """Every seat pays its ante and pass fees; place 1 takes, or shares, the bank (section 8)."""
    bank = 0.0
    winners = 0
    for seat in range(s.num_players):
        paid = r.ante + r.pass_fee * s.passes[seat]
        out[seat] -= paid
        bank += paid
        winners += s.places[seat] == 1
    for seat in range(s.num_players):
        if s.places[seat] == 1:
            out[seat] += bank / winners
