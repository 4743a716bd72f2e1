"""What a `BatchGame` does for all its games at once, compiled: on one thread, and shared out to several."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numba
import numpy as np

from devyatka_env.engine import STATE_DTYPE, rules_record
from devyatka_env.engine.bitboards import lowest, random_card
from devyatka_env.engine.compiling import compiling, kernel, parallel_kernel
from devyatka_env.engine.deal import deal_index
from devyatka_env.engine.knowledge import blank
from devyatka_env.engine.payoffs import write_payoffs
from devyatka_env.engine.randomness import mix
from devyatka_env.engine.turn import ILLEGAL, play_card, step
from devyatka_env.rules import MAX_PLAYERS, Rules
from devyatka_env.views import observation

# Runs of games that a thread takes at a time: enough of them to even out, each long enough to be worth handing over.
_RUNS = 64


@kernel
def _end_deal(
    s: Any, r: Any, i: int, seed: np.uint64, indices: Any, stride: np.uint64, done: Any, payoffs: Any, places: Any
) -> None:
    """Note the result of a finished deal and deal the game's next one."""
    done[i] = True
    write_payoffs(s, r, payoffs[i])
    for seat in range(MAX_PLAYERS):
        places[i, seat] = s.places[seat]
    indices[i] += stride
    deal_index(s, r, np.int64(s.num_players), seed, indices[i])


@kernel
def step_run(
    states: Any,
    rules: Any,
    low: int,
    high: int,
    actions: Any,
    seed: Any,
    indices: Any,
    done: Any,
    payoffs: Any,
    places: Any,
) -> None:
    """Take the actions of a run of games; finished deals are noted and dealt anew."""
    r = rules[0]
    stride = np.uint64(len(states))
    for i in range(low, high):
        s = states[i]
        action = np.int64(actions[i])
        if 0 <= action < r.num_cards and (s.legal >> np.uint64(action)) & np.uint64(1):
            play_card(s, r, action)
        else:
            step(s, r, action)
        done[i] = False
        if s.turn < 0:
            _end_deal(s, r, i, seed, indices, stride, done, payoffs, places)


@kernel
def forced_run(
    states: Any, rules: Any, low: int, high: int, seed: Any, indices: Any, done: Any, payoffs: Any, places: Any
) -> None:
    """Play the turns with one legal action in a run of games, each until its next choice or the end of its deal."""
    r = rules[0]
    stride = np.uint64(len(states))
    for i in range(low, high):
        s = states[i]
        done[i] = False
        while not done[i] and s.legal & (s.legal - np.uint64(1)) == np.uint64(0):
            step(s, r, lowest(s.legal) if s.legal else np.int64(r.num_cards))
            if s.turn < 0:
                _end_deal(s, r, i, seed, indices, stride, done, payoffs, places)


@kernel
def observe_run(states: Any, rules: Any, low: int, high: int, out: Any, size: int) -> None:
    """Write what the movers of a run of games observe."""
    for i in range(low, high):
        observation.encode_seat(states[i], rules[0], np.int64(states[i].turn), out, i * size)


@kernel
def masks_run(states: Any, rules: Any, low: int, high: int, out: Any, size: int) -> None:
    """Write the action masks of the movers of a run of games."""
    for i in range(low, high):
        observation.write_action_mask(states[i], rules[0], np.int64(states[i].turn), out, i * size)


@parallel_kernel
def step_threads(
    states: Any, rules: Any, actions: Any, seed: Any, indices: Any, done: Any, payoffs: Any, places: Any
) -> None:
    """`step_run` for all games, on several threads."""
    n = len(states)
    for k in numba.prange(_RUNS):
        low, high = k * n // _RUNS, (k + 1) * n // _RUNS
        step_run(states, rules, low, high, actions, seed, indices, done, payoffs, places)


@parallel_kernel
def forced_threads(states: Any, rules: Any, seed: Any, indices: Any, done: Any, payoffs: Any, places: Any) -> None:
    """`forced_run` for all games, on several threads."""
    n = len(states)
    for k in numba.prange(_RUNS):
        forced_run(states, rules, k * n // _RUNS, (k + 1) * n // _RUNS, seed, indices, done, payoffs, places)


@parallel_kernel
def observe_threads(states: Any, rules: Any, out: Any, size: int) -> None:
    """`observe_run` for all games, on several threads."""
    n = len(states)
    for k in numba.prange(_RUNS):
        observe_run(states, rules, k * n // _RUNS, (k + 1) * n // _RUNS, out, size)


@parallel_kernel
def masks_threads(states: Any, rules: Any, out: Any, size: int) -> None:
    """`masks_run` for all games, on several threads."""
    n = len(states)
    for k in numba.prange(_RUNS):
        masks_run(states, rules, k * n // _RUNS, (k + 1) * n // _RUNS, out, size)


@kernel
def deal_all(states: Any, rules: Any, players: Any, seed: Any, indices: Any) -> None:
    """Deal every game the deal of its index."""
    for i in range(len(states)):
        deal_index(states[i], rules[0], np.int64(players[i]), seed, indices[i])


@kernel
def first_illegal(states: Any, rules: Any, actions: Any) -> int:
    """The first game that would refuse its action; -1 when every one is fine."""
    probe = np.empty(1, STATE_DTYPE)
    for i in range(len(states)):
        action = np.int64(actions[i])
        if 0 <= action < rules[0].num_cards and (states[i].legal >> np.uint64(action)) & np.uint64(1):
            continue
        probe[0] = states[i]
        if step(probe[0], rules[0], action) == ILLEGAL:
            return i
    return -1


@kernel
def sample_run(states: Any, rules: Any, low: int, high: int, key: np.uint64, out: Any) -> None:
    """A uniformly random legal action of every game."""
    for i in range(low, high):
        legal = states[i].legal
        if legal == np.uint64(0):
            out[i] = rules[0].num_cards
        else:
            out[i] = random_card(legal, mix(key + np.uint64(i) * np.uint64(0x9E3779B97F4A7C15)))


@parallel_kernel
def sample_threads(states: Any, rules: Any, key: np.uint64, out: Any) -> None:
    """`sample_run` for all games, on several threads."""
    n = len(states)
    for k in numba.prange(_RUNS):
        sample_run(states, rules, k * n // _RUNS, (k + 1) * n // _RUNS, key, out)


@kernel
def blank_all(states: Any, out: Any) -> None:
    """Write the view record of every mover."""
    for i in range(len(states)):
        blank(states[i], np.int64(states[i].turn), out[i])


@kernel
def encode_states(states: Any, rules: Any, out: Any, size: int) -> None:
    """Write the full-information state of every game."""
    for i in range(len(states)):
        observation.encode_state(states[i], rules[0], out, i * size)


@lru_cache(maxsize=8)
def warm_up(rules: Rules, threads: bool) -> None:
    """Load the kernels, or compile them, before the first game needs them."""
    r, states = rules_record(rules), np.zeros(1, STATE_DTYPE)
    indices, players, seed = np.zeros(1, np.uint64), np.full(1, rules.num_players, np.int8), np.uint64(0)
    results = (np.zeros(1, np.bool_), np.zeros((1, MAX_PLAYERS)), np.zeros((1, MAX_PLAYERS), np.uint8))
    observed = np.empty(observation.observation_layout(rules.deck.num_cards).size, np.int8)
    mask = np.empty(rules.pass_action + 1, np.int8)
    actions = np.zeros(1, np.int64)
    with compiling():
        deal_all(states, r, players, seed, indices)
        blank_all(states, np.empty(1, STATE_DTYPE))
        state = np.empty(observation.state_layout(rules.deck.num_cards).size, np.int8)
        encode_states(states, r, state, len(state))
        first_illegal(states, r, actions)
        sample_run(states, r, 0, 1, seed, actions)
        observe_run(states, r, 0, 1, observed, len(observed))
        masks_run(states, r, 0, 1, mask, len(mask))
        step_run(states, r, 0, 1, actions, seed, indices, *results)
        forced_run(states, r, 0, 1, seed, indices, *results)
        if threads:
            observe_threads(states, r, observed, len(observed))
            masks_threads(states, r, mask, len(mask))
            forced_threads(states, r, seed, indices, *results)
            sample_threads(states, r, seed, actions)
            step_threads(states, r, actions, seed, indices, *results)
