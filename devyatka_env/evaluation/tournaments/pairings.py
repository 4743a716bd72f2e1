"""The pairings of a tournament, and the folder that keeps them.

``tournament.json`` says what is played; ``pairings/`` has a small file a pairing with its sums, written whole or not at
all, so that whatever stops a tournament loses little, and what was played is never played again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from devyatka_env._files import printable, shown
from devyatka_env.bots import BOTS, Bot, PolicyBot
from devyatka_env.bots.isolated import IsolatedBot
from devyatka_env.engine.seeds import Seed, seed_from, seed_value
from devyatka_env.evaluation.duplicate import Failure, num_columns
from devyatka_env.evaluation.results import (
    ResultError,
    check_words,
    header,
    read_result,
    rules_of,
    rules_values,
    write_result,
)
from devyatka_env.evaluation.stats import Estimate, Floats, Moments
from devyatka_env.evaluation.tournaments.ratings import Places
from devyatka_env.rules import Rules

SETUP, PAIRINGS = "tournament.json", "pairings"


@dataclass(frozen=True)
class Setup:
    """What a tournament's folder says is played.

    Attributes:
        rules: the rule set.
        seed: seed of the deals and of the bots' coin flips.
        deals: deals of each pairing, each played ``rules.num_players`` times.
        entrants: their names.
    """

    rules: Rules
    seed: Seed
    deals: int
    entrants: tuple[str, ...]


@dataclass(frozen=True)
class Entrant:
    """Who takes part.

    Attributes:
        name: the bot's name.
        identity: what tells it from an earlier bot of that name (`identity`).
        cheats: whether it is shown all hands.
    """

    name: str
    identity: str
    cheats: bool

    @classmethod
    def of(cls, bot: Bot) -> Entrant:
        """A bot as an entrant."""
        return cls(bot.name, identity(bot), bot.sees_all_hands)


@dataclass(frozen=True)
class Pairing:
    """One entrant alone among copies of another.

    Attributes:
        candidate: the one, a number in the entrants.
        opponent: the other.
        moments: of the candidate's columns (`duplicate.measure`), over the deals 0 to ``moments.count - 1``.
        places: its places on the same deals.
        seconds: of play, those of several workers added up.
        failure: why it ended early, if it did.
    """

    candidate: int
    opponent: int
    moments: Moments
    places: Places
    seconds: float = 0.0
    failure: Failure | None = None

    @property
    def deals(self) -> int:
        """Deals played."""
        return self.moments.count

    @property
    def win_rate(self) -> Estimate:
        """The candidate's win rate."""
        return self.moments.column(0)

    def plus(self, part: Part) -> Pairing:
        """The same with the next deals; this one stays as it is, so Ctrl-C finds either, never half of it."""
        moments, places = Moments(len(self.moments.means)), self.places.copy()
        moments.add(self.moments)
        moments.add(part.moments)
        places.add(self.deals, part.places)
        return dataclasses.replace(self, moments=moments, places=places, seconds=self.seconds + part.seconds)


@dataclass(frozen=True)
class Part:
    """What some deals in a row of a pairing gave: the moments of the columns, place shares ``[D, n]``, seconds."""

    moments: Moments
    places: Floats
    seconds: float


def read_setup(folder: str | Path) -> Setup | None:
    """What the tournament in a folder plays; ``None`` where there is none.

    Raises:
        ResultError: a file that cannot be read, or of another release whose bots drew other random words.
    """
    path = Path(folder) / SETUP
    if not path.exists():
        return None
    values = read_result(path, "tournament")
    check_words(values, path)
    names = tuple(one["name"] for one in values["entrants"])
    return Setup(rules_of(values, path), seed_from(values["seed"]), values["deals"], names)


def identity(bot: Bot) -> str:
    """What tells a bot from another that had its name before.

    That is the digest of its weights for a network, the release for a bot of this package, and for others the digest of
    the file their code stands in, "" when there is none.
    """
    if isinstance(bot, PolicyBot):
        digest = hashlib.sha256()
        for name, tensor in sorted(bot.network.state_dict().items()):
            digest.update(name.encode() + tensor.cpu().numpy().tobytes())
        return f"weights {digest.hexdigest()[:16]}"
    if type(bot) in BOTS.values():
        return f"devyatka-env {metadata.version('devyatka-env')}"
    if isinstance(bot, IsolatedBot):
        return identity_of_module(bot.name)
    code: Any = getattr(bot, "_function", type(bot))  # of a `CallableBot`
    try:
        source = inspect.getsourcefile(code if inspect.isroutine(code) or inspect.isclass(code) else type(code))
        return f"code {hashlib.sha256(Path(str(source)).read_bytes()).hexdigest()[:16]}"
    except (OSError, TypeError):
        return ""


def identity_of_module(spec: str) -> str:
    """The digest of the file in which ``module:name`` stands, found without running it; "" when there is none."""
    try:
        found = importlib.util.find_spec(spec.partition(":")[0])
        return f"code {hashlib.sha256(Path(str(found and found.origin)).read_bytes()).hexdigest()[:16]}"
    except (OSError, ImportError, ValueError):
        return ""


class Store:
    """A tournament's folder.

    Raises:
        ValueError: less than two entrants or two of one name, or a folder of other rules or another seed.
    """

    def __init__(self, folder: Path, entrants: Sequence[Entrant], rules: Rules, seed: Seed, deals: int) -> None:
        names = [one.name for one in entrants]
        if len(names) < 2:
            raise ValueError(f"a tournament needs two entrants or more, not {len(names)}")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"entrants must have different names; given twice: {', '.join(twice)}")
        known = read_setup(folder)
        if known is not None and (known.rules, known.seed) != (rules, seed):
            raise ValueError(
                f"{folder} has a tournament of {known.rules} ({known.rules.fingerprint}), seed {known.seed}; asked for"
                f" is {rules} ({rules.fingerprint}), seed {seed}: give another folder, or the same rules and seed"
            )
        self.entrants, self.rules, self.seed, self.deals = entrants, rules, seed, deals
        self.replaced: list[str] = []
        self._folder = folder
        (folder / PAIRINGS).mkdir(parents=True, exist_ok=True)
        write_result(self._setup(), folder / SETUP)
        self._header = header("pairing")  # once: it asks git

    def _setup(self) -> dict[str, Any]:
        return {
            **header("tournament"),
            **rules_values(self.rules),
            "seed": seed_value(self.seed),
            "deals": self.deals,
            "entrants": [dataclasses.asdict(one) for one in self.entrants],
        }

    def load(self) -> list[Pairing]:
        """All pairings with what was played; the first k entrants have met before the next one plays.

        Raises:
            ResultError: a file that cannot be read.
        """
        numbers = range(len(self.entrants))
        pairs = [pair for late in numbers for early in range(late) for pair in ((late, early), (early, late))]
        changed: dict[str, int] = {}
        pairings = [self._read(candidate, opponent, changed) for candidate, opponent in pairs]
        for text, count in changed.items():
            self.replaced.append(f"{text}: played again, {count} pairings (what was played before is in *.old.json)")
        return pairings

    def _read(self, candidate: int, opponent: int, changed: dict[str, int]) -> Pairing:
        n = self.rules.num_players
        fresh = Pairing(candidate, opponent, Moments(num_columns(n)), Places(n))
        path = self._path(candidate, opponent)
        if not path.exists():
            return fresh
        values = read_result(path, "pairing")
        self._check(values, path, candidate, opponent)
        other = [
            f"{now.name} has changed ({then['identity'] or 'unknown'}, now {now.identity or 'unknown'})"
            for now, then in (
                (self.entrants[candidate], values["candidate"]),
                (self.entrants[opponent], values["opponent"]),
            )
            if now.identity != then["identity"]
        ]
        if other:
            path.replace(path.with_suffix(".old.json"))
            for text in other:
                changed[text] = changed.get(text, 0) + 1
            return fresh
        failure = values["failure"]
        return Pairing(
            candidate,
            opponent,
            Moments.from_json(values["moments"]),
            Places.from_json(values["places"]),
            values["seconds"],
            failure and Failure(failure["bot"], failure["deal"], printable(failure["message"])),
        )

    def _check(self, values: dict[str, Any], path: Path, candidate: int, opponent: int) -> None:
        """Check that a pairing's file is of this tournament and of these two, and that its sums go together.

        Raises:
            ResultError: it is not, or they do not.
        """
        check_words(values, path)
        moments, places, columns = values["moments"], values["places"], num_columns(self.rules.num_players)
        lengths = {len(row) for row in (moments["means"], moments["products"], *moments["products"])}
        facts = {
            "candidate": (values["candidate"]["name"], self.entrants[candidate].name),
            "opponent": (values["opponent"]["name"], self.entrants[opponent].name),
            "rules_fingerprint": (values["rules_fingerprint"], self.rules.fingerprint),
            "seed": (values["seed"], seed_value(self.seed)),
            "moments.count": (moments["count"], values["deals"]),
            "columns in moments": (lengths, {columns}),
            "places.num_players": (places["num_players"], self.rules.num_players),
            "blocks in places": (len(places["sums"]), -(-values["deals"] // places["block"])),
            "seats in places": ({len(row) for row in places["sums"]} | {self.rules.num_players},
                                {self.rules.num_players}),
            "deals in places": (round(sum(map(sum, places["sums"]))), values["deals"]),
        }  # fmt: skip
        for name, (found, wanted) in facts.items():
            if found != wanted:
                raise ResultError(f"{path}: {name}: {shown(found)}, where {shown(wanted)} belongs")

    def save(self, pairing: Pairing) -> None:
        """Write a pairing's file."""
        values = {
            **self._header,
            "candidate": dataclasses.asdict(self.entrants[pairing.candidate]),
            "opponent": dataclasses.asdict(self.entrants[pairing.opponent]),
            "rules_fingerprint": self.rules.fingerprint,
            "seed": seed_value(self.seed),
            "deals": pairing.deals,
            "seconds": round(pairing.seconds, 4),
            "failure": pairing.failure and dataclasses.asdict(pairing.failure),
            "moments": pairing.moments.to_json(),
            "places": pairing.places.to_json(),
        }
        write_result(values, self._path(pairing.candidate, pairing.opponent))

    def _path(self, candidate: int, opponent: int) -> Path:
        """A file name that tells people who meets whom; the digest tells names apart that look alike."""
        names = [self.entrants[k].name for k in (candidate, opponent)]
        words = [re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[-40:] for name in names]
        digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:8]
        return self._folder / PAIRINGS / f"{words[0]}_among_{words[1]}_{digest}.json"
