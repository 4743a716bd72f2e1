"""The engine against the naive referee: random games of every preset and seat count, and whole trees of mini-decks.

Everything observable is compared after every action: turn, legal actions, hands, rows, passes, who went out or was
excluded, cards left and card points; at the end the reason, the places and the payoffs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from devyatka_env.engine import States, rules_record
from devyatka_env.engine.calls import payoffs_at, step_at
from devyatka_env.engine.turn import ILLEGAL
from devyatka_env.games import Deals, Game, IllegalActionError
from devyatka_env.games.game import DealError
from devyatka_env.rules import Rules
from devyatka_env.rules.rule_set import PAYOFFS
from tests.helpers.games import COMBINATIONS, card_ids, choose_rules, fouls, referee_of, referee_rules, state_bytes
from tests.helpers.referee import Referee, RefereeError, RefereeRules

# A wrong choice this often makes most `exclude` games see a foul, and most still reach their ordinary end.
FOUL_RATE = 0.04
ILLEGAL_RATE = 0.1


# --- the comparison --------------------------------------------------------------------------------------------------


def assert_same(game: Game, referee: Referee) -> None:
    """Both sides of a deal stand alike."""
    record, seats = game.record, range(game.num_players)
    assert game.turn == referee.turn, game.position
    assert game.legal_actions() == referee.legal_actions(), game.position
    assert [card_ids(mask) for mask in game.hand_masks] == referee.hands, game.position
    ranks = len(game.rules.ranks)
    rows = [suit * ranks + rank for suit, row in enumerate(referee.rows) for rank in row]
    assert card_ids(game.table_mask) == rows, game.position
    assert record["passes"].tolist()[: len(seats)] == referee.passes, game.position
    assert record["cards_left"].tolist()[: len(seats)] == referee.cards_left(), game.position
    status = record["status"].tolist()
    assert [seat for seat in sorted(seats, key=status.__getitem__) if status[seat] > 0] == referee.went_out
    assert [seat for seat in sorted(seats, key=lambda s: -status[s]) if status[seat] < 0] == referee.excluded
    assert game.is_over == referee.is_over, game.position
    if game.is_over:
        assert_same_result(game, referee)


def assert_same_result(game: Game, referee: Referee) -> None:
    """Both sides of a finished deal give the same result, under every payoff table of section 8."""
    result = game.result()
    assert result.reason == referee.reason, game.position
    assert list(result.places) == referee.places(), game.position
    assert list(result.cards_left) == referee.cards_left()
    assert list(result.card_points) == referee.card_points(), game.position
    assert list(result.passes) == referee.passes
    assert result.payoffs == pytest.approx(referee.payoffs(), abs=1e-12), game.position
    assert result.winners == tuple(seat for seat, place in enumerate(referee.places()) if place == 1)


@lru_cache
def payoff_variants(rules: Rules) -> list[tuple[str, States, RefereeRules]]:
    """The rule set once for each payoff table: its name, the engine's form, the referee's form."""
    variants = []
    for payoff in PAYOFFS:
        ante, pass_fee = (2.0, 0.5) if payoff == "bank" else (1.0, 1.0)
        variant = Rules.of(rules, payoff=payoff, ante=ante, pass_fee=pass_fee)
        variants.append((payoff, rules_record(variant), referee_rules(variant)))
    return variants


def assert_same_payoffs(game: Game, referee: Referee) -> None:
    """A finished deal pays alike under every payoff table, whichever of them its rules name."""
    original = referee.rules
    for payoff, record, variant in payoff_variants(game.rules):
        paid = np.zeros(6)
        payoffs_at(game.states, 0, record, paid)
        referee.rules = variant
        expected = referee.payoffs()
        assert all(abs(a - b) < 1e-12 for a, b in zip(paid, expected, strict=False)), (payoff, game.position)
    referee.rules = original


def assert_both_refuse(game: Game, referee: Referee, action: int) -> None:
    """Neither side takes the action, and nothing changes."""
    before, actions = state_bytes(game.states), list(game.actions)
    with pytest.raises(IllegalActionError):
        game.play(action)
    with pytest.raises(RefereeError):
        referee.play(action)
    assert state_bytes(game.states) == before
    assert game.actions == actions
    assert_same(game, referee)


# --- random games ----------------------------------------------------------------------------------------------------


def unwanted_actions(game: Game) -> list[int]:
    """Every action near the range that is neither legal nor a foul."""
    taken = {*game.legal_actions(), *fouls(game)}
    return [action for action in range(-2, game.rules.pass_action + 3) if action not in taken]


def play_side_by_side(game: Game, referee: Referee, rng: random.Random) -> list[int]:
    """Play a game to its end on both sides, comparing at every step; returns the seats that moved."""
    turns = []
    assert_same(game, referee)
    while not referee.is_over:
        if rng.random() < ILLEGAL_RATE:
            assert_both_refuse(game, referee, rng.choice(unwanted_actions(game)))
        wrong = [a for a in range(game.rules.pass_action + 1) if referee.is_foul(a)]
        assert wrong == sorted(fouls(game))
        action = rng.choice(wrong if wrong and rng.random() < FOUL_RATE else referee.legal_actions())
        turns.append(referee.turn)
        game.play(action)
        referee.play(action)
        assert_same(game, referee)
    assert_same_payoffs(game, referee)
    assert_both_refuse(game, referee, rng.choice(unwanted_actions(game)))
    return turns


@pytest.mark.parametrize("games", [pytest.param(40, id="40"), pytest.param(2_000, id="2000", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_random_games__engine_and_referee_agree_after_every_action(preset: str, seats: int, games: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    rng = random.Random(f"{preset} {seats}")
    seed = rng.getrandbits(64)
    batch = Deals(rules, np.arange(games), seed)
    reasons = set()
    for index in range(games):
        game = Game.deal(rules, seed, index)
        assert game.dealer == (seats - 1 + index % rules.deals) % seats  # rules, sections 2 and 9
        turns = play_side_by_side(game, referee_of(game), rng)
        reasons.add(game.result().reason)
        which = np.array([index])
        for seat, action in zip(turns, game.actions, strict=True):
            assert batch.turns[index] == seat
            batch.step(which, np.array([action]))
        assert batch.turns[index] == -1
        assert state_bytes(batch.states[index : index + 1]) == state_bytes(game.states)
        assert batch.payoffs(which)[0, :seats].tolist() == list(game.result().payoffs)
    ordinary = "last_holder" if rules.end == "last_holder" else "out"
    if rules.cards_per_seat is not None:
        assert reasons <= {ordinary, "blocked"}
    elif rules.foul == "exclude":
        assert ordinary in reasons
        assert len(reasons) > 1  # exclusions ended or blocked some of the games
    else:
        assert reasons == {ordinary}  # rules, section 6: blocked only when cards are out of play


def dealt_one_at_a_time(rules: Rules, dealer: int, rng: random.Random) -> list[list[int]]:
    """A shuffled pack dealt as people deal it (rules, section 2)."""
    pack = rng.sample(range(rules.deck.num_cards), rules.deck.num_cards)
    if rules.cards_per_seat is not None:
        pack = pack[: rules.cards_per_seat * rules.num_players]
    hands: list[list[int]] = [[] for _ in range(rules.num_players)]
    for position, card in enumerate(pack):
        hands[(dealer + 1 + position) % rules.num_players].append(card)
    return hands


@pytest.mark.parametrize(
    ("first", "count"),
    [pytest.param(0, 800, id="800"), pytest.param(800, 60_000, id="60000", marks=pytest.mark.slow)],
)
def test_random_rule_sets__engine_and_referee_agree_after_every_action(first: int, count: int) -> None:
    reasons: dict[str, int] = {}
    for seed in range(first, first + count):
        rng = random.Random(seed)
        rules = choose_rules(rng.choice)
        dealer = rng.randrange(rules.num_players)
        hands = dealt_one_at_a_time(rules, dealer, rng)
        if not Referee.can_begin(referee_rules(rules), hands):
            with pytest.raises(DealError, match="starter"):
                Game.from_hands(rules, hands, dealer)
            reasons["cannot begin"] = reasons.get("cannot begin", 0) + 1
            continue
        game = Game.from_hands(rules, hands, dealer)
        play_side_by_side(game, Referee(referee_rules(rules), hands, dealer), rng)
        reasons[game.result().reason] = reasons.get(game.result().reason, 0) + 1
    # Each way a deal can go was compared often, the rarest of them in some hundredths of the deals.
    assert set(reasons) == {"out", "last_holder", "blocked", "last_seat", "cannot begin"}
    assert min(reasons.values()) > count / 100, reasons


# --- whole trees of mini-decks ---------------------------------------------------------------------------------------

TWO_BY_THREE = {"num_suits": 2, "ranks": "789", "starter": "8"}  # the starter in the middle
TWO_BY_FOUR = {"num_suits": 2, "ranks": "89TJ", "starter": "9"}  # one card below the starter, two above
THREE_LOW_EDGE = {"num_suits": 3, "ranks": "9TJ", "starter": "9"}  # nothing below the starter
THREE_HIGH_EDGE = {"num_suits": 3, "ranks": "789", "starter": "9"}  # nothing above the starter
LEFT = {"opening": "left_of_dealer"}
EXCLUDE = {"foul": "exclude", "explicit_pass": True}


def every_deal(rules: Rules) -> Iterator[tuple[list[list[int]], int]]:
    """Every (hands, dealer) of a rule set that can begin, hand sizes by section 2."""
    n, num_cards = rules.num_players, rules.deck.num_cards
    num_dealt = num_cards if rules.cards_per_seat is None else rules.cards_per_seat * n
    for dealer in range(n):
        sizes = [0] * n
        for position in range(num_dealt):
            sizes[(dealer + 1 + position) % n] += 1
        for hands in split(list(range(num_cards)), sizes):
            if Referee.can_begin(referee_rules(rules), hands):
                yield hands, dealer


def split(pack: list[int], sizes: list[int]) -> Iterator[list[list[int]]]:
    """Every way to give hands of these sizes from a pack."""
    if not sizes:
        yield []
        return
    for hand in combinations(pack, sizes[0]):
        rest = [card for card in pack if card not in hand]
        for others in split(rest, sizes[1:]):
            yield [list(hand), *others]


def copy_of(referee: Referee) -> Referee:
    """An independent copy: `copy.deepcopy` at a fraction of its time."""
    twin = object.__new__(Referee)
    vars(twin).update(vars(referee))
    twin.hands = [list(hand) for hand in referee.hands]
    twin.rows = [list(row) for row in referee.rows]
    twin.passes, twin.went_out, twin.excluded = list(referee.passes), list(referee.went_out), list(referee.excluded)
    return twin


def walk(game: Game, referee: Referee) -> int:
    """Compare both sides in every state that legal actions and fouls reach; returns the number of states.

    Two histories that lead to the same record, the order of the cards laid aside, are followed once: `assert_same`
    has found both sides equal there in all that the rest of a deal depends on.
    """
    seen: set[bytes] = set()
    todo = [(game, referee)]
    actions = range(-1, game.rules.pass_action + 2)
    while todo:
        game, referee = todo.pop()
        key = state_bytes(game.states, without=("log",))
        if key in seen:
            continue
        seen.add(key)
        assert_same(game, referee)
        if referee.is_over:
            assert_same_payoffs(game, referee)
        legal = referee.legal_actions()
        for action in actions:
            if action not in legal and not referee.is_foul(action):
                assert_refused_by_engine(game, action)
                continue
            next_game, next_referee = game.clone(), copy_of(referee)
            next_game.play(action)
            next_referee.play(action)
            todo.append((next_game, next_referee))
    return len(seen)


def assert_refused_by_engine(game: Game, action: int) -> None:
    """As `Game.play` asks the engine, without the cost of its message."""
    before = state_bytes(game.states)
    assert step_at(game.states, 0, rules_record(game.rules), action) == ILLEGAL
    assert state_bytes(game.states) == before


# Deals and states of each tree, frozen: a walk that misses a branch, or a rule that moves, changes them. To make new
# ones, run the test and, once both sides agree, copy the numbers of the failure.
TREES: list[tuple[dict[str, Any], int, dict[str, Any], int, int]] = [
    (TWO_BY_THREE, 2, {}, 40, 536),
    (TWO_BY_THREE, 2, {"end": "last_holder", "explicit_pass": True}, 40, 560),
    (TWO_BY_THREE, 3, {"end": "last_holder", **LEFT, **EXCLUDE}, 270, 12_444),
    (TWO_BY_THREE, 3, {"end": "first_out", **EXCLUDE, "passes_count": True}, 270, 8_568),
    (TWO_BY_FOUR, 2, {"end": "last_holder", **EXCLUDE}, 140, 7_336),
    (TWO_BY_FOUR, 2, {"cards_per_seat": 3, **LEFT}, 1_080, 9_684),
    (TWO_BY_FOUR, 2, {"cards_per_seat": 3, "end": "last_holder", **LEFT, **EXCLUDE}, 1_080, 20_464),
    (TWO_BY_FOUR, 3, {"passes_count": True}, 1_680, 22_146),
    (TWO_BY_FOUR, 3, {"end": "last_holder", "explicit_pass": True}, 1_680, 36_888),
    (THREE_LOW_EDGE, 2, {}, 252, 9_052),
    (THREE_LOW_EDGE, 2, {**EXCLUDE}, 252, 18_724),
    (THREE_HIGH_EDGE, 2, {"end": "last_holder", **LEFT, **EXCLUDE}, 252, 23_328),
]
BIG_TREES: list[tuple[dict[str, Any], int, dict[str, Any], int, int]] = [
    (TWO_BY_FOUR, 3, {**EXCLUDE}, 1_680, 136_749),
    (TWO_BY_FOUR, 3, {"end": "last_holder", **LEFT, **EXCLUDE, "passes_count": True}, 1_680, 184_782),
    (TWO_BY_FOUR, 3, {"cards_per_seat": 2, "end": "last_holder", **LEFT}, 7_290, 51_867),
    (THREE_LOW_EDGE, 3, {"end": "last_holder"}, 5_040, 115_650),
    (THREE_HIGH_EDGE, 3, {"passes_count": True, "explicit_pass": True}, 5_040, 102_438),
    (THREE_HIGH_EDGE, 3, {"cards_per_seat": 2, **LEFT, **EXCLUDE}, 22_410, 662_202),
]


@pytest.mark.parametrize(
    ("deck", "seats", "options", "deals", "states"),
    [pytest.param(*tree, marks=[pytest.mark.slow] * (tree[-1] > 13_000)) for tree in (*TREES, *BIG_TREES)],
)
def test_whole_trees__engine_and_referee_agree_in_every_state_of_every_deal(
    deck: dict[str, Any], seats: int, options: dict[str, Any], deals: int, states: int
) -> None:
    rules = Rules.of({**deck, "num_players": seats, **options})
    walked = [
        walk(game := Game.from_hands(rules, hands, dealer), referee_of(game)) for hands, dealer in every_deal(rules)
    ]
    assert (len(walked), sum(walked)) == (deals, states)
