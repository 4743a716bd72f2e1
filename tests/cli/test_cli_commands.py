"""The command line as a whole: its table of commands, its start, and `devyatka bots`."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from devyatka_env.bots import BOTS
from devyatka_env.bots.catalogue import bot_rows
from devyatka_env.cli import COMMANDS, main

Capture = pytest.CaptureFixture[str]


def python(code: str) -> str:
    """What a fresh process prints; it must say nothing else."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("arguments", [[], ["train"], ["advise"], ["bots", "greedy"]])
def test_command__without_what_it_needs_or_with_more_says_so(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: devyatka" in capsys.readouterr().err


def test_help__lists_every_command_with_a_line(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    listed = re.findall(r"^    ([\w-]+)\s+\w", capsys.readouterr().out, re.MULTILINE)
    names = [command.__name__.removeprefix("devyatka_env.cli.") for command in COMMANDS]
    assert listed == [name.replace("_", "-") for name in names]


def test_help__loads_nothing_that_only_a_running_command_needs() -> None:
    """Beyond what `import devyatka_env` loads it is the modules of the command line alone."""
    before = python("import sys, devyatka_env; print(*sys.modules)").split()
    help_and_modules = (
        "import sys\nfrom devyatka_env.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    print('MODULES', *sys.modules)"
    )
    after = python(help_and_modules).partition("MODULES")[2].split()
    new = {name.split(".")[0] for name in set(after) - set(before)} - set(sys.stdlib_module_names)
    ours = {name for name in set(after) - set(before) if name.startswith("devyatka_env.")}
    assert new == {"devyatka_env"}
    ground = {"devyatka_env._files", "devyatka_env._console"}  # of a few milliseconds
    assert {name for name in ours if not name.startswith("devyatka_env.cli")} - ground == {
        "devyatka_env.bots.catalogue"
    }


def test_bots__has_a_line_for_every_bot_at_100_columns(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["bots"]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split() == ["bot", "source", "sees", "choice", "what", "it", "does"]
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == list(BOTS)
    joined = re.sub(r"\n +", " ", "\n".join(lines)).splitlines()  # parameters may go on in a further line
    for line, row in zip(joined, bot_rows(), strict=True):
        assert re.split(r" {2,}", line) == list(row)
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("columns", [80, 60, 10, 300])
def test_bots__wraps_the_last_column_on_a_narrow_terminal(
    columns: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["bots"]) == 0
    lines = capsys.readouterr().out.splitlines()
    column = lines[0].index("what it does")
    assert max(map(len, lines)) <= max(min(columns, 100), column + 20)
    rest = " ".join(line[column:] for line in lines[1:])
    assert rest == " ".join(row.summary for row in bot_rows())
    assert all(line[column - 1] == " " and line[column] != " " for line in lines)
