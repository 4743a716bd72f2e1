"""Result files: JSON that says what was measured, and how to measure it again. See docs/evaluation.md."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from devyatka_env.bots.checkpoint import git_commit, package_versions
from devyatka_env.evaluation.arena import Comparison, Difference, Evaluation
from devyatka_env.evaluation.stats import Estimate
from devyatka_env.rules import Rules
from devyatka_env.views import observation_layout

FORMAT = 2


class ResultError(ValueError):
    """A file that is no result of the kind asked for."""


def header(kind: str) -> dict[str, Any]:
    """What every result file starts with: its format and kind, and what made it when."""
    return {
        "format": FORMAT,
        "kind": kind,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": package_versions(),
        "commit": git_commit(),
    }


def rules_values(rules: Rules) -> dict[str, Any]:
    """A rule set, its fingerprint, and the hash of the observation layout of its deck."""
    return {
        "rules": rules.to_dict(),
        "rules_text": str(rules),
        "rules_fingerprint": rules.fingerprint,
        "layout_hash": observation_layout(rules.deck.num_cards).hash,
    }


def evaluation_result(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Comparisons, one a rule set, as a result of kind ``evaluation``."""
    return {**header("evaluation"), "tables": [_table(one) for one in comparisons]}


def _table(comparison: Comparison) -> dict[str, Any]:
    first = comparison.evaluations[0]
    return {
        **rules_values(first.rules),
        "seed": first.seed,
        "against": list(first.against),
        "seconds": round(comparison.seconds, 4),
        "candidates": [_evaluation(one) for one in comparison.evaluations],
        "differences": [_difference(one) for one in comparison.differences],
    }


def _evaluation(one: Evaluation) -> dict[str, Any]:
    failure = one.failure and dataclasses.asdict(one.failure)
    adjusted = one.adjusted and {
        **estimate_values("win_rate", one.adjusted.mean),
        "variance_ratio": one.adjusted.variance_ratio,
        "explained": one.adjusted.explained,
        "deals": one.adjusted.count,
    }
    return {
        "candidate": one.candidate,
        "deals": one.deals,
        "games": one.games,
        "seconds": round(one.seconds, 4),
        "interrupted": one.interrupted,
        "cheats": list(one.cheats),
        "failure": failure,
        "adjusted": adjusted,
        **_estimates(one),
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "candidate": one.candidate,
        "reference": one.reference,
        **_estimates(one),
        "p_value": one.p_value,
        "p_adjusted": one.p_adjusted,
    }


def _estimates(one: Evaluation | Difference) -> dict[str, Any]:
    """Every estimate of a dataclass, as ``name`` and ``name_ci95``."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(one):
        value = getattr(one, field.name)
        if isinstance(value, Estimate):
            values |= estimate_values(field.name, value)
        elif isinstance(value, tuple) and all(isinstance(part, Estimate) for part in value) and value:
            values[field.name] = [number(part.mean) for part in value]
            values[f"{field.name}_ci95"] = [[number(part.low), number(part.high)] for part in value]
    return values


def estimate_values(name: str, value: Estimate) -> dict[str, Any]:
    """An estimate as ``name`` and ``name_ci95``."""
    return {name: number(value.mean), f"{name}_ci95": [number(value.low), number(value.high)]}


def number(value: float) -> float | None:
    """A float as JSON has it: NaN and infinity become null."""
    return value if abs(value) < float("inf") else None


def write_result(result: Mapping[str, Any], path: Path) -> None:
    """Write a result file; what stood there stays whole until the new one is."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)


def read_result(path: Path, kind: str) -> dict[str, Any]:
    """Read a result file of one kind.

    Raises:
        ResultError: unreadable, of another kind, or of a format that this version does not read.
    """
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResultError(f"cannot read the result {path}: {error}") from error
    found = (result.get("kind"), result.get("format")) if isinstance(result, dict) else (None, None)
    if found != (kind, FORMAT):
        raise ResultError(
            f"{path} is no result of kind {kind!r} and format {FORMAT}: it has {found[0]!r}, {found[1]!r}"
        )
    return dict(result)
