"""The presets: house rules as rows of a table, each a handful of fields of `Rules` that differ from the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from devyatka_env.rules.cards import RANKS_52, RANKS_52_ACE_LOW

DEFAULT_PRESET = "first_out"
EACH_DEALS_ONCE = "num_players"  # as a value of `deals`


@dataclass(frozen=True)
class Preset:
    """A row of the preset table: its source pages, one line about it, and the fields that differ."""

    source: str
    summary: str
    fields: Mapping[str, Any]


# Sources: 000, 001, 002 are the three rule pages that docs/rules.md cites.
PRESETS: Mapping[str, Preset] = {
    "first_out": Preset("000", "first empty hand wins; places by cards left, then card points", {}),
    "first_out_passes": Preset(
        "000, option", "fewer passes break ties of cards left", {"passes_count": True, "payoff": "place"}
    ),
    "one_loser": Preset("001", "played on until one seat holds cards", {"end": "last_holder", "payoff": "lose"}),
    "winner_and_loser": Preset(
        "002, base",
        "a winner and a loser; a foul puts the offender out of the deal",
        {"end": "last_holder", "payoff": "win_lose", "foul": "exclude", "explicit_pass": True},
    ),
    "any_nine": Preset(
        "002, home",
        "the dealer's left neighbour opens with any nine",
        {"opening": "left_of_dealer", "end": "last_holder", "payoff": "win_lose"},
    ),
    "nine_each": Preset(
        "002, home",
        "nine cards a seat, the rest out of play (2-4 seats)",
        {"opening": "left_of_dealer", "cards_per_seat": 9},
    ),
    "bank": Preset("002, money", "an ante, a fee for each pass, the winner takes the bank", {"payoff": "bank"}),
    "round": Preset(
        "002, round",
        "each seat deals once; one penalty point a card",
        {"payoff": "cards", "deals": EACH_DEALS_ONCE},
    ),
    "deck_52": Preset("002", "52 cards, 2 to A", {"ranks": RANKS_52}),
    "sevens": Preset(
        "002, comparison",
        "52 cards, ace low, rows start at the sevens",
        {"ranks": RANKS_52_ACE_LOW, "starter": "7"},
    ),
}
