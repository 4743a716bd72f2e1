"""The hidden cards of a running deal dealt otherwise: the probe that finds every leak of hidden information."""

from __future__ import annotations

import random

import numpy as np

from devyatka_env.engine import rules_record
from devyatka_env.engine.calls import fitting_at
from devyatka_env.games import Game
from devyatka_env.rules import to_mask
from tests.helpers.games import card_ids

SWAPS = 200  # hidden cards are at most 51: many times enough to reach a deal far from the real one


def redeal(game: Game, viewer: int, rng: random.Random) -> Game:
    """A game that seat ``viewer`` cannot tell from this running one; its actions so far can have led to it too.

    The cards outside the viewer's hand and the table wander by random swaps between hands (and the cards out of play).
    A swap is refused when a pass has proved that the new holder lacks the card, or when the seat on turn, which was not
    passed over, would be left without a card that fits.
    """
    assert not game.is_over, "places depend on the hidden cards"
    copy = game.clone()
    record, fits = copy.record, int(fitting_at(copy.states, 0, rules_record(game.rules)))
    places = [card_ids(mask) for mask in game.hand_masks]
    known = game.table_mask | to_mask([card for hand in places for card in hand])
    places.append(card_ids(game.rules.deck.mask & ~known))  # out of play
    cannot = [*record["cannot_hold"].tolist()[: game.num_players], 0]
    hidden = [place for place, cards in enumerate(places) if place != viewer and cards]
    for _ in range(SWAPS if len(hidden) > 1 else 0):
        one, other = rng.sample(hidden, 2)
        i, j = rng.randrange(len(places[one])), rng.randrange(len(places[other]))
        first, second = places[one][i], places[other][j]
        if cannot[one] >> second & 1 or cannot[other] >> first & 1:
            continue
        places[one][i], places[other][j] = second, first
        if not game.rules.explicit_pass and not to_mask(places[game.turn]) & fits:
            places[one][i], places[other][j] = first, second
    for seat in range(game.num_players):
        record["hands"][seat] = np.uint64(to_mask(places[seat]))
    record["legal"] = np.uint64(to_mask(places[game.turn]) & fits)
    return copy
