"""What the commands write, held against the schemas that ship, by a full JSON Schema validator."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from devyatka_env.evaluation.results import KINDS, SCHEMAS


def raw_schema(name: str) -> dict[str, Any]:
    """A schema as its file has it."""
    return dict(json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8")))


ALL = ("common", *KINDS)
_REGISTRY: Registry[Any] = Registry().with_resources(
    [(f"{name}.json", Resource.from_contents(raw_schema(name))) for name in ALL]
)


def validator(kind: str) -> Draft202012Validator:
    """The validator of a kind."""
    return Draft202012Validator(raw_schema(kind), registry=_REGISTRY)


def assert_valid(value: object, kind: str) -> None:
    """A value has all keys of its kind and no other ones, each of its type."""
    errors = [f"{error.json_path}: {error.message[:300]}" for error in validator(kind).iter_errors(value)]
    assert errors == []
