"""Compiling kernels: numba functions with a cache on disk that follows every module with kernels."""

from __future__ import annotations

import hashlib
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numba

from devyatka_env._package import FOLDER


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function at its first call, cached on disk; overflow wraps and division by 0 is as in C.

    The result is typed loosely: numba takes NumPy's numbers and Python's alike.
    """
    return _stamped(numba.njit(cache=True, error_model="numpy", boundscheck=False)(function))


def _stamped(compiled: Any) -> Callable[..., Any]:
    """Let a kernel's cache on disk go stale whenever any module with kernels changes."""
    # numba looks only at the kernel's own file to see whether its cache is stale, but a kernel has others compiled into
    # it. No public setting covers that; tests/engine/test_kernel_cache.py watches this private one.
    cache_file = compiled._cache._cache_file
    cache_file._source_stamp = (cache_file._source_stamp, kernel_sources())
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
def kernel_sources() -> str:
    """A digest of every module of the package that holds kernels."""
    digest = hashlib.sha256()
    for path in sorted(FOLDER.rglob("*.py")):
        source = path.read_bytes()
        if re.search(rb"^@(kernel|parallel_kernel|inlined)$", source, re.MULTILINE):
            digest.update(source)
    return digest.hexdigest()
