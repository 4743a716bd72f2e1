"""Nanoseconds a step and bytes a game of the batch, by size, seats, deck and threads, and where the time goes.

A step is one move of one seat in one game: sampling it, playing it (passes and re-deals inside), observation and mask.
Configurations that are compared run in turn, several rounds of it. Tables print the fastest round, which a busy machine
disturbs least; ratios are printed of the fastest rounds and, in brackets, as the median of the rounds.

python -m benchmarks.scaling [--full] [--json FILE]     (--full: every size with every seat count)
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np

from devyatka_env.games import BatchGame
from devyatka_env.rules import Rules

SIZES = tuple(4**k for k in range(11))  # 1 to 1,048,576
SMALL, MIDDLE, LARGE = 64, 4096, SIZES[-1]
DECKS = {36: "first_out", 52: "deck_52"}
SEATS = (2, 3, 4, 5, 6, "mixed")
THREADS = (1, 2)
ROUNDS = 5
SECONDS = 0.02  # of a measurement of the loop; at least one step of the batch
COPIED = 2**17  # rows that a measurement of writing takes at least
OUTPUT = Path("runs/bench/scaling.json")

Measured = dict[str, list[float]]  # seconds or ns of every round, by name


def make_batch(deck: int, size: int, seats: int | str = 4, threads: int = 1) -> BatchGame:
    """A batch whose games are at all stages of their deals, as in a long run.

    The games of a fresh batch end their deals at about the same time for thousands of steps; so the states are drawn
    from 60 moments of one, over about ten deals.
    """
    rules = Rules.of(DECKS[deck], num_players=4 if seats == "mixed" else seats)
    players = np.arange(1000) % 5 + 2 if seats == "mixed" else None
    source = BatchGame(rules, 1000, seed=2, num_players=players)
    rng = np.random.default_rng(0)
    stages = []
    for turn in range(520):
        source.step(source.sample_actions(rng), check=False)
        if turn >= 100 and turn % 7 == 0:
            stages.append(source.states.copy())
    games = BatchGame(rules, size, seed=1, num_threads=threads)
    games.states[:] = np.concatenate(stages)[rng.integers(1000 * len(stages), size=size)]
    return games


def loop(games: BatchGame, seconds: float = SECONDS) -> float:
    """Nanoseconds per game step of the whole loop, over as many steps as fit."""
    rng = np.random.default_rng(0)
    turns = spent = 0
    start = time.perf_counter_ns()
    while spent < seconds * 1e9:
        games.step(games.sample_actions(rng), check=False)
        games.observations()
        games.action_masks()
        turns += 1
        spent = time.perf_counter_ns() - start
    return spent / (turns * games.num_games)


def interleaved(runs: Mapping[str, Callable[[], float]], rounds: int = ROUNDS) -> Measured:
    """Every run once to warm up, then all in turn, ``rounds`` times."""
    for run in runs.values():
        run()
    measured: Measured = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            measured[name].append(run())
    return measured


def ratio(over: Sequence[float], under: Sequence[float]) -> tuple[float, float]:
    """Of the fastest rounds, and the median of the rounds'."""
    return min(over) / min(under), statistics.median(a / b for a, b in zip(over, under, strict=True))


def timed(function: Callable[..., Any], *arguments: Any, per: int, turns: int = 50) -> Callable[[], float]:
    """A run that calls ``function`` ``turns`` times: ns a call, divided by ``per``."""

    def run() -> float:
        start = time.perf_counter_ns()
        for _ in range(turns):
            function(*arguments)
        return (time.perf_counter_ns() - start) / (turns * per)

    return run


# --- the tables ------------------------------------------------------------------------------------------------------


def on_threads(games: BatchGame, seconds: float = SECONDS) -> dict[str, Callable[[], float]]:
    """`loop` of one batch on one thread and, where there are two, on two."""

    def run(threads: int) -> float:
        games.num_threads = threads
        return loop(games, seconds)

    allowed = [t for t in THREADS if t <= numba.config.NUMBA_NUM_THREADS]
    return {str(threads): lambda threads=threads: run(threads) for threads in allowed}


def by_size() -> dict[str, Measured]:
    """Nanoseconds per step of four seats at every size."""
    print(f"ns/step by batch size, four seats{'':14} 36 cards{'':14} 52 cards")
    print(f"{'games':>12}{'':20} 1 thread  2 threads  1 thread  2 threads")
    result = {}
    for size in SIZES:
        cells = []
        for deck in DECKS:
            measured = interleaved(on_threads(make_batch(deck, size)), 3)
            result[f"{deck} {size}"] = measured
            cells += [f"{min(times):>9,.1f}" for times in measured.values()]
        print(f"{size:>12,}{'':20}" + "  ".join(cells), flush=True)
    return result


def by_seats(sizes: Sequence[int]) -> dict[str, Measured]:
    """Nanoseconds per step for every number of seats."""
    result = {}
    for size in sizes:
        print(f"\nns/step by seats, {size:,} games{'':16} 36 cards{'':14} 52 cards")
        for seats in SEATS:
            cells = []
            for deck in DECKS:
                measured = interleaved(on_threads(make_batch(deck, size, seats)), 3)
                result[f"{deck} {size} {seats}"] = measured
                cells += [f"{min(times):>9,.1f}" for times in measured.values()]
            print(f"{seats:>12}{'':20}" + "  ".join(cells), flush=True)
    return result


def memory() -> dict[str, float]:
    """Bytes a game, as NumPy reports its allocations, beside the observation's and the mask's rows."""
    result = {}
    print("\nbytes a game (65,536 games)   state and bookkeeping   most during a step   observation   mask")
    for deck, preset in DECKS.items():
        size = 65536
        rng = np.random.default_rng(0)
        rows = np.empty((size, 0), np.int8), np.empty((size, 0), np.int8)
        tracemalloc.start()
        games = BatchGame(Rules.of(preset, num_players=4), size)
        held = tracemalloc.get_traced_memory()[0] / size
        for _ in range(40):
            games.step(games.sample_actions(rng), check=False)
        most = tracemalloc.get_traced_memory()[1] / size
        tracemalloc.stop()
        rows = games.observations(), games.action_masks()
        widths = [row.shape[1] for row in rows]
        print(f"{deck:>18} cards {held:>26.0f} {most:>20.0f} {widths[0]:>13} {widths[1]:>6}")
        result[str(deck)] = {"held": held, "most": most, "observation": widths[0], "mask": widths[1]}
    return result


# --- where the time goes ---------------------------------------------------------------------------------------------


def outcomes(games: BatchGame, actions: Any) -> Any:
    """What a step leads to in each game, ``int64 [B]``: -1 the end of its deal, else the passes that follow."""
    before = games.states["passes"].sum(axis=1).astype(np.int64)
    finished = games.step(actions, check=False)
    after = games.states["passes"].sum(axis=1).astype(np.int64) - before
    after[finished.games] = -1
    return after


def step_times(deck: int, size: int = MIDDLE) -> tuple[Measured, dict[int, float]]:
    """Nanoseconds of `BatchGame.step` alone: of games as they come, and of games that all see the same outcome.

    Every measurement steps the same games again, put back untimed. Returns the rounds and each outcome's share.
    """
    pool = make_batch(deck, 32 * size)
    states = pool.states.copy()
    actions = pool.sample_actions(np.random.default_rng(0))
    kinds = outcomes(pool, actions)
    shares = {int(kind): float((kinds == kind).mean()) for kind in np.unique(kinds)}
    games = BatchGame(pool.rules, size, seed=1)

    def run(chosen: Any) -> float:
        best = np.inf
        for _ in range(12):
            games.states[:] = states[chosen]
            start = time.perf_counter_ns()
            games.step(actions[chosen], check=False)
            best = min(best, time.perf_counter_ns() - start)
        return best / size

    runs = {"all": lambda: run(np.arange(size))}
    for kind in shares:
        found = np.flatnonzero(kinds == kind)
        if len(found) >= size // 8:
            chosen = np.resize(found, size)
            runs[str(kind)] = lambda chosen=chosen: run(chosen)
    return interleaved(runs), shares


def split(deck: int) -> dict[str, Any]:
    """Print what each part of a step costs, four seats, batch of 4,096."""
    games = make_batch(deck, MIDDLE)
    rng = np.random.default_rng(0)
    observations, masks = games.observations(), games.action_masks()
    own = interleaved(
        {
            "sample": timed(games.sample_actions, rng, per=MIDDLE),
            "observation": timed(games.observations, observations, per=MIDDLE),
            "mask": timed(games.action_masks, masks, per=MIDDLE),
            "deal": timed(make_batch(deck, MIDDLE).reset, per=MIDDLE, turns=10),
        }
    )
    steps, shares = step_times(deck)
    cost = {int(kind): min(times) for kind, times in steps.items() if kind != "all"}
    total, ends = min(steps["all"]), shares[-1]
    passes = sum(share * (cost.get(kind, cost[max(cost)]) - cost[0]) for kind, share in shares.items() if kind > 0)
    parts = {
        "sampling a legal action": min(own["sample"]),
        "playing a card, next seat": cost[0],
        f"passes ({sum(k * f for k, f in shares.items() if k > 0):.2f} a step)": passes,
        f"dealing (1 in {1 / ends:.1f} steps, {min(own['deal']):.0f} ns each)": ends * min(own["deal"]),
        "places and payoffs": ends * (cost[-1] - cost[0] - min(own["deal"])),
        "step: mispredicted branches": 0.0,
        "observation": min(own["observation"]),
        "mask": min(own["mask"]),
    }
    names = list(parts)
    parts[names[5]] = total - sum(parts[name] for name in names[1:5])
    print(f"\nwhere the time goes, {deck} cards, four seats, {MIDDLE:,} games, one thread")
    for name, cost_ns in parts.items():
        print(f"{name:42} {cost_ns:>7.1f} ns/step")
    print(f"{'together':42} {sum(parts.values()):>7.1f} ns/step")
    return {"parts": parts, "shares": {str(k): v for k, v in shares.items()}, "by_outcome": cost}


def writing() -> dict[str, Measured]:
    """Observations and masks against `np.copyto` of arrays of the same shapes."""
    result = {}
    print("\nwriting observation and mask against copying as many bytes, one thread")
    for deck in DECKS:
        for size in (MIDDLE, 65536, LARGE):
            games = make_batch(deck, size)
            rows = games.observations(), games.action_masks()
            copies = rows[0].copy(), rows[1].copy()

            def write(games: BatchGame = games, rows: Any = rows) -> None:
                games.observations(rows[0])
                games.action_masks(rows[1])

            def copy(rows: Any = rows, copies: Any = copies) -> None:
                np.copyto(copies[0], rows[0])
                np.copyto(copies[1], rows[1])

            width = rows[0].shape[1] + rows[1].shape[1]
            turns = max(1, COPIED // size)
            runs = {"write": timed(write, per=size, turns=turns), "copy": timed(copy, per=size, turns=turns)}
            measured = result[f"{deck} {size}"] = interleaved(runs, 9 if size < LARGE else 5)
            share, median = ratio(measured["copy"], measured["write"])
            speeds = [width / min(measured[name]) for name in ("write", "copy")]
            print(
                f"{deck} cards, {size:>9,} games: {speeds[0]:>5.1f} GB/s of {speeds[1]:>5.1f} GB/s copied:"
                f" {share:.0%} ({median:.0%})"
            )
    return result


# --- the promises ----------------------------------------------------------------------------------------------------


def verdict(text: str, value: float, bar: float, at_most: bool = False, median: float | None = None) -> None:
    """Print a figure beside what is promised of it."""
    holds = value <= bar if at_most else value >= bar
    middle = "" if median is None else f" ({median:.2f})"
    print(f"{text:58} {value:>7.2f}{middle:8} {'<=' if at_most else '>='} {bar:g} {'holds' if holds else 'MISSED'}")


def growth() -> Measured:
    """Nanoseconds per step at 64, 4,096 and 1,048,576 games, in turn: 36 cards, four seats, one thread."""
    batches = {size: make_batch(36, size) for size in (SMALL, MIDDLE, LARGE)}
    return interleaved({str(size): lambda games=games: loop(games, 0.1) for size, games in batches.items()})


@numba.njit(parallel=True)
def _arithmetic(turns: int) -> Any:
    out = np.zeros(16)
    for k in numba.prange(16):
        x = 1.0
        for _ in range(turns):
            x = x * 1.0000001 + 1e-9
        out[k] = x
    return out


def cores_free() -> tuple[float, float]:
    """What a second thread gains arithmetic that touches no memory: 2 on an idle machine, 1 on a busy one."""

    def run(threads: int) -> float:
        numba.set_num_threads(threads)
        start = time.perf_counter()
        _arithmetic(500_000)
        return time.perf_counter() - start

    measured = interleaved({"1": lambda: run(1), "2": lambda: run(2)})
    return ratio(measured["1"], measured["2"])


def promises(bytes_a_game: Mapping[str, Any], written: Mapping[str, Measured]) -> None:
    """Print each promised figure."""
    print()
    for deck in DECKS:
        copied = written[f"{deck} {MIDDLE}"]
        share, median = ratio(copied["copy"], copied["write"])
        verdict(f"observation + mask / copy, {deck} cards, {MIDDLE:,} games", share, 0.4, median=median)
    grown = growth()
    value, median = ratio(grown[str(LARGE)], grown[str(SMALL)])
    verdict(f"ns/step at {LARGE:,} games / at {SMALL}", value, 1.6, at_most=True, median=median)
    value, median = ratio(grown[str(LARGE)], grown[str(MIDDLE)])
    print(f"{f'(beside it: at {LARGE:,} games / at {MIDDLE:,}':58} {value:>7.2f} ({median:.2f}))")
    for deck in DECKS:
        verdict(f"bytes a game beside the rows, {deck} cards", bytes_a_game[str(deck)]["most"], 400, at_most=True)
    if THREADS[-1] <= numba.config.NUMBA_NUM_THREADS:
        size = 4 * MIDDLE  # calls from Python no longer count, and records and rows still lie in the cache
        value, median = two_threads(size)
        verdict(f"two threads / one, {size:,} games", value, 1.6, median=median)
        for size in (MIDDLE, 16 * MIDDLE, LARGE):
            value, median = two_threads(size)
            print(f"{f'(beside it: {size:,} games':58} {value:>7.2f} ({median:.2f}))")
        value, median = cores_free()
        print(f"{'(beside it: plain arithmetic gains':58} {value:>7.2f} ({median:.2f}))")


def two_threads(size: int) -> tuple[float, float]:
    """What the second thread gains: 36 cards, four seats."""
    measured = interleaved(on_threads(make_batch(36, size), 0.05), 9)
    return ratio(measured["1"], measured["2"])


def main(arguments: Sequence[str] = ()) -> None:
    """Measure, print and save everything."""
    parser = argparse.ArgumentParser(prog="benchmarks.scaling", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true", help="every size with every seat count")
    parser.add_argument("--json", type=Path, default=OUTPUT, help="where the numbers go")
    options = parser.parse_args(arguments)
    sizes = by_size()
    seats = by_seats(SIZES if options.full else (MIDDLE,))
    bytes_a_game = memory()
    parts = {str(deck): split(deck) for deck in DECKS}
    written = writing()
    promises(bytes_a_game, written)
    result = {"sizes": sizes, "seats": seats, "memory": bytes_a_game, "split": parts, "writing": written}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"fastest rounds (medians in brackets); {options.json} written")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
