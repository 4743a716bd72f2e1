"""Randomness, counter-based: deal i needs none of the deals before it, a decision none of those before it.

Numbered deals are a public function of (rules, seed, index), the same on every machine, and can be inverted: whoever
knows a deal, or a word drawn from its state, can search for the seed. So what bots draw comes from elsewhere: words of
a keyed one-way function (`decision_word`), under a key that says nothing about the deals (`devyatka_env.engine.seeds`).
Deals that must stay unknown to whoever knows earlier ones are drawn by that function, too (`shuffle_keyed`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine.compiling import kernel

Key = NDArray[np.uint64]  # [2]: a 128-bit key of `siphash`


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


# --- words under a key -----------------------------------------------------------------------------------------------


@kernel
def _rotated(word: np.uint64, by: int) -> np.uint64:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


@kernel
def _sip_round(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    v0 += v1
    v1 = _rotated(v1, 13) ^ v0
    v0 = _rotated(v0, 32)
    v2 += v3
    v3 = _rotated(v3, 16) ^ v2
    v0 += v3
    v3 = _rotated(v3, 21) ^ v0
    v2 += v1
    v1 = _rotated(v1, 17) ^ v2
    v2 = _rotated(v2, 32)
    return v0, v1, v2, v3


@kernel
def siphash(key: Key, first: np.uint64, second: np.uint64) -> np.uint64:
    """SipHash-2-4 of the sixteen bytes of two little-endian words (Aumasson and Bernstein 2012).

    A pseudorandom function: who does not know the key learns nothing from any number of values about another one.
    """
    v0 = key[0] ^ np.uint64(0x736F6D6570736575)
    v1 = key[1] ^ np.uint64(0x646F72616E646F6D)
    v2 = key[0] ^ np.uint64(0x6C7967656E657261)
    v3 = key[1] ^ np.uint64(0x7465646279746573)
    for block in (first, second, np.uint64(16 << 56)):  # the last one has the length of the message
        v3 ^= block
        v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
        v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
        v0 ^= block
    v2 ^= np.uint64(0xFF)
    for _ in range(4):
        v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@kernel
def decision_word(key: Key, index: np.uint64, seat: int, num_played: int) -> np.uint64:
    """The random word for one decision: a function of key, deal, seat and the cards laid, and of nothing else.

    So a bot's coin flips do not depend on batch size, worker or API, and stay common between compared candidates.
    A seat decides at most once for each number of cards laid.
    """
    return siphash(key, np.uint64(index), np.uint64(seat) * np.uint64(64) + np.uint64(num_played))


# --- shuffling -------------------------------------------------------------------------------------------------------


@kernel
def _below(word: np.uint64, bound: np.uint64) -> np.uint64:
    """A random number below ``bound`` of a random word; ``bound`` itself for the few words that would bias it.

    Lemire's bounded integers (2019), from the high half of the word.
    """
    product = (word >> np.uint64(32)) * bound
    if (product & np.uint64(0xFFFFFFFF)) >= np.uint64(0x100000000) % bound:
        return product >> np.uint64(32)
    return bound


@kernel
def shuffle(state: np.uint64, num_cards: int, pack: NDArray[np.uint8]) -> np.uint64:
    """Fill ``pack`` with card ids in an exactly uniform random order (Fisher-Yates); returns the advanced state."""
    for i in range(num_cards):
        pack[i] = i
    for i in range(num_cards - 1, 0, -1):
        bound = np.uint64(i + 1)
        j = bound
        while j == bound:
            state = next_word(state)
            j = _below(mix(state), bound)
        pack[i], pack[j] = pack[j], pack[i]
    return state


@kernel
def shuffle_keyed(key: Key, index: np.uint64, drawn: np.uint64, num_cards: int, pack: NDArray[np.uint8]) -> np.uint64:
    """The same by words under a key: word number ``drawn`` of deal ``index`` and on; returns the advanced number."""
    for i in range(num_cards):
        pack[i] = i
    for i in range(num_cards - 1, 0, -1):
        bound = np.uint64(i + 1)
        j = bound
        while j == bound:
            j = _below(siphash(key, index, drawn), bound)
            drawn += np.uint64(1)
        pack[i], pack[j] = pack[j], pack[i]
    return drawn
