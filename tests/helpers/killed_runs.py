"""Trainings that are killed in the place of their n-th file operation: ``python -m tests.helpers.killed_runs N ...``.

In the working folder stands a finished run at ``runs/tiny``. For each N a copy of it, ``N/runs/tiny``, goes on until it
is killed; ``N/killed`` is what that leaves; and it is resumed for a while. The last line is a JSON object: by N, the
exit status of both. All of them are children of one process, which has imported what they need.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from devyatka_env.learning import Run, monitor
from training.selfplay import main

RUN = Path("runs") / "tiny"
# Audit events of what changes a file or a name. Opening one to read raises "open" as well, and is told by its flags.
CHANGES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir")


def die_at(number: int) -> None:
    """End this process in the place of the ``number``-th operation on the run's files from now on."""
    count, folder, fsync = 0, str(RUN.absolute()), os.fsync

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in CHANGES or (event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        path = os.path.abspath(arguments[0]) if isinstance(arguments[0], str | Path) else ""  # noqa: PTH100 - no links
        within = isinstance(arguments[-1], int) and arguments[-1] >= 0 and event in ("os.remove", "os.rmdir")
        if within or (path.startswith(folder) and "tensorboard" not in path and ".lock" not in path):
            tick()

    def tick() -> None:
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(file: int) -> None:
        tick()
        fsync(file)

    sys.addaudithook(note)
    os.fsync = counted


def in_child(work: Callable[[], int]) -> int:
    """Run something in a child; its exit status, negative for a signal."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            os._exit(work())
        except BaseException as error:
            sys.stderr.write(f"{error!r}\n")
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(number: int) -> int:
    """Go on with the run until it is killed."""
    die_at(number)
    return main(["--resume", str(RUN), "--total-decisions", "1000000"])


def resumed() -> int:
    """Go on with what is left, to its next checkpoint."""
    state = Run(RUN).load_state()
    assert state is not None
    return main(["--resume", str(RUN), "--total-decisions", str(state["decisions"] + 300)])


def both(number: int) -> list[int]:
    """Kill a run and go on with it; the exit status of each, negative for a signal."""
    home, folder = Path.cwd(), Path(str(number))
    shutil.copytree("runs", folder / "runs")
    os.chdir(folder)
    first = in_child(lambda: killed(number))
    shutil.copytree(RUN, "killed")
    second = in_child(resumed)
    os.chdir(home)
    return [first, second]


if __name__ == "__main__":
    tqdm.monitor_interval = 0  # no thread that a fork would lose
    monitor.draw_curves = lambda *arguments: None
    sys.stdout.write(json.dumps({word: both(int(word)) for word in sys.argv[1:]}) + "\n")
