"""What must be true of the fields of a text, whatever the hidden cards."""

from __future__ import annotations

import numpy as np

from devyatka_env.engine import STATE_DTYPE, rules_record
from devyatka_env.engine.calls import fitting_at
from devyatka_env.rules import Rules, to_mask
from devyatka_env.rules.hands import hand_sizes
from devyatka_env.views.information_state.fields import InformationState, InformationStateError


def fitting(rules: Rules, table: int, *, any_starter: bool = True) -> int:
    """The cards that fit a table, by the engine; with ``any_starter`` any may open an empty one."""
    facts = {"table": table, "any_starter": any_starter}
    blank = np.zeros(1, STATE_DTYPE)[0]
    record = np.array([tuple(facts.get(name, blank[name]) for name in STATE_DTYPE.names or ())], STATE_DTYPE)
    return int(fitting_at(record, 0, rules_record(rules)))


def check_cards(seen: InformationState) -> None:
    """Each card in one place, rows without gaps, and as many cards as were dealt."""
    rules, deck = seen.rules, seen.rules.deck
    if seen.hand & seen.table:
        raise InformationStateError(f"table: {deck.text(seen.hand & seen.table)} is also in your hand")
    joined, last = 0, -1
    while joined != last:
        last, joined = joined, joined | seen.table & fitting(rules, joined)
    loose = seen.table & ~joined
    if loose:
        raise InformationStateError(
            f"table: {deck.text(loose)} can not lie there: a row is laid without a gap from its {rules.starter} on"
        )
    named = 0
    for seat, mask in enumerate(seen.laid):
        if mask & ~seen.table:
            raise InformationStateError(f"laid {seat}: {deck.text(mask & ~seen.table)} is not on the table")
        if mask & named:
            raise InformationStateError(f"laid {seat}: {deck.text(mask & named)} was laid by an earlier seat, too")
        named |= mask
    num_dealt = sum(hand_sizes(rules, 0))
    on_table = seen.table.bit_count()
    if sum(seen.left) + on_table != num_dealt:
        raise InformationStateError(
            f"left: {' + '.join(map(str, seen.left[1:]))} of the other seats, {seen.left[0]} in your hand and"
            f" {on_table} on the table are {sum(seen.left) + on_table} cards; {num_dealt} were dealt"
        )


def check_seats(seen: InformationState) -> None:
    """Who is still in."""
    rules = seen.rules
    if seen.excluded and rules.foul != "exclude":
        raise InformationStateError(f"excluded: a foul excludes nobody under these rules (foul={rules.foul})")
    for place, seat in enumerate(seen.excluded):
        if not 1 <= seat < rules.num_players or seat in seen.excluded[:place]:
            raise InformationStateError(
                f"excluded: {seat} is not another one of the seats 1 to {rules.num_players - 1}"
            )
        if not seen.left[seat]:
            raise InformationStateError(f"excluded: seat {seat} has no cards left; it went out")
    if not seen.hand:
        raise InformationStateError("hand: it has no card, so you are out")
    empty = seen.left.count(0)
    if rules.end == "first_out" and empty:
        raise InformationStateError(f"left: seat {seen.left.index(0)} has no card left, so the deal is over")
    if rules.num_players - empty - len(seen.excluded) < 2:
        raise InformationStateError("left: no other seat is in, so the deal is over")


def check_opening(seen: InformationState) -> None:
    """Under ``opening="holder"`` the opening card is the first one laid, unless it left with an excluded seat."""
    rules, card = seen.rules, 1 << seen.rules.opening_card
    if rules.opening != "holder" or seen.table & card:
        return
    name = rules.deck.text(card)
    if seen.hand & card and (seen.table or seen.excluded):
        raise InformationStateError(
            f"hand: you hold {name}, with which the deal begins, so nothing can have happened before"
        )
    if not seen.hand & card and not seen.excluded:
        raise InformationStateError(
            f"table: {name} is not on it, with which the deal begins"
            if seen.table
            else f"hand: the table is empty and you are on turn, so you must hold {name}"
        )


def check_order(seen: InformationState) -> None:
    """An order names each card on the table, and lays none before its row has come so far."""
    rules, deck = seen.rules, seen.rules.deck
    if not seen.order:
        return
    wrong = to_mask(seen.order) ^ seen.table
    if wrong:
        raise InformationStateError(
            f"order: it names {deck.text(to_mask(seen.order) & wrong)}, which is not on the table"
            if to_mask(seen.order) & wrong
            else f"order: it lacks {deck.text(wrong)}; name every card on the table"
        )
    laid = 0
    for place, card in enumerate(seen.order):
        if not fitting(rules, laid) >> card & 1:
            raise InformationStateError(f"order, word {place + 1}: {deck.cards[card]} did not fit then")
        laid |= 1 << card
    first = 1 << rules.opening_card
    if rules.opening == "holder" and seen.table & first and seen.order[0] != rules.opening_card:
        raise InformationStateError(
            f"order: the deal begins with {deck.text(first)}, not with {deck.cards[seen.order[0]]}"
        )


def check_cannot(seen: InformationState, fits: int) -> None:
    """A pass proves cards that fitted then: they fit now, too, unless somebody has laid them."""
    deck, card = seen.rules.deck, 1 << seen.rules.opening_card
    for seat, mask in enumerate(seen.cannot):
        if mask & seen.laid[seat]:
            raise InformationStateError(
                f"cannot {seat}: {deck.text(mask & seen.laid[seat])} was laid by this very seat"
            )
        if seat == 0 and mask & seen.hand:
            raise InformationStateError(f"cannot 0: {deck.text(mask & seen.hand)} is in your hand")
        early = mask & ~seen.table & ~fits
        if early:
            raise InformationStateError(
                f"cannot {seat}: a pass proves nothing of {deck.text(early)}, which has not fitted so far; now fit"
                f" {deck.text(fits)}"
            )
        if mask & ~card and seen.passes_told >> seat & 1 and not seen.passes[seat]:
            raise InformationStateError(f"cannot {seat}: {deck.text(mask)}, but by `passes` seat {seat} has not passed")
