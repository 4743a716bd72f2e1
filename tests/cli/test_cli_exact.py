"""`devyatka exact`: what it prints and writes, what it skips, and what it says to bad input, failures and Ctrl-C."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devyatka_env.bots.checkpoint import write_checkpoint
from devyatka_env.bots.network import build_network
from devyatka_env.cli import main
from devyatka_env.evaluation import Estimate, standing
from devyatka_env.evaluation import exact_regret as exact
from devyatka_env.evaluation import streaming as measured
from devyatka_env.evaluation.against_ceiling import _stand
from devyatka_env.rules import Rules
from devyatka_env.views import observation_layout
from tests.helpers.screens import said
from tests.helpers.training_helpers import MINI

Capture = pytest.CaptureFixture[str]
FIGURE = re.compile(r"(-?\d+\.\d+) ± (\d+\.\d+)")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # the command sets it; this puts it back


def run(*arguments: str) -> int:
    """The command's exit code, whoever ends it."""
    try:
        return main(["exact", *arguments])
    except SystemExit as stop:  # argparse's own errors
        return int(stop.code or 0)


def row(text: str, start: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return line


def words(text: str) -> str:
    """A screen without its line breaks."""
    return " ".join(text.split())


def written() -> dict[str, Any]:
    return dict(json.loads(Path("out.json").read_text(encoding="utf-8")))


def assert_shown(line: str, estimates: list[Estimate], factors: list[float]) -> None:
    figures = [(float(mean), float(half)) for mean, half in FIGURE.findall(line)]
    assert len(figures) == len(estimates), line
    for (mean, half), estimate, factor in zip(figures, estimates, factors, strict=True):
        assert mean == pytest.approx(factor * estimate.mean, abs=0.051 if factor == 100 else 0.00501)
        assert half == pytest.approx(factor * estimate.half_width, abs=0.051 if factor == 100 else 0.00501)


# --- what it prints and writes ---------------------------------------------------------------------------------------


def test_exact__prints_what_the_library_finds(capsys: Capture) -> None:
    assert run("greedy", "--deals", "800", "--seed", "3", "--seats", "2-4", "--against", "blocker") == 0
    shown = capsys.readouterr()
    assert said(shown.err) == ""
    two = exact.two_seats("greedy", Rules.of(num_players=2), 40, seed=3)
    assert two.against_oracle is not None
    assert two.best_response is not None
    for start, estimate, factor in (
        ("value lost a choice", two.regret.value_lost, 1),
        ("won deals given away, per 1,000 choices", two.regret.mistakes, 1000),
        ("  per 100 choices that mattered", two.regret.mistakes_of_mattered, 100),
        ("win rate against perfect play", two.against_oracle.win_rate, 1),
        ("win rate against the best response to it", two.best_response.win_rate, 1),
    ):
        assert_shown(row(shown.out, start), [estimate], [factor])
        assert row(shown.out, start).endswith("40")
    assert f"it had {two.regret.decisions:,} choices; {two.regret.mattered:,} mattered" in words(shown.out)
    for seats in (2, 3, 4):
        one = standing("greedy", "blocker", Rules.of(num_players=seats), 800, seed=3)
        line = row(shown.out, f"    {seats} ")
        assert f" {1 / seats:.4f} " in line
        assert_shown(line, [one.win_rate, one.ceiling, one.share], [1, 1, 100])
    assert "\nAgainst blocker. The ceiling is" in shown.out
    assert "skipped" not in shown.out


def test_exact__writes_what_it_prints(capsys: Capture) -> None:
    assert run("greedy", "--deals", "100", "--seed", "5", "--seats", "2,3", "--json", "out.json") == 0
    found, two = written(), exact.two_seats("greedy", Rules.of(num_players=2), 5, seed=5)
    assert (found["kind"], found["format"], found["candidate"], found["cheats"], found["seed"]) == (
        "exact", 3, "greedy", False, 5,
    )  # fmt: skip
    assert {"time", "versions", "commit"} <= found.keys()
    assert two.best_response is not None
    at_two = found["two_seats"]
    assert at_two["rules_text"] == "first_out num_players=2"
    assert at_two["layout_hash"] == observation_layout(36).hash
    assert at_two["hands_known"] is True
    assert at_two["regret"]["decisions"] == two.regret.decisions
    assert at_two["regret"]["value_lost"] == two.regret.value_lost.mean
    assert at_two["regret"]["value_lost_ci95"] == [two.regret.value_lost.low, two.regret.value_lost.high]
    assert at_two["best_response"]["win_rate"] == two.best_response.win_rate.mean
    assert at_two["best_response"]["unknown"] is None
    assert at_two["against_oracle"]["deals"] == 5
    assert [one["rules"]["num_players"] for one in found["standings"]] == [2, 3]
    share = standing("greedy", "greedy", Rules.of(num_players=3), 100, seed=5).share
    assert found["standings"][1]["share"] == share.mean
    assert found["standings"][1]["chance"] == 1 / 3
    assert found["standings"][1]["against"] == ["greedy", "greedy"]
    assert found["skipped"] == {}


def test_exact__of_the_oracle_is_no_loss_and_named_a_cheat(capsys: Capture) -> None:
    assert run("oracle", "--deals", "200", "--seats", "2", "--against", "random", "--json", "out.json") == 0
    shown = capsys.readouterr().out
    assert "0.0000 ± 0.0000" in row(shown, "value lost a choice")
    assert "0.5000 ± 0.0000" in row(shown, "win rate against perfect play")
    assert "oracle sees all hands, so it cheats" in shown
    assert "No won deal given away in 10 deals: with 95 % confidence it happens in fewer than 26 of 100" in words(shown)
    found = written()
    assert found["cheats"] is True
    assert found["two_seats"]["regret"]["mistakes"] == 0


def test_exact__a_bot_of_chance_has_no_best_response_and_no_ceiling(capsys: Capture) -> None:
    assert run("random", "--deals", "60", "--seats", "2,3", "--against", "random", "--json", "out.json") == 0
    shown = capsys.readouterr().out
    assert "not known" in row(shown, "win rate against the best response to it")
    assert "no exact best response to random: not deterministic" in shown
    assert "no exact ceiling against random: not deterministic" in shown
    assert row(shown, "    3 ").split()[-2:] == ["-", "-"]
    found = written()
    assert found["two_seats"]["best_response"]["win_rate"] is None
    assert found["two_seats"]["best_response"]["unknown"] == "no exact best response to random: not deterministic"
    assert found["standings"][1]["share"] is None


def test_exact__says_that_values_are_those_of_open_hands(capsys: Capture) -> None:
    assert run("greedy", "--deals", "40", "--rules", "nine_each") == 0
    shown = words(capsys.readouterr().out)
    assert "the values are those of open hands, which honest play cannot count on" in shown
    assert "5 seats skipped: 5 seats of cards_per_seat=9 do not fit a deck of 36 cards" in shown
    assert run("greedy", "--deals", "40", "--seats", "2") == 0
    assert "open hands" not in capsys.readouterr().out


@pytest.mark.parametrize("columns", [80, 100])
def test_exact__keeps_to_the_width_of_the_terminal(
    columns: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert (
        run("oracle:worlds=1", "--deals", "100", "--rules", "one_loser", "--seats", "2,3", "--against", "random") == 0
    )
    assert max(map(len, capsys.readouterr().out.splitlines())) <= columns


# --- which tables ----------------------------------------------------------------------------------------------------


def test_exact__measures_a_checkpoint_where_it_was_trained_and_skips_the_rest(capsys: Capture) -> None:
    rules, spec = Rules.from_text(MINI), {"kind": "mlp", "hidden": [4]}
    write_checkpoint("mini", build_network(rules.deck.num_cards, spec).state_dict(), [rules], spec)
    three_suits = MINI.replace("num_players=2 ", "")
    assert run("./mini", "--rules", three_suits, "--deals", "100") == 0
    shown = words(capsys.readouterr().out)
    for seats in (3, 4, 5, 6):
        assert f"{seats} seats skipped: ./mini was trained for" in shown
    assert "2 seats skipped" not in shown
    assert run("./mini", "--deals", "100") == 2
    assert "error: ./mini was trained for" in capsys.readouterr().err
    assert run("./mini+sample", "--rules", three_suits, "--deals", "100", "--seats", "2") == 0
    assert "no exact best response to ./mini+sample: not deterministic" in capsys.readouterr().out


def test_exact__rules_that_name_their_seats_have_one_table(capsys: Capture) -> None:
    assert run("greedy", "--rules", "one_loser num_players=3", "--deals", "20", "--json", "out.json") == 0
    found = written()
    assert found["two_seats"] is None
    assert [one["rules"]["num_players"] for one in found["standings"]] == [3]
    assert "value lost" not in capsys.readouterr().out


def test_exact__named_opponents_make_a_table_of_their_seats(capsys: Capture) -> None:
    assert run("greedy", "--against", "greedy,blocker,runner", "--seats", "4", "--deals", "20") == 0
    assert "\nAgainst greedy, blocker, runner. The ceiling" in capsys.readouterr().out
    assert run("greedy", "--against", "greedy,blocker", "--seats", "3,4", "--deals", "20") == 0
    assert "4 seats skipped: 2 opponents given; 3 seats need 1 (for all of them) or 3" in words(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "required: candidate"),
        (("gredy",), "unknown bot 'gredy'"),
        (("greedy", "--against", "gredy"), "unknown bot 'gredy'"),
        (("greedy", "--seats", "7"), "seats must be different numbers from 2 to 6, not '7'"),
        (("greedy", "--rules", "second_out"), "unknown rules preset 'second_out'"),
        (("greedy", "--deals", "0"), "deals must be at least 1, not 0"),
        (("greedy", "--seed", "-1"), "seed must be"),
        (("greedy", "--seats", "5", "--rules", "nine_each"), "do not fit a deck of 36 cards"),
        (("greedy", "--json", "nowhere/out.json"), "there is no folder nowhere"),
        (("greedy", "--jobs", "0"), "jobs must be at least 1, not 0"),
    ],
)
def test_exact__says_what_is_wrong(arguments: tuple[str, ...], message: str, capsys: Capture) -> None:
    assert run(*arguments) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


# --- failures and Ctrl-C ---------------------------------------------------------------------------------------------

BROKEN = """
from devyatka_env.bots import Bot

class Broken(Bot):
    name = "broken"
    deterministic = True

    def act(self, view, rng):
        if view.rules.num_players == 3:
            raise RuntimeError("three is a crowd")
        return view.legal_actions()[0]
"""


def test_exact__a_bot_that_fails_is_named_and_the_other_tables_are_played(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("broken_of_exact.py").write_text(BROKEN, encoding="utf-8")
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert run("broken_of_exact:Broken", "--deals", "40", "--seats", "3,4", "--json", "out.json") == 1
    shown = words(capsys.readouterr().out)
    assert re.search(r"3 seats: ended after 0 deals: bot \S*[Bb]roken failed \(deal \d+ of seed 0\): three is", shown)
    three, four = written()["standings"]
    assert (three["deals"], four["deals"]) == (0, 40)
    assert three["failure"]["message"].endswith("three is a crowd")
    assert four["failure"] is None


@pytest.mark.parametrize("part", ["choices", "perfect play", "best responses", "standing"])
def test_interrupt__prints_and_saves_what_was_done(part: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    real = measured.stream

    def stream(function: Any, game: Any, tasks: Any, columns: int, workers: Any, progress: Any) -> Any:
        def stop(done: int) -> None:
            raise KeyboardInterrupt

        names = {exact._judge: "choices", exact._respond: "best responses", _stand: "standing"}
        named = names.get(function, "perfect play")
        return real(function, game, tasks, columns, workers, stop if named == part else progress)

    monkeypatch.setattr(exact, "stream", stream)
    monkeypatch.setattr("devyatka_env.evaluation.against_ceiling.stream", stream)
    assert run("greedy", "--deals", "800", "--seats", "2,3", "--json", "out.json") == 130
    place = "2 seats" if part == "standing" else f"two seats, {part}"
    assert f"{place}: stopped early, after 16 deals" in capsys.readouterr().out
    found = written()
    assert len(found["standings"]) == (part == "standing")
    assert (found["two_seats"]["best_response"] is None) == (part in ("choices", "perfect play"))


def test_interrupt__before_anything_was_done_writes_nothing(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> np.ndarray:
        raise KeyboardInterrupt

    monkeypatch.setattr(exact, "play_rotations", interrupted)
    assert run("greedy", "--json", "out.json") == 130
    assert "interrupted" in capsys.readouterr().err
    assert not Path("out.json").exists()
