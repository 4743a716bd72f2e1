"""``devyatka advise``: what to lay, for a person who types what it sees."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots import BotError, make_bot
from devyatka_env.bots.base import Bot
from devyatka_env.cards import iter_mask
from devyatka_env.cli.screen import columns, paragraph, payoff_words, signed, width
from devyatka_env.cli.shared import BOTS_HELP, RULES_HELP, Commands, set_threads
from devyatka_env.rules import DEFAULT_PRESET
from devyatka_env.view import PlayerView

if TYPE_CHECKING:
    from devyatka_env.belief import Belief
    from devyatka_env.evaluation.stats import Estimate
    from devyatka_env.records import States

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
    parser.add_argument("--bot", default="greedy", help="the bot that advises (greedy)")
    parser.add_argument("--worlds", type=int, default=1000, help="ways of the hidden cards to play out (1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of these and of the bot's coin flips (0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read, play out, print."""
    from devyatka_env.belief import Belief
    from devyatka_env.seen import left_open, read_seen

    view = read_seen(options.seen, options.rules)
    bot = make_bot(options.bot)
    _check(bot, view, options.worlds)
    set_threads(1)
    belief = Belief(view)
    advice = _play_out(bot, belief, options.worlds, options.seed)
    notes = [*advice.notes, *_guesses(bot, left_open(options.seen, options.rules))]
    if options.json:
        print(json.dumps(_content(view, bot, belief, advice, notes), indent=1, ensure_ascii=False))
    else:
        print(*_report(view, bot, belief, advice, notes), sep="\n")
    return 0


def _check(bot: Bot, view: PlayerView, worlds: int) -> None:
    """Refuse a bot that cannot advise.

    Raises:
        ValueError: it sees all hands, or does not play these rules; or no worlds.
    """
    if bot.sees_all_hands:
        raise ValueError(f"bot {bot.name} sees all hands, so it has no advice for someone who does not")
    bot.check_rules(view.rules)
    if worlds < 2:
        raise ValueError(f"--worlds must be at least 2, not {worlds}")


# --- the figures -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Advice:
    """What each card is worth.

    Attributes:
        card: the card advised.
        payoff: the mean payoff by card.
        win: the probability of place 1 by card (of a shared place, its share).
        behind: the mean payoff less that of the card advised, world by world.
        exact: whether the figures are no estimates.
        notes: how they come about.
    """

    card: int
    payoff: Mapping[int, Estimate]
    win: Mapping[int, Estimate]
    behind: Mapping[int, Estimate]
    exact: bool
    notes: tuple[str, ...]


def _play_out(bot: Bot, belief: Belief, worlds: int, seed: int) -> _Advice:
    """Play each card in each of some worlds, and let the bot play every seat to the end."""
    from devyatka_env.bots.play import play_on
    from devyatka_env.deals import Deals
    from devyatka_env.evaluation.stats import Mean

    view = belief.view
    every = belief.count <= worlds and bot.deterministic
    states = _every_world(belief) if every else belief.sample_states(np.random.default_rng(seed), worlds)
    count = len(states)
    cards = list(iter_mask(view.legal_mask))
    # A world has the same number with every card, and with it the same coin flips.
    games = Deals(view.rules, np.tile(np.arange(count), len(cards)), seed)
    games.states[:] = np.tile(states, len(cards))
    games.step(games.all, np.repeat(cards, count))
    play_on(games, [bot], np.zeros((len(games), view.num_players), np.int64), games.all)
    payoffs = games.payoffs(games.all)[:, 0].reshape(len(cards), count)
    places = games.states["places"][:, : view.num_players]
    wins = np.where(places[:, 0] == 1, 1 / (places == 1).sum(1), 0.0).reshape(len(cards), count)
    advised = _choice(bot, view, seed)

    def mean(values: NDArray[np.float64]) -> Estimate:
        running = Mean()
        running.add(values)
        return running.estimate()

    drawn = f"{count:,} deals drawn from those that agree with what you see"
    if every:
        drawn = f"all {count:,} deals that agree with what you see" if count > 1 else "the one deal that can be"
    return _Advice(
        card=advised,
        payoff={card: mean(row) for card, row in zip(cards, payoffs, strict=True)},
        win={card: _share(row) for card, row in zip(cards, wins, strict=True)},
        behind={card: mean(row - payoffs[cards.index(advised)]) for card, row in zip(cards, payoffs, strict=True)},
        exact=every,
        notes=(f"Each card was played in {drawn}, with this bot in every seat to the end, yours too.",),
    )


def _every_world(belief: Belief) -> States:
    """Every deal that agrees, as engine records."""
    from devyatka_env import engine
    from devyatka_env.records import rules_record

    hands = np.ascontiguousarray(belief.deals(range(belief.count)))
    worlds = np.repeat(belief.view.record, belief.count)
    for world, held in zip(worlds, hands, strict=True):
        engine.reveal(world, rules_record(belief.view.rules)[0], held)
    return worlds


def _choice(bot: Bot, view: PlayerView, seed: int) -> int:
    """The card that the bot itself lays.

    Raises:
        BotError: none that is legal.
    """
    words = np.random.default_rng(seed).integers(0, 2**64, size=1, dtype=np.uint64)
    card = int(bot.act_batch(view.record.copy(), view.rules, words)[0])
    if card not in view.legal_actions():
        raise BotError(f"bot {bot.name} chose action {card}; legal: {view.legal_actions()}")
    return card


def _share(wins: NDArray[np.float64]) -> Estimate:
    """The mean of shares 0 to 1 with its 95 % interval (Wilson 1927), which is right near 0 and 1, too."""
    from devyatka_env.evaluation.stats import Z95, Estimate

    count, mean = len(wins), float(wins.mean())
    part = Z95**2 / count
    middle = (mean + part / 2) / (1 + part)
    half = (part * (mean * (1 - mean) + part / 4)) ** 0.5 / (1 + part)
    return Estimate(mean, max(middle - half, 0.0), min(middle + half, 1.0), count)


def _guesses(bot: Bot, left_open: Sequence[str]) -> list[str]:
    """A warning where the text leaves open what the bot may look at."""
    from devyatka_env.bots.scripted import scripted_code

    matters = {"laid": scripted_code(bot) < 0, "order": bot.reads_order}
    fields = [field for field in left_open if matters[field]]
    words = {"laid": "who laid which card", "order": "the order of the cards laid"}
    if not fields:
        return []
    return [
        f"{' and '.join(words[field] for field in fields).capitalize()}, which this bot may look at, is not told and"
        f" was made up: add {' and '.join(f'`{field}`' for field in fields)} if you can."
    ]


# --- shown -----------------------------------------------------------------------------------------------------------


def _report(view: PlayerView, bot: Bot, belief: Belief, advice: _Advice, notes: Sequence[str]) -> list[str]:
    n, deck = view.num_players, view.rules.deck
    seats = "the other seat is 1" if n == 2 else f"the other seats are 1 to {n - 1}, clockwise from you"
    fits = f"What fits now and is not yours: {deck.text(view.fitting_mask & ~view.hand_mask) or 'nothing'}."
    deals = f"{belief.count:,} deals agree with what you see; all are taken as equally likely."
    if belief.count == 1:
        deals = "Only one deal agrees with what you see."
    parts = [
        paragraph(f"{view.rules}: you are on turn, {seats}"),
        [f"{bot.name} lays {deck.cards[advice.card]}"],
        _table(view, advice),
        paragraph(f"payoff: {payoff_words(view.rules.payoff, n)}. wins: place 1."),
        [line for note in notes for line in paragraph(note)],
        paragraph(f"{fits} {deals}"),
        _grid(view, belief),
    ]
    return [line for part in parts for line in (*part, "")][:-1]


def _table(view: PlayerView, advice: _Advice) -> list[str]:
    """A line a card, best first: its figures with their 95 % intervals."""
    advised = view.rules.deck.cards[advice.card]
    rows = [["", "card", "payoff", "wins", f"against {advised}"]]
    for card, payoff in sorted(advice.payoff.items(), key=lambda item: -item[1].mean):
        win, behind = advice.win[card], advice.behind[card]
        cells = [
            f"{signed(payoff.mean)}",
            f"{100 * win.mean:.1f} %",
            "" if card == advice.card else signed(behind.mean),
        ]
        if not advice.exact:
            cells[0] += f" ± {payoff.half_width:.3f}"
            cells[1] += f" ({100 * win.low:.1f} to {100 * win.high:.1f})"
            cells[2] += f" ± {behind.half_width:.3f}" if cells[2] else ""
        rows.append(["*" if card == advice.card else "", str(view.rules.deck.cards[card]), *cells])
    return columns(rows)


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


def _content(view: PlayerView, bot: Bot, belief: Belief, advice: _Advice, notes: Sequence[str]) -> dict[str, Any]:
    """The same as JSON values."""
    cards = view.rules.deck.cards
    return {
        "rules": view.rules.to_dict(),
        "bot": bot.name,
        "advice": str(cards[advice.card]),
        "exact": advice.exact,
        "worlds": next(iter(advice.payoff.values())).count,
        "cards": [
            {
                "card": str(cards[card]),
                "payoff": payoff.mean,
                "payoff_ci95": [payoff.low, payoff.high],
                "win": advice.win[card].mean,
                "win_ci95": [advice.win[card].low, advice.win[card].high],
            }
            for card, payoff in advice.payoff.items()
        ],
        "notes": list(notes),
        "deals": belief.count,
        "holders": {str(cards[card]): belief.marginals[1:, card].tolist() for card in iter_mask(view.unseen_mask)},
    }
