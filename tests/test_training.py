"""A training run as its user meets it: its folder, `--resume`, Ctrl-C, a crash, weights that are no longer numbers."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from training_helpers import MINI, TINY_RUN, metric_rows, write_settings

from devyatka_env import Rules
from devyatka_env.bots import PolicyBot, make_bot, make_opponents
from devyatka_env.bots.checkpoint import read_manifest, read_weights
from devyatka_env.evaluation import evaluate
from training import monitor
from training.policy import policy_of
from training.run import JsonLines, Run
from training.selfplay import main

ROOT = Path(__file__).resolve().parents[1]
RUN = Path("runs/tiny")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs go to ./runs."""
    monkeypatch.chdir(tmp_path)
    handler = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which one run has been trained to its end, for all tests that look at one or go on with it."""
    folder = tmp_path_factory.mktemp("trained")
    with contextlib.chdir(folder):
        assert train() == 0
    return folder


@pytest.fixture
def finished(trained: Path) -> Path:
    """That run, in ./runs, to do with as one likes."""
    shutil.copytree(trained, ".", dirs_exist_ok=True)
    return RUN


def train(*options: str, **settings: Any) -> int:
    """Train the tiny run anew; its exit code."""
    return main(["--config", str(write_settings(Path("tiny.yaml"), **settings)), *options])


def decisions_of(folder: Path) -> list[int]:
    return [int(row["decisions"]) for row in metric_rows(folder)]


def weights_of(checkpoint: Path) -> dict[str, torch.Tensor]:
    return read_weights(checkpoint, read_manifest(checkpoint))


def state_of(folder: Path) -> dict[str, Any]:
    state = Run(folder).load_state()
    assert state is not None
    return state


def plays(checkpoint: Path) -> bool:
    """Whether a checkpoint loads as a bot and plays deals to their end."""
    bot = make_bot(checkpoint)
    return evaluate(bot, make_opponents("random", 1), Rules.from_text(MINI), 50).deals == 50


# --- what a run leaves behind ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("finished")
def test_run__leaves_everything_it_promises() -> None:
    names = {path.name for path in RUN.iterdir()}
    assert names == {"config.yaml", "metrics.jsonl", "curves.png", "tensorboard", "checkpoints", "pool", "resume.pt"}
    assert (RUN / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in (RUN / "checkpoints").iterdir()) == ["best", "last"]
    assert plays(RUN / "checkpoints" / "last")
    assert plays(RUN / "checkpoints" / "best")
    assert 1 <= len(list((RUN / "pool").iterdir())) <= TINY_RUN["pool_size"]
    manifest = read_manifest(RUN / "checkpoints" / "last")
    assert (manifest.steps, manifest.seed, manifest.rules) == (2048, 0, (Rules.from_text(MINI),))
    assert manifest.training == Run.open(RUN)[1].to_dict()
    assert set(manifest.evaluation["against"]) == {"random", "greedy"}
    assert manifest.evaluation["against"]["greedy"]["deals"] == 20


@pytest.mark.usefixtures("finished")
def test_metrics__are_whole_ordered_and_complete() -> None:
    rows, steps = metric_rows(RUN), decisions_of(RUN)
    assert steps == [256 * k for k in range(1, 9)]  # a line for each update
    assert all(math.isfinite(value) for row in rows for value in row.values())
    assert [row["decisions"] for row in rows if "eval/win_rate_greedy" in row] == [1024, 2048]
    for row in rows:
        for name in ("random", "greedy"):
            if f"eval/win_rate_{name}" in row:
                low, mean, high = (row[f"eval/win_rate_{name}{end}"] for end in ("_low", "", "_high"))
                assert low <= mean <= high
    assert [row["train/n_updates"] for row in rows if "train/entropy_loss" in row] == list(range(1, 9))  # none twice
    assert len([row for row in rows if "time/moves_per_second" in row and "rollout/ep_rew_mean" in row]) == 7


@pytest.mark.usefixtures("finished")
def test_tensorboard__has_the_promised_scalars() -> None:
    events = EventAccumulator(str(RUN / "tensorboard"))
    events.Reload()
    assert set(events.Tags()["scalars"]) >= {
        "rollout/ep_rew_mean", "train/entropy_loss", "train/explained_variance", "time/moves_per_second",
        "time/decisions_per_second", "eval/win_rate_random", "eval/win_rate_greedy",
    }  # fmt: skip
    assert [event.step for event in events.Scalars("eval/win_rate_greedy")] == [1024, 2048]


def test_best__is_the_strongest_checkpoint_of_all_evaluations() -> None:
    assert train(eval_every=256, eval_against=["greedy", "random"]) == 0
    rows = [row for row in metric_rows(RUN) if "eval/win_rate_random" in row]
    best = max(rows, key=lambda row: (row["eval/win_rate_random"], -row["decisions"]))
    manifest = read_manifest(RUN / "checkpoints" / "best")
    assert manifest.steps == best["decisions"]
    assert manifest.evaluation["against"]["random"]["win_rate"] == best["eval/win_rate_random"]
    bot = PolicyBot.load(RUN / "checkpoints" / "best")
    again = evaluate(bot, make_opponents("random", 1), Rules.from_text(MINI), 20, seed=2**63)
    assert again.win_rate.mean == best["eval/win_rate_random"]


def test_run__of_the_same_seed_ends_in_the_same_weights_and_of_another_does_not() -> None:
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        assert train("--name", name, seed=seed, total_decisions=1024) == 0
    one, two, three = (weights_of(Path("runs") / name / "checkpoints" / "last") for name in ("one", "two", "three"))
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert not any(torch.equal(one[key], three[key]) for key in one if key.endswith("weight"))


def test_main__gives_the_interrupt_key_back() -> None:
    """A caller's own Ctrl-C (a notebook's, pytest's) must work after a run."""
    before = signal.getsignal(signal.SIGINT)
    assert train(total_decisions=256) == 0
    assert signal.getsignal(signal.SIGINT) is before


# --- resuming --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("finished")
def test_resume__continues_counters_optimizer_learning_rate_and_metrics() -> None:
    before = state_of(RUN)
    assert (before["decisions"], before["updates"]) == (2048, 8)
    assert main(["--resume", str(RUN), "--total-decisions", "4096"]) == 0
    assert Run.open(RUN)[1].total_decisions == 4096
    after = state_of(RUN)
    assert (after["decisions"], after["updates"]) == (4096, 16)
    assert after["next_deal"] > before["next_deal"]
    adam = [state["optimizer"]["state"][0]["step"] for state in (before, after)]
    assert adam == [8 * 4, 16 * 4]  # 256 decisions are four minibatches an update, each a step of Adam
    assert decisions_of(RUN) == [256 * k for k in range(1, 17)]
    rates = [row["train/learning_rate"] for row in metric_rows(RUN)[8:]]
    left = [1 - (2048 + 256 * k) / 4096 for k in range(1, 9)]  # of the new total, not from its start again
    assert rates == pytest.approx([1e-3 * (0.1 + 0.9 * one) for one in left])
    assert read_manifest(RUN / "checkpoints" / "last").steps == 4096
    assert len(list((RUN / "pool").iterdir())) <= TINY_RUN["pool_size"]


@pytest.mark.usefixtures("finished")
def test_resume__of_a_finished_run_says_so_and_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    kept = {path: path.read_bytes() for path in RUN.rglob("*") if path.is_file()}
    assert main(["--resume", str(RUN)]) == 0
    said = "runs/tiny has been trained on 2048 decisions already: raise --total-decisions to go on\n"
    assert capsys.readouterr().out == said
    assert {path: path.read_bytes() for path in RUN.rglob("*") if path.is_file()} == kept


@pytest.mark.usefixtures("finished")
def test_resume__drops_what_came_after_the_last_checkpoint_and_a_line_cut_short() -> None:
    with (RUN / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"decisions": 2304, "time/fps": 7.0}\n{"decisions": 2560, "time/')
    late = RUN / "pool" / "000000002560"
    shutil.copytree(RUN / "pool" / "000000001024", late)
    (late / "of the run that crashed").touch()
    assert main(["--resume", str(RUN), "--total-decisions", "2560"]) == 0
    assert decisions_of(RUN) == [256 * k for k in range(1, 11)]  # every line is JSON again
    assert not any(row.get("time/fps") == 7.0 for row in metric_rows(RUN))
    assert not list(RUN.rglob("of the run that crashed"))


def test_resume__before_the_first_checkpoint_starts_over() -> None:
    assert train(total_decisions=512) == 0
    (RUN / "resume.pt").unlink()
    assert main(["--resume", str(RUN)]) == 0
    assert decisions_of(RUN) == [256, 512]
    assert state_of(RUN)["updates"] == 2


@pytest.mark.usefixtures("finished")
def test_resume_file__is_read_without_running_code() -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, ("ran",)

    torch.save({"decisions": Evil()}, RUN / "resume.pt")
    with pytest.raises(Exception, match="Weights only load failed"):
        Run(RUN).load_state()
    assert not Path("ran").exists()


# --- stops -----------------------------------------------------------------------------------------------------------


def start(*options: str, **settings: Any) -> subprocess.Popen[str]:
    """Train in a process of its own."""
    path = write_settings(Path("tiny.yaml"), **settings)
    command = [sys.executable, "-m", "training.selfplay", "--config", str(path), *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 120) -> None:
    """Wait until something holds; the process must live on meanwhile."""
    limit = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None or time.monotonic() > limit:
            process.kill()
            raise AssertionError(f"the run ended or hung: {process.communicate()[0][-2000:]}")
        time.sleep(0.02)


def whole_lines(folder: Path) -> int:
    path = folder / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_interrupt__saves_exits_130_and_resume_finishes(capsys: pytest.CaptureFixture[str]) -> None:
    process = start(total_decisions=10**9, checkpoint_every=10**9, eval_every=10**9, snapshot_every=10**9)
    wait_for(lambda: whole_lines(RUN) >= 3, process)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "python -m training.selfplay --resume runs/tiny" in said
    assert "Traceback" not in said
    assert plays(RUN / "checkpoints" / "last")
    done = state_of(RUN)["decisions"]
    assert read_manifest(RUN / "checkpoints" / "last").steps == done > 0
    assert (RUN / "curves.png").exists()
    assert "eval/win_rate_greedy" in metric_rows(RUN)[-1]
    goal = done + 600
    assert main(["--resume", str(RUN), "--total-decisions", str(goal)]) == 0
    steps = decisions_of(RUN)
    assert steps == sorted(steps)
    assert goal <= state_of(RUN)["decisions"] < goal + 256  # whole rollouts


def test_kill__loses_at_most_a_checkpoint_interval_and_resume_mends_the_metrics() -> None:
    every = 1024
    process = start(total_decisions=10**9, checkpoint_every=every, eval_every=10**9, snapshot_every=every)
    wait_for(lambda: (RUN / "resume.pt").exists() and whole_lines(RUN) >= 7, process)
    process.kill()
    process.communicate()
    whole = (RUN / "metrics.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    logged = [json.loads(line)["decisions"] for line in whole]
    with (RUN / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"decisions": 99')  # as a crash in the middle of a write leaves it
    kept = state_of(RUN)["decisions"]
    assert logged[-1] - kept < every + 256  # the checkpoint due now may not be written yet
    goal = kept + 512
    assert main(["--resume", str(RUN), "--total-decisions", str(goal)]) == 0
    assert decisions_of(RUN) == [256 * k for k in range(1, goal // 256 + 1)]  # no line lost, none twice
    assert all(int(path.name) <= goal for path in (RUN / "pool").iterdir() if path.name.isdigit())
    assert plays(RUN / "checkpoints" / "last")


def test_crash__while_a_checkpoint_is_written_loses_no_line_of_the_metrics_and_no_update(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rollout counted in the resume state but not yet logged or learned from would be lost for good."""

    def crash(*arguments: Any) -> None:
        raise RuntimeError("power cut")

    with monkeypatch.context() as broken:
        broken.setattr(monitor, "draw_curves", crash)  # the last thing that a checkpoint does
        with pytest.raises(RuntimeError, match="power cut"):
            train()
    assert state_of(RUN)["decisions"] == 1024
    assert main(["--resume", str(RUN)]) == 0
    assert sorted(set(decisions_of(RUN))) == [256 * k for k in range(1, 9)]
    assert [row["decisions"] for row in metric_rows(RUN) if "eval/win_rate_greedy" in row] == [1024, 2048]
    assert state_of(RUN)["updates"] == 8  # one a rollout, as in a run that nothing disturbed


@pytest.mark.parametrize("update", [6, 8], ids=["in the middle", "in the last update"])
def test_weights_that_are_no_longer_numbers__stop_the_run_and_name_the_last_good_checkpoint(
    update: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    learn = PPO.train

    def broken(model: PPO) -> None:
        learn(model)
        if model._n_updates == update:
            with torch.no_grad():
                next(iter(policy_of(model).network.parameters())).fill_(math.nan)

    monkeypatch.setattr(PPO, "train", broken)
    assert train() == 2
    error = capsys.readouterr().err
    assert "error: the weights are no longer numbers" in error
    assert "The last good checkpoint is runs/tiny/checkpoints/last" in error
    assert read_manifest(RUN / "checkpoints" / "last").steps == 1024
    assert all(bool(torch.isfinite(weight).all()) for weight in weights_of(RUN / "checkpoints" / "last").values())


def test_weights_that_are_no_longer_numbers__before_any_checkpoint_name_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(model: PPO) -> None:
        with torch.no_grad():
            next(iter(policy_of(model).network.parameters())).fill_(math.nan)

    monkeypatch.setattr(PPO, "train", broken)
    assert train() == 2
    error = capsys.readouterr().err
    assert "error: the weights are no longer numbers" in error
    assert not Path("runs/tiny/checkpoints/last").exists()
    assert "runs/tiny/checkpoints/last" not in error


# --- the metrics file ------------------------------------------------------------------------------------------------


def test_metrics_file__writes_numbers_only_and_leaves_out_what_json_has_not(tmp_path: Path) -> None:
    run = Run(tmp_path)
    log = JsonLines(run.metrics)
    values = {"b": np.float32(0.5), "a": 1, "nan": math.nan, "inf": math.inf, "text": "x", "none": None}
    log.write(values, {}, step=5)
    log.close()
    JsonLines(run.metrics).close()  # opening it again keeps what is there
    assert run.metrics.read_text() == '{"decisions": 5, "a": 1.0, "b": 0.5}\n'
    assert Run(tmp_path / "empty").read_metrics() == []
