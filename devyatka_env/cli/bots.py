"""``devyatka bots``: the bots that can be named."""

from __future__ import annotations

import argparse
import shutil
import textwrap

from devyatka_env.bots.catalogue import HEADING, bot_rows
from devyatka_env.cli.shared import BOTS_HELP, Commands

MAX_WIDTH = 100  # columns


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "bots",
        help="list the bots that can be named",
        description="The bots by name, with what they see (a bot that sees all hands cheats, and every report says so)"
        " and whether their choice is fixed by it. Sources are the rule pages of docs/rules.md.",
        epilog=BOTS_HELP,
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the table; its last column is wrapped."""
    rows = [HEADING, *bot_rows()]
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    indent = sum(widths) + 2 * len(widths)
    room = min(MAX_WIDTH, shutil.get_terminal_size().columns) - indent
    for row in rows:
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        first, *more = textwrap.wrap(row.summary, max(room, 20))
        print(f"{cells}  {first}", *(" " * indent + line for line in more), sep="\n")
    return 0
