"""Compiling kernels: numba functions with a cache on disk that follows every module with kernels."""

from __future__ import annotations

import hashlib
import pickle
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

import numba
from numba.core import event

from devyatka_env._package import FOLDER


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function at its first call, cached on disk; overflow wraps and division by 0 is as in C.

    The result is typed loosely: numba takes NumPy's numbers and Python's alike.
    """
    return _compiled(function)


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function at its first call, cached on disk where there is a place for that."""
    options = {"error_model": "numpy", "boundscheck": False, **options}
    try:
        return _stamped(numba.njit(cache=True, **options)(function))
    except RuntimeError as error:  # neither the package's folder nor a home can be written to, nor is another one named
        if "cannot cache" not in str(error):
            raise
        made: Callable[..., Any] = numba.njit(**options)(function)
        return made


def _stamped(compiled: Any) -> Callable[..., Any]:
    """Let a kernel's cache on disk go stale whenever any module with kernels changes."""
    # numba looks only at the kernel's own file to see whether its cache is stale, but a kernel has others compiled into
    # it. No public setting covers that; tests/engine/test_kernel_cache.py watches this private one.
    cache_file = compiled._cache._cache_file
    cache_file._source_stamp = (cache_file._source_stamp, kernel_sources())
    _forgive(compiled._cache)
    loose: Callable[..., Any] = compiled
    return loose


def _forgive(cache: Any) -> None:
    """Let a damaged cache file be as none at all, and a disk that is full or read-only be no obstacle."""
    load, save = cache.load_overload, cache.save_overload

    def load_or_none(signature: Any, context: Any) -> Any:
        try:
            return load(signature, context)
        except Exception:  # whatever unpickling of damaged bytes raises
            with suppress(Exception):
                cache.flush()  # the index is written anew, with what is compiled now
            return None

    def save_or_not(signature: Any, result: Any) -> None:
        with suppress(OSError, pickle.UnpicklingError, EOFError):
            save(signature, result)

    cache.load_overload, cache.save_overload = load_or_none, save_or_not


@contextmanager
def compiling() -> Iterator[None]:
    """Say on the error stream what takes so long, when kernels have been compiled for 2 seconds: not when loaded."""
    watch = _Watch()
    event.register("numba:compile", watch)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        event.unregister("numba:compile", watch)  # type: ignore[no-untyped-call]
        watch.cancel()


class _Watch(event.Listener):
    """Waits for 2 seconds from the first kernel that is compiled; loading one from the cache is no such event."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def on_start(self, event: Any) -> None:
        """A kernel is being compiled."""
        if self._timer is None:
            self._timer = threading.Timer(2.0, _say_it)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        """It has been."""

    def cancel(self) -> None:
        """Say nothing any more."""
        if self._timer is not None:
            self._timer.cancel()


def _say_it() -> None:
    words = "devyatka_env: compiling its kernels for this machine; they are cached on disk, so this happens once"
    print(words, file=sys.stderr, flush=True)  # noqa: T201 - to be read


def call(run: Any, *arguments: Any) -> Any:
    """Call a kernel that may have to be compiled (`compiling`), and may take long by itself."""
    if run.signatures:
        return run(*arguments)
    with compiling():
        return run(*arguments)


def parallel_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose ``numba.prange`` loops run on several threads (`numba.set_num_threads`)."""
    return _compiled(function, parallel=True)


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
