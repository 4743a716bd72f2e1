"""Text laid out for a terminal, or for a pipe that is read as one of 80 columns."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Sequence

from devyatka_env.games import Game
from devyatka_env.games.notation import action_text
from devyatka_env.rules import Deck, iter_mask

MAX_WIDTH = 100  # columns


def width() -> int:
    """The columns to fill."""
    return max(40, min(MAX_WIDTH, shutil.get_terminal_size().columns))


def flow(items: Iterable[str], first: str = "", separator: str = "  ") -> list[str]:
    """Items behind one another, broken only between them; further lines are indented as far as ``first`` reaches."""
    lines, indent = [first], " " * len(first)
    for item in items:
        joint = separator if lines[-1].strip() and lines[-1] != first else ""
        if lines[-1].strip() and len(lines[-1] + joint + item) > width():
            lines[-1] = (lines[-1] + joint).rstrip()
            lines.append(indent)
            joint = ""
        lines[-1] += joint + item
    return [line.rstrip() for line in lines]


def paragraph(text: str, first: str = "") -> list[str]:
    """A text wrapped at its words, further lines indented as far as ``first`` reaches."""
    return textwrap.wrap(first + text, width(), subsequent_indent=" " * len(first), break_on_hyphens=False) or [first]


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as a table; the cells are set to the right, but the first two and the last, which is wrapped."""
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    lines = []
    for *cells, last in rows:
        sized = list(zip(cells, widths, strict=True))
        shown = [cell.ljust(size) for cell, size in sized[:2]] + [cell.rjust(size) for cell, size in sized[2:]]
        lines += paragraph(last, "  ".join(shown) + "  ")
    return lines


def hand_by_suit(mask: int, deck: Deck) -> list[str]:
    """A hand as ``♣ 6 8 10``, an item a suit that it has cards of."""
    items = []
    for suit, sign in enumerate(deck.suits):
        ranks = [str(deck.cards[card])[:-1] for card in iter_mask(mask & deck.suit_mask(suit))]
        if ranks:
            items.append(" ".join([sign, *ranks]))
    return items


def signed(value: float) -> str:
    """A payoff: ``+1``, ``-0.333``, ``0``."""
    text = f"{value:+.3f}".rstrip("0").rstrip(".")
    return "0" if text in ("+0", "-0") else text


def plural(number: int, word: str) -> str:
    """``1 card``, ``2 cards``, ``1,000 passes``."""
    ending = "" if number == 1 else "es" if word.endswith("s") else "s"
    return f"{number:,} {word}{ending}"


def payoff_words(payoff: str, num_players: int) -> str:
    """What a payoff counts (rules, section 8)."""
    share = signed(1 / (num_players - 1))
    return {
        "win": f"+1 for place 1, {share.replace('+', '-')} for the others",
        "lose": f"-1 for the last place, {share} for the others",
        "win_lose": "+1 for place 1, -1 for the last place, else 0",
        "place": "from +1 for place 1 down to -1 for the last",
        "cards": "-1 for each card left",
        "points": "the card points left, negative",
        "bank": "money taken from the bank less money paid",
    }[payoff]


def course(game: Game, end: Game, title: str) -> list[str]:
    """The moves from ``game`` on to its ``end``: a row a seat, a column a round."""
    n, pass_action = game.num_players, game.rules.pass_action
    rounds: list[dict[int, str]] = [{}]
    row = -1
    for seat, action in end.history[len(game.history) :]:
        if (seat - game.turn) % n <= row:
            rounds.append({})
        row = (seat - game.turn) % n
        rounds[-1][seat] = "–" if action == pass_action else action_text(action, game.rules)
    lines = [f"{title}, a column a round (– passes)"]
    room = (width() - len("  seat 0 ")) // 4
    for first in range(0, len(rounds), room):
        lines += [""] if first else []
        for seat in ((game.turn + k) % n for k in range(n)):
            cells = "".join(cards.get(seat, "").rjust(4) for cards in rounds[first : first + room])
            lines += [f"  seat {seat} {cells}".rstrip()] if cells.strip() else []
    return lines


def ending(end: Game) -> list[str]:
    """The result of a finished deal, a line a seat."""
    result, deck = end.result(), end.rules.deck
    rows = []
    for seat, mask in enumerate(end.hand_masks):
        figures = [f"place {result.places[seat]}", f"payoff {signed(result.payoffs[seat])}"]
        left = "  ".join(hand_by_suit(mask, deck)) or "no cards left"
        rows.append(["", f"seat {seat}", *figures, plural(result.passes[seat], "pass"), left])
    return [f"Its end ({result.reason.replace('_', ' ')})", *columns(rows)]
