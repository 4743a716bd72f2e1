"""What several commands share: option values, files to write, threads, the progress line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from devyatka_env._files import check_writable
from devyatka_env.bots import Bot, bot_names, make_bot
from devyatka_env.engine.seeds import Secret, Seed
from devyatka_env.rules import MAX_PLAYERS, PRESETS

if TYPE_CHECKING:
    from devyatka_env.evaluation import Estimate, Workers
    from devyatka_env.evaluation.arena import Progress

# What `add_subparsers` returns: where a command adds its parser.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

PLOT_ENDINGS = (".png", ".svg", ".pdf")
RULES_HELP = f"a preset ({', '.join(PRESETS)}), field=value words after it if wanted, or a YAML file"
BOTS_HELP = (
    f"A bot is a name ({', '.join(bot_names())}; `devyatka bots` describes them), with parameters as in"
    " name:key=value:key=value where it has some, the folder of a checkpoint, or module:name of your own code."
    " PATH+sample draws its cards by probability instead of playing the most probable; PATH+any_rules plays rules it"
    " was not trained for."
)


def comma_list(text: str) -> list[str]:
    """The parts of a comma list; none of an empty text."""
    return [part.strip() for part in text.split(",")] if text else []


def check_plot(path: Path | None, option: str = "--plot") -> None:
    """`check_writable` for a picture drawn by matplotlib.

    Raises:
        ValueError: it cannot be written, or has an ending that matplotlib does not draw.
        ImportError: matplotlib is not installed.
    """
    check_writable(path)
    if path is not None and path.suffix not in PLOT_ENDINGS:
        raise ValueError(f"{option} writes {', '.join(PLOT_ENDINGS)}, not {path.name!r}")
    if path is not None and find_spec("matplotlib") is None:
        raise ImportError(f"{option} needs matplotlib: pip install 'devyatka-env[train]'")


def seat_counts(text: str | None) -> list[int | None]:
    """Numbers of seats from ``4``, ``2,3,4`` or ``2-6``; ``[None]``, what the rules say, for nothing.

    Raises:
        ValueError: anything else, or one twice.
    """
    if text is None:
        return [None]
    counts: list[int] = []
    for part in comma_list(text):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"seats must be like 4, 2,3,4 or 2-6, not {text!r}")
        counts += range(int(first), int(last or first) + 1)
    if not counts or len(set(counts)) < len(counts) or not set(counts) <= set(range(2, MAX_PLAYERS + 1)):
        raise ValueError(f"seats must be different numbers from 2 to {MAX_PLAYERS}, not {text!r}")
    return list(counts)


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add the options of who plays, and how long a move may take."""
    parser.add_argument("--jobs", type=int, default=1, help="processes to play on (1)")
    parser.add_argument("--ray", metavar="ADDRESS", help="a Ray cluster to play on: its address, auto, or local")
    parser.add_argument("--threads", type=int, default=1, help="torch threads of each process (1)")
    parser.add_argument("--move-seconds", type=float, default=5.0, help="a bot that takes longer has failed (5)")


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add the options for agents that one does not trust."""
    parser.add_argument(
        "--secret",
        nargs="?",
        const="",
        metavar="HEX",
        help="deal by a secret instead of a seed, so that no agent can work out the deals: a fresh one, whose SHA-256"
        " is shown before play and which is shown afterwards, or that of an earlier result to play it again",
    )
    parser.add_argument(
        "--isolate",
        action="store_true",
        help="run each module:name in a process of its own, which is given views and random words alone",
    )


def seed_of(options: argparse.Namespace) -> Seed:
    """The seed of the options, or the secret in its place, after committing to it on the screen.

    Raises:
        ValueError: no secret, or a seed beside it.
    """
    if options.secret is None:
        return options.seed or 0
    if options.seed is not None:
        raise ValueError(f"--secret takes the place of --seed {options.seed}: give one of them")
    secret = Secret.from_hex(options.secret) if options.secret else Secret()
    print(f"Deals of a secret. Its SHA-256: {secret.commitment}", flush=True)
    return secret


def reveal(seed: Seed) -> None:
    """Show the secret after play, so that anybody can check what was committed to."""
    if isinstance(seed, Secret):
        print(f"The secret: {seed.value.hex()}  (--secret with it deals the same)")


def make_bots(names: Sequence[str], options: argparse.Namespace) -> list[Bot]:
    """The bots of some texts, those of users' own code in processes of their own if that is asked for.

    Raises:
        ValueError: no such bot, or nobody to isolate.
    """
    from devyatka_env.bots.imported import is_import

    if not options.isolate:
        return [make_bot(name) for name in names]
    from devyatka_env.bots.isolated import IsolatedBot

    return [IsolatedBot(name, options.move_seconds) if is_import(name) else make_bot(name) for name in names]


def make_workers(options: argparse.Namespace) -> Workers:
    """The workers of `add_workers`' options.

    Raises:
        ValueError: a number below one, or no time at all for a move.
    """
    from devyatka_env.evaluation import Workers

    if not options.move_seconds > 0:
        raise ValueError(f"move-seconds must be above 0, not {options.move_seconds:g}")
    set_threads(options.threads)
    return Workers(options.jobs, options.ray, options.threads)


def set_threads(threads: int) -> None:
    """Set torch's threads before a network runs, without importing torch where none does.

    Raises:
        ValueError: less than one.
    """
    if threads < 1:
        raise ValueError(f"threads must be at least 1, not {threads}")
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    os.environ["OMP_NUM_THREADS"] = str(threads)


def progress_line(name: str, deals: int) -> Progress | None:
    """A line on the terminal that follows an evaluation; nothing when the output goes elsewhere."""
    if not sys.stderr.isatty():
        return None

    def show(played: int, win_rate: Estimate) -> None:
        end = "\r" if played < deals else "\r" + " " * 79 + "\r"
        print(f"{name}: {played:,} of {deals:,} deals, win rate {win_rate}"[:78], end=end, file=sys.stderr, flush=True)

    return show
