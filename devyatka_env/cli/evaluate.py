"""``devyatka evaluate``: a checkpoint or bot against others over duplicate deals."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from devyatka_env.bots import make_bot, make_opponents
from devyatka_env.cli.shared import (
    BOTS_HELP,
    RULES_HELP,
    Commands,
    check_plot,
    check_writable,
    comma_list,
    progress_line,
    set_threads,
)
from devyatka_env.rules import Rules


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "evaluate",
        help="measure a checkpoint or bot against others",
        description="Play duplicate deals: each deal once with the candidate in every seat, the opponents in the rest.",
        epilog=BOTS_HELP,
    )
    parser.add_argument("candidate", help="a bot's name or the folder of a checkpoint")
    parser.add_argument("--against", default="greedy", help="the opponents: one bot for all seats, or a comma list")
    parser.add_argument("--seats", type=int, default=None, help="number of seats, 2 to 6 (default: 4)")
    parser.add_argument("--deals", type=int, default=2000, help="deals, each played once from every seat (2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the deals (0)")
    parser.add_argument("--rules", default="first_out", help=RULES_HELP)
    parser.add_argument("--reference", default="random", help="further candidates, as rows to compare: a comma list")
    parser.add_argument("--threads", type=int, default=1, help="torch threads of networks (1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw win rates (PNG, SVG or PDF)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Play, print the table, write the files."""
    from devyatka_env.evaluation import Evaluation, evaluate
    from devyatka_env.evaluation.report import plot, table, to_json

    rules = Rules.of(options.rules, **({} if options.seats is None else {"num_players": options.seats}))
    check_writable(options.json)
    check_plot(options.plot)
    references = comma_list(options.reference)
    names = [options.candidate, *(name for name in references if name != options.candidate)]
    candidates = [make_bot(name) for name in names]
    field = comma_list(options.against)
    opponents = make_opponents(field[0] if len(field) == 1 else field, rules.num_players - 1)
    set_threads(options.threads)
    results: list[Evaluation] = []
    try:
        for bot in candidates:
            evaluate(bot, opponents, rules, 1)  # loads or compiles the kernels, so that games/s is that of play
            progress = progress_line(bot.name, options.deals)
            results.append(evaluate(bot, opponents, rules, options.deals, options.seed, progress))
            if results[-1].interrupted:
                break
    except KeyboardInterrupt:
        if not results:
            raise
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps(to_json(results[0], results[1:]), indent=1) + "\n", encoding="utf-8")
    if options.plot:
        plot(results, options.plot)
    return 130 if results[-1].interrupted or len(results) < len(candidates) else 0
