"""What a person sees at a real table, typed as text: an information state as words, and a `PlayerView` of it.

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

The first three are needed. In the view the writer is seat 0. Where ``laid`` and ``order`` tell all, and no seat is
excluded, passes and what they prove follow: the view is the one that the writer has. Otherwise (`untold_history`) there
stands for what is not told:

- passes as told, or else as few as the turns leave, which go round from the seat that moved first to the writer. They
  prove what they prove whenever they were: cards that fitted from the first pass on, all starters among them;
- the opening card goes to the first seat from the writer on with which the passes told agree; other table cards that
  ``laid`` does not name go, in card order, to the first seat that has laid too few and may have held them;
- cards were laid by their distance from the starter, the nearest first (under ``holder``, 9♦ before all others);
- the dealer is the last seat, or the first from the writer on whose deal gives hands of these sizes, and with which
  the passes told agree;
- seats without cards went out clockwise from the writer.

Passes told with which no such beginning of the deal agrees are refused (`devyatka_env.views.information_state.passes`).
No belief of `devyatka_env.views.belief` hangs on these but the first. Bots may look at them, and such a past need not
agree with the turns card by card: it cannot be played again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from devyatka_env.engine import STATE_DTYPE
from devyatka_env.engine.records import MAX_CARDS, ON
from devyatka_env.rules import DEFAULT_PRESET, MAX_PLAYERS, Rules
from devyatka_env.views.belief import Belief, BeliefError
from devyatka_env.views.information_state.checks import (
    check_cannot,
    check_cards,
    check_opening,
    check_order,
    check_seats,
    fitting,
)
from devyatka_env.views.information_state.fields import (
    FIELDS,
    NOTHING,
    InformationState,
    InformationStateError,
    read_fields,
)
from devyatka_env.views.information_state.history import Past, past_of
from devyatka_env.views.view import PlayerView


class MustPassError(InformationStateError):
    """A text whose writer is on turn and has nothing to lay.

    Attributes:
        view: what it sees before it passes, under its rules with ``explicit_pass=True``: with automatic passes no
            seat is ever on turn at such a moment.
    """

    def __init__(self, message: str, view: PlayerView) -> None:
        super().__init__(message)
        self.view = view


def parse_information_state(text: str, rules: Rules | str = DEFAULT_PRESET) -> PlayerView:
    """The view of seat 0, which is on turn, from a text of the module's form.

    Args:
        text: the fields.
        rules: the rule set (as `Rules.of` takes it); the number of seats is the text's.

    Raises:
        InformationStateError: it cannot be read, or no deal can have led to it; the message names the field and the
        words. MustPassError: nothing in the hand fits, so there is no card to think about. RulesError: rules that
        cannot be played.
    """
    seen = read_fields(text, Rules.of(rules))
    check_cards(seen)
    check_seats(seen)
    check_opening(seen)
    check_order(seen)
    fits = fitting(seen.rules, seen.table, any_starter=seen.may_open_with_any)
    check_cannot(seen, fits)
    past = past_of(seen)
    is_stuck = not seen.hand & fits
    rules = Rules.of(seen.rules, explicit_pass=True) if is_stuck else seen.rules
    view = PlayerView(_record(seen, past, seen.hand & fits), rules, 0)
    _check_belief(view, "cannot" if any(seen.cannot) else "passes")
    if is_stuck:
        deck = seen.rules.deck
        raise MustPassError(f"hand: none of {deck.text(seen.hand)} fits ({deck.text(fits)} would): you must pass", view)
    return view


def untold_history(text: str, rules: Rules | str = DEFAULT_PRESET) -> tuple[str, ...]:
    """What of the past a text does not tell: ``laid`` where a card's seat is open, ``order``; both may be.

    Raises:
        InformationStateError: it cannot be read.
    """
    seen = read_fields(text, Rules.of(rules))
    return tuple(
        name
        for name, is_open in (("laid", sum(seen.laid) != seen.table), ("order", seen.table and not seen.order))
        if is_open
    )


def passes_known(text: str, rules: Rules | str = DEFAULT_PRESET) -> str:
    """What a text tells of the passes: when each was (``course``), how many there were (``numbers``), or ``nothing``.

    Raises:
        InformationStateError: it cannot be read.
    """
    seen = read_fields(text, Rules.of(rules))
    if seen.is_followed or (not seen.table and (seen.passes_told or not seen.may_open_with_any)):
        return "course"  # on an empty table it is one moment for all, and before the opening card there is none
    return "numbers" if seen.passes_told else "nothing"


def format_information_state(view: PlayerView) -> str:
    """The text from which `parse_information_state` makes a view of the same beliefs, with the same rules.

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


def _check_belief(view: PlayerView, field: str) -> None:
    """Some deal must agree with all that is told, of which ``field`` rules out cards.

    Raises:
        InformationStateError: none does.
    """
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
        raise InformationStateError(f"{field}: {reason}") from error


# --- the record ------------------------------------------------------------------------------------------------------


def _record(seen: InformationState, past: Past, legal: int) -> np.ndarray[Any, np.dtype[np.void]]:
    """The view record, whole: its fields are set nowhere else outside the engine."""
    n, opening = seen.rules.num_players, 1 << seen.rules.opening_card
    cannot = list(past.cannot)
    opener = next((k for k in range(n) if past.order and past.laid[k] >> past.order[0] & 1), -1)
    if seen.rules.opening == "holder":  # who moves first is public
        holder = seen.excluded[0] if seen.is_at_large else max(opener, 0)
        opener = holder if opener < 0 else opener
        cannot = [mask if k == holder else mask | opening for k, mask in enumerate(cannot)]
    status = {k: place for place, k in enumerate(past.went_out, 1)} | {k: -p for p, k in enumerate(seen.excluded, 1)}
    facts: dict[str, Any] = {
        "hands": _padded([seen.hand]),
        "played": _padded(past.laid),
        "cannot_hold": _padded(cannot),
        "table": seen.table,
        "legal": legal,
        "log": _padded(past.order, MAX_CARDS),
        "cards_left": _padded(seen.left),
        "dealt": _padded([left + mask.bit_count() for left, mask in zip(seen.left, past.laid, strict=True)]),
        "passes": _padded(past.passes),
        "status": _padded([status.get(k, 0) for k in range(n)]),
        "places": _padded([]),
        "num_players": n,
        "num_in": n - len(status),
        "num_out": len(past.went_out),
        "num_excluded": len(seen.excluded),
        "num_played": len(past.order),
        "dealer": past.dealer,
        "opener": opener,
        "turn": 0,
        "any_starter": seen.may_open_with_any,
        "reason": ON,
    }
    return np.array([tuple(facts[name] for name in STATE_DTYPE.names or ())], STATE_DTYPE)


def _padded(values: Sequence[int], length: int = MAX_PLAYERS) -> tuple[int, ...]:
    return tuple(values) + (0,) * (length - len(values))


__all__ = [
    "FIELDS",
    "InformationStateError",
    "MustPassError",
    "format_information_state",
    "parse_information_state",
    "passes_known",
    "untold_history",
]
