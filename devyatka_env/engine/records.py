"""The records: one structured-array element a game (`STATE_DTYPE`), one a rule set (`RULES_DTYPE`)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from devyatka_env.rules import MAX_PLAYERS, Rules
from devyatka_env.rules.rule_set import PAYOFFS

MAX_CARDS = 52

# One game. Seats beyond `num_players` stay zero. Everything but `hands` and `legal` is public.
STATE_DTYPE = np.dtype(
    [
        ("hands", np.uint64, (MAX_PLAYERS,)),  # hand_mask of each seat; an excluded seat keeps its cards here
        ("played", np.uint64, (MAX_PLAYERS,)),  # cards that each seat has laid
        ("cannot_hold", np.uint64, (MAX_PLAYERS,)),  # cards that each seat is publicly known not to hold
        ("table", np.uint64),  # cards on the table
        (
            "legal",
            np.uint64,
        ),  # legal cards of the seat on turn; 0 when it must pass, and when the deal is over
        ("log", np.uint8, (MAX_CARDS,)),  # card ids in the order they were laid; the first `num_played` count
        ("cards_left", np.uint8, (MAX_PLAYERS,)),
        ("dealt", np.uint8, (MAX_PLAYERS,)),  # cards each seat was dealt
        ("passes", np.uint8, (MAX_PLAYERS,)),
        ("status", np.int8, (MAX_PLAYERS,)),  # 0 in; k > 0 went out k-th; k < 0 excluded (-k)-th
        ("places", np.uint8, (MAX_PLAYERS,)),  # 1 is best; 0 until the deal is over
        ("num_players", np.int8),
        ("num_in", np.int8),  # seats still in
        ("num_out", np.int8),
        ("num_excluded", np.int8),
        ("num_played", np.uint8),
        ("dealer", np.int8),
        ("opener", np.int8),  # the seat that moved first; -1 until a card is laid under left_of_dealer
        ("turn", np.int8),  # the seat to move; -1 when the deal is over
        ("any_starter", np.uint8),  # 1: any starter may open the table; 0: only the opening card
        ("reason", np.uint8),  # why the deal is over: an index into `REASONS`
    ],
    align=True,
)

RULES_DTYPE = np.dtype(
    [
        ("deck", np.uint64),
        ("starters", np.uint64),
        ("tops", np.uint64),  # highest card of each suit
        ("bottoms", np.uint64),
        ("opening_card", np.uint64),
        ("ante", np.float64),
        ("pass_fee", np.float64),
        ("points", np.uint8, (MAX_CARDS,)),
        ("num_cards", np.uint8),
        ("num_ranks", np.uint8),
        ("num_players", np.int8),
        ("deals", np.int64),
        ("cards_per_seat", np.uint8),  # 0: the whole pack
        ("left_of_dealer", np.bool_),
        ("last_holder", np.bool_),
        ("explicit_pass", np.bool_),
        ("exclude", np.bool_),
        ("passes_count", np.bool_),
        ("payoff", np.uint8),  # an index into `PAYOFFS`
    ],
    align=True,
)

States = NDArray[np.void]

REASONS = ("", "out", "last_holder", "blocked", "last_seat", "stopped")
ON, OUT, LAST_HOLDER, BLOCKED, LAST_SEAT, STOPPED = range(6)


@lru_cache(maxsize=1024)
def rules_record(rules: Rules) -> NDArray[np.void]:
    """The rule set as kernels read it: a read-only array ``[1]`` of `RULES_DTYPE`."""
    record = np.zeros(1, RULES_DTYPE)
    deck = rules.deck
    record["deck"] = deck.mask
    record["starters"] = deck.rank_mask(rules.starter)
    record["tops"] = deck.rank_mask(rules.ranks[-1])
    record["bottoms"] = deck.rank_mask(rules.ranks[0])
    record["opening_card"] = 1 << rules.opening_card
    record["ante"] = rules.ante
    record["pass_fee"] = rules.pass_fee
    record["points"][0, : deck.num_cards] = [card.points for card in deck.cards]
    record["num_cards"] = deck.num_cards
    record["num_ranks"] = deck.num_ranks
    record["num_players"] = rules.num_players
    record["deals"] = rules.deals
    record["cards_per_seat"] = rules.cards_per_seat or 0
    record["left_of_dealer"] = rules.opening == "left_of_dealer"
    record["last_holder"] = rules.end == "last_holder"
    record["explicit_pass"] = rules.explicit_pass
    record["exclude"] = rules.foul == "exclude"
    record["passes_count"] = rules.passes_count
    record["payoff"] = PAYOFFS.index(rules.payoff)
    record.flags.writeable = False
    return record
