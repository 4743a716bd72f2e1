"""``devyatka evaluate``: a checkpoint or bot against others over duplicate deals."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devyatka_env._files import check_writable
from devyatka_env.bots import Bot, make_bot, make_opponents
from devyatka_env.cli.screen import course, ending, paragraph
from devyatka_env.cli.shared import (
    BOTS_HELP,
    RULES_HELP,
    Commands,
    add_trust,
    add_workers,
    check_plot,
    comma_list,
    make_bots,
    make_workers,
    progress_line,
    reveal,
    seat_counts,
    seed_of,
)
from devyatka_env.engine.seeds import Seed, seed_from
from devyatka_env.games import Game
from devyatka_env.rules import Rules

if TYPE_CHECKING:
    from devyatka_env.evaluation import Comparison, Workers

DEALS, AGAINST = 2000, "greedy"
MANY_DEALS = 10_000_000
# Deals over which the means of the controls are measured, to one of the evaluation.
CONTROL_DEALS = 20


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "evaluate",
        help="measure a checkpoint or bot against others",
        description="Play duplicate deals: each deal once with the candidate in every seat, the opponents in the rest.",
        epilog=BOTS_HELP,
    )
    parser.add_argument("candidate", nargs="?", help="a bot's name or the folder of a checkpoint")
    parser.add_argument("--against", default=AGAINST, help="the opponents: one bot for all seats, or a comma list")
    parser.add_argument("--seats", help="number of seats, 2 to 6 (default: 4), or several: 2,3,4 or 2-6")
    parser.add_argument("--deals", type=int, help=f"deals, each played once from every seat ({DEALS}; no limit to speak"
                        " of with --until-ci)")  # fmt: skip
    parser.add_argument("--until-ci", type=float, metavar="HALF", help="stop when ± of the win rate is down to this")
    parser.add_argument("--seed", type=int, help="seed of the deals (0)")
    parser.add_argument("--rules", default="first_out", help=RULES_HELP)
    parser.add_argument("--reference", default="random", help="further candidates, as rows to compare: a comma list")
    parser.add_argument(
        "--adjust",
        action="store_true",
        help="also print win rates freed of the luck of the deals, by scripted bots and the ceiling on"
        f" {CONTROL_DEALS} times as many",
    )
    add_workers(parser)
    add_trust(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw win rates (PNG, SVG or PDF)")
    parser.add_argument("--replay", type=Path, metavar="RESULT", help="show the games of a deal of a result instead")
    parser.add_argument("--deal", type=int, help="the deal to show; with --replay")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Play, print the tables, write the files; or show a deal of a result."""
    if options.replay is not None or options.deal is not None:
        return _replay(options)
    from devyatka_env.evaluation.display import plot, summary
    from devyatka_env.evaluation.results import evaluation_result, write_result

    if options.deals is None:
        options.deals = MANY_DEALS if options.until_ci else DEALS
    if options.candidate is None:
        raise ValueError("give a candidate, or --replay RESULT --deal N")
    check_writable(options.json)
    check_plot(options.plot)
    names = [options.candidate, *(name for name in comma_list(options.reference) if name != options.candidate)]
    bots = make_bots(names, options)
    tables = _tables(options, bots)
    if options.plot and len(tables) > 1:
        raise ValueError(f"--plot draws one number of seats, not {options.seats}")
    seed = seed_of(options)
    comparisons = _play(options, bots, tables, seed)
    if len(comparisons) > 1:
        print(summary(comparisons))
    reveal(seed)
    if options.json:
        write_result(evaluation_result(comparisons), options.json)
    if options.plot:
        plot(comparisons[0], options.plot)
    evaluations = [one for comparison in comparisons for one in comparison.evaluations]
    if len(comparisons) < len(tables) or any(one.interrupted for one in evaluations):
        return 130
    return 1 if any(one.failure for one in evaluations) else 0


def _tables(options: argparse.Namespace, bots: list[Bot]) -> list[tuple[Rules, list[Bot]]]:
    """The rule set and the opponents of each number of seats.

    Raises:
        ValueError: a wrong number of opponents, or somebody who does not play the rules.
    """
    others, tables = make_bots(comma_list(options.against), options), []
    for seats in seat_counts(options.seats):
        rules = Rules.of(options.rules, **({} if seats is None else {"num_players": seats}))
        opponents = make_opponents(others[0] if len(others) == 1 else others, rules.num_players - 1)
        for bot in (*bots, *opponents):
            bot.check_rules(rules)
        tables.append((rules, opponents))
    return tables


def _play(
    options: argparse.Namespace, bots: list[Bot], tables: list[tuple[Rules, list[Bot]]], seed: Seed
) -> list[Comparison]:
    """Play and print the tables, up to Ctrl-C."""
    from devyatka_env.evaluation import evaluate
    from devyatka_env.evaluation.display import table

    comparisons: list[Comparison] = []
    with make_workers(options) as workers:
        for rules, opponents in tables:
            try:
                if options.jobs == 1 and options.ray is None:  # load the kernels, so that games/s is that of play
                    evaluate("greedy", "greedy", rules, 1)
                comparisons.append(_compare(options, bots, opponents, rules, workers, seed))
            except KeyboardInterrupt:
                if not comparisons:
                    raise
                break
            print(table(comparisons[-1]), end="\n\n" if len(tables) > 1 else "\n", flush=True)
            if comparisons[-1].evaluations[0].interrupted:
                break
    return comparisons


def _compare(
    options: argparse.Namespace, bots: list[Bot], opponents: list[Bot], rules: Rules, workers: Workers, seed: Seed
) -> Comparison:
    from devyatka_env.evaluation import compare

    return compare(
        bots,
        opponents,
        rules,
        options.deals,
        seed,
        progress_line(f"{bots[0].name}, {rules.num_players} seats", options.deals),
        workers=workers,
        until_ci=options.until_ci,
        move_seconds=options.move_seconds,
        adjust=CONTROL_DEALS if options.adjust else 0,
    )


def _replay(options: argparse.Namespace) -> int:
    """Show the games of a deal of a result file, move by move."""
    from devyatka_env.evaluation import read_result
    from devyatka_env.evaluation.replay import replay_deal
    from devyatka_env.evaluation.results import check_words, rules_of

    if options.replay is None or options.deal is None:
        raise ValueError("--replay RESULT and --deal N go together")
    result = read_result(options.replay, "evaluation")
    check_words(result, options.replay)
    played, row = _played(options, result["tables"])
    rules, seed = rules_of(played, options.replay), seed_from(played["seed"])
    players = [row["candidate"], *played["against"]]
    if len(players) != rules.num_players:
        raise ValueError(f"{options.replay} has {len(players)} players at a table of {rules.num_players} seats")
    _check_named(options, players)
    bots = [make_bot(name) for name in players]
    start = Game.deal(rules, seed, options.deal)
    print(*paragraph(f"{rules}, deal {options.deal} of seed {seed}"), "", start, sep="\n")
    for seat, end in enumerate(replay_deal(bots, rules, seed, options.deal)):
        seated = ", ".join(f"seat {k} {players[(k - seat) % len(players)]}" for k in range(len(players)))
        print("", *paragraph(seated, "== "), *course(start, end, "Moves"), "", *ending(end), sep="\n")
        print(*paragraph(end.position), sep="\n")
    return 0


def _played(options: argparse.Namespace, tables: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The table and the candidate's row that are asked for, by default the first of each.

    Raises:
        ValueError: the file does not have them, or not that deal.
    """
    seats = [one["rules"]["num_players"] for one in tables]
    wanted, *others = seat_counts(options.seats) if options.seats else [seats[0]]
    if others:
        raise ValueError(f"--replay shows one number of seats, not {options.seats}")
    if wanted not in seats:
        raise ValueError(f"{options.replay} has tables of {', '.join(map(str, seats))} seats, not of {wanted}")
    played = tables[seats.index(wanted)]
    row = played["candidates"][0]
    if options.candidate is not None:
        known = {one["candidate"]: one for one in played["candidates"]}
        if options.candidate not in known:
            raise ValueError(f"{options.replay} has candidates {', '.join(known)}, not {options.candidate!r}")
        row = known[options.candidate]
    if not 0 <= options.deal < row["deals"]:
        raise ValueError(f"deal must be 0 to {row['deals'] - 1}, the deals that were played, not {options.deal}")
    return played, row


def _check_named(options: argparse.Namespace, players: list[str]) -> None:
    """Refuse opponents other than the file's, and code that only the file names: its word is not enough to run it.

    Raises:
        ValueError: either; the message says how to name them.
    """
    from devyatka_env.evaluation.results import named_code

    candidate, *opponents = players
    given = comma_list(options.against)
    given = given * len(opponents) if len(given) == 1 else given
    if given != opponents and options.against != AGAINST:
        raise ValueError(f"{options.replay} has opponents {', '.join(opponents)}, not {options.against}")
    code = named_code([*([] if options.candidate else [candidate]), *([] if given == opponents else opponents)])
    if code:
        against = opponents[:1] if len(set(opponents)) == 1 else opponents
        words = ["devyatka", "evaluate", candidate, "--against", ",".join(against), "--replay", str(options.replay)]
        words += ["--deal", str(options.deal), *(["--seats", options.seats] if options.seats else [])]
        raise ValueError(
            f"{options.replay} names {', '.join(code)}, code that is not run on the word of a file. If you trust it,"
            f" name the players yourself: {shlex.join(words)}"
        )
