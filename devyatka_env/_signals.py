"""What asks a command to end: Ctrl-C, SIGTERM, and SIGHUP where there is one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

KINDS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
# Those that Python itself does not turn into KeyboardInterrupt.
ENDING = tuple(kind for kind in KINDS if kind != signal.SIGINT)
Handler = Callable[[int, FrameType | None], None]


@contextmanager
def handled_by(handler: Handler, kinds: Sequence[signal.Signals] = KINDS) -> Iterator[Callable[[], None]]:
    """Let a handler answer these signals; yields what gives them back to whoever had them before.

    Outside the main thread, where none can be set, nothing happens. A SIGHUP that is ignored stays so: under ``nohup``
    the work outlives its terminal.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        asked = [kind for kind in kinds if kind == signal.SIGINT or signal.getsignal(kind) != signal.SIG_IGN]
        before = {kind: signal.signal(kind, handler) for kind in asked}

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
