"""What a training says, and a terminal that is gone: the work goes on without it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

from tqdm import tqdm


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
