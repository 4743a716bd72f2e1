"""A training run as its user meets it: its folder, `--resume`, Ctrl-C, a crash, weights that are no longer numbers."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.logger import TensorBoardOutputFormat
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from devyatka_env import Rules
from devyatka_env.bots import PolicyBot, make_bot, make_opponents
from devyatka_env.bots.checkpoint import read_manifest, read_weights
from devyatka_env.evaluation import evaluate
from devyatka_env.learning import Run, TablesEnv, TrainConfig, monitor
from devyatka_env.learning.curves import draw_curves
from devyatka_env.learning.monitor import Monitor, strength
from devyatka_env.learning.policy import policy_of
from devyatka_env.learning.run_folder import JsonLines, label
from devyatka_env.learning.selfplay import build_model, start_from
from devyatka_env.learning.teacher import LESSONS_A_DEAL
from tests.helpers.training_helpers import MINI, TINY_RUN, metric_rows, write_settings
from training.selfplay import main

ROOT = Path(__file__).resolve().parents[2]
RUN = Path("runs/tiny")
BOTH = [MINI, MINI.replace("num_players=2", "num_players=3")]
LABELS = [label(Rules.of(one)) for one in BOTH]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs go to ./runs, and draw no curves: those take longer than all the rest."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(monitor, "draw_curves", lambda *arguments: None)
    handler = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which one run has been trained to its end, for all tests that look at one or go on with it."""
    folder = tmp_path_factory.mktemp("trained")
    with contextlib.chdir(folder):
        assert train(rules=BOTH) == 0
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


def is_finite(checkpoint: Path) -> bool:
    return all(bool(torch.isfinite(weight).all()) for weight in weights_of(checkpoint).values())


# --- what a run leaves behind ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("finished")
def test_run__leaves_everything_it_promises() -> None:
    names = {path.name for path in RUN.iterdir()}
    assert names - {".lock"} == {
        "config.yaml",
        "metrics.jsonl",
        "curves.png",
        "tensorboard",
        "checkpoints",
        "pool",
        "resume.pt",
    }
    assert (RUN / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in (RUN / "checkpoints").iterdir()) == ["best", "last"]
    assert plays(RUN / "checkpoints" / "last")
    assert plays(RUN / "checkpoints" / "best")
    assert len(list((RUN / "pool").iterdir())) == TINY_RUN["pool_size"]
    manifest = read_manifest(RUN / "checkpoints" / "last")
    assert (manifest.steps, manifest.seed) == (decisions_of(RUN)[-1], 0)
    assert manifest.rules == tuple(Rules.of(one) for one in BOTH)
    assert manifest.network == {"kind": "suits", "width": 8, "layers": 1, "num_suits": 3}
    assert manifest.training == Run.open(RUN)[1].to_dict()
    assert set(manifest.evaluation["against"]) == {"random", "greedy"}
    for one in BOTH:
        assert manifest.evaluation["against"]["greedy"][str(Rules.of(one))]["deals"] == 20


@pytest.mark.usefixtures("finished")
def test_metrics__are_whole_ordered_and_complete() -> None:
    rows, steps = metric_rows(RUN), decisions_of(RUN)
    assert steps == sorted(set(steps))
    assert 2048 <= steps[-1] < 2048 + 256  # whole rollouts of at most 32 games and 8 rounds
    assert all(math.isfinite(value) for row in rows for value in row.values())
    assert [row["train/n_updates"] for row in rows] == list(range(1, len(rows) + 1))  # a line for each update
    evaluated = [row for row in rows if "eval/best_by" in row]
    assert [row["decisions"] >= 1024 * k for k, row in enumerate(evaluated, 1)] == [True, True]
    assert evaluated[-1] is rows[-1]
    for row in evaluated:
        for name, one in itertools.product(("random", "greedy"), LABELS):
            low, mean, high = (row[f"eval/{name}/{one}{end}"] for end in ("_low", "", "_high"))
            assert low <= mean <= high
        relative = [row[f"eval/greedy/{one}"] * seats for one, seats in zip(LABELS, (2, 3), strict=True)]
        assert row["eval/best_by"] == pytest.approx(np.mean(relative))
        for one, seats in zip(LABELS, (2, 3), strict=True):  # a win is all that is paid
            for end in ("_low", "", "_high"):
                expected = row[f"eval/random/{one}{end}"] * seats
                assert row[f"eval/random/{one}_strength{end}"] == pytest.approx(expected)
        assert 0 <= row[f"eval/mistakes/{LABELS[0]}"] <= row[f"eval/mistakes/{LABELS[0]}_high"] < 1
        assert row[f"eval/regret/{LABELS[0]}"] == pytest.approx(2 * row[f"eval/mistakes/{LABELS[0]}"], rel=0.5)
        assert f"eval/regret/{LABELS[1]}" not in row  # three seats have no exact values
    assert len([row for row in rows if "time/moves_per_second" in row]) == len(rows) - 1
    assert {"pool/random", "pool/greedy"} <= rows[-1].keys()


@pytest.mark.usefixtures("finished")
def test_metrics__hold_a_row_of_the_matrix_of_snapshots_for_every_evaluation() -> None:
    """The learner of each evaluation against each snapshot of that time, relative to chance."""
    rows = [row for row in metric_rows(RUN) if "eval/best_by" in row]
    matrix = [{int(key.split("/")[1]): row[key] for key in row if key.startswith("matrix/")} for row in rows]
    assert [len(entries) for entries in matrix] == [2, 2]
    assert min(matrix[0]) == 0  # the weights that the run began with
    assert all(step <= row["decisions"] for row, entries in zip(rows, matrix, strict=True) for step in entries)
    assert all(0.5 < value < 1.5 for entries in matrix for value in entries.values())  # so little training


@pytest.mark.usefixtures("finished")
def test_tensorboard__has_the_promised_scalars() -> None:
    events = EventAccumulator(str(RUN / "tensorboard"))
    events.Reload()
    assert set(events.Tags()["scalars"]) >= {
        "train/entropy_loss", "train/explained_variance", "train/approx_kl", "time/moves_per_second",
        "time/decisions_per_second", "pool/greedy", f"eval/regret/{LABELS[0]}", f"eval/random/{LABELS[0]}",
        f"eval/greedy/{LABELS[1]}",
    }  # fmt: skip
    steps = [int(row["decisions"]) for row in metric_rows(RUN) if "eval/best_by" in row]
    assert [event.step for event in events.Scalars(f"eval/greedy/{LABELS[0]}")] == steps


@pytest.mark.parametrize("rules", ["first_out num_players=3", "one_loser num_players=3", "round num_players=2"])
def test_strength__counts_what_the_rules_pay_for(rules: str) -> None:
    result = evaluate("greedy", "random", rules, 50)
    found = strength(result)
    paid = 3 * result.win_rate.mean if "first_out" in rules else 1 + result.mean_payoff.mean
    assert found.mean == pytest.approx(paid)
    assert found.mean > strength(evaluate("random", "greedy", rules, 50)).mean
    assert found.low < found.mean < found.high
    assert strength(evaluate("greedy", "greedy", "one_loser num_players=3", 50)).mean == pytest.approx(1)


def test_best__is_there_where_payoffs_are_large_losses() -> None:
    rules = "first_out num_players=2 num_suits=2 payoff=points"
    assert train(rules=[rules], lessons=0) == 0
    assert metric_rows(RUN)[-1]["eval/best_by"] < 1
    assert evaluate(RUN / "checkpoints" / "best", "random", rules, 5).deals == 5


@pytest.mark.usefixtures("finished")
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("resume.pt", b"", "resume.pt is damaged"),
        ("resume.pt", b"PK\x03\x04 torn", "resume.pt is damaged"),
        ("config.yaml", b"", "config.yaml is empty"),
        ("config.yaml", b"[", "cannot read the config"),
    ],
)
def test_resume__of_a_damaged_run_names_the_file_and_changes_nothing(
    name: str, content: bytes, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (RUN / name).write_bytes(content)
    before = {path: path.read_bytes() for path in RUN.rglob("*") if path.is_file()}
    assert main(["--resume", str(RUN), "--total-decisions", "9000"]) == 2
    assert message in capsys.readouterr().err
    assert {path: path.read_bytes() for path in RUN.rglob("*") if path.is_file()} == before


@pytest.mark.usefixtures("finished")
def test_metrics__damaged_lines_are_left_out() -> None:
    with (RUN / "metrics.jsonl").open("ab") as file:
        file.write(b'[]\n{"x": 1}\n\xff\xfe\n')
    assert all("decisions" in row for row in Run(RUN).read_metrics())


def test_learning_rate__does_not_fall_below_a_tenth_when_a_rollout_goes_beyond_the_end() -> None:
    assert train(total_decisions=100) == 0
    assert metric_rows(RUN)[-1]["decisions"] > 100
    assert metric_rows(RUN)[-1]["train/learning_rate"] == pytest.approx(1e-4)


def test_best__is_the_strongest_checkpoint_of_all_evaluations() -> None:
    assert train(eval_every=256, eval_against=["greedy", "random"], learning_rate=0.02) == 0
    key = f"eval/random/{LABELS[0]}"
    rows = [row for row in metric_rows(RUN) if key in row]
    assert len(rows) >= 8
    best = max(rows, key=lambda row: (row[key], -row["decisions"]))
    manifest = read_manifest(RUN / "checkpoints" / "best")
    assert manifest.steps == best["decisions"] != rows[-1]["decisions"]
    assert manifest.evaluation["against"]["random"][str(Rules.of(MINI))]["win_rate"] == best[key]
    bot = PolicyBot.load(RUN / "checkpoints" / "best")
    again = evaluate(bot, make_opponents("random", 1), Rules.of(MINI), 20, seed=2**63)
    assert again.win_rate.mean == best[key]


def test_run__of_the_same_seed_ends_in_the_same_weights_and_of_another_does_not() -> None:
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        assert train("--name", name, seed=seed, total_decisions=1024, rules=BOTH, bfloat16=True) == 0
    one, two, three = (weights_of(Path("runs") / name / "checkpoints" / "last") for name in ("one", "two", "three"))
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert not any(torch.equal(one[key], three[key]) for key in one if key.endswith("weight"))
    rows = [metric_rows(Path("runs") / name) for name in ("one", "two")]
    for row, other in zip(*rows, strict=True):
        assert [(key, row[key]) for key in row if not key.startswith("time/")] == [
            (key, other[key]) for key in other if not key.startswith("time/")
        ]


def test_run__without_opponents_or_without_snapshots() -> None:
    assert train("--name", "alone", opponent_share=0.0, bots=[], pool_size=0, total_decisions=512) == 0
    assert decisions_of(Path("runs/alone")) == [256, 512]  # every seat of every game is the learner's
    assert not any(key.startswith("matrix/") for row in metric_rows(Path("runs/alone")) for key in row)
    assert not Path("runs/alone/pool").exists()
    assert train("--name", "bots", pool_size=0, bot_share=0.0, opponent_share=0.0, total_decisions=256) == 0
    assert train("--name", "field", pool_size=0, opponent_share=1.0, learner_seats=1, total_decisions=512) == 0
    assert {"pool/random", "pool/greedy"} <= metric_rows(Path("runs/field"))[-1].keys()


def test_main__gives_the_interrupt_key_back() -> None:
    """A caller's own Ctrl-C (a notebook's, pytest's) must work after a run."""
    before = signal.getsignal(signal.SIGINT)
    assert train(total_decisions=256) == 0
    assert signal.getsignal(signal.SIGINT) is before


# --- resuming --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("finished")
def test_resume__continues_counters_optimizer_learning_rate_pool_and_metrics() -> None:
    before, rows = state_of(RUN), metric_rows(RUN)
    assert (before["decisions"], before["updates"]) == (rows[-1]["decisions"], len(rows))
    snapshots = {path.name for path in (RUN / "pool").iterdir()}
    assert main(["--resume", str(RUN), "--total-decisions", "4096"]) == 0
    assert Run.open(RUN)[1].total_decisions == 4096
    after, all_rows = state_of(RUN), metric_rows(RUN)
    assert all_rows[: len(rows)] == rows
    assert [row["train/n_updates"] for row in all_rows] == list(range(1, after["updates"] + 1))
    assert after["decisions"] == all_rows[-1]["decisions"] >= 4096
    assert after["next_deal"] > before["next_deal"]
    adam = [float(state["optimizer"]["state"][0]["step"]) for state in (before, after)]
    assert adam[1] > 1.5 * adam[0] > 1.5 * len(rows)  # some minibatches an update
    for row in all_rows[len(rows) :]:  # falls towards the end of the new total, not from its start again
        assert row["train/learning_rate"] == pytest.approx(1e-3 * (0.1 + 0.9 * max(0, 1 - row["decisions"] / 4096)))
    assert read_manifest(RUN / "checkpoints" / "last").steps == after["decisions"]
    matrix = next(row for row in all_rows[len(rows) :] if "eval/best_by" in row)
    kept = {int(key.split("/")[1]) for key in matrix if key.startswith("matrix/")}
    assert kept & {int(name) for name in snapshots}  # the learner still meets what it was before
    assert len(list((RUN / "pool").iterdir())) == TINY_RUN["pool_size"]


@pytest.mark.usefixtures("finished")
def test_resume__knows_how_strong_its_opponents_are() -> None:
    state = state_of(RUN)
    assert {"random", "greedy"} < state["strengths"].keys()
    state["strengths"] = {"greedy": 3.0, "snapshot 7": 0.25}
    torch.save(state, RUN / "resume.pt")
    assert main(["--resume", str(RUN), "--total-decisions", "2560"]) == 0
    strengths = state_of(RUN)["strengths"]
    assert strengths["greedy"] == pytest.approx(3, abs=0.3)  # a few hundred deals later, of which each weighs 1 / 2,000
    assert strengths["snapshot 7"] == 0.25


def test_resume__goes_on_with_lessons_that_nobody_has_had() -> None:
    deals = 128 // LESSONS_A_DEAL + 1  # begun by each update's lessons
    assert train(lessons=128, opponent_share=0.0, total_decisions=512) == 0
    assert state_of(RUN)["next_lesson"] == 2 * deals
    assert main(["--resume", str(RUN), "--total-decisions", "1280"]) == 0
    assert state_of(RUN)["next_lesson"] == 5 * deals
    assert all({"teacher/loss", "teacher/right"} <= row.keys() for row in metric_rows(RUN))


@pytest.mark.usefixtures("finished")
def test_resume__of_a_finished_run_says_so_and_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    kept = {path: path.read_bytes() for path in RUN.rglob("*") if path.is_file()}
    assert main(["--resume", str(RUN)]) == 0
    done = state_of(RUN)["decisions"]
    said = f"runs/tiny has been trained on {done} decisions already: raise --total-decisions to go on\n"
    assert capsys.readouterr().out == said
    assert {path: path.read_bytes() for path in RUN.rglob("*") if path.is_file()} == kept


@pytest.mark.usefixtures("finished")
def test_resume__drops_what_came_after_the_last_checkpoint_and_a_line_cut_short() -> None:
    with (RUN / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"decisions": 2304, "time/fps": 7.0}\n{"decisions": 2560, "time/')
    late = RUN / "pool" / "000000002560"
    shutil.copytree(next((RUN / "pool").iterdir()), late)
    (late / "of the run that crashed").touch()
    assert main(["--resume", str(RUN), "--total-decisions", "2560"]) == 0
    rows = metric_rows(RUN)  # every line is JSON again
    assert [row["train/n_updates"] for row in rows] == list(range(1, len(rows) + 1))
    assert not any(row.get("time/fps") == 7.0 for row in rows)
    assert not list(RUN.rglob("of the run that crashed"))


def test_resume__before_the_first_checkpoint_starts_over() -> None:
    assert train(total_decisions=512, opponent_share=0.0) == 0
    (RUN / "resume.pt").unlink()
    assert main(["--resume", str(RUN)]) == 0
    assert decisions_of(RUN) == [256, 512]
    assert state_of(RUN)["updates"] == 2
    assert read_manifest(RUN / "checkpoints" / "last").steps == 512


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


def start(**settings: Any) -> subprocess.Popen[str]:
    """Train anew in a process of its own."""
    return launch("--config", str(write_settings(Path("tiny.yaml"), **settings)))


def launch(*options: str) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "training.selfplay", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 600) -> None:
    """Wait until something holds; the process must live on meanwhile."""
    limit = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None or time.monotonic() > limit:
            process.kill()
            raise AssertionError(f"the run ended or hung: {process.communicate()[0][-2000:]}")
        time.sleep(0.02)


def whole_decisions(folder: Path) -> list[int]:
    """Of the lines of the metrics file so far; the last one may not be written to its end yet."""
    path = folder / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [int(json.loads(line)["decisions"]) for line in lines]


def test_interrupt__saves_exits_130_and_resume_finishes(capsys: pytest.CaptureFixture[str]) -> None:
    process = start(total_decisions=10**9, checkpoint_every=10**9, eval_every=10**9, snapshot_every=10**9)
    wait_for(lambda: len(whole_decisions(RUN)) >= 3, process)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 130, said
    assert "python -m training.selfplay --resume runs/tiny" in said
    assert "Traceback" not in said
    assert plays(RUN / "checkpoints" / "last")
    done = state_of(RUN)["decisions"]
    assert read_manifest(RUN / "checkpoints" / "last").steps == done == decisions_of(RUN)[-1] > 0  # nothing is lost
    assert (RUN / "curves.png").exists()
    assert f"eval/greedy/{LABELS[0]}" not in metric_rows(RUN)[-1]  # it would keep one waiting
    goal = done + 600
    assert main(["--resume", str(RUN), "--total-decisions", str(goal)]) == 0
    steps = decisions_of(RUN)
    assert steps == sorted(set(steps))
    assert goal <= steps[-1] == state_of(RUN)["decisions"] < goal + 256  # whole rollouts


def test_kill__loses_at_most_a_checkpoint_interval_and_resume_mends_the_metrics() -> None:
    every = 1024
    process = start(total_decisions=10**9, checkpoint_every=every, eval_every=10**9, snapshot_every=every)
    wait_for(lambda: (RUN / "resume.pt").exists() and len(whole_decisions(RUN)) >= 9, process)
    process.kill()
    process.communicate()
    logged = whole_decisions(RUN)
    with (RUN / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"decisions": 99')  # as a crash in the middle of a write leaves it
    state = state_of(RUN)
    kept = state["decisions"]
    assert logged[-1] - kept < every + 256  # the checkpoint due now may not be written yet
    snapshots = {int(path.name) for path in (RUN / "pool").iterdir() if path.name.isdigit()}
    goal = kept + 512
    assert main(["--resume", str(RUN), "--total-decisions", str(goal)]) == 0
    rows = metric_rows(RUN)
    assert [row["train/n_updates"] for row in rows] == list(range(1, len(rows) + 1))  # no line lost, none twice
    assert decisions_of(RUN) == sorted(set(decisions_of(RUN)))
    assert goal <= rows[-1]["decisions"] < goal + 256
    steps = {int(path.name) for path in (RUN / "pool").iterdir()}
    assert max(steps) <= rows[-1]["decisions"]
    assert {step for step in snapshots if step <= kept} & steps
    assert state["strengths"].keys() <= state_of(RUN)["strengths"].keys()
    assert plays(RUN / "checkpoints" / "last")


@pytest.mark.slow
def test_stops__again_and_again_at_any_moment_leave_a_run_that_goes_on_to_its_end() -> None:
    """Real processes, killed and interrupted when chance will have it: in an update, an evaluation, a checkpoint."""

    def goes_on(kept: int, old: int) -> bool:
        """Whether the process has cut the metrics file that it found, and logged something of its own."""
        path = RUN / "metrics.jsonl"
        return path.exists() and path.stat().st_ino != old and max(whole_decisions(RUN), default=0) > kept

    every, kept, old, rng = 512, 0, 0, random.Random(0)
    settings = {"checkpoint_every": every, "snapshot_every": every, "eval_every": every}
    process = start(total_decisions=10**9, **settings)
    for sent in (signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
        wait_for(partial(goes_on, kept, old), process)
        time.sleep(rng.uniform(0, 2))
        process.send_signal(sent)
        said, _ = process.communicate(timeout=600)
        assert process.returncode == (130 if sent == signal.SIGINT else -signal.SIGKILL), said
        before, kept = kept, int((Run(RUN).load_state() or {"decisions": 0})["decisions"])
        lost = whole_decisions(RUN)[-1] - kept
        assert lost == 0 if sent == signal.SIGINT else 0 <= lost < every + 256  # to the first rollout beyond it
        assert kept >= before
        old = (RUN / "metrics.jsonl").stat().st_ino
        process = launch("--resume", str(RUN))
    process.kill()
    process.communicate()
    assert main(["--resume", str(RUN), "--total-decisions", str(kept + 4 * every)]) == 0
    rows, steps = metric_rows(RUN), decisions_of(RUN)
    assert steps == sorted(set(steps))
    updates = [row["train/n_updates"] for row in rows if "train/n_updates" in row]  # none is due after an interrupt
    assert updates == list(range(1, state_of(RUN)["updates"] + 1))
    assert all(plays(path) for path in (*(RUN / "checkpoints").iterdir(), *(RUN / "pool").iterdir()))


def test_crash__while_a_checkpoint_is_written_loses_no_line_of_the_metrics_and_no_update(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rollout counted in the resume state but not yet logged or learned from would be lost for good."""

    def crash(*arguments: Any) -> None:
        raise RuntimeError("power cut")

    with monkeypatch.context() as broken:
        broken.setattr(monitor, "draw_curves", crash)  # the last thing that a checkpoint does
        with pytest.raises(RuntimeError, match="power cut"):
            train(opponent_share=0.0)
    assert state_of(RUN)["decisions"] == 1024
    assert main(["--resume", str(RUN)]) == 0
    assert decisions_of(RUN) == [256 * k for k in range(1, 9)]
    assert [row["decisions"] for row in metric_rows(RUN) if "eval/best_by" in row] == [1024, 2048]
    assert state_of(RUN)["updates"] == 8  # one a rollout, as in a run that nothing disturbed


FILES: dict[str, tuple[Any, str, int]] = {  # what writes each, and of when the last checkpoint then is
    "weights": (Path, "replace", 1024),
    "resume.pt": (Path, "replace", 2048),
    "metrics.jsonl": (JsonLines, "write", 1024),
    "curves.png": (monitor, "draw_curves", 2048),
}


@pytest.mark.parametrize("file", FILES)
def test_full_disk__stops_with_the_last_good_checkpoint_named_and_whole(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the first checkpoint on there is no room for one of the files of a run."""
    owner, writer, good = FILES[file]
    save, write = Monitor.save, getattr(owner, writer)
    is_full = False

    def save_and_fill(self: Monitor) -> None:
        nonlocal is_full
        save(self)
        is_full = True

    def refuse(target: Any, *arguments: Any) -> Any:
        if is_full and (not isinstance(target, Path) or file in target.name):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(target, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Monitor, "save", save_and_fill)
        patch.setattr(owner, writer, refuse)
        assert train(opponent_share=0.0) == 2
    error = capsys.readouterr().err
    assert "error: [Errno 28] No space left on device after" in error
    assert "The last good checkpoint is runs/tiny/checkpoints/last" in error
    assert read_manifest(RUN / "checkpoints" / "last").steps == good
    assert plays(RUN / "checkpoints" / "last")
    assert main(["--resume", str(RUN), "--total-decisions", "2304"]) == 0  # there is room again
    assert decisions_of(RUN) == [256 * k for k in range(1, 10)]


def test_full_disk__of_the_system_itself_is_told_by_name_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same with the system's own refusal, of files beyond a size. torch's writer would raise another error."""
    assert train(total_decisions=512, checkpoint_every=10**9) == 0
    save, (before, most) = Monitor.save, resource.getrlimit(resource.RLIMIT_FSIZE)

    def save_in_little_room(self: Monitor) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))
        try:
            save(self)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))

    with monkeypatch.context() as patch:
        patch.setattr(Monitor, "save", save_in_little_room)
        assert main(["--resume", str(RUN), "--total-decisions", "1024"]) == 2
    error = capsys.readouterr().err
    assert "File too large" in error
    assert "The last good checkpoint is runs/tiny/checkpoints/last" in error
    assert plays(RUN / "checkpoints" / "last")
    assert not list(RUN.rglob("*.new"))


def test_full_disk__that_tensorboard_meets_names_the_last_good_checkpoint_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its writer raises again when it is closed: an error that says nothing of checkpoints, and came out instead."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    write, lines = TensorBoardOutputFormat.write, itertools.count(1)

    def refuse(output: TensorBoardOutputFormat, *arguments: Any) -> None:
        if next(lines) > 6:
            monkeypatch.setattr(output, "close", lambda: raise_(full))
            raise full
        write(output, *arguments)

    monkeypatch.setattr(TensorBoardOutputFormat, "write", refuse)
    assert train(opponent_share=0.0) == 2
    error = capsys.readouterr().err
    assert "error: [Errno 28] No space left on device after 1792 decisions" in error
    assert "The last good checkpoint is runs/tiny/checkpoints/last" in error


def raise_(error: Exception) -> None:
    raise error


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
    assert train(opponent_share=0.0) == 2
    error = capsys.readouterr().err
    assert "error: the weights are no longer numbers" in error
    assert "The last good checkpoint is runs/tiny/checkpoints/last" in error
    assert read_manifest(RUN / "checkpoints" / "last").steps == 1024
    assert is_finite(RUN / "checkpoints" / "last")
    assert all(is_finite(path) for path in (RUN / "pool").iterdir())  # no such opponent either


def test_weights_that_are_no_longer_numbers__within_an_update_stop_the_run_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """torch refuses such logits with an error of its own, that says nothing of checkpoints."""
    learn = PPO.train

    def broken(model: PPO) -> None:
        if model._n_updates == 5:
            with torch.no_grad():
                next(iter(policy_of(model).network.parameters())).fill_(math.nan)
        learn(model)

    monkeypatch.setattr(PPO, "train", broken)
    assert train(opponent_share=0.0) == 2
    error = capsys.readouterr().err
    assert "error: the weights are no longer numbers after 1536 decisions" in error
    assert "The last good checkpoint is runs/tiny/checkpoints/last" in error
    assert is_finite(RUN / "checkpoints" / "last")


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


def test_label__names_a_rule_set_in_metrics() -> None:
    assert label(Rules.of()) == "first_out_4"
    assert label(Rules.of("round", num_players=3)) == "round_3"
    other = Rules.of("first_out", num_players=2, payoff="cards")
    assert label(other) == f"first_out_2_{other.fingerprint[:6]}"  # not to be taken for the preset itself


def test_curves__are_drawn_before_anything_was_logged(tmp_path: Path) -> None:
    """A first checkpoint may come before the first evaluation. (`trained` draws them of a whole run.)"""
    draw_curves([], TrainConfig(), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


# --- starting from a checkpoint ---------------------------------------------------------------------------------------


def start_weights(config: TrainConfig) -> dict[str, torch.Tensor]:
    """The weights that a fresh run of a config starts with."""
    model = build_model(config, TablesEnv(config.parsed_rules, config.num_games, config.seed))
    if config.start_from:
        start_from(model, config)
    return policy_of(model).network.state_dict()


@pytest.mark.usefixtures("finished")
def test_start_from__takes_the_weights_of_a_checkpoint() -> None:
    settings = {**TINY_RUN, "rules": MINI}
    given = weights_of(RUN / "checkpoints" / "last")
    fresh = start_weights(TrainConfig(**settings))
    taken = start_weights(TrainConfig(**settings, start_from=str(RUN / "checkpoints" / "last")))
    assert all(torch.equal(taken[key], given[key]) for key in given)
    assert not all(torch.equal(fresh[key], given[key]) for key in given)


@pytest.mark.usefixtures("finished")
def test_start_from__another_network_or_deck_or_none_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    given = str(RUN / "checkpoints" / "last")
    six_ranks = MINI.replace("789TJ", "789TJQ")
    for settings, message in [
        ({"start_from": given, "width": 16}, "has network {'kind': 'suits', 'width': 8"),
        ({"start_from": given, "rules": six_ranks}, "plays decks of 15 cards, the config 18"),
        ({"start_from": "runs/nowhere"}, "no checkpoint at runs/nowhere"),
    ]:
        assert train("--name", "other", **settings) == 2
        assert message in capsys.readouterr().err
