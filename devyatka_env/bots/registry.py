"""Bots by name: `make_bot` takes a bot in every form that the project accepts, `register_bot` adds a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from devyatka_env.bots.base import ActFunction, Bot, CallableBot
from devyatka_env.bots.checkpoint import MANIFEST, resolve
from devyatka_env.bots.imported import import_bot, is_import
from devyatka_env.bots.parameters import SEPARATOR, read_parameters
from devyatka_env.bots.policy import PolicyBot
from devyatka_env.bots.scripted import (
    SCRIPTED,
)
from devyatka_env.bots.search import OracleBot, PimcBot, ReaderBot
from devyatka_env.rules import MAX_PLAYERS
from devyatka_env.rules.numbers import is_whole

BotSpec = str | Bot | ActFunction | Path

# The bots that come with the package, by name. What their constructors take is their parameters (`bots.parameters`).
_SHIPPED: tuple[type[Bot], ...] = (*SCRIPTED, PimcBot, ReaderBot, OracleBot)
BOTS: Mapping[str, type[Bot]] = {bot.name: bot for bot in _SHIPPED}

_registry: dict[str, Callable[..., Bot]] = dict(BOTS)
_OPTIONS = ("sample", "any_rules")


def register_bot(name: str, factory: Callable[..., Bot]) -> None:
    """Make a bot available by name wherever a bot is accepted.

    Args:
        name: its name, without a colon.
        factory: makes the bot; called without arguments, or with those of ``name:key=value`` as `make_bot` reads them.

    Raises:
        ValueError: the name is taken, or has a colon.
    """
    if not isinstance(name, str) or not name:
        raise ValueError(f"a bot's name must be a text, not {name!r}")
    if not callable(factory):
        raise ValueError(f"a bot's factory must make the bot when it is called: {factory!r} cannot be")
    if SEPARATOR in name:
        raise ValueError(f"a bot's name must have no {SEPARATOR!r}, its parameters follow one: {name!r}")
    if name in _registry:
        raise ValueError(f"a bot named {name!r} exists already; the names are {', '.join(_registry)}")
    _registry[name] = factory


def bot_names() -> tuple[str, ...]:
    """The registered names."""
    return tuple(_registry)


def make_bot(spec: BotSpec) -> Bot:
    """A bot from a name, a checkpoint folder, ``module:name``, a `Bot`, or a function ``(view, rng) -> action``.

    A name may be followed by parameters, ``name:key=value:key=value``, which are then part of the bot's name.
    A checkpoint plays its most probable card; ``PATH+sample`` draws by probability, ``PATH+any_rules`` also plays
    rule sets it was not trained for.

    Raises:
        ValueError: none of these, or a wrong parameter; the message lists the names.
        CheckpointError: a checkpoint that cannot be read.
    """
    if isinstance(spec, Bot):
        return spec
    if isinstance(spec, type):
        raise ValueError(f"give a bot, not its class: {spec.__name__}()")
    if isinstance(spec, str | Path):
        name, *words = str(spec).split(SEPARATOR)
        if name in _registry:
            return _named(name, words)
        path, options = _split_options(str(spec))
        if _leads_to_checkpoint(path):
            return PolicyBot.load(path, sample="sample" in options, any_rules="any_rules" in options)
        if is_import(str(spec)):
            return import_bot(str(spec))
    elif callable(spec):
        return CallableBot(spec)
    shown = repr(spec) if len(repr(spec)) <= 120 else repr(spec)[:120] + "…"
    raise ValueError(
        f"unknown bot {shown}: give one of {', '.join(_registry)}, the folder of a checkpoint, module:name of your own"
        " code, a Bot, or a function (view, rng) -> action"
    )


def make_opponents(spec: BotSpec | Sequence[BotSpec], count: int) -> list[Bot]:
    """The bots of ``count`` seats: one spec for all of them, or exactly one each, clockwise.

    Raises:
        ValueError: a sequence of another length, or a bad spec in it.
    """
    if not is_whole(count) or not 0 < count < MAX_PLAYERS:
        raise ValueError(f"opponents are 1 to {MAX_PLAYERS - 1}, not {count!r}")
    if isinstance(spec, Sequence) and not isinstance(spec, str):
        if len(spec) != count:
            raise ValueError(f"{len(spec)} opponents given; {count} seats need 1 (for all of them) or {count}")
        return [make_bot(one) for one in spec]
    return [make_bot(spec)] * count


def _named(name: str, words: Sequence[str]) -> Bot:
    """A registered bot with the parameters of some ``key=value`` words."""
    bot: object = _registry[name](**read_parameters(name, _registry[name], words))
    if not isinstance(bot, Bot):
        raise ValueError(f"the factory of bot {name!r} made {bot!r}, which is no Bot")
    if words:
        bot.name = SEPARATOR.join([name, *words])
    return bot


def _leads_to_checkpoint(path: str) -> bool:
    """Whether a text is meant as the folder of a checkpoint, a missing or damaged one included."""
    try:
        return (resolve(path) / MANIFEST).exists() or (Path(path).exists() and "/" in path)
    except (OSError, ValueError):  # a name too long for the system, or with a zero in it
        return False


def _split_options(text: str) -> tuple[str, list[str]]:
    options: list[str] = []
    head, plus, tail = text.rpartition("+")
    while plus and tail in _OPTIONS:
        options.append(tail)
        text = head
        head, plus, tail = text.rpartition("+")
    return text, options
