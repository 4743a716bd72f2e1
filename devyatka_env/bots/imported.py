"""A user's own bot by where it stands in their code: ``module:name``."""

from __future__ import annotations

import importlib
import re

from devyatka_env.bots.base import Bot, CallableBot

_FORM = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


def is_import(spec: str) -> bool:
    """Whether a text has the form ``module:name``."""
    return _FORM.fullmatch(spec) is not None


def import_bot(spec: str) -> Bot:
    """The bot ``module:name``: a `Bot`, its class (made without arguments), or a function ``(view, rng) -> action``.

    Raises:
        ValueError: no such module or name, or neither of these.
    """
    module_name, attribute = spec.split(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # whatever the user's module raises
        raise ValueError(f"bot {spec!r}: cannot import {module_name!r} ({type(error).__name__}: {error})") from error
    if not hasattr(module, attribute):
        raise ValueError(f"bot {spec!r}: module {module_name!r} has no {attribute!r}")
    found: object = getattr(module, attribute)
    if isinstance(found, type):
        try:
            found = found()
        except Exception as error:  # whatever the user's class raises
            why = f"{type(error).__name__}: {error}"
            raise ValueError(f"bot {spec!r}: {attribute}() fails, made without arguments ({why})") from error
    act = getattr(found, "act", found)  # an object may have the method without being a Bot
    if not callable(act):
        raise ValueError(f"bot {spec!r} is {found!r}: give a Bot, its class, or a function (view, rng) -> action")
    bot = found if isinstance(found, Bot) else CallableBot(act)
    bot.name = spec
    return bot
