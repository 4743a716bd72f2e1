"""What a person sees at a real table, typed as text: `read_seen` makes a `PlayerView` of it, `format_seen` the text.

A text is named fields in any order, split by ``|``, about the moment at which its writer is on turn::

    hand 7♣ 8♣ Q♣ 6♦ K♦ 8♥ A♠ | table 9♣ 8♦ 9♦ 10♦ 9♥ 10♥ 9♠ | left 7 8 7 | passes 0 1 0 | cannot 2: J♦

======== ============================================================================================================
hand     the writer's cards
table    the cards on the table, ``-`` for none
left     the cards left of each other seat, clockwise from the writer: so many other seats there are
passes   passes of the other seats in that order, with the writer's own before them if there is one number more
cannot   by seat (1 is next to the writer, 0 the writer), cards that its passes prove it does not hold
laid     by seat, cards on the table that it has laid
order    all cards on the table, in the order in which they were laid
excluded the seats that a foul has put out of the deal, in that order
======== ============================================================================================================

The first three are needed. In the view the writer is seat 0. What the text leaves open is set so (no belief of
`devyatka_env.belief` hangs on it, but bots may look at it: `left_open`):

- passes are 0, and prove nothing;
- table cards that ``laid`` does not name go, in card order, to the first seat from the writer on that has laid too few
  and may have held them;
- cards were laid by their distance from the starter, the nearest first (under ``holder``, 9♦ before all others);
- the dealer is the last seat, or the first from the writer on whose deal gives hands of these sizes;
- seats without cards went out clockwise from the writer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from devyatka_env.belief import Belief, BeliefError
from devyatka_env.cards import CardTextError, Deck, iter_mask, to_mask
from devyatka_env.dealing import hand_sizes
from devyatka_env.records import MAX_CARDS, ON, STATE_DTYPE
from devyatka_env.rules import DEFAULT_PRESET, MAX_PLAYERS, Rules, RulesError
from devyatka_env.view import PlayerView

NEEDED = ("hand", "table", "left")
FIELDS = (*NEEDED, "passes", "cannot", "laid", "order", "excluded")
NOTHING = "-"


class SeenTextError(ValueError):
    """A text of what a seat sees that cannot be read, or cannot be true; the message names the field."""


@dataclass(frozen=True)
class _Seen:
    """The fields as read, by seat: the writer is seat 0."""

    rules: Rules
    hand: int
    table: int
    left: tuple[int, ...]
    passes: tuple[int, ...]
    passes_told: int  # seats, a bit each, whose passes the text tells
    cannot: tuple[int, ...]
    laid: tuple[int, ...]
    order: tuple[int, ...]  # card ids; empty: not told
    excluded: tuple[int, ...]


def read_seen(text: str, rules: Rules | str = DEFAULT_PRESET) -> PlayerView:
    """The view of seat 0, which is on turn, from a text of the module's form.

    Args:
        text: the fields.
        rules: the rule set (as `Rules.of` takes it); the number of seats is the text's.

    Raises:
        SeenTextError: it cannot be read, or no deal can have led to it; the message names the field and the words.
        RulesError: rules that cannot be played.
    """
    seen = _read_fields(text, Rules.of(rules))
    _check_cards(seen)
    _check_seats(seen)
    _check_opening(seen)
    _check_order(seen)
    fits = _view(seen, 0, seen.laid, 0).fitting_mask
    _check_cannot(seen, fits)
    if not seen.hand & fits:
        raise SeenTextError(
            f"hand: none of {seen.rules.deck.text(seen.hand)} fits ({seen.rules.deck.text(fits)} would): you must pass"
        )
    dealer, laid = _attribute(seen)
    view = _view(seen, dealer, laid, seen.hand & fits)
    _check_belief(view)
    return view


def left_open(text: str, rules: Rules | str = DEFAULT_PRESET) -> tuple[str, ...]:
    """What of the past a text does not tell: ``laid`` where a card's seat is open, ``order``; both may be.

    Raises:
        SeenTextError: it cannot be read.
    """
    seen = _read_fields(text, Rules.of(rules))
    open_laid = ("laid",) if sum(seen.laid) != seen.table else ()
    return (*open_laid, "order") if seen.table.bit_count() > 1 and not seen.order else open_laid


def format_seen(view: PlayerView) -> str:
    """The text from which `read_seen` makes a view of the same beliefs, with the same rules.

    Raises:
        ValueError: the view's seat is not on turn, or has to pass.
    """
    if not view.legal_mask:
        raise ValueError(f"{view!r}: only what a seat on turn sees, with a card to lay, is written")
    deck, n = view.rules.deck, view.num_players
    seats = [(view.seat + k) % n for k in range(n)]
    out = sorted((seat for seat in range(n) if view.status[seat] < 0), key=lambda seat: -view.status[seat])

    def by_seat(masks: Sequence[int]) -> str:
        return "; ".join(f"{k}: {deck.text(masks[seat])}" for k, seat in enumerate(seats) if masks[seat])

    fields = {
        "hand": deck.text(view.hand_mask),
        "table": deck.text(view.table_mask) or NOTHING,
        "left": " ".join(str(view.cards_left[seat]) for seat in seats[1:]),
        "passes": " ".join(str(view.passes[seat]) for seat in seats),
        "cannot": by_seat([mask & ~view.table_mask for mask in view.cannot_hold_masks]),
        "laid": by_seat(view.played_masks),
        "order": " ".join(map(str, view.laid)),
        "excluded": " ".join(str(seats.index(seat)) for seat in out),
    }
    return " | ".join(f"{name} {content}" for name, content in fields.items() if content)


# --- reading ---------------------------------------------------------------------------------------------------------


def _read_fields(text: str, rules: Rules) -> _Seen:
    fields = _split(text)
    left = _numbers("left", fields["left"])
    n = len(left) + 1
    try:
        rules = Rules.of(rules, num_players=n)
    except RulesError as error:
        raise SeenTextError(f"left: with you and {n - 1} other seats: {error}") from error
    deck = rules.deck
    hand = _cards("hand", fields["hand"], deck)
    passes = _numbers("passes", fields["passes"]) if "passes" in fields else []
    if "passes" in fields and len(passes) not in (n - 1, n):
        raise SeenTextError(
            f"passes: {len(passes)} numbers; give {n - 1}, one for each other seat clockwise from you,"
            f" or {n} with your own first"
        )
    told = range(n - len(passes), n)
    excluded = _numbers("excluded", fields.get("excluded", ""))
    return _Seen(
        rules=rules,
        hand=hand,
        table=_cards("table", fields["table"], deck),
        left=(hand.bit_count(), *left),
        passes=(0,) * (n - len(passes)) + tuple(passes),
        passes_told=sum(1 << seat for seat in told) if passes else 0,
        cannot=_by_seat("cannot", fields.get("cannot", ""), n, deck),
        laid=_by_seat("laid", fields.get("laid", ""), n, deck),
        order=tuple(_card_list("order", fields.get("order", ""), deck)),
        excluded=tuple(excluded),
    )


def _split(text: str) -> dict[str, str]:
    """The contents of the fields by name."""
    fields: dict[str, str] = {}
    for place, part in enumerate(text.split("|"), 1):
        match = re.fullmatch(r"\s*([^\W\d_]*)\s*:?(.*)", part, re.DOTALL)
        name = match[1].lower() if match else ""
        if match is None or name not in FIELDS:
            raise SeenTextError(
                f"part {place} of the text, {part.strip()!r}, begins with no field: the fields are {', '.join(FIELDS)},"
                " split by '|'"
            )
        if name in fields:
            raise SeenTextError(f"{name} stands twice, the second time in part {place}")
        fields[name] = match[2].strip()
    for name in NEEDED:
        if name not in fields:
            raise SeenTextError(f"{name} is missing: {', '.join(NEEDED)} are needed (`table {NOTHING}` for no cards)")
    return fields


def _words(content: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", content) if word]


def _numbers(name: str, content: str) -> list[int]:
    """Numbers of a field."""
    numbers = []
    for place, word in enumerate(_words(content), 1):
        if not re.fullmatch(r"\d{1,3}", word, re.ASCII):
            raise SeenTextError(f"{name}, word {place}: {word!r} is not a number")
        numbers.append(int(word))
    return numbers


def _card_list(name: str, content: str, deck: Deck) -> list[int]:
    """The cards of a field, or of a seat's part of it, as they stand."""
    cards: list[int] = []
    for place, word in enumerate([] if content == NOTHING else _words(content), 1):
        try:
            for card in deck.parse_cards(word):
                if card in cards:
                    raise CardTextError(f"{deck.cards[card]} stands twice")
                cards.append(card)
        except CardTextError as error:
            raise SeenTextError(f"{name}, word {place}: {error}") from error
    return cards


def _cards(name: str, content: str, deck: Deck) -> int:
    return to_mask(_card_list(name, content, deck))


def _by_seat(name: str, content: str, n: int, deck: Deck) -> tuple[int, ...]:
    """Cards by seat, from ``1: 9♦ 8♦; 2: 10♦``."""
    masks: dict[int, int] = {}
    for part in filter(None, map(str.strip, content.split(";"))):
        match = re.fullmatch(r"(\d+)\s*:(.*)", part, re.DOTALL)
        seat = int(match[1]) if match else n
        if match is None or seat >= n:
            raise SeenTextError(
                f"{name}: {part!r} is not SEAT: CARDS, with seats 1 to {n - 1} clockwise from you (0 is you),"
                " and ';' between seats"
            )
        if seat in masks:
            raise SeenTextError(f"{name}: seat {seat} stands twice")
        masks[seat] = _cards(f"{name} {seat}", match[2].strip(), deck)
    return tuple(masks.get(seat, 0) for seat in range(n))


# --- checking --------------------------------------------------------------------------------------------------------


def _check_cards(seen: _Seen) -> None:
    """Each card in one place, rows without gaps, and as many cards as were dealt."""
    rules, deck = seen.rules, seen.rules.deck
    if seen.hand & seen.table:
        raise SeenTextError(f"table: {deck.text(seen.hand & seen.table)} is also in your hand")
    loose = seen.table & ~_joined(seen.table, rules)
    if loose:
        raise SeenTextError(
            f"table: {deck.text(loose)} can not lie there: a row is laid without a gap from its {rules.starter} on"
        )
    named = 0
    for seat, mask in enumerate(seen.laid):
        if mask & ~seen.table:
            raise SeenTextError(f"laid {seat}: {deck.text(mask & ~seen.table)} is not on the table")
        if mask & named:
            raise SeenTextError(f"laid {seat}: {deck.text(mask & named)} was laid by an earlier seat, too")
        named |= mask
    num_dealt = sum(hand_sizes(rules, 0))
    on_table = seen.table.bit_count()
    if sum(seen.left) + on_table != num_dealt:
        raise SeenTextError(
            f"left: {' + '.join(map(str, seen.left[1:]))} of the other seats, {seen.left[0]} in your hand and"
            f" {on_table} on the table are {sum(seen.left) + on_table} cards; {num_dealt} were dealt"
        )


def _joined(table: int, rules: Rules) -> int:
    """The cards of a table that a row without gaps joins to its starter."""
    deck = rules.deck
    tops, bottoms = deck.rank_mask(rules.ranks[-1]), deck.rank_mask(rules.ranks[0])
    joined = table & deck.rank_mask(rules.starter)
    for _ in rules.ranks:
        joined |= table & ((joined & ~tops) << 1 | (joined & ~bottoms) >> 1)
    return joined


def _check_seats(seen: _Seen) -> None:
    """Who is still in, and how often they can have passed."""
    rules = seen.rules
    if seen.excluded and rules.foul != "exclude":
        raise SeenTextError(f"excluded: a foul excludes nobody under these rules (foul={rules.foul})")
    for place, seat in enumerate(seen.excluded):
        if not 1 <= seat < rules.num_players or seat in seen.excluded[:place]:
            raise SeenTextError(f"excluded: {seat} is not another one of the seats 1 to {rules.num_players - 1}")
        if not seen.left[seat]:
            raise SeenTextError(f"excluded: seat {seat} has no cards left; it went out")
    if not seen.hand:
        raise SeenTextError("hand: it has no card, so you are out")
    empty = seen.left.count(0)
    if rules.end == "first_out" and empty:
        raise SeenTextError(f"left: seat {seen.left.index(0)} has no card left, so the deal is over")
    if rules.num_players - empty - len(seen.excluded) < 2:
        raise SeenTextError("left: no other seat is in, so the deal is over")
    most = seen.table.bit_count() + len(seen.excluded) + (rules.opening == "left_of_dealer")
    for seat, passes in enumerate(seen.passes):
        if passes > most:
            raise SeenTextError(f"passes: seat {seat} can have passed at most {most} times so far, not {passes}")


def _check_opening(seen: _Seen) -> None:
    """Under ``opening="holder"`` the opening card is the first one laid, unless it left with an excluded seat."""
    rules, card = seen.rules, 1 << seen.rules.opening_card
    if rules.opening != "holder" or seen.table & card:
        return
    name = rules.deck.text(card)
    if seen.hand & card and (seen.table or seen.excluded):
        raise SeenTextError(f"hand: you hold {name}, with which the deal begins, so nothing can have happened before")
    if not seen.hand & card and not seen.excluded:
        raise SeenTextError(
            f"table: {name} is not on it, with which the deal begins"
            if seen.table
            else f"hand: the table is empty and you are on turn, so you must hold {name}"
        )


def _check_order(seen: _Seen) -> None:
    """An order names each card on the table, and lays none before its row has come so far."""
    rules, deck = seen.rules, seen.rules.deck
    if not seen.order:
        return
    wrong = to_mask(seen.order) ^ seen.table
    if wrong:
        raise SeenTextError(
            f"order: it names {deck.text(to_mask(seen.order) & wrong)}, which is not on the table"
            if to_mask(seen.order) & wrong
            else f"order: it lacks {deck.text(wrong)}; name every card on the table"
        )
    laid = 0
    for place, card in enumerate(seen.order):
        laid |= 1 << card
        if laid & ~_joined(laid, rules):
            raise SeenTextError(f"order, word {place + 1}: {deck.cards[card]} did not fit then")
    first = 1 << rules.opening_card
    if rules.opening == "holder" and seen.table & first and seen.order[0] != rules.opening_card:
        raise SeenTextError(f"order: the deal begins with {deck.text(first)}, not with {deck.cards[seen.order[0]]}")


def _check_cannot(seen: _Seen, fits: int) -> None:
    """A pass proves cards that fitted then: they fit now, too, unless somebody has laid them."""
    deck, card = seen.rules.deck, 1 << seen.rules.opening_card
    for seat, mask in enumerate(seen.cannot):
        if mask & seen.laid[seat]:
            raise SeenTextError(f"cannot {seat}: {deck.text(mask & seen.laid[seat])} was laid by this very seat")
        if seat == 0 and mask & seen.hand:
            raise SeenTextError(f"cannot 0: {deck.text(mask & seen.hand)} is in your hand")
        early = mask & ~seen.table & ~fits
        if early:
            raise SeenTextError(
                f"cannot {seat}: a pass proves nothing of {deck.text(early)}, which has not fitted so far; now fit"
                f" {deck.text(fits)}"
            )
        if mask & ~card and seen.passes_told >> seat & 1 and not seen.passes[seat]:
            raise SeenTextError(f"cannot {seat}: {deck.text(mask)}, but by `passes` seat {seat} has not passed")


def _check_belief(view: PlayerView) -> None:
    try:
        Belief(view)
    except BeliefError as error:
        deck = view.rules.deck
        could = 0
        for seat in range(1, view.num_players):
            could |= view.could_hold_mask(seat)
        nobody = view.unseen_mask & ~could
        reason = "the other seats cannot share the hidden cards so that each holds as many as it has left"
        if nobody and view.rules.cards_per_seat is None:
            reason = f"nobody could hold {deck.text(nobody)}"
        raise SeenTextError(f"cannot: {reason}") from error


# --- what the text leaves open ---------------------------------------------------------------------------------------


def _attribute(seen: _Seen) -> tuple[int, tuple[int, ...]]:
    """The dealer, and the cards laid by seat."""
    n = seen.rules.num_players
    named = sum(seen.laid)
    for dealer in (n - 1, *range(n - 1)):
        sizes = hand_sizes(seen.rules, dealer)
        rooms = [sizes[k] - seen.left[k] - seen.laid[k].bit_count() for k in range(n)]
        shares = _share(seen.table & ~named, rooms, seen.cannot) if min(rooms) >= 0 else None
        if shares is not None:
            return dealer, tuple(mask | more for mask, more in zip(seen.laid, shares, strict=True))
    sizes = hand_sizes(seen.rules, n - 1)
    for k in range(n):
        laid = seen.laid[k].bit_count()
        if seen.left[k] + laid > max(sizes):
            words = f" and has laid {laid}" if laid else ""
            raise SeenTextError(
                f"{'left' if k else 'hand'}: {'you have' if not k else f'seat {k} has'} {seen.left[k]} cards{words};"
                f" {max(sizes)} were dealt"
            )
    dealt = " ".join(map(str, sizes)) + (" (from some seat on)" if len(set(sizes)) > 1 else "")
    raise SeenTextError(
        f"left: hands of {dealt} cards were dealt; {' '.join(map(str, seen.left))} are left (yours first), and the"
        " cards on the table cannot be divided so that each seat has laid the difference, and none that it cannot hold"
    )


def _share(cards: int, rooms: Sequence[int], barred: Sequence[int]) -> list[int] | None:
    """Divide table cards among seats with that much room, each to the first that has some and did not lack it.

    ``None`` where it cannot be done. Where only others have room, cards given before move on (an augmenting path).
    """
    shares = [0] * len(rooms)

    def place(card: int, tried: set[int]) -> bool:
        seats = [seat for seat in range(len(rooms)) if not barred[seat] >> card & 1]
        for seat in seats:
            if shares[seat].bit_count() < rooms[seat]:
                shares[seat] |= 1 << card
                return True
        for seat in seats:
            if seat not in tried:
                tried.add(seat)
                moved = next((one for one in iter_mask(shares[seat]) if place(one, tried)), None)
                if moved is not None:
                    shares[seat] ^= 1 << moved | 1 << card
                    return True
        return False

    return shares if all(place(card, set()) for card in iter_mask(cards)) else None


def _order(seen: _Seen) -> list[int]:
    """The table cards in the order told, or in one in which they can have been laid."""
    if seen.order:
        return list(seen.order)
    num_ranks, opening = seen.rules.deck.num_ranks, seen.rules.opening_card
    starter = seen.rules.ranks.index(seen.rules.starter)
    holder = seen.rules.opening == "holder"
    return sorted(
        iter_mask(seen.table),
        key=lambda card: (not (holder and card == opening), abs(card % num_ranks - starter), card),
    )


def _view(seen: _Seen, dealer: int, laid: Sequence[int], legal: int) -> PlayerView:
    """The view record, whole: its fields are set nowhere else outside the engine."""
    rules, n = seen.rules, seen.rules.num_players
    order = _order(seen)
    opening = 1 << rules.opening_card
    at_large = rules.opening == "holder" and not (seen.table | seen.hand) & opening  # it left with an excluded seat
    opener = next((k for k in range(n) if order and laid[k] >> order[0] & 1), -1)
    if rules.opening == "holder":
        holder = seen.excluded[0] if at_large else max(opener, 0)
        opener = holder if opener < 0 else opener
        cannot = [mask | (0 if k == holder else opening) for k, mask in enumerate(seen.cannot)]
    else:
        cannot = list(seen.cannot)
    out = [k for k in range(n) if not seen.left[k]]
    status = {k: place for place, k in enumerate(out, 1)} | {k: -p for p, k in enumerate(seen.excluded, 1)}
    facts: dict[str, Any] = {
        "hands": _padded([seen.hand]),
        "played": _padded(laid),
        "cannot_hold": _padded(cannot),
        "table": seen.table,
        "legal": legal,
        "log": _padded(order, MAX_CARDS),
        "cards_left": _padded(seen.left),
        "dealt": _padded([left + mask.bit_count() for left, mask in zip(seen.left, laid, strict=True)]),
        "passes": _padded(seen.passes),
        "status": _padded([status.get(k, 0) for k in range(n)]),
        "places": _padded([]),
        "num_players": n,
        "num_in": n - len(status),
        "num_out": len(out),
        "num_excluded": len(seen.excluded),
        "num_played": len(order),
        "dealer": dealer,
        "opener": opener,
        "turn": 0,
        "any_starter": at_large or rules.opening != "holder",
        "reason": ON,
    }
    return PlayerView(np.array([tuple(facts[name] for name in STATE_DTYPE.names or ())], STATE_DTYPE), rules, 0)


def _padded(values: Sequence[int], length: int = MAX_PLAYERS) -> tuple[int, ...]:
    return tuple(values) + (0,) * (length - len(values))
