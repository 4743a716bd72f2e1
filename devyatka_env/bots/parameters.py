"""Parameters of a bot in its text form: ``name:key=value:key=value``.

Colons split the parts, so that such a text may stand in a comma list. The keys are the arguments of the bot's
constructor that have a default; a value is read as the type that the constructor annotates.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

SEPARATOR = ":"
_SWITCH = {"true": True, "false": False}
# What a value may be. Of a union such as ``int | None`` the first of these counts.
_TYPES: Mapping[type, tuple[str, Callable[[str], Any]]] = {
    bool: ("true or false", _SWITCH.__getitem__),
    int: ("a whole number", lambda text: int(_plain(text))),
    float: ("a number", lambda text: float(_plain(text))),
    str: ("a text", str),
}


def parameters_of(factory: Callable[..., Any]) -> dict[str, tuple[type, Any]]:
    """The type and the default of every parameter that a text may set."""
    found = {}
    for key, argument in inspect.signature(factory, eval_str=True).parameters.items():
        members = get_args(argument.annotation) or (argument.annotation,)
        kind = next((one for one in _TYPES if one in members), None)
        if kind is not None and argument.default is not argument.empty:
            found[key] = (kind, argument.default)
    return found


def read_parameters(name: str, factory: Callable[..., Any], words: Sequence[str]) -> dict[str, Any]:
    """Read ``key=value`` words as arguments of ``factory``, which makes the bot ``name``.

    Raises:
        ValueError: a word of another form, a key that the bot does not have or that stands twice, or a bad value.
    """
    known = parameters_of(factory) if words else {}
    values: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            raise ValueError(f"expected {name}{SEPARATOR}key=value, found {word!r} after the name")
        if key not in known:
            has = f"its parameters are {', '.join(known)}" if known else "it has none"
            raise ValueError(f"bot {name} has no parameter {key!r}: {has}")
        if key in values:
            raise ValueError(f"parameter {key} of bot {name} is given twice")
        form, read = _TYPES[known[key][0]]
        try:
            values[key] = read(text)
        except (ValueError, KeyError) as error:
            raise ValueError(f"parameter {key} of bot {name} must be {form}, not {text!r}") from error
    return values


def _plain(text: str) -> str:
    """A number as everybody writes it: Python takes blanks around it and underscores in it, too.

    Raises:
        ValueError: it is written otherwise.
    """
    if not text.isascii() or "_" in text or text != text.strip():
        raise ValueError(f"no plain number: {text!r}")
    return text
