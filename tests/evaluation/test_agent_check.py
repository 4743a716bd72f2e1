"""Checks of users' agents: every broken agent is named by the right item and by no other, every honest one passes."""

from __future__ import annotations

import gc
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from devyatka_env.bots import BOTS, make_bot
from devyatka_env.cli import main
from devyatka_env.evaluation.agent_checks import AgentReport, check, check_agent, harness, probes
from devyatka_env.evaluation.agent_checks.harness import Asker, Moment, chance, generator_of
from devyatka_env.games import Game
from devyatka_env.rules import PRESETS, Rules
from tests.helpers import broken_agents as zoo
from tests.helpers.games import random_moment, state_bytes

Capture = pytest.CaptureFixture[str]

UNIVERSAL = Path(__file__).resolve().parents[2] / "checkpoints" / "universal"
RULES = "first_out num_players=3"


def quick(agent: Any, rules: str | None = RULES, move_seconds: float = 5.0) -> AgentReport:
    """A quick check on one rule set; classes are made first."""
    bot = agent() if isinstance(agent, type) or agent is zoo.nan_network else agent
    return check_agent(bot, quick=True, rules=rules, move_seconds=move_seconds)


def by_verdict(report: AgentReport, verdict: str) -> set[str]:
    return {item.name for item in report.items if item.verdict == verdict}


@pytest.fixture
def fast_gc() -> Iterator[None]:
    """Let the garbage collector forget what is there already, or looking through it takes a while at each move."""
    gc.freeze()
    yield
    gc.unfreeze()


class Clock:
    """Time as the checks see it: a bit goes by whenever they look at it, and what an agent sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.tick = 1e-4  # half of an honest move

    def perf_counter(self) -> float:
        self.now += self.tick
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """No verdict may hang on the speed of this machine, or on what else it does."""
    time = Clock()
    for module in (check, harness, probes, zoo):
        monkeypatch.setattr(module, "time", time)
    return time


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Several threads are slower for single views, far slower on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def global_peeker() -> Iterator[zoo.PeeksByGlobal]:
    bot = zoo.PeeksByGlobal()
    yield bot
    bot.restore()


# --- broken agents ---------------------------------------------------------------------------------------------------

BROKEN = {
    zoo.illegal: ("legal choices", r"chose \d+ \(.+\); legal: .+ times \(first_out num_players=3, deal 0 of seed 0"),
    zoo.out_of_range: ("legal choices", r"chose 1000; legal: "),
    zoo.crash: ("exceptions", r"IndexError: tuple index out of range \(broken_agents.py, line \d+: return view"),
    zoo.leaves: ("exceptions", r"SystemExit: enough \(broken_agents.py, line \d+: sys.exit\("),
    zoo.nan_network: ("exceptions", r"CheckpointError: the network of nan_network answers NaN or infinite logits; \d"),
    zoo.answers_float: ("answer type", r"answered float \d+\.0, not a whole number"),
    zoo.answers_none: ("answer type", r"answered NoneType, not"),
    zoo.AnswersBool: ("answer type", r"answered bool (True|False), not"),
    zoo.BatchOfFloats: ("answer type", r"act_batch answered float64 \[1\], wanted are whole numbers \[1\]"),
    zoo.peeks_by_gc: ("hidden cards", r"of the same view it chose \d+ \(.+\) or \d+ .+, depending on the hidden cards"),
    zoo.peeks_by_gc_at_deals: ("hidden cards", r"depending on the hidden cards"),
    zoo.peeks_by_frame: ("hidden cards", r"depending on the hidden cards"),
    zoo.peeks_at_the_deal_number: ("hidden cards", r"depending on the hidden cards"),
    zoo.PeeksInBatches: ("hidden cards", r"depending on the hidden cards"),
    zoo.DrawsItself: ("reproducible", r"chose \d+ .+ or \d+ .+: it draws from a generator of its own, or counts"),
    zoo.draws_globally: ("reproducible", r"it draws from a global generator \(random, np.random or torch\)"),
    zoo.draws_from_numpy: ("reproducible", r"it draws from a global generator"),
    zoo.draws_from_torch: ("reproducible", r"it draws from a global generator"),
    zoo.SaysDeterministic: ("deterministic", r"says it is deterministic, but by the randomness given it chose \d+"),
    zoo.RemembersDeterministically: ("memory", r"says it is deterministic, but keeps a memory: it chose"),
    zoo.spoils_its_view: ("arguments", r"changed the view that it was given"),
    zoo.SpoilsWords: ("arguments", r"changed the views or words that act_batch was given"),
    zoo.OtherInBatches: ("batch form", r"act_batch and act choose differently; \d+ of \d+ times"),
    zoo.Neighbourly: ("batch form", r"answers depend on what else is in the batch; \d+ of \d+ times"),
}  # fmt: skip


@pytest.mark.parametrize(("agent", "expected"), BROKEN.items(), ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.usefixtures("fast_gc")
def test_broken__is_named_by_the_right_item_and_no_other(agent: Any, expected: tuple[str, str]) -> None:
    report = quick(agent)
    assert by_verdict(report, "fault") == {expected[0]}
    assert not by_verdict(report, "note")
    assert not report.ok
    (fault,) = report.faults
    assert fault == report.item(expected[0])
    assert fault.deal is not None
    game = Game.from_position(fault.position)
    assert str(game.rules) == RULES
    assert f"seat {game.turn})" in fault.detail
    assert re.search(expected[1], fault.detail)


def test_broken__a_peek_by_a_global_is_found(global_peeker: zoo.PeeksByGlobal) -> None:
    assert by_verdict(check_agent(global_peeker, quick=True, rules=RULES), "fault") == {"hidden cards"}


def test_broken__a_peek_in_random_moves_is_found_by_statistics() -> None:
    report = quick(zoo.PeeksAtRandom)
    assert by_verdict(report, "fault") == {"reproducible", "hidden cards"}
    assert re.search(
        r"\d+ answers with the hidden cards as dealt and as many .* \(p = ", report.item("hidden cards").detail
    )


def test_broken__honest_answers_that_are_not_reproducible_are_no_leak() -> None:
    report = quick(zoo.DrawsItself)
    assert report.item("hidden cards").verdict == "ok"
    assert report.item("hidden cards").detail.endswith("its answers are not reproducible)")
    assert report.item("memory").detail == "cannot be told, because its answers are not reproducible"


@pytest.mark.parametrize(
    ("agent", "name", "words"),
    [
        (zoo.Remembers, "memory", "its answers depend on what it was asked before: it chose"),
        (zoo.DrawsOtherwise, "batch form", "act_batch and act draw differently from the same word"),
        ("oracle:worlds=2", "hidden cards", "is shown all hands, and says so: a cheat"),
    ],
)
def test_note__is_worth_knowing_and_no_fault(agent: Any, name: str, words: str) -> None:
    report = quick(agent)
    assert report.ok
    assert by_verdict(report, "note") == {name}
    assert report.item(name).detail.startswith(words)


# --- slow agents -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "moves", "words"),
    [
        (zoo.slow, 20, "a move took 0.3"),
        (zoo.slow_at_once, 2, "a move took 0.3"),
    ],
)
def test_slow__is_at_fault_and_not_asked_any_more(agent: Any, moves: int, words: str) -> None:
    report = quick(agent, move_seconds=0.1)
    assert by_verdict(report, "fault") == {"time per move"}
    assert report.item("time per move").detail.startswith(words)
    assert report.item("time per move").deal == 0
    assert report.moves <= moves
    others = {
        "legal choices",
        "answer type",
        "exceptions",
        "arguments",
        "hidden cards",
        "words",
        "reproducible",
        "memory",
    }
    assert by_verdict(report, "skipped") == others
    assert {report.item(name).detail for name in others} == {"not looked at any further, since a move took too long"}


def test_slow__an_endless_move_is_broken_off() -> None:
    """By a clock of the system: it goes off after four times the limit."""
    report = quick(zoo.endless, move_seconds=0.5)
    assert by_verdict(report, "fault") == {"time per move"}
    assert report.item("time per move").detail.startswith("a move was broken off after 2 s, the limit is 0.5 s")
    assert report.moves <= 20


def test_slow__a_first_move_that_loads_something_is_a_note() -> None:
    report = quick(zoo.SlowStart, move_seconds=0.1)
    assert report.ok
    assert report.item("time per move").verdict == "note"
    assert "the first took 0.3" in report.item("time per move").detail
    assert report.worst_ms < 100


# --- agents without a fault ------------------------------------------------------------------------------------------

PASSING = [name for name in BOTS if not BOTS[name].__module__.endswith("search")]
PASSING += ["pimc:worlds=5", "reader:worlds=3:candidates=12", "oracle:worlds=2"]


@pytest.mark.parametrize("agent", [zoo.first, zoo.by_rng, zoo.answers_numpy])
def test_honest__has_no_fault_and_no_note(agent: Any) -> None:
    report = quick(agent)
    assert by_verdict(report, "ok") == {item.name for item in report.items}
    assert "batch form" not in {item.name for item in report.items}  # it has none of its own


@pytest.mark.parametrize("name", PASSING)
def test_shipped__every_bot_passes(name: str, clock: Clock) -> None:
    if "worlds" in name:  # it searches
        clock.tick = 2e-3
    report = quick(name, "winner_and_loser num_players=4")
    assert report.ok, report.faults
    assert by_verdict(report, "note") == ({"hidden cards"} if "oracle" in name else set())


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PASSING, str(UNIVERSAL), f"{UNIVERSAL}+sample+any_rules"])
def test_shipped__every_bot_passes_the_whole_check(name: str) -> None:
    report = check_agent(name)
    assert report.ok, report.faults
    assert by_verdict(report, "note") <= {"hidden cards", "batch form"}  # a network may round otherwise in a batch


def test_shipped__the_checkpoint_passes_on_the_rules_it_was_trained_for() -> None:
    report = quick(str(UNIVERSAL), None)
    assert report.ok, report.faults
    assert [str(rules) for rules in report.rules] == [f"first_out num_players={n}" for n in range(2, 7)]
    item = report.item("rules")
    assert item.verdict == "skipped"
    assert item.detail.startswith("played 5 of 48: first_out 2-6; refused: first_out_passes 2-6, one_loser 2-6, ")
    assert "was trained for first_out num_players=2" in item.detail


# --- what is played --------------------------------------------------------------------------------------------------


def test_check__plays_every_preset_at_every_number_of_seats() -> None:
    report = check_agent(zoo.first, games=1)
    tables = {(rules.preset, rules.num_players) for rules in report.rules}
    assert tables == {(p, n) for p in PRESETS for n in range(2, 7) if p != "nine_each" or n <= 4}
    assert report.item("rules").verdict == "ok"


def test_check__an_agent_that_plays_no_rules_is_at_fault() -> None:
    report = quick(zoo.WrongRules, rules=None)
    assert [item.name for item in report.faults] == ["rules"]
    assert report.faults[0].detail == "plays none of 48: no rules are good enough"
    assert report.moves == 0


def test_check__says_that_nothing_is_hidden_at_two_seats_with_the_whole_pack() -> None:
    item = quick(zoo.peeks_by_frame, "first_out num_players=2").item("hidden cards")
    assert (item.verdict, item.detail) == ("skipped", "there are none: who sees one hand knows them all")
    assert not quick(zoo.peeks_by_frame, "nine_each num_players=2").ok


def test_check__is_repeatable_and_follows_its_seed() -> None:
    one, two, other = (check_agent(zoo.crash, games=2, rules=RULES, seed=seed).faults for seed in (4, 4, 5))
    assert one == two
    assert one[0].position != other[0].position
    assert "of seed 5" in other[0].detail


def test_check__puts_the_global_generators_back() -> None:
    def states() -> list[object]:
        numpy = np.random.get_state()  # noqa: NPY002 - the global state is meant
        return [random.getstate(), numpy[1].tolist(), torch.get_rng_state().tolist()]

    before = states()
    quick(zoo.draws_globally)
    assert states() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"games": 0}, "games must be at least 1, not 0"),
        ({"move_seconds": 0.0}, "move_seconds must be above 0, not 0"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"rules": "nothing"}, "unknown rules preset 'nothing'"),
    ],
)
def test_check__refuses_bad_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_agent(zoo.first, **options)


# --- the parts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS)
def test_moment__other_deals_look_the_same_to_the_seat_byte_for_byte(preset: str) -> None:
    for seed in range(4):
        game = random_moment(Rules.of(preset, num_players=4), seed)
        moment = Moment.of(game, seed, 0, 7)
        assert moment.game() == game
        others = moment.others(3)
        assert len({one.hands for one in [moment, *others]}) == len(others) + 1
        for other in others:
            assert other.game().view(other.seat).record.tobytes() == moment.game().view(moment.seat).record.tobytes()
            assert state_bytes(other.game().states) != state_bytes(game.states)


@pytest.mark.parametrize("word", [0, 1, 2**63 + 5, 2**64 - 1])
def test_generator_of__puts_out_the_word_first(word: int) -> None:
    assert int(generator_of(word).integers(0, 2**64, dtype=np.uint64)) == word


def test_asker__asks_a_bot_of_both_forms_for_the_same_word() -> None:
    asker = Asker(make_bot("random"), 5.0)
    for seed in range(20):
        moment = Moment.of(random_moment(Rules.of("first_out"), seed), seed, 0, seed * 2**58 + 1)
        assert asker.ask(moment) == asker.ask(moment, batch=False, rng=generator_of(moment.word))


def test_chance__is_rarely_small_when_both_are_drawn_alike() -> None:
    """Of 400 p-values 5 % are expected below 0.05: 20, with a standard deviation of 4.4."""
    rng = np.random.default_rng(1)
    draws = [[rng.integers(0, 3, (2, 8)).tolist() for _ in range(10)] for _ in range(400)]
    small = sum(chance([(one, two) for one, two in pairs], rng, 199) < 0.05 for pairs in draws)
    assert 3 <= small <= 37


def test_chance__is_small_when_one_kind_differs() -> None:
    rng = np.random.default_rng(1)
    pairs = [(rng.integers(0, 2, 12).tolist(), rng.choice(2, 12, p=[0.1, 0.9]).tolist()) for _ in range(10)]
    assert chance(pairs, rng) < 0.001


# --- the command -----------------------------------------------------------------------------------------------------


def test_command__prints_a_verdict_an_item_and_that_no_fault_was_found(capsys: Capture) -> None:
    assert main(["check-agent", "greedy", "--quick", "--rules", RULES]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"greedy: 1 rule set, [\d,]+ moves in \d+\.\d s, [\d.e-]+ ms each", first)
    assert lines[-1] == "no fault found"
    items = [line.split("  ")[0] for line in lines if line.startswith("ok ")]
    assert len(items) == 12
    assert max(map(len, lines)) <= 80


def test_command__names_the_faults_of_an_agent_in_ones_own_module(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    spec = "tests.helpers.broken_agents:peeks_by_frame"
    assert main(["check-agent", spec, "--quick", "--rules", RULES, "--json", str(file)]) == 1
    out = capsys.readouterr().out
    assert re.search(r"^fault +hidden cards +of the same view it chose", out, re.MULTILINE)
    assert out.endswith("1 fault\n")
    result = json.loads(file.read_text(encoding="utf-8"))
    assert (result["kind"], result["agent"], result["ok"], result["seed"]) == ("agent-check", spec, False, 0)
    assert {"format", "time", "versions", "commit"} <= set(result)
    assert [table["rules_text"] for table in result["tables"]] == [RULES]
    (fault,) = [item for item in result["items"] if item["verdict"] == "fault"]
    position = re.sub(r"\s+", " ", out[out.index("hidden cards, the first time:") :])
    assert fault["position"] in position
    assert f"deal {fault['deal']} of seed 0" in fault["detail"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody"], "unknown bot 'nobody'"),
        (["tests.helpers.broken_agents:nobody"], "has no 'nobody'"),
        (["greedy", "--games", "0"], "games must be at least 1"),
        (["greedy", "--json", "nowhere/report.json"], "there is no folder nowhere"),
    ],
)
def test_command__refuses_bad_input(arguments: list[str], words: str, capsys: Capture) -> None:
    assert main(["check-agent", *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(4))
def test_hidden_cards__an_agent_that_counts_its_calls_does_not_look_at_them(seed: int) -> None:
    report = check_agent(zoo.TakesTurns(), quick=True, rules=RULES, seed=seed)
    assert report.item("hidden cards").verdict != "fault"
    assert [fault.name for fault in report.faults] == ["reproducible"]
