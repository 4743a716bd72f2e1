"""What gets installed: the package and the command, nothing else."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import devyatka_env
from devyatka_env.evaluation.results import KINDS

ROOT = Path(__file__).resolve().parents[1]


def test_wheel__holds_the_package_and_the_command_only(tmp_path: Path) -> None:
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            "-q",
            "-w",
            str(tmp_path),
            str(ROOT),
        ],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "devyatka_env",
        f"devyatka_env-{devyatka_env.__version__}.dist-info",
    }
    assert "devyatka_env/py.typed" in names
    assert {f"devyatka_env/evaluation/schema/{kind}.json" for kind in (*KINDS, "common")} <= set(names)
    entry_points = zipfile.ZipFile(wheel).read(f"devyatka_env-{devyatka_env.__version__}.dist-info/entry_points.txt")
    assert entry_points.decode().split() == ["[console_scripts]", "devyatka", "=", "devyatka_env.cli:main"]


def test_version__is_the_same_in_the_package_and_its_metadata() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == devyatka_env.__version__


def test_core_dependencies__are_four() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [requirement.split(">")[0] for requirement in project["dependencies"]]
    assert names == ["numpy", "numba", "gymnasium", "pettingzoo"]
