"""The kernels over state arrays, for Python callers: a call each for one game of an array.

Internal: nothing is checked, not the index either. What users call checks before it calls these.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine.compiling import kernel
from devyatka_env.engine.deal import begin, clear, deal, deal_keyed
from devyatka_env.engine.knowledge import blank, could_hold
from devyatka_env.engine.payoffs import write_payoffs
from devyatka_env.engine.randomness import Key
from devyatka_env.engine.records import STOPPED, States
from devyatka_env.engine.turn import fitting, step
from devyatka_env.rules import Rules, iter_mask

_ZERO = np.uint64(0)

# --- entry points over state arrays, for Python callers --------------------------------------------------------------


@kernel
def deal_at(
    states: States, i: int, rules: States, num_players: int, dealer: int, seed: np.uint64, index: np.uint64
) -> None:
    """`deal` into ``states[i]``."""
    deal(states[i], rules[0], num_players, dealer, seed, index)


@kernel
def deal_keyed_at(
    states: States, i: int, rules: States, num_players: int, dealer: int, key: Key, index: np.uint64
) -> None:
    """`deal_keyed` into ``states[i]``."""
    deal_keyed(states[i], rules[0], num_players, dealer, key, index)


@kernel
def begin_at(states: States, i: int, rules: States, hands: NDArray[np.uint64], num_players: int, dealer: int) -> bool:
    """Open a deal of given ``hands`` (``uint64 [num_players]``) in ``states[i]``; False when it cannot begin."""
    s = states[i]
    clear(s, num_players, dealer)
    for seat in range(num_players):
        s.hands[seat] = hands[seat]
    return begin(s, rules[0])


@kernel
def step_at(states: States, i: int, rules: States, action: int) -> int:
    """`step` on ``states[i]``."""
    return step(states[i], rules[0], action)


@kernel
def stop_at(states: States, i: int) -> None:
    """Break off the deal in ``states[i]`` (an environment's answer to an illegal action): over, without places."""
    states[i].turn = -1
    states[i].legal = _ZERO
    states[i].reason = STOPPED


@kernel
def payoffs_at(states: States, i: int, rules: States, out: NDArray[np.float64]) -> None:
    """`write_payoffs` of ``states[i]``."""
    write_payoffs(states[i], rules[0], out)


@kernel
def blank_at(states: States, i: int, seat: int, out: States) -> None:
    """The view record of ``seat`` in ``states[i]`` into ``out[0]``."""
    blank(states[i], seat, out[0])


@kernel
def fitting_at(states: States, i: int, rules: States) -> np.uint64:
    """`fitting` of ``states[i]``."""
    return fitting(states[i], rules[0])


@kernel
def could_hold_at(states: States, i: int, rules: States, viewer: int, seat: int) -> np.uint64:
    """`could_hold` in ``states[i]``."""
    return could_hold(states[i], rules[0], viewer, seat)


def legal_actions(record: np.void, rules: Rules) -> list[int]:
    """The legal actions of the seat on turn: card ids, else PASS for a stuck seat; none when the deal is over."""
    if record["turn"] < 0:
        return []
    return list(iter_mask(int(record["legal"]))) or [rules.pass_action]
