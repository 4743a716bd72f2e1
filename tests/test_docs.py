"""README and docs say what the code does: examples run, tables match, links lead somewhere."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import pkgutil
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks.ladder import LADDER, rows
from benchmarks.perfect_play import two_seats
from devyatka_env.bots import registry
from devyatka_env.evaluation import evaluate, results
from devyatka_env.learning import TrainConfig
from devyatka_env.rules import PRESETS, Rules

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "checkpoints").glob("*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readme__has_examples_for_pettingzoo_gymnasium_evaluation_and_bots() -> None:
    assert len(EXAMPLES) >= 5
    for word in ("agent_iter", "gymnasium.make", "evaluate(", "register_bot"):
        assert any(word in example for example in EXAMPLES), word


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_readme__example_runs(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    exec(compile(EXAMPLES[number], f"README.md, example {number}", "exec"), {"__name__": "example"})


@pytest.mark.parametrize("name", ["bots", "presets", "observation", "ladder"])
def test_readme__table_is_the_one_the_code_makes(name: str, generate: ModuleType) -> None:
    assert generate.between(README, name) == getattr(generate, f"{name}_table")(), "run `make docs`"


@pytest.mark.parametrize("name", ["two_seats", "opener", "searching"])
def test_exact_page__table_is_made_of_the_saved_numbers(name: str, generate: ModuleType) -> None:
    page = (ROOT / "docs" / "exact.md").read_text(encoding="utf-8")
    assert generate.between(page, name) == getattr(generate, f"{name}_table")(), "run `make docs`"


def test_evaluation_page__has_every_key_of_the_schemas(generate: ModuleType) -> None:
    page = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    assert generate.between(page, "results") == generate.results_table(), "run `make docs`"
    for kind in results.KINDS:  # every key at any depth has its row
        keys = set(keys_of(results.schema_of(kind)))
        rows = " ".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
        assert keys <= set(re.findall(r"`(\w+)`", rows))


def keys_of(schema: Any) -> Iterator[str]:
    """Every key that a schema names, at any depth."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("properties"), Mapping):
            yield from schema["properties"]
        for one in schema.values():
            yield from keys_of(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from keys_of(one)


def test_training_page__has_every_setting(generate: ModuleType) -> None:
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    assert generate.between(page, "settings") == generate.settings_table(), "run `make docs`"
    fields = [field.name for field in dataclasses.fields(TrainConfig)]
    assert re.findall(r"^\| `(\w+)` \|", generate.settings_table(), re.MULTILINE) == fields


def test_exact_page__numbers_are_those_of_the_solver() -> None:
    """The saved share of deals won by the opener, and the bots' mistakes, hold on a part of the same deals."""
    saved = json.loads((ROOT / "docs" / "perfect_play.json").read_text(encoding="utf-8"))["two_seats"]
    fresh = two_seats(300)
    assert saved["deals"] >= 20_000
    for key in ("opener_wins", "cards_left_of_loser"):
        (mean, half), (again, spread) = saved[key], fresh[key]
        assert abs(mean - again) < half + spread
    for field in ("greedy", "random"):
        assert fresh[field]["mistakes_share_of_mattered"] == pytest.approx(
            saved[field]["mistakes_share_of_mattered"], rel=0.3
        )
    assert fresh["perfect"]["mistakes_share_of_mattered"] == saved["perfect"]["mistakes_share_of_mattered"] == 0


def test_ladder__has_every_shipped_bot_and_checkpoint() -> None:
    wanted = {(row.bot, row.against, row.deals) for row in rows()}
    tables = [result["tables"] for result in json.loads(LADDER.read_text(encoding="utf-8")).values()]
    found = {
        (one["candidates"][0]["candidate"], one["against"][0], one["candidates"][0]["deals"]) for one, *_ in tables
    }
    assert found == wanted
    for five in tables:
        assert [one["rules_fingerprint"] for one in five] == [Rules.of(num_players=n).fingerprint for n in range(2, 7)]


@pytest.mark.parametrize(("candidate", "against"), [("greedy", "random"), ("blocker", "greedy"), ("closed", "greedy")])
def test_ladder__holds_on_other_deals(candidate: str, against: str) -> None:
    """The printed win rates lie within both intervals of a fresh, smaller measurement.

    Two 95 % intervals of the same quantity are disjoint about once in 180 comparisons; the deals here are fixed, so
    the test either always passes or always fails.
    """
    ladder = json.loads(LADDER.read_text(encoding="utf-8"))[f"{candidate} against {against}"]
    for seats, table in enumerate(ladder["tables"], start=2):
        (row,) = table["candidates"]
        fresh = evaluate(candidate, against, Rules.of(num_players=seats), deals=2000, seed=99).win_rate
        low, high = row["win_rate_ci95"]
        assert fresh.low <= high
        assert low <= fresh.high


def test_rules_page__preset_table_names_every_preset() -> None:
    page = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)`(?: \(default\))? \| \d{3}", page, re.MULTILINE)
    assert rows == list(PRESETS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages__links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


NAMES = sorted(
    {
        (str(path.relative_to(ROOT)), name)
        for path in [*PAGES, *(ROOT / "devyatka_env").rglob("*.py"), *(ROOT / "training").glob("*.py")]
        if path.name != "CHANGELOG.md"  # it tells of what was
        for name in re.findall(r"`((?:devyatka_env|training)\.[\w.]+)`", path.read_text(encoding="utf-8"))
    }
)


@pytest.mark.parametrize(("where", "name"), NAMES)
def test_pages_and_docstrings__dotted_names_are_there(where: str, name: str) -> None:
    assert pkgutil.resolve_name(name) is not None, where


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages__paths_of_modules_are_there(page: Path) -> None:
    """``bots/scripted.py`` is of the package, a path that begins with a folder of the clone is of the clone."""
    for path in re.findall(r"`((?:\w+/)+[a-z_]+\.py)`", page.read_text(encoding="utf-8")):
        assert (ROOT / path).exists() or (ROOT / "devyatka_env" / path).exists(), path
