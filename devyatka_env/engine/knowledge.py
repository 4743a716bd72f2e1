"""What one seat may know: records without the rest, and what its knowledge allows others to hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine.compiling import kernel
from devyatka_env.engine.records import MAX_CARDS
from devyatka_env.engine.turn import fitting
from devyatka_env.rules import MAX_PLAYERS

_ZERO = np.uint64(0)

# --- what one seat may know ------------------------------------------------------------------------------------------


@kernel
def blank(s: Any, seat: int, out: Any) -> None:
    """Copy ``s`` into ``out`` without what ``seat`` cannot know: the other hands, and the mover's legal cards."""
    for other in range(MAX_PLAYERS):
        out.hands[other] = s.hands[other] if other == seat else _ZERO
        out.played[other] = s.played[other]
        out.cannot_hold[other] = s.cannot_hold[other]
        out.cards_left[other] = s.cards_left[other]
        out.dealt[other] = s.dealt[other]
        out.passes[other] = s.passes[other]
        out.status[other] = s.status[other]
        out.places[other] = s.places[other]
    for i in range(MAX_CARDS):
        out.log[i] = s.log[i]
    out.table = s.table
    out.legal = s.legal if s.turn == seat else _ZERO
    out.num_players = s.num_players
    out.num_in = s.num_in
    out.num_out = s.num_out
    out.num_excluded = s.num_excluded
    out.num_played = s.num_played
    out.dealer = s.dealer
    out.opener = s.opener
    out.turn = s.turn
    out.any_starter = s.any_starter
    out.reason = s.reason


@kernel
def reveal(s: Any, r: Any, hands: NDArray[np.uint64]) -> None:
    """Put ``hands [num_players]`` into a view record, as if they had been dealt: the counterpart of `blank`."""
    for seat in range(s.num_players):
        s.hands[seat] = hands[seat]
    s.legal = s.hands[s.turn] & fitting(s, r) if s.turn >= 0 else _ZERO


@kernel
def could_hold(s: Any, r: Any, viewer: int, seat: int) -> np.uint64:
    """The cards that ``viewer`` must think possible in the hand of another ``seat``.

    Neither on the table, nor the viewer's own, nor ruled out by a pass; none for a seat whose hand is empty. Reads only
    what the viewer may know.
    """
    if seat == viewer:
        return s.hands[seat]
    if s.cards_left[seat] == 0:
        return _ZERO
    return r.deck & ~s.table & ~s.hands[viewer] & ~s.cannot_hold[seat]
