"""What perfect play looks like: two seats solved exactly, 3-6 seats with open hands. Its numbers fill docs/exact.md.

python -m benchmarks.perfect_play [--deals 20000] [--open-deals 20000]

Two seats: every deal is solved; then each of three fields plays it, and at every turn the exact values tell whether the
choice mattered (the seat had won the deal, and some legal card would have lost it) and whether the card was a mistake.
The fields are *perfect* (a random one of the best cards), `greedy` and `random`, each against itself. 3-6 seats: the
share of deals that the opener (the holder of the 9♦) wins when all play at random, when all play `greedy`, and when all
see all hands and play for themselves (max^n); and the share it can force against all others together.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from devyatka_env.bots import make_bot
from devyatka_env.bots.scripted import scripted_choice, scripted_code
from devyatka_env.engine import STATE_DTYPE, States, rules_record
from devyatka_env.engine.bitboards import count, lowest, random_card
from devyatka_env.engine.compiling import kernel
from devyatka_env.engine.knowledge import blank
from devyatka_env.engine.randomness import mix, next_word
from devyatka_env.engine.turn import step
from devyatka_env.evaluation.stats import mean_of
from devyatka_env.games import Deals
from devyatka_env.rules import Rules
from devyatka_env.solver import max_n_values, paranoid_values, values_many, workspace
from devyatka_env.solver.lookup import best_cards, value_after

SEED = 0
FIELDS = ("perfect", "greedy", "random")
PERFECT = -1
COUNTS = ("turns", "decisions", "mattered", "mistakes")
DATA = Path("docs/perfect_play.json")
PICTURE = Path("docs/images/perfect_play.png")


@kernel
def _play(states: States, rules: States, work: Any, code: int, seed: np.uint64, counts: NDArray[np.int64]) -> None:
    """Play the deals out, both seats by bot ``code`` or perfectly, and count turns by deal (`COUNTS`)."""
    r = rules[0]
    views = np.empty(1, STATE_DTYPE)
    for i in range(len(states)):
        s = states[i]
        word = mix(seed ^ mix(np.uint64(i)))
        while s.turn >= 0:
            card, legal = lowest(s.legal), s.legal
            counts[i, 0] += 1
            if count(legal) > 1:
                counts[i, 1] += 1
                good = best_cards(s, r, work)
                word = next_word(word)
                if code == PERFECT:
                    card = random_card(good, mix(word))
                else:
                    blank(s, np.int64(s.turn), views[0])
                    card = scripted_choice(code, views[0], r, mix(word))
                if good != legal and value_after(s, r, work, good & (np.uint64(0) - good)) > 0.0:
                    counts[i, 2] += 1
                    counts[i, 3] += (good >> np.uint64(card)) & np.uint64(1) == 0
            step(s, r, card)


def two_seats(num_deals: int) -> dict[str, Any]:
    """Solve the deals and play each field through them."""
    rules, margins = Rules.of("first_out", num_players=2), Rules.of("first_out", num_players=2, payoff="cards")
    record, work = rules_record(rules), workspace(rules)
    start = time.perf_counter()
    deals = Deals(rules, np.arange(num_deals), SEED)
    opener = deals.turns.astype(np.int64)
    won = np.nanmax(values_many(deals.states, rules, work), axis=1) > 0
    lead = np.nanmax(values_many(deals.states, margins), axis=1)
    result: dict[str, Any] = {
        "deals": num_deals,
        "opener_wins": _interval(won.astype(float)),
        "margin_of_opener": _interval(lead),
        "cards_left_of_loser": _interval(np.abs(lead)),
    }
    for field in FIELDS:
        games = Deals(rules, np.arange(num_deals), SEED)
        counts = np.zeros((num_deals, len(COUNTS)), np.int64)
        code = PERFECT if field == "perfect" else scripted_code(make_bot(field))
        _play(games.states, record, work, code, np.uint64(SEED), counts)
        first = games.states["places"][np.arange(num_deals), opener] == 1
        turns, decisions, mattered, mistakes = counts.sum(0).tolist()
        result[field] = {
            "opener_wins": _interval(first.astype(float)),
            "turns_a_deal": turns / num_deals,
            "decisions_share_of_turns": decisions / turns,
            "mattered_share_of_turns": mattered / turns,
            "mistakes_share_of_mattered": mistakes / max(mattered, 1),
            "mistakes_per_1000_decisions": 1000 * mistakes / decisions,
            "deals_with_a_mistake": _interval((counts[:, 3] > 0).astype(float)),
        }
        print(f"two seats, {field}: {time.perf_counter() - start:.0f} s", flush=True)
    return result


def open_hands(num_players: int, num_deals: int, shuffled_deals: int) -> dict[str, Any]:
    """The opener's share of wins under four kinds of play."""
    rules = Rules.of("first_out", num_players=num_players)
    start = time.perf_counter()
    result: dict[str, Any] = {"deals": num_deals, "bot_deals": shuffled_deals}
    for field in ("random", "greedy"):
        games = Deals(rules, np.arange(shuffled_deals), SEED)
        opener = games.turns.astype(np.int64)
        _play_all(games, scripted_code(make_bot(field)))
        result[field] = _interval((games.states["places"][np.arange(shuffled_deals), opener] == 1).astype(float))
    states = Deals(rules, np.arange(num_deals), SEED).states
    for name, values in (("max_n", max_n_values(states, rules)), ("alone", paranoid_values(states, rules))):
        result[name] = _interval((np.nanmax(values, axis=1) > 0).astype(float))
    print(f"{num_players} seats: {time.perf_counter() - start:.0f} s", flush=True)
    return result


@kernel
def _play_out(states: States, rules: States, code: int, seed: np.uint64) -> None:
    r = rules[0]
    views = np.empty(1, STATE_DTYPE)
    for i in range(len(states)):
        s = states[i]
        word = mix(seed ^ mix(np.uint64(i)))
        while s.turn >= 0:
            word = next_word(word)
            blank(s, np.int64(s.turn), views[0])
            step(s, r, scripted_choice(code, views[0], r, mix(word)))


def _play_all(games: Deals, code: int) -> None:
    _play_out(games.states, rules_record(games.rules), code, np.uint64(SEED))


def _interval(values: NDArray[np.float64]) -> list[float]:
    """Mean and half of its 95 % interval."""
    estimate = mean_of(values)
    return [round(estimate.mean, 6), round(estimate.half_width, 6)]


def draw(data: dict[str, Any], path: Path) -> None:
    """Two plots: the opener's share of wins by seats, and mistakes of the bots at two seats."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    seats = range(2, 7)
    two = data["two_seats"]
    lines = {
        "all random": [two["random"]["opener_wins"]] + [data[str(n)]["random"] for n in range(3, 7)],
        "all greedy": [two["greedy"]["opener_wins"]] + [data[str(n)]["greedy"] for n in range(3, 7)],
        "open hands, each for itself": [two["opener_wins"]] + [data[str(n)]["max_n"] for n in range(3, 7)],
        "open hands, against all others": [two["opener_wins"]] + [data[str(n)]["alone"] for n in range(3, 7)],
    }
    for name, points in lines.items():
        left.errorbar(
            seats, [p[0] for p in points], [p[1] for p in points], marker="o", markersize=4, capsize=3, label=name
        )
    left.plot(seats, [1 / n for n in seats], color="grey", linestyle=":", label="chance")
    left.set_xticks(list(seats))
    left.set_xlabel("seats")
    left.set_title("deals won by the 9♦ holder (95 % interval)")
    left.yaxis.set_major_formatter(PercentFormatter(1, 0))
    left.set_ylim(bottom=0)
    left.legend(fontsize="small")
    rows = [(field, two[field]["mistakes_share_of_mattered"]) for field in ("greedy", "random")]
    bars = right.barh([name for name, _ in rows], [share for _, share in rows], color=["tab:orange", "tab:blue"])
    right.bar_label(bars, [f"{share:.0%}" for _, share in rows], padding=4)
    right.set_title("two seats: a won deal given away\nwhere the choice mattered")
    right.xaxis.set_major_formatter(PercentFormatter(1, 0))
    right.set_xlim(0, 1)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def main(arguments: list[str] | None = None) -> None:
    """Make the study and save its numbers and picture."""
    parser = argparse.ArgumentParser(prog="benchmarks.perfect_play", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--deals", type=int, default=20_000, help="two-seat deals (20000)")
    parser.add_argument("--open-deals", type=int, default=20_000, help="deals of 3-6 seats with open hands (20000)")
    parser.add_argument("--json", type=Path, default=DATA)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args(arguments)
    data: dict[str, Any] = {"seed": SEED, "two_seats": two_seats(options.deals)}
    for num_players in range(3, 7):
        data[str(num_players)] = open_hands(num_players, options.open_deals, options.deals)
    options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    draw(data, options.picture)
    print(f"{options.json} and {options.picture} written; `make docs` puts the tables into the pages")


if __name__ == "__main__":
    main()
