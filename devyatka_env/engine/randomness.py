"""Randomness, counter-based: deal i needs none of the deals before it, a decision none of those before it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine.compiling import kernel

# --- randomness: counter-based, so that deal i needs none of the deals before it -------------------------------------


@kernel
def mix(word: np.uint64) -> np.uint64:
    """Scramble a 64-bit word (the finalizer of SplitMix64, Steele, Lea and Flood 2014)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@kernel
def stream(seed: np.uint64, index: np.uint64) -> np.uint64:
    """The start of random stream ``index`` of ``seed``."""
    return mix(mix(seed + np.uint64(0x9E3779B97F4A7C15)) ^ (index * np.uint64(0xD1342543DE82EF95)))


@kernel
def next_word(state: np.uint64) -> np.uint64:
    """Advance a SplitMix64 state; ``mix`` of the new state is the random word."""
    return state + np.uint64(0x9E3779B97F4A7C15)


@kernel
def decision_word(seed: np.uint64, index: np.uint64, seat: int, num_played: int) -> np.uint64:
    """The random word for one decision: a function of the deal, the seat and the cards laid, and of nothing else.

    So a bot's coin flips do not depend on batch size, worker or API, and stay common between compared candidates.
    A seat decides at most once for each number of cards laid.
    """
    place = np.uint64(seat) * np.uint64(64) + np.uint64(num_played) + np.uint64(1)
    return mix(stream(seed ^ np.uint64(0x5851F42D4C957F2D), index) + place * np.uint64(0x9E3779B97F4A7C15))


@kernel
def shuffle(state: np.uint64, num_cards: int, pack: NDArray[np.uint8]) -> np.uint64:
    """Fill ``pack`` with card ids in an exactly uniform random order (Fisher-Yates); returns the advanced state."""
    for i in range(num_cards):
        pack[i] = i
    for i in range(num_cards - 1, 0, -1):
        bound = np.uint64(i + 1)
        limit = np.uint64(0x100000000) % bound
        while True:  # Lemire's bounded integers (2019): reject the few words that would bias the draw
            state = next_word(state)
            product = (mix(state) >> np.uint64(32)) * bound
            if (product & np.uint64(0xFFFFFFFF)) >= limit:
                break
        j = product >> np.uint64(32)
        pack[i], pack[j] = pack[j], pack[i]
    return state
