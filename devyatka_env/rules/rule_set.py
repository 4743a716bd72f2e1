"""Rule sets as data: fields, presets, validation, fingerprint (rules, sections 1-3, 5, 6, 8-10).

A house rule is a field of `Rules`, never a branch elsewhere; a preset is a row of `PRESETS`.
Nothing here plays: the fields are executed by `devyatka_env.engine` alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

from devyatka_env._files import FileFormatError, quoted, read_yaml, shown
from devyatka_env.rules.cards import RANKS, RANKS_36, Card, Deck
from devyatka_env.rules.presets import DEFAULT_PRESET, EACH_DEALS_ONCE, PRESETS

MIN_PLAYERS, MAX_PLAYERS = 2, 6
MAX_DEALS = 1_000_000  # of a match
MAX_MONEY = 1_000_000_000  # of an ante or a fee; sums of it stay exact in a double
OPENINGS = ("holder", "left_of_dealer")
ENDS = ("first_out", "last_holder")
FOULS = ("error", "exclude")
PAYOFFS = ("win", "lose", "win_lose", "place", "cards", "points", "bank")

# Bumped when the meaning of a field changes, so that an old fingerprint never stands for new rules.
RULES_VERSION = 1


class RulesError(ValueError):
    """A rule set that cannot be played, or a rule field that does not exist."""


@dataclass(frozen=True)
class Rules:
    """One complete rule set. Build it with `Rules.of`; every field may be overridden on top of a preset.

    Attributes:
        num_players: seats, 2 to 6.
        num_suits: suits in the deck, 2 to 4, in the order ♣ ♦ ♥ ♠.
        ranks: 3 to 13 rank letters, lowest first, ``T`` for the ten.
        starter: the rank that opens a row.
        cards_per_seat: cards dealt to each seat, the rest out of play; ``None`` deals the whole pack.
        opening: who opens: ``holder`` of the second suit's starter (9♦), or the seat ``left_of_dealer``
            with any starter.
        end: ``first_out`` ends the deal with the first empty hand; ``last_holder`` plays on for one loser.
        explicit_pass: a stuck seat must choose PASS itself instead of being passed over.
        foul: ``error`` refuses a foul; ``exclude`` puts the offender out of the deal (rules, section 5).
        passes_count: fewer passes rank before card points among equal numbers of cards left.
        payoff: the payoff table in use (rules, section 8).
        ante: stake of each seat a deal, in money units (``bank`` only).
        pass_fee: fee for each pass, in money units (``bank`` only).
        deals: deals in a match; the dealer moves one seat clockwise after each.
        preset: the preset this set was built from; a label, not part of equality or of the fingerprint.
    """

    num_players: int = 4
    num_suits: int = 4
    ranks: str = RANKS_36
    starter: str = "9"
    cards_per_seat: int | None = None
    opening: str = "holder"
    end: str = "first_out"
    explicit_pass: bool = False
    foul: str = "error"
    passes_count: bool = False
    payoff: str = "win"
    ante: float = 1.0
    pass_fee: float = 1.0
    deals: int = 1
    preset: str = field(default=DEFAULT_PRESET, compare=False)

    def __post_init__(self) -> None:
        _check_types(self)
        _check_deck(self)
        _check_combinations(self)

    @classmethod
    def of(cls, spec: str | Rules | Mapping[str, Any] = DEFAULT_PRESET, **overrides: Any) -> Rules:
        """Build a rule set.

        Args:
            spec: a preset name, with ``field=value`` words after it if wanted; the path of a YAML file (`from_file`);
                another rule set; or a mapping, which may name a ``preset``.
            **overrides: fields on top of it.

        Raises:
            RulesError: an unknown preset or field, a bad value, or a combination that cannot be played.
        """
        if isinstance(spec, str) and spec.endswith((".yaml", ".yml")):
            return cls.from_file(spec, **overrides)
        if isinstance(spec, str) and len(spec.split()) > 1:
            spec = cls.from_text(spec)
        if isinstance(spec, Rules):
            name, values = spec.preset, spec._values()
        elif isinstance(spec, str):
            name, values = spec, {}
        elif isinstance(spec, Mapping):
            values = dict(spec)
            name = values.pop("preset", DEFAULT_PRESET)
        else:
            raise RulesError(f"rules must be a preset name, a Rules or a mapping, not {spec!r}")
        _check_preset(name)
        if PRESETS[name].fields.get("deals") == EACH_DEALS_ONCE and values.get("deals") == values.get("num_players"):
            values.pop("deals", None)  # "each seat deals once" follows a changed number of seats
        values.update(overrides)
        for key in values:
            if key not in FIELDS:
                raise RulesError(f"unknown rule field {key!r}; the fields are {', '.join(FIELDS)}")
        values = {**PRESETS[name].fields, **values}
        if values.get("deals") == EACH_DEALS_ONCE:
            values["deals"] = values.get("num_players", cls.num_players)
        return cls(**values, preset=name)

    @classmethod
    def from_file(cls, path: str | Path, **overrides: Any) -> Rules:
        """Read a YAML file of differences: a ``preset`` and any fields on top of it, ``overrides`` on top of these.

        Raises:
            RulesError: the file is no YAML, not a mapping, or its rules are bad (the message names the file).
            ImportError: PyYAML is not installed.
        """
        try:
            content = read_yaml(path)
        except FileNotFoundError as error:
            raise RulesError(f"there is no rules file {path}") from error
        except OSError as error:
            raise RulesError(f"cannot read the rules file {path}: {error.strerror or error}") from error
        except FileFormatError as error:
            raise RulesError(str(error)) from error
        if not isinstance(content, Mapping):
            raise RulesError(f"{path}: expected `field: value` lines, found {quoted(content)}")
        try:
            return cls.of(content, **overrides)
        except RulesError as error:
            raise RulesError(f"{path}: {shown(str(error), 400)}") from error

    @classmethod
    def from_text(cls, text: str) -> Rules:
        """Read what `str(rules)` writes: a preset and ``field=value`` words."""
        name, *words = text.split() or [""]
        values: dict[str, Any] = {}
        for word in words:
            key, equals, value = word.partition("=")
            if not equals:
                raise RulesError(f"expected field=value after the preset, found {word!r}")
            if key in values:
                raise RulesError(f"{key} stands twice in {text!r}")
            values[key] = _from_word(key, value)
        return cls.of(name, **values)

    def __str__(self) -> str:
        """The preset, the seats, and the fields that differ from the preset."""
        base = Rules.of(self.preset, num_players=self.num_players) if self._preset_fits() else Rules()
        words = [self.preset if self._preset_fits() else DEFAULT_PRESET, f"num_players={self.num_players}"]
        words += [
            f"{key}={value}"
            for key, value in self._values().items()
            if key != "num_players" and value != getattr(base, key)
        ]
        return " ".join(words)

    def _preset_fits(self) -> bool:
        """Whether the bare preset can be played at this number of seats (nine_each cannot at five)."""
        try:
            Rules.of(self.preset, num_players=self.num_players)
        except RulesError:
            return False
        return True

    def _values(self) -> dict[str, Any]:
        return {key: getattr(self, key) for key in FIELDS}

    def to_dict(self) -> dict[str, Any]:
        """Every field as plain JSON/YAML values; `Rules.of` reads it back."""
        return {"preset": self.preset, **self._values()}

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits that two rule sets share exactly when all their fields are equal, whatever built them."""
        canonical = json.dumps([RULES_VERSION, self._values()], sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]

    @cached_property
    def deck(self) -> Deck:
        """The pack of cards."""
        return Deck(self.num_suits, self.ranks)

    @property
    def pass_action(self) -> int:
        """The PASS action, one above the highest card id."""
        return self.deck.num_cards

    @property
    def opening_card(self) -> int:
        """Card id of the starter of the second suit (9♦)."""
        return self.deck.card_id(Card(self.starter, self.deck.suits[1]))

    def dealer(self, deal_index: int) -> int:
        """The dealer's seat in deal number ``deal_index``: the last seat, then clockwise within a match."""
        return (self.num_players - 1 + deal_index % self.deals) % self.num_players


FIELDS = tuple(f.name for f in dataclasses.fields(Rules) if f.compare)

_CHOICES = {"opening": OPENINGS, "end": ENDS, "foul": FOULS, "payoff": PAYOFFS}
_INTS = ("num_players", "num_suits", "cards_per_seat", "deals")
_BOOLS = ("explicit_pass", "passes_count")
_NUMBERS = ("ante", "pass_fee")


def _check_preset(name: object) -> None:
    if not isinstance(name, str) or name not in PRESETS:
        raise RulesError(f"unknown rules preset {name!r}; the presets are {', '.join(PRESETS)}")


def _check_types(rules: Rules) -> None:
    _check_preset(rules.preset)
    for key, choices in _CHOICES.items():
        if getattr(rules, key) not in choices:
            raise RulesError(f"{key}={getattr(rules, key)!r} is not one of {', '.join(choices)}")
    for key in _INTS:
        value = getattr(rules, key)
        if key == "cards_per_seat" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise RulesError(f"{key} must be a whole number, not {value!r}")
        object.__setattr__(rules, key, int(value))  # NumPy's whole numbers would not go into JSON
    for key in _BOOLS:
        if not isinstance(getattr(rules, key), bool):
            raise RulesError(f"{key} must be true or false, not {getattr(rules, key)!r}")
    for key in _NUMBERS:
        value = getattr(rules, key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_MONEY:
            raise RulesError(f"{key} must be a number of at least 0 and at most {MAX_MONEY:,}, not {value!r}")
        object.__setattr__(rules, key, abs(float(value)))  # abs: -0.0 is 0
    for key in ("ranks", "starter"):
        if not isinstance(getattr(rules, key), str):
            raise RulesError(f"{key} must be a text of rank letters, not {getattr(rules, key)!r} (quote it in YAML)")


def _check_deck(rules: Rules) -> None:
    if not MIN_PLAYERS <= rules.num_players <= MAX_PLAYERS:
        raise RulesError(f"num_players must be {MIN_PLAYERS} to {MAX_PLAYERS}, not {rules.num_players}")
    if not 2 <= rules.num_suits <= 4:
        raise RulesError(f"num_suits must be 2 to 4, not {rules.num_suits}")
    bad = sorted(set(rules.ranks) - set(RANKS))
    if bad or not 3 <= len(rules.ranks) <= 13 or len(set(rules.ranks)) != len(rules.ranks):
        raise RulesError(f"ranks must be 3 to 13 different letters of {RANKS}, lowest first, not {rules.ranks!r}")
    if len(rules.starter) != 1 or rules.starter not in rules.ranks:
        raise RulesError(f"starter must be one of the ranks {' '.join(rules.ranks)}, not {rules.starter!r}")


def _check_combinations(rules: Rules) -> None:
    num_cards = rules.num_suits * len(rules.ranks)
    if not 1 <= rules.deals <= MAX_DEALS:
        raise RulesError(f"deals must be at least 1 and at most {MAX_DEALS:,}, not {rules.deals}")
    if rules.cards_per_seat is not None:
        if not 1 <= rules.cards_per_seat * rules.num_players <= num_cards:
            raise RulesError(
                f"{rules.num_players} seats of cards_per_seat={rules.cards_per_seat} do not fit a deck of"
                f" {num_cards} cards: use fewer num_players or a smaller cards_per_seat of at least 1"
            )
        if rules.opening == "holder":
            raise RulesError(
                "with cards_per_seat the opening card may be out of play: set opening=left_of_dealer,"
                " or cards_per_seat=None to deal the whole pack"
            )
    if rules.foul == "exclude" and not rules.explicit_pass:
        raise RulesError("foul=exclude needs passes that a seat chooses itself: set explicit_pass=True, or foul=error")
    if rules.payoff != "bank" and (rules.ante, rules.pass_fee) != (Rules.ante, Rules.pass_fee):
        raise RulesError(f"ante and pass_fee are paid only with payoff=bank, not with payoff={rules.payoff}")


def _from_word(key: str, value: str) -> Any:
    """The value of a ``field=value`` word, typed by its field."""
    try:
        if key == "cards_per_seat" and value == "None":
            return None
        if key in _INTS:
            return int(value)
        if key in _NUMBERS:
            return float(value)
    except ValueError as error:
        raise RulesError(f"{key} must be a number, not {value!r}") from error
    if key in _BOOLS:
        return {"True": True, "true": True, "False": False, "false": False}.get(value, value)
    return value
