"""Steps per second of the batch beside pgx, OpenSpiel, PettingZoo and RLCard, side by side in one process.

Everybody plays random legal moves and makes an observation and a mask at every step; a step is one move of one seat.
Peers take the fastest path their documentation shows. Each round runs all of them once, and ratios are taken within
a round, so that a busy machine slows both sides of a ratio alike.

python -m benchmarks.compare [--one-core] [--json FILE] [--plot FILE]    (peers: pip install '.[bench]')
python -m benchmarks.compare --table FILE                                (a saved run as the table of the README)
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.aec import turns_per_second
from devyatka_env.games import BatchGame
from devyatka_env.rules import Rules

BATCH = 4096
STEPS = 50  # of a batch of pgx's, in a turn of a round; four times as many of ours
SECONDS = 0.25  # of a peer that plays one game at a time
ROUNDS = 7
OUTPUT = Path("runs/bench")

Runner = Callable[[], float]


@dataclass(frozen=True)
class Contender:
    """One row: what plays, on which package, and the ratio (ours to it) that we promise, if any."""

    name: str
    package: str
    make: Callable[[], Runner]
    bar: float = 0.0
    ours: bool = False


@dataclass(frozen=True)
class Row:
    """What was measured.

    Attributes:
        steps_per_second: the median of the rounds.
        best: the fastest round: what an idle machine would come near to.
        ratio: the first row's speed over this one's, the median of the rounds.
        best_ratio: the ratio of the fastest rounds.
    """

    name: str
    version: str
    steps_per_second: float
    best: float
    ratio: float
    best_ratio: float
    bar: float
    ours: bool


# --- ours ------------------------------------------------------------------------------------------------------------


def batch(observe: bool = True) -> Runner:
    """`BatchGame`, one thread, unchecked: sample, step (passes and re-deals inside), observation and mask."""
    games = BatchGame(Rules.of("first_out", num_players=4), BATCH, seed=1)
    rng = np.random.default_rng(0)

    def run() -> float:
        start = time.perf_counter()
        for _ in range(4 * STEPS):
            games.step(games.sample_actions(rng), check=False)
            if observe:
                games.observations()
                games.action_masks()
        return 4 * STEPS * BATCH / (time.perf_counter() - start)

    return run


# --- peers -----------------------------------------------------------------------------------------------------------


def pgx(game: str, quick_sampler: bool = False) -> Runner:
    """Jitted, vmapped, auto-reset; the state holds observation and mask. JAX takes the threads it wants.

    A Python loop over the jitted step: on CPU `jax.lax.scan` over it is slower (1.4 against 1.9 M steps/s for leduc).
    ``quick_sampler`` replaces pgx's own `act_randomly`, a Gumbel draw for each action, by one uniform draw a game.
    """
    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental.utils import act_randomly
    from pgx.experimental.wrappers import auto_reset

    def quick(key: Any, mask: Any) -> Any:
        counts = jnp.cumsum(mask, axis=1)
        wanted = jnp.floor(jax.random.uniform(key, mask.shape[:1]) * counts[:, -1])
        return jnp.argmax(counts > wanted[:, None], axis=1)

    env = pgx.make(game)
    step_all = jax.vmap(auto_reset(env.step, env.init))
    sample = quick if quick_sampler else act_randomly

    @jax.jit
    def step(state: Any, key: Any) -> Any:
        choose, chance = jax.random.split(key)
        return step_all(state, sample(choose, state.legal_action_mask), jax.random.split(chance, BATCH))

    state = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), BATCH))
    keys = list(jax.random.split(jax.random.key(1), STEPS))

    def run() -> float:
        nonlocal state
        start = time.perf_counter()
        for key in keys:
            state = step(state, key)
        jax.block_until_ready(state)
        return STEPS * BATCH / (time.perf_counter() - start)

    return run


def open_spiel(game: str, to_list: bool = False) -> Runner:
    """Through Python; the observer fills one NumPy buffer, or ``to_list``: `State.observation_tensor` makes a list.

    Chance outcomes of this game are equally likely, so they are drawn as actions are, and aren't counted as steps.
    """
    import pyspiel
    from open_spiel.python.observation import make_observation

    loaded = pyspiel.load_game(game)
    observer = make_observation(loaded)

    def run() -> float:
        steps = 0
        start = time.perf_counter()
        while time.perf_counter() - start < SECONDS:
            state = loaded.new_initial_state()
            while not state.is_terminal():
                if not state.is_chance_node():
                    if to_list:
                        state.observation_tensor()
                    else:
                        observer.set_from(state, state.current_player())
                    state.legal_actions_mask()
                    steps += 1
                state.apply_action(random.choice(state.legal_actions()))
        return steps / (time.perf_counter() - start)

    return run


def pettingzoo() -> Runner:
    """The loop of `benchmarks.aec`, a second a round."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # PettingZoo's versioned modules
        from pettingzoo.classic import tictactoe_v3
    env = tictactoe_v3.env()
    return lambda: turns_per_second(env)


def rlcard(game: str) -> Runner:
    """RLCard's own loop; its state holds the observation and the legal actions."""
    import rlcard

    env = rlcard.make(game, config={"seed": 0})

    def run() -> float:
        steps = 0
        start = time.perf_counter()
        while time.perf_counter() - start < SECONDS:
            state, _ = env.reset()
            while not env.is_over():
                state, _ = env.step(random.choice(list(state["legal_actions"])))
                steps += 1
        return steps / (time.perf_counter() - start)

    return run


_EIGHTS = "crazy_eights(players=4)"
CONTENDERS = (
    Contender("devyatka, batch of 4,096", "devyatka-env", batch, ours=True),
    Contender("devyatka, without observations", "devyatka-env", lambda: batch(observe=False), ours=True),
    Contender("pgx tic_tac_toe", "pgx", lambda: pgx("tic_tac_toe"), 3),
    Contender("pgx tic_tac_toe, quick sampler", "pgx", lambda: pgx("tic_tac_toe", quick_sampler=True)),
    Contender("pgx leduc_holdem", "pgx", lambda: pgx("leduc_holdem"), 8),
    Contender("OpenSpiel crazy_eights, 4 seats", "open_spiel", lambda: open_spiel(_EIGHTS, to_list=True), 50),
    Contender("OpenSpiel, by its NumPy observer", "open_spiel", lambda: open_spiel(_EIGHTS)),
    Contender("RLCard leduc-holdem", "rlcard", lambda: rlcard("leduc-holdem")),
    Contender("RLCard uno", "rlcard", lambda: rlcard("uno")),
    Contender("PettingZoo tictactoe_v3", "pettingzoo", pettingzoo, 500),
)
WITHOUT_OBSERVATIONS = 1.8  # at least this many times the speed with observations


# --- the run ---------------------------------------------------------------------------------------------------------


def installed(contenders: Sequence[Contender]) -> list[tuple[Contender, Runner]]:
    """Make and warm up the contenders whose packages are there; say which are not."""
    ready = []
    for contender in contenders:
        try:
            runner = contender.make()
        except ImportError as missing:
            print(f"skipped: {contender.name} ({missing})")
            continue
        runner()
        ready.append((contender, runner))
    return ready


def measure(ready: Sequence[tuple[Contender, Runner]], rounds: int = ROUNDS) -> list[Row]:
    """Run all contenders in turn, ``rounds`` times."""
    speeds = np.array([[runner() for _, runner in ready] for _ in range(rounds)])  # [round, contender]
    rows = []
    for column, (contender, _) in enumerate(ready):
        own, ratios = speeds[:, column], speeds[:, 0] / speeds[:, column]
        median, ratio = statistics.median(own.tolist()), statistics.median(ratios.tolist())
        best_ratio = float(speeds[:, 0].max() / own.max())
        of = _version(contender.package)
        rows.append(Row(contender.name, of, median, float(own.max()), ratio, best_ratio, contender.bar, contender.ours))
    return rows


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "?"


def report(rows: Sequence[Row]) -> None:
    """Print the rows, and whether each promised ratio holds."""
    print(f"{'':33} {'steps/s':>12} {'fastest':>12}  {'ours / it':>9} {'(fastest)':>9}  promised")
    for row in rows:
        speeds = f"{row.steps_per_second:>12,.0f} {row.best:>12,.0f}"
        promise = f">= {row.bar:,.0f} {'holds' if row.ratio >= row.bar else 'MISSED'}" if row.bar else ""
        print(f"{row.name:33} {speeds}  {row.ratio:>9,.2f} {row.best_ratio:>9,.2f}  {promise}")
    gain = 1 / rows[1].ratio
    best = 1 / rows[1].best_ratio
    verdict = "holds" if gain >= WITHOUT_OBSERVATIONS else "MISSED"
    print(f"without observations / with: {gain:.2f} ({best:.2f})   >= {WITHOUT_OBSERVATIONS} {verdict}")


def table(rows: Sequence[Row]) -> str:
    """The rows in Markdown."""
    lines = ["| random legal play, observation and mask made | steps/s | ours / it |", "|---|---|---|"]
    for row in rows:
        name = row.name if row.ours else f"{row.name} ({row.version})"
        digits = 2 if row.ratio < 10 else 0
        lines.append(f"| {name} | {readable(row.steps_per_second)} | {row.ratio:,.{digits}f} |")
    return "\n".join(lines)


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw the rows as bars on a logarithmic scale, the fastest on top."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ordered = sorted(rows, key=lambda row: row.steps_per_second)
    speeds = [row.steps_per_second for row in ordered]
    figure, axes = plt.subplots(figsize=(9, 0.42 * len(ordered) + 1.3), layout="constrained")
    colours = ["#c0392b" if row.ours else "#7f8c9b" for row in ordered]
    bars = axes.barh([row.name for row in ordered], speeds, color=colours, height=0.7)
    axes.bar_label(bars, [readable(speed) for speed in speeds], padding=4)
    axes.set_xscale("log")
    axes.set_xlim(min(speeds) / 3, max(speeds) * 4)
    axes.set_xlabel("steps per second (log scale): random legal moves, observation and mask made")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def readable(speed: float) -> str:
    """A speed in three digits: 15.3 M, 154 k."""
    return f"{speed / 1e6:.3g} M" if speed >= 1e6 else f"{speed / 1e3:.3g} k"


def save(rows: Sequence[Row], path: Path) -> None:
    """Write the rows and what they were measured on as JSON."""
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine()}
    result = {"batch": BATCH, "rounds": ROUNDS, **machine, "rows": [asdict(row) for row in rows]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def load(path: Path) -> list[Row]:
    """The rows of a saved run."""
    return [Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]


def main(arguments: Sequence[str] = ()) -> None:
    """Measure, print, save and draw."""
    parser = argparse.ArgumentParser(prog="benchmarks.compare", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, default=OUTPUT / "speed.json", help="where the numbers go")
    parser.add_argument("--plot", type=Path, default=OUTPUT / "speed.png", help="where the chart goes")
    parser.add_argument("--table", type=Path, help="print a saved run as Markdown and measure nothing")
    parser.add_argument("--one-core", action="store_true", help="keep JAX, too, to one core (Linux)")
    options = parser.parse_args(arguments)
    if options.one_core:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before JAX is loaded and counts the cores
    if options.table:
        print(table(load(options.table)))
        return
    rows = measure(installed(CONTENDERS))
    report(rows)
    save(rows, options.json)
    threads = "one core for all" if options.one_core else "JAX takes the threads it wants, ours one"
    print(f"medians of the rounds, and the fastest of them; {threads}")
    print(f"{options.json} written")
    try:
        plot(rows, options.plot)
        print(f"{options.plot} written")
    except ImportError:
        print("no chart: matplotlib isn't installed")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
