"""The order of the layers, what an import loads, and where the rules are executed: read from the source itself."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import devyatka_env

PACKAGE = Path(devyatka_env.__file__).parent
NAME = "devyatka_env"

# A module imports only from lines above it. `X.__init__` stands for the package itself.
LAYERS = [
    "cards",
    "rules",
    "records",
    "spread",
    "engine",
    "view",
    "notation",
    "dealing",
    "game",
    "match",
    "effects",
    "layout",
    "observation",
    "deals",
    "batch",
    "belief",
    "seen.fields",
    "seen.checks",
    "seen.turns",
    "seen.course",
    "seen.__init__",
    "solver.solution",
    "solver.lattice",
    "solver.lookup",
    "solver.two_seats",
    "solver.memo",
    "solver.searches",
    "solver.open_hands",
    "solver.__init__",
    "render",
    "bots.base",
    "bots.parameters",
    "bots.scripted",
    "bots.network",
    "bots.checkpoint",
    "bots.policy",
    "bots.imported",
    "bots.play",
    "bots.best_response",
    "bots.search",
    "bots.__init__",
    "bots.catalogue",
    "bots.ceiling",
    "evaluation.stats",
    "evaluation.agents.__init__",
    "evaluation.agents.asking",
    "evaluation.agents.probes",
    "evaluation.agents.check",
    "evaluation.duplicate",
    "evaluation.workers",
    "evaluation.arena",
    "evaluation.advice",
    "evaluation.measured",
    "evaluation.exact",
    "evaluation.standing",
    "evaluation.replay",
    "evaluation.results",
    "evaluation.report",
    "evaluation.pages.__init__",
    "evaluation.pages.model",
    "evaluation.pages.writers",
    "evaluation.pages.subject",
    "evaluation.pages.portrait",
    "evaluation.pages.charts",
    "evaluation.pages.wording",
    "evaluation.pages.provenance",
    "evaluation.pages.chapters",
    "evaluation.tournaments.__init__",
    "evaluation.tournaments.ratings",
    "evaluation.tournaments.pairings",
    "evaluation.tournaments.play",
    "evaluation.tournaments.standings",
    "evaluation.tournaments.crosstable",
    "evaluation.__init__",
    "envs.__init__",
    "envs.core",
    "envs.aec",
    "envs.parallel",
    "envs.single_agent",
    "envs.learners",
    "envs.vector",
    "envs.sb3",
    "__init__",
    "cli.shared",
    "cli.screen",
    "cli.evaluate",
    "cli.tournament",
    "cli.exact",
    "cli.report",
    "cli.check_agent",
    "cli.solve",
    "cli.advise",
    "cli.bots",
    "cli.__init__",
    "cli.__main__",
]

CORE_PACKAGES = {"numpy", "numba", "llvmlite", "gymnasium", "pettingzoo"}  # what an install without extras has
HEAVY = (
    "torch",
    "stable_baselines3",
    "matplotlib",
    "ray",
    "PIL",
    "tensorboard",
    "pygame",
    "safetensors",
    "tqdm",
    "tyro",
)


def module_of(path: Path) -> str:
    """``bots.base`` for ``bots/base.py``."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


MODULES = {module_of(path): path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def known_module(dotted: str, modules: set[str]) -> str | None:
    """The module that ``devyatka_env.<dotted>`` names; ``None`` when it is a name inside one."""
    if dotted in modules:
        return dotted
    package = f"{dotted}.__init__" if dotted else "__init__"
    return package if package in modules else None


def imports(source: str, module: str, modules: set[str]) -> Iterator[tuple[int, str]]:
    """``(line, target)`` of every import in a source, in functions and under TYPE_CHECKING too.

    A target is a module of the package, or the dotted name of something outside it.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}, line {node.lineno}: a relative import; write {NAME}.…"
            base = str(node.module)
            if base.split(".")[0] != NAME:
                targets = [base]
            else:  # `from package import name` may mean a module of it
                inside = base.removeprefix(NAME).lstrip(".")
                names = [f"{inside}.{alias.name}".lstrip(".") for alias in node.names]
                targets = [f"{NAME}.{name}" if known_module(name, modules) else base for name in names]
        else:
            continue
        for target in targets:
            first, _, rest = target.partition(".")
            yield node.lineno, (known_module(rest, modules) or f"?{target}") if first == NAME else target


def violations(sources: dict[str, str], layers: list[str] = LAYERS) -> list[str]:
    """Every import that does not go upwards, as ``importer, line N, imports target``."""
    modules, found = set(sources), []
    for module, source in sources.items():
        for line, target in imports(source, module, modules):
            if target in modules or target.startswith("?"):
                allowed = layers[: layers.index(module)]
                if target not in allowed:
                    found.append(f"{module}, line {line}, imports {target}")
            elif target.split(".")[0] in ("training", "tests", "benchmarks"):
                found.append(f"{module}, line {line}, imports {target}")
    return found


def top_level_packages(source: str) -> set[str]:
    """The outside packages that running a module's top level imports, those under TYPE_CHECKING left out."""
    found: set[str] = set()
    for node in ast.parse(source).body:
        for inner in ast.walk(node) if isinstance(node, ast.Import | ast.ImportFrom | ast.Try | ast.With) else []:
            if isinstance(inner, ast.Import):
                found |= {alias.name.split(".")[0] for alias in inner.names}
            elif isinstance(inner, ast.ImportFrom):
                found.add(str(inner.module).split(".")[0])
    return found - set(sys.stdlib_module_names) - {NAME}


# --- the order of the layers -----------------------------------------------------------------------------------------


def test_layers__every_module_has_its_place_and_every_place_its_module() -> None:
    assert sorted(LAYERS) == sorted(MODULES)


def test_layers__every_import_goes_upwards() -> None:
    assert violations(MODULES) == []


BAD_SOURCES = {
    "from devyatka_env.game import Game": "cards, line 1, imports game",
    "from devyatka_env import rules, game": "cards, line 1, imports rules",
    "import devyatka_env.engine": "cards, line 1, imports engine",
    "import devyatka_env": "cards, line 1, imports __init__",
    "from devyatka_env import Game": "cards, line 1, imports __init__",
    "from devyatka_env.bots import make_bot": "cards, line 1, imports bots.__init__",
    "from devyatka_env.bots.policy import PolicyBot": "cards, line 1, imports bots.policy",
    "from devyatka_env.cards import Card": "cards, line 1, imports cards",
    "def f():\n    from devyatka_env.rules import Rules": "cards, line 2, imports rules",
    "if TYPE_CHECKING:\n    from devyatka_env.view import PlayerView": "cards, line 2, imports view",
    "try:\n    import devyatka_env.view\nexcept ImportError:\n    pass": "cards, line 2, imports view",
    "from training.config import Config": "cards, line 1, imports training.config",
    "import devyatka_env.nowhere": "cards, line 1, imports ?devyatka_env.nowhere",
}


@pytest.mark.parametrize(("source", "found"), BAD_SOURCES.items())
def test_violations__finds_every_form_of_a_wrong_import(source: str, found: str) -> None:
    assert found in violations({**MODULES, "cards": source})


def test_violations__leaves_right_imports_alone() -> None:
    source = "import numpy\nfrom devyatka_env import engine, rules\nfrom devyatka_env.cards import Card\n"
    assert violations({**MODULES, "game": source}) == []
    with pytest.raises(AssertionError, match="a relative import"):
        violations({**MODULES, "game": "from . import cards"})


# --- what an import loads --------------------------------------------------------------------------------------------


def test_import__loads_no_heavy_package() -> None:
    code = f"import sys, {NAME}; print([name for name in {HEAVY!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    assert run.stderr == ""


@pytest.mark.parametrize("module", sorted(MODULES))
def test_import__a_module_needs_only_the_core_dependencies(module: str) -> None:
    extra = {"bots.network": {"torch"}, "envs.sb3": {"stable_baselines3"}}  # loaded by name, where they are used
    assert top_level_packages(MODULES[module]) <= CORE_PACKAGES | extra.get(module, set())


def test_top_level_packages__finds_what_is_hidden() -> None:
    source = "import os, yaml\ntry:\n    from torch.nn import Linear\nexcept ImportError:\n    pass\n"
    source += "def f():\n    import ray\nif TYPE_CHECKING:\n    import PIL\n"
    assert top_level_packages(source) == {"yaml", "torch"}


# --- one engine ------------------------------------------------------------------------------------------------------

# What only a rule being executed changes. Copying whole records is no rule.
RULE_FIELDS = {
    "hands", "played", "cannot_hold", "table", "legal", "log", "cards_left", "dealt", "passes", "status", "places",
    "num_in", "num_out", "num_excluded", "num_played", "turn", "opener", "any_starter", "reason",
}  # fmt: skip
MUTATORS = {"clear", "begin", "deal", "note_pass", "pass_on", "play_card", "exclude_seat", "finish"}


def rule_writes(source: str) -> list[str]:
    """Assignments to a rule field of a record: ``s.hands[i] = …``, ``states["turn"] += 1``; ``self.x`` is no record."""
    found = []
    for node in ast.walk(ast.parse(source)):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        for target in (inner for outer in targets for inner in ast.walk(outer)):
            if isinstance(target, ast.Attribute) and target.attr in RULE_FIELDS and ast.unparse(target.value) != "self":
                found.append(f"line {node.lineno}: {ast.unparse(target)}")
            key = target.slice if isinstance(target, ast.Subscript) else None
            if isinstance(key, ast.Constant) and key.value in RULE_FIELDS:
                found.append(f"line {node.lineno}: {ast.unparse(target)}")
    return found


@pytest.mark.parametrize("module", sorted(set(MODULES) - {"engine"}))
def test_rules__are_executed_in_the_engine_alone(module: str) -> None:
    # `blank` (what a seat may know) and `could_hold` are the engine's too; others copy records or call its kernels.
    assert rule_writes(MODULES[module]) == []


def test_rule_writes__finds_every_form() -> None:
    bad = 's.hands[0] ^= bit\nstates["turn"] = 1\nstates[0]["table"] |= 1\ngame.record["legal"][0] = 0\ns.turn: int = 1'
    assert len(rule_writes(bad)) == 5
    assert rule_writes("self.turn = 1\nhands = states['hands']\nout.rewards[0] = 1\nx = s.turn") == []
    assert len(rule_writes(MODULES["engine"])) > 40


def test_rules__no_module_but_the_batch_calls_the_engines_inner_steps() -> None:
    for module, source in MODULES.items():
        if module in ("engine", "deals", "batch"):
            continue
        calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
        inner = [ast.unparse(f) for f in calls if isinstance(f, ast.Attribute) and ast.unparse(f.value) == "engine"]
        assert not {name.removeprefix("engine.") for name in inner} & MUTATORS, module


# --- randomness is an argument ---------------------------------------------------------------------------------------


def global_randomness(source: str) -> list[str]:
    """Uses of the random state of the process: `random.…`, `np.random.<function>`, `torch.rand…`, no seed."""
    allowed = {"Generator", "PCG64", "SeedSequence", "default_rng"}
    found = []
    for node in ast.walk(ast.parse(source)):
        text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
        if re.fullmatch(r"(np|numpy)\.random\.\w+", text) and text.split(".")[-1] not in allowed:
            found.append(text)
        if re.fullmatch(r"(random|secrets)\.\w+|torch\.rand\w*", text):
            found.append(text)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("default_rng") and not node.args:
            found.append(ast.unparse(node))
        if isinstance(node, ast.ImportFrom) and node.module in ("random", "numpy.random", "secrets"):
            found.append(ast.unparse(node))
    return found


# `evaluation.agents.asking` sets the global generators to find bots that draw from them, and puts them back.
@pytest.mark.parametrize("module", sorted(set(MODULES) - {"evaluation.agents.asking"}))
def test_randomness__no_module_touches_the_global_state(module: str) -> None:
    assert global_randomness(MODULES[module]) == []


def test_global_randomness__finds_every_form() -> None:
    bad = "import random\nrandom.choice(x)\nnp.random.seed(1)\nnp.random.default_rng()\nfrom random import shuffle"
    assert len(global_randomness(bad)) == 4
    assert global_randomness("np.random.Generator(np.random.PCG64(3))\nself.np_random.choice(x)") == []
