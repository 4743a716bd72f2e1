"""Damaged and hostile files of every kind, through the functions that read them: nothing but the project's own errors.

The files are real ones, changed in one to three places at random, by fixed seeds. A file that is still read is used as
it is in earnest (rated, played on), for what a reader lets pass others must be able to live with.
"""

from __future__ import annotations

import contextlib
import copy
import json
import random
import shutil
import signal
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import yaml

from devyatka_env import Game, Rules
from devyatka_env._files import MAX_BYTES, MAX_YAML_BYTES, read_json, read_yaml
from devyatka_env.bots import make_bot
from devyatka_env.bots.checkpoint import write_checkpoint
from devyatka_env.cli import main
from devyatka_env.evaluation import read_result
from devyatka_env.evaluation.reports.reported_agent import _read_metrics
from devyatka_env.evaluation.results import rules_of
from devyatka_env.evaluation.tournaments.cross_table import table
from devyatka_env.evaluation.tournaments.pairings import Entrant, Store, read_setup
from devyatka_env.evaluation.tournaments.results import standings
from devyatka_env.evaluation.tournaments.round_robin import Tournament
from devyatka_env.learning.config import read_config
from tests.helpers.players import NETWORK, tiny_network

RULES = "first_out num_players=2"
FIELD = ("greedy", "random", "closed")
MOST_BYTES = 200_000_000
# Of processor time, for a hundred files: a hundredth of a second each is usual, two are too many.
SECONDS, HANG_SECONDS = 100, 300


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        content: a good one.
        read: reads the one of a path.
        name: what it is called.
    """

    content: bytes
    read: Callable[[Path], object]
    name: str = "file.json"


def read_event(path: Path) -> object:
    """A tournament that goes on with a pairing's file, and its table."""
    store = Store(path.parent.parent, [Entrant.of(make_bot(name)) for name in FIELD], Rules.of(RULES), 0, 8)
    event = Tournament(tuple(store.entrants), store.rules, store.seed, store.deals, tuple(store.load()))
    return table(standings(event), 80)


def read_evaluation(path: Path) -> object:
    """What a replay takes from a result."""
    return [rules_of(one, path) for one in read_result(path, "evaluation")["tables"]]


def result_of(kind: str) -> Callable[[Path], object]:
    return lambda path: read_result(path, kind)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Kind]]:
    """A good file of each kind, as the commands write it."""
    folder = tmp_path_factory.mktemp("good")
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")  # the commands set it
        assert (
            main(["evaluate", "greedy", "--seats", "2", "--deals", "8", "--adjust", "--json", "evaluation.json"]) == 0
        )
        words = ["--seats", "2", "--deals", "8", "-o", "event", "--json", "standings.json"]
        assert main(["tournament", *FIELD, *words]) == 0
        assert main(["exact", "greedy", "--seats", "2,3", "--deals", "20", "--json", "exact.json"]) == 0
        assert main(["check-agent", "greedy", "--quick", "--rules", RULES, "--json", "agent-check.json"]) == 0
        found = {
            kind: Kind(Path(f"{kind}.json").read_bytes(), result_of(kind))
            for kind in ("standings", "exact", "agent-check")
        }
        found["evaluation"] = Kind(Path("evaluation.json").read_bytes(), read_evaluation)
        setup = Path("event/tournament.json").read_bytes()
        found["tournament"] = Kind(setup, lambda path: read_setup(path.parent), "tournament.json")
        pairing = next(Path("event/pairings").glob("greedy_among_random*"))
        found["pairing"] = Kind(pairing.read_bytes(), read_event, f"pairings/{pairing.name}")
        found["game"] = Kind(a_game(), lambda path: Game.from_json(path.read_text(encoding="utf-8", errors="replace")))
        rules = yaml.safe_dump({**Rules.of("bank").to_dict(), "preset": "bank"}, sort_keys=False)
        found["rules"] = Kind(rules.encode(), Rules.from_file, "rules.yaml")
        config = (Path(__file__).parents[1] / "configs/train/universal.yaml").read_bytes()
        found["config"] = Kind(config, read_config, "config.yaml")
        lines = [{"decisions": 100 * k, "eval/greedy/first_out_2": 0.5, "train/value_loss": 1e-3} for k in range(20)]
        found["metrics"] = Kind("\n".join(map(json.dumps, lines)).encode(), _read_metrics, "metrics.jsonl")
        write_checkpoint("checkpoint", tiny_network(0).state_dict(), [Rules.of(RULES)], NETWORK)
        manifest = Path("checkpoint/manifest.json").read_bytes()
        found["manifest"] = Kind(manifest, lambda path: make_bot(str(path.parent)), "manifest.json")
    yield found
    shutil.rmtree(folder)


def a_game() -> bytes:
    game = Game.deal("first_out", 4)
    for _ in range(12):
        game.play(game.legal_actions()[0])
    return game.to_json().encode()


# --- what is done to a file ------------------------------------------------------------------------------------------

CONTROL = "".join(map(chr, [*range(32), 127, 0x85, 0x9B, 0x202E, 0x2028])) + "\x1b[2J\x1b]0;title\x07"
HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2.5, -0.0, 10**18, 2**63, 2**64, -(2**70), 10**400, 1e308, -1e308, 5e-324,
    float("nan"), float("inf"), float("-inf"), "", "x", "3", CONTROL, "x" * 100_000, "\ud800", "$\\frac{1$",
    "../../etc", "os:getcwd", "/dev/zero", "<script>", "%s%n{0}", [], {}, [[]], [None] * 1000, {"": None},
    {CONTROL: CONTROL}, [0] * 9_000, ["x"] * 300, {"a": {"b": {}}}, "2024-01-01", "9" * 5000,
)  # fmt: skip
BOMB = ["a: &a [x, x, x, x, x, x, x, x, x]"]
BOMB += [f"{one}: &{one} [{', '.join([f'*{chr(ord(one) - 1)}'] * 9)}]" for one in "bcdefgh"]
TEXTS = (
    "", "\ufeff", "null", "[]", "{}", "0", '"text"', "[" * 100_000, '{"a":' * 50_000, "- " * 10_000, "? " * 10_000,
    "[" * 500 + "]" * 500, "[" * 29_000, "{a: " * 7_000, "[[" + "[], " * 7_000,
    "9" * 5000, "1e999", "NaN", "-Infinity", "0x" + "f" * 20_000, "1:" * 9_000 + "1",
    "\n".join(BOMB), "a: &a [*a]", "<<: {<<: {<<: {a: 1}}}", "!!python/object/apply:os.getcwd []", "!!timestamp x",
    "!!bool x", "!!int x", "0001-01-01 00:00:00 +23:59", "2001-99-99", "%YAML 9.9\n---\na: 1", "a: 1\n---\nb: 2",
    "\x00", "\x1b[2J", "a" * 6_000_000, "[" + "[]," * 1_200_000, '{"format": ' * 300 + "3" + "}" * 300, "a: b: c",
    "\t- x",
)  # fmt: skip


def places(node: Any, levels: int = 20) -> list[tuple[Any, Any]]:
    """Every value inside a structure, but the deepest ones, as what holds it and the key."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) and levels else ()
    return [place for key in keys for place in ((node, key), *places(node[key], levels - 1))]


def change_value(content: Any, rng: random.Random) -> None:
    """Delete, rename, replace, repeat or wrap one value."""
    found = places(content)
    if not found:
        return
    node, key = rng.choice(found)
    what = rng.randrange(8)
    if what == 0:
        del node[key]
    elif what == 1 and isinstance(node, dict):
        node[rng.choice(["", "format", "kind", CONTROL, f"{key}_"])] = node.pop(key)
    elif what == 2:
        node[key] = deep(rng.choice([50, 600, 3000]))
    elif what == 3 and isinstance(node[key], list):
        node[key] = node[key] * rng.choice([2, 50])
    elif what == 4 and isinstance(node[key], int | float) and not isinstance(node[key], bool):
        node[key] = node[key] * rng.choice([-1, 2, 1e6]) + rng.choice([-1, 0, 1])
    elif what == 5:
        node[key] = copy.deepcopy(rng.choice(found)[0])
    else:
        node[key] = copy.deepcopy(rng.choice(HOSTILE))


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def change_bytes(data: bytes, rng: random.Random) -> bytes:
    """Cut, overwrite, repeat, or put words in the place of a number."""
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice([1, 3, 40]))
    what = rng.randrange(5)
    if what == 0:
        return data[:start]
    if what == 1:
        return data[:start] + rng.randbytes(end - start) + data[end:]
    if what == 2:
        return data[:end] + data[start:]
    words = (
        b"NaN",
        b"Infinity",
        b"1e999",
        b"-0",
        b"0x1F",
        b"9" * 5000,
        b".nan",
        b"*a",
        b"!!x",
        b"null",
        b"\x1b",
        b"\xff",
    )
    return data[:start] + rng.choice(words) + data[end:]


def repeat_key(data: bytes, rng: random.Random) -> bytes:
    """A key that stands twice, the second time with another value."""
    word = rng.choice(["format", "kind", "seed", "tables", "rules", "preset", "deals", "hands"])
    value = json.dumps(rng.choice([None, 0, "x", [], {}]))
    if data.lstrip().startswith(b"{"):
        return data.replace(b"{", f'{{"{word}": {value}, "{word}": {value}, '.encode(), 1)
    return data + f"\n{word}: {value}\n{word}: {value}\n".encode()


def mutated(kind: Kind, rng: random.Random) -> bytes:
    """A file of a kind that is not what it should be."""
    roll = rng.random()
    if roll < 0.1:
        return rng.choice(TEXTS).encode(errors="surrogatepass")
    if roll < 0.3:
        return change_bytes(kind.content, rng)
    if roll < 0.35:
        return repeat_key(kind.content, rng)
    lines = kind.name.endswith(".jsonl")
    content = [json.loads(line) for line in kind.content.splitlines()] if lines else yaml.safe_load(kind.content)
    with contextlib.suppress(RecursionError):  # what is nested too deeply to be changed or written
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            change_value(content, rng)
        texts = [json.dumps(one, ensure_ascii=rng.random() < 0.5) for one in (content if lines else [content])]
        return "\n".join(texts).encode(errors="surrogatepass")
    return b"[" * 5000


# --- what is found ---------------------------------------------------------------------------------------------------


def is_own(error: ValueError) -> bool:
    """Whether an error is the project's own, in one line for people."""
    named = type(error) is ValueError or type(error).__module__.startswith("devyatka_env")
    return named and str(error).isprintable() and 0 < len(str(error)) < 1500


@contextlib.contextmanager
def hang_guard() -> Iterator[None]:
    """An error instead of a test that never ends, after far more processor time than anything here takes."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"still at work after {HANG_SECONDS} s")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextlib.contextmanager
def traced(limit: int = MOST_BYTES) -> Iterator[None]:
    """No more memory is taken at any time."""
    tracemalloc.start()
    try:
        yield
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < limit


def attempt(kind: Kind, path: Path) -> str | None:
    """Read a file; what is wrong with how that went, "" for a proper refusal, ``None`` where it was read."""
    try:
        with hang_guard():
            kind.read(path)
    except ValueError as error:
        return "" if is_own(error) else f"{error!r:.400}"
    except BaseException as error:  # whatever comes out is what is looked for
        return f"{type(error).__name__}: {error!s:.400}"
    return None


def fuzz(kind: Kind, folder: Path, seed: str, count: int) -> None:
    """Read that many changed files; complain of all that went wrong, with what makes them again."""
    path = folder / kind.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(kind.content)
    kind.read(path)  # so that nothing is loaded or compiled later
    found: dict[str, str | None] = {}
    seconds = 0.0
    for number in range(count):
        path.write_bytes(mutated(kind, random.Random(f"{seed} {number}")))
        start = time.process_time()
        found[f"{seed} {number}"] = attempt(kind, path)
        seconds += time.process_time() - start
    wrong = [f"{key}: {what}" for key, what in found.items() if what]
    assert not wrong, "\n".join(wrong)
    assert "" in found.values() or kind.read is _read_metrics  # that leaves damaged lines out
    assert seconds < SECONDS * max(count, 100) / 100


KINDS = (
    "evaluation",
    "standings",
    "exact",
    "agent-check",
    "tournament",
    "pairing",
    "game",
    "rules",
    "config",
    "metrics",
)
# Manifests are read by `bots.checkpoint`; to be switched on when that reads through the same layer.
MANIFESTS_ON = True
MANIFESTS = pytest.mark.skipif(not MANIFESTS_ON, reason="manifests do not go through the reading layer yet")


@pytest.mark.parametrize("name", KINDS)
def test_fuzz__damaged_files_are_refused_in_one_line(name: str, kinds: dict[str, Kind], tmp_path: Path) -> None:
    fuzz(kinds[name], tmp_path, name, 30)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_fuzz__two_thousand_damaged_files(name: str, kinds: dict[str, Kind], tmp_path: Path) -> None:
    with traced():  # of all files together, which is more than of each
        fuzz(kinds[name], tmp_path, f"long {name}", 2000 // len(KINDS))


def with_weights(kinds: dict[str, Kind], folder: Path) -> Kind:
    """Manifests beside the weights that they name."""
    write_checkpoint(folder, tiny_network(0).state_dict(), [Rules.of(RULES)], NETWORK)
    return kinds["manifest"]


@MANIFESTS
def test_fuzz__damaged_manifests(kinds: dict[str, Kind], tmp_path: Path) -> None:
    fuzz(with_weights(kinds, tmp_path / "checkpoint"), tmp_path / "checkpoint", "manifest", 30)


@MANIFESTS
@pytest.mark.slow
def test_fuzz__many_damaged_manifests(kinds: dict[str, Kind], tmp_path: Path) -> None:
    fuzz(with_weights(kinds, tmp_path / "checkpoint"), tmp_path / "checkpoint", "long manifest", 200)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_fuzz__texts_made_to_hurt(text: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(text.encode(errors="surrogatepass"))
    for read in (read_json, read_yaml):
        with traced():
            assert not attempt(Kind(b"", read), path)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["[" * 900 + "]" * 900 + ",", '{"":{"":{"":{}}}},', "[],", '"ab",', "0.1,", '"ж",'])
def test_read_json__the_largest_file_takes_no_more_memory_than_allowed(text: str, tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_text("[" + text * ((MAX_BYTES - 10) // len(text.encode())) + "0]", encoding="utf-8")
    with traced():
        read_json(path)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["- {a: 1}\n", "- [x]\n", "- 'y'\n", "a1: ", "- - - - x\n", "? b\n: c\n", "#\n"])
def test_read_yaml__the_largest_file_takes_no_more_memory_than_allowed(text: str, tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text(text * (MAX_YAML_BYTES // len(text)), encoding="utf-8")
    with traced():
        assert not attempt(Kind(b"", read_yaml), path)
