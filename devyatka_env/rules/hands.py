"""Hands given by a caller: read, and checked against the rules of the deal (rules, section 2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from devyatka_env.rules.cards import Card
from devyatka_env.rules.numbers import is_whole
from devyatka_env.rules.rule_set import Rules


class DealError(ValueError):
    """Hands that cannot be dealt: a wrong count, a card twice or missing, or nobody who can open."""


def hand_mask(hand: int | str | Sequence[Card | str | int], rules: Rules) -> int:
    """A hand given as text, bitboard, or list of cards or ids, as a bitboard.

    Raises:
        DealError: a card twice or an id out of range.
        CardTextError: a card of another deck.
    """
    if isinstance(hand, str):
        return rules.deck.parse_mask(hand)
    if isinstance(hand, int | np.integer):
        if not 0 <= int(hand) <= rules.deck.mask:
            raise DealError(f"hand bitboard {hand!r} has cards outside the deck of {rules.deck.num_cards}")
        return int(hand)
    mask = 0
    for item in hand:
        card = int(item) if isinstance(item, int | np.integer) else rules.deck.card_id(item)
        if not 0 <= card < rules.deck.num_cards:
            raise DealError(f"card id must be 0 to {rules.deck.num_cards - 1}, not {item!r}")
        if mask >> card & 1:
            raise DealError(f"{rules.deck.cards[card]} stands twice in one hand")
        mask |= 1 << card
    return mask


def check_hands(hands: Sequence[int], dealer: int, rules: Rules) -> None:
    """Check that the hands are a deal of these rules (rules, section 2).

    Raises:
        DealError: wrong count or sizes, a card twice or missing.
    """
    n, deck = rules.num_players, rules.deck
    if len(hands) != n:
        raise DealError(f"{len(hands)} hands for num_players={n}")
    if not is_whole(dealer) or not 0 <= dealer < n:
        raise DealError(f"dealer must be a seat, 0 to {n - 1}, not {dealer!r}")
    seen = 0
    for seat, hand in enumerate(hands):
        if seen & hand:
            raise DealError(f"{deck.text(seen & hand)} dealt twice, the second time to seat {seat}")
        seen |= hand
    if rules.cards_per_seat is None and seen != deck.mask:
        raise DealError(f"the whole pack is dealt under these rules; missing: {deck.text(deck.mask & ~seen)}")
    sizes = hand_sizes(rules, dealer)
    for seat, hand in enumerate(hands):
        if hand.bit_count() != sizes[seat]:
            raise DealError(f"seat {seat} has {hand.bit_count()} cards; with dealer {dealer} it gets {sizes[seat]}")


def hand_sizes(rules: Rules, dealer: int) -> tuple[int, ...]:
    """Cards dealt to each seat: the extra cards go to the first seats dealt (rules, section 2)."""
    n = rules.num_players
    if rules.cards_per_seat is not None:
        return (rules.cards_per_seat,) * n
    base, extra = divmod(rules.deck.num_cards, n)
    return tuple(base + ((seat - dealer - 1) % n < extra) for seat in range(n))
