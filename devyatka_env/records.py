"""The records that the engine works on, and the bit and random helpers that its kernels are made of.

A game is one record of `STATE_DTYPE`, a rule set one of `RULES_DTYPE`; a set of cards is a ``uint64`` bitboard. Kernels
are compiled at their first call and cached on disk by numba.
"""

from __future__ import annotations

import hashlib
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from devyatka_env.rules import MAX_PLAYERS, PAYOFFS, Rules

MAX_CARDS = 52

# One game. Seats beyond `num_players` stay zero. Everything but `hands` and `legal` is public.
STATE_DTYPE = np.dtype(
    [
        ("hands", np.uint64, (MAX_PLAYERS,)),  # hand_mask of each seat; an excluded seat keeps its cards here
        ("played", np.uint64, (MAX_PLAYERS,)),  # cards that each seat has laid
        ("cannot_hold", np.uint64, (MAX_PLAYERS,)),  # cards that each seat is publicly known not to hold
        ("table", np.uint64),  # cards on the table
        (
            "legal",
            np.uint64,
        ),  # legal cards of the seat on turn; 0 when it must pass, and when the deal is over
        ("log", np.uint8, (MAX_CARDS,)),  # card ids in the order they were laid; the first `num_played` count
        ("cards_left", np.uint8, (MAX_PLAYERS,)),
        ("dealt", np.uint8, (MAX_PLAYERS,)),  # cards each seat was dealt
        ("passes", np.uint8, (MAX_PLAYERS,)),
        ("status", np.int8, (MAX_PLAYERS,)),  # 0 in; k > 0 went out k-th; k < 0 excluded (-k)-th
        ("places", np.uint8, (MAX_PLAYERS,)),  # 1 is best; 0 until the deal is over
        ("num_players", np.int8),
        ("num_in", np.int8),  # seats still in
        ("num_out", np.int8),
        ("num_excluded", np.int8),
        ("num_played", np.uint8),
        ("dealer", np.int8),
        ("opener", np.int8),  # the seat that moved first; -1 until a card is laid under left_of_dealer
        ("turn", np.int8),  # the seat to move; -1 when the deal is over
        ("any_starter", np.uint8),  # 1: any starter may open the table; 0: only the opening card
        ("reason", np.uint8),  # why the deal is over: an index into `REASONS`
    ],
    align=True,
)

RULES_DTYPE = np.dtype(
    [
        ("deck", np.uint64),
        ("starters", np.uint64),
        ("tops", np.uint64),  # highest card of each suit
        ("bottoms", np.uint64),
        ("opening_card", np.uint64),
        ("ante", np.float64),
        ("pass_fee", np.float64),
        ("points", np.uint8, (MAX_CARDS,)),
        ("num_cards", np.uint8),
        ("num_ranks", np.uint8),
        ("num_players", np.int8),
        ("deals", np.int64),
        ("cards_per_seat", np.uint8),  # 0: the whole pack
        ("left_of_dealer", np.bool_),
        ("last_holder", np.bool_),
        ("explicit_pass", np.bool_),
        ("exclude", np.bool_),
        ("passes_count", np.bool_),
        ("payoff", np.uint8),  # an index into `PAYOFFS`
    ],
    align=True,
)

States = NDArray[np.void]

REASONS = ("", "out", "last_holder", "blocked", "last_seat", "stopped")
ON, OUT, LAST_HOLDER, BLOCKED, LAST_SEAT, STOPPED = range(6)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function at its first call, cached on disk; overflow wraps and division by 0 is as in C.

    The result is typed loosely: numba takes NumPy's numbers and Python's alike.
    """
    return _stamped(numba.njit(cache=True, error_model="numpy", boundscheck=False)(function))


def _stamped(compiled: Any) -> Callable[..., Any]:
    """Let a kernel's cache on disk go stale whenever any module with kernels changes."""
    # numba looks only at the kernel's own file to see whether its cache is stale, but a kernel has others compiled into
    # it. No public setting covers that; tests/test_kernel_cache.py watches this private one.
    cache_file = compiled._cache._cache_file
    cache_file._source_stamp = (cache_file._source_stamp, _kernel_sources())
    loose: Callable[..., Any] = compiled
    return loose


@contextmanager
def compiling() -> Iterator[None]:
    """Say on the error stream what takes so long, if it takes more than 2 seconds: kernels without a cache."""
    words = "devyatka_env: compiling its kernels for this machine; they are cached on disk, so this happens once"
    timer = threading.Timer(2.0, lambda: print(words, file=sys.stderr, flush=True))  # noqa: T201 - to be read
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def call(run: Any, *arguments: Any) -> Any:
    """Call a kernel that may have to be compiled (`compiling`), and may take long by itself."""
    if run.signatures:
        return run(*arguments)
    with compiling():
        return run(*arguments)


def parallel_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose ``numba.prange`` loops run on several threads (`numba.set_num_threads`)."""
    return _stamped(numba.njit(cache=True, parallel=True, error_model="numpy", boundscheck=False)(function))


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small function into its callers: a call that passes an array costs more than such a function does."""
    compiled: Callable[..., Any] = numba.njit(inline="always", error_model="numpy", boundscheck=False)(function)
    return compiled


@lru_cache(maxsize=1)
def _kernel_sources() -> str:
    """A digest of every module of the package that holds kernels."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        source = path.read_bytes()
        if re.search(rb"^@(kernel|parallel_kernel|inlined)$", source, re.MULTILINE):
            digest.update(source)
    return digest.hexdigest()


@lru_cache(maxsize=1024)
def rules_record(rules: Rules) -> NDArray[np.void]:
    """The rule set as kernels read it: a read-only array ``[1]`` of `RULES_DTYPE`."""
    record = np.zeros(1, RULES_DTYPE)
    deck = rules.deck
    record["deck"] = deck.mask
    record["starters"] = deck.rank_mask(rules.starter)
    record["tops"] = deck.rank_mask(rules.ranks[-1])
    record["bottoms"] = deck.rank_mask(rules.ranks[0])
    record["opening_card"] = 1 << rules.opening_card
    record["ante"] = rules.ante
    record["pass_fee"] = rules.pass_fee
    record["points"][0, : deck.num_cards] = [card.points for card in deck.cards]
    record["num_cards"] = deck.num_cards
    record["num_ranks"] = deck.num_ranks
    record["num_players"] = rules.num_players
    record["deals"] = rules.deals
    record["cards_per_seat"] = rules.cards_per_seat or 0
    record["left_of_dealer"] = rules.opening == "left_of_dealer"
    record["last_holder"] = rules.end == "last_holder"
    record["explicit_pass"] = rules.explicit_pass
    record["exclude"] = rules.foul == "exclude"
    record["passes_count"] = rules.passes_count
    record["payoff"] = PAYOFFS.index(rules.payoff)
    record.flags.writeable = False
    return record


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


# --- bitboards ---------------------------------------------------------------------------------------------------


def _instruction(function: Callable[..., Any]) -> Callable[..., Any]:
    """An LLVM instruction as a function that kernels can call; its first argument is the compiler's own."""
    made: Callable[..., Any] = intrinsic(function)
    return made


@_instruction
def _population(context: Any, word: Any) -> Any:
    """LLVM's population count of a 64-bit word: one instruction, which numba does not find by itself."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@_instruction
def _trailing_zeros(context: Any, word: Any) -> Any:
    """LLVM's count of trailing zeros of a 64-bit word (64 for 0)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@kernel
def count(mask: np.uint64) -> int:
    """The number of cards in a bitboard."""
    return int(_population(np.uint64(mask)))


@kernel
def lowest(mask: np.uint64) -> int:
    """The lowest card id of a bitboard (64 for an empty one)."""
    return int(_trailing_zeros(np.uint64(mask)))


# The place of the k-th set bit of a byte, at ``byte * 8 + k``.
_BIT_OF_BYTE = np.zeros(256 * 8, np.uint8)
for _byte in range(256):
    for _k, _place in enumerate(place for place in range(8) if _byte >> place & 1):
        _BIT_OF_BYTE[_byte * 8 + _k] = _place

_EACH_BYTE = np.uint64(0x0101010101010101)


@kernel
def nth_card(mask: np.uint64, k: np.uint64) -> int:
    """The k-th lowest card of a bitboard that has more than k, without a branch to mispredict.

    Set bits are counted by byte, added up from the lowest byte on, and all eight sums compared with k at once; a table
    finds the bit in its byte (Vigna 2008, "Broadword implementation of rank/select queries").
    """
    sums = mask - ((mask >> np.uint64(1)) & np.uint64(0x5555555555555555))
    sums = (sums & np.uint64(0x3333333333333333)) + ((sums >> np.uint64(2)) & np.uint64(0x3333333333333333))
    sums = ((sums + (sums >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)) * _EACH_BYTE
    high = np.uint64(0x8080808080808080)
    reached = ((sums | high) - (k + np.uint64(1)) * _EACH_BYTE) & high
    shift = _trailing_zeros(reached) & np.uint64(56)
    before = ((sums << np.uint64(8)) >> shift) & np.uint64(255)
    byte = (mask >> shift) & np.uint64(255)
    return int(shift) + int(_BIT_OF_BYTE[byte * np.uint64(8) + (k - before)])


@kernel
def random_card(mask: np.uint64, word: np.uint64) -> int:
    """The card of a non-empty bitboard that a random word picks, each alike.

    The high half of the word times the count, halved again, is a uniform index (its bias is below 2**-26).
    """
    return nth_card(mask, ((word >> np.uint64(32)) * np.uint64(count(mask))) >> np.uint64(32))


def check_seed(seed: object, name: str = "seed") -> int:
    """Return ``seed`` as an ``int`` of 64 bits.

    Raises:
        ValueError: not a whole number from 0 to 2**64 - 1.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= int(seed) < 2**64:
        raise ValueError(f"{name} must be a whole number from 0 to 2**64 - 1, not {seed!r}")
    return int(seed)
