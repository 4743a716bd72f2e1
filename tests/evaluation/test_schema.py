"""Every file that a command writes is what its schema says: no key more, none less; and readers check by the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from devyatka_env import _schema
from devyatka_env._files import FileFormatError
from devyatka_env.cli import main
from devyatka_env.engine.seeds import WORD_SCHEME
from devyatka_env.evaluation import ResultError, read_result, results
from devyatka_env.evaluation.agent_checks.probes import FAULT, NOTE, OK, SKIPPED
from devyatka_env.evaluation.results import FORMAT, KINDS, SCHEMAS, schema_of
from devyatka_env.rules import Rules
from devyatka_env.rules.rule_set import ENDS, FOULS, OPENINGS, PAYOFFS
from tests.helpers.schema_checks import ALL, assert_valid, raw_schema, validator

Capture = pytest.CaptureFixture[str]
SOLVED = "first_out num_players=2 num_suits=2 ranks=789TJ | dealer 1 | 7♣ 9♣ 7♦ J♦ 10♣ / 8♣ J♣ 9♦ 8♦ 10♦ | 9♦ 9♣ 8♦ 7♦"
THREE_SEATS = "6♣ 7♣ 8♦ 9♦ / 8♣ 9♣ 6♦ 7♦ / 6♥ 7♥ 8♥ 9♥"
SEEN = "hand 7♣ 8♣ Q♣ 6♦ K♦ 8♥ A♠ | table 9♣ 8♦ 9♦ 10♦ 9♥ 10♥ 9♠ | left 7 8 7 | passes 0 1 0 | cannot 2: J♦"
MUST_PASS = "hand 6♣ 7♣ 6♦ 7♦ 6♥ 7♥ 6♠ 7♠ K♠ | table 9♦ | left 9 9 8"

# Kind, and a command that writes it: each with what another one leaves out.
WRITTEN = [
    ("evaluation", ["evaluate", "greedy", "--seats", "2,3", "--deals", "20", "--adjust", "--json", "out.json"]),
    ("evaluation", ["evaluate", "oracle", "--deals", "1", "--reference", "", "--secret", "--json", "out.json"]),
    ("evaluation", ["evaluate", "helper_bots:bad", "--deals", "2", "--json", "out.json"]),
    ("standings", ["tournament", "greedy", "random", "oracle", "--seats", "2", "--deals", "20", "--json", "out.json"]),
    ("standings", ["tournament", "greedy", "helper_bots:late", "--deals", "4", "--secret", "--json", "out.json"]),
    ("exact", ["exact", "greedy", "--seats", "2,3", "--deals", "20", "--json", "out.json"]),
    ("exact", ["exact", "random", "--against", "random", "--seats", "2", "--deals", "20", "--json", "out.json"]),
    ("exact", ["exact", "greedy", "--rules", "nine_each", "--seats", "4,5", "--deals", "20", "--json", "out.json"]),
    ("agent-check", ["check-agent", "greedy", "--quick", "--rules", "first_out num_players=2", "--json", "out.json"]),
    ("agent-check", ["check-agent", "helper_bots:bad", "--quick", "--rules", "first_out", "--json", "out.json"]),
    ("solve", ["solve", SOLVED, "--json"]),
    ("solve", ["solve", THREE_SEATS, "--rules", "first_out num_suits=3 ranks=6789", "--json"]),
    ("advise", ["advise", SEEN, "--worlds", "50", "--json"]),
    ("advise", ["advise", SEEN, "--worlds", "50", "--bot", "greedy", "--json"]),
    ("advise", ["advise", MUST_PASS, "--json"]),
]


@pytest.fixture
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # the commands set it; this puts it back
    Path("helper_bots.py").write_text(
        "def bad(view, rng):\n    return -5\n\ndef late(view, rng):\n    return view.legal_actions()[0]\n",
        encoding="utf-8",
    )


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize(("kind", "command"), WRITTEN, ids=[" ".join(words)[:60] for _, words in WRITTEN])
def test_commands__write_what_the_schema_says_and_nothing_else(kind: str, command: list[str], capsys: Capture) -> None:
    assert main(command) in (0, 1)
    file = Path("out.json")
    result = json.loads(file.read_text(encoding="utf-8") if file.exists() else capsys.readouterr().out)
    assert_valid(result, kind)
    if file.exists():
        assert read_result(file, kind) == result
        assert (result["format"], result["words"]) == (FORMAT, WORD_SCHEME)
        assert re.fullmatch(r"3\.1\d\.\d+.*", result["versions"]["python"])
        assert result["commit"] is None or re.fullmatch(r"[0-9a-f]{40}\+?", result["commit"])
    for path in Path().glob("runs/tournament/**/*.json"):
        name = "tournament" if path.name == "tournament.json" else "pairing"
        assert_valid(json.loads(path.read_text(encoding="utf-8")), name)


def test_commands__every_kind_is_written_by_one_of_them() -> None:
    assert {kind for kind, _ in WRITTEN} | {"tournament", "pairing"} == set(KINDS)


def test_commit__is_null_outside_a_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "git_commit", lambda: "")
    assert results.header("exact")["commit"] is None


# --- the schemas -----------------------------------------------------------------------------------------------------


def parts(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every mapping in a schema that says what a value is, with its place."""
    if isinstance(node, list):
        for number, one in enumerate(node):
            yield from parts(one, f"{path}[{number}]")
    elif isinstance(node, dict):
        yield path, node
        for key, one in node.items():
            yield from parts(one, f"{path}/{key}")


@pytest.mark.parametrize("name", ALL)
def test_schemas__are_schemas_and_describe_every_key(name: str) -> None:
    schema = raw_schema(name)
    Draft202012Validator.check_schema(schema)
    used = set()
    for path, part in parts(schema):
        for key, value in part.get("properties", {}).items() if isinstance(part.get("properties"), dict) else ():
            target = raw_schema("common")["$defs"][value["$ref"].rpartition("/")[2]] if "$ref" in value else {}
            assert value.get("description", target.get("description")), f"{path}/{key}"
        if not path.endswith(("/properties", "/$defs")):
            used |= set(part)
    # What `_schema` knows, and what says nothing about a value.
    checked = {"type", "properties", "required", "items", "enum", "minimum", "maximum", "minItems", "maxItems"}
    checked |= {"maxLength", "pattern", "allOf", "additionalProperties", "unevaluatedProperties", "$ref", "$defs"}
    assert used <= checked | {"$schema", "$id", "title", "description"}


@pytest.mark.parametrize("kind", KINDS)
def test_schemas__allow_no_other_key_anywhere(kind: str) -> None:
    for path, part in parts(raw_schema(kind)):
        if isinstance(part.get("properties"), dict) and not path.endswith("/properties"):
            assert part.get("additionalProperties", part.get("unevaluatedProperties")) is False, path


def test_schemas__say_what_the_code_says_of_rules_and_verdicts() -> None:
    fields = raw_schema("common")["$defs"]["rules_fields"]
    assert list(fields["properties"]) == list(Rules.of().to_dict()) == fields["required"]
    choices = {key: tuple(fields["properties"][key]["enum"]) for key in ("opening", "end", "foul", "payoff")}
    assert choices == {"opening": OPENINGS, "end": ENDS, "foul": FOULS, "payoff": PAYOFFS}
    item = raw_schema("agent-check")["properties"]["items"]["items"]
    assert item["properties"]["verdict"]["enum"] == [OK, FAULT, NOTE, SKIPPED]
    assert raw_schema("common")["$defs"]["header"]["properties"]["format"]["enum"] == [FORMAT]


# --- the reader that ships -------------------------------------------------------------------------------------------

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["tables"],
    "properties": {
        "tables": {
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "items": {"type": "object", "properties": {"deals": {"type": "integer", "minimum": 0, "maximum": 9}}},
        },
        "name": {"title": "a name", "type": ["string", "null"], "maxLength": 3, "pattern": "^a"},
        "kind": {"enum": ["one", 2]},
        "share": {"type": "number", "minimum": 0},
        "on": {"type": "boolean"},
        "more": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
}
WRONG = [
    ([], "file must be a mapping, not []"),
    ({}, "file lacks tables"),
    ({"tables": {}}, "file: tables must be a list of 1 to 2 items, not {}"),
    ({"tables": []}, "file: tables must be a list of 1 to 2 items, not []"),
    ({"tables": [{}, 3]}, "file: tables[1] must be a mapping, not 3"),
    ({"tables": [{}, {"deals": "x"}]}, "tables[1].deals must be a whole number of at least 0 and at most 9, not 'x'"),
    ({"tables": [{"deals": -1}]}, "tables[0].deals must be a whole number of at least 0"),
    ({"tables": [{"deals": 10**100}]}, "not a whole number of 333 bits"),
    ({"tables": [{"deals": True}]}, "not True"),
    ({"tables": [{"deals": 1.0}]}, "not 1.0"),
    ({"tables": [{}], "name": "b"}, "name must be a name, not 'b'"),
    ({"tables": [{}], "name": "a\x1b[2J"}, "name must be a name, not 'a\ufffd[2J'"),
    ({"tables": [{}], "kind": True}, "kind must be one or 2, not True"),
    ({"tables": [{}], "kind": [1]}, "kind must be one or 2, not [1]"),
    ({"tables": [{}], "share": float("nan")}, "share must be a number of at least 0, not nan"),
    ({"tables": [{}], "share": float("inf")}, "share must be a number of at least 0, not inf"),
    ({"tables": [{}], "share": 10**400}, "share must be a number"),
    ({"tables": [{}], "on": 1}, "on must be true or false, not 1"),
    ({"tables": [{}], "more": {"x\ny": "1"}}, "file: more.x y must be a whole number, not '1'"),
]


@pytest.mark.parametrize(("value", "message"), WRONG)
def test_check__names_the_file_and_the_place(value: object, message: str) -> None:
    with pytest.raises(FileFormatError) as error:
        _schema.check(value, SCHEMA, "file")
    assert message in str(error.value)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300


def test_check__leaves_alone_what_it_does_not_know() -> None:
    value = {"tables": [{"deals": 9, "other": 1}], "name": None, "kind": 2, "share": 1, "on": False, "new": [1]}
    _schema.check(value, SCHEMA, "file")


@pytest.mark.usefixtures("_elsewhere")
def test_check__agrees_with_a_full_validator_on_every_value_of_a_result() -> None:
    """One value at a time is another: both refuse, or both take it (but for 1.0, to them a whole number)."""
    assert main(["evaluate", "greedy", "--seats", "2", "--deals", "3", "--adjust", "--json", "out.json"]) == 0
    result = json.loads(Path("out.json").read_text(encoding="utf-8"))
    full, own, count = validator("evaluation"), schema_of("evaluation"), 0
    for change in changes(result):
        try:
            _schema.check(result, own, "file")
            taken = True
        except FileFormatError:
            taken = False
        assert taken == full.is_valid(result)
        change()
        count += 1
    assert count > 500


def changes(node: Any) -> Iterator[Callable[[], None]]:
    """Change a value in a structure; what is given changes it back."""
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        kept = node[key]
        for other in (None, True, -1, 2.5, "text", [], {}):
            node[key] = other
            yield lambda node=node, key=key, kept=kept: node.__setitem__(key, kept)  # type: ignore[misc]
        if isinstance(node, dict):
            del node[key]
            yield lambda node=node, key=key, kept=kept: node.__setitem__(key, kept)  # type: ignore[misc]
        yield from changes(kept)


# --- reading results -------------------------------------------------------------------------------------------------


def written(**values: object) -> Path:
    header = results.header("agent-check")
    own = {"agent": "a", "seed": 0, "ok": True, "moves": 1, "mean_ms": 0, "worst_ms": 0, "seconds": 0, "items": []}
    Path("r.json").write_text(json.dumps({**header, **own, "tables": [], **values}), encoding="utf-8")
    return Path("r.json")


@pytest.mark.usefixtures("_elsewhere")
def test_read_result__names_both_formats_and_the_kind() -> None:
    assert read_result(written(), "agent-check")["agent"] == "a"
    with pytest.raises(ResultError, match=r"r.json was made by release 0.1 \(format 2\), whose .*reads .*format 3"):
        read_result(written(format=2), "agent-check")
    with pytest.raises(ResultError, match=r"r.json has format 4; this release reads format 3"):
        read_result(written(format=4), "agent-check")
    with pytest.raises(ResultError, match=r"r.json is no result of kind 'exact': it has 'agent-check'"):
        read_result(written(), "exact")
    with pytest.raises(ResultError, match=r"r.json: items\[0\] lacks name, verdict"):
        read_result(written(items=[{}]), "agent-check")
    with pytest.raises(ResultError, match=r"no kind of result '\.\./x'; the kinds are advise, agent-check"):
        read_result(written(), "../x")


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a": NaN}', "NaN is no number"),
        ('{"a": -Infinity}', "-Infinity is no number"),
        ("9" * 5000, "not JSON"),
        (" " * 4_000_001, "r.json: larger than 4,000,000 bytes"),
        ("\ud800".encode("utf-8", "surrogatepass"), "no result of kind|not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
    ],
)
def test_read_result__hostile_texts_are_one_short_line(text: str | bytes, message: str) -> None:
    Path("r.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ResultError, match=message) as error:
        read_result("r.json", "exact")
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300


def test_schema_files__are_where_the_package_looks_for_them() -> None:
    assert sorted(path.stem for path in SCHEMAS.iterdir()) == sorted(ALL)
