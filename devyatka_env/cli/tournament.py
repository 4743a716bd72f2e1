"""``devyatka tournament``: everyone against everyone, with ratings."""

from __future__ import annotations

import argparse
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from devyatka_env._files import check_writable
from devyatka_env.bots import Bot
from devyatka_env.bots.imported import is_import
from devyatka_env.cli.screen import width
from devyatka_env.cli.shared import (
    BOTS_HELP,
    RULES_HELP,
    Commands,
    add_trust,
    add_workers,
    check_plot,
    make_bots,
    make_workers,
    reveal,
    seed_of,
)
from devyatka_env.rules import DEFAULT_PRESET, Rules

if TYPE_CHECKING:
    from devyatka_env.engine.seeds import Seed
    from devyatka_env.evaluation.agent_checks.probes import AgentItem
    from devyatka_env.evaluation.tournaments.pairings import Pairing, Setup
    from devyatka_env.evaluation.tournaments.round_robin import Progress

DEALS = 2000


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "tournament",
        help="cross table and ratings of several bots and checkpoints",
        description="Play every entrant alone among copies of each other one, over the same duplicate deals, and rate"
        " them. The folder keeps what was played: give it again, with more deals or more entrants, and only what is"
        " missing is played; without entrants it goes on with its own. Agents of your own code (module:name) are always"
        " to be named, and are looked over first, as `devyatka check-agent --quick` does, and left out when there is a"
        " fault.",
        epilog=BOTS_HELP,
    )
    parser.add_argument("entrants", nargs="*", metavar="BOT", help="two or more bots or folders of checkpoints")
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/tournament"), metavar="FOLDER",
                        help="the tournament's folder, new or begun (runs/tournament)")  # fmt: skip
    parser.add_argument("--seats", type=int, help="number of seats, 2 to 6 (4)")
    parser.add_argument("--deals", type=int, help=f"deals a pairing, each played once from every seat ({DEALS})")
    parser.add_argument("--seed", type=int, help="seed of the deals (0)")
    add_trust(parser)
    parser.add_argument("--rules", help=f"{RULES_HELP} (first_out)")
    add_workers(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw cross table and ratings (PNG, SVG or PDF)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Play what is missing, print the tables, write the files."""
    from devyatka_env.evaluation.results import write_result
    from devyatka_env.evaluation.tournaments.cross_table import plot, table
    from devyatka_env.evaluation.tournaments.pairings import read_setup
    from devyatka_env.evaluation.tournaments.results import standings, standings_result
    from devyatka_env.evaluation.tournaments.round_robin import play_tournament

    if find_spec("scipy") is None:
        raise ImportError("ratings need SciPy: pip install 'devyatka-env[rate]'")
    check_writable(options.json)
    check_plot(options.plot)
    known = read_setup(options.output)
    rules, seed, deals = _settings(options, known)
    names = options.entrants or _entrants_of(options.output, known)
    bots, faulty = _bots(names, rules, options)
    with make_workers(options) as workers:
        tournament = play_tournament(
            bots,
            rules,
            deals,
            options.output,
            seed,
            _progress_line(bots, deals),
            workers=workers,
            move_seconds=options.move_seconds,
        )
    if sys.stderr.isatty():
        print(" " * 79, end="\r", file=sys.stderr, flush=True)  # where the progress line was
    for text in tournament.replaced:
        print(text)
    result = standings(tournament)
    print(table(result, width()))
    reveal(seed)
    if options.json:
        write_result(standings_result(result), options.json)
    if options.plot:
        plot(result, options.plot)
    if tournament.interrupted:
        return 130
    return 1 if faulty or any(one.failure for one in tournament.pairings) else 0


def _entrants_of(folder: Path, known: Setup | None) -> list[str]:
    """The entrants that a folder names.

    Raises:
        ValueError: code is among them: a file's word is not enough to run it.
    """
    from devyatka_env.evaluation.results import named_code

    names = list(known.entrants if known else ())
    code = named_code(names)
    if code:
        words = shlex.join(["devyatka", "tournament", *names, "-o", str(folder)])
        raise ValueError(
            f"{folder} names {', '.join(code)}, code that is not run on the word of a file. If you trust it, name all"
            f" entrants yourself: {words}"
        )
    return names


def _settings(options: argparse.Namespace, known: Setup | None) -> tuple[Rules, Seed, int]:
    """Rules, seed and deals: as given, else those of the folder, else the defaults."""
    if known is not None and options.rules is None and options.seats is None:
        rules = known.rules
    else:
        seats = {} if options.seats is None else {"num_players": options.seats}
        rules = Rules.of(options.rules or (known.rules if known else DEFAULT_PRESET), **seats)
    is_told = options.seed is not None or options.secret is not None
    seed = known.seed if known and not is_told else seed_of(options)
    deals = options.deals if options.deals is not None else known.deals if known else DEALS
    return rules, seed, deals


def _bots(names: list[str], rules: Rules, options: argparse.Namespace) -> tuple[list[Bot], int]:
    """The entrants, and how many were left out: the user's own code is looked over before it plays."""
    from devyatka_env.evaluation.agent_checks.check import check_agent

    bots = make_bots(names, options)
    for bot in bots:
        bot.check_rules(rules)
    sound = []
    for bot in bots:
        faults: tuple[AgentItem, ...] = ()
        if is_import(bot.name):  # checking changes a bot that keeps a memory, so another one of the kind is checked
            (other,) = make_bots([bot.name], options)
            faults = check_agent(other, quick=True, rules=rules, move_seconds=options.move_seconds).faults
        for fault in faults:
            print(f"{bot.name}, left out: {fault.name}: {fault.detail}", flush=True)
        if not faults:
            sound.append(bot)
    return sound, len(bots) - len(sound)


def _progress_line(bots: list[Bot], deals: int) -> Progress | None:
    """A line on the terminal that follows the pairings; nothing when the output goes elsewhere."""
    if not sys.stderr.isatty():
        return None

    def show(number: int, total: int, pairing: Pairing) -> None:
        names = f"{bots[pairing.candidate].name} among {bots[pairing.opponent].name}"
        figure = f"{100 * pairing.win_rate.mean:.2f} ±{100 * pairing.win_rate.half_width:.2f} %"
        text = f"pairing {number} of {total}: {pairing.deals:,} of {deals:,} deals, {figure}, {names}"
        print(text[:78].ljust(78), end="\r", file=sys.stderr, flush=True)

    return show
