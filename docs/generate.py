"""Fill the generated parts of README.md and docs/, and draw the README's picture: ``make docs``.

Tables stand between ``<!-- NAME: made by docs/generate.py -->`` and ``<!-- end -->``; a test compares them to the code.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from devyatka_env.bots import make_bot
from devyatka_env.bots.catalogue import HEADING, bot_rows
from devyatka_env.evaluation.results import KINDS, SCHEMAS
from devyatka_env.games import Game, draw_rgb
from devyatka_env.rules import PRESETS, Rules
from devyatka_env.views.observation import observation_layout

ROOT = Path(__file__).resolve().parents[1]


def presets_table() -> str:
    """The preset table."""
    lines = ["| preset | source | deck | opening | end | payoff | in short |", "|---|---|---|---|---|---|---|"]
    for name, preset in PRESETS.items():
        rules = Rules.of(name)
        cells = [f"`{name}`", preset.source, str(rules.deck.num_cards), rules.opening, rules.end, rules.payoff]
        lines.append(f"| {' | '.join([*cells, preset.summary])} |")
    return "\n".join(lines)


def bots_table() -> str:
    """The bots that can be named."""
    lines = [f"| {' | '.join(HEADING)} |", f"|{'---|' * len(HEADING)}"]
    lines += [f"| {' | '.join([f'`{row.name}`', *row[1:]])} |" for row in bot_rows()]
    return "\n".join(lines)


def observation_table() -> str:
    """The observation table of the 36-card deck."""
    layout = observation_layout(36)
    return f"{layout.markdown()}\n\nLength {layout.size}, layout hash `{layout.hash}`."


def ladder_table() -> str:
    """Win rates of all shipped bots and checkpoints, from docs/ladder.json (`benchmarks.ladder`)."""
    ladder = json.loads((ROOT / "docs" / "ladder.json").read_text(encoding="utf-8"))
    lines = [
        "| candidate | against | 2 seats | 3 seats | 4 seats | 5 seats | 6 seats | deals |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in ladder.values():
        found = [table["candidates"][0] for table in result["tables"]]
        cells = [f"{one['win_rate']:.4f} ± {(one['win_rate_ci95'][1] - one['win_rate']):.4f}" for one in found]
        name = f"`{found[0]['candidate']}`" + (" (sees all hands)" if found[0]["cheats"] else "")
        against = f"`{result['tables'][0]['against'][0]}`"
        lines.append(f"| {' | '.join([name, against, *cells, format(found[0]['deals'], ',')])} |")
    lines.append(f"| chance | | {' | '.join(f'{1 / seats:.4f}' for seats in range(2, 7))} | |")
    return "\n".join(lines)


def searching_table() -> str:
    """The ladder's rows of the bots that search, and of `greedy`."""
    wanted = ("candidate", "---", "`greedy` | `greedy`", "`pimc`", "`reader`", "`oracle`", "chance")
    lines = ladder_table().splitlines()
    return "\n".join(line for line in lines if line.removeprefix("| ").removeprefix("|").startswith(wanted))


def settings_table() -> str:
    """Every training setting with its default and the text under it in devyatka_env/learning/config.py."""
    source = ast.parse((ROOT / "devyatka_env" / "learning" / "config.py").read_text(encoding="utf-8"))
    (config,) = (node for node in source.body if isinstance(node, ast.ClassDef) and node.name == "TrainConfig")
    lines = ["| setting | default | what it does |", "|---|---|---|"]
    for field, text in itertools.pairwise(config.body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            name, default = ast.unparse(field.target), ast.unparse(field.value) if field.value else ""
            lines.append(f"| `{name}` | `{default}` | {text.value.value} |")
    return "\n".join(lines)


# What the shared parts of results are called, in their order; `common.json` says what they hold.
_PARTS = {
    "header": "Header, of every kind with a `kind`", "rules": "Rules", "rules_fields": "Fields of `rules`",
    "figures": "Figures", "measured": "Measured", "win_rate": "Win rate", "failure": "Failure", "entrant": "Entrant",
}  # fmt: skip
_TYPES = {
    "object": "mapping", "array": "list", "string": "text", "integer": "whole number", "number": "number",
    "boolean": "true or false", "null": "null",
}  # fmt: skip


def results_table() -> str:
    """Every key of every kind of result, from the schemas that ship."""
    shared = _raw_schema("common")["$defs"]
    lines = ["### Parts of several kinds", ""]
    for name, title in _PARTS.items():
        lines += _keys(title, shared[name])
    for kind in ("evaluation", *(one for one in KINDS if one != "evaluation")):
        schema = _raw_schema(kind)
        source = schema["description"]
        lines += [f"### Kind `{kind}`", "", f"`{source}`" if source.startswith("devyatka ") else source, ""]
        lines += _keys("", schema)
        for path, part in _inner(schema):
            lines += _keys(f"`{path}`", part)
    return "\n".join(lines).rstrip()


def _raw_schema(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    return schema


def _inner(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every mapping of named keys inside a schema, with its place."""
    for key, one in schema.get("properties", {}).items():
        inner, place = one, f"{path}.{key}".lstrip(".")
        while "items" in inner or isinstance(inner.get("additionalProperties"), dict):
            place += "[]" if "items" in inner else ".*"
            inner = inner.get("items") or inner["additionalProperties"]
        if "properties" in inner:
            yield place, inner
            yield from _inner(inner, place)


def _keys(title: str, schema: dict[str, Any]) -> list[str]:
    """A table of a mapping's keys; an estimate and its interval share a row."""
    keys = schema.get("properties", {})
    rest = [_PARTS[part["$ref"].rpartition("/")[2]].partition(",")[0] for part in schema.get("allOf", ())]
    more = f"the keys of {' and '.join(rest)}{', and' if keys else ''}" if rest else ""
    heading = ": ".join(part for part in (title, more) if part)
    lines = [f"{heading[0].upper()}{heading[1:]}" + (":" if keys else "."), ""] if heading else []
    if keys:
        lines += ["| key | type | content |", "|---|---|---|"]
    for key, one in keys.items():
        if key.removesuffix("_ci95") != key and key.removesuffix("_ci95") in keys:
            continue
        name = f"`{key}`, `{key}_ci95`" if f"{key}_ci95" in keys else f"`{key}`"
        optional = "" if key in schema.get("required", ()) else "; may be missing"
        lines.append(f"| {name} | {_type(one)} | {_described(one)}{optional} |")
    return [*lines, ""] if keys else lines


def _target(one: dict[str, Any]) -> dict[str, Any]:
    """A value's schema with what it refers to."""
    found = _raw_schema("common")["$defs"][one["$ref"].rpartition("/")[2]] if "$ref" in one else {}
    return {**found, **one}


def _described(one: dict[str, Any]) -> str:
    return str(_target(one)["description"]).removesuffix(".").replace("|", r"\|")


def _type(one: dict[str, Any]) -> str:
    """What a value is: ``list of number or null``."""
    part = one.get("$ref", "").rpartition("/")[2]
    one = _target(one)
    if "enum" in one:
        return " or ".join(f"`{value}`" for value in one["enum"])
    kinds = [one["type"]] if isinstance(one.get("type"), str) else one.get("type", ["object"])
    words = [_TYPES[kind] for kind in kinds]
    if part in _PARTS:
        words[0] = _PARTS[part]
    elif "items" in one:
        words[0] += f" of {_type(one['items'])}" if "properties" not in _target(one["items"]) else " of mappings"
    return " or ".join(words)


def _percent(point: list[float]) -> str:
    """A share and half of its 95 % interval."""
    return f"{100 * point[0]:.1f} ± {100 * point[1]:.1f} %"


def two_seats_table() -> str:
    """What perfect play and the bots do at two seats."""
    data = perfect_play()["two_seats"]
    lines = [
        "| field | deals won by the 9♦ holder | turns with a choice | turns where it mattered"
        " | mistakes where it mattered | mistakes in 1,000 choices | deals with a mistake |",
        "|---|---|---|---|---|---|---|",
    ]
    for field in ("perfect", "greedy", "random"):
        row = data[field]
        cells = [
            _percent(row["opener_wins"]),
            f"{100 * row['decisions_share_of_turns']:.0f} %",
            f"{100 * row['mattered_share_of_turns']:.1f} %",
            f"{100 * row['mistakes_share_of_mattered']:.1f} %",
            f"{row['mistakes_per_1000_decisions']:.1f}",
            _percent(row["deals_with_a_mistake"]),
        ]
        lines.append(f"| {' | '.join([field, *cells])} |")
    margin, left = data["margin_of_opener"], data["cards_left_of_loser"]
    lines += [
        "",
        f"{data['deals']:,} deals. When both play for the margin (payoff `cards`), the loser is left with"
        f" {left[0]:.2f} ± {left[1]:.2f} cards, and the 9♦ holder's mean margin is"
        f" {margin[0]:+.2f} ± {margin[1]:.2f} cards.",
    ]
    return "\n".join(lines)


def opener_table() -> str:
    """The opener's share of wins at 2-6 seats."""
    data = perfect_play()
    two = data["two_seats"]
    rows = {
        "all random": (two["random"]["opener_wins"], "random"),
        "all `greedy`": (two["greedy"]["opener_wins"], "greedy"),
        "open hands, each for itself (max^n)": (two["opener_wins"], "max_n"),
        "open hands, against all others": (two["opener_wins"], "alone"),
    }
    lines = [
        "| deals won by the 9♦ holder | 2 seats | 3 seats | 4 seats | 5 seats | 6 seats |",
        "|---|---|---|---|---|---|",
    ]
    for name, (first, key) in rows.items():
        cells = [_percent(first), *(_percent(data[str(n)][key]) for n in range(3, 7))]
        lines.append(f"| {' | '.join([name, *cells])} |")
    lines.append("| chance | " + " | ".join(f"{100 / n:.1f} %" for n in range(2, 7)) + " |")
    lines += [
        "",
        f"{data['3']['bot_deals']:,} deals of bots, {data['3']['deals']:,} with open hands for each number of seats.",
    ]
    return "\n".join(lines)


def perfect_play() -> dict[str, Any]:
    """The numbers of `benchmarks/perfect_play.py`."""
    data: dict[str, Any] = json.loads((ROOT / "docs/perfect_play.json").read_text(encoding="utf-8"))
    return data


def fill(text: str, name: str, table: str) -> str:
    """Put a table between its markers."""
    opening = f"<!-- {name}: made by docs/generate.py -->"
    pattern = re.compile(re.escape(opening) + r".*?<!-- end -->", re.DOTALL)
    filled, count = pattern.subn(lambda _: f"{opening}\n{table}\n<!-- end -->", text)
    if count != 1:
        raise ValueError(f"expected one place for {name}, found {count}")
    return filled


def between(text: str, name: str) -> str:
    """The table that stands between the markers now."""
    match = re.search(rf"<!-- {name}: made by docs/generate.py -->\n(.*?)\n<!-- end -->", text, re.DOTALL)
    if match is None:
        raise ValueError(f"no place for {name}")
    return match[1]


def draw_game() -> None:
    """The picture of a four-seat game between greedy bots, after 17 cards."""
    import numpy as np
    from PIL import Image

    game, bot, rng = Game.deal("first_out", seed=4), make_bot("greedy"), np.random.default_rng(0)
    for _ in range(17):
        game.play(bot.act(game.view(game.turn), rng))
    Image.fromarray(draw_rgb(game.record, game.rules)).save(ROOT / "docs/images/game.png", optimize=True)


# Page, and the tables in it: each is made by the function ``NAME_table``.
PAGES = {
    "README.md": ("bots", "presets", "observation", "ladder"),
    "docs/training.md": ("settings",),
    "docs/exact.md": ("two_seats", "opener", "searching"),
    "docs/evaluation.md": ("results",),
}


def main() -> None:
    """Rewrite the tables and the picture."""
    for name, tables in PAGES.items():
        page = ROOT / name
        text = page.read_text(encoding="utf-8")
        for table in tables:
            text = fill(text, table, globals()[f"{table}_table"]())
        page.write_text(text, encoding="utf-8")
    draw_game()


if __name__ == "__main__":
    main()
