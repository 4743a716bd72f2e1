"""Turn a checkpoint of a run into one to be shipped: measure it, and write its model card.

python -m training.publish runs/universal/checkpoints/last checkpoints/universal [--deals 20000]
python -m training.publish runs/best_response/checkpoints/last checkpoints/universal --as-newcomer

The card (README.md) is made of the manifest alone, so a test can hold both against each other; what people should know
beside the figures stands in ``notes``.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from devyatka_env import _console
from devyatka_env._files import write_whole
from devyatka_env.bots import PolicyBot, make_bot, make_opponents
from devyatka_env.bots.checkpoint import Manifest, read_manifest, read_weights, write_checkpoint
from devyatka_env.evaluation import Estimate, evaluate, regret
from devyatka_env.learning import read_config
from devyatka_env.rules import Rules

FIELDS = ("greedy", "random")
ORACLE = "oracle:worlds=10"  # perfect at two seats, and slow: a tenth of the deals
SEED = 2**62  # of the deals; no run trains on them
CARD = "README.md"
BEST_RESPONSE = Path(__file__).resolve().parents[1] / "configs" / "train" / "best_response.yaml"
# Deals of the check that a test repeats.
CHECK_DEALS = 300


def measure(folder: Path, deals: int) -> dict[str, Any]:
    """Play the checkpoint, with its most probable cards and with drawn ones, against each field.

    Returns:
        The manifest's ``evaluation``: under ``against``, by field, rule set and way of choosing, the win rate and half
        its 95 % interval; under ``two_seats`` what it gives away, by the exact values; under ``check`` win rates over a
        few fixed deals that anybody can repeat.
    """
    manifest = read_manifest(folder)
    result: dict[str, Any] = {"deals": deals, "seed": SEED, "against": {}, "two_seats": {}, "check": {}}
    for way, sample in (("argmax", False), ("sampled", True)):
        bot = PolicyBot.load(folder, sample=sample)
        for rules in manifest.rules:
            for field in (*FIELDS, *((ORACLE,) if rules.num_players == 2 else ())):
                opponents = make_opponents(make_bot(field), rules.num_players - 1)
                rate = evaluate(bot, opponents, rules, deals // 10 if field == ORACLE else deals, SEED).win_rate
                entry = result["against"].setdefault(field, {}).setdefault(str(rules), {})
                entry[way] = _pair(rate)
                print(f"{way} against {field}, {rules}: {rate}", flush=True)
            if rules.num_players == 2:
                lost = regret(bot, rules, deals // 10, SEED)
                result["two_seats"][way] = {
                    "decisions": lost.decisions,
                    "mistakes_per_1000": _pair(lost.mistakes, 1000),
                    "mistakes_where_it_mattered": _pair(lost.mistakes_of_mattered),
                }
    for rules in manifest.rules:
        result["check"][str(rules)] = check(folder, rules)
    return result


def check(folder: Path, rules: Rules) -> float:
    """The win rate against `greedy` over `CHECK_DEALS` fixed deals, most probable cards."""
    bot = PolicyBot.load(folder)
    opponents = make_opponents(make_bot("greedy"), rules.num_players - 1)
    return evaluate(bot, opponents, rules, CHECK_DEALS, SEED).win_rate.mean


def _pair(estimate: Estimate, scale: float = 1.0) -> list[float]:
    return [round(scale * estimate.mean, 5), round(scale * estimate.half_width, 5)]


def card(name: str, manifest: Manifest) -> str:
    """The model card, from the manifest."""
    training, evaluation = manifest.training, manifest.evaluation
    lines = [
        f"# Checkpoint `{name}`",
        "",
        "<!-- made by training/publish.py from manifest.json -->",
        "",
        evaluation["notes"],
        "",
        "## How it was trained",
        "",
        f"All-seats self-play PPO, {manifest.steps:,} decisions of the learner, network `{dict(manifest.network)}`"
        f" ({evaluation['parameters']:,} parameters), seed {manifest.seed}. {evaluation['history']}",
        "",
        "Rules: " + "; ".join(f"`{rules}`" for rules in manifest.rules) + ".",
        "",
        "```bash",
        *evaluation["commands"],
        "```",
        "",
        "The last settings of the run: "
        + ", ".join(f"{key} {value}" for key, value in sorted(training.items()) if key in _SHOWN)
        + ".",
        "",
        "## Strength",
        "",
        f"Win rates over {evaluation['deals']:,} duplicate deals (each played from every seat, seed"
        f" {evaluation['seed']}), with 95 % intervals over deals. *Argmax* plays the most"
        " probable card, *sampled* draws one by its probability (add `+sample` to the path).",
        "",
        "| against | rules | chance | argmax | sampled |",
        "|---|---|---|---|---|",
    ]
    for field, by_rules in evaluation["against"].items():
        for rules in manifest.rules:
            ways = by_rules.get(str(rules))
            if ways:
                cells = [f"{mean:.4f} ± {half:.4f}" for mean, half in (ways["argmax"], ways["sampled"])]
                name_of = f"{rules.num_players - 1} × `{field}`" + (
                    " (sees all hands; a tenth of the deals)" if field == ORACLE else ""
                )
                lines.append(f"| {name_of} | `{rules}` | {1 / rules.num_players:.4f} | {' | '.join(cells)} |")
    if evaluation["two_seats"]:
        lines += ["", "By the exact values of its two-seat decisions (playing itself):", ""]
        for way, row in evaluation["two_seats"].items():
            (mistakes, half), (share, around) = row["mistakes_per_1000"], row["mistakes_where_it_mattered"]
            lines.append(
                f"- {way}: {mistakes:.2f} ± {half:.2f} mistakes that give a won deal away in 1,000 decisions"
                f" ({row['decisions']:,} decisions); {100 * share:.2f} ± {100 * around:.2f} % where the choice mattered"
            )
    if evaluation.get("best_response"):
        lines += [
            "",
            "Learners in one seat against it in all others, an approximate best response (argmax). A copy of it wins"
            " exactly chance, so one that stays below shows the learner's limits, not the agent's.",
            "",
            "| rules | began as | decisions of training | wins | chance |",
            "|---|---|---|---|---|",
        ]
        for row in evaluation["best_response"]:
            rate, chance = "{:.4f} ± {:.4f}".format(*row["win_rate"]), f"{1 / Rules.of(row['rules']).num_players:.4f}"
            lines.append(f"| `{row['rules']}` | {row['began_as']} | {row['decisions']:,} | {rate} | {chance} |")
        lines += ["", "```bash", *(row["command"] for row in evaluation["best_response"]), "```"]
    lines += ["", "## Weaknesses", "", evaluation["weaknesses"], ""]
    return "\n".join(lines)


_SHOWN = (
    "num_games", "rounds", "batch_size", "epochs", "learning_rate", "gae_lambda", "clip_range", "entropy_coefficient",
    "opponent_share", "bots", "bot_share", "pool_size", "lessons",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    _console.take_any_sign()
    parser = argparse.ArgumentParser(prog="python -m training.publish", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, help="the checkpoint of a run")
    parser.add_argument("target", type=Path, help="the folder to ship, such as checkpoints/NAME")
    parser.add_argument("--deals", type=int, default=20_000, help="duplicate deals of each measurement (20000)")
    parser.add_argument("--notes", default="", help="what it is, in a sentence or two")
    parser.add_argument("--history", default="", help="how the run went, where the command alone does not say it")
    parser.add_argument("--weaknesses", default="None known beyond the figures above.", help="what it does badly")
    parser.add_argument("--command", action="append", default=[], help="a line of the way to reproduce it (repeat)")
    parser.add_argument("--as-newcomer", action="store_true", help="add SOURCE to TARGET as one trained against it")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    try:
        if options.as_newcomer:
            add_newcomer(options.source, options.target, options.deals)
        else:
            words = {key: getattr(options, key) for key in ("notes", "history", "weaknesses")}
            publish(options.source, options.target, options.deals, {**words, "commands": options.command})
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def publish(source: Path, target: Path, deals: int, words: Mapping[str, Any]) -> None:
    """Measure ``source`` and write it with its card to ``target``."""
    manifest = read_manifest(source)
    parameters = sum(tensor.numel() for tensor in read_weights(source, manifest).values())
    _write(source, manifest, target, {**measure(source, deals), "parameters": parameters, **words})


def add_newcomer(newcomer: Path, target: Path, deals: int) -> None:
    """Measure what was trained against ``target``, and add it to its card as an approximate best response.

    Raises:
        ValueError: it was trained against others.
    """
    theirs, manifest = read_manifest(newcomer), read_manifest(target)
    if [Path(bot) for bot in theirs.training["bots"]] != [target] or theirs.training["opponent_share"] < 1:
        raise ValueError(f"{newcomer} was trained against {theirs.training['bots']}, not against {target} alone")
    command, began_as = _command(theirs.training), "a copy of it" if theirs.training["start_from"] else "nothing"
    found = [row for row in manifest.evaluation.get("best_response", []) if row["command"] != command]
    for rules in theirs.rules:
        rate = _pair(evaluate(newcomer, target, rules, deals, SEED).win_rate)
        row = {
            "rules": str(rules),
            "began_as": began_as,
            "win_rate": rate,
            "decisions": theirs.steps,
            "command": command,
        }
        found.append(row)
    _write(target, manifest, target, {**manifest.evaluation, "best_response": found})


def _command(training: Mapping[str, Any]) -> str:
    """The command of a run of the best-response config, from its resolved settings."""
    words = ["python -m training.selfplay --config configs/train/best_response.yaml"]
    for key, default in read_config(BEST_RESPONSE).to_dict().items():
        value = training[key]
        if value != default:
            parts = value if isinstance(value, list) else [value]
            words.append(f"--{key.replace('_', '-')} " + " ".join(shlex.quote(str(part)) for part in parts))
    return " ".join(words)


def _write(source: Path, manifest: Manifest, target: Path, evaluation: Mapping[str, Any]) -> None:
    """Write the weights of ``source`` with another ``evaluation``, and the card, to ``target``."""
    written = write_checkpoint(
        target,
        read_weights(source, manifest),
        manifest.rules,
        manifest.network,
        steps=manifest.steps,
        seed=manifest.seed,
        training=manifest.training,
        evaluation=evaluation,
    )
    write_card(target, written)
    print(f"{target} written")


def write_card(target: Path, manifest: Manifest) -> None:
    """Write the model card beside the manifest."""
    write_whole(target / CARD, card(target.name, manifest))


if __name__ == "__main__":
    sys.exit(main())
