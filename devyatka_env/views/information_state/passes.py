"""Who dealt, who moved first, and how often each seat must have passed, by the counts alone.

The turn goes round clockwise from the seat that moved first to the writer, whose turn it is. So with ``t`` turns of the
writer before this one, every other seat that is still in has had ``t`` turns, or ``t + 1`` if it sits between the first
mover (which is not the writer) and the writer. A turn is a card, a pass, or the foul for which a seat was excluded. A
seat that is out has had at most as many turns as if it were in. And in each round somebody lays a card, or is excluded:
when nobody has one that fits, the deal is over as blocked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from devyatka_env.views.information_state.checks import fitting
from devyatka_env.views.information_state.fields import InformationState, InformationStateError


@dataclass(frozen=True)
class Start:
    """A guess of how the deal began, with all that was laid divided by it.

    Attributes:
        dealer: the dealer.
        first: the seat that had the first turn.
        laid: cards laid, by seat.
    """

    dealer: int
    first: int
    laid: tuple[int, ...]


def fitted_always(seen: InformationState) -> int:
    """Cards not yet laid that fitted at every moment at which a seat can have passed.

    The starters; and next to the card that opens the deal, the cards beside it, for nobody can pass before it.
    """
    rules = seen.rules
    table = 0 if seen.may_open_with_any else 1 << rules.opening_card
    return fitting(rules, table, any_starter=True) & ~seen.table


def with_turns(seen: InformationState, starts: Sequence[Start]) -> tuple[Start, tuple[int, ...], tuple[int, ...]]:
    """The first of the ``starts`` that agrees with the passes told, passes by it, and what passes surely prove.

    Passes that are not told are as few as the turns leave. A seat that has passed in whatever way the deal began holds
    none of the cards that fitted always.

    Args:
        seen: the fields.
        starts: how the deal can have begun; one at least.

    Raises:
        InformationStateError: none of them agrees; the message names the seat and how often it must have passed.
    """
    always = fitted_always(seen)
    kept = seen.hand & always
    if kept:
        if _known_passes(seen, 0):
            field = "passes" if seen.passes[0] else "cannot 0"
            name = seen.rules.deck.text(kept)
            raise InformationStateError(
                f"{field}: you hold {name}, which has fitted all along, so you have never passed"
            )
        seen = replace(seen, passes_told=seen.passes_told | 1)
    n = seen.rules.num_players
    for seat in range(n):
        before, starts = starts, [start for start in starts if _turns(seen, start, seat + 1)]
        if not starts:
            raise _impossible(seen, before, seat)
    fewest = [_passes(seen, start, _turns(seen, start, n)) for start in starts]
    cannot = tuple(
        mask | always if all(passes[seat] for passes in fewest) else mask for seat, mask in enumerate(seen.cannot)
    )
    return starts[0], fewest[0], cannot


def _turns(seen: InformationState, start: Start, known: int) -> range:
    """Turns that the writer can have had: by all cards laid, and by what is told of passes of seats below ``known``."""
    least = 0
    most = seen.table.bit_count() + len(seen.excluded)
    if start.first and seen.rules.opening == "holder":
        most -= 1  # the first turn was a card or a foul, before the first round that the writer began
    for seat in range(seen.rules.num_players):
        turns = _count(seen, start, seat, known) - _extra(start, seat)
        least = max(least, turns)
        if seat < known and _is_told(seen, seat) and _is_in(seen, seat):
            most = min(most, turns)
    return range(least, most + 1)


def _count(seen: InformationState, start: Start, seat: int, known: int) -> int:
    """Turns told of a seat, with its passes if it is below ``known``."""
    return _acts(seen, start, seat) + (_known_passes(seen, seat) if seat < known else 0)


def _acts(seen: InformationState, start: Start, seat: int) -> int:
    """Turns that were no pass: cards laid, and the foul."""
    return start.laid[seat].bit_count() + (seat in seen.excluded)


def _extra(start: Start, seat: int) -> int:
    """1 for a seat that had a turn before the first one of the writer."""
    return int(0 < start.first <= seat)


def _known_passes(seen: InformationState, seat: int) -> int:
    """Passes told, or else the one that `cannot` rests on."""
    return seen.passes[seat] if _is_told(seen, seat) else int(seen.cannot[seat] & ~(1 << seen.rules.opening_card) != 0)


def _is_told(seen: InformationState, seat: int) -> bool:
    return bool(seen.passes_told >> seat & 1)


def _is_in(seen: InformationState, seat: int) -> bool:
    return seen.left[seat] > 0 and seat not in seen.excluded


def _passes(seen: InformationState, start: Start, turns: range) -> tuple[int, ...]:
    """The fewest passes of each seat."""
    return tuple(
        turns[0] + _extra(start, seat) - _acts(seen, start, seat) if _is_in(seen, seat) else _known_passes(seen, seat)
        for seat in range(seen.rules.num_players)
    )


# --- said ------------------------------------------------------------------------------------------------------------


def _impossible(seen: InformationState, starts: Sequence[Start], seat: int) -> InformationStateError:
    """The passes of a seat fit none of the starts, of which each fits what is known of the seats before it."""
    field, passes = "passes" if _is_told(seen, seat) else f"cannot {seat}", _known_passes(seen, seat)

    def bounds(start: Start) -> tuple[int, int]:
        turns, acts = _turns(seen, start, seat), _acts(seen, start, seat) - _extra(start, seat)
        return turns[0] - acts if _is_in(seen, seat) else 0, turns[-1] - acts

    start = min(starts, key=lambda one: bounds(one)[0])
    least = bounds(start)[0]
    if passes < least:
        others = [k for k in range(seen.rules.num_players) if k != seat]
        why = _had(seen, start, max(others, key=lambda k: _count(seen, start, k, seat)), seat)
        said = f"must have passed at least {_number(least, 'time')} so far"
    else:
        start = max(starts, key=lambda one: bounds(one)[1])
        fixed = [k for k in range(seat) if _is_told(seen, k) and _is_in(seen, k)]
        events = _number(seen.table.bit_count() + len(seen.excluded), "time")
        why = f"somebody lays or is excluded in every round, which has happened {events}"
        if fixed:
            why = _had(seen, start, min(fixed, key=lambda k: _count(seen, start, k, seat)), seat)
        said = f"can have passed at most {_number(bounds(start)[1], 'time')} so far"
    kept = seen.rules.deck.text(seen.hand & fitted_always(seen))
    denied = f"not {passes}"
    if seat == 0 and kept:
        field, denied = "hand", f"but nobody who holds {kept} has passed"
    return InformationStateError(
        f"{field}: seat {seat} {said}, {denied}: it has laid {_number(start.laid[seat].bit_count(), 'card')}, {why},"
        " and the turn goes round from the seat that moved first to you"
    )


def _had(seen: InformationState, start: Start, seat: int, known: int) -> str:
    """`_count` in words."""
    count, acts = _count(seen, start, seat, known), _acts(seen, start, seat)
    words = [_number(start.laid[seat].bit_count(), "card")]
    words += [_number(count - acts, "pass", "passes")] if count > acts else []
    words += ["the foul"] if seat in seen.excluded else []
    return f"seat {seat} has had {_number(count, 'turn')} ({' + '.join(words)})"


def _number(number: int, name: str, names: str = "") -> str:
    return f"{number} {name if number == 1 else names or name + 's'}"
