"""Bitboards: sets of cards as 64-bit words (bit i is card id i), counted and searched by processor instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from devyatka_env.engine.compiling import kernel

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
