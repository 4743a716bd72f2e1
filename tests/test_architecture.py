"""The order of the layers, what an import loads, and where the rules are executed: read from the source itself."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import devyatka_env

PACKAGE = Path(devyatka_env.__file__).parent
NAME = "devyatka_env"
GOLDEN_NAMES = Path(__file__).parent / "data" / "public_names.txt"

# The rooms, from the ground up: a room imports only from those before it; inside it a module imports only from those
# before it. ``__init__`` is a room's face. The face of the package stands above the rooms that it shows.
TOWER: dict[str, list[str]] = {
    "_package": [],
    "_files": [],
    "_console": [],
    "_schema": [],
    "_signals": [],
    "rules": ["cards", "presets", "rule_set", "numbers", "hands"],
    "engine": [
        "compiling", "randomness", "seeds", "bitboards", "spread", "records", "checks",
        "ending", "payoffs", "turn", "deal", "knowledge", "calls",
    ],
    "views": [
        "layout", "observation", "view", "worlds", "belief",
        "information_state.fields", "information_state.checks", "information_state.passes", "information_state.history",
        "information_state.view_text", "information_state.__init__",
    ],
    "games": ["notation", "game", "match", "effects", "render", "deals", "batch_kernels", "batch"],
    "solver": [
        "solution", "lattice", "lookup", "two_seats", "transpositions", "tree_search", "open_hands",
    ],
    "bots": [
        "base", "parameters", "scripted", "network", "checkpoint", "policy", "imported", "rollout", "best_response",
        "playouts", "search", "registry", "isolated", "catalogue", "ceiling_values",
    ],
    "envs": ["core", "aec", "parallel", "single_agent", "learners", "vector", "sb3"],
    "evaluation": [
        "stats", "duplicate", "workers", "arena", "advice", "streaming", "exact_regret", "against_ceiling", "replay",
        "results", "display", "agent_checks.bait", "agent_checks.harness", "agent_checks.probes", "agent_checks.check",
        "agent_checks.__init__", "reports.page", "reports.writers", "reports.reported_agent", "reports.measurements",
        "reports.charts", "reports.wording", "reports.provenance", "reports.sections", "reports.__init__",
        "tournaments.ratings", "tournaments.pairings", "tournaments.round_robin", "tournaments.results",
        "tournaments.cross_table", "tournaments.__init__",
    ],
    "learning": [
        "tables", "config", "buffer", "policy", "teacher", "ppo", "pool", "owner", "run_folder", "curves", "stops",
        "monitor", "selfplay",
    ],
    "__init__": [],
    "cli": [
        "shared", "screen", "evaluate", "tournament", "exact", "report", "check_agent", "solve", "advise", "bots",
    ],
}  # fmt: skip
# Rooms side by side: the tower has an order, but neither imports the other.
APART = {("evaluation", "envs"), ("learning", "envs")}


def layers() -> list[str]:
    """Every module in the order of the tower; a room's face after its modules."""
    found = []
    for room, modules in TOWER.items():
        found += [f"{room}.{module}" for module in modules] or [room]
        if modules:
            found.append(f"{room}.__init__")
    return [*found, "cli.__main__"]


LAYERS = layers()

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


def room_of(module: str) -> str:
    """``bots`` for ``bots.base``."""
    return module.split(".")[0]


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
                if target not in allowed or (room_of(module), room_of(target)) in APART:
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


def test_layers__rooms_side_by_side_do_not_import_each_other() -> None:
    source = "from devyatka_env.envs.aec import env\n"
    assert violations({**MODULES, "evaluation.arena": source}) == ["evaluation.arena, line 1, imports envs.aec"]


BAD_SOURCES = {
    "from devyatka_env.games.game import Game": "rules.cards, line 1, imports games.game",
    "from devyatka_env.rules import rule_set, cards": "rules.cards, line 1, imports rules.rule_set",
    "import devyatka_env.engine.turn": "rules.cards, line 1, imports engine.turn",
    "import devyatka_env": "rules.cards, line 1, imports __init__",
    "from devyatka_env import Game": "rules.cards, line 1, imports __init__",
    "from devyatka_env.bots import make_bot": "rules.cards, line 1, imports bots.__init__",
    "from devyatka_env.bots.policy import PolicyBot": "rules.cards, line 1, imports bots.policy",
    "from devyatka_env.rules.cards import Card": "rules.cards, line 1, imports rules.cards",
    "def f():\n    from devyatka_env.rules.rule_set import Rules": "rules.cards, line 2, imports rules.rule_set",
    "if TYPE_CHECKING:\n    from devyatka_env.views.view import PlayerView": "rules.cards, line 2, imports views.view",
    "try:\n    import devyatka_env.views\nexcept OSError:\n    pass": "rules.cards, line 2, imports views.__init__",
    "from training.config import Config": "rules.cards, line 1, imports training.config",
    "import devyatka_env.nowhere": "rules.cards, line 1, imports ?devyatka_env.nowhere",
}


@pytest.mark.parametrize(("source", "found"), BAD_SOURCES.items())
def test_violations__finds_every_form_of_a_wrong_import(source: str, found: str) -> None:
    assert found in violations({**MODULES, "rules.cards": source})


def test_violations__leaves_right_imports_alone() -> None:
    source = "import numpy\nfrom devyatka_env import engine, rules\nfrom devyatka_env.rules.cards import Card\n"
    assert violations({**MODULES, "games.game": source}) == []
    with pytest.raises(AssertionError, match="a relative import"):
        violations({**MODULES, "games.game": "from . import match"})


# --- what an import loads --------------------------------------------------------------------------------------------


def test_import__loads_no_heavy_package() -> None:
    code = f"import sys, {NAME}; print([name for name in {HEAVY!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    assert run.stderr == ""


@pytest.mark.parametrize("module", sorted(MODULES))
def test_import__a_module_needs_only_the_core_dependencies(module: str) -> None:
    # Loaded by name, where they are used.
    extra = {"bots.network": {"torch"}, "envs.sb3": {"stable_baselines3"}}
    training = {"torch", "stable_baselines3", "yaml", "matplotlib", "tqdm", "filelock"}
    extra |= {f"learning.{name}": training for name in TOWER["learning"] if name != "tables"}
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
ENGINE = {module for module in MODULES if room_of(module) == "engine"}


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


@pytest.mark.parametrize("module", sorted(set(MODULES) - ENGINE))
def test_rules__are_executed_in_the_engine_alone(module: str) -> None:
    # `blank` (what a seat may know) and `could_hold` are the engine's too; others copy records or call its kernels.
    assert rule_writes(MODULES[module]) == []


def test_rule_writes__finds_every_form() -> None:
    bad = 's.hands[0] ^= bit\nstates["turn"] = 1\nstates[0]["table"] |= 1\ngame.record["legal"][0] = 0\ns.turn: int = 1'
    assert len(rule_writes(bad)) == 5
    assert rule_writes("self.turn = 1\nhands = states['hands']\nout.rewards[0] = 1\nx = s.turn") == []
    assert sum(len(rule_writes(MODULES[module])) for module in ENGINE) > 40


def test_rules__no_module_but_the_batch_imports_the_engines_inner_steps() -> None:
    for module, source in MODULES.items():
        if module in ENGINE | {"games.deals", "games.batch_kernels"}:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(f"{NAME}.engine"):
                assert not {alias.name for alias in node.names} & MUTATORS, module


# --- the faces of the rooms ------------------------------------------------------------------------------------------

FACES = sorted(module for module in MODULES if module.endswith("__init__") and not module.startswith("cli"))


def face_of(module: str) -> ModuleType:
    return importlib.import_module(f"{NAME}.{module}".removesuffix(".__init__"))


@pytest.mark.parametrize("module", FACES)
def test_faces__every_public_name_is_there_and_described_in_a_line(module: str) -> None:
    face = face_of(module)
    described = re.findall(r"^- `(\w+)`: \S.*\.$", str(face.__doc__), re.MULTILINE)
    if module != "__init__":  # its names are those of the rooms
        assert sorted(described) == sorted(face.__all__)
    for name in face.__all__:
        assert hasattr(face, name), name
        assert name in dir(face)


def public_names() -> str:
    return "".join(f"{module}: {' '.join(sorted(face_of(module).__all__))}\n" for module in FACES)


def test_faces__public_names_are_the_agreed_ones() -> None:
    """A change of the public face is a decision: write it down with ``python -m tests.test_architecture``."""
    assert public_names() == GOLDEN_NAMES.read_text(encoding="utf-8")


def test_faces__rooms_import_public_names_through_them() -> None:
    """One way to each name: what a room shows is taken from its face, the rest from the module where it stands."""
    shown = {module.removesuffix(".__init__"): set(face_of(module).__all__) for module in FACES if "." in module}
    for module, source in MODULES.items():
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.ImportFrom) or not str(node.module).startswith(f"{NAME}."):
                continue
            target = str(node.module).removeprefix(f"{NAME}.")
            if "." in target and room_of(target) != room_of(module):
                past = {alias.name for alias in node.names} & shown.get(room_of(target), set())
                assert not past or target == "views.observation", f"{module} imports {past} from {target}"


# --- randomness is an argument ---------------------------------------------------------------------------------------


def global_randomness(source: str) -> list[str]:
    """Uses of the random state of the process: `random.…`, `np.random.<function>`, `torch.rand…`, no seed."""
    allowed = {"Generator", "PCG64", "SeedSequence", "default_rng"}
    found = []
    for node in ast.walk(ast.parse(source)):
        text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
        if re.fullmatch(r"(np|numpy)\.random\.\w+", text) and text.split(".")[-1] not in allowed:
            found.append(text)
        if re.fullmatch(r"random\.\w+|secrets\.(?!token_bytes)\w+|torch\.rand\w*", text):
            found.append(text)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("default_rng") and not node.args:
            found.append(ast.unparse(node))
        if isinstance(node, ast.ImportFrom) and node.module in ("random", "numpy.random", "secrets"):
            found.append(ast.unparse(node))
    return found


# `evaluation.agent_checks.harness` sets the global generators to find bots that draw from them, and puts them back.
@pytest.mark.parametrize("module", sorted(set(MODULES) - {"evaluation.agent_checks.harness"}))
def test_randomness__no_module_touches_the_global_state(module: str) -> None:
    found = global_randomness(MODULES[module])
    if room_of(module) == "learning":  # as stable-baselines3 does: a run seeds torch's generator, saves and restores it
        found = [use for use in found if not use.startswith("torch.")]
    assert found == []


def test_global_randomness__finds_every_form() -> None:
    bad = "import random\nrandom.choice(x)\nnp.random.seed(1)\nnp.random.default_rng()\nfrom random import shuffle"
    assert len(global_randomness(bad)) == 4
    assert global_randomness("np.random.Generator(np.random.PCG64(3))\nself.np_random.choice(x)") == []


if __name__ == "__main__":
    GOLDEN_NAMES.write_text(public_names(), encoding="utf-8")
