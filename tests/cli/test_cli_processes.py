"""The command as a process: screens that go, consoles without the signs, odd files, signals, workers left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devyatka_env import _console, _files

COMMAND = [sys.executable, "-m", "devyatka_env.cli"]
EVALUATE = [*COMMAND, "evaluate", "greedy", "--deals", "30"]
HANG = 600  # seconds after which a process counts as hanging; nothing else is judged by time
posix = pytest.mark.skipif(os.name != "posix", reason="pipes with names, and signals, are POSIX")


def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, text=True, capture_output=True, timeout=HANG, check=False, **options)


# --- screens ---------------------------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("command", ["evaluate greedy --deals 30", "check-agent greedy --quick --rules first_out"])
def test_pipe__a_reader_that_goes_costs_no_file(command: str, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    process = subprocess.Popen([*COMMAND, *command.split(), "--json", str(result)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()  # as `| head -0`
    assert process.wait(HANG) == 0
    assert json.loads(result.read_text(encoding="utf-8"))["kind"]


def test_screen__without_a_file_to_write_the_work_ends_with_the_reader() -> None:
    class Gone:
        def write(self, text: str) -> int:
            raise BrokenPipeError

        def fileno(self) -> int:
            raise OSError

    with pytest.raises(BrokenPipeError):
        _console.Screen(Gone(), goes_on=False).write("x")  # type: ignore[arg-type]
    screen = _console.Screen(Gone(), goes_on=True)  # type: ignore[arg-type]
    assert screen.write("x") == screen.write("y") == 1


EVALUATE_TO_FILE = "evaluate greedy --deals 20 --json out.json"


@pytest.mark.parametrize(
    ("encoding", "command"),
    [
        *(("ascii", one) for one in ("--help", "evaluate --help", "solve --seed 1 --seats 2", EVALUATE_TO_FILE)),
        *((encoding, EVALUATE_TO_FILE) for encoding in ("cp1252", "cp866")),
        ("cp437", "solve --seed 1 --seats 2"),
    ],
)
def test_console__without_the_signs_every_command_works(encoding: str, command: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [*COMMAND, *command.split()], env=environment, cwd=tmp_path, capture_output=True, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode(encoding)
    assert "Traceback" not in text
    if "solve" in command:
        assert "\n D " in text or "♦" in text
    if "--json" in command:
        assert "±" in text or "+-" in text
        assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["tables"]


def test_printable__writes_letters_for_signs() -> None:
    class Console:
        encoding = "ascii"

    assert _console.printable("9♦ 10♥ ± 0.5 … ✈", Console()) == "9D 10H +- 0.5 ... ?"  # type: ignore[arg-type]
    Console.encoding = "no such encoding"
    assert _console.printable("9♦", Console()) == "9D"  # type: ignore[arg-type]
    Console.encoding = "utf-8"
    assert _console.printable("9♦ ✈", Console()) == "9♦ ✈"  # type: ignore[arg-type]


# --- files -----------------------------------------------------------------------------------------------------------


@posix
def test_file__a_pipe_with_a_name_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    _files.check_writable(pipe)
    _files.write_whole(pipe, "whole ♦")
    reader.join(HANG)
    assert found == ["whole ♦".encode()]
    assert pipe.is_fifo()


@posix
def test_file__standard_output_and_a_full_device_are_written_to() -> None:
    shown = run([*EVALUATE, "--json", "/dev/stdout"]).stdout
    assert json.loads(shown[shown.index("{") :])["kind"] == "evaluation"
    if Path("/dev/full").exists():
        done = run([*EVALUATE, "--json", "/dev/full"])
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")
        assert Path("/dev/full").is_char_device()


@posix
def test_file__standard_output_in_a_file_keeps_what_was_printed(tmp_path: Path) -> None:
    with (tmp_path / "all.txt").open("w") as file:
        subprocess.run([*EVALUATE, "--json", "/dev/stdout"], stdout=file, timeout=HANG, check=True)
    text = (tmp_path / "all.txt").read_text(encoding="utf-8")
    assert "win rate" in text[: text.index("{")]
    assert '"kind": "evaluation"' in text


def test_file__a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "result.json", tmp_path / "link.json"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    _files.write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in target.parent.iterdir()] == ["result.json"]


def test_file__what_stood_there_stays_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        _files.write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("option", ["--json", "--plot"])
def test_file__in_a_folder_that_takes_none_is_refused_before_play(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from devyatka_env.cli import main

    def read_only(self: Path, *arguments: Any, **options: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", read_only)  # root may write anywhere
    assert main(["evaluate", "greedy", option, str(tmp_path / "x.png")]) == 2
    shown = capsys.readouterr()
    assert "Permission denied" in shown.err
    assert shown.out == ""


# --- signals and workers ---------------------------------------------------------------------------------------------

LONG = [*COMMAND, "evaluate", "pimc", "--deals", "100000", "--reference", ""]


def children(pid: int) -> list[int]:
    """The processes below one, by what the system tells (Linux)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(entry.parent.name))
    return found


def wait_until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize("kind", ["SIGTERM", "SIGHUP", "SIGKILL"])
def test_workers__end_with_the_command_whatever_ends_it(kind: str, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    command = [*LONG, "--jobs", "2", "--json", str(result)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    workers: set[int] = set()

    def has_workers() -> bool:
        workers.update(children(process.pid))
        return len(workers) >= 3  # two, and the one that multiprocessing keeps for itself

    wait_until(has_workers)
    process.send_signal(getattr(signal, kind))
    process.wait(HANG)
    wait_until(lambda: not any(is_alive(pid) for pid in workers))
    if kind != "SIGKILL":
        assert process.returncode == 130
    process.communicate()


@posix
def test_signal__what_was_played_before_is_shown_and_written(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    (tmp_path / "agents.py").write_text(
        "import os, signal\n"
        "calls = 0\n"
        "def stops(view, rng):\n"
        "    global calls\n"
        "    calls += 1\n"
        "    if calls == 2000:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return view.legal_actions()[0]\n"
    )
    command = [*COMMAND, "evaluate", "agents:stops", "--deals", "5000", "--reference", "", "--json", str(result)]
    done = run(command, cwd=tmp_path)
    assert done.returncode == 130, done.stderr
    (table,) = json.loads(result.read_text(encoding="utf-8"))["tables"]
    assert table["candidates"][0]["interrupted"] is True
    assert 0 < table["candidates"][0]["deals"] < 5000
    assert "agents:stops" in done.stdout
