"""Checkpoints: a folder with ``manifest.json`` and ``weights.safetensors``. Tensors and JSON only; nothing is executed.

The manifest's format number rises only when an older reader could misread a file; every later release reads format 1.

A name resolves at every moment. New weights are written beside those that the manifest names, under the other of two
names; then the manifest is replaced, in one step; then the old weights go. Release 0.1 renamed whole folders instead:
where it was killed between two renames, the checkpoint stands at ``NAME.old``, and is found there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devyatka_env import _files, _package
from devyatka_env.rules import Rules, RulesError
from devyatka_env.views.observation import LAYOUT_VERSION, observation_layout

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
MANIFEST, WEIGHTS = "manifest.json", "weights.safetensors"
# The name of the weights while the manifest names the first: one of them is always the file that nobody reads.
OTHER_WEIGHTS = "weights-2.safetensors"
# Bytes of a manifest; those of large runs have some thousands.
_MOST_BYTES = 4_000_000
_PACKAGES = (
    "devyatka-env",
    "numpy",
    "numba",
    "gymnasium",
    "pettingzoo",
    "torch",
    "stable-baselines3",
    "safetensors",
)


class CheckpointError(ValueError):
    """A checkpoint that cannot be read, or that was made for other rules or another observation layout."""


@dataclass(frozen=True)
class Manifest:
    """What a checkpoint says about itself.

    Attributes:
        rules: the rule sets it was trained for; it plays these.
        network: the network's description (`network.build_network`).
        layout_hash: hash of the observation layout that its input follows.
        layout_version: version of that layout.
        num_cards: deck size.
        steps: decisions it was trained on.
        seed: seed of the training run.
        training: the resolved training config.
        evaluation: measured strength, as the evaluation module writes it.
        versions: package versions at the time of writing.
        commit: git commit of the training code, or "" outside a clone.
        created: time of writing, ISO 8601, UTC.
        weights_sha256: digest of the weights file.
        weights_file: its name, `WEIGHTS` or `OTHER_WEIGHTS`.
    """

    rules: tuple[Rules, ...]
    network: Mapping[str, Any]
    layout_hash: str
    layout_version: int
    num_cards: int
    steps: int = 0
    seed: int = 0
    training: Mapping[str, Any] = field(default_factory=dict)
    evaluation: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str = ""
    created: str = ""
    weights_sha256: str = ""
    weights_file: str = WEIGHTS

    def to_dict(self) -> dict[str, Any]:
        """The manifest as JSON values; the weights' name stands there only where release 0.1 would not find them."""
        values = {key: getattr(self, key) for key in self.__dataclass_fields__ if key != "rules"}
        if self.weights_file == WEIGHTS:
            del values["weights_file"]
        rules = [{**rules.to_dict(), "fingerprint": rules.fingerprint} for rules in self.rules]
        return {"format": FORMAT, "rules": rules, **values}


def write_checkpoint(
    folder: str | Path,
    weights: Mapping[str, Tensor],
    rules: Sequence[Rules],
    network: Mapping[str, Any],
    *,
    steps: int = 0,
    seed: int = 0,
    training: Mapping[str, Any] | None = None,
    evaluation: Mapping[str, Any] | None = None,
) -> Manifest:
    """Write a checkpoint folder, whole or not at all: readers find the older one until the new one is complete.

    Args:
        folder: where it shall stand.
        weights: the network's ``state_dict``.
        rules: the rule sets it was trained for, all of one deck size.
        network: the network's description.
        steps: decisions trained on.
        seed: seed of the run.
        training: resolved training config.
        evaluation: measured strength.
    """
    from safetensors.torch import save

    folder = Path(folder)
    num_cards = rules[0].deck.num_cards
    sizes = sorted({one.deck.num_cards for one in rules})
    if len(sizes) > 1:
        raise ValueError(f"a network plays one deck size, these rules have {sizes}")
    data = save({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()})
    manifest = Manifest(
        rules=tuple(rules),
        network=dict(network),
        layout_hash=observation_layout(num_cards).hash,
        layout_version=LAYOUT_VERSION,
        num_cards=num_cards,
        steps=steps,
        seed=seed,
        training=dict(training or {}),
        evaluation=dict(evaluation or {}),
        versions=package_versions(),
        commit=git_commit(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        weights_sha256=hashlib.sha256(data).hexdigest(),
        weights_file=_unused_name(folder),
    )
    text = json.dumps(manifest.to_dict(), indent=1, ensure_ascii=False) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    _files.write_whole(folder / manifest.weights_file, data)
    _files.write_whole(folder / MANIFEST, text)
    (folder / (OTHER_WEIGHTS if manifest.weights_file == WEIGHTS else WEIGHTS)).unlink(missing_ok=True)
    return manifest


def _unused_name(folder: Path) -> str:
    """The name under which weights can be written beside those that the manifest names."""
    try:
        content = _read_content(folder / MANIFEST)
    except (OSError, CheckpointError):
        return WEIGHTS
    return WEIGHTS if content.get("weights_file") == OTHER_WEIGHTS else OTHER_WEIGHTS


def remove_checkpoint(folder: Path) -> None:
    """Remove a checkpoint; killed in the middle, it leaves a folder that is no checkpoint, not a damaged one.

    Raises:
        OSError: it cannot be removed.
    """
    if folder.is_symlink():  # what it leads to may be somebody's
        folder.unlink()
        return
    (folder / MANIFEST).unlink(missing_ok=True)
    _files.sync_folder(folder)
    shutil.rmtree(folder)


def resolve(folder: str | Path) -> Path:
    """Where the checkpoint of a name stands: at ``NAME.old`` where release 0.1 was killed between its two renames."""
    folder = Path(folder)
    old = folder.with_name(folder.name + ".old") if folder.name else folder
    return old if not (folder / MANIFEST).exists() and (old / MANIFEST).exists() else folder


def read_manifest(folder: str | Path) -> Manifest:
    """Read and check a checkpoint's manifest.

    Raises:
        CheckpointError: no checkpoint there, an unknown format, a missing or wrong field, or another layout.
    """
    path = resolve(folder) / MANIFEST
    try:
        content = _read_content(path)
    except OSError as error:
        raise CheckpointError(f"no checkpoint at {folder}: {error.strerror or error} ({MANIFEST})") from error
    missing = sorted(set(_KINDS) - {"weights_file"} - set(content))
    if missing:
        raise CheckpointError(f"{path} lacks {', '.join(missing)}")
    values = {key: content[key] for key in _KINDS if key in content}
    for key, value in values.items():
        _check_kind(path, key, value)
    try:
        values["rules"] = tuple(_read_rules(entry) for entry in content["rules"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CheckpointError(f"{path}: rules: {_files.shown(str(error), 400)}") from error
    manifest = Manifest(**values)
    if not manifest.rules:
        raise CheckpointError(f"{path} names no rules")
    for rules in manifest.rules:
        if rules.deck.num_cards != manifest.num_cards:
            raise CheckpointError(
                f"{path}: num_cards is {manifest.num_cards!r}, but {rules} has {rules.deck.num_cards} cards"
            )
    _check_layout(manifest, path)
    return manifest


def _read_content(path: Path) -> Mapping[str, Any]:
    """A manifest as JSON values, of a format that this release knows.

    Raises:
        OSError: it cannot be read.
        CheckpointError: too large, no JSON, or of another format.
    """
    try:
        content = _files.parse_json(_files.read_bytes(path, _MOST_BYTES), str(path))
    except _files.FileFormatError as error:
        raise CheckpointError(str(error)) from error
    found = content.get("format") if isinstance(content, Mapping) else content
    if not isinstance(content, Mapping) or type(found) is not int or found != FORMAT:  # true and 1.0 are no number 1
        raise CheckpointError(f"{path} has format {_files.shown(found)}; this release reads format {FORMAT}")
    return content


# By field: what it must be, and what an error calls that.
_KINDS: Mapping[str, tuple[type, str]] = {
    "rules": (list, "a list"),
    "network": (Mapping, "a mapping"),
    "layout_hash": (str, "a text"),
    "layout_version": (int, "a whole number"),
    "num_cards": (int, "a whole number"),
    "steps": (int, "a whole number"),
    "seed": (int, "a whole number"),
    "training": (Mapping, "a mapping"),
    "evaluation": (Mapping, "a mapping"),
    "versions": (Mapping, "a mapping"),
    "commit": (str, "a text"),
    "created": (str, "a text"),
    "weights_sha256": (str, "a text"),
    "weights_file": (str, "a text"),
}


def _check_kind(path: Path, key: str, value: object) -> None:
    """Refuse a field of the wrong kind, and weights that stand anywhere but beside their manifest."""
    kind, name = _KINDS[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise CheckpointError(f"{path}: {key} must be {name}, not {_files.shown(value)}")
    if key == "weights_file" and value not in (WEIGHTS, OTHER_WEIGHTS):
        raise CheckpointError(f"{path}: weights_file must be {WEIGHTS} or {OTHER_WEIGHTS}, not {_files.shown(value)}")
    if isinstance(value, int) and not 0 <= value < 2**64:
        raise CheckpointError(f"{path}: {key} must be from 0 to 2**64 - 1, not {_files.shown(value)}")


def _read_rules(entry: Mapping[str, Any]) -> Rules:
    values = dict(entry)
    fingerprint = values.pop("fingerprint")
    rules = Rules.of(values)
    if rules.fingerprint != fingerprint:
        raise RulesError(
            f"trained under rules {fingerprint}, which this release reads as {rules.fingerprint} ({rules})"
        )
    return rules


def _check_layout(manifest: Manifest, path: Path) -> None:
    layout = observation_layout(manifest.num_cards)
    if manifest.layout_hash != layout.hash:
        raise CheckpointError(
            f"{path} was trained on observation layout version {manifest.layout_version} ({manifest.layout_hash});"
            f" this release has version {LAYOUT_VERSION} ({layout.hash})"
        )


def read_weights(folder: str | Path, manifest: Manifest) -> dict[str, Tensor]:
    """Read a checkpoint's tensors; if it has been replaced since its manifest was read, those of the new one.

    Raises:
        CheckpointError: the weights file is missing, damaged, or not the one the manifest was written with; or the new
            checkpoint is of another network or other rules.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        data = _weights_data(folder, manifest)
    except CheckpointError:
        now = read_manifest(folder)
        if now.weights_sha256 == manifest.weights_sha256:
            raise
        if (now.network, now.rules) != (manifest.network, manifest.rules):
            raise CheckpointError(f"{folder} was replaced by another checkpoint while it was read") from None
        data = _weights_data(folder, now)
    try:
        weights: dict[str, Tensor] = load(data)
    except SafetensorError as error:
        path = resolve(folder) / manifest.weights_file
        raise CheckpointError(f"{path} is not a safetensors file: {error}") from error
    return weights


def _weights_data(folder: str | Path, manifest: Manifest) -> bytes:
    """The weights file, as the manifest has its digest."""
    path = resolve(folder) / manifest.weights_file
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or error}") from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != manifest.weights_sha256:
        raise CheckpointError(f"{path} has SHA-256 {digest}, its manifest says {_files.shown(manifest.weights_sha256)}")
    return data


def package_versions() -> dict[str, str]:
    """Versions of the packages that matter for a result; those not installed are left out."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def git_commit() -> str:
    """The commit of the clone this code runs from, with ``+`` when files differ from it; "" where nobody can tell."""
    root = _package.FOLDER.parent
    if not (root / ".git").exists():
        return ""

    def git(*words: str) -> str:
        run = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
        return run.stdout.strip()

    with suppress(OSError):  # no such program
        commit = git("rev-parse", "HEAD")
        return commit + ("+" if commit and git("status", "--porcelain", "--untracked-files=no") else "")
    return ""
