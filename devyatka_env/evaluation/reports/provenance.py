"""The parts of a report that are not measured: training, rules, manifest, environment, and how to measure it again."""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from devyatka_env.bots.checkpoint import Manifest, git_commit, package_versions, resolve
from devyatka_env.evaluation.reports import charts
from devyatka_env.evaluation.reports.measurements import Measurements
from devyatka_env.evaluation.reports.page import Block, Code, Line, Listing, Paragraph, Pictures, Section, Table
from devyatka_env.evaluation.reports.reported_agent import ReportedAgent
from devyatka_env.evaluation.reports.wording import (
    differing_fields,
    family,
    listed,
    rules_in_words,
    share,
    without_seats,
)
from devyatka_env.rules import DEFAULT_PRESET, Rules
from devyatka_env.views import observation_layout

# --- training --------------------------------------------------------------------------------------------------------


def training_section(subject: ReportedAgent) -> Section:
    """The curves of the training run, if the subject stands in one."""
    if subject.run is None:
        return Section("", ())
    rows = subject.metrics
    trained = f"{int(rows[-1]['decisions']):,}"
    line: tuple[str | Code, ...] = ("The run ", Code(str(subject.run)), f" has trained on {trained} decisions.")
    if subject.manifest is not None and subject.manifest.steps != rows[-1]["decisions"]:
        line += (f" The checkpoint measured here was written after {subject.manifest.steps:,}.",)
    found: list[list[Line]] = []
    for field, tables in charts.evaluations(rows).items():
        for label, n in tables.items():
            xs, ys = charts.series(rows, f"eval/{field}/{label}")
            best = max(range(len(ys)), key=ys.__getitem__)
            cells = [f"{share(ys[k])} ({int(xs[k]):,})" for k in (0, best, len(ys) - 1)]
            found.append([Code(field), label, share(1 / n), *cells])
    blocks: list[Block] = [Paragraph(line)]
    if found:
        head = ("against", "table", "chance", "first", "best", "last")
        caption = (
            "Win rates that the run measured itself, and the decisions trained on until then; the best is flattered by"
            " luck."
        )
        blocks.append(Table(head, found, caption))
    if charts.can_draw():
        blocks.append(Pictures(charts.training_curves(rows)))
    return Section("Training", blocks)


# --- rules -----------------------------------------------------------------------------------------------------------


def rules_section(measurements: Measurements) -> Section:
    """The rule sets in words, with what tells them apart."""
    families: dict[str, list[Rules]] = {}
    for rules in measurements.tables:
        families.setdefault(family(rules), []).append(rules)
    blocks: list[Block] = []
    for tables in families.values():
        first = tables[0]
        differs = differing_fields(first)
        line: tuple[str | Code, ...] = (
            Code(without_seats(first)),
            f" with {listed([str(t.num_players) for t in tables])} seats. ",
        )
        line += (
            (f"Other than in {DEFAULT_PRESET}: ", Code(" ".join(differs)), ".") if differs else ("The default rules.",)
        )
        rows: list[list[Line]] = [[name, words, Code(fields)] for name, words, fields in rules_in_words(first)]
        marks: list[list[Line]] = [
            [str(one.num_players), Code(str(one)), Code(one.fingerprint), Code(_layout_hash(one))] for one in tables
        ]
        blocks += [
            Paragraph(line),
            Table(("", "rule", "fields"), rows, words=True),
            Table(("seats", "rule set", "fingerprint", "observation layout"), marks, words=True),
        ]
    note = "docs/rules.md has the rules in full. Rule sets are equal exactly where their fingerprints are."
    return Section("Rules", (*blocks, Paragraph(note)))


def _layout_hash(rules: Rules) -> str:
    return observation_layout(rules.deck.num_cards).hash


# --- the checkpoint --------------------------------------------------------------------------------------------------


def subject_section(subject: ReportedAgent) -> Section:
    """What a checkpoint says about itself, or what a bot is."""
    if subject.manifest is None or subject.checkpoint is None:
        return _bot_section(subject)
    manifest = subject.manifest
    network: Any = subject.bot.network  # type: ignore[attr-defined]  # a checkpoint's bot is a PolicyBot
    parameters = sum(tensor.numel() for tensor in network.parameters())
    size = (resolve(subject.checkpoint) / manifest.weights_file).stat().st_size
    rows: list[list[Line]] = [
        ["folder", Code(str(subject.checkpoint))],
        ["plays", "a card drawn by its probability" if subject.bot.sample else "its most probable card"],  # type: ignore[attr-defined]
        ["network", Code(json.dumps(dict(manifest.network)))],
        ["parameters", f"{parameters:,} ({size / 1e6:.2f} MB)"],
        ["decisions trained on", f"{manifest.steps:,}"],
        ["seed of the run", str(manifest.seed)],
        ["trained for", Code("; ".join(map(str, manifest.rules)))],
        ["observation layout", (f"version {manifest.layout_version}, ", Code(manifest.layout_hash))],
        ["weights, SHA-256", Code(manifest.weights_sha256)],
        ["written", str(manifest.created)],
        ["commit", Code(manifest.commit) if manifest.commit else "not known"],
        ["written with", ", ".join(f"{name} {version}" for name, version in _mapping(manifest.versions).items())],
    ]
    blocks: list[Block] = [Table(("", ""), rows, words=True)]
    for key in ("notes", "history", "weaknesses"):  # of a shipped checkpoint (training.publish)
        text = _mapping(manifest.evaluation).get(key)
        if isinstance(text, str) and text:
            blocks.append(Paragraph(f"{key.capitalize()}, by its maker: {text}"))
    whole = json.dumps(manifest.to_dict(), indent=1, ensure_ascii=False)
    return Section("Checkpoint", (*blocks, Listing(whole, "json", "The whole manifest")))


def _mapping(value: object) -> Mapping[str, Any]:
    """A mapping of a manifest, which may be anything in a file made by hand; then it says nothing."""
    return value if isinstance(value, Mapping) else {}


def _bot_section(subject: ReportedAgent) -> Section:
    bot = subject.bot
    about = (type(bot).__doc__ or "").strip().splitlines()
    rows: list[list[Line]] = [
        ["name", Code(bot.name)],
        ["what it does", about[0] if about else "not said"],
        ["class", Code(f"{type(bot).__module__}.{type(bot).__qualname__}")],
        ["sees", "all hands: it cheats" if bot.sees_all_hands else "what its seat may know"],
        ["choice", "fixed by what it sees" if bot.deterministic else "may be random"],
    ]
    if bot.source:
        rows.append(["follows the advice of", f"rule pages {bot.source} (docs/rules.md)"])
    return Section("Bot", (Table(("", ""), rows, words=True),))


# --- again -----------------------------------------------------------------------------------------------------------


def again_section(measurements: Measurements, command: str) -> Section:
    """The commands that measure it again, and those that trained it."""
    blocks: list[Block] = [
        Paragraph("The whole page:"),
        Listing(command, "bash"),
        Paragraph("The win rates alone, as tables on the screen; add --json FILE or --plot FILE for files:"),
        Listing("\n".join(_commands("evaluate", measurements, measurements.fields)), "bash"),
        Paragraph("How far from perfect; the best response to a network takes minutes:"),
        Listing("\n".join(_commands("exact", measurements, measurements.fields[:1])), "bash"),
    ]
    subject = measurements.subject
    if subject.manifest is not None:
        blocks += _training_commands(subject, subject.manifest)
    return Section("Measure it again", blocks)


def _commands(command: str, measurements: Measurements, fields: Sequence[str]) -> Iterator[str]:
    """A command for each field and family of rules."""
    families: dict[str, list[Rules]] = {}
    for rules in measurements.tables:
        families.setdefault(without_seats(rules), []).append(rules)
    for field in fields:
        for text, tables in families.items():
            words = ["devyatka", command, measurements.subject.spec, "--against", field]
            words += ["--seats", ",".join(str(one.num_players) for one in tables)]
            words += [] if text == DEFAULT_PRESET else ["--rules", text]
            yield shlex.join([*words, "--deals", str(measurements.deals), "--seed", str(measurements.seed)])


def _training_commands(subject: ReportedAgent, manifest: Manifest) -> list[Block]:
    """How it was trained: in its maker's words, by the config of its run, or by the settings in its manifest."""
    settings = _mapping(manifest.training)
    if not settings:
        return []
    told = _mapping(manifest.evaluation).get("commands")
    if isinstance(told, Sequence) and not isinstance(told, str) and told:
        start: list[Block] = [
            Paragraph("How it was trained, by its maker:"),
            Listing("\n".join(map(str, told)), "bash"),
        ]
    else:
        words, path = "Training it anew, with the settings below in a file:", Path("settings.yaml")
        if subject.run is not None and (subject.run / "config.yaml").is_file():
            words, path = "Training it anew:", subject.run / "config.yaml"
        command = ["python", "-m", "training.selfplay", "--config", str(path), "--name", "again"]
        start = [Paragraph(words), Listing(shlex.join(command), "bash")]
    return [*start, Listing(_yaml(settings), "yaml", "The settings of the run when it was written")]


def _yaml(settings: Mapping[str, Any]) -> str:
    """Settings as YAML: a key a line, its value as JSON, which YAML includes."""
    return "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in settings.items())


def environment_section(measurements: Measurements) -> Section:
    """What it was measured with, and when."""
    rows: list[list[Line]] = [[name, version] for name, version in package_versions().items()]
    seconds = sum(one.seconds for duel in measurements.duels for one in duel.comparison.evaluations)
    rows += [
        ["Python", platform.python_version()],
        ["system", platform.platform()],
        ["commit", Code(git_commit()) if git_commit() else "not in a clone"],
        ["time", measurements.time],
        [
            "seconds of play",
            f"{seconds:,.1f}",
        ],
    ]
    return Section("Environment", (Table(("", ""), rows, words=True),))
