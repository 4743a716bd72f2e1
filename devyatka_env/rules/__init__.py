"""The game as data: cards, rule sets and presets, hands given by a caller. Nothing here plays.

- `Card`: a card: rank and suit, with its text in Latin or Russian letters.
- `Deck`: a pack: card ids, bitboards and texts of its cards.
- `iter_mask`: the card ids of a bitboard, ascending.
- `to_mask`: card ids as a bitboard.
- `CardTextError`: a text that is no card of the deck.
- `Preset`: a row of the preset table.
- `PRESETS`: the presets by name.
- `DEFAULT_PRESET`: the name of the one that is meant when none is named.
- `Rules`: a complete rule set; `Rules.of` builds one.
- `MIN_PLAYERS`: the fewest seats.
- `MAX_PLAYERS`: the most seats.
- `RulesError`: a rule set that cannot be played, or a field that does not exist.
- `DealError`: hands that cannot be dealt.
"""

from devyatka_env.rules.cards import Card, CardTextError, Deck, iter_mask, to_mask
from devyatka_env.rules.hands import DealError
from devyatka_env.rules.presets import DEFAULT_PRESET, PRESETS, Preset
from devyatka_env.rules.rule_set import MAX_PLAYERS, MIN_PLAYERS, Rules, RulesError

__all__ = [
    "DEFAULT_PRESET",
    "MAX_PLAYERS",
    "MIN_PLAYERS",
    "PRESETS",
    "Card",
    "CardTextError",
    "DealError",
    "Deck",
    "Preset",
    "Rules",
    "RulesError",
    "iter_mask",
    "to_mask",
]
