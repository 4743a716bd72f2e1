"""`devyatka evaluate --replay`: result files of others, of which nothing is run and everything is checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devyatka_env.cli import main

Capture = pytest.CaptureFixture[str]
# Two agents, and one that tells when it is imported.
OWN = """def low(view, rng):
    return view.legal_actions()[0]


def high(view, rng):
    return view.legal_actions()[-1]
"""
TRAP = "raise SystemExit('this code was run')\n"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    Path("replayed_bots.py").write_text(OWN, encoding="utf-8")
    Path("trap.py").write_text(TRAP, encoding="utf-8")


def evaluated(candidate: str, against: str, seats: int = 3) -> None:
    words = ["--seats", str(seats), "--deals", "4", "--reference", "", "--json", "r.json"]
    assert main(["evaluate", candidate, "--against", against, *words]) == 0


def changed(change: Callable[[dict[str, Any]], None]) -> None:
    content = json.loads(Path("r.json").read_text(encoding="utf-8"))
    change(content)
    Path("r.json").write_text(json.dumps(content), encoding="utf-8")


def refusal(capsys: Capture, *words: str) -> str:
    capsys.readouterr()
    assert main(["evaluate", *words, "--replay", "r.json", "--deal", "1"]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    return error


@pytest.mark.parametrize("role", ["candidate", "against"])
def test_replay__code_that_only_the_file_names_is_not_run(role: str, capsys: Capture) -> None:
    evaluated("greedy", "random")
    if role == "candidate":
        changed(lambda content: content["tables"][0]["candidates"][0].update(candidate="trap:bot"))
        again = "devyatka evaluate trap:bot --against random --replay r.json --deal 1"
    else:
        changed(lambda content: content["tables"][0].update(against=["random", "trap:bot"]))
        again = "devyatka evaluate greedy --against random,trap:bot --replay r.json --deal 1"
    error = refusal(capsys)
    assert "r.json names trap:bot, code that is not run on the word of a file" in error
    assert error.rstrip().endswith(again)


def test_replay__code_that_the_user_names_again_is_run(capsys: Capture) -> None:
    evaluated("replayed_bots:low", "replayed_bots:high")
    error = refusal(capsys, "replayed_bots:low")
    assert "names replayed_bots:high, code" in error
    error = refusal(capsys, "--against", "replayed_bots:high")
    assert "names replayed_bots:low, code" in error
    error = refusal(capsys, "replayed_bots:low", "--against", "replayed_bots:low")
    assert "r.json has opponents replayed_bots:high, replayed_bots:high, not replayed_bots:low" in error
    words = ["--replay", "r.json", "--deal", "1"]
    assert main(["evaluate", "replayed_bots:low", "--against", "replayed_bots:high", *words]) == 0
    assert "== seat 0 replayed_bots:low, seat 1 replayed_bots:high" in capsys.readouterr().out


def test_replay__names_with_parameters_are_looked_up(capsys: Capture) -> None:
    evaluated("pimc:worlds=2", "random")
    assert main(["evaluate", "--replay", "r.json", "--deal", "1"]) == 0
    assert "seat 0 pimc:worlds=2" in capsys.readouterr().out


DAMAGES: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda c: c.update(format=2), "r.json was made by release 0.1 (format 2), whose bots drew other random words"),
    (lambda c: c.update(words="x"), "the bots of r.json drew their random words by x"),
    (lambda c: c.update(tables=[]), "r.json: tables must be a list of 1 to 100 items"),
    (
        lambda c: c["tables"][0]["candidates"][0].update(deals="4"),
        "tables[0].candidates[0].deals must be a whole number",
    ),
    (lambda c: c["tables"][0].update(seed=2**64), "r.json: tables[0].seed must be a whole number from 0"),
    (lambda c: c["tables"][0].update(against=["random"]), "r.json has 2 players at a table of 3 seats"),
    (lambda c: c["tables"][0]["rules"].update(end="never"), "tables[0].rules.end must be first_out or last_holder"),
    (lambda c: c["tables"][0]["rules"].update(num_suits=3), "r.json has rules_fingerprint"),
    (lambda c: c["tables"][0]["candidates"][0].update(candidate="a\x1b[2J"), "candidate must be a text on one line"),
    (lambda c: c["tables"][0]["candidates"][0].update(candidate="nobody"), "unknown bot 'nobody'"),
]


@pytest.mark.parametrize(("change", "message"), DAMAGES, ids=[message[:40] for _, message in DAMAGES])
def test_replay__of_a_damaged_or_older_file_is_one_line(
    change: Callable[[dict[str, Any]], Any], message: str, capsys: Capture
) -> None:
    evaluated("greedy", "random")
    changed(change)
    assert message in refusal(capsys)
