"""The ladder: every shipped bot and checkpoint against greedy bots at 2 to 6 seats, into docs/ladder.json.

python -m benchmarks.ladder --jobs 2     # about half an hour, most of it the searching bots; then: make docs

Ctrl-C keeps the rows that are done; a bot is measured again only when named (`--bots greedy,checkpoints/universal`).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devyatka_env.bots import BOTS, ScriptedBot
from devyatka_env.evaluation import Workers, compare
from devyatka_env.evaluation.results import evaluation_result
from devyatka_env.rules import MAX_PLAYERS, Rules

ROOT = Path(__file__).resolve().parents[1]
LADDER = ROOT / "docs" / "ladder.json"
SEED = 0
DEALS = 20_000
SEARCH_DEALS = 2000  # of bots that search, milliseconds a move


@dataclass(frozen=True)
class Row:
    """A bot against a field of one kind."""

    bot: str
    against: str
    deals: int

    @property
    def key(self) -> str:
        """Its name in the file."""
        return f"{self.bot} against {self.against}"


def rows() -> list[Row]:
    """All rows, in the order of the table."""
    bots = {name: DEALS if issubclass(bot, ScriptedBot) else SEARCH_DEALS for name, bot in BOTS.items()}
    for manifest in sorted(ROOT.glob("checkpoints/*/manifest.json")):
        bots[str(manifest.parent.relative_to(ROOT))] = DEALS
    against_random = [Row(name, "random", deals) for name, deals in bots.items() if name == "greedy" or "/" in name]
    return [*(Row(name, "greedy", deals) for name, deals in bots.items()), *against_random]


def measure(row: Row, workers: Workers) -> dict[str, Any]:
    """The result of `evaluation.compare` at 2 to 6 seats."""
    comparisons = []
    for seats in range(2, MAX_PLAYERS + 1):
        rules = Rules.of("first_out", num_players=seats)
        comparisons.append(compare([row.bot], row.against, rules, row.deals, SEED, workers=workers, move_seconds=None))
        (found,) = comparisons[-1].evaluations
        if found.interrupted or found.failure:
            raise KeyboardInterrupt(found.failure)
        seconds = f"{found.deals:,} deals, {comparisons[-1].seconds:.0f} s"
        print(f"{row.key}, {seats} seats: {found.win_rate} ({seconds})", flush=True)
    return evaluation_result(comparisons)


def save(ladder: dict[str, Any]) -> None:
    """Write the file, a line a row."""
    lines = [f"{json.dumps(key)}: {json.dumps(result, ensure_ascii=False)}" for key, result in ladder.items()]
    LADDER.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> None:
    """Measure the rows that are missing, or those of the bots named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bots", help="bots to measure (again): a comma list")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    options = parser.parse_args()
    ladder = json.loads(LADDER.read_text(encoding="utf-8")) if LADDER.exists() else {}
    known, named = rows(), options.bots.split(",") if options.bots else []
    if not set(named) <= {row.bot for row in known}:
        parser.error(f"the bots are {', '.join(dict.fromkeys(row.bot for row in known))}, not {options.bots}")
    with Workers(options.jobs) as workers:
        for row in known:
            if row.bot in named or (not named and row.key not in ladder):
                ladder[row.key] = measure(row, workers)
                save({one.key: ladder[one.key] for one in known if one.key in ladder})


if __name__ == "__main__":  # worker processes import this module, too
    main()
