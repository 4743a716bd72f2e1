"""Checkpoints: a folder with ``manifest.json`` and ``weights.safetensors``. Tensors and JSON only; nothing is executed.

The manifest's format number rises only when an older reader could misread a file; every later release reads format 1.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devyatka_env.rules import Rules, RulesError
from devyatka_env.views.observation import LAYOUT_VERSION, observation_layout

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
MANIFEST, WEIGHTS = "manifest.json", "weights.safetensors"
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

    def to_dict(self) -> dict[str, Any]:
        """The manifest as JSON values."""
        values = {key: getattr(self, key) for key in self.__dataclass_fields__ if key != "rules"}
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
    """Write a checkpoint folder, whole or not at all: an older one of that name stays until the new one is complete.

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
    )
    fresh = folder.with_name(folder.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    (fresh / WEIGHTS).write_bytes(data)
    text = json.dumps(manifest.to_dict(), indent=1, ensure_ascii=False)
    (fresh / MANIFEST).write_text(text + "\n", encoding="utf-8")
    old = folder.with_name(folder.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
    return manifest


def read_manifest(folder: str | Path) -> Manifest:
    """Read and check a checkpoint's manifest.

    Raises:
        CheckpointError: no checkpoint there, an unknown format, a missing field, or another observation layout.
    """
    path = Path(folder) / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"no checkpoint at {folder}: {error.strerror or error} ({MANIFEST})") from error
    except ValueError as error:
        raise CheckpointError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, Mapping) else content
        raise CheckpointError(f"{path} has format {found!r}; this release reads format {FORMAT}")
    wanted = Manifest.__dataclass_fields__
    missing = sorted(set(wanted) - set(content))
    if missing:
        raise CheckpointError(f"{path} lacks {', '.join(missing)}")
    values = {key: content[key] for key in wanted}
    try:
        values["rules"] = tuple(_read_rules(entry) for entry in content["rules"])
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointError(f"{path}: rules: {error}") from error
    manifest = Manifest(**values)
    if not manifest.rules:
        raise CheckpointError(f"{path} names no rules")
    if not isinstance(manifest.network, Mapping):
        raise CheckpointError(f"{path}: network must be a mapping, not {manifest.network!r}")
    for rules in manifest.rules:
        if rules.deck.num_cards != manifest.num_cards:
            raise CheckpointError(
                f"{path}: num_cards is {manifest.num_cards!r}, but {rules} has {rules.deck.num_cards} cards"
            )
    _check_layout(manifest, path)
    return manifest


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
    """Read a checkpoint's tensors.

    Raises:
        CheckpointError: the weights file is missing, damaged, or not the one the manifest was written with.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    path = Path(folder) / WEIGHTS
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or error}") from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != manifest.weights_sha256:
        raise CheckpointError(f"{path} has SHA-256 {digest}, its manifest says {manifest.weights_sha256}")
    try:
        weights: dict[str, Tensor] = load(data)
    except SafetensorError as error:
        raise CheckpointError(f"{path} is not a safetensors file: {error}") from error
    return weights


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
    """The commit of the clone this code runs from, with ``+`` when files differ from it; "" outside a clone."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""

    def git(*words: str) -> str:
        run = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
        return run.stdout.strip()

    return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
