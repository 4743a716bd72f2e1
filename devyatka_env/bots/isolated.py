"""A bot in a process of its own, which is given view records, rules and random words as bytes, and nothing else.

A bot that plays in the process of the arena can walk the frames of its callers and read what it likes. This one cannot:
the deal, its seed and the other bots are in another process. (It can still do what any program of this user can, such
as reading files.) Only bytes come back: nothing that the bot's process sends is unpickled or executed.

Both ends speak in frames: a length of 8 bytes, a kind of 1 byte, and content. The far end is
``python -m devyatka_env.bots.isolated``, on its standard input and output.
"""

from __future__ import annotations

import json
import os
import queue
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from devyatka_env._files import FileFormatError, parse_json, shown
from devyatka_env.bots.base import Bot
from devyatka_env.bots.registry import make_bot
from devyatka_env.engine import STATE_DTYPE, States
from devyatka_env.rules import Rules
from devyatka_env.views import PlayerView

# Kinds of frames: to the bot, and from it.
_OPEN, _RULES, _ASK = b"O", b"R", b"A"
_DONE, _REFUSED, _FAILED = b"D", b"N", b"F"
_HEAD = struct.Struct("<Qc")
_COUNT = struct.Struct("<Q")
# What a process may take to start and import its bot, in seconds, and a bot for a move where nobody says otherwise.
START_SECONDS = 120.0
MOVE_SECONDS = 60.0
_MAX_FRAME = 1 << 30


class IsolatedBotError(RuntimeError):
    """The bot's process failed, took too long, or ended."""


class IsolatedBot(Bot):
    """Asks the bot that a text names, in a process of its own.

    Args:
        spec: the bot, as `make_bot` reads it.
        move_seconds: what a move may take; then the process is ended, even in the middle of an endless one.

    Raises:
        ValueError: no such bot, or one that must see all hands.
        IsolatedBotError: its process could not be started.
    """

    def __init__(self, spec: str, move_seconds: float = MOVE_SECONDS) -> None:
        self._spec, self._move_seconds = spec, move_seconds
        self._process: subprocess.Popen[bytes] | None = None
        facts = self._start()
        self.name = spec
        self.deterministic = facts["deterministic"] is True

    def __getstate__(self) -> dict[str, Any]:
        """Without the process: each copy starts its own."""
        return {**self.__dict__, "_process": None}

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        """Choose for a single view."""
        word = rng.integers(0, 2**64, size=1, dtype=np.uint64)
        return int(self.act_batch(view.record, view.rules, word)[0])

    def act_batch(self, views: States, rules: Rules, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Ask the process.

        Raises:
            IsolatedBotError: the bot failed, took too long, or its process ended.
        """
        if self._process is None:
            self._start()
        text = str(rules).encode()
        parts = (_COUNT.pack(len(text)), text, views.tobytes(), words.astype("<u8").tobytes())
        kind, content = self._call(_ASK, b"".join(parts), self._move_seconds * max(len(views), 1))
        if kind != _DONE:
            raise IsolatedBotError(_text(content))
        if len(content) != 8 * len(views):
            raise IsolatedBotError(f"{len(content)} bytes came back for {len(views)} actions of 8")
        return np.frombuffer(content, "<i8").astype(np.int64)

    def check_rules(self, rules: Rules) -> None:
        """Ask whether the bot plays these rules.

        Raises:
            ValueError: it does not.
        """
        if self._process is None:
            self._start()
        kind, content = self._call(_RULES, str(rules).encode(), START_SECONDS)
        if kind != _DONE:
            raise ValueError(_text(content))

    def close(self) -> None:
        """End the process; a later question starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    assert pipe is not None
                    pipe.close()
            process.wait()

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of Python, what is needed may be gone
            self.close()

    def _start(self) -> dict[str, Any]:
        """Start the process, and learn what the bot says of itself."""
        command = [sys.executable, "-m", "devyatka_env.bots.isolated"]
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)  # noqa: PTH109 - a text
        environment = {**os.environ, "PYTHONPATH": path}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0
        )
        kind, content = self._call(_OPEN, self._spec.encode(), START_SECONDS)
        if kind != _DONE:
            self.close()
            raise ValueError(_text(content))
        try:
            facts = parse_json(content, f"what bot {self._spec} says of itself")
        except FileFormatError as error:
            raise IsolatedBotError(str(error)) from error
        if not isinstance(facts, dict) or "deterministic" not in facts:
            raise IsolatedBotError(f"bot {self._spec} says of itself {shown(facts)}")
        return facts

    def _call(self, kind: bytes, content: bytes, seconds: float) -> tuple[bytes, bytes]:
        """Send a frame and wait for the answer; what takes longer than ``seconds`` is ended."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            _send(process.stdin, kind, content)
            return _receive(process.stdout)
        except (OSError, EOFError) as error:
            self.close()
            why = f"it took longer than {seconds:g} s" if late.is_set() else "its process ended"
            raise IsolatedBotError(f"{why} ({self._spec})") from error
        finally:
            timer.cancel()


def _text(content: bytes) -> str:
    """What a bot's process says of an error, on one line and not too long."""
    return " ".join(content.decode("utf-8", "replace").split())[:500]


def _send(pipe: BinaryIO | Any, kind: bytes, content: bytes) -> None:
    rest = memoryview(_HEAD.pack(len(content), kind) + content)
    while rest:  # a raw pipe may take a part
        rest = rest[pipe.write(rest) :]
    pipe.flush()


def _receive(pipe: BinaryIO | Any) -> tuple[bytes, bytes]:
    length, kind = _HEAD.unpack(_read(pipe, _HEAD.size))
    if length > _MAX_FRAME:
        raise EOFError("a frame that is none")
    return kind, _read(pipe, length)


def _read(pipe: BinaryIO | Any, count: int) -> bytes:
    """Just so many bytes.

    Raises:
        EOFError: there are not so many.
    """
    found = bytearray()
    while len(found) < count:
        part = pipe.read(min(count - len(found), 1 << 20))
        if not part:
            raise EOFError
        found += part
    return bytes(found)


# --- the far end -----------------------------------------------------------------------------------------------------


class _Server:
    """Answers what the other process asks."""

    def __init__(self) -> None:
        self._bot: Bot | None = None

    def answer(self, kind: bytes, content: bytes) -> tuple[bytes, bytes]:
        """The kind and content of the answer."""
        try:
            if kind == _OPEN:
                return _DONE, self._open(content.decode())
            assert self._bot is not None
            if kind == _RULES:
                self._bot.check_rules(Rules.of(content.decode()))
                return _DONE, b""
            return _DONE, self._ask(self._bot, content)
        except (Exception, SystemExit) as error:  # whatever a bot raises
            if isinstance(error, ValueError) and kind != _ASK:
                return _REFUSED, str(error).encode()
            return _FAILED, f"{type(error).__name__}: {error}".encode()

    def _open(self, spec: str) -> bytes:
        bot = make_bot(spec)
        if bot.sees_all_hands:
            raise ValueError(f"bot {spec} must be shown all hands, so it cannot play in a process of its own")
        self._bot = bot
        return json.dumps({"deterministic": bot.deterministic}).encode()

    def _ask(self, bot: Bot, content: bytes) -> bytes:
        (length,) = _COUNT.unpack_from(content)
        rest = content[_COUNT.size + length :]
        count = len(rest) // (STATE_DTYPE.itemsize + 8)
        views = np.frombuffer(rest, STATE_DTYPE, count).copy()
        words = np.frombuffer(rest, "<u8", count, count * STATE_DTYPE.itemsize).astype(np.uint64)
        rules = Rules.of(content[_COUNT.size : _COUNT.size + length].decode())
        actions = np.asarray(bot.act_batch(views, rules, words))
        if actions.shape != (count,) or not np.issubdtype(actions.dtype, np.integer):
            raise TypeError(f"act_batch answered {actions.dtype} {list(actions.shape)}, wanted are integers [{count}]")
        return actions.astype("<i8").tobytes()


def serve() -> None:
    """Answer on standard input and output until the other process ends, in the middle of a move, too."""
    source, target = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb", 0)
    os.dup2(2, 1)  # what the bot prints must not be taken for an answer
    asked: queue.Queue[tuple[bytes, bytes]] = queue.Queue()

    def listen() -> None:
        try:
            while True:
                asked.put(_receive(source))
        except (EOFError, OSError):
            os._exit(0)  # a bot may be in an endless move

    threading.Thread(target=listen, daemon=True).start()
    server = _Server()
    while True:
        _send(target, *server.answer(*asked.get()))


if __name__ == "__main__":
    serve()
