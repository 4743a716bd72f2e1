"""What asks a training to end: Ctrl-C, SIGTERM, and SIGHUP where there is one; and a terminal that is gone."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from tqdm import tqdm

KINDS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
Handler = Callable[[int, FrameType | None], None]


@contextmanager
def handled_by(handler: Handler) -> Iterator[Callable[[], None]]:
    """Let a handler answer these signals; yields what gives them back to whoever had them before.

    Outside the main thread, where none can be set, nothing happens. A SIGHUP that is ignored stays so: under ``nohup``
    a training outlives its terminal.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        kinds = [kind for kind in KINDS if kind == signal.SIGINT or signal.getsignal(kind) != signal.SIG_IGN]
        before = {kind: signal.signal(kind, handler) for kind in kinds}

    def give_back() -> None:
        for kind, former in before.items():
            signal.signal(kind, former)

    try:
        yield give_back
    finally:
        give_back()


def interrupt(number: int, frame: FrameType | None) -> None:
    """Answer any of these signals as Python answers Ctrl-C."""
    raise KeyboardInterrupt


def say(text: str) -> None:
    """Tell whoever looks on."""
    try:
        tqdm.write(text)
        sys.stdout.flush()
    except RuntimeError:  # a signal came while a line was being written, and this is its handler
        pass
    except OSError:
        _fall_silent()


class Onlooker:
    """Standard error for a progress bar, whose reader may go: a terminal that is closed, a pipe's other end."""

    def write(self, text: str) -> int:
        """Write a text, if somebody is there."""
        try:
            return sys.stderr.write(text)
        except OSError:
            _fall_silent()
            return len(text)

    def flush(self) -> None:
        """Pass on what has been written, if somebody is there."""
        try:
            sys.stderr.flush()
        except OSError:
            _fall_silent()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


def _fall_silent() -> None:
    """Let all further output go nowhere: the work goes on."""
    with suppress(OSError, ValueError):  # ValueError: a stream that is no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
