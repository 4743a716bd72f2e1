"""``devyatka solve``: what every card is worth when all hands are open."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devyatka_env.cli.screen import columns, course, ending, flow, hand_by_suit, paragraph, payoff_words, plural, signed
from devyatka_env.cli.shared import RULES_HELP, Commands
from devyatka_env.games import Game
from devyatka_env.games.notation import action_text
from devyatka_env.rules import DEFAULT_PRESET, CardTextError, Rules, iter_mask

if TYPE_CHECKING:
    from devyatka_env.games import Effect
    from devyatka_env.solver import Solution

POSITION_FORM = "rules | dealer N | hands | cards laid so far"
EXAMPLE = "first_out num_players=2 num_suits=2 ranks=789TJ | dealer 1 | 7♣ 9♣ 7♦ J♦ 10♣ / 8♣ J♣ 9♦ 8♦ 10♦ | 9♦ 9♣ 8♦ 7♦"


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "solve",
        help="the exact value of every card when all hands are open",
        description="The exact value of every card that the seat on turn may lay, all hands being open, with the reason"
        " and the line of best play. At two seats with the whole pack dealt that is the truth about the deal: who sees"
        " one hand knows the other.",
        epilog=f"A position is '{POSITION_FORM}' (what `Game.position` gives, and the screen's last line), such as"
        f" '{EXAMPLE}': the hands as dealt, seat 0 first, with '/' between the seats, then all cards laid since, in"
        " order; '-' is a pass, where the rules have passes told (explicit_pass). Or give the hands of a fresh deal"
        " alone. Cards: 9♦, 9D, TD, 10h; in Russian Дп, 10б.",
    )
    parser.add_argument("position", nargs="?", help="the position or the hands")
    parser.add_argument("--seed", type=int, help="solve a random deal of this seed instead")
    parser.add_argument("--index", type=int, help="number of the deal (0); with --seed")
    parser.add_argument("--seats", type=int, help="number of seats, 2 to 6 (default: 4); with --seed")
    parser.add_argument("--rules", help=f"{RULES_HELP} (first_out); not for a position, which names its own")
    parser.add_argument("--after", metavar="CARDS", help="cards to lay first, in order, such as '9♦ 8♦'")
    parser.add_argument(
        "--max-states",
        type=int,
        help="positions that a search may keep, 100 bytes each (10 million); for 3 or more seats",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Solve and print."""
    from devyatka_env.games import effect_of

    game, origin = _game(options)
    if options.after is not None:
        for word in options.after.split():
            game.play(word)
        origin += f" after {options.after}"
    answer = _answer(game, options.max_states)
    effects = {action: effect_of(game, action) for action in game.legal_actions()}
    if options.json:
        print(json.dumps(_content(game, answer, effects), indent=1, ensure_ascii=False))
    else:
        print(*_report(game, origin, answer, effects), sep="\n")
    return 0


# --- what is asked ---------------------------------------------------------------------------------------------------


def _game(options: argparse.Namespace) -> tuple[Game, str]:
    """The game to solve, and where it comes from.

    Raises:
        ValueError: options that say both or neither, or a text that is no position.
    """
    dealt = (options.seed, options.index, options.seats) != (None, None, None)
    if (options.position is None) != dealt:
        raise ValueError(
            "give a position or a deal by --seed, --index and --seats, not both" if dealt else
            f"give a position ('{POSITION_FORM}' or hands with '/' between them), or a deal by --seed N"
        )  # fmt: skip
    if dealt:
        check_seats(options.rules, options.seats)
        seats = {} if options.seats is None else {"num_players": options.seats}
        rules = Rules.of(options.rules or DEFAULT_PRESET, **seats)
        seed, index = options.seed or 0, options.index or 0
        return Game.deal(rules, seed, index), f"deal {index} of seed {seed}"
    text = options.position
    if "|" in text:
        if options.rules is not None:
            raise ValueError("a position line names its rules itself: leave --rules out")
        return Game.from_position(text), "given position"
    hands = text.split("/")
    if len(hands) < 2:
        raise ValueError(f"a position is '{POSITION_FORM}', or hands with '/' between the seats, not {text!r}")
    check_seats(options.rules, len(hands))
    rules = Rules.of(options.rules or DEFAULT_PRESET, num_players=len(hands))
    return Game.from_hands(rules, [_hand(hand, seat, rules) for seat, hand in enumerate(hands)]), "given hands"


def check_seats(rules: str | None, seats: int | None) -> None:
    """Refuse rules that name another number of seats than is given.

    Raises:
        ValueError: they do.
    """
    if rules is None or seats is None:
        return
    words = Path(rules).read_text(encoding="utf-8") if rules.endswith((".yaml", ".yml")) else rules
    told = Rules.of(rules).num_players
    if "num_players" in words and told != seats:
        raise ValueError(f"--rules has num_players={told}, but {seats} seats are given")


def _hand(text: str, seat: int, rules: Rules) -> int:
    try:
        return rules.deck.parse_mask(text)
    except CardTextError as error:
        raise ValueError(f"hand of seat {seat}: {error}") from error


# --- the answer ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Answer:
    """Values by action, in columns; the first column decides."""

    columns: Mapping[str, Mapping[int, float]]
    meaning: tuple[str, ...]
    best: tuple[int, ...]
    end: Game  # at the end of the best line
    cost: Mapping[str, tuple[int, float]]  # positions and seconds
    payoffs: Mapping[int, tuple[float, ...]]  # of all seats, by action; empty at two seats


def _answer(game: Game, max_states: int | None) -> _Answer:
    """Solve.

    Raises:
        ValueError: the deal is over; ``max_states`` is given where nothing is searched; or more than that many
            positions are needed, by default the solver's limit.
    """
    from devyatka_env.solver import StateLimitError
    from devyatka_env.solver.lattice import is_solved
    from devyatka_env.solver.open_hands import MAX_STATES

    if game.is_over:
        raise ValueError("the deal is over: there is nothing left to solve")
    if max_states is not None and is_solved(game.rules):
        raise ValueError("--max-states is for searches; two seats are solved without one: leave it out")
    limit = MAX_STATES if max_states is None else max_states
    try:
        return _two_seats(game, limit) if game.num_players == 2 else _more_seats(game, limit)
    except StateLimitError as error:
        raise ValueError(
            f"more than {limit:,} positions are needed: allow more by --max-states (some 100 bytes of memory each), or"
            " give a later moment of the deal"
        ) from error


def _two_seats(game: Game, limit: int) -> _Answer:
    """Exact in any case: what one seat gains the other loses, so max^n is best play, where the solver has no table."""
    from devyatka_env.solver import max_n, solve
    from devyatka_env.solver.lattice import is_solved

    rules = game.rules
    exact = solve(game) if is_solved(rules) else max_n(game, max_states=limit)
    meaning = [f"value: what best play of both seats gives seat {game.turn}: {_two_seat_words(game)}."]
    if rules.cards_per_seat is not None and 2 * rules.cards_per_seat < rules.deck.num_cards:
        meaning.append(
            "Cards are out of play, so the seats do not know each other's hands; these are the values of open hands,"
            " which honest play cannot count on."
        )
    return _Answer(
        columns={"value": exact.values},
        meaning=tuple(meaning),
        best=exact.best,
        end=_play(game, exact),
        cost={"value": (exact.states, exact.seconds)},
        payoffs={},
    )


def _more_seats(game: Game, limit: int) -> _Answer:
    from devyatka_env.solver import max_n, paranoid

    each, floor = max_n(game, max_states=limit), paranoid(game, max_states=limit)
    return _Answer(
        columns={"value": each.values, "floor": floor.values},
        meaning=(
            f"value: seat {game.turn}'s payoff when every seat sees all hands and plays for itself (max^n; among equals"
            f" it takes what leaves the next seat least): {payoff_words(game.rules.payoff, game.num_players)}.",
            f"floor: what seat {game.turn} is sure of even when all others play against it alone (paranoid).",
        ),
        best=each.best,
        end=_play(game, each),
        cost={"value": (each.states, each.seconds), "floor": (floor.states, floor.seconds)},
        payoffs=each.payoffs_by_action,
    )


def _two_seat_words(game: Game) -> str:
    things = {"cards": "the cards", "points": "the card points"}.get(game.rules.payoff)
    if things is None:
        return payoff_words(game.rules.payoff, 2)
    return f"{things} left to seat {1 - game.turn} less its own"


def _play(game: Game, solution: Solution) -> Game:
    """The game at the end of the best line."""
    end = game.clone()
    for action in solution.line:
        end.play(action)
    return end


# --- shown -----------------------------------------------------------------------------------------------------------


def _why(effect: Effect, mover: int) -> str:
    """An effect as a short phrase."""
    parts = []
    if effect.next_seat >= 0:
        gifts = [f"seat {seat} {' '.join(cards)}" for seat, cards in effect.gives.items()]
        parts += ["gives " + ", ".join(gifts)] if gifts else []
        parts += [f"makes way for its own {' '.join(effect.own)}"] if effect.own else []
    if effect.passes:
        seats = ", ".join(map(str, effect.passes))
        parts.append(f"seat {seats} passes" if len(effect.passes) == 1 else f"seats {seats} pass")
    count = len(effect.next_cards)
    who = f"seat {effect.next_seat}" + (" again" if effect.next_seat == mover else "")
    if effect.next_seat < 0:
        parts.append(f"ends the deal ({_reason(effect.reason)})")
    elif count == 1:
        parts.append(f"{who} must lay {effect.next_cards[0]}")
    else:
        parts.append(f"{who} can lay {count} cards")
    return "; ".join(parts)


def _reason(reason: str) -> str:
    return reason.replace("_", " ")


def _report(game: Game, origin: str, answer: _Answer, effects: Mapping[int, Effect]) -> list[str]:
    parts: Sequence[list[str]] = [
        paragraph(f"{game.rules}, dealer {game.dealer}, {origin}"),
        _holders(game),
        _seats(game),
        _table(game, answer, effects),
        [line for words in answer.meaning for line in paragraph(words)],
        course(game, answer.end, "Best line"),
        ending(answer.end),
    ]
    costs = [
        f"{name}: {plural(count, 'position')} in {seconds:.3f} s" for name, (count, seconds) in answer.cost.items()
    ]
    parts = (*parts, flow(costs), paragraph(game.position))
    return [line for part in parts for line in (*part, "")][:-1]


def _holders(game: Game) -> list[str]:
    """The rows, each card as the seat that holds it."""
    deck = game.rules.deck
    lines = ["   " + "".join(("10" if rank == "T" else rank).rjust(3) for rank in deck.ranks)]
    for suit, sign in enumerate(deck.suits):
        cells = []
        for card in iter_mask(deck.suit_mask(suit)):
            seats = [str(seat) for seat, mask in enumerate(game.hand_masks) if mask >> card & 1]
            cells.append("■" if game.table_mask >> card & 1 else seats[0] if seats else "·")
        lines.append(f" {sign} " + "".join(cell.rjust(3) for cell in cells))
    away = ", · out of play" if game.rules.cards_per_seat else ""
    return [*lines, f"   (■ on the table, else the seat that holds it{away})"]


def _seats(game: Game) -> list[str]:
    """A line a seat: who is on turn, cards, passes, and the hand by suit."""
    record, lines = game.record, []
    for seat, mask in enumerate(game.hand_masks):
        facts = [f"{'>' if seat == game.turn else ' '}seat {seat}", f"{plural(mask.bit_count(), 'card'):>8}"]
        if record["passes"].any():
            facts.append(f"{plural(int(record['passes'][seat]), 'pass'):>9}")
        if record["status"][seat]:
            facts.append("out" if record["status"][seat] > 0 else "excluded")
        lines += flow(hand_by_suit(mask, game.rules.deck), "  ".join(facts) + "  ")
    return lines


def _table(game: Game, answer: _Answer, effects: Mapping[int, Effect]) -> list[str]:
    """A line a card: its values, and why."""
    rows = [["", f"seat {game.turn}", *answer.columns, "what follows (* best)"]]
    for action, effect in effects.items():
        card = "passes" if action == game.rules.pass_action else action_text(action, game.rules)
        values = [signed(column[action]) for column in answer.columns.values()]
        rows.append(["*" if action in answer.best else "", card, *values, _why(effect, game.turn)])
    return columns(rows)


def _content(game: Game, answer: _Answer, effects: Mapping[int, Effect]) -> dict[str, Any]:
    """The answer as JSON values; cards as texts, a pass as ``-``."""
    rules, result = game.rules, answer.end.result()
    actions = []
    for action, effect in effects.items():
        actions.append(
            {
                "action": action_text(action, rules),
                "id": action,
                **{name: column[action] for name, column in answer.columns.items()},
                **({"payoffs": list(answer.payoffs[action])} if answer.payoffs else {}),
                "best": action in answer.best,
                "gives": {str(seat): list(cards) for seat, cards in effect.gives.items()},
                "passes": list(effect.passes),
                "next_seat": effect.next_seat,
                "next_cards": list(effect.next_cards),
            }
        )
    return {
        "position": game.position,
        "seat": game.turn,
        "meaning": list(answer.meaning),
        "actions": actions,
        "line": [[seat, action_text(action, rules)] for seat, action in answer.end.history[len(game.history) :]],
        "result": {
            "places": list(result.places),
            "payoffs": list(result.payoffs),
            "cards_left": [rules.deck.text(mask) for mask in answer.end.hand_masks],
            "passes": list(result.passes),
            "reason": result.reason,
        },
        "cost": {name: {"states": states, "seconds": seconds} for name, (states, seconds) in answer.cost.items()},
    }
