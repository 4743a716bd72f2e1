"""``devyatka exact``: how far from perfect a checkpoint or bot plays."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devyatka_env._files import check_writable
from devyatka_env.bots import Bot, make_bot, make_opponents
from devyatka_env.cli.screen import paragraph, plural
from devyatka_env.cli.shared import (
    BOTS_HELP,
    RULES_HELP,
    Commands,
    add_workers,
    comma_list,
    make_workers,
    seat_counts,
)
from devyatka_env.rules import MAX_PLAYERS, MIN_PLAYERS, Rules
from devyatka_env.rules.numbers import check_seed

if TYPE_CHECKING:
    from devyatka_env.evaluation import Estimate, Regret, Standing, TwoSeatExact
    from devyatka_env.evaluation.streaming import Measured, Progress, WinRate

DEALS = 10_000
# Exact values, the oracle and best responses take longer than plain play, and say more by deal.
TWO_SEAT_SHARE = 20
TWO_SEAT_PARTS = ("choices", "perfect play", "best responses")


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "exact",
        help="how far from perfect a checkpoint or bot plays",
        description="At two seats: what a bot gives away by the exact values of its choices, its win rate against"
        " perfect play, and against the exact best response to it (its exploitability). At any number of seats: where"
        " it stands between chance and the ceiling, the exact best response to its opponents that sees all hands.",
        epilog=BOTS_HELP,
    )
    parser.add_argument("candidate", help="a bot's name or the folder of a checkpoint")
    parser.add_argument(
        "--against",
        default="greedy",
        help="the opponents of the standings: one bot for all seats, or a comma list (greedy)",
    )
    parser.add_argument(
        "--seats", help="numbers of seats: 4, 2,3,4 or 2-6 (default: all that the rules and the bot play)"
    )
    parser.add_argument(
        "--deals",
        type=int,
        default=DEALS,
        help=f"deals, each played from every seat; what is exact at two seats takes 1 in {TWO_SEAT_SHARE} ({DEALS})",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the deals (0)")
    parser.add_argument("--rules", default="first_out", help=RULES_HELP)
    add_workers(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure, print, write the file."""
    from devyatka_env.evaluation.results import write_result

    check_writable(options.json)
    tables = _tables(options)
    found = _Found()
    try:
        _measure(options, tables, found)
    except KeyboardInterrupt:
        if not found.parts:
            raise
        found.interrupted = True
    if found.standings:
        print("", *_standings(found.standings), sep="\n")
    notes = _notes(tables, found)
    if notes:
        print("", *(line for note in notes for line in paragraph(note)), sep="\n")
    if options.json:
        write_result(_content(options, tables, found), options.json)
    if found.interrupted or any(one.interrupted for one in found.parts.values()):
        return 130
    return 1 if any(one.failure for one in found.parts.values()) else 0


# --- what is measured ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tables:
    """What there is to measure."""

    bot: Bot
    two_seats: Rules | None
    standings: list[tuple[Rules, list[Bot]]]
    skipped: dict[int, str]  # by number of seats


@dataclass
class _Found:
    """What has been measured."""

    two_seats: TwoSeatExact | None = None
    standings: list[Standing] = field(default_factory=list)
    interrupted: bool = False

    @property
    def parts(self) -> dict[str, Measured]:
        """All of it, by name."""
        parts: dict[str, Measured] = {f"{one.rules.num_players} seats": one for one in self.standings}
        if self.two_seats is not None:
            named = zip(TWO_SEAT_PARTS, self.two_seats.parts, strict=False)
            parts = {f"two seats, {name}": part for name, part in named} | parts
        return parts


def _tables(options: argparse.Namespace) -> _Tables:
    """The tables that the rules, the bot and its opponents allow.

    Raises:
        ValueError: there is none, or a bot that is none.
    """
    bot = make_bot(options.candidate)
    against = [make_bot(name) for name in comma_list(options.against)]
    two_seats, standings, skipped = None, [], {}
    for seats in _seats(options):
        try:
            rules = Rules.of(options.rules, num_players=seats)
            bot.check_rules(rules)
            two_seats = rules if seats == 2 else two_seats
            opponents = make_opponents(against[0] if len(against) == 1 else against, seats - 1)
            for one in opponents:
                one.check_rules(rules)
            standings.append((rules, opponents))
        except ValueError as error:
            skipped[seats] = str(error)
    if not standings:
        raise ValueError(next(iter(skipped.values())))
    return _Tables(bot, two_seats, standings, skipped)


def _seats(options: argparse.Namespace) -> list[int]:
    """The numbers of seats to try: those asked for, the one that the rules name, or all."""
    if options.seats is None and "num_players" in options.rules:
        return [Rules.of(options.rules).num_players]
    return [seats for seats in seat_counts(options.seats or f"{MIN_PLAYERS}-{MAX_PLAYERS}") if seats is not None]


def _measure(options: argparse.Namespace, tables: _Tables, found: _Found) -> None:
    """Measure all tables up to Ctrl-C; what is exact at two seats is printed at once."""
    from devyatka_env.evaluation import standing, two_seats
    from devyatka_env.evaluation.arena import check_deals

    check_deals(options.deals)
    check_seed(options.seed)

    shared: dict[str, Any] = {"seed": options.seed, "move_seconds": options.move_seconds}
    heading = f"{tables.bot.name}, {options.rules}, seed {options.seed}; 95 % intervals over deals"
    with make_workers(options) as workers:
        print(*paragraph(heading), sep="\n", flush=True)
        if tables.two_seats is not None:
            deals, told = -(-options.deals // TWO_SEAT_SHARE), _progress_line(tables.bot, 2)
            found.two_seats = two_seats(tables.bot, tables.two_seats, deals, progress=told, workers=workers, **shared)
            print("", *_two_seats(found.two_seats), sep="\n", flush=True)
        for rules, opponents in tables.standings:
            if any(one.interrupted for one in found.parts.values()):
                break
            told = _progress_line(tables.bot, rules.num_players)
            found.standings.append(
                standing(tables.bot, opponents, rules, options.deals, progress=told, workers=workers, **shared)
            )


def _progress_line(bot: Bot, seats: int) -> Progress | None:
    """A line on the terminal that follows a measurement; nothing when the output goes elsewhere."""
    if not sys.stderr.isatty():
        return None

    def show(name: str, done: int, deals: int) -> None:
        line = f"{bot.name}, {seats} seats, {name}: {done:,} of {deals:,} deals"[:78].ljust(78)
        print(line, end="\r" if done < deals else "\r" + " " * 79 + "\r", file=sys.stderr, flush=True)

    return show


# --- shown -----------------------------------------------------------------------------------------------------------


def _two_seats(one: TwoSeatExact) -> Iterator[str]:
    """The table of two seats and what it counts."""
    from devyatka_env.evaluation.display import columns

    lost, response = one.regret, one.best_response
    rows = [["two seats", "", "perfect", "deals"]]
    if lost.match.deals:
        deals = f"{lost.match.deals:,}"
        rows += [
            ["value lost a choice", _scaled(lost.value_lost, 1, 4), "0", deals],
            ["won deals given away, per 1,000 choices", _scaled(lost.mistakes, 1000, 2), "0", deals],
            ["  per 100 choices that mattered", _scaled(lost.mistakes_of_mattered, 100, 2), "0", deals],
        ]
    for name, part in (("perfect play", one.against_oracle), ("the best response to it", response)):
        if part is not None and (part.deals or part.unknown):
            rows.append([f"win rate against {name}", _known(part), "0.5", f"{part.deals:,}" if part.deals else "-"])
    yield columns(rows)
    if lost.match.deals:
        text = (
            f"In play against itself it had {plural(lost.decisions, 'choice')}; {lost.mattered:,} mattered: the deal"
            f" was won, and some card would have given it away. Value is payoff ({one.rules.payoff})."
        )
        if response is not None and response.deals:
            text += (
                " What the last win rate lacks to 0.5 is the bot's exploitability, by a seat that sees all hands and"
                " knows its play."
            )
        yield ""
        yield from paragraph(text)


def _known(part: WinRate) -> str:
    return "not known" if part.unknown else str(part.win_rate)


def _scaled(estimate: Estimate, factor: float, digits: int) -> str:
    """An estimate in other units; ``-`` for nothing."""
    if not estimate.count:
        return "-"
    return f"{factor * estimate.mean:.{digits}f} ± {factor * estimate.half_width:.{digits}f}"


def _standings(standings: Sequence[Standing]) -> Iterator[str]:
    """The table of standings."""
    from devyatka_env.evaluation.display import columns

    rows = [["seats", "deals", "win rate", "chance", "ceiling", "standing, %"]]
    for one in standings:
        n, ceiling = one.rules.num_players, str(one.ceiling) if one.ceiling.count else "-"
        win_rate = str(one.win_rate) if one.deals else "-"
        rows.append([f"{n:5}", f"{one.deals:,}", win_rate, f"{1 / n:.4f}", ceiling, _scaled(one.share, 100, 1)])
    yield columns(rows)
    yield ""
    names = standings[0].against
    field = names[0] if len({name for one in standings for name in one.against}) == 1 else ", ".join(names)
    yield from paragraph(
        f"Against {field}. The ceiling is the exact best response to these opponents, which sees all hands;"
        " standing is 0 at chance and 100 at the ceiling, both on the same deals."
    )


def _notes(tables: _Tables, found: _Found) -> list[str]:
    """What else must be said."""
    notes, two = [], found.two_seats
    cheats = [bot for bot in (tables.bot, *(bot for _, bots in tables.standings for bot in bots)) if bot.sees_all_hands]
    for name in dict.fromkeys(bot.name for bot in cheats):
        notes.append(f"{name} sees all hands, so it cheats: not to be compared with bots that do not")
    if two is not None:
        notes += _two_seat_notes(two)
    notes += dict.fromkeys(one.unknown for one in found.standings if one.unknown)
    for name, part in found.parts.items():
        if part.failure is not None:
            notes.append(f"{name}: ended after {plural(part.deals, 'deal')}: {part.failure.message}")
        elif part.interrupted:
            notes.append(f"{name}: stopped early, after {plural(part.deals, 'deal')}")
    return [*notes, *(f"{seats} seats skipped: {why}" for seats, why in tables.skipped.items())]


def _two_seat_notes(one: TwoSeatExact) -> Iterator[str]:
    if not one.hands_known:
        yield (
            "Cards are out of play at two seats, so the seats do not know each other's hands; the values are those of"
            " open hands, which honest play cannot count on."
        )
    lost, response = one.regret, one.best_response
    if lost.mattered and not lost.mistakes.mean:
        yield f"No won deal given away in {_bounded(lost.match.deals)}."
    if response is not None and response.unknown:
        yield response.unknown
    elif response is not None and response.deals and response.win_rate.low == response.win_rate.high == 0.5:
        yield f"No best response won a deal that is lost in {_bounded(response.deals)}."


def _bounded(deals: int) -> str:
    """So many deals without a case, and what they bound: a share that leaves none with a chance of 1 in 20."""
    share = 1 - 0.05 ** (1 / deals)
    return f"{plural(deals, 'deal')}: with 95 % confidence it happens in fewer than {100 * share:.2g} of 100"


# --- as JSON ---------------------------------------------------------------------------------------------------------


def _content(options: argparse.Namespace, tables: _Tables, found: _Found) -> dict[str, Any]:
    from devyatka_env.evaluation.results import header, rules_values

    two = found.two_seats
    return {
        **header("exact"),
        "candidate": tables.bot.name,
        "cheats": tables.bot.sees_all_hands,
        "seed": options.seed,
        "two_seats": two and {
            **rules_values(two.rules),
            "hands_known": two.hands_known,
            "regret": {**_values(two.regret), **_values(two.regret.match)},
            "against_oracle": two.against_oracle and _values(two.against_oracle),
            "best_response": two.best_response and _values(two.best_response),
        },
        "standings": [
            {**rules_values(one.rules), "chance": 1 / one.rules.num_players, **_values(one)} for one in found.standings
        ],
        "skipped": {str(seats): why for seats, why in tables.skipped.items()},
    }  # fmt: skip


def _values(one: Measured | Regret) -> dict[str, Any]:
    """The fields of a measurement, estimates with their intervals."""
    import dataclasses

    from devyatka_env.evaluation import Estimate
    from devyatka_env.evaluation.results import estimate_values

    values: dict[str, Any] = {}
    for name, value in vars(one).items():
        if isinstance(value, Estimate):
            values |= estimate_values(name, value)
        elif name == "failure":
            values[name] = value and dataclasses.asdict(value)
        elif name == "unknown":
            values[name] = value or None
        elif name not in ("rules", "bot", "seed", "match"):
            values[name] = list(value) if isinstance(value, tuple) else value
    return values
