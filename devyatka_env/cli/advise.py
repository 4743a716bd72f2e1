"""``devyatka advise``: what to lay, for a person who types what it sees."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots import Bot, make_bot
from devyatka_env.cli.screen import columns, paragraph, payoff_words, signed, width
from devyatka_env.cli.shared import BOTS_HELP, RULES_HELP, Commands, set_threads
from devyatka_env.cli.solve import check_seats
from devyatka_env.rules import DEFAULT_PRESET, Rules, iter_mask
from devyatka_env.views import PlayerView

if TYPE_CHECKING:
    from devyatka_env.evaluation import Advice, Estimate
    from devyatka_env.views import Belief

EXAMPLE = "hand 7♣ 8♣ Q♣ 6♦ K♦ 8♥ A♠ | table 9♣ 8♦ 9♦ 10♦ 9♥ 10♥ 9♠ | left 7 8 7 | passes 0 1 0 | cannot 2: J♦"
FORM = (
    f"What you see is written as fields split by '|', such as '{EXAMPLE}'. hand: your cards; table: the cards on the"
    " table, '-' for none; left: cards left of the other seats, clockwise from you. Further, if you like: passes of the"
    " other seats in that order (with yours first, if one more); cannot: by seat (1 is next to you), cards that its"
    " passes prove it does not hold; laid: by seat, table cards that it laid (0 is you); order: the table cards in the"
    " order they were laid; excluded: seats out for a foul. It is your turn. Cards: 9♦, 9D, TD, 10h; in Russian Дп."
)


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "advise",
        help="which card to lay, from what you see at a table",
        description="Each card that you may lay with its mean payoff and its share of wins, which one the bot would"
        " lay, and who may hold the cards that you do not see.",
        epilog=f"{FORM} {BOTS_HELP}",
    )
    parser.add_argument("seen", help="what you see")
    parser.add_argument("--rules", default=DEFAULT_PRESET, help=f"{RULES_HELP} (first_out)")
    parser.add_argument("--bot", default="pimc", help="the bot that advises (pimc)")
    parser.add_argument("--worlds", type=int, help="ways of the hidden cards to look at (1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of these and of the bot's coin flips (0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read, value the cards, print."""
    from devyatka_env.bots import PimcBot
    from devyatka_env.evaluation import advise
    from devyatka_env.views import Belief, MustPassError, parse_information_state
    from devyatka_env.views.information_state import passes_known, untold_history

    try:
        view = parse_information_state(options.seen, options.rules)
    except MustPassError as error:  # that is an answer, too
        view = error.view
    check_seats(options.rules, view.num_players)
    bot, belief = make_bot(options.bot), Belief(view)
    guesses = _guesses(bot, untold_history(options.seen, options.rules), belief) if view.legal_mask else []
    set_threads(1)
    advice = None
    if view.legal_mask:
        advice = advise(view, options.bot if isinstance(bot, PimcBot) else bot, options.worlds, options.seed)
    else:
        view = PlayerView(view.record, Rules.of(options.rules, num_players=view.num_players), 0)  # as they were given
    passes = _passes_note(view, belief, passes_known(options.seen, options.rules))
    if options.json:
        content = _content(view, belief, advice, [*guesses, *passes])
        print(json.dumps(content, indent=1, ensure_ascii=False))
    else:
        print(*_report(view, belief, advice, guesses, passes), sep="\n")
    return 0


def _guesses(bot: Bot, untold_history: Sequence[str], belief: Belief) -> list[str]:
    """A warning where the text leaves open what the bot may look at.

    Raises:
        ValueError: the bot plays the deal again, from its start.
    """
    from devyatka_env.bots import PimcBot, ReaderBot
    from devyatka_env.bots.scripted import scripted_code

    missing = " and ".join(f"`{field}`" for field in untold_history)
    is_known = belief.view.num_players == 2 and belief.count == 1  # it has nothing to read and plays as pimc
    if untold_history and isinstance(bot, ReaderBot) and not is_known:
        raise ValueError(f"bot {bot.name} reads the whole course of the deal: tell {missing}, too, or ask pimc")
    if isinstance(bot, PimcBot) or scripted_code(bot) >= 0:
        return []  # they look at neither
    fields = [field for field in untold_history if field == "laid" or bot.reads_order]
    words = {"laid": "who laid which card", "order": "in what order the cards were laid"}
    if not fields:
        return []
    told = " and ".join(words[field] for field in fields)
    return [f"{told[0].upper()}{told[1:]} was made up, and the bot may look at it: tell {missing}, if you can."]


def _passes_note(view: PlayerView, belief: Belief, known: str) -> list[str]:
    """What passes do not rule out because their moments are not told, if there is anything."""
    if known == "course" or belief.count == 1 or (known == "numbers" and not any(view.passes[1:])):
        return []
    told = "Of the passes only the number is told"
    if known == "nothing":
        told = "The passes are not told and are taken to be as few as the turns leave"
    return [f"{told}: of cards they rule out those that fitted all along and those that `cannot` names, no others."]


# --- shown -----------------------------------------------------------------------------------------------------------


def _report(
    view: PlayerView, belief: Belief, advice: Advice | None, guesses: Sequence[str], passes: Sequence[str]
) -> list[str]:
    n, deck = view.num_players, view.rules.deck
    seats = "the other seat is 1" if n == 2 else f"the other seats are 1 to {n - 1}, clockwise from you"
    fits = f"What fits now and is not yours: {deck.text(view.fitting_mask & ~view.hand_mask) or 'nothing'}."
    deals = f"{belief.count:,} deals agree with what you see; this table takes all as equally likely."
    if belief.count == 1:
        deals = "Only one deal agrees with what you see."
    parts = [
        paragraph(f"{view.rules}: you are on turn, {seats}"),
        *([["Nothing that you hold fits: you must pass"]] if advice is None else _advised(view, advice, guesses)),
        paragraph(f"{fits} {deals}"),
        _grid(view, belief),
        *map(paragraph, passes),
    ]
    return [line for part in parts for line in (*part, "")][:-1]


def _advised(view: PlayerView, advice: Advice, guesses: Sequence[str]) -> list[list[str]]:
    """The card, the figures and what they mean."""
    cards = view.rules.deck.cards
    lays = f"{advice.bot} lays {cards[advice.card]}"
    if len(advice.payoff) == 1:
        lays = f"Only {cards[advice.card]} fits: there is nothing to choose"
    meaning = f"payoff: {payoff_words(view.rules.payoff, view.num_players)}. wins: place 1."
    notes = [line for words in (meaning, *advice.notes, *guesses) for line in paragraph(words)]
    return [[lays], _table(view, advice), notes]


def _table(view: PlayerView, advice: Advice) -> list[str]:
    """A line a card, best first: its figures with their 95 % intervals."""
    cards = view.rules.deck.cards
    heads = ["", "card", *(["value"] if advice.value else []), "payoff", "wins"]
    rows = [[*heads, f"against {cards[advice.card]}" if advice.behind else ""]]
    for card in sorted(advice.payoff, key=lambda one: (-advice.value.get(one, 0.0), -advice.payoff[one].mean)):
        payoff, win = advice.payoff[card], advice.win[card]
        row = ["*" if card == advice.card else "", str(cards[card])]
        row += [signed(advice.value[card])] if advice.value else []
        behind = advice.behind.get(card)
        chance = f"{100 * win.mean:.1f} %" + ("" if advice.exact else f" ({100 * win.low:.1f} to {100 * win.high:.1f})")
        rows.append([*row, _estimate(payoff, advice), chance, _estimate(behind, advice) if behind else ""])
    return [line.rstrip() for line in columns(rows)]


def _estimate(one: Estimate, advice: Advice) -> str:
    return signed(one.mean) if advice.exact else f"{one.mean:+.3f} ± {one.half_width:.3f}"


def _grid(view: PlayerView, belief: Belief) -> list[str]:
    """The probability of each unseen card for each seat, in percent, suits side by side where there is room."""
    deck, n = view.rules.deck, view.num_players
    sizes = belief.marginals.sum(1)
    slots = [slot for slot in range(1, n + 1) if sizes[slot] > 0.5]
    labels = [("undealt" if slot == n else f"seat {slot}") + f" ({sizes[slot]:.0f})" for slot in slots]
    indent = max(map(len, labels))
    block = 3 * deck.num_ranks + 2
    beside = max(fit for fit in (1, 2, 4) if fit == 1 or indent + fit * block <= width())
    lines = paragraph("Who holds what, in % (■ on the table, ● yours, ✓ certain, – impossible)")
    for first in range(0, deck.num_suits, beside):
        suits = range(first, min(first + beside, deck.num_suits))
        heads = [deck.suits[suit] + "".join(_rank(rank).rjust(3) for rank in deck.ranks) for suit in suits]
        rows = [("", heads), ("", [_cells(view, suit, None) for suit in suits])]
        rows += [
            (label, [_cells(view, suit, belief.marginals[slot]) for suit in suits])
            for label, slot in zip(labels, slots, strict=True)
        ]
        lines += [""] if first else []
        lines += [f"{label.ljust(indent)} {' '.join(cells)}".rstrip() for label, cells in rows]
    return lines


def _rank(rank: str) -> str:
    return "10" if rank == "T" else rank


def _cells(view: PlayerView, suit: int, chances: NDArray[np.float64] | None) -> str:
    """A suit's cells: what is known, or the chances of a seat."""
    cells = []
    for card in iter_mask(view.rules.deck.suit_mask(suit)):
        if not view.unseen_mask >> card & 1:
            known = "■" if view.table_mask >> card & 1 else "●"
            cells.append(known if chances is None else "")
        else:
            cells.append("" if chances is None else _percent(float(chances[card])))
    return " " + "".join(cell.rjust(3) for cell in cells)


def _percent(chance: float) -> str:
    if chance == 0:
        return "–"
    if chance > 1 - 1e-9:
        return "✓"
    return "<1" if chance < 0.005 else str(min(round(100 * chance), 99))


def _content(view: PlayerView, belief: Belief, advice: Advice | None, guesses: Sequence[str]) -> dict[str, Any]:
    """The same as JSON values; a seat that must pass is advised ``-``."""
    cards = view.rules.deck.cards
    unseen = iter_mask(view.unseen_mask)
    beliefs = {
        "deals": belief.count,
        "holders": {str(cards[card]): belief.marginals[1:, card].tolist() for card in unseen},
    }
    if advice is None:
        return {"rules": view.rules.to_dict(), "advice": "-", "cards": [], "notes": [*guesses], **beliefs}
    rows = []
    for card, payoff in advice.payoff.items():
        win = advice.win[card]
        row: dict[str, Any] = {"card": str(cards[card])}
        row |= {"value": advice.value[card]} if advice.value else {}
        row |= {"payoff": payoff.mean, "payoff_ci95": [payoff.low, payoff.high]}
        if card in advice.behind:
            behind = advice.behind[card]
            row |= {"against": behind.mean, "against_ci95": [behind.low, behind.high]}
        rows.append(row | {"win": win.mean, "win_ci95": [win.low, win.high]})
    return {
        "rules": view.rules.to_dict(),
        "bot": advice.bot,
        "advice": str(cards[advice.card]),
        "exact": advice.exact,
        "worlds": next(iter(advice.payoff.values())).count,
        "cards": rows,
        "notes": [*advice.notes, *guesses],
        **beliefs,
    }
