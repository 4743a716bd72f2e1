"""The start of a deal: shuffled, dealt out and opened (rules, sections 2 and 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine.bitboards import count
from devyatka_env.engine.compiling import kernel
from devyatka_env.engine.randomness import Key, shuffle, shuffle_keyed, stream
from devyatka_env.engine.records import MAX_CARDS, ON
from devyatka_env.engine.turn import pass_on
from devyatka_env.rules import MAX_PLAYERS

_ONE = np.uint64(1)
_ZERO = np.uint64(0)

# --- the start of a deal ---------------------------------------------------------------------------------------------


@kernel
def clear(s: Any, num_players: int, dealer: int) -> None:
    """Blank a record for a new deal."""
    for seat in range(MAX_PLAYERS):
        s.hands[seat] = _ZERO
        s.played[seat] = _ZERO
        s.cannot_hold[seat] = _ZERO
        s.cards_left[seat] = 0
        s.dealt[seat] = 0
        s.passes[seat] = 0
        s.status[seat] = 0
        s.places[seat] = 0
    for i in range(MAX_CARDS):
        s.log[i] = 0
    s.table = _ZERO
    s.legal = _ZERO
    s.num_players = num_players
    s.num_in = num_players
    s.num_out = 0
    s.num_excluded = 0
    s.num_played = 0
    s.dealer = dealer
    s.opener = -1
    s.turn = -1
    s.any_starter = 0
    s.reason = ON


@kernel
def begin(s: Any, r: Any) -> bool:
    """Open the deal whose hands and dealer stand in ``s`` (section 3). False: it cannot begin (section 2)."""
    held = _ZERO
    for seat in range(s.num_players):
        held |= s.hands[seat]
        s.cards_left[seat] = count(s.hands[seat])
        s.dealt[seat] = s.cards_left[seat]
    if r.left_of_dealer:
        if held & r.starters == _ZERO:
            return False
        s.any_starter = 1
        pass_on(s, r, s.dealer)
        return True
    for seat in range(s.num_players):
        if s.hands[seat] & r.opening_card:
            s.opener = seat
            s.turn = seat
            s.legal = r.opening_card
        else:
            s.cannot_hold[seat] = r.opening_card  # who moves first is public
    return True


@kernel
def deal_out(s: Any, r: Any, num_players: int, dealer: int, pack: NDArray[np.uint8]) -> bool:
    """Deal a shuffled pack out and open the deal. False: no seat holds a starter, so it cannot begin (section 2)."""
    per_seat = np.int64(r.cards_per_seat)
    num_dealt = per_seat * num_players if per_seat else np.int64(r.num_cards)
    clear(s, num_players, dealer)
    seat = dealer
    for i in range(num_dealt):
        seat += 1
        if seat >= num_players:
            seat = 0
        s.hands[seat] |= _ONE << np.uint64(pack[i])
    return begin(s, r)


@kernel
def deal(s: Any, r: Any, num_players: int, dealer: int, seed: np.uint64, index: np.uint64) -> None:
    """Deal and open game ``index`` of ``seed``: a pure function of the rules and these numbers (section 2)."""
    pack = np.empty(MAX_CARDS, np.uint8)
    state = shuffle(stream(seed, index), np.int64(r.num_cards), pack)
    while not deal_out(s, r, num_players, dealer, pack):  # it is dealt again from the same stream
        state = shuffle(state, np.int64(r.num_cards), pack)


@kernel
def deal_keyed(s: Any, r: Any, num_players: int, dealer: int, key: Key, index: np.uint64) -> None:
    """Deal and open game ``index`` under a key (`devyatka_env.engine.seeds`), as `deal` does under a seed."""
    pack = np.empty(MAX_CARDS, np.uint8)
    drawn = shuffle_keyed(key, index, _ZERO, np.int64(r.num_cards), pack)
    while not deal_out(s, r, num_players, dealer, pack):
        drawn = shuffle_keyed(key, index, drawn, np.int64(r.num_cards), pack)


@kernel
def deal_index(s: Any, r: Any, num_players: int, seed: np.uint64, index: np.uint64) -> None:
    """`deal`, with the dealer that the deal's place in its match gives (section 9; `Rules.dealer`)."""
    deal(s, r, num_players, dealer_of(r, num_players, index), seed, index)


@kernel
def dealer_of(r: Any, num_players: int, index: np.uint64) -> int:
    """The dealer in deal ``index``: the last seat, then clockwise within a match (section 9; `Rules.dealer`)."""
    return int((num_players - 1 + np.int64(index % np.uint64(r.deals))) % num_players)
