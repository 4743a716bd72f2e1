"""`devyatka evaluate`: the table, the JSON and the plot it writes, and what it says to bad input and to Ctrl-C."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devyatka_env import PlayerView, Rules
from devyatka_env.bots import CallableBot, RandomBot, bot_names, make_bot, make_opponents, registry
from devyatka_env.bots.checkpoint import write_checkpoint
from devyatka_env.bots.network import build_network
from devyatka_env.cli import main
from devyatka_env.evaluation import Comparison, Estimate, arena, compare, evaluate
from devyatka_env.evaluation.display import table
from devyatka_env.evaluation.duplicate import play_rotations
from devyatka_env.evaluation.replay import replay_deal
from devyatka_env.evaluation.results import evaluation_result
from devyatka_env.rules import PRESETS
from devyatka_env.views import observation_layout
from tests.helpers.screens import said
from tests.helpers.training_helpers import MINI

Capture = pytest.CaptureFixture[str]
FIGURE = re.compile(r"(-?\d+\.\d{4}) ± (\d+\.\d{4})")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # the command sets it; this puts it back


def run(*arguments: str) -> int:
    """The command's exit code, whoever ends it."""
    try:
        return main(["evaluate", *arguments])
    except SystemExit as stop:  # argparse's own errors
        return int(stop.code or 0)


def rows_of(text: str, heading: str) -> dict[str, list[tuple[float, float]]]:
    """A block of the table: the figures ± their half widths, by the first column."""
    block = next(part for part in text.split("\n\n") if part.startswith(heading))
    return {
        line.split("  ")[0]: [(float(mean), float(half)) for mean, half in FIGURE.findall(line)]
        for line in block.splitlines()[1:]
    }


def written(name: str = "out.json") -> dict[str, Any]:
    """The only table of a result file."""
    (table_,) = json.loads(Path(name).read_text(encoding="utf-8"))["tables"]
    return dict(table_)


def write_mini_checkpoint(folder: str) -> None:
    rules, spec = Rules.from_text(MINI), {"kind": "mlp", "hidden": [4]}
    write_checkpoint(folder, build_network(rules.deck.num_cards, spec).state_dict(), [rules], spec)


# --- what it prints and writes ---------------------------------------------------------------------------------------


def test_evaluate__prints_candidate_and_reference_rows_with_intervals(capsys: Capture) -> None:
    assert run("greedy", "--against", "random", "--deals", "400", "--seed", "3") == 0
    shown = capsys.readouterr()
    assert said(shown.err) == ""
    heading = shown.out.splitlines()[:2]
    assert heading[0] == "first_out num_players=4, against 3 x random"
    assert heading[1] == "400 deals x 4 seats = 1,600 games, seed 3; 95 % intervals over deals; chance 0.2500"
    totals = rows_of(shown.out, "candidate")
    assert list(totals) == ["greedy", "random"]
    assert all(len(figures) == 4 for figures in totals.values())
    # One of the field, meeting the same luck in every seat, wins exactly its share of every deal.
    assert totals["random"][:3] == [(0.25, 0.0), (2.5, 0.0), (0.0, 0.0)]
    assert min(half for _, half in totals["greedy"]) > 0
    assert totals["greedy"][0][0] - totals["greedy"][0][1] > 0.30  # it reaches some 0.40
    by_seat = rows_of(shown.out, "win rate by seat")
    assert sum(mean for mean, _ in by_seat["greedy"]) / 4 == pytest.approx(totals["greedy"][0][0], abs=1e-4)
    assert len(rows_of(shown.out, "win rate when")["greedy"]) == 2


def test_evaluate__json_has_what_is_needed_to_compare_and_repeat(capsys: Capture) -> None:
    options = ["greedy", "--against", "random,greedy", "--seats", "3", "--deals", "100", "--seed", "7"]
    assert run(*options, "--reference", "random,greedy", "--json", "out.json") == 0
    content = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert (content["format"], content["kind"]) == (3, "evaluation")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", content["time"])
    assert set(content["versions"]) >= {"devyatka-env", "numpy", "torch"}
    assert "commit" in content
    rules, table_ = Rules.of("first_out", num_players=3), written()
    assert (table_["against"], table_["seed"]) == (["random", "greedy"], 7)
    assert (table_["rules"], table_["rules_fingerprint"]) == (rules.to_dict(), rules.fingerprint)
    assert (Rules.of(table_["rules_text"]), table_["layout_hash"]) == (rules, observation_layout(36).hash)
    assert [row["candidate"] for row in table_["candidates"]] == ["greedy", "random"]  # the candidate's is not repeated
    for one in table_["candidates"]:
        assert (one["deals"], one["games"], one["interrupted"], one["failure"]) == (100, 300, False, None)
        assert one["seconds"] > 0
        for key in ("win_rate", "mean_place", "mean_payoff", "mean_cards_left", "win_rate_opening"):
            low, high = one[f"{key}_ci95"]
            assert low < one[key] < high
        assert len(one["win_rate_by_seat"]) == len(one["win_rate_by_seat_ci95"]) == len(one["place_rates"]) == 3
    greedy, random = table_["candidates"]
    (difference,) = table_["differences"]
    assert (difference["candidate"], difference["reference"]) == ("greedy", "random")
    assert difference["win_rate"] == pytest.approx(greedy["win_rate"] - random["win_rate"])
    assert difference["p_value"] == difference["p_adjusted"] < 1e-6
    expected = evaluate(make_bot("greedy"), make_opponents(["random", "greedy"], 2), rules, 100, 7)
    assert greedy["win_rate"] == expected.win_rate.mean
    shown = rows_of(capsys.readouterr().out, "candidate")["greedy"]
    assert [round(greedy[key], 4) for key in ("win_rate", "mean_place", "mean_payoff", "mean_cards_left")] == [
        mean for mean, _ in shown
    ]


def test_evaluate__repeats_itself() -> None:
    for name in ("one.json", "two.json"):
        assert run("random", "--against", "random", "--deals", "30", "--json", name) == 0
    one, two = (written(name) for name in ("one.json", "two.json"))
    for result in (one, *one["candidates"], two, *two["candidates"]):
        result.pop("seconds")
    assert one == two


@pytest.mark.parametrize(("name", "magic"), [("p.png", b"\x89PNG"), ("p.svg", b"<?xml"), ("p.pdf", b"%PDF")])
def test_evaluate__plot_is_drawn_in_the_format_of_its_ending(name: str, magic: bytes) -> None:
    assert run("greedy", "--deals", "20", "--rules", MINI, "--plot", name) == 0
    assert Path(name).read_bytes().startswith(magic)


def test_evaluate__one_deal_has_no_interval(capsys: Capture) -> None:
    assert run("random", "--deals", "1", "--json", "one.json", "--plot", "one.png") == 0
    assert "± inf" in capsys.readouterr().out
    text = Path("one.json").read_text(encoding="utf-8")
    content = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))["tables"][0][
        "candidates"
    ][0]
    assert content["win_rate"] is not None
    assert content["win_rate_ci95"] == [None, None]


def test_evaluate__plays_rules_from_a_preset_with_words_and_from_a_file(capsys: Capture) -> None:
    Path("house.yaml").write_text("preset: one_loser\nnum_players: 3\npayoff: cards\n", encoding="utf-8")
    house = Rules.of("one_loser", num_players=3, payoff="cards")
    for options in (["--rules", "one_loser num_players=3 payoff=cards"], ["--rules", "house.yaml"]):
        assert run("random", "--deals", "10", "--json", "out.json", *options) == 0
        assert written()["rules_fingerprint"] == house.fingerprint
        assert capsys.readouterr().out.startswith("one_loser num_players=3 payoff=cards, against 2 x greedy")
    assert run("random", "--deals", "10", "--json", "out.json", "--rules", "house.yaml", "--seats", "5") == 0
    assert written()["rules_fingerprint"] == Rules.of("one_loser", num_players=5, payoff="cards").fingerprint


@pytest.mark.parametrize("preset", list(PRESETS))
def test_evaluate__seats_mean_the_same_for_a_preset_and_for_a_file_that_names_it(preset: str) -> None:
    """In `round` each seat deals once: the number of deals follows the number of seats."""
    Path("rules.yaml").write_text(f"preset: {preset}\n", encoding="utf-8")
    found = []
    for rules in (preset, "rules.yaml"):
        assert run("random", "--deals", "2", "--json", "out.json", "--rules", rules, "--seats", "3") == 0
        found.append(written()["rules_fingerprint"])
    assert found[0] == found[1] == Rules.of(preset, num_players=3).fingerprint


ROOT = Path(__file__).resolve().parents[2]
RULES = sorted((ROOT / "configs").glob("rules/*.yaml"))


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_evaluate__plays_every_shipped_rules_file(path: Path) -> None:
    assert run("random", "--against", "greedy", "--deals", "5", "--rules", str(path)) == 0


def test_evaluate__takes_checkpoints_on_every_side(capsys: Capture) -> None:
    write_mini_checkpoint("runs/mini")
    options = ["--against", "runs/mini+sample", "--reference", "runs/mini+sample,random"]
    assert run("runs/mini", *options, "--rules", MINI, "--deals", "50") == 0
    assert list(rows_of(capsys.readouterr().out, "candidate")) == ["runs/mini", "runs/mini+sample", "random"]


def test_evaluate__an_opponent_that_sees_all_hands_is_called_a_cheat() -> None:
    class Oracle(RandomBot):
        name = "oracle"
        sees_all_hands = True

    result = compare([Oracle()], make_opponents("random", 3), Rules.of(), 10)
    assert "oracle (cheats)" in table(result)
    assert "oracle sees all hands, so it cheats: not to be compared with bots that do not" in table(result)
    assert evaluation_result([result])["tables"][0]["candidates"][0]["cheats"] == ["oracle"]


def test_result__writes_null_for_what_was_not_measured() -> None:
    result = evaluate(RandomBot(), make_opponents("random", 3), Rules.of(), 5)
    nothing = dataclasses.replace(result, win_rate_opening=Estimate(math.nan, -math.inf, math.inf, 0))
    (table_,) = evaluation_result([Comparison((nothing,), (), 1.0)])["tables"]
    (content,) = table_["candidates"]
    assert content["win_rate_opening"] is None
    assert content["win_rate_opening_ci95"] == [None, None]
    json.dumps(content, allow_nan=False)


def test_command__runs_as_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "devyatka_env.cli", "evaluate", "greedy", "--deals", "20", "--rules", MINI]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
    assert (done.returncode, done.stderr) == (0, "")  # no progress line where nobody watches
    assert list(rows_of(done.stdout, "candidate")) == ["greedy", "random"]
    done = subprocess.run([*command, "--against", "nobody"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: unknown bot 'nobody': give one of random, greedy")


# --- bad input -------------------------------------------------------------------------------------------------------

PRESET_NAMES = ", ".join(PRESETS)
BAD_INPUT: list[tuple[list[str], str]] = [
    (["nobody"], f"unknown bot 'nobody': give one of {', '.join(bot_names())}, the folder of a checkpoint"),
    (["runs/none"], "unknown bot 'runs/none'"),
    (["runs"], "unknown bot 'runs'"),
    (["./runs"], "no checkpoint at ./runs"),
    ([""], "unknown bot ''"),
    (["greedy", "--against", "nobody"], "unknown bot 'nobody'"),
    (["greedy", "--against", "random,greedy:deep=1,greedy"], "bot greedy has no parameter 'deep': it has none"),
    (["greedy", "--reference", "nobody"], "unknown bot 'nobody'"),
    (["greedy", "--against", "random,greedy"], "2 opponents given; 3 seats need 1 (for all of them) or 3"),
    (["greedy", "--against", "random,,random"], "unknown bot ''"),
    (["greedy", "--seats", "7"], "seats must be different numbers from 2 to 6, not '7'"),
    (["greedy", "--seats", "1"], "seats must be different numbers from 2 to 6, not '1'"),
    (["greedy", "--seats", "2-"], "seats must be like 4, 2,3,4 or 2-6, not '2-'"),
    (["greedy", "--seats", "2,2-3"], "seats must be different numbers from 2 to 6, not '2,2-3'"),
    (["greedy", "--seats", "6-2"], "seats must be different numbers from 2 to 6, not '6-2'"),
    (["greedy", "--seats", "2-4", "--against", "random,random"], "2 opponents given; 1 seats need 1"),
    (["greedy", "--seats", "2,3", "--plot", "out.png"], "--plot draws one number of seats, not 2,3"),
    (["greedy", "--jobs", "0"], "jobs must be at least 1, not 0"),
    (["greedy", "--until-ci", "0"], "until_ci must be above 0, not 0"),
    (["greedy", "--move-seconds", "-1"], "move-seconds must be above 0, not -1"),
    ([], "give a candidate, or --replay RESULT --deal N"),
    (["--deal", "3"], "--replay RESULT and --deal N go together"),
    (["--replay", "none.json", "--deal", "3"], "cannot read the result none.json"),
    (["--replay", "list.yaml", "--deal", "3"], "cannot read the result list.yaml"),
    (["nowhere:Bot"], "bot 'nowhere:Bot': cannot import 'nowhere'"),
    (["json:nothing"], "bot 'json:nothing': module 'json' has no 'nothing'"),
    (["math:pi"], "bot 'math:pi' is 3.14"),
    (["greedy", "--seats", "four"], "'four'"),
    (["greedy", "--deals", "0"], "deals must be at least 1, not 0"),
    (["greedy", "--deals", "many"], "'many'"),
    (["greedy", "--seed", "-1"], "seed must be a whole number from 0 to 2**64 - 1, not -1"),
    (["greedy", "--threads", "0"], "threads must be at least 1, not 0"),
    (["greedy", "--rules", "whist"], f"unknown rules preset 'whist'; the presets are {PRESET_NAMES}"),
    (["greedy", "--rules", ""], f"unknown rules preset ''; the presets are {PRESET_NAMES}"),
    (["greedy", "--rules", "first_out colour=red"], "unknown rule field 'colour'; the fields are num_players"),
    (["greedy", "--rules", "first_out payoff=much"], "payoff='much' is not one of win, lose"),
    (["greedy", "--rules", "first_out deals=x"], "deals must be a number, not 'x'"),
    (["greedy", "--rules", "first_out 5"], "expected field=value after the preset, found '5'"),
    (["greedy", "--rules", "nine_each", "--seats", "5"], "5 seats of cards_per_seat=9 do not fit"),
    (["greedy", "--rules", "none.yaml"], "there is no rules file none.yaml"),
    (["greedy", "--rules", "bad.yaml"], "bad.yaml: unknown rule field 'hands'"),
    (["greedy", "--rules", "list.yaml"], "list.yaml: expected `field: value` lines"),
    (["greedy", "--rules", "broken.yaml"], "broken.yaml: not YAML"),
    (["runs/mini"], f"runs/mini was trained for {MINI}"),
    (["greedy", "--against", "runs/mini"], f"runs/mini was trained for {MINI}"),
    (["runs/torn", "--rules", MINI], "runs/torn/manifest.json"),
    (["greedy", "--json", "none/out.json"], "cannot write none/out.json: there is no folder none"),
    (["greedy", "--plot", "none/out.png"], "cannot write none/out.png: there is no folder none"),
    # Known before the first card: found out only after the last, the evaluation is lost.
    (["greedy", "--json", "runs"], "runs"),
    (["greedy", "--plot", "out.bmp"], "bmp"),
    (["greedy", "--plot", "out"], "out"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_INPUT, ids=[" ".join(words) for words, _ in BAD_INPUT])
def test_evaluate__bad_input_is_one_error_line_exit_code_2_and_nothing_played(
    arguments: list[str], message: str, capsys: Capture
) -> None:
    write_mini_checkpoint("runs/mini")
    write_mini_checkpoint("runs/torn")
    Path("runs/torn/manifest.json").write_text("{", encoding="utf-8")
    Path("bad.yaml").write_text("hands: 4\n", encoding="utf-8")
    Path("list.yaml").write_text("- first_out\n", encoding="utf-8")
    Path("broken.yaml").write_text("preset: [first_out\n", encoding="utf-8")
    assert run(*arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    errors = [line for line in shown.err.splitlines() if "error: " in line]
    assert len(errors) == 1
    assert message in errors[0]
    assert "Traceback" not in shown.err


def test_evaluate__a_bot_that_fails_is_named(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(view: PlayerView, rng: np.random.Generator) -> int:
        raise RuntimeError("out of cards")

    monkeypatch.setitem(registry._registry, "random", lambda: CallableBot(fail, "random"))
    assert run("greedy", "--against", "random", "--deals", "5") == 1
    shown = capsys.readouterr().out
    assert "greedy: ended after 0 deals: bot random failed (deal 0 of seed 0): out of cards\n" in shown
    assert "nan" not in shown


def test_help__names_bots_presets_and_checkpoint_options(capsys: Capture) -> None:
    assert run("--help") == 0
    words = " ".join(capsys.readouterr().out.split())
    for text in (
        *bot_names(),
        "name:key=value:key=value",
        "+sample",
        "+any_rules",
        *PRESETS,
        "--json FILE",
        "--plot FILE",
    ):
        assert text in words


# --- Ctrl-C ----------------------------------------------------------------------------------------------------------


def interrupt_chunk(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C as the ``number``-th chunk of deals is played; a chunk is eight deals of four seats."""
    real, chunks = arena.play_chunk, []

    def play(field: Any, span: tuple[int, int]) -> Any:
        if span[1] > 1:  # a single deal is played before, to load the kernels
            chunks.append(span)
        if len(chunks) == number:
            raise KeyboardInterrupt
        return real(field, span)

    monkeypatch.setattr(arena, "GAMES_AT_ONCE", 32)
    monkeypatch.setattr(arena, "play_chunk", play)


def test_interrupt__prints_the_deals_played_so_far_with_exit_code_130(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_chunk(3, monkeypatch)
    assert run("greedy", "--deals", "1000", "--json", "out.json") == 130
    out = capsys.readouterr().out
    assert "16 deals x 4 seats = 64 games" in out
    assert "greedy: stopped early, after 16 deals" in out
    assert list(rows_of(out, "candidate")) == ["greedy", "random"]
    assert [(row["interrupted"], row["deals"]) for row in written()["candidates"]] == [(True, 16)] * 2


def test_interrupt__before_anything_was_played_leaves_a_word_and_no_traceback(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_chunk(1, monkeypatch)
    assert run("greedy", "--deals", "1000") == 130
    shown = capsys.readouterr()
    assert (shown.out, shown.err.strip()) == ("", "interrupted")


def test_interrupt__at_the_second_table_keeps_the_first(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_chunk(4, monkeypatch)  # 24 deals of four seats are three chunks
    assert run("greedy", "--seats", "4,5", "--deals", "24", "--json", "out.json") == 130
    assert "24 deals x 4 seats" in capsys.readouterr().out
    assert [row["deals"] for row in written()["candidates"]] == [24, 24]


# --- several tables, replays, adjusted win rates ---------------------------------------------------------------------


def test_evaluate__several_numbers_of_seats_end_in_a_summary(capsys: Capture) -> None:
    assert run("greedy", "--seats", "2-4", "--deals", "30", "--json", "out.json") == 0
    out = capsys.readouterr().out
    summary = rows_of(out, "win rate     ")
    assert [half for _, half in summary["greedy"]] == [0, 0, 0]  # greedy among itself: its exact share
    assert [mean for mean, _ in summary["greedy"]] == [0.5, 0.3333, 0.25]
    tables = json.loads(Path("out.json").read_text(encoding="utf-8"))["tables"]
    assert [one["rules"]["num_players"] for one in tables] == [2, 3, 4]


def test_evaluate__until_ci_stops_when_the_interval_is_narrow_enough(capsys: Capture) -> None:
    assert run("greedy", "--against", "random", "--until-ci", "0.01", "--json", "out.json") == 0
    row = written()["candidates"][0]
    low, high = row["win_rate_ci95"]
    assert (high - low) / 2 <= 0.01
    assert 1000 <= row["deals"] < 10_000
    assert not row["interrupted"]


def test_evaluate__adjust_prints_how_much_variance_it_took(capsys: Capture) -> None:
    assert run("blocker", "--seats", "2", "--deals", "300", "--adjust", "--json", "out.json") == 0
    block = rows_of(capsys.readouterr().out, "luck-adjusted")
    row = written()["candidates"][0]
    assert block["blocker"] == [(round(row["adjusted"]["win_rate"], 4), pytest.approx(0, abs=0.01))]
    assert row["adjusted"]["variance_ratio"] > 10  # blocker is one of the controls, so all its luck is known
    assert row["adjusted"]["deals"] == 6000


def test_replay__shows_the_games_of_a_deal_move_by_move(capsys: Capture) -> None:
    write_mini_checkpoint("runs/mini")
    options = ["--rules", MINI, "--deals", "20", "--seed", "5", "--json", "out.json"]
    assert run("runs/mini+sample", "--against", "greedy", "--reference", "random", *options) == 0
    capsys.readouterr()
    rules = Rules.from_text(MINI)
    for name in ("runs/mini+sample", "random"):
        assert run(name, "--replay", "out.json", "--deal", "17") == 0
        out = capsys.readouterr().out
        assert "deal 17 of seed 5" in out
        assert f"== seat 0 {name}, seat 1 greedy" in out
        assert f"== seat 0 greedy, seat 1 {name}" in out
        games, seats = play_rotations([make_bot(name), make_bot("greedy")], rules, np.array([17]), 5)
        for end, seat in zip(replay_deal([make_bot(name), make_bot("greedy")], rules, 5, 17), seats, strict=True):
            assert bytes(end.record["log"]) == bytes(games.states[seat]["log"])  # what the arena played
            assert end.position in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--deal", "20"], "deal must be 0 to 19, the deals that were played, not 20"),
        (["--deal", "-1"], "deal must be 0 to 19"),
        (["--deal", "1", "--seats", "4,5"], "--replay shows one number of seats, not 4,5"),
        (["--deal", "1", "--seats", "5"], "out.json has tables of 4 seats, not of 5"),
        (["pimc", "--deal", "1"], "out.json has candidates greedy, random, not 'pimc'"),
    ],
)
def test_replay__of_what_was_not_played_is_refused(arguments: list[str], message: str, capsys: Capture) -> None:
    assert run("greedy", "--deals", "20", "--json", "out.json") == 0
    assert run(*arguments, "--replay", "out.json") == 2
    assert message in capsys.readouterr().err


def test_evaluate__plays_a_bot_of_the_users_own_module(capsys: Capture) -> None:
    Path("my_agents.py").write_text(
        "class Low:\n    def act(self, view, rng):\n        return view.legal_actions()[0]\n\n"
        "def high(view, rng):\n    return view.legal_actions()[-1]\n",
        encoding="utf-8",
    )
    assert run("my_agents:Low", "--against", "my_agents:high", "--deals", "20") == 0
    assert list(rows_of(capsys.readouterr().out, "candidate")) == ["my_agents:Low", "random"]
