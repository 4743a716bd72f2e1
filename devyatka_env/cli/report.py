"""``devyatka report``: all about a checkpoint, a training run or a bot on one page."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from devyatka_env._files import check_writable
from devyatka_env.cli.shared import (
    BOTS_HELP,
    RULES_HELP,
    Commands,
    add_workers,
    comma_list,
    make_workers,
    seat_counts,
)

if TYPE_CHECKING:
    from devyatka_env.evaluation.reports.measurements import Progress

DEALS, AGAINST, OUTPUT = 8000, "greedy,random", "report.html"


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "report",
        help="all about a checkpoint, training run or bot on one page",
        description="Measure a checkpoint, the best one of a training run, or a bot, and write all that is known of it"
        " on one page: win rates with intervals, what it gives away by exact values, the curves of its training, its"
        " rules, its manifest, and the commands that measure it again. The page needs no network. Ctrl-C writes what is"
        " there.",
        epilog=BOTS_HELP,
    )
    parser.add_argument("subject", help="the folder of a checkpoint or of a training run, or a bot's name")
    parser.add_argument("-o", "--output", type=Path, default=Path(OUTPUT), metavar="FILE",
                        help=f".html, or .md with its pictures in a folder beside it ({OUTPUT})")  # fmt: skip
    parser.add_argument("--against", default=AGAINST,
                        help=f"the fields: a comma list of bots, each in all other seats ({AGAINST})")  # fmt: skip
    parser.add_argument("--deals", type=int, default=DEALS,
                        help=f"deals of each field and number of seats, each from every seat ({DEALS})")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="seed of the deals (0)")
    parser.add_argument("--seats", help="numbers of seats, such as 4 or 2-6 (all that it was trained for)")
    parser.add_argument("--rules", help=f"rules other than those that it was trained for: {RULES_HELP}")
    add_workers(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure, and write the page."""
    from devyatka_env.evaluation.reports.measurements import measure_agent
    from devyatka_env.evaluation.reports.page import plain
    from devyatka_env.evaluation.reports.reported_agent import open_agent, tables_of
    from devyatka_env.evaluation.reports.sections import page_of
    from devyatka_env.evaluation.reports.writers import check_ending, write_page

    check_ending(options.output)
    check_writable(options.output)
    subject = open_agent(options.subject)
    tables = tables_of(subject, options.rules, seat_counts(options.seats))
    with make_workers(options) as workers:
        measurements = measure_agent(
            subject,
            tables,
            comma_list(options.against),
            options.deals,
            options.seed,
            _progress_line(),
            workers=workers,
            move_seconds=options.move_seconds,
        )
    if sys.stderr.isatty():
        print(" " * 79, end="\r", file=sys.stderr)
    page = page_of(measurements, _command(options))
    *_, written = write_page(page, options.output)
    print(f"{written}: {plain(page.verdict)}")
    for notice in page.notices:
        print(plain(notice))
    if measurements.interrupted:
        return 130
    return 1 if measurements.failed else 0


def _command(options: argparse.Namespace) -> str:
    """The command that makes this page again; who plays makes no difference to it."""
    words = ["devyatka", "report", options.subject, "-o", str(options.output), "--against", options.against]
    words += ["--deals", str(options.deals), "--seed", str(options.seed)]
    for name in ("seats", "rules"):
        value = getattr(options, name)
        words += [] if value is None else [f"--{name}", value]
    return shlex.join(words)


def _progress_line() -> Progress | None:
    """A line on the terminal that follows the steps; nothing when the output goes elsewhere."""
    if not sys.stderr.isatty():
        return None

    def show(number: int, total: int, text: str) -> None:
        print(f"{number} of {total}: {text}"[:78].ljust(78), end="\r", file=sys.stderr, flush=True)

    return show
