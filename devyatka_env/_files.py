"""Files: written whole or not at all, wherever a path leads; and JSON and YAML of others, read without trusting them.

A reader finds the old file or the new one at every moment, whatever ends the writer. Links are followed. What is no
regular file (a pipe, a device, ``/dev/stdout``) is written to directly, and never replaced.
"""

from __future__ import annotations

import io
import json
import os
import re
import reprlib
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

# What a file may hold at most, in bytes. A result of a thousand candidates has less. JSON takes up to 46 times its size
# when it is read (lists in lists), and PyYAML a second for 50,000 bytes, so neither takes two seconds or 200 MB.
MAX_BYTES = 4_000_000
MAX_YAML_BYTES = 30_000
# The most characters of a number in YAML: those of base 16 and 60 would be worked out however long.
_MAX_DIGITS = 40
# Mappings and lists in one another, in YAML: settings have three, and its reader slows down with each.
_MAX_LEVELS = 20
# What of a bad value is shown in an error, in characters.
_SHOWN = 80
# What no line of text has: control characters, halves of surrogate pairs, marks that turn the direction of writing.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


class FileFormatError(ValueError):
    """A file that is no JSON or YAML of the form asked for; the message names the file and the place in it."""


# --- writing ---------------------------------------------------------------------------------------------------------


def write_whole(path: str | Path, content: bytes | str) -> None:
    """Write a file; text as UTF-8 on any console.

    Raises:
        OSError: it cannot be written; what stood there is still there.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    if not _is_replaced(Path(path)):
        sys.stdout.flush()  # it may be the same pipe
        with _opened(path) as direct:
            direct.write(data)
        return
    target = Path(os.path.realpath(path))
    fresh = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        with fresh.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # else a power cut may leave the name of the new file and the bytes of none
        if target.exists():
            fresh.chmod(stat.S_IMODE(target.stat().st_mode))
        fresh.replace(target)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise
    sync_folder(target.parent)


def write_figure(figure: Any, path: str | Path, dpi: int) -> None:
    """Write a figure of matplotlib; the ending tells the format.

    Raises:
        OSError: it cannot be written; what stood there is still there.
        ValueError: an ending that matplotlib does not write.
    """
    file = io.BytesIO()
    figure.savefig(file, dpi=dpi, format=Path(path).suffix.removeprefix(".") or None)
    write_whole(path, file.getvalue())


def sync_folder(folder: Path) -> None:
    """Bring renamed and removed names in a folder to the disk, where the system can."""
    with suppress(OSError, AttributeError):
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _opened(path: str | Path) -> BinaryIO:
    """A device, pipe or open file to be written to; standard output and error from where they stand."""
    with suppress(OSError):
        there = os.stat(path)  # noqa: PTH116 - as below
        for number in (1, 2):
            if os.path.samestat(there, os.fstat(number)):
                return os.fdopen(os.dup(number), "wb")
    return open(path, "wb")  # noqa: PTH123 - a device is no path to be joined or resolved


def _is_replaced(path: Path) -> bool:
    """Whether a new file may take the place of what a path leads to: not of devices, pipes, and open files."""
    where = (os.path.abspath(path), os.path.realpath(path))  # noqa: PTH100 - not resolved, in the first
    if any(one.startswith(("/dev/", "/proc/")) for one in where):
        return False
    return not path.exists() or path.is_file()


def check_writable(path: Path | None) -> None:
    """Refuse a file that cannot be written, before any work is done for it; ``None`` is no file.

    Raises:
        ValueError: a folder, or a file in a folder that is not there or not to be written in.
    """
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder")
    if not _is_replaced(path):
        if not os.access(path, os.W_OK):
            raise ValueError(f"cannot write {path}: it may not be written to")
        return
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
    probe = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror or error} (in {target.parent})") from error


# --- reading ---------------------------------------------------------------------------------------------------------


def read_json(path: str | Path) -> Any:
    """The content of a JSON file.

    Raises:
        OSError: it cannot be read.
        FileFormatError: it is too large, or no JSON.
    """
    return parse_json(read_bytes(path, MAX_BYTES), str(path))


def parse_json(text: str | bytes, where: str) -> Any:
    """The content of a JSON text; NaN and Infinity, which Python reads, are none.

    Raises:
        FileFormatError: it is too large, or no JSON.
    """
    if len(text) > MAX_BYTES:
        raise FileFormatError(f"{where}: larger than {MAX_BYTES:,} bytes")
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:  # ValueError: not UTF-8, too, and numbers of thousands of digits
        why = "it is nested too deeply" if isinstance(error, RecursionError) else shown(str(error))
        raise FileFormatError(f"{where}: not JSON: {why}") from error


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def read_yaml(path: str | Path) -> Any:
    """The content of a YAML file: plain values only.

    No aliases, a few of which can stand for gigabytes; no tags, which make other things of a text than it looks like.

    Raises:
        OSError: it cannot be read.
        FileFormatError: it is too large, or no such YAML.
        ImportError: PyYAML is not installed.
    """
    import yaml  # in the extra `train`; settings given in code need no YAML

    class Loader(yaml.SafeLoader):
        levels = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.peek_event()  # type: ignore[no-untyped-call]
            if isinstance(event, yaml.AliasEvent):
                raise yaml.YAMLError("aliases (*name) are not read")
            if getattr(event, "tag", None) is not None:
                raise yaml.YAMLError("tags (!name) are not read")
            if self.levels == _MAX_LEVELS:
                raise yaml.YAMLError("it is nested too deeply")
            self.levels += 1
            node = super().compose_node(parent, index)
            self.levels -= 1
            is_number = isinstance(node, yaml.ScalarNode) and node.tag.endswith((":int", ":float"))
            if node is not None and is_number and len(node.value) > _MAX_DIGITS:
                raise yaml.YAMLError(f"a number of {len(node.value):,} characters")
            return node

    try:
        return yaml.load(read_bytes(path, MAX_YAML_BYTES), Loader)
    except FileFormatError:
        raise
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # dates that are none: both of these
        raise FileFormatError(f"{path}: not YAML: {shown(str(error), 200)}") from error


def read_bytes(path: str | Path, most: int = MAX_BYTES) -> bytes:
    """The bytes of a file.

    Raises:
        OSError: it cannot be read.
        TypeError: ``path`` is no path (an open file's number least of all).
        FileFormatError: there are more than ``most``.
    """
    with Path(path).open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise FileFormatError(f"{path}: larger than {most:,} bytes")
    return data


# --- showing ---------------------------------------------------------------------------------------------------------


def printable(text: str) -> str:
    """A text on one line, with a sign in the place of each character that would do something to a screen or a page."""
    return _UNPRINTABLE.sub("\ufffd", " ".join(text.split()))


def shown(value: object, most: int = _SHOWN) -> str:
    """A value as an error shows it: `printable`, and not longer than that may be."""
    text = printable(value if isinstance(value, str) else _brief(value))
    return text if len(text) <= most else text[:most] + "…"


def quoted(value: object) -> str:
    """A value as `shown`, a text in quotes, so that '3' is told from 3."""
    return f"'{shown(value)}'" if isinstance(value, str) else shown(value)


class _Brief(reprlib.Repr):
    """`repr` that does not walk through large or deep values."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 2 * _SHOWN
        self.maxlist = self.maxdict = self.maxtuple = 10

    def repr_int(self, x: int, level: int) -> str:
        """A whole number; Python refuses to write one of thousands of digits."""
        return repr(x) if abs(x) < 10**_SHOWN else f"a whole number of {x.bit_length():,} bits"


_brief = _Brief().repr
