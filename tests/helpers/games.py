"""What several test modules share: presets at every seat count, drawn rule sets, random play, the referee's side."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from devyatka_env.engine import STATE_DTYPE, States
from devyatka_env.games import Game
from devyatka_env.rules import MAX_PLAYERS, MIN_PLAYERS, PRESETS, Rules
from devyatka_env.rules.cards import RANKS_52, RANKS_52_ACE_LOW
from devyatka_env.rules.rule_set import PAYOFFS
from tests.helpers.referee import Referee, RefereeRules

# The first call of a kernel compiles it, and a busy machine stalls: the time of one example says nothing.
settings.register_profile("devyatka", deadline=None)
settings.load_profile("devyatka")

# nine_each needs nine cards a seat of 36 (rules, section 10): 2 to 4 seats.
COMBINATIONS = [
    (preset, seats)
    for preset in PRESETS
    for seats in range(MIN_PLAYERS, MAX_PLAYERS + 1)
    if preset != "nine_each" or seats <= 4
]


def card_ids(mask: int) -> list[int]:
    """The card ids of a bitboard, ascending: bit by bit, so as not to lean on the package's own helpers."""
    return [card for card in range(mask.bit_length()) if mask >> card & 1]


def state_bytes(states: States, without: Sequence[str] = ()) -> bytes:
    """The fields of some engine records, without the padding between them (copies may leave anything there)."""
    return b"".join(states[name].tobytes() for name in STATE_DTYPE.names or () if name not in without)


# --- rule sets -------------------------------------------------------------------------------------------------------


def choose_rules(choose: Callable[[Sequence[Any]], Any]) -> Rules:
    """A rule set with every field chosen, mini-decks included; ``choose`` picks one of several values."""
    pack = choose([RANKS_52, RANKS_52_ACE_LOW])
    low = choose(range(len(pack) - 2))
    ranks = pack[low : choose(range(low + 3, len(pack) + 1))]
    fields: dict[str, Any] = {"ranks": ranks, "starter": choose(ranks), "num_suits": choose([2, 3, 4])}
    num_cards = fields["num_suits"] * len(ranks)
    fields["num_players"] = choose(range(2, 7))
    fields["opening"] = choose(["holder", "left_of_dealer"])
    fields["cards_per_seat"] = None
    if fields["opening"] == "left_of_dealer" and choose([True, False]):
        fields["cards_per_seat"] = choose(range(1, num_cards // fields["num_players"] + 1))
    fields["end"] = choose(["first_out", "last_holder"])
    fields["foul"] = choose(["error", "exclude"])
    fields["explicit_pass"] = fields["foul"] == "exclude" or choose([True, False])
    fields["passes_count"] = choose([True, False])
    fields["payoff"] = choose(PAYOFFS)
    money = fields["payoff"] == "bank"
    fields["ante"], fields["pass_fee"] = (choose([0, 1, 2.5]), choose([0, 0.1, 3])) if money else (1, 1)
    fields["deals"] = choose([1, 2, 7])
    return Rules.of(choose(list(PRESETS)), **fields)


@st.composite
def rule_sets(draw: st.DrawFn) -> Rules:
    """`choose_rules` as a hypothesis strategy."""
    return choose_rules(lambda values: draw(st.sampled_from(values)))


# --- games -----------------------------------------------------------------------------------------------------------


def fouls(game: Game) -> list[int]:
    """The actions that exclude the seat on turn (rules, section 5), ascending."""
    if game.is_over or game.rules.foul != "exclude":
        return []
    own = card_ids(game.hand_masks[game.turn])
    return [action for action in [*own, game.rules.pass_action] if action not in game.legal_actions()]


def play_random(game: Game, rng: random.Random, plies: int | None = None, foul_rate: float = 0.0) -> Game:
    """Play uniformly random legal actions, now and then a foul, to the end or for some plies; returns the game."""
    while not game.is_over and plies != 0:
        wrong = fouls(game) if foul_rate and rng.random() < foul_rate else []
        game.play(rng.choice(wrong or game.legal_actions()))
        plies = None if plies is None else plies - 1
    return game


def random_moment(rules: Rules, seed: int, foul_rate: float = 0.0) -> Game:
    """A random game of these rules, stopped at a uniformly random ply before its end."""
    game = play_random(Game.deal(rules, seed), random.Random(seed), foul_rate=foul_rate)
    plies = random.Random(seed + 1).randrange(len(game.actions))
    return play_random(Game.deal(rules, seed), random.Random(seed), plies, foul_rate)


# --- the referee -----------------------------------------------------------------------------------------------------


def referee_rules(rules: Rules) -> RefereeRules:
    """The referee's copy of a rule set; it names the suits otherwise and knows no matches."""
    fields: dict[str, Any] = {key: value for key, value in rules.to_dict().items() if key not in ("preset", "deals")}
    fields["suits"] = fields.pop("num_suits")
    return RefereeRules(**fields)


def referee_of(game: Game) -> Referee:
    """A referee at the start of the deal that the game started from."""
    return Referee(referee_rules(game.rules), [card_ids(mask) for mask in game.dealt_masks], game.dealer)
