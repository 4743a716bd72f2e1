"""Compiled kernels are cached on disk: a change in any room must reach the kernels that are compiled around it."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import devyatka_env

SOURCE = Path(devyatka_env.__file__).parent
Package = Callable[[str], str]

# What fits on an empty table, by the engine's own entry point and by an observation, which has that kernel compiled in.
LOOK_AT_BOTH = """
import numpy as np
from devyatka_env import Rules
from devyatka_env.engine import STATE_DTYPE, rules_record
from devyatka_env.engine.calls import fitting_at
from devyatka_env.views import observation_layout
from devyatka_env.views.observation import encode_at
states, rules, out = np.zeros(1, STATE_DTYPE), rules_record(Rules()), np.zeros(observation_layout(36).size, np.int8)
encode_at(states, 0, rules, 0, out, np.zeros(37, np.int8))
print(int(fitting_at(states, 0, rules)).bit_length() - 1, int(out[72:108].argmax()))
"""
STAMP = "from devyatka_env.engine.compiling import kernel_sources; print(kernel_sources())"


@pytest.fixture
def package(tmp_path: Path) -> Package:
    """Runs code against a copy of the package, in a fresh process."""
    shutil.copytree(SOURCE, tmp_path / "devyatka_env", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)

    def run(code: str) -> str:
        command = [sys.executable, "-c", code]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    return run


def has_kernels(path: Path) -> bool:
    """Whether a module decorates a function with a name that compiles it, by its syntax tree."""
    compilers = {"kernel", "parallel_kernel", "inlined"}
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    return any(ast.unparse(one) in compilers for function in functions for one in function.decorator_list)


KERNELS = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if has_kernels(path))


def test_cache__follows_a_change_of_the_engine_into_other_rooms(package: Package, tmp_path: Path) -> None:
    # Regression: numba looks only at the file of the kernel itself, so after an edit of the engine observations (and
    # bots, and batches) went on by the old rules while single games played by the new ones.
    assert package(LOOK_AT_BOTH) == "12 12"
    turn = tmp_path / "devyatka_env" / "engine" / "turn.py"
    source = turn.read_text(encoding="utf-8")
    assert source.count("return r.opening_card\n") == 1
    turn.write_text(source.replace("return r.opening_card\n", "return r.opening_card << _ONE\n"), encoding="utf-8")
    assert package(LOOK_AT_BOTH) == "13 13"


def test_cache__is_stamped_by_the_kernels_of_every_room(package: Package, tmp_path: Path) -> None:
    rooms = {path.parts[0]: path for path in KERNELS}
    assert {"engine", "views", "games", "solver", "bots", "learning"} <= set(rooms)
    stamps = [package(STAMP)]
    for path in rooms.values():
        changed = tmp_path / "devyatka_env" / path
        changed.write_text(changed.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
        stamps.append(package(STAMP))
    assert len(set(stamps)) == len(stamps)


def test_cache__every_module_with_kernels_is_looked_at() -> None:
    """By the pattern that the stamp goes by, which is quicker than a syntax tree, and by nothing that it overlooks."""
    found = sorted(
        path.relative_to(SOURCE)
        for path in SOURCE.rglob("*.py")
        if re.search(rb"^@(kernel|parallel_kernel|inlined)$", path.read_bytes(), re.MULTILINE)
    )
    assert found == KERNELS
    for path in SOURCE.rglob("*.py"):
        uses = {ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call)}
        assert not uses & {"numba.njit", "numba.jit", "njit", "jit"} or path.name == "compiling.py", path


# --- places that take no cache, and files that are damaged -----------------------------------------------------------

FIT = """
import numpy as np
from devyatka_env import Rules
from devyatka_env.engine import STATE_DTYPE, rules_record
from devyatka_env.engine.calls import fitting_at
print(int(fitting_at(np.zeros(1, STATE_DTYPE), 0, rules_record(Rules()))).bit_length() - 1)
"""


def test_cache__kernels_compile_without_a_place_for_it(package: Package) -> None:
    """As from a read-only disk with a home that cannot be written to: numba finds no place for any kernel."""
    nowhere = (
        "from numba.core import caching\n"
        "for locator in (caching.CacheImpl._locator_classes, caching.CodeLibraryCacheImpl._locator_classes,\n"
        "                caching.CompileResultCacheImpl._locator_classes):\n"
        "    locator.clear()\n"
    )
    assert package(nowhere + FIT) == "12"


def test_cache__damaged_files_are_compiled_anew(package: Package, tmp_path: Path) -> None:
    assert package(FIT) == "12"
    for pattern in ("*.nbi", "*.nbc"):
        files = list(tmp_path.rglob(pattern))
        assert files
        for file in files:
            file.write_bytes(b"damaged" + file.read_bytes()[:100])
        assert package(FIT) == "12"
        assert package(FIT) == "12"


def test_compiling__is_said_when_something_compiles_and_not_when_it_is_loaded(package: Package) -> None:
    """The word comes from numba's own event, so a busy machine that loads slowly says nothing."""
    count = (
        "from devyatka_env.engine import compiling\n"
        "compiling._say_it = lambda: print('said')\n"
        "class AtOnce:\n"
        "    def __init__(self, seconds, say): self.say = say\n"
        "    def start(self): self.say()\n"
        "    def cancel(self): pass\n"
        "compiling.threading.Timer = AtOnce\n"
        "with compiling.compiling():\n    "
    )
    look = FIT.strip().replace("\n", "\n    ")
    assert package(count + look) == "said\n12"
    assert package(count + look) == "12"
