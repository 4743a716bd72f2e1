"""Who a run's folder belongs to: one process at a time, and nobody after its end, however it ended."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from devyatka_env.learning.config import ConfigError

# The system lets go of the lock when its process ends. The number stands apart: not everywhere is a locked file read.
LOCK, NUMBER = ".lock", ".lock.pid"
# Seconds that an owner may take from the lock to its number.
_PATIENCE = 2.0


class Owner:
    """The right to write in a folder.

    Args:
        folder: the folder; it must be there when the right is taken.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = folder / NUMBER
        self._lock = FileLock(folder / LOCK, timeout=0)

    def take(self) -> None:
        """Take the folder, if nobody has it.

        Raises:
            ConfigError: a process has it; the message names that one.
            OSError: the folder cannot be written in.
        """
        if self._lock.is_locked:
            return
        try:
            self._lock.acquire()
        except Timeout:
            raise ConfigError(f"{self._folder} is in use: {self._who()} is training there") from None
        self._number.write_text(str(os.getpid()), encoding="utf-8")

    def release(self) -> None:
        """Leave the folder to others."""
        if self._lock.is_locked:
            with suppress(OSError):
                self._number.unlink()
            self._lock.release()

    def _who(self) -> str:
        limit = time.monotonic() + _PATIENCE
        while time.monotonic() < limit:
            with suppress(OSError, ValueError):
                return f"process {int(self._number.read_text(encoding='utf-8'))}"
            time.sleep(0.05)
        return "another process"
