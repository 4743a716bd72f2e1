"""Checkpoints: round trip, every later release, as a bot by its path, and a clear refusal of every bad file."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import pickle
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from devyatka_env import Game, Rules, make_bot
from devyatka_env.bots import BotError, CheckpointError, PolicyBot, RandomBot, checkpoint
from devyatka_env.bots.checkpoint import (
    MANIFEST,
    OTHER_WEIGHTS,
    WEIGHTS,
    git_commit,
    read_manifest,
    remove_checkpoint,
    write_checkpoint,
)
from devyatka_env.bots.policy import load_network
from devyatka_env.envs import DevyatkaEnv
from devyatka_env.evaluation import evaluate
from devyatka_env.views.observation import observation_layout
from tests.helpers.players import NETWORK, RULES, moments, tiny_network

DATA = Path(__file__).resolve().parents[1] / "data"
Change = Callable[[dict[str, Any]], Any]  # from the content of a manifest to another content


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good checkpoint, written once."""
    folder = tmp_path_factory.mktemp("checkpoints") / "good"
    write_checkpoint(folder, tiny_network().state_dict(), [RULES], NETWORK, steps=10, seed=3)
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    """A copy of it to spoil."""
    return shutil.copytree(template, tmp_path / "good")


def rewrite(folder: Path, change: Change) -> None:
    """Change a manifest in place."""
    content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    (folder / MANIFEST).write_text(json.dumps(change(content)), encoding="utf-8")


def replace_weights(folder: Path, data: bytes) -> None:
    """Put another weights file in place, with the digest that belongs to it."""
    (folder / WEIGHTS).write_bytes(data)
    rewrite(folder, lambda m: {**m, "weights_sha256": hashlib.sha256(data).hexdigest()})


# --- round trip ------------------------------------------------------------------------------------------------------


def test_write__read_gives_back_weights_and_manifest(folder: Path) -> None:
    rules = [RULES, Rules.of("bank", num_players=3, ante=2)]
    evaluation = {"win_rate": 0.5}
    written = write_checkpoint(
        folder,
        tiny_network(1).state_dict(),
        rules,
        NETWORK,
        steps=99,
        seed=5,
        training={"lr": 0.1},
        evaluation=evaluation,
    )
    manifest = read_manifest(folder)
    assert manifest.rules == tuple(rules)
    assert [one.preset for one in manifest.rules] == ["first_out", "bank"]
    assert (manifest.steps, manifest.seed, manifest.num_cards) == (99, 5, 36)
    assert (manifest.training, manifest.evaluation, manifest.network) == ({"lr": 0.1}, evaluation, NETWORK)
    assert manifest.layout_hash == observation_layout(36).hash
    assert manifest.versions["torch"] == torch.__version__
    assert manifest.to_dict() == written.to_dict()
    loaded = PolicyBot.load(folder).network.state_dict()
    for name, tensor in tiny_network(1).state_dict().items():
        torch.testing.assert_close(loaded[name], tensor, rtol=0, atol=0)
    assert sorted(path.name for path in folder.iterdir()) == [MANIFEST, OTHER_WEIGHTS]
    write_checkpoint(folder, tiny_network(2).state_dict(), rules, NETWORK)  # and back again, as release 0.1 reads it
    assert sorted(path.name for path in folder.iterdir()) == [MANIFEST, WEIGHTS]
    assert "weights_file" not in json.loads((folder / MANIFEST).read_text(encoding="utf-8"))


class Killed(BaseException):
    """In the place of a SIGKILL: no handler of `Exception` runs. What `finally` would do is of no matter here."""


OPERATIONS = [(os, "fsync"), (Path, "replace"), (Path, "unlink"), (os, "open"), (Path, "open"), (Path, "mkdir")]


def kill_at(number: int, patch: pytest.MonkeyPatch, error: BaseException) -> Callable[[], int]:
    """Raise an error in the place of the ``number``-th file operation from now on; returns how many there were."""
    count = 0

    def counted(operation: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **keywords: Any) -> Any:
            nonlocal count
            count += 1
            if count >= number:
                raise error  # and in that of all later ones: the dead do not tidy up
            return operation(*arguments, **keywords)

        return run

    for owner, name in OPERATIONS:
        patch.setattr(owner, name, counted(getattr(owner, name)))
    return lambda: count


def test_write__a_failure_keeps_the_old_checkpoint(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(TypeError):  # nothing that JSON could hold
        write_checkpoint(folder, tiny_network(1).state_dict(), [RULES], NETWORK, training={"callback": object()})
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: raise_(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            write_checkpoint(folder, tiny_network(1).state_dict(), [RULES], NETWORK)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    write_checkpoint(folder, tiny_network(1).state_dict(), [RULES], NETWORK)  # what the failures left is no obstacle
    assert [path.name for path in folder.parent.iterdir()] == ["good"]


def raise_(error: BaseException) -> None:
    raise error


def test_write__killed_between_any_two_file_operations_leaves_the_old_or_the_new_checkpoint(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write begins where the last one was killed, under both names of the weights."""
    found, steps, last = [], 10, False
    for number in itertools.count(1):
        before = read_manifest(folder).steps
        with monkeypatch.context() as patch:
            count = kill_at(number, patch, Killed())
            with contextlib.suppress(Killed):
                steps += 1
                write_checkpoint(folder, tiny_network(1).state_dict(), [RULES], NETWORK, steps=steps)
            last = count() < number
        now = read_manifest(folder)
        assert now.steps in (before, steps)
        assert PolicyBot.load(folder).rules == (RULES,)
        found.append(now.steps == steps)
        if last:
            break
    assert found == sorted(found)  # until the new manifest stands, the old one counts
    assert found.count(False) >= 4
    assert found.count(True) >= 3


def test_remove__killed_between_any_two_file_operations_leaves_a_checkpoint_or_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    left = []
    for number in range(1, 4):
        copy = shutil.copytree(folder, tmp_path / str(number))
        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            kill_at(number, patch, Killed())
            remove_checkpoint(copy)
        left.append(sorted(path.name for path in copy.iterdir()) if copy.exists() else [])
        assert (copy / MANIFEST).exists() == (number == 1)
    assert left[0] == [MANIFEST, WEIGHTS]


def test_write__follows_links_and_leaves_them(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    for steps in (20, 30):
        write_checkpoint(link, tiny_network(1).state_dict(), [RULES], NETWORK, steps=steps)
        assert link.is_symlink()
        assert read_manifest(folder).steps == read_manifest(link).steps == steps
        assert PolicyBot.load(link).rules == (RULES,)
    remove_checkpoint(link)  # the link alone
    assert read_manifest(folder).steps == 30


def test_load__a_checkpoint_of_0_1_that_was_killed_between_its_renames_is_found(folder: Path) -> None:
    folder.rename(folder.with_name("good.old"))
    shutil.copytree(folder.with_name("good.old"), folder.with_name("good.new"))
    assert isinstance(make_bot(folder), PolicyBot)
    folder.mkdir()
    (folder / WEIGHTS).write_bytes(b"of a new one that was being written")
    assert read_manifest(folder).steps == 10
    assert PolicyBot.load(folder).rules == (RULES,)
    write_checkpoint(folder, tiny_network(1).state_dict(), [RULES], NETWORK, steps=11)
    assert read_manifest(folder).steps == 11


def test_load__a_checkpoint_that_is_replaced_meanwhile_is_read_anew(folder: Path, tmp_path: Path) -> None:
    old = read_manifest(folder)
    write_checkpoint(folder, tiny_network(1).state_dict(), [RULES], NETWORK, steps=11)
    loaded = load_network(folder, old).state_dict()
    assert all(torch.equal(loaded[key], tensor) for key, tensor in tiny_network(1).state_dict().items())
    write_checkpoint(folder, tiny_network(1).state_dict(), [Rules.of("one_loser")], NETWORK)
    with pytest.raises(CheckpointError, match="was replaced by another checkpoint while it was read"):
        load_network(folder, old)


def test_commit__is_unknown_without_git_and_outside_a_clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(checkpoint._package, "FOLDER", tmp_path / "devyatka_env")
    assert git_commit() == ""  # no repository
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_commit() == ""  # no program
    monkeypatch.setattr(checkpoint._package, "FOLDER", tmp_path / "elsewhere" / "devyatka_env")
    assert git_commit() == ""


def test_write__rules_of_two_deck_sizes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"36.*52|52.*36"):
        write_checkpoint(tmp_path / "x", tiny_network().state_dict(), [RULES, Rules.of("deck_52")], NETWORK)


# --- every later release reads it ------------------------------------------------------------------------------------


def test_load__the_checkpoint_of_format_1_plays_as_when_it_was_written() -> None:
    """Its weights, and the moments, random words and choices, are those that release 0.1 wrote; never made again."""
    frozen = json.loads((DATA / "checkpoint_v1_actions.json").read_text(encoding="utf-8"))
    games = [Game.from_position(row["position"]) for row in frozen]
    views = np.concatenate([game.view(game.turn).record for game in games])
    words = np.array([row["word"] for row in frozen], np.uint64)
    for kind in ("argmax", "sample"):
        bot = PolicyBot.load(DATA / "checkpoint_v1", sample=kind == "sample")
        assert bot.act_batch(views, games[0].rules, words).tolist() == [row[kind] for row in frozen]
    assert len({row["argmax"] for row in frozen}) > 5
    assert any(row["argmax"] != row["sample"] for row in frozen)
    manifest = read_manifest(DATA / "checkpoint_v1")
    assert (manifest.steps, manifest.seed, manifest.rules) == (12345, 7, (games[0].rules,))


# --- as a bot --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_policy_bot__a_network_of_nan_or_infinity_is_refused_by_name(folder: Path, value: float) -> None:
    net = tiny_network()
    with torch.no_grad():
        net.policy_head.bias.fill_(value)
    write_checkpoint(folder, net.state_dict(), [RULES], NETWORK)
    games = moments(5)
    with pytest.raises(CheckpointError, match=r"network of .*good answers NaN or infinite logits"):
        PolicyBot.load(folder).act_batch(games.views(games.all), RULES, games.decision_words(games.all))
    with pytest.raises(BotError, match=r"bot .*good failed \(deal 0"):
        evaluate(make_bot(folder), [RandomBot()] * 3, RULES, deals=3)


def test_policy_bot__does_not_play_rules_it_was_not_trained_for(folder: Path) -> None:
    other = Rules.of("one_loser")
    message = rf"was trained for {RULES} \({RULES.fingerprint}\), not for {other} \({other.fingerprint}\).*any_rules"
    with pytest.raises(CheckpointError, match=message):
        evaluate(make_bot(folder), [RandomBot()] * 3, other, deals=2)
    with pytest.raises(CheckpointError, match=message):
        DevyatkaEnv(other, opponents=folder)
    assert evaluate(make_bot(f"{folder}+any_rules"), [RandomBot()] * 3, other, deals=2).games == 8


@pytest.mark.parametrize("options", ["", "+sample", "+any_rules", "+sample+any_rules", "+any_rules+sample"])
def test_make_bot__reads_the_options_after_the_path(folder: Path, options: str) -> None:
    bot = make_bot(f"{folder}{options}")
    assert isinstance(bot, PolicyBot)
    assert bot.sample == ("sample" in options)
    assert (bot.rules is None) == ("any_rules" in options)
    assert folder.name in bot.name
    assert all(word in bot.name for word in options.split("+"))


def test_make_bot__an_unknown_option_is_part_of_no_path(folder: Path) -> None:
    with pytest.raises(ValueError, match="unknown bot"):
        make_bot(f"{folder}+greedy")


# --- refusals --------------------------------------------------------------------------------------------------------


def drop(key: str) -> Change:
    """A manifest without a field."""
    return lambda manifest: {name: value for name, value in manifest.items() if name != key}


def put(key: str, value: Any) -> Change:
    """A manifest with another value of a field."""
    return lambda manifest: {**manifest, key: value}


def put_rules(**values: Any) -> Change:
    """A manifest with another rule set."""
    return lambda manifest: {**manifest, "rules": [{**manifest["rules"][0], **values}]}


HASH = observation_layout(36).hash
FIELDS = ["rules", "network", "layout_hash", "layout_version", "num_cards", "steps", "seed", "training", "evaluation"]
FIELDS += ["versions", "commit", "created", "weights_sha256"]

DEEP: Any = []
for _ in range(800):
    DEEP = [DEEP]
# By field: values of a wrong kind, of which none may be taken or end in a traceback.
WRONG = {field: [None, True, 1.5, -1, 10**30, "x", ["x"], {"x": 1}, DEEP] for field in [*FIELDS, "weights_file"]}
KINDS = {"rules": list, "network": dict, "training": dict, "evaluation": dict, "versions": dict}

BAD_MANIFESTS: list[tuple[Change, str]] = [
    (put("format", 2), "has format 2; this release reads format 1"),
    (drop("format"), "has format None; this release reads format 1"),
    (lambda manifest: [manifest], r"this release reads format 1"),
    *((drop(key), f"lacks {key}") for key in FIELDS),
    (put("layout_hash", "0" * 16), rf"layout version 1 \({'0' * 16}\); this release has version 1 \({HASH}\)"),
    (put_rules(payoff="lose"), rf"rules: .*under rules {RULES.fingerprint}, which this release reads as"),
    (put_rules(fingerprint="f" * 16), rf"under rules {'f' * 16}, which this release reads as {RULES.fingerprint}"),
    (put_rules(trumps=True), "unknown rule field 'trumps'"),
    (put("rules", []), "names no rules"),
    (put("rules", ["first_out"]), "rules"),
    (put("rules", None), "rules"),
    (put("network", {"kind": "transformer"}), "unknown network kind 'transformer'; the kinds are mlp"),
    (put("network", {"kind": "mlp", "width": 8}), "width"),
    (put("network", {"hidden": [8, 8]}), "unknown network kind None"),
    (put("network", {"kind": ["mlp"]}), "network"),
    (put("network", {"kind": "mlp", "hidden": [8, 9]}), "do not fit network"),
    (put("network", {"kind": "mlp", "hidden": [8]}), "do not fit network"),
    (put("network", {"kind": "mlp", "hidden": []}), "network"),
    (put("network", {"kind": "mlp", "hidden": [-8, 8]}), "network"),
    (put("network", {"kind": "mlp", "hidden": 8}), "network"),
    (put("network", "mlp"), "network"),
    (put("network", None), "network"),
    (put("num_cards", "36"), "layout|num_cards"),
    (put("num_cards", [36]), "layout|num_cards"),
    (put("num_cards", 52), "layout|num_cards"),
    (put("weights_sha256", "0" * 64), f"has SHA-256 [0-9a-f]{{64}}, its manifest says {'0' * 64}"),
]


@pytest.mark.parametrize(("change", "message"), BAD_MANIFESTS, ids=[message[:24] for _, message in BAD_MANIFESTS])
def test_load__a_bad_manifest_is_refused_and_named(folder: Path, change: Change, message: str) -> None:
    rewrite(folder, change)
    with pytest.raises(CheckpointError, match=message) as caught:
        PolicyBot.load(folder)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("field", WRONG)
def test_load__a_field_of_the_wrong_kind_is_one_line_that_names_it(folder: Path, field: str) -> None:
    good = (folder / MANIFEST).read_bytes()
    is_number = field in ("layout_version", "num_cards", "steps", "seed")
    kind = KINDS.get(field, int if is_number else str)
    for value in WRONG[field]:
        if type(value) is kind and kind is not int and field not in ("rules", "weights_file"):
            continue
        rewrite(folder, put(field, value))
        with pytest.raises(CheckpointError, match=field) as caught:
            PolicyBot.load(folder)
        text = str(caught.value)
        assert MANIFEST in text
        assert "\n" not in text
        assert len(text) < 1000
        (folder / MANIFEST).write_bytes(good)


def test_load__deep_and_huge_manifests_are_one_line(folder: Path) -> None:
    for text, message in [("[" * 100_000, "is not JSON: it is nested too deeply"), (" " * 5_000_000, "is larger than")]:
        (folder / MANIFEST).write_text(text, encoding="utf-8")
        with pytest.raises(CheckpointError, match=message):
            PolicyBot.load(folder)


@pytest.mark.parametrize(
    "network",
    [
        {"kind": "mlp", "hidden": [7000, 7000]},
        {"kind": "mlp", "hidden": [1] * 100_000},
        {"kind": "mlp", "hidden": [10**12]},
        {"kind": "suits", "width": 100_000},
        {"kind": "suits", "layers": 10**9},
    ],
    ids=str,
)
def test_load__a_network_that_is_not_that_of_the_weights_is_never_built(folder: Path, network: dict[str, Any]) -> None:
    rewrite(folder, put("network", network))
    start = time.process_time()
    with pytest.raises(CheckpointError, match="do not fit network") as caught:
        PolicyBot.load(folder)
    assert time.process_time() - start < 1  # its orthogonal weights took 20 s
    assert len(str(caught.value)) < 1200


def test_load__rules_of_another_deck_than_the_network_are_refused(folder: Path) -> None:
    other = Rules.of("deck_52")
    rewrite(folder, put("rules", [{**other.to_dict(), "fingerprint": other.fingerprint}]))
    with pytest.raises(CheckpointError, match=r"36.*52|52.*36"):
        PolicyBot.load(folder)


@pytest.mark.parametrize("text", ["", "{", "\udcff", "null", "[]", '"checkpoint"'])
def test_load__a_manifest_that_is_no_json_object_is_refused(folder: Path, text: str) -> None:
    (folder / MANIFEST).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(CheckpointError, match=r"manifest\.json (is not JSON|has format)"):
        PolicyBot.load(folder)


def test_load__a_missing_part_is_named(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    with pytest.raises(CheckpointError, match=r"cannot read .*weights\.safetensors: No such file"):
        PolicyBot.load(folder)
    (folder / MANIFEST).unlink()
    with pytest.raises(CheckpointError, match=r"no checkpoint at .*good: No such file"):
        PolicyBot.load(folder)


def test_load__tampered_weights_are_refused(folder: Path) -> None:
    data = bytearray((folder / WEIGHTS).read_bytes())
    data[-1] ^= 1
    (folder / WEIGHTS).write_bytes(data)
    with pytest.raises(CheckpointError, match="SHA-256"):
        PolicyBot.load(folder)


def test_load__what_is_no_safetensors_file_is_refused(folder: Path) -> None:
    good = (folder / WEIGHTS).read_bytes()
    for data in (b"", good[:100], b"\xff" * 64, good[:-4]):
        replace_weights(folder, data)
        with pytest.raises(CheckpointError, match="is not a safetensors file"):
            PolicyBot.load(folder)


class Bomb:
    """Unpickling this writes a file."""

    def __init__(self, fuse: Path) -> None:
        self.fuse = fuse

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.fuse, "boom")


def test_load__nothing_is_ever_unpickled(folder: Path, tmp_path: Path) -> None:
    fuse = tmp_path / "exploded"
    bomb = pickle.dumps(Bomb(fuse))
    pickle.loads(bomb)
    assert fuse.exists()  # the bomb is live
    fuse.unlink()
    for name in ("weights.pt", "policy.pth", "pytorch_model.bin", "data.pkl", "manifest.pkl"):
        (folder / name).write_bytes(bomb)
    PolicyBot.load(folder)
    replace_weights(folder, bomb)
    with pytest.raises(CheckpointError, match="is not a safetensors file"):
        PolicyBot.load(folder)
    (folder / MANIFEST).write_bytes(bomb)
    with pytest.raises(CheckpointError, match="is not JSON"):
        PolicyBot.load(folder)
    assert not fuse.exists()
