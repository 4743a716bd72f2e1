"""What a report is about: a bot, a checkpoint, or a training run and the checkpoint that stands for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from devyatka_env._files import FileFormatError, parse_json, printable, read_bytes
from devyatka_env.bots import Bot, bot_names, make_bot
from devyatka_env.bots.checkpoint import MANIFEST, Manifest, read_manifest
from devyatka_env.rules import DEFAULT_PRESET, MAX_PLAYERS, MIN_PLAYERS, Rules


@dataclass(frozen=True)
class ReportedAgent:
    """What a report is about.

    Attributes:
        text: how it was asked for.
        spec: what `make_bot` makes it of.
        bot: the bot.
        checkpoint: its folder; ``None`` for a bot that is no checkpoint.
        manifest: what that says about itself.
        run: the folder of the training run that it stands in, if it does.
        metrics: the lines of that run's metrics, in order.
    """

    text: str
    spec: str
    bot: Bot
    checkpoint: Path | None
    manifest: Manifest | None
    run: Path | None
    metrics: tuple[Mapping[str, float], ...]


def open_agent(text: str) -> ReportedAgent:
    """The bot, checkpoint or training run of that name; of a run its best checkpoint, or else its last.

    Raises:
        ValueError: there is none, or it cannot be read.
    """
    folder, options = (None, "") if text in bot_names() else _folder(text)
    spec, run = text, None
    if folder is not None and (folder / MANIFEST).is_file():
        run = folder.parent.parent if folder.parent.name == "checkpoints" else None
    elif folder is not None and any((folder / name).exists() for name in ("config.yaml", "checkpoints")):
        run, folder = folder, _checkpoint_of(folder)
        spec = f"{folder}{options}"
    bot = make_bot(spec)
    manifest = None if folder is None else read_manifest(folder)
    metrics = _read_metrics(run / "metrics.jsonl") if run else ()
    return ReportedAgent(text, spec, bot, folder, manifest, run if metrics else None, metrics)


def _folder(text: str) -> tuple[Path | None, str]:
    """The folder in a name, and the options behind it (``+sample``)."""
    head, options = text, ""
    while not Path(head).is_dir() and "+" in head:
        head, _, tail = head.rpartition("+")
        options = f"+{tail}{options}"
    return (Path(head), options) if head and Path(head).is_dir() else (None, "")


def _checkpoint_of(run: Path) -> Path:
    for name in ("best", "last"):
        if (run / "checkpoints" / name / MANIFEST).is_file():
            return run / "checkpoints" / name
    raise ValueError(f"{run} is a training run without a checkpoint: no checkpoints/best or checkpoints/last in it")


# What a run of a billion decisions writes, and what a line of it has, in bytes; a metric that is larger is damaged.
_MAX_METRICS, _MAX_LINE, _MAX_VALUE = 64_000_000, 100_000, 1e15


def _read_metrics(path: Path) -> tuple[Mapping[str, float], ...]:
    """The lines of a metrics file; one that was cut short by a crash or is damaged is left out, and so is such a value.

    Raises:
        FileFormatError: it is too large.
    """
    rows = []
    for line in read_bytes(path, _MAX_METRICS).splitlines() if path.is_file() else ():
        if len(line) > _MAX_LINE:
            continue
        try:
            row = parse_json(line, str(path))
        except FileFormatError:
            continue
        if isinstance(row, dict) and _is_metric(row.get("decisions")):
            rows.append({printable(key): float(one) for key, one in row.items() if _is_metric(one)})
    return tuple(rows)


def _is_metric(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MAX_VALUE


def tables_of(subject: ReportedAgent, rules: str | None, seats: Sequence[int | None]) -> tuple[Rules, ...]:
    """The rule sets to measure.

    Args:
        subject: whom.
        rules: a rule set (as `Rules.of` takes it); by default all that a checkpoint was trained for, and of other bots
            the default rules with every number of seats.
        seats: numbers of seats, to choose from those or to play ``rules`` with; ``[None]`` for no choice.

    Raises:
        ValueError: a rule set that cannot be played, or a number of seats that the checkpoint was not trained for.
    """
    counts = [count for count in seats if count is not None]
    if rules is not None:
        return tuple(Rules.of(rules, num_players=count) for count in counts) if counts else (Rules.of(rules),)
    if subject.manifest is None:
        return tuple(
            Rules.of(DEFAULT_PRESET, num_players=count) for count in counts or range(MIN_PLAYERS, MAX_PLAYERS + 1)
        )
    known = subject.manifest.rules
    for count in counts:
        if count not in {one.num_players for one in known}:
            raise ValueError(
                f"{subject.spec} was trained for {'; '.join(map(str, known))}, not for {count} seats: name its rules by"
                " --rules if it shall play them"
            )
    return tuple(one for one in known if not counts or one.num_players in counts)
