"""What several commands share: option values, files to write, threads, the progress line."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from devyatka_env.bots import bot_names
from devyatka_env.rules import PRESETS

if TYPE_CHECKING:
    from devyatka_env.evaluation import Estimate
    from devyatka_env.evaluation.arena import Progress

# What `add_subparsers` returns: where a command adds its parser.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

PLOT_ENDINGS = (".png", ".svg", ".pdf")
RULES_HELP = f"a preset ({', '.join(PRESETS)}), field=value words after it if wanted, or a YAML file"
BOTS_HELP = (
    f"A bot is a name ({', '.join(bot_names())}; `devyatka bots` describes them), with parameters as in"
    " name:key=value:key=value where it has some, or the folder of a checkpoint. PATH+sample draws its cards by"
    " probability instead of playing the most probable; PATH+any_rules plays rules it was not trained for."
)


def comma_list(text: str) -> list[str]:
    """The parts of a comma list; none of an empty text."""
    return [part.strip() for part in text.split(",")] if text else []


def check_writable(path: Path | None) -> None:
    """Refuse a file that cannot be written before any work is done for it; ``None`` is no file.

    Raises:
        ValueError: a folder, or a file in a folder that is not there.
    """
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise ValueError(
            f"cannot write {path}: " + ("it is a folder" if path.is_dir() else f"there is no folder {path.parent}")
        )


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
