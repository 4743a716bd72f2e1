"""Bits to bytes, a vector register at a time: what makes an observation nearly as cheap to make as to copy.

numba has no such stores, so these are LLVM's. They write into a flat ``int8`` array at a byte offset, unaligned and
unchecked, and may write beyond the run they are asked for: fill a row from its low end to its high end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from devyatka_env.engine.compiling import inlined

Bytes = NDArray[np.int8]


def _bits(count: int) -> Callable[[Any, Any], Any]:
    """The low ``count`` bits of a word as a vector of as many bytes, each 0 or 1."""

    def make(builder: Any, word: Any) -> Any:
        number = word if count == 64 else builder.trunc(word, ir.IntType(count))
        bits = builder.bitcast(number, ir.VectorType(ir.IntType(1), count))
        return builder.zext(bits, ir.VectorType(ir.IntType(8), count))

    return make


def _store(make: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """An intrinsic ``(array, at, word)`` that stores what ``make(builder, word)`` makes of the word."""

    def typed(typing_context: Any, array: Any, at: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value = make(builder, arguments[2])
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            place = builder.bitcast(builder.gep(data, [arguments[1]]), value.type.as_pointer())
            builder.store(value, place, align=1)
            return context.get_dummy_value()

        return types.void(array, types.int64, types.uint64), generate

    made: Callable[..., Any] = intrinsic(typed)
    return made


store_8_bits = _store(_bits(8))
store_32_bits = _store(_bits(32))
store_64_bits = _store(_bits(64))
store_8_bytes = _store(lambda builder, word: word)


@inlined
def spread(word: np.uint64, width: int, out: Bytes, at: int, room: int) -> None:
    """The low ``width`` bits of ``word`` as bytes from ``out[at]``; may write zeros up to ``out[at + room]``."""
    if room >= 64:
        store_64_bits(out, at, word)
    else:
        spread_exactly(word, width, out, at)


@inlined
def spread_exactly(word: np.uint64, width: int, out: Bytes, at: int) -> None:
    """The low ``width`` bits of ``word`` as bytes ``out[at: at + width]``, and not a byte more."""
    if width >= 32:  # two stores that overlap
        store_32_bits(out, at, word)
        store_32_bits(out, at + width - 32, word >> np.uint64(width - 32))
    else:
        for i in range(width):
            out[at + i] = (word >> np.uint64(i)) & np.uint64(1)
