"""The past of a deal: followed card by card where the text tells its course, made up where it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from devyatka_env.rules import iter_mask
from devyatka_env.rules.hands import hand_sizes
from devyatka_env.views.information_state.checks import fitting
from devyatka_env.views.information_state.fields import InformationState, InformationStateError
from devyatka_env.views.information_state.passes import Start, with_turns


@dataclass(frozen=True)
class Past:
    """What a record tells of the past, by seat.

    Attributes:
        dealer: the dealer.
        order: the table cards, as they were laid.
        laid: cards laid.
        passes: passes counted.
        cannot: cards that these surely prove the seat does not hold, and those told.
        went_out: the seats without cards, in the order in which they went out.
    """

    dealer: int
    order: tuple[int, ...]
    laid: tuple[int, ...]
    passes: tuple[int, ...]
    cannot: tuple[int, ...]
    went_out: tuple[int, ...]


def past_of(seen: InformationState) -> Past:
    """The past of what was seen.

    Where a seat was excluded the course is not followed: nothing tells at which turn that was.

    Raises:
        InformationStateError: it cannot have been.
    """
    rules, n = seen.rules, seen.rules.num_players
    dealers = [n - 1, *range(n - 1)]
    if seen.is_followed and rules.opening == "left_of_dealer":
        opener = _seat_of(seen.order[0], seen.laid)
        dealers = [(opener - k) % n for k in range(1, n + 1)]  # the fewest passes before the first card
    starts = list(_starts(seen, dealers))
    if not starts:
        raise _no_deal(seen)
    if not seen.is_followed:
        start, passes, cannot = with_turns(seen, starts)
        out = tuple(seat for seat in range(n) if not seen.left[seat])
        return Past(start.dealer, _order(seen), start.laid, passes, cannot, out)
    failures = []
    for start in starts:
        try:
            past = _follow(seen, start.dealer)
            _check_told(seen, past)
        except InformationStateError as error:
            failures.append(error)
        else:
            return past
    raise failures[0]


def _seat_of(card: int, laid: Sequence[int]) -> int:
    return next(seat for seat, mask in enumerate(laid) if mask >> card & 1)


# --- followed --------------------------------------------------------------------------------------------------------


def _follow(seen: InformationState, dealer: int) -> Past:
    """Go through the deal card by card: who was passed over between two cards has passed.

    Raises:
        InformationStateError: a seat laid, or the writer holds, a card that one of its passes denies it.
    """
    rules, n = seen.rules, seen.rules.num_players
    passes, cannot, out = [0] * n, [0] * n, []
    last = dealer if rules.opening == "left_of_dealer" else (_seat_of(seen.order[0], seen.laid) - 1) % n
    table = 0

    def pass_over(seat: int) -> None:
        """The turn goes from the ``last`` seat that laid to ``seat``."""
        fits = fitting(rules, table, any_starter=rules.opening == "left_of_dealer")
        between = (last + 1) % n
        while between != seat:
            if between not in out:
                passes[between] += 1
                cannot[between] |= fits
            between = (between + 1) % n

    for place, card in enumerate(seen.order, 1):
        seat = _seat_of(card, seen.laid)
        pass_over(seat)
        if cannot[seat] >> card & 1 or seat in out:
            raise InformationStateError(
                f"order, word {place}: seat {seat} laid {rules.deck.cards[card]}, but it had passed when that fitted"
            )
        table |= 1 << card
        if not seen.left[seat] and not seen.laid[seat] & ~table:
            out.append(seat)
        last = seat
    pass_over(0)
    if cannot[0] & seen.hand:
        held = rules.deck.text(cannot[0] & seen.hand)
        raise InformationStateError(f"order: you passed when {held} fitted, which you hold")
    return Past(dealer, seen.order, seen.laid, tuple(passes), tuple(cannot), tuple(out))


def _check_told(seen: InformationState, past: Past) -> None:
    """Passes, and what they prove, are told as the course has them, or not at all."""
    for seat, passes in enumerate(past.passes):
        if seen.passes_told >> seat & 1 and seen.passes[seat] != passes:
            raise InformationStateError(
                f"passes: seat {seat} has passed {passes} times by `laid` and `order`, not {seen.passes[seat]}"
            )
        unproved = seen.cannot[seat] & ~past.cannot[seat] & ~(1 << seen.rules.opening_card)
        if unproved:
            raise InformationStateError(
                f"cannot {seat}: by `laid` and `order` no pass of this seat proves {seen.rules.deck.text(unproved)}"
            )


# --- made up ---------------------------------------------------------------------------------------------------------


def _starts(seen: InformationState, dealers: Sequence[int]) -> Iterator[Start]:
    """The dealers whose deals leave such hands, with the seats that can have moved first and the cards laid by seat."""
    for dealer in dealers:
        for first in _firsts(seen, dealer):
            opening = seen.table & (1 << seen.rules.opening_card if seen.rules.opening == "holder" else 0)
            named = [mask | (opening if seat == first else 0) for seat, mask in enumerate(seen.laid)]
            rooms = [
                size - left - laid.bit_count()
                for size, left, laid in zip(hand_sizes(seen.rules, dealer), seen.left, named, strict=True)
            ]
            shares = _share(seen.table & ~sum(named), rooms, seen.cannot) if min(rooms) >= 0 else None
            if shares is not None:
                yield Start(dealer, first, tuple(mask | more for mask, more in zip(named, shares, strict=True)))


def _firsts(seen: InformationState, dealer: int) -> list[int]:
    """The seats that can have had the first turn."""
    rules, card = seen.rules, 1 << seen.rules.opening_card
    if rules.opening == "left_of_dealer":
        return [(dealer + 1) % rules.num_players]
    if seen.is_at_large:
        return [seen.excluded[0]]
    if not seen.table:
        return [0]
    namers = [seat for seat, mask in enumerate(seen.laid) if mask & card]
    return namers or [seat for seat in range(rules.num_players) if not seen.cannot[seat] & card]


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


def _no_deal(seen: InformationState) -> InformationStateError:
    """Why no dealer's deal leaves such hands."""
    sizes = hand_sizes(seen.rules, seen.rules.num_players - 1)
    for seat, (left, mask) in enumerate(zip(seen.left, seen.laid, strict=True)):
        if left + mask.bit_count() > max(sizes):
            words = f" and has laid {mask.bit_count()}" if mask else ""
            who = f"left: seat {seat} has" if seat else "hand: you have"
            return InformationStateError(f"{who} {left} cards{words}; {max(sizes)} were dealt")
    dealt = " ".join(map(str, sizes)) + (" (from some seat on)" if len(set(sizes)) > 1 else "")
    return InformationStateError(
        f"left: hands of {dealt} cards were dealt; {' '.join(map(str, seen.left))} are left (yours first), and the"
        " cards on the table cannot be divided so that each seat has laid the difference, and none that it cannot hold"
    )


def _order(seen: InformationState) -> tuple[int, ...]:
    """The table cards in the order told, or in one in which they can have been laid."""
    if seen.order:
        return seen.order
    rules = seen.rules
    starter, num_ranks = rules.ranks.index(rules.starter), rules.deck.num_ranks

    def place(card: int) -> tuple[bool, int, int]:
        opens = rules.opening == "holder" and card == rules.opening_card
        return not opens, abs(card % num_ranks - starter), card

    return tuple(sorted(iter_mask(seen.table), key=place))
