"""Text forms of a game: the one-line position, and the table as a person would draw it.

A position line says everything about a deal, history included, in four fields split by `` | ``::

    first_out num_players=2 | dealer 1 | 6♣ 9♦ / 10♦ 7♣ | 9♦ 10♦

the rules (`Rules.from_text`), the dealer, the hands *as dealt* by seat, and the actions so far (``-`` is an explicit
PASS; automatic passes are not written). A position is therefore a replay: whatever it says has happened by the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from devyatka_env.engine import REASONS
from devyatka_env.rules import CardTextError, Rules

PASS_TEXT = "-"


class PositionTextError(ValueError):
    """A position line that cannot be read; the message names the field."""


class Position(NamedTuple):
    """The content of a position line."""

    rules: Rules
    dealer: int
    hands: tuple[int, ...]  # hand_mask as dealt, by seat
    actions: tuple[int, ...]


def action_text(action: int, rules: Rules) -> str:
    """``9♦`` for a card id, ``-`` for PASS."""
    return PASS_TEXT if action == rules.pass_action else str(rules.deck.cards[action])


def parse_action(text: str, rules: Rules) -> int:
    """A card text or a pass (``-`` or ``pass``) as an action.

    Raises:
        CardTextError: neither.
    """
    if text.strip().lower() in (PASS_TEXT, "pass"):
        return rules.pass_action
    return rules.deck.card_id(text)


def format_position(rules: Rules, dealer: int, hands: Sequence[int], actions: Iterable[int]) -> str:
    """The position line of hands as dealt and the actions since."""
    dealt = " / ".join(rules.deck.text(hand) for hand in hands)
    moves = " ".join(action_text(action, rules) for action in actions)
    return f"{rules} | dealer {dealer} | {dealt} | {moves}".rstrip()


def parse_position(text: str) -> Position:
    """Read a position line. Whether it can have happened is for `Game.from_position` to check.

    Raises:
        PositionTextError: a field is missing or cannot be read.
        RulesError: the rules cannot be played.
    """
    fields = [part.strip() for part in text.split("|")]
    if len(fields) != 4:
        raise PositionTextError(
            f"a position has 4 fields split by '|' (rules | dealer N | hands | actions), found {len(fields)}: {text!r}"
        )
    rules = Rules.from_text(fields[0])
    dealer = re.fullmatch(r"dealer (\d+)", fields[1])
    if dealer is None:
        raise PositionTextError(f"the second field must be 'dealer N', not {fields[1]!r}")
    try:
        hands = tuple(rules.deck.parse_mask(part) for part in fields[2].split("/"))
    except CardTextError as error:
        raise PositionTextError(f"hands: {error}") from error
    try:
        actions = tuple(parse_action(word, rules) for word in fields[3].split())
    except CardTextError as error:
        raise PositionTextError(f"actions: {error}") from error
    return Position(rules, int(dealer[1]), hands, actions)


def draw_table(record: np.void, rules: Rules) -> str:
    """The rows and the seats, one line each. A view record shows only the hand that its seat may see."""
    return "\n".join([rules.deck.draw_rows(int(record["table"])), *_seat_lines(record, rules)])


def _seat_lines(record: np.void, rules: Rules) -> list[str]:
    lines = []
    for seat in range(int(record["num_players"])):
        cards, passes = int(record["cards_left"][seat]), int(record["passes"][seat])
        on_turn = ">" if seat == int(record["turn"]) else " "
        line = f"{on_turn}seat {seat}  {_plural(cards, 'card'):8}  {_plural(passes, 'pass'):9}"
        hand = rules.deck.text(int(record["hands"][seat]))
        lines.append("  ".join(part for part in (line, _standing(record, seat), hand) if part).rstrip())
    if int(record["turn"]) < 0:
        lines.append(f"The deal is over ({REASONS[int(record['reason'])].replace('_', ' ')}).")
    return lines


def _standing(record: np.void, seat: int) -> str:
    status, place = int(record["status"][seat]), int(record["places"][seat])
    words = ["excluded"] if status < 0 else ["out"] if status > 0 else []
    if place:
        words.append(f"place {place}")
    return ", ".join(words)


def _plural(number: int, word: str) -> str:
    if number == 1:
        return f"1 {word}"
    return f"{number} {word}es" if word.endswith("s") else f"{number} {word}s"
