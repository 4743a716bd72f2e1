"""Tournaments: what is played, stopping and going on, entrants that change or fail, the screen and the files."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from devyatka_env import PlayerView, Rules
from devyatka_env.bots import Bot, CallableBot, GreedyBot, PolicyBot, RandomBot, make_bot
from devyatka_env.bots.checkpoint import write_checkpoint
from devyatka_env.cli import main
from devyatka_env.evaluation import ResultError, Workers, evaluate
from devyatka_env.evaluation.tournaments import round_robin as play
from devyatka_env.evaluation.tournaments.cross_table import table
from devyatka_env.evaluation.tournaments.pairings import Entrant, Pairing, Store, identity, read_setup
from devyatka_env.evaluation.tournaments.results import standings, standings_result
from devyatka_env.evaluation.tournaments.round_robin import Tournament, play_tournament
from tests.helpers.players import NETWORK, RULES, lowest, tiny_network
from tests.helpers.screens import said

Capture = pytest.CaptureFixture[str]
THREE = Rules.of("first_out", num_players=3)
FIELD = ["random", "greedy", "closed"]


def deals_of(event: Tournament) -> dict[tuple[str, str], int]:
    return {names(event, one): one.deals for one in event.pairings}


def names(event: Tournament, one: Pairing) -> tuple[str, str]:
    return event.entrants[one.candidate].name, event.entrants[one.opponent].name


def assert_same_totals(one: Tournament, other: Tournament) -> None:
    """The same deals, the same sums up to the order in which floats were added."""
    first = {names(one, pairing): pairing for pairing in one.pairings}
    second = {names(other, pairing): pairing for pairing in other.pairings}
    assert first.keys() == second.keys()
    for key, pairing in first.items():
        mine, theirs = pairing.moments, second[key].moments
        assert mine.count == theirs.count
        assert mine.means == pytest.approx(theirs.means, rel=1e-9)
        assert mine.products == pytest.approx(theirs.products, rel=1e-9, abs=1e-9)
        assert pairing.places.block == second[key].places.block
        assert pairing.places.sums == pytest.approx(second[key].places.sums)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """Every deal of every pairing that is played, as it is."""
    deals: list[tuple[str, str, int]] = []
    play_part = play.play_part

    def note(game: Any, span: tuple[int, int]) -> Any:
        part, failure = play_part(game, span)
        if part is not None:
            bots = game.seating(0)
            deals.extend((bots[0].name, bots[1].name, span[0] + deal) for deal in range(part.moments.count))
        return part, failure

    monkeypatch.setattr(play, "play_part", note)
    return deals


# --- what is played --------------------------------------------------------------------------------------------------


def test_tournament__every_cell_is_what_evaluate_says(tmp_path: Path) -> None:
    event = play_tournament(FIELD, THREE, 60, tmp_path, seed=3)
    assert deals_of(event) == {(a, b): 60 for a in FIELD for b in FIELD if a != b}
    for one in event.pairings:
        alone = evaluate(*names(event, one), THREE, 60, seed=3)
        assert one.win_rate.mean == pytest.approx(alone.win_rate.mean)
        assert one.win_rate.half_width == pytest.approx(alone.win_rate.half_width)
        assert [place.mean for place in alone.place_rates] == pytest.approx(one.places.sums.sum(0) / 60)


def test_tournament__takes_any_number_of_seats_and_any_rules(tmp_path: Path) -> None:
    for rules in (Rules.of("one_loser", num_players=2), Rules.of("deck_52", num_players=6)):
        event = play_tournament(["greedy", "random"], rules, 40, tmp_path / str(rules.num_players))
        result = standings(event)
        assert "greedy" in table(result, 80)
        assert event.entrants[result.order[0]].name == "greedy"


# --- stopping and going on -------------------------------------------------------------------------------------------


def stop_at(call: int, what: type[BaseException] = KeyboardInterrupt) -> Callable[..., None]:
    calls = []

    def progress(number: int, total: int, pairing: Pairing) -> None:
        calls.append(number)
        if len(calls) == call:
            raise what

    return progress


@pytest.mark.parametrize("call", [2, 3, 7])
def test_tournament__stopped_anywhere_it_goes_on_without_playing_a_deal_twice(
    call: int, tmp_path: Path, played: list[tuple[str, str, int]]
) -> None:
    whole = play_tournament(FIELD, THREE, 100, tmp_path / "whole")
    played.clear()
    part = play_tournament(FIELD, THREE, 100, tmp_path / "part", progress=stop_at(call))
    assert part.interrupted
    assert 0 < sum(deals_of(part).values()) < sum(deals_of(whole).values())
    assert "stopped early" in table(standings(part), 80)
    rest = play_tournament(FIELD, THREE, 100, tmp_path / "part")
    assert not rest.interrupted
    assert_same_totals(rest, whole)
    assert sorted(played) == sorted((*pair, deal) for pair in deals_of(whole) for deal in range(100))


def test_tournament__stopped_before_the_first_deal_is_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(game: Any, span: tuple[int, int]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(play, "play_part", interrupt)
    with pytest.raises(KeyboardInterrupt):
        play_tournament(FIELD, THREE, 10, tmp_path)


def test_tournament__a_kill_loses_no_more_than_the_last_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(play, "SAVE_SECONDS", 0.0)
    seen = []

    def progress(number: int, total: int, pairing: Pairing) -> None:
        if (number, pairing.deals) == (3, 80):  # the deals 16 to 79 are not written yet
            shutil.copytree(tmp_path / "alive", tmp_path / "killed")
        seen.append(pairing.deals)

    whole = play_tournament(FIELD, THREE, 100, tmp_path / "alive", progress=progress)
    begun = json.loads(next((tmp_path / "killed" / "pairings").glob("closed_among_random*")).read_text())
    assert begun["moments"]["count"] == 16
    assert_same_totals(play_tournament(FIELD, THREE, 100, tmp_path / "killed"), whole)


def test_tournament__a_new_entrant_and_more_deals_replay_nothing(
    tmp_path: Path, played: list[tuple[str, str, int]]
) -> None:
    play_tournament(FIELD[:2], THREE, 50, tmp_path)
    played.clear()
    play_tournament(FIELD, THREE, 50, tmp_path)
    assert {(a, b) for a, b, _ in played} == {(a, b) for a in FIELD for b in FIELD if a != b and "closed" in (a, b)}
    played.clear()
    more = play_tournament(FIELD, THREE, 70, tmp_path)
    assert {deal for *_, deal in played} == set(range(50, 70))
    assert_same_totals(more, play_tournament(FIELD, THREE, 70, tmp_path / "at_once"))
    played.clear()
    fewer = play_tournament(FIELD[1:], THREE, 20, tmp_path)
    assert played == []
    assert deals_of(fewer) == {("greedy", "closed"): 70, ("closed", "greedy"): 70}


@pytest.mark.parametrize(
    ("rules", "seed", "words"),
    [(THREE, 1, ["seed 0", "seed 1"]), (RULES, 0, [str(THREE), str(RULES), THREE.fingerprint, RULES.fingerprint])],
)
def test_tournament__another_seed_or_rules_in_the_folder_are_refused_with_both_sides(
    rules: Rules, seed: int, words: list[str], tmp_path: Path
) -> None:
    play_tournament(FIELD[:2], THREE, 10, tmp_path)
    with pytest.raises(ValueError, match="give another folder") as error:
        play_tournament(FIELD[:2], rules, 10, tmp_path, seed)
    assert all(word in str(error.value) for word in words)
    setup = read_setup(tmp_path)
    assert setup is not None
    assert (setup.rules, setup.seed, setup.deals, setup.entrants) == (THREE, 0, 10, ("random", "greedy"))


def test_tournament__jobs_and_one_process_have_the_same_totals(tmp_path: Path) -> None:
    one = play_tournament(FIELD, THREE, 300, tmp_path / "one")
    with Workers(2) as workers:
        two = play_tournament(FIELD, THREE, 300, tmp_path / "two", workers=workers)
    assert_same_totals(one, two)


# --- entrants that are not what they were ----------------------------------------------------------------------------


def test_tournament__a_changed_checkpoint_is_played_again(tmp_path: Path, played: list[tuple[str, str, int]]) -> None:
    folder = tmp_path / "checkpoint"

    def write(seed: int) -> None:
        write_checkpoint(folder, tiny_network(seed).state_dict(), [THREE], NETWORK)

    write(0)
    play_tournament(["random", "greedy", folder], THREE, 20, tmp_path / "event")
    played.clear()
    assert play_tournament(["random", "greedy", folder], THREE, 20, tmp_path / "event").replaced == ()
    write(1)
    again = play_tournament(["random", "greedy", folder], THREE, 20, tmp_path / "event")
    assert {pair[:2] for pair in played} == {pair for pair in deals_of(again) if str(folder) in pair}
    (note,) = again.replaced
    assert f"{folder} has changed (weights " in note
    assert "4 pairings" in note
    assert len(list((tmp_path / "event" / "pairings").glob("*.old.json"))) == 4
    assert_same_totals(again, play_tournament(["random", "greedy", folder], THREE, 20, tmp_path / "fresh"))


def test_identity__tells_weights_and_code_apart() -> None:
    assert identity(PolicyBot(tiny_network(0))) == identity(PolicyBot(tiny_network(0), name="other"))
    assert identity(PolicyBot(tiny_network(0))) != identity(PolicyBot(tiny_network(1)))
    assert identity(GreedyBot()) == identity(RandomBot()) != ""
    own = [identity(CallableBot(lowest)), identity(Broken()), identity(CallableBot(same_file))]
    assert all(one.startswith("code ") for one in own)
    assert own[0] != own[1] == own[2]
    assert identity(CallableBot(max, "builtin")) == ""


def same_file(view: PlayerView, rng: np.random.Generator) -> int:
    return view.legal_actions()[0]


# --- entrants that fail ----------------------------------------------------------------------------------------------


class Broken(Bot):
    """Plays its lowest card, and gets into trouble when it holds three cards."""

    name = "broken"

    def __init__(self, trouble: Callable[[PlayerView], int] | None = None) -> None:
        self.trouble = trouble

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        if self.trouble is not None and view.hand_mask.bit_count() == 3:
            return self.trouble(view)
        return view.legal_actions()[0]


def illegal(view: PlayerView) -> int:
    return view.rules.pass_action


def crash(view: PlayerView) -> int:
    raise ZeroDivisionError("out of my depth")


def slow(view: PlayerView) -> int:
    time.sleep(0.15)
    return view.legal_actions()[0]


def not_a_number() -> PolicyBot:
    network = tiny_network()
    network.policy_head.bias.data[:] = float("nan")
    return PolicyBot(network, name="broken")


@pytest.mark.parametrize(
    ("bot", "reason"),
    [
        (Broken(illegal), "illegal action 36"),
        (Broken(crash), "out of my depth"),
        (Broken(slow), "the limit is 0.1 s"),
        (not_a_number(), "NaN"),
    ],
)
def test_tournament__a_failing_entrant_is_named_and_the_others_finish(bot: Bot, reason: str, tmp_path: Path) -> None:
    event = play_tournament(["random", bot, "greedy", "closed"], THREE, 30, tmp_path, move_seconds=0.1)
    assert {pair: deals for pair, deals in deals_of(event).items() if "broken" not in pair} == {
        (a, b): 30 for a in FIELD for b in FIELD if a != b
    }
    (failed,) = [one for one in event.pairings if one.failure]
    assert names(event, failed) == ("broken", "random")
    assert failed.failure is not None
    assert failed.failure.bot == "broken"
    assert 0 <= failed.failure.deal < 16
    assert reason in failed.failure.message
    result = standings(event)
    assert [event.entrants[k].name for k in result.order][-1] == "broken"
    assert len(result.rated) == 3
    text = table(result, 100)
    flat = " ".join(text.split())
    assert f"! broken among random: ended after 0 deals: {failed.failure.message}" in flat
    assert "! broken failed, so it has no rating; 5 of its pairings were not played to the end" in flat
    values = standings_result(result)
    json.dumps(values, allow_nan=False)
    (written,) = [one for one in values["pairings"] if one["failure"]]
    assert written["failure"] == dataclasses.asdict(failed.failure)


def test_tournament__what_was_played_before_a_failure_stays_and_it_is_tried_again(tmp_path: Path) -> None:
    late = {"now": False}

    def trouble(view: PlayerView) -> int:
        return view.rules.pass_action if late["now"] else view.legal_actions()[0]

    def progress(number: int, total: int, pairing: Pairing) -> None:
        late["now"] = number == 1

    field = [Broken(trouble), "random", "greedy"]
    event = play_tournament(field, THREE, 60, tmp_path, progress=progress)
    assert deals_of(event)["random", "broken"] == 16  # the first chunk
    assert {one.failure.deal >= 16 for one in event.pairings if one.failure} == {True}
    late["now"] = False
    mended = play_tournament(field, THREE, 60, tmp_path)
    assert not mended.failed
    assert_same_totals(mended, play_tournament(field, THREE, 60, tmp_path / "fresh"))


class Killer(Broken):
    """Takes its process with it."""

    name = "killer"

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        os._exit(3)


@pytest.mark.slow
def test_tournament__a_dying_worker_ends_its_pairings_alone(tmp_path: Path) -> None:
    with Workers(2) as workers:
        event = play_tournament(["random", Killer(), "greedy"], THREE, 20, tmp_path, workers=workers)
    assert {one.failure.message for one in event.pairings if one.failure} == {"a worker process died"}
    assert {pair for pair, deals in deals_of(event).items() if deals == 0} == {
        pair for pair in deals_of(event) if "killer" in pair
    }
    assert deals_of(event)["greedy", "random"] == 20


# --- what it says ----------------------------------------------------------------------------------------------------


def test_standings__equals_differ_by_nothing_however_numbers_are_rounded(tmp_path: Path) -> None:
    twin = CallableBot(lowest, "twin")
    event = play_tournament([CallableBot(lowest, "one"), twin, "random"], THREE, 40, tmp_path)
    result = standings(event)
    assert result.cells[0, 1].pairing.win_rate.half_width == pytest.approx(0, abs=1e-12)
    assert result.cells[0, 1].p_adjusted == result.cells[1, 0].p_adjusted == 1
    assert result.ratings is not None
    first, second = (result.rated.index(k) for k in (0, 1))
    assert result.ratings.difference(first, second).p_value == 1


def test_standings__rate_the_strong_above_the_weak_and_say_who_cheats(tmp_path: Path) -> None:
    two = Rules.of("first_out", num_players=2)
    event = play_tournament(["random", "greedy", "oracle"], two, 40, tmp_path)
    result = standings(event)
    assert [event.entrants[k].name for k in result.order] == ["oracle", "greedy", "random"]
    text = table(result, 80)
    assert "1 oracle (cheats)" in text
    assert "oracle sees all hands, so it cheats" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "by wins alone" not in text
    # At two seats a ranking is who won, so both ratings are one.
    assert result.ratings is not None
    assert result.wins is not None
    assert result.ratings.abilities == pytest.approx(result.wins.abilities)


@pytest.fixture
def event_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs" / "tournament"


def test_command__prints_saves_and_goes_on(event_folder: Path, capsys: Capture) -> None:
    words = ["tournament", *FIELD, "--seats", "3", "--deals", "60"]
    assert main([*words, "--json", "out.json", "--plot", "out.png"]) == 0
    shown = capsys.readouterr()
    assert said(shown.err) == ""
    assert "6 pairings, one of each among 2 of each other, of 60 deals x 3 seats" in shown.out
    assert "by wins alone" in shown.out
    assert "best of, the first wins" in shown.out
    assert Path("out.png").stat().st_size > 10_000
    result = json.loads(Path("out.json").read_text())
    assert (result["kind"], result["seed"], result["deals"]) == ("standings", 0, 60)
    assert result["rules_fingerprint"] == THREE.fingerprint
    assert len(result["pairings"]) == 6
    assert len(result["matches"]) == 3
    assert result["entrants"][0]["rating"] > result["entrants"][2]["rating"]
    assert main(["tournament"]) == 0  # the folder says the rest
    assert capsys.readouterr().out == shown.out
    assert main(["tournament", "--deals", "70"]) == 0
    assert "of 70 deals" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "two entrants or more, not 0"),
        (["greedy"], "two entrants or more, not 1"),
        (["greedy", "random", "greedy"], "given twice: greedy"),
        (["greedy", "nobody"], "unknown bot 'nobody'"),
        (["greedy", "random", "--deals", "0"], "at least 1"),
        (["greedy", "random", "--seats", "7"], "num_players"),
        (["greedy", "random", "--plot", "x.txt"], ".png"),
    ],
)
def test_command__bad_input_is_refused(arguments: list[str], message: str, event_folder: Path, capsys: Capture) -> None:
    assert main(["tournament", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not event_folder.exists()


def test_command__a_failed_bot_gives_1(event_folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("bad_bots.py").write_text(
        "def late(view, rng):\n    return view.legal_actions()[0] if rng.random() < 0.999 else -5\n"
    )
    monkeypatch.setattr(
        "devyatka_env.evaluation.agent_checks.check.check_agent", lambda *_, **__: SimpleNamespace(faults=())
    )
    assert main(["tournament", "greedy", "bad_bots:late", "random", "--deals", "900", "--json", "out.json"]) == 1
    assert "! bad_bots:late failed" in capsys.readouterr().out
    assert [one["failed"] for one in json.loads(Path("out.json").read_text())["entrants"]] == [False, False, True]


def test_command__users_own_code_with_faults_is_left_out_and_the_others_play(
    event_folder: Path, capsys: Capture
) -> None:
    Path("broken_bots.py").write_text("def bad(view, rng):\n    return -5\n")
    options = [
        "greedy",
        "broken_bots:bad",
        "random",
        "tests.helpers.broken_agents:peeks_by_frame",
        "tests.helpers.broken_agents:first",
    ]
    assert main(["tournament", *options, "--deals", "20", "--json", "out.json"]) == 1
    out = capsys.readouterr().out
    assert "broken_bots:bad, left out: legal choices: chose -5" in out
    assert "tests.helpers.broken_agents:peeks_by_frame, left out: hidden cards: of the same view it chose" in out
    entrants = json.loads(Path("out.json").read_text())["entrants"]
    assert sorted(one["name"] for one in entrants) == ["greedy", "random", "tests.helpers.broken_agents:first"]
    assert not any(one["failed"] for one in entrants)


def test_command__an_interruption_gives_130_and_prints_what_was_played(
    event_folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from devyatka_env.cli import tournament as command

    monkeypatch.setattr(command, "_progress_line", lambda bots, deals: stop_at(4))
    assert main(["tournament", *FIELD, "--seats", "3", "--deals", "100"]) == 130
    assert "stopped early" in capsys.readouterr().out


# --- folders of others -----------------------------------------------------------------------------------------------

TRAP = "raise SystemExit('this code was run')\n"


def test_command__code_that_only_the_folder_names_is_not_run(event_folder: Path, capsys: Capture) -> None:
    Path("own_bots.py").write_text("def first(view, rng):\n    return view.legal_actions()[0]\n")
    words = ["greedy", "own_bots:first"]
    assert main(["tournament", *words, "--deals", "4", "--seats", "3"]) == 0
    setup = event_folder / "tournament.json"
    setup.write_text(setup.read_text(encoding="utf-8").replace("own_bots:first", "trap:bot"), encoding="utf-8")
    Path("trap.py").write_text(TRAP)
    capsys.readouterr()
    assert main(["tournament"]) == 2
    error = capsys.readouterr().err
    assert "runs/tournament names trap:bot, code that is not run on the word of a file" in error
    assert "devyatka tournament greedy trap:bot -o runs/tournament" in error
    assert main(["tournament", *words]) == 0  # who names the entrants has the word


def test_folder__names_with_parameters_and_checkpoints_are_looked_up(event_folder: Path) -> None:
    write_checkpoint("checkpoint", tiny_network(0).state_dict(), [THREE], NETWORK)
    assert main(["tournament", "checkpoint", "pimc:worlds=2", "--deals", "2", "--seats", "3"]) == 0
    assert main(["tournament"]) == 0


def change(path: Path, **values: Any) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, **values}), encoding="utf-8")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"format": 2}, "was made by release 0.1 (format 2), whose bots drew other random words"),
        ({"words": "another"}, "drew their random words by another, in this release they do by siphash"),
        ({"deals": -1}, "tournament.json: deals must be a whole number of at least 1"),
        (
            {"entrants": [{"name": "\x1b[2J", "identity": "", "cheats": False}] * 2},
            "entrants[0].name must be a text on",
        ),
        ({"rules_fingerprint": "0" * 16}, "has rules_fingerprint 0000000000000000, but its rules have"),
    ],
)
def test_folder__of_another_release_or_damaged_is_refused_by_name(
    values: dict[str, Any], message: str, event_folder: Path, capsys: Capture
) -> None:
    assert main(["tournament", "greedy", "random", "--deals", "2", "--seats", "3"]) == 0
    change(event_folder / "tournament.json", **values)
    capsys.readouterr()
    for words in (["tournament"], ["tournament", "greedy", "random"]):
        assert main(words) == 2
        error = capsys.readouterr().err
        assert message in error
        assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"format": 2}, "was made by release 0.1"),
        ({"seed": 5}, "seed: 5, where 0 belongs"),
        ({"rules_fingerprint": "0" * 16}, "rules_fingerprint: 0000000000000000, where"),
        ({"candidate": {"name": "x", "identity": "", "cheats": False}}, "candidate: x, where"),
        ({"deals": 3}, "moments.count: 2, where 3 belongs"),
        ({"places": {"num_players": 3, "block": 1, "sums": [[1, 0, 0]]}}, "blocks in places: 1, where 2 belongs"),
        ({"places": {"num_players": 3, "block": 1, "sums": [[1, 0, 0], [5, 0, 0]]}}, "deals in places: 6, where 2"),
        ({"places": {"num_players": 3, "block": 1, "sums": [[1, 0], [0, 0, 1]]}}, "seats in places"),
        ({"moments": {"count": 2, "means": [0.5], "products": [[0.5]]}}, "columns in moments"),
        ({"seconds": True}, "seconds must be a number of at least 0, not True"),
    ],
)
def test_folder__a_pairing_of_another_tournament_or_with_other_sums_is_refused(
    values: dict[str, Any], message: str, tmp_path: Path
) -> None:
    play_tournament(FIELD[:2], THREE, 2, tmp_path)
    change(next((tmp_path / "pairings").iterdir()), **values)
    with pytest.raises(ResultError, match=r"pairings/.*json") as error:
        play_tournament(FIELD[:2], THREE, 2, tmp_path)
    assert message in str(error.value)


def test_folder__a_failures_message_does_nothing_to_the_screen(tmp_path: Path) -> None:
    play_tournament(FIELD[:2], THREE, 2, tmp_path)
    for path in (tmp_path / "pairings").iterdir():
        change(path, failure={"bot": "random", "deal": 2, "message": "a\nb\x1b[2Jc"})
    store = Store(tmp_path, [Entrant.of(make_bot(name)) for name in FIELD[:2]], THREE, 0, 2)
    assert {one.failure and one.failure.message for one in store.load()} == {"a b\ufffd[2Jc"}
