"""Result files: JSON that says what was measured, and how to measure it again. See docs/evaluation.md."""

from __future__ import annotations

import dataclasses
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from devyatka_env._files import FileFormatError, quoted, read_json, shown, write_whole
from devyatka_env._schema import Schema, check, load
from devyatka_env.bots import bot_names
from devyatka_env.bots.checkpoint import git_commit, package_versions
from devyatka_env.bots.imported import is_import
from devyatka_env.bots.parameters import SEPARATOR
from devyatka_env.engine.seeds import WORD_SCHEME, seed_value
from devyatka_env.evaluation.arena import Comparison, Difference, Evaluation
from devyatka_env.evaluation.stats import Estimate
from devyatka_env.rules import Rules, RulesError
from devyatka_env.views import observation_layout

# Rises when an older reader could misread a file. 2 was that of release 0.1, whose bots drew other random words.
FORMAT = 3
SCHEMAS = Path(__file__).parent / "schema"
KINDS = tuple(sorted(path.stem for path in SCHEMAS.glob("*.json") if path.stem != "common"))


class ResultError(FileFormatError):
    """A file that is no result of the kind asked for."""


@cache
def schema_of(kind: str) -> Schema:
    """The schema of a kind of `KINDS`: what ``schema/KIND.json`` says, without references."""
    return load(SCHEMAS / f"{kind}.json")


# --- writing ---------------------------------------------------------------------------------------------------------


def header(kind: str) -> dict[str, Any]:
    """What every result file starts with: its format and kind, what made it when, and whence its bots' words."""
    return {
        "format": FORMAT,
        "kind": kind,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), **package_versions()},
        "commit": git_commit() or None,
        "words": WORD_SCHEME,
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
        "seed": seed_value(first.seed),
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
    """Write a result file; what stood there stays whole until the new one is.

    Raises:
        OSError: it cannot be written.
    """
    write_whole(path, json.dumps(result, indent=1, ensure_ascii=False) + "\n")


# --- reading ---------------------------------------------------------------------------------------------------------


def read_result(path: str | Path, kind: str) -> dict[str, Any]:
    """Read a result file of one kind; every value is of the type and in the range that the kind's schema says.

    Raises:
        ResultError: unreadable, of another kind, of a format that this version does not read, or a value that no such
            file has.
    """
    if kind not in KINDS:
        raise ResultError(f"there is no kind of result {kind!r}; the kinds are {', '.join(KINDS)}")
    try:
        result = read_json(path)
    except OSError as error:
        raise ResultError(f"cannot read the result {path}: {error.strerror or error}") from error
    except FileFormatError as error:
        raise ResultError(f"cannot read the result {error}") from error
    _check_format(result, path, kind)
    try:
        check(result, schema_of(kind), str(path))
    except FileFormatError as error:
        raise ResultError(str(error)) from error
    return dict(result)


def _check_format(result: object, path: str | Path, kind: str) -> None:
    values = result if isinstance(result, dict) else {}
    found_kind, found = values.get("kind"), values.get("format")
    if found_kind != kind:
        raise ResultError(f"{path} is no result of kind {kind!r}: it has {quoted(found_kind)}")
    if found == 2:
        raise ResultError(
            f"{path} was made by release 0.1 (format 2), whose bots drew other random words; this release reads and"
            f" goes on with format {FORMAT}: make it anew"
        )
    if type(found) is not int or found != FORMAT:
        raise ResultError(f"{path} has format {quoted(found)}; this release reads format {FORMAT}")


def check_words(result: Mapping[str, Any], path: str | Path) -> None:
    """Refuse a result that cannot be played again or gone on with, since its bots' words were drawn in another way.

    Raises:
        ResultError: it is such a one.
    """
    if result["words"] != WORD_SCHEME:
        raise ResultError(
            f"the bots of {path} drew their random words by {shown(result['words'])}, in this release they do by"
            f" {WORD_SCHEME}: it cannot be played again or gone on with"
        )


def rules_of(values: Mapping[str, Any], path: str | Path) -> Rules:
    """The rule set of a part of a result (`rules_values`).

    Raises:
        ResultError: it cannot be played, or is not the one that its fingerprint says.
    """
    try:
        rules = Rules.of(values["rules"])
    except RulesError as error:
        raise ResultError(f"{path}: rules: {shown(str(error), 300)}") from error
    if rules.fingerprint != values["rules_fingerprint"]:
        raise ResultError(
            f"{path} has rules_fingerprint {values['rules_fingerprint']}, but its rules have {rules.fingerprint}"
        )
    return rules


def named_code(names: Iterable[str]) -> list[str]:
    """Those of a file's names of bots that stand for somebody's code: to make such a bot would be to run it.

    Code is run on the word of the user alone, never on that of a file; all other names only look something up.
    """
    return [name for name in dict.fromkeys(names) if is_import(name) and name.split(SEPARATOR)[0] not in bot_names()]
