"""JSON Schemas (draft 2020-12): the keywords that the schemas of this package use, and errors that say where.

A schema is what a file may hold; what a reader does not know it leaves alone, so unknown keys are no error here. The
tests hold all that is written against the same schemas by a full validator, to which they are.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devyatka_env._files import FileFormatError, quoted, read_json, shown

Schema = Mapping[str, Any]

_WORDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


class _Misfit(Exception):  # noqa: N818 - no error yet, but the way to one
    """What is wrong with a value; the place is put together on the way out, so that checking costs nothing for it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what, self.place = what, ""


def check(value: object, schema: Schema, where: str) -> None:
    """Refuse a value that a schema does not allow.

    Args:
        value: as `json.loads` gives it.
        schema: without references (`load`).
        where: the file, for the error.

    Raises:
        FileFormatError: it does not fit; the message names the file and the place in it.
    """
    try:
        _check(value, schema)
    except _Misfit as misfit:
        place = misfit.place.removeprefix(".")
        raise FileFormatError(f"{where}{': ' + place if place else ''} {misfit.what}") from None


def _check(value: object, schema: Schema) -> None:
    for part in schema.get("allOf", ()):
        _check(value, part)
    if not _fits(value, schema):
        raise _Misfit(f"must be {in_words(schema)}, not {quoted(value)}")
    if isinstance(value, dict):
        _check_mapping(value, schema)
    elif isinstance(value, list) and "items" in schema:
        for number, one in enumerate(value):
            try:
                _check(one, schema["items"])
            except _Misfit as misfit:
                misfit.place = f"[{number}]{misfit.place}"
                raise


def _check_mapping(value: Mapping[Any, Any], schema: Schema) -> None:
    missing = [key for key in schema.get("required", ()) if key not in value]
    if missing:
        raise _Misfit(f"lacks {', '.join(missing)}")
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    for key, one in value.items():
        inner = known.get(key, others)
        if isinstance(inner, Mapping):
            try:
                _check(one, inner)
            except _Misfit as misfit:
                misfit.place = f".{shown(key)}{misfit.place}"
                raise


def _fits(value: object, schema: Schema) -> bool:
    """Whether a value itself fits, whatever it holds."""
    kinds = schema.get("type", ())
    if kinds and not any(_is(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    if "enum" in schema and not any(value == one and type(value) is type(one) for one in schema["enum"]):
        return False
    if isinstance(value, str):
        long = len(value) > schema.get("maxLength", len(value))
        return not long and ("pattern" not in schema or re.search(schema["pattern"], value) is not None)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    if isinstance(value, list):
        return bool(schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)))
    return True


def _is(value: object, kind: str) -> bool:
    """Whether a value is of a kind. Here 1.0 is no whole number, and what no float can hold is no number."""
    if kind == "object":
        return isinstance(value, dict)
    if kind == "array":
        return isinstance(value, list)
    if kind == "string":
        return isinstance(value, str)
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "null":
        return value is None
    if isinstance(value, bool) or not isinstance(value, int if kind == "integer" else int | float):
        return False
    return kind == "integer" or abs(value) <= sys.float_info.max


def in_words(schema: Schema) -> str:
    """What a schema wants: ``a whole number of at least 0``."""
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    kinds = schema.get("type", ())
    words = " or ".join(_WORDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds))
    if "title" in schema and "string" in kinds:
        return str(schema["title"])
    limits = [f"of at least {schema['minimum']:,}"] if "minimum" in schema else []
    limits += [f"at most {schema['maximum']:,}"] if "maximum" in schema else []
    limits += [f"of at most {schema['maxLength']:,} characters"] if "maxLength" in schema else []
    counts = [schema[key] for key in ("minItems", "maxItems") if key in schema]
    if counts:
        limits.append(f"of {' to '.join(f'{count:,}' for count in dict.fromkeys(counts))} items")
    if "pattern" in schema and "title" not in schema:
        limits.append(f"of the form {schema['pattern']}")
    return f"{words} {' and '.join(limits)}".rstrip()


# --- schemas in files ------------------------------------------------------------------------------------------------


def load(path: Path) -> Schema:
    """The schema in a file, every reference in the place of what it refers to; they must not go in circles."""
    found = _resolved(read_json(path), path)
    assert isinstance(found, dict)
    return found


def _resolved(node: Any, path: Path) -> Any:
    if isinstance(node, list):
        return [_resolved(one, path) for one in node]
    if not isinstance(node, dict):
        return node
    own = {key: _resolved(one, path) for key, one in node.items() if key not in ("$ref", "$defs")}
    if "$ref" not in node:
        return own
    file, _, name = node["$ref"].partition("#/$defs/")
    target = path.with_name(file) if file else path
    return {**_resolved(read_json(target)["$defs"][name], target), **own}
