"""The ``devyatka`` command."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from devyatka_env.bots import BotError, bot_names, make_bot, make_opponents
from devyatka_env.evaluation import Estimate, Evaluation, evaluate
from devyatka_env.evaluation.arena import Progress
from devyatka_env.evaluation.report import plot, table, to_json
from devyatka_env.rules import PRESETS, Rules

PLOT_ENDINGS = (".png", ".svg", ".pdf")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code: 0, 2 for bad input, 130 when interrupted."""
    parser = argparse.ArgumentParser(
        prog="devyatka", description="Devyatka, the card game, for reinforcement learning."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    _add_evaluate(commands)
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader (`| head`) has gone; what Python flushes at exit must go nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError, ImportError, BotError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130


def _add_evaluate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "evaluate",
        help="measure a checkpoint or bot against others",
        description="Play duplicate deals: each deal once with the candidate in every seat, the opponents in the rest.",
        epilog=f"A bot is a name ({', '.join(bot_names())}) or the folder of a checkpoint. PATH+sample draws its cards"
        " by probability instead of playing the most probable; PATH+any_rules plays rules it was not trained for.",
    )
    parser.add_argument("candidate", help="a bot's name or the folder of a checkpoint")
    parser.add_argument("--against", default="greedy", help="the opponents: one bot for all seats, or a comma list")
    parser.add_argument("--seats", type=int, default=None, help="number of seats, 2 to 6 (default: 4)")
    parser.add_argument("--deals", type=int, default=2000, help="deals, each played once from every seat (2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the deals (0)")
    parser.add_argument(
        "--rules",
        default="first_out",
        help=f"a preset ({', '.join(PRESETS)}), field=value words after it if wanted, or a YAML file",
    )
    parser.add_argument("--reference", default="random", help="further candidates, as rows to compare: a comma list")
    parser.add_argument("--threads", type=int, default=1, help="torch threads of networks (1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw win rates (PNG, SVG or PDF)")
    parser.set_defaults(run=_evaluate)


def _evaluate(options: argparse.Namespace) -> int:
    rules = Rules.of(options.rules, **({} if options.seats is None else {"num_players": options.seats}))
    for path in (options.json, options.plot):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise ValueError(
                f"cannot write {path}: " + ("it is a folder" if path.is_dir() else f"there is no folder {path.parent}")
            )
    if options.plot and options.plot.suffix not in PLOT_ENDINGS:
        raise ValueError(f"--plot writes {', '.join(PLOT_ENDINGS)}, not {options.plot.name!r}")
    if options.plot and find_spec("matplotlib") is None:
        raise ImportError("--plot needs matplotlib: pip install 'devyatka-env[train]'")
    references = _names(options.reference)
    names = [options.candidate, *(name for name in references if name != options.candidate)]
    candidates = [make_bot(name) for name in names]
    field = _names(options.against)
    opponents = make_opponents(field[0] if len(field) == 1 else field, rules.num_players - 1)
    _set_threads(options.threads)
    results: list[Evaluation] = []
    try:
        for bot in candidates:
            evaluate(bot, opponents, rules, 1)  # loads or compiles the kernels, so that games/s is that of play
            progress = _progress(bot.name, options.deals)
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


def _names(text: str) -> list[str]:
    """The names of a comma list."""
    return [name.strip() for name in text.split(",")] if text else []


def _set_threads(threads: int) -> None:
    """Set torch's threads before a network runs, without importing torch where none does."""
    if threads < 1:
        raise ValueError(f"threads must be at least 1, not {threads}")
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    os.environ["OMP_NUM_THREADS"] = str(threads)


def _progress(name: str, deals: int) -> Progress | None:
    """A line on the terminal that follows the evaluation; nothing when the output goes elsewhere."""
    if not sys.stderr.isatty():
        return None

    def show(played: int, win_rate: Estimate) -> None:
        end = "\r" if played < deals else "\r" + " " * 79 + "\r"
        print(f"{name}: {played:,} of {deals:,} deals, win rate {win_rate}"[:78], end=end, file=sys.stderr, flush=True)

    return show


if __name__ == "__main__":
    sys.exit(main())
