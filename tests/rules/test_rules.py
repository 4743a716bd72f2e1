"""Rule sets as data: presets, validation, texts, fingerprints (rules, sections 1-3, 5, 8-10)."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given

from devyatka_env.rules import PRESETS, Rules, RulesError
from devyatka_env.rules.cards import RANKS_36, RANKS_52, RANKS_52_ACE_LOW
from devyatka_env.rules.rule_set import FIELDS
from tests.helpers.games import COMBINATIONS, rule_sets

# The preset table of the rules page (section 10), typed again: deck, opening, end, payoff, and what else it says.
PAGE: dict[str, tuple[str, str, str, str, dict[str, Any]]] = {
    "first_out": ("36", "holder", "first_out", "win", {}),
    "first_out_passes": ("36", "holder", "first_out", "place", {"passes_count": True}),
    "one_loser": ("36", "holder", "last_holder", "lose", {}),
    "winner_and_loser": ("36", "holder", "last_holder", "win_lose", {"foul": "exclude", "explicit_pass": True}),
    "any_nine": ("36", "left_of_dealer", "last_holder", "win_lose", {}),
    "nine_each": ("36", "left_of_dealer", "first_out", "win", {"cards_per_seat": 9}),
    "bank": ("36", "holder", "first_out", "bank", {"ante": 1.0, "pass_fee": 1.0}),
    "round": ("36", "holder", "first_out", "cards", {"deals": "n"}),
    "deck_52": ("52", "holder", "first_out", "win", {}),
    "sevens": ("52 ace low", "holder", "first_out", "win", {"starter": "7"}),
}
PAGE_DECKS = {"36": "6789TJQKA", "52": "23456789TJQKA", "52 ace low": "A23456789TJQK"}
# A changed fingerprint orphans checkpoints and game records: change one only together with RULES_VERSION, and say so
# in the changelog. To make new ones: print({name: Rules.of(name).fingerprint for name in PRESETS})
FINGERPRINTS = {
    "first_out": "b451e20b23017ac2",
    "first_out_passes": "b2a6320fc0efb173",
    "one_loser": "50e0d635f2e34122",
    "winner_and_loser": "2dbc03172b7cd62e",
    "any_nine": "d767182a4e00b9ea",
    "nine_each": "7c1a621318189b36",
    "bank": "40a1596b9d6ca3c7",
    "round": "fdcc8c4c8ee95833",
    "deck_52": "a095563090c64d16",
    "sevens": "dfdaf8fb90293881",
}


# --- presets ---------------------------------------------------------------------------------------------------------


def test_presets__are_those_of_the_rules_page() -> None:
    assert tuple(PRESETS) == tuple(PAGE)


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_preset__has_every_field_as_the_rules_page_gives_it(preset: str, seats: int) -> None:
    deck, opening, end, payoff, others = PAGE[preset]
    expected = {
        "preset": preset, "num_players": seats, "num_suits": 4, "ranks": PAGE_DECKS[deck], "starter": "9",
        "cards_per_seat": None, "opening": opening, "end": end, "explicit_pass": False, "foul": "error",
        "passes_count": False, "payoff": payoff, "ante": 1.0, "pass_fee": 1.0, "deals": 1,
    } | others  # fmt: skip
    if expected["deals"] == "n":
        expected["deals"] = seats
    assert Rules.of(preset, num_players=seats).to_dict() == expected


def test_preset__default_is_first_out_for_four_seats() -> None:
    assert Rules.of() == Rules() == Rules.of("first_out", num_players=4)
    assert Rules.of().deck.num_cards == 36
    assert PAGE_DECKS == {"36": RANKS_36, "52": RANKS_52, "52 ace low": RANKS_52_ACE_LOW}


def test_preset__overrides_win_over_the_preset_and_over_another_rule_set() -> None:
    rules = Rules.of("winner_and_loser", num_players=5, payoff="lose", deals=3)
    assert (rules.payoff, rules.foul, rules.deals, rules.preset) == ("lose", "exclude", 3, "winner_and_loser")
    changed = Rules.of(rules, num_players=3)
    assert changed.to_dict() == rules.to_dict() | {"num_players": 3}
    assert Rules.of({"preset": "round", "num_players": 6}).deals == 6  # each seat deals once
    assert Rules.of("round", num_players=6, deals=2).deals == 2


def test_opening_card__is_the_starter_of_the_second_suit() -> None:
    assert Rules.of("first_out").opening_card == 12
    assert Rules.of("deck_52").opening_card == 20
    assert Rules.of("sevens").opening_card == 19
    assert Rules.of({"num_suits": 2, "ranks": "89T", "num_players": 2}).opening_card == 4
    assert Rules.of("deck_52").pass_action == 52


def test_dealer__starts_in_the_last_seat_and_moves_clockwise_within_a_match() -> None:
    assert [Rules.of("first_out").dealer(deal) for deal in range(3)] == [3, 3, 3]
    assert [Rules.of("round").dealer(deal) for deal in range(6)] == [3, 0, 1, 2, 3, 0]
    assert [Rules.of("first_out", deals=2).dealer(deal) for deal in range(4)] == [3, 0, 3, 0]
    assert Rules.of("round", num_players=5).dealer(2**64 - 1) == 4  # 2**64 - 1 is a multiple of 5


# --- what is refused -------------------------------------------------------------------------------------------------

MINI = {"num_suits": 2, "ranks": "789", "starter": "8", "num_players": 2}
REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    ({"num_players": 1}, ["num_players", "2 to 6", "1"]),
    ({"num_players": 7}, ["num_players", "2 to 6", "7"]),
    ({"num_players": "4"}, ["num_players", "whole number", "'4'"]),
    ({"num_players": 4.0}, ["num_players", "whole number", "4.0"]),
    ({"num_players": True}, ["num_players", "whole number", "True"]),
    ({"num_players": None}, ["num_players", "whole number", "None"]),
    ({"num_suits": 1}, ["num_suits", "2 to 4", "1"]),
    ({"num_suits": 5}, ["num_suits", "2 to 4", "5"]),
    ({"ranks": "89"}, ["ranks", "3 to 13", "'89'"]),
    ({"ranks": "678889T"}, ["ranks", "different", "'678889T'"]),
    ({"ranks": "6789X"}, ["ranks", "23456789TJQKA", "'6789X'"]),
    ({"ranks": "891011"}, ["ranks", "23456789TJQKA", "'891011'"]),
    ({"ranks": 6789}, ["ranks", "text", "6789", "quote"]),
    ({"ranks": ["8", "9", "T"]}, ["ranks", "text", "['8', '9', 'T']"]),
    ({"starter": "5"}, ["starter", "6 7 8 9 T J Q K A", "'5'"]),
    ({"starter": ""}, ["starter", "6 7 8 9 T J Q K A", "''"]),
    ({"starter": "9T"}, ["starter", "6 7 8 9 T J Q K A", "'9T'"]),
    ({"starter": 9}, ["starter", "text", "9", "quote"]),
    ({"preset": "sevens", "starter": "X"}, ["starter", "A 2 3 4 5 6 7 8 9 T J Q K", "'X'"]),
    ({"preset": "nine_each", "num_players": 5}, ["5 seats", "cards_per_seat=9", "36 cards", "fewer num_players"]),
    ({"preset": "nine_each", "cards_per_seat": 10}, ["4 seats", "cards_per_seat=10", "smaller cards_per_seat"]),
    ({"preset": "nine_each", "cards_per_seat": 0}, ["cards_per_seat=0", "at least 1"]),
    ({"preset": "nine_each", "cards_per_seat": -2}, ["cards_per_seat=-2", "at least 1"]),
    ({"preset": "nine_each", "cards_per_seat": True}, ["cards_per_seat", "whole number", "True"]),
    ({"preset": "nine_each", "cards_per_seat": "9"}, ["cards_per_seat", "whole number", "'9'"]),
    ({"cards_per_seat": 9}, ["cards_per_seat", "opening=left_of_dealer", "cards_per_seat=None"]),
    ({**MINI, "opening": "left_of_dealer", "cards_per_seat": 4}, ["2 seats", "cards_per_seat=4", "6 cards"]),
    ({"opening": "anybody"}, ["opening", "'anybody'", "holder, left_of_dealer"]),
    ({"end": "never"}, ["end", "'never'", "first_out, last_holder"]),
    ({"foul": "ignore"}, ["foul", "'ignore'", "error, exclude"]),
    ({"payoff": "money"}, ["payoff", "'money'", "win, lose, win_lose, place, cards, points, bank"]),
    ({"payoff": None}, ["payoff", "None", "win, lose"]),
    ({"payoff": ["win"]}, ["payoff", "['win']", "win, lose"]),
    ({"explicit_pass": 1}, ["explicit_pass", "true or false", "1"]),
    ({"passes_count": "yes"}, ["passes_count", "true or false", "'yes'"]),
    ({"foul": "exclude"}, ["foul=exclude", "explicit_pass=True", "foul=error"]),
    ({"preset": "winner_and_loser", "explicit_pass": False}, ["foul=exclude", "explicit_pass=True"]),
    ({"preset": "bank", "ante": -1}, ["ante", "at least 0", "-1"]),
    ({"preset": "bank", "ante": "1"}, ["ante", "number", "'1'"]),
    ({"preset": "bank", "ante": False}, ["ante", "number", "False"]),
    ({"preset": "bank", "ante": 10**400}, ["ante", "number"]),
    ({"preset": "bank", "pass_fee": math.inf}, ["pass_fee", "number", "inf"]),
    ({"preset": "bank", "pass_fee": math.nan}, ["pass_fee", "number", "nan"]),
    ({"ante": 2}, ["ante", "payoff=bank", "payoff=win"]),
    ({"pass_fee": 0}, ["pass_fee", "payoff=bank", "payoff=win"]),
    ({"deals": 0}, ["deals", "at least 1", "0"]),
    ({"deals": -3}, ["deals", "at least 1", "-3"]),
    ({"deals": 1.5}, ["deals", "whole number", "1.5"]),
    ({"deals": "many"}, ["deals", "whole number", "'many'"]),
    ({"deals": 2**63}, ["deals", str(2**63)]),  # a kernel reads it as 64 bits with a sign
    ({"preset": "poker"}, ["preset", "'poker'", *PAGE]),
    ({"preset": ["first_out"]}, ["preset", "['first_out']"]),
    ({"players": 4}, ["field", "'players'", "num_players"]),
    ({"num_player": 4, "deals": 2}, ["field", "'num_player'", "num_players"]),
    ({4: 4}, ["field", "4", "num_players"]),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "words"), REFUSED, ids=[str(fields)[:60] for fields, _ in REFUSED])
def test_of__refuses_what_cannot_be_played_and_says_what_to_change(fields: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(RulesError) as caught:
        Rules.of(fields)
    assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)


@pytest.mark.parametrize("spec", [None, 4, ["first_out"], b"first_out"])
def test_of__refuses_what_is_no_rule_set(spec: Any) -> None:
    with pytest.raises(RulesError, match="preset name, a Rules or a mapping"):
        Rules.of(spec)


def test_of__unknown_names_list_the_known_ones() -> None:
    with pytest.raises(RulesError, match="unknown rules preset 'First_Out'; the presets are first_out, "):
        Rules.of("First_Out")
    with pytest.raises(RulesError, match="unknown rule field 'seats'; the fields are num_players, "):
        Rules.of("first_out", seats=3)


def test_constructor__checks_as_much_as_of() -> None:
    with pytest.raises(RulesError, match="num_players"):
        Rules(num_players=9)
    with pytest.raises(RulesError, match="preset"):
        Rules(preset="poker")  # such a rule set could not be read back from its own `to_dict`


def test_rules__cannot_be_changed_in_place() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Rules.of("first_out").num_players = 3  # type: ignore[misc]


# --- equality and fingerprint ----------------------------------------------------------------------------------------


def test_fingerprint__of_every_preset_is_frozen() -> None:
    assert {name: Rules.of(name).fingerprint for name in PRESETS} == FINGERPRINTS


def test_fingerprint__and_equality_ignore_the_label_alone() -> None:
    built = Rules.of("first_out", passes_count=True, payoff="place")
    preset = Rules.of("first_out_passes")
    assert built == preset
    assert hash(built) == hash(preset)
    assert built.fingerprint == preset.fingerprint
    assert built.preset != preset.preset
    changes: dict[str, Any] = {
        "num_players": 3, "num_suits": 3, "ranks": "789TJQKA", "starter": "8", "opening": "left_of_dealer",
        "end": "last_holder", "explicit_pass": True, "passes_count": True, "payoff": "place", "deals": 2,
    }  # fmt: skip
    others = [Rules.of("first_out", **{key: value}) for key, value in changes.items()]
    others += [Rules.of("bank", ante=2), Rules.of("bank", pass_fee=2), Rules.of("bank")]
    others += [Rules.of("nine_each"), Rules.of("nine_each", cards_per_seat=8), Rules.of("winner_and_loser"), Rules.of()]
    assert len({rules.fingerprint for rules in others}) == len(set(others)) == len(others)


def test_fingerprint__equal_numbers_give_equal_fingerprints() -> None:
    for one, other in ((2, 2.0), (0, -0.0)):
        a, b = Rules.of("bank", ante=one), Rules.of("bank", ante=other)
        assert a == b
        assert a.fingerprint == b.fingerprint


@given(rule_sets(), rule_sets())
def test_fingerprint__is_equal_exactly_when_the_rules_are(a: Rules, b: Rules) -> None:
    assert (a == b) == (a.fingerprint == b.fingerprint)
    assert Rules.of(a).fingerprint == a.fingerprint


# --- round trips -----------------------------------------------------------------------------------------------------


@given(rule_sets())
def test_round_trips__text_mapping_and_json_give_the_same_rules(rules: Rules) -> None:
    assert Rules.from_text(str(rules)) == rules
    assert Rules.of(rules.to_dict()) == rules
    assert Rules.of(json.loads(json.dumps(rules.to_dict()))) == rules
    assert Rules.of(rules.to_dict()).preset == Rules.of(rules).preset == rules.preset
    assert {*rules.to_dict()} == {"preset", *FIELDS}


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_from_file__reads_what_yaml_writes(preset: str, seats: int, tmp_path: Path) -> None:
    rules = Rules.of(preset, num_players=seats, num_suits=3, cards_per_seat=None, deals=3)
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(rules.to_dict()), encoding="utf-8")
    assert Rules.from_file(path) == rules
    path.write_text(f"preset: {preset}\nnum_players: {seats}\n", encoding="utf-8")
    assert Rules.from_file(str(path)) == Rules.of(preset, num_players=seats)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("preset: poker", "unknown rules preset 'poker'"),
        ("players: 4", "unknown rule field 'players'"),
        ("starter: 9", "quote it in YAML"),
        ("- first_out", "expected `field: value` lines"),
        ("", "expected `field: value` lines"),
        ("deals: [", "not YAML"),
    ],
)
def test_from_file__errors_name_the_file(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "house.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RulesError, match=message) as caught:
        Rules.from_file(path)
    assert str(path) in str(caught.value)


def test_str__gives_the_differences_from_the_preset_alone() -> None:
    assert str(Rules.of("first_out")) == "first_out num_players=4"
    assert str(Rules.of("round", num_players=6)) == "round num_players=6"
    assert str(Rules.of("bank", ante=2, deals=3)) == "bank num_players=4 ante=2.0 deals=3"
    # five seats have no nine cards each, so the text starts from the default preset
    assert str(Rules.of("nine_each", num_players=5, cards_per_seat=7)) == (
        "first_out num_players=5 cards_per_seat=7 opening=left_of_dealer"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("poker", "unknown rules preset 'poker'"),
        ("first_out deals", "field=value.*'deals'"),
        ("first_out deals=two", "deals must be a number, not 'two'"),
        ("first_out ante=x", "ante must be a number, not 'x'"),
        ("first_out cards_per_seat=none", "cards_per_seat must be a number, not 'none'"),
        ("first_out explicit_pass=1", "explicit_pass must be true or false, not '1'"),
        ("first_out seats=4", "unknown rule field 'seats'"),
        ("first_out preset=bank", "unknown rule field 'preset'"),
        ("first_out deals=2 deals=3", "deals.*twice"),
        ("", "preset"),
    ],
)
def test_from_text__refuses_and_names_the_word(text: str, message: str) -> None:
    with pytest.raises(RulesError, match=message):
        Rules.from_text(text)


def test_of__a_round_follows_the_number_of_seats_unless_its_deals_are_given() -> None:
    """Each seat deals once: whatever way the seats are changed."""
    round_of_four = Rules.of("round")
    assert Rules.of(round_of_four, num_players=3).deals == 3
    assert Rules.of(round_of_four.to_dict(), num_players=5).deals == 5
    assert Rules.of("round num_players=4", num_players=2).deals == 2
    assert Rules.of(round_of_four, num_players=3, deals=8).deals == 8
    assert Rules.of(Rules.of("round", deals=8), num_players=3).deals == 8
    assert Rules.of("first_out", num_players=3).deals == 1


def test_of__takes_texts_and_files_wherever_rules_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "mini.yaml"
    path.write_text('num_suits: 2\nranks: "TJQKA"\nstarter: J\n', encoding="utf-8")
    text = "first_out num_suits=2 ranks=TJQKA starter=J"
    assert Rules.of(str(path)) == Rules.of(text) == Rules.of(num_suits=2, ranks="TJQKA", starter="J")
    assert Rules.of(str(path), num_players=2) == Rules.of(text, num_players=2)
    with pytest.raises(RulesError, match=r"there is no rules file nowhere\.yaml"):
        Rules.of("nowhere.yaml")
