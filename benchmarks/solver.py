"""The exact solver: two-seat tables of 36 and 52 cards, queries by cards laid, and open hands of more seats.

python -m benchmarks.solver
"""

from __future__ import annotations

import random
import statistics
import time
import tracemalloc

import numpy as np

from devyatka_env.bots import ceilings
from devyatka_env.engine import STATE_DTYPE, States
from devyatka_env.games import Game
from devyatka_env.rules import Rules
from devyatka_env.solver import TwoSeatTable, best_many, max_n, paranoid, workspace

DEALS = 100
LAID = (1, 5, 10, 15, 20, 25, 30)
LARGE = ("deck_52", "sevens")
# What is promised of the medians, in seconds, and of memory, in bytes.
TABLE_36, QUERY_10, TABLE_52, BYTES_52 = 12e-3, 1e-3, 1.0, 200e6


def table_seconds(rules: Rules) -> list[float]:
    """Seconds to make the whole table of each of some deals, its memory included."""
    TwoSeatTable.of(Game.deal(rules, 1))  # compiles
    times = []
    for index in range(DEALS):
        game = Game.deal(rules, 0, index)
        start = time.perf_counter()
        TwoSeatTable.of(game)
        times.append(time.perf_counter() - start)
    return times


def query_seconds(states: States, rules: Rules) -> list[float]:
    """Seconds to find the best cards of each record; no two of one deal, so that each needs its own table."""
    work = workspace(rules)
    best_many(states, rules, work)  # compiles, and touches the memory
    times = []
    for i in range(len(states)):
        start = time.perf_counter()
        best_many(states[i : i + 1], rules, work)
        times.append(time.perf_counter() - start)
    return times


def moments(rules: Rules, laid: int) -> States:
    """Deals in which ``laid`` random cards have been laid and the seat on turn has a choice."""
    found = np.empty(DEALS, STATE_DTYPE)
    index = filled = 0
    while filled < DEALS:
        game, rng = Game.deal(rules, 0, index), random.Random(index)
        index += 1
        while not game.is_over and game.record["num_played"] < laid:
            game.play(rng.choice(game.legal_actions()))
        if len(game.legal_actions()) > 1:
            found[filled : filled + 1] = game.states
            filled += 1
    return found


def report(name: str, times: list[float], promised: float | None = None) -> None:
    """Print median, fastest and slowest in milliseconds, and whether a promise about the median holds."""
    median = statistics.median(times)
    verdict = "" if promised is None else f"  <= {promised * 1e3:g} ms {'holds' if median <= promised else 'MISSED'}"
    print(f"{name:28} {median * 1e3:>8.3f} ms ({min(times) * 1e3:.3f} to {max(times) * 1e3:.3f}){verdict}")


def report_bulk(rules: Rules, laid: int) -> None:
    """Print the time of a position in a call of many; the fastest of some calls."""
    states, work, times = moments(rules, laid), workspace(rules), []
    for _ in range(5):
        start = time.perf_counter()
        best_many(states, rules, work)
        times.append((time.perf_counter() - start) / len(states))
    print(f"many in a call, {laid} laid         {min(times) * 1e6:>8.1f} us a position")


def report_memory(rules: Rules) -> None:
    """Print the most memory that a table takes while it is made."""
    game = Game.deal(rules)
    tracemalloc.start()
    TwoSeatTable.of(game)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    verdict = "holds" if most <= BYTES_52 else "MISSED"
    print(f"{rules.preset + ': memory':28} {most / 1e6:>8.1f} MB  <= {BYTES_52 / 1e6:g} MB {verdict}")


def report_open_hands(seats: int) -> None:
    """Print what a fresh deal of more seats costs: values with open hands, and the ceiling against greedy."""
    rules = Rules.of("first_out", num_players=seats)
    for solver in (max_n, paranoid):
        answers = [solver(Game.deal(rules, 0, index)) for index in range(DEALS)]
        report(f"{seats} seats: {solver.__name__}", [one.seconds for one in answers])
    found = ceilings(rules, "greedy", np.arange(DEALS))
    print(f"{f'{seats} seats: ceiling':28} {found.seconds / DEALS / seats * 1e6:>8.1f} us a seat of a deal")


def main() -> None:
    """Print the times of tables and queries, the memory of the largest tables, and the cost of more seats."""
    for preset in ("first_out", "round", "bank"):
        rules = Rules.of(preset, num_players=2)
        report(f"{preset}: whole table", table_seconds(rules), TABLE_36)
        for laid in LAID:
            report(
                f"{preset}: {laid} cards laid",
                query_seconds(moments(rules, laid), rules),
                QUERY_10 if laid >= 10 else None,
            )
    for laid in (10, 20, 30):
        report_bulk(Rules.of("first_out", num_players=2), laid)
    for preset in LARGE:
        rules = Rules.of(preset, num_players=2)
        report(f"{preset}: whole table", table_seconds(rules), TABLE_52)
        report(f"{preset}: 20 cards laid", query_seconds(moments(rules, 20), rules))
        report_memory(rules)
    for seats in (3, 4, 5, 6):
        report_open_hands(seats)


if __name__ == "__main__":
    main()
