"""The package itself: where it stands, and attributes that are imported when somebody asks for them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def lazy_attributes(
    module: str, names: Sequence[str], sources: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a room some of whose names stand in modules that are slow to import (PEP 562).

    Args:
        module: the room's ``__name__``.
        names: all its public names.
        sources: the module of each name that is imported when it is first asked for.
    """

    def get(name: str) -> object:
        if name not in sources:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(sources[name]), name)
        setattr(sys.modules[module], name, value)  # asked for once
        return value

    return get, lambda: sorted({*vars(sys.modules[module]), *names})
