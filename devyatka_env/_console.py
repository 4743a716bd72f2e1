"""Text on any console: what its encoding lacks is written in letters that it has, not refused.

Files are always UTF-8; this is for what people look at.
"""

from __future__ import annotations

import codecs
import os
import sys
from contextlib import suppress
from typing import Any, TextIO

# Card suits as the parser of cards reads them; the rest as it is typed where there is nothing better.
LETTERS = {
    "♣": "C", "♦": "D", "♥": "H", "♠": "S", "·": ".", "±": "+-", "…": "...", "–": "-", "—": "-", "−": "-", "×": "x",
    "■": "#", "●": "*", "✓": "v", "∞": "inf", "≤": "<=", "≥": ">=", "→": "->", "°": " deg", "²": "2", "«": '"',
    "»": '"', "“": '"', "”": '"', "’": "'", "\N{NO-BREAK SPACE}": " ",
}  # fmt: skip
_HANDLER = "devyatka_env.letters"


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """What stands for signs that cannot be encoded (an error handler of `codecs`)."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(LETTERS.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


codecs.register_error(_HANDLER, _replaced)


def printable(text: str, stream: TextIO | None = None) -> str:
    """A text as a stream can show it (standard output by default)."""
    encoding = getattr(stream or sys.stdout, "encoding", None) or "utf-8"
    try:
        return text.encode(encoding, _HANDLER).decode(encoding)
    except LookupError:  # an encoding that Python does not know
        return text.encode("ascii", _HANDLER).decode("ascii")


def take_any_sign() -> None:
    """Let standard output and error take every sign from now on, in letters where they lack it."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # not of what tests and notebooks put in their place
            stream.reconfigure(errors=_HANDLER)


class Screen:
    """A stream that people look at, whose reader may go (``| head``).

    Args:
        stream: the stream.
        goes_on: whether the work goes on without a reader, since it also writes files; else writing raises
            `BrokenPipeError`.
    """

    def __init__(self, stream: TextIO, *, goes_on: bool) -> None:
        self._stream = stream
        self._goes_on = goes_on
        self._is_gone = False

    def write(self, text: str) -> int:
        """Write a text, if somebody is there."""
        if not self._is_gone:
            try:
                return self._stream.write(text)
            except BrokenPipeError:
                self._lose_reader()
        return len(text)

    def flush(self) -> None:
        """Pass on what has been written, if somebody is there."""
        if not self._is_gone:
            try:
                self._stream.flush()
            except BrokenPipeError:
                self._lose_reader()

    def _lose_reader(self) -> None:
        self._is_gone = True
        with suppress(OSError, ValueError):  # what Python flushes at its end must go nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
        if not self._goes_on:
            raise BrokenPipeError

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
