"""Nothing of a training is lost and nothing of others touched: names, owners, signals, kills, damaged files."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from devyatka_env import _signals
from devyatka_env.bots import PolicyBot
from devyatka_env.bots.checkpoint import MANIFEST, WEIGHTS, read_manifest, resolve
from devyatka_env.engine.seeds import WORD_SCHEME
from devyatka_env.learning import ConfigError, Run, TrainConfig, monitor
from tests.helpers.training_helpers import metric_rows, write_settings
from training import publish
from training.selfplay import main

ROOT = Path(__file__).resolve().parents[2]
RUN = Path("runs/tiny")
EVERY = 512
SETTINGS = {"checkpoint_every": EVERY, "snapshot_every": EVERY, "eval_every": EVERY, "total_decisions": 2 * EVERY}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(monitor, "draw_curves", lambda *arguments: None)
    before = {kind: signal.getsignal(kind) for kind in _signals.KINDS}
    yield
    assert {kind: signal.getsignal(kind) for kind in _signals.KINDS} == before


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a run has been trained to its end."""
    folder = tmp_path_factory.mktemp("trained")
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setattr(monitor, "draw_curves", lambda *arguments: None)
        assert main(["--config", str(write_settings(Path("tiny.yaml"), **SETTINGS))]) == 0
    return folder


@pytest.fixture
def finished(trained: Path) -> Path:
    """That run, in ./runs, to do with as one likes."""
    shutil.copytree(trained, ".", dirs_exist_ok=True)
    return RUN


def tree(folder: Path) -> dict[Path, bytes | None]:
    """All that is there; the lock, which is empty, aside."""
    found = {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}
    return {path: content for path, content in found.items() if path.name != ".lock"}


def decisions_of(folder: Path) -> int:
    state = Run(folder).load_state()
    assert state is not None
    return int(state["decisions"])


def go_on(*options: str) -> int:
    """Resume for a few updates more."""
    return main(["--resume", str(RUN), "--total-decisions", str(decisions_of(RUN) + 300), *options])


# --- names -----------------------------------------------------------------------------------------------------------


def failed_run() -> Path:
    """What a run leaves that failed at once: settings, an empty log, and the weights that it began with."""
    run = Run.create(TrainConfig(name="X", seed=7))
    run.metrics.touch()
    run.tensorboard.mkdir()
    (run.tensorboard / "events.out.tfevents.1.vm.2.0").write_bytes(b"some")
    (run.pool / "000000000000").mkdir(parents=True)
    (run.pool / "000000000000" / WEIGHTS).write_bytes(b"random")
    run.release()
    return run.folder


def file_at(path: str, content: str = "mine") -> Callable[[], None]:
    """A failed run with one more file, or with another content of one."""

    def make() -> None:
        target = failed_run() / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")

    return make


def notes() -> None:
    Path("runs/X").mkdir(parents=True)
    Path("runs/X/notes.txt").write_text("mine", encoding="utf-8")


def plain_file() -> None:
    Path("runs").mkdir()
    Path("runs/X").write_text("mine", encoding="utf-8")


def link_to_notes() -> None:
    notes()
    Path("runs/X").rename("notes")
    Path("runs/X").symlink_to(Path("notes").absolute())


def link_within() -> None:
    Path("elsewhere").mkdir()
    (failed_run() / "tensorboard" / "events.out.tfevents.2").symlink_to(Path("elsewhere").absolute())


OTHERS = {
    "a folder of notes": notes,
    "a file": plain_file,
    "a link to notes": link_to_notes,
    "a link within": link_within,
    "another tool's config": file_at("config.yaml", "model: 7\n"),
    "half a config": file_at("config.yaml", "name: X\n"),
    "notes beside it": file_at("notes.txt"),
    "notes in its log": file_at("metrics.jsonl"),
    "a line of metrics": file_at("metrics.jsonl", '{"decisions": 1}\n'),
    "a checkpoint": file_at("checkpoints/last/manifest.json"),
    "a resume file": file_at("resume.pt"),
    "a trained snapshot": file_at("pool/000000000512/weights.safetensors"),
    "notes in its pool": file_at("pool/000000000000/notes.txt"),
    "a picture": file_at("tensorboard/plot.png"),
}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_name__that_is_taken_by_anything_but_a_failed_run_of_ours_is_refused_and_left_alone(
    make: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    make()
    before = tree(Path())
    with pytest.raises(ConfigError, match=r"runs/X exists: .* or choose another --name"):
        Run.create(TrainConfig(name="X"))
    assert tree(Path()) == before
    settings = write_settings(Path("tiny.yaml"))
    assert main(["--config", str(settings), "--name", "X"]) == 2
    assert "error: runs/X exists: " in capsys.readouterr().err
    settings.unlink()
    assert tree(Path()) == before


def test_name__of_a_failed_run_is_taken_with_nothing_of_it_left() -> None:
    failed_run()
    run = Run.create(TrainConfig(name="X", seed=8))
    run.release()
    assert {path.name for path in run.folder.iterdir()} == {".lock", "config.yaml"}
    assert Run.open(run.folder)[1].seed == 8
    shutil.rmtree(run.folder)
    run.folder.mkdir()
    (run.folder / ".config.yaml.17.new").write_text("na", encoding="utf-8")  # killed while it wrote its first file
    Run.create(TrainConfig(name="X")).release()
    assert {path.name for path in run.folder.iterdir()} == {".lock", "config.yaml"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--device", "cuda:99"], "device=cuda:99, but torch finds"),
        (["--start-from", "nowhere"], "no checkpoint at nowhere"),
        (["--rules", "first_out num_players=6 num_suits=2 ranks=89T starter=9"], "had no decision to learn from"),
    ],
)
def test_settings__are_checked_before_anything_is_touched(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = str(write_settings(Path("tiny.yaml")))
    failed_run()
    before = tree(Path())
    for name in ("X", "new"):
        assert main(["--config", settings, "--name", name, "--network", "mlp", *options]) == 2
        assert message in capsys.readouterr().err
        assert tree(Path()) == before


# --- one owner -------------------------------------------------------------------------------------------------------

HOLD = """
import sys, time
from pathlib import Path
from devyatka_env.learning import Run, TrainConfig
run = Run.create(TrainConfig(name="X", seed=7)) if sys.argv[1] == "create" else Run.open(Path("runs/tiny"))[0]
run.take()
print("taken", flush=True)
time.sleep(600)
"""


def holder(what: str) -> subprocess.Popen[str]:
    """A process that has taken a run's folder."""
    command = [sys.executable, "-c", HOLD, what]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "taken\n"
    return process


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}


@pytest.mark.parametrize("what", ["create", "resume"])
def test_owner__is_one_process_until_it_dies(what: str, finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process = holder(what)
    commands = {
        "create": ["--config", str(write_settings(Path("again.yaml"), total_decisions=300)), "--name", "X"],
        "resume": ["--resume", str(finished), "--total-decisions", str(decisions_of(finished) + 300)],
    }
    before = tree(Path())
    try:
        assert main(commands[what]) == 2
        assert f" is in use: process {process.pid} is training there" in capsys.readouterr().err
        assert tree(Path()) == before
    finally:
        process.kill()
        process.communicate()
    assert main(commands[what]) == 0
    assert not list(Path("runs").rglob(".lock.pid"))
    assert decisions_of(Path("runs/X") if what == "create" else finished) > 0


# --- signals ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="a system without SIGHUP")
def test_signals__term_and_a_terminal_that_hangs_up_save_and_exit_130() -> None:
    names = {"one": signal.SIGTERM, "two": signal.SIGHUP}
    endless = {"total_decisions": 10**9, "checkpoint_every": 10**9, "eval_every": 10**9, "snapshot_every": 10**9}
    settings = str(write_settings(Path("tiny.yaml"), **endless))
    screen, terminal = os.openpty()
    command = [sys.executable, "-m", "training.selfplay", "--config", settings, "--name"]
    processes = {
        name: subprocess.Popen([*command, name], env=environment(), stdout=terminal, stderr=terminal) for name in names
    }
    os.close(terminal)
    for name in names:
        log = Path("runs") / name / "metrics.jsonl"
        while not (log.exists() and log.read_text(encoding="utf-8").count("\n") >= 3):
            if select.select([screen], [], [], 0.05)[0]:
                os.read(screen, 100_000)
            assert processes[name].poll() is None
    os.close(screen)  # whatever is printed from now on is an error
    for name, kind in names.items():
        processes[name].send_signal(kind)
    for name, process in processes.items():
        assert process.wait(timeout=60) == 130
        folder = Path("runs") / name
        assert decisions_of(folder) == metric_rows(folder)[-1]["decisions"] > 0
        assert isinstance(PolicyBot.load(folder / "checkpoints" / "last"), PolicyBot)


def test_signals__before_the_training_begins_are_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.selfplay.train", lambda *arguments: os.kill(os.getpid(), signal.SIGTERM))
    assert main(["--config", str(write_settings(Path("tiny.yaml")))]) == 130
    assert not Path("runs").exists()


def test_signals__what_nohup_ignores_stays_ignored_and_threads_have_none() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with _signals.handled_by(_signals.interrupt):
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) == _signals.interrupt
    finally:
        signal.signal(signal.SIGHUP, before)
    errors: list[Exception] = []

    def enter() -> None:
        try:
            with _signals.handled_by(_signals.interrupt):
                pass
        except ValueError as error:
            errors.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert not errors


# --- kills -----------------------------------------------------------------------------------------------------------


def check_kills(numbers: list[int]) -> None:
    """Kill runs in the place of these file operations, and look at what is left."""
    command = [sys.executable, "-m", "tests.helpers.killed_runs", *map(str, numbers)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == {str(number): [-signal.SIGKILL, 0] for number in numbers}
    before = decisions_of(RUN)
    strength = read_manifest(RUN / "checkpoints" / "best").evaluation["best_by"]
    for number in numbers:
        killed, resumed = Path(str(number)) / "killed", Path(str(number)) / RUN
        kept = decisions_of(killed)
        assert kept >= before
        assert Run(killed).read_metrics()[-1]["decisions"] - kept < EVERY + 256  # to the first rollout beyond it
        for name in ("last", "best"):
            assert isinstance(PolicyBot.load(killed / "checkpoints" / name), PolicyBot)
        now = read_manifest(killed / "checkpoints" / "best").evaluation["best_by"]
        assert strength <= now <= read_manifest(resumed / "checkpoints" / "best").evaluation["best_by"]
        rows = metric_rows(resumed)  # whole lines, each update once
        assert [row["train/n_updates"] for row in rows] == list(range(1, len(rows) + 1))
        assert rows[-1]["decisions"] == decisions_of(resumed) >= kept + 300
        assert all(PolicyBot.load(path) for path in (resumed / "pool").iterdir())
        assert len(list((resumed / "pool").iterdir())) <= 2
        assert not list(resumed.rglob("*.new"))


@pytest.mark.usefixtures("finished")
def test_kills__between_file_operations_leave_a_run_that_goes_on() -> None:
    """While the resumed run cuts its metrics; while a snapshot is written; one removed; a checkpoint replaced."""
    check_kills([3, 15, 27, 41])


@pytest.mark.slow
@pytest.mark.usefixtures("finished")
def test_kills__at_twenty_file_operations_leave_a_run_that_goes_on() -> None:
    check_kills(sorted(random.Random(0).sample(range(1, 100), 20)))


# --- the best --------------------------------------------------------------------------------------------------------


def set_strength(value: Any) -> None:
    """Change by what the best checkpoint says that it was chosen; ``None``: it says nothing, as in release 0.1."""
    path = RUN / "checkpoints" / "best" / MANIFEST
    content = json.loads(path.read_text(encoding="utf-8"))
    content["evaluation"].pop("best_by")
    if value is not None:
        content["evaluation"]["best_by"] = value
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.usefixtures("finished")
def test_best__is_not_replaced_by_a_weaker_one_whose_evaluation_the_metrics_have_lost() -> None:
    best = RUN / "checkpoints" / "best"
    known = read_manifest(best).evaluation["best_by"]
    assert known == max(row.get("eval/best_by", 0) for row in metric_rows(RUN))
    set_strength(9.5)
    before = tree(best)
    assert go_on("--eval-every", "200") == 0
    assert tree(best) == before
    assert "eval/best_by" in metric_rows(RUN)[-1]


@pytest.mark.usefixtures("finished")
@pytest.mark.parametrize(("said", "is_kept"), [(None, True), (math.nan, False), ("9", True), (0.01, False)])
def test_best__that_does_not_say_its_strength_is_held_against_the_metrics(said: Any, is_kept: bool) -> None:
    set_strength(said)  # a manifest with NaN is no JSON: what is written there is better than none
    rows = metric_rows(RUN)
    rows[0]["eval/best_by"] = 9.5
    (RUN / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    before = tree(RUN / "checkpoints" / "best")
    assert go_on() == 0
    assert (tree(RUN / "checkpoints" / "best") == before) == is_kept


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("finished")
def test_pool__damaged_snapshots_are_left_out_with_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    half, spoilt = sorted((RUN / "pool").iterdir())
    (half / MANIFEST).unlink()
    (resolve(spoilt) / read_manifest(spoilt).weights_file).write_bytes(b"torn")
    (RUN / "checkpoints" / "last" / f".{WEIGHTS}.123.new").write_bytes(b"half written")
    assert go_on("--snapshot-every", "1000000") == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert len(lines) == 2
    assert str(half) in lines[0]
    assert "has SHA-256" in lines[1]
    assert not half.exists()
    assert spoilt.exists()
    assert not list(RUN.rglob("*.new"))


@pytest.mark.usefixtures("finished")
def test_links__to_a_run_and_to_its_checkpoint_are_followed_and_stay() -> None:
    last = RUN / "checkpoints" / "last"
    last.rename("last")
    last.symlink_to(Path("last").absolute())
    RUN.rename("elsewhere")
    RUN.symlink_to(Path("elsewhere").absolute())
    assert go_on() == 0
    assert RUN.is_symlink()
    assert last.is_symlink()
    assert read_manifest("last").steps == decisions_of(Path("elsewhere")) == decisions_of(RUN)


def without(key: str) -> Callable[[dict[str, Any]], Any]:
    return lambda state: {name: value for name, value in state.items() if name != key}


def put(key: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda state: {**state, key: value}


def spoil(state: dict[str, Any], change: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, Any]:
    """Change the averages of one weight."""
    averages = state["optimizer"]["state"]
    first = {**averages[0], "exp_avg": change(averages[0]["exp_avg"])}
    return {**state, "optimizer": {**state["optimizer"], "state": {**averages, 0: first}}}


KEYS = ["policy", "optimizer", "decisions", "updates", "next_deal", "next_lesson", "strengths", "torch_rng"]
BAD_STATES: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda state: [state], "it holds list"),
    (lambda state: None, "it holds NoneType"),
    (lambda state: {}, "lacks policy"),
    *((without(key), f"lacks {key}") for key in KEYS if key != "decisions"),
    *((put(key, value), key) for key in KEYS for value in (None, "x", -1, [1.5])),
    (put("decisions", 2**70), "decisions"),
    (put("decisions", True), "decisions"),
    (put("strengths", {"greedy": math.nan}), "strengths"),
    (put("policy", {}), "policy: "),
    (lambda state: put("policy", {k: v[..., :1] for k, v in state["policy"].items()})(state), "policy: "),
    (put("optimizer", {}), "optimizer: "),
    (put("optimizer", {"state": {}, "param_groups": []}), "optimizer: "),
    (lambda state: spoil(state, lambda value: value[None]), "optimizer: exp_avg of weights 0"),
    (lambda state: spoil(state, lambda value: value * math.nan), "optimizer: exp_avg of weights 0"),
    (put("torch_rng", torch.zeros(3, dtype=torch.uint8)), "torch_rng: "),
    (put("words", "by dice"), "words"),
    (without("words"), "is of release 0.1"),
]


@pytest.mark.usefixtures("finished")
def test_resume_file__of_wrong_content_is_one_line_that_names_the_field_and_changes_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = RUN / "resume.pt"
    good = torch.load(path, weights_only=True)
    assert good["words"] == WORD_SCHEME
    for change, message in BAD_STATES:
        torch.save(change(good), path)
        before = tree(Path())
        assert main(["--resume", str(RUN), "--total-decisions", "9000"]) == 2, message
        error = capsys.readouterr().err
        assert message in error
        assert "runs/tiny/resume.pt" in error
        assert "--start-from runs/tiny/checkpoints/last" in error
        assert error.count("\n") == 1
        assert tree(Path()) == before
    torch.save(good, path)
    assert go_on() == 0


# --- the console, and git --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("finished")
def test_training__works_without_git_on_a_console_of_ascii(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "training.selfplay", "--resume", str(RUN), "--total-decisions", "1500"]
    plain = {**environment(), "PYTHONIOENCODING": "ascii", "PATH": str(tmp_path)}
    done = subprocess.run(command, env=plain, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert read_manifest(RUN / "checkpoints" / "last").commit == ""


def test_publish__of_nothing_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert publish.main(["nowhere", "target"]) == 2
    assert capsys.readouterr().err.startswith("error: no checkpoint at nowhere")
    assert not Path("target").exists()
