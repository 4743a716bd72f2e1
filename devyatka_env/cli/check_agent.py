"""``devyatka check-agent``: leak and sanity checks of an agent."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devyatka_env._files import check_writable
from devyatka_env.cli.screen import columns, paragraph, plural
from devyatka_env.cli.shared import BOTS_HELP, RULES_HELP, Commands, add_trust, make_bots, reveal, seed_of, set_threads

if TYPE_CHECKING:
    from devyatka_env.evaluation.agent_checks.check import AgentReport


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "check-agent",
        help="look for faults and leaks in an agent of your own",
        description="Play an agent through every preset and number of seats that it accepts, and ask it again in other"
        " ways: with the hidden cards dealt anew, with other global random states, in batches, in another order.",
        epilog=BOTS_HELP,
    )
    parser.add_argument("agent", help="module:name of your own code, a checkpoint folder, or a bot's name")
    parser.add_argument("--quick", action="store_true", help="about two seconds: fewer moments and deals")
    parser.add_argument("--rules", help=f"play these rules alone: {RULES_HELP}")
    parser.add_argument("--games", type=int, help="deals of each rule set (as many as give enough moments)")
    parser.add_argument("--seed", type=int, help="seed of the deals (0)")
    add_trust(parser)
    parser.add_argument("--move-seconds", type=float, default=5.0, help="an agent that takes longer is at fault (5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check, print the verdicts, write the file; 1 if there is a fault."""
    from devyatka_env.evaluation.agent_checks.check import check_agent
    from devyatka_env.evaluation.results import write_result

    check_writable(options.json)
    set_threads(1)  # for single views more are slower
    (agent,) = make_bots([options.agent], options)
    seed = seed_of(options)
    report = check_agent(
        agent,
        games=options.games,
        seed=seed,
        quick=options.quick,
        move_seconds=options.move_seconds,
        rules=options.rules,
        progress=_progress if sys.stderr.isatty() else None,
    )
    if sys.stderr.isatty():
        _progress("")
    print(*_screen(report), sep="\n")
    reveal(seed)
    if options.json:
        write_result(_content(report), options.json)
    return 0 if report.ok else 1


def _progress(text: str) -> None:
    """Show what is being done, in a line that the next one overwrites."""
    print(f"\r{text[:78]:78}\r", end="", file=sys.stderr, flush=True)


def _screen(report: AgentReport) -> list[str]:
    moves = f"{plural(report.moves, 'move')} in {report.seconds:.1f} s, {report.mean_ms:.3g} ms each"
    rows = [["verdict", "item", "what was seen"], *([item.verdict, item.name, item.detail] for item in report.items)]
    lines = [*paragraph(f"{report.agent}: {plural(len(report.rules), 'rule set')}, {moves}"), "", *columns(rows), ""]
    for item in report.items:
        if item.position:
            lines += [f"{item.name}, the first time:", *paragraph(item.position, "  "), ""]
    return [*lines, plural(len(report.faults), "fault") if report.faults else "no fault found"]


def _content(report: AgentReport) -> dict[str, Any]:
    """The report as a result of kind ``agent-check``."""
    from devyatka_env.engine.seeds import seed_value
    from devyatka_env.evaluation.results import header, rules_values

    return {
        **header("agent-check"),
        "agent": report.agent,
        "seed": seed_value(report.seed),
        "ok": report.ok,
        "moves": report.moves,
        "mean_ms": round(report.mean_ms, 4),
        "worst_ms": round(report.worst_ms, 4),
        "seconds": round(report.seconds, 4),
        "items": [dataclasses.asdict(item) for item in report.items],
        "tables": [rules_values(rules) for rules in report.rules],
    }
