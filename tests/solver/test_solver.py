"""The exact two-seat solver against a search over lists that knows only the referee, and against itself.

The search plays the naive referee (tests/helpers/referee.py) to every end, passes and all: it knows neither the engine
nor the solver's lattice.
"""

from __future__ import annotations

import itertools
import pickle
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from devyatka_env.bots import ceiling
from devyatka_env.engine import States
from devyatka_env.games import Game
from devyatka_env.games.game import DealError
from devyatka_env.rules import PRESETS, Rules, to_mask
from devyatka_env.rules.rule_set import PAYOFFS
from devyatka_env.solver import (
    Solution,
    TwoSeatTable,
    best_many,
    margin,
    max_n,
    max_n_values,
    paranoid,
    paranoid_values,
    solve,
    values_many,
    workspace,
)
from devyatka_env.solver.lattice import BANKED, FEWER_PASSES, PLAIN, SHARED_BANK
from tests.helpers.games import card_ids, choose_rules, play_random, random_moment, referee_of, referee_rules
from tests.helpers.referee import Referee, RefereeRules

# --- the search ------------------------------------------------------------------------------------------------------

Position = tuple[tuple[tuple[int, ...], ...], int, tuple[int, ...]]  # hands, turn, passes
Found = dict[Position, tuple[float, ...]]


def position_of(referee: Referee) -> Position:
    """All that the rest of a two-seat deal depends on; the rows follow from the hands."""
    return tuple(map(tuple, referee.hands)), referee.turn, tuple(referee.passes)


def copy_of(referee: Referee) -> Referee:
    """An independent copy."""
    twin = object.__new__(Referee)
    vars(twin).update(vars(referee))
    twin.hands = [list(hand) for hand in referee.hands]
    twin.rows = [list(row) for row in referee.rows]
    twin.passes, twin.went_out, twin.excluded = list(referee.passes), list(referee.went_out), list(referee.excluded)
    return twin


def search(referee: Referee, payoffs: Sequence[RefereeRules], found: Found) -> tuple[float, ...]:
    """The exact value of a deal to seat 0 under each of several payoff tables, every position noted in ``found``.

    A value is seat 0's payoff, for `cards` and `points` less seat 1's.
    """
    position = position_of(referee)
    if position in found:
        return found[position]
    if referee.is_over:
        values = []
        original = referee.rules
        for rules in payoffs:
            referee.rules = rules
            mine, theirs = referee.payoffs()
            values.append(mine - theirs if rules.payoff in ("cards", "points") else mine)
        referee.rules = original
        found[position] = tuple(values)
        return found[position]
    followers = []
    for action in referee.legal_actions():
        twin = copy_of(referee)
        twin.play(action)
        followers.append(search(twin, payoffs, found))
    better = max if referee.turn == 0 else min
    found[position] = tuple(better(values) for values in zip(*followers, strict=True))
    return found[position]


def variants(rules: Rules) -> list[Rules]:
    """The rule set with every payoff that the solver takes, bank with an odd ante and fee."""
    found = []
    for payoff in PAYOFFS:
        money = {"ante": 2.5, "pass_fee": 0.5} if payoff == "bank" else {"ante": 1, "pass_fee": 1}
        if payoff != "bank" or not rules.passes_count or rules.cards_per_seat is None:
            found.append(Rules.of(rules, payoff=payoff, **money))
    return found


def assert_same_everywhere(game: Game) -> tuple[int, set[int]]:
    """Search and solver agree in every position that can follow a game's, under every payoff.

    Returns the number of positions, and the forms that the solver's units took (`lattice`).
    """
    payoffs, found, forms = variants(game.rules), {}, set()
    search(referee_now(game), [referee_rules(one) for one in payoffs], found)
    dealt = game.dealt_masks[0] | game.dealt_masks[1]
    for number, rules in enumerate(payoffs):
        table = TwoSeatTable.of(Game(rules, game.states, game.actions))
        forms.add(int(table._work.lattice["form"][0]))
        for (hands, turn, passes), values in found.items():
            if turn >= 0:
                value = table.value(dealt & ~to_mask(hands[0] + hands[1]), turn, passes)
                expected = values[number] if turn == 0 else -values[number]
                assert abs(value - expected) < 1e-9, (rules, game.position, hands, turn, passes, value, expected)
    return len(found), forms


def referee_now(game: Game) -> Referee:
    """A referee where the game is now."""
    referee = referee_of(game)
    for action in game.actions:
        referee.play(action)
    return referee


# --- whole trees of mini-decks ---------------------------------------------------------------------------------------

TWO_BY_THREE = {"num_suits": 2, "ranks": "789", "starter": "8"}
TWO_BY_FOUR = {"num_suits": 2, "ranks": "89TJ", "starter": "9"}
THREE_LOW_EDGE = {"num_suits": 3, "ranks": "9TJ", "starter": "9"}  # nothing below the starter; hands of 5 and 4
THREE_HIGH_EDGE = {"num_suits": 3, "ranks": "789", "starter": "9"}
FOUR_BY_THREE = {"num_suits": 4, "ranks": "789", "starter": "8"}
TWO_BY_SIX = {"num_suits": 2, "ranks": "6789TJ", "starter": "9"}
LEFT = {"opening": "left_of_dealer"}


def every_deal(rules: Rules) -> Iterator[Game]:
    """Every deal of a two-seat rule set that can begin, with either dealer."""
    num_cards = rules.deck.num_cards
    for dealer in range(2):
        size = rules.cards_per_seat or num_cards // 2
        sizes = [size, size]
        if rules.cards_per_seat is None:
            sizes[1 - dealer] += num_cards % 2
        for first in itertools.combinations(range(num_cards), sizes[0]):
            rest = [card for card in range(num_cards) if card not in first]
            for second in itertools.combinations(rest, sizes[1]):
                try:
                    yield Game.from_hands(rules, [first, second], dealer)
                except DealError:  # nobody holds a starter
                    continue


PASSES = {"passes_count": True}
EXPLICIT = {"explicit_pass": True}

WHOLE_PACK, SHARED, BY_PASSES = {PLAIN, BANKED}, {PLAIN, BANKED, SHARED_BANK}, {PLAIN, FEWER_PASSES}

# The deals walked (every so many-th of all), the positions of their trees, and the forms of units that they need.
# Frozen: a search that misses a branch, or a rule that moves, changes them; copy new ones from the failure.
TREES: list[tuple[dict[str, Any], int, int, int, set[int]]] = [
    (TWO_BY_THREE, 1, 40, 520, WHOLE_PACK),
    (TWO_BY_FOUR, 1, 140, 3_500, WHOLE_PACK),
    ({**TWO_BY_FOUR, "end": "last_holder", "foul": "exclude", **EXPLICIT}, 1, 140, 3_700, WHOLE_PACK),
    ({**TWO_BY_FOUR, "cards_per_seat": 3, **LEFT}, 2, 540, 4_544, SHARED),
    ({**TWO_BY_FOUR, "cards_per_seat": 3, **PASSES, **EXPLICIT, **LEFT}, 2, 540, 5_351, BY_PASSES),
    (THREE_LOW_EDGE, 1, 252, 7_594, WHOLE_PACK),
    ({**THREE_HIGH_EDGE, "end": "last_holder", **PASSES, **LEFT}, 1, 252, 9_990, WHOLE_PACK),
    ({**TWO_BY_SIX, "cards_per_seat": 5, **PASSES, **LEFT}, 401, 82, 1_949, BY_PASSES),
    ({**FOUR_BY_THREE, "cards_per_seat": 4, **LEFT}, 1501, 47, 1_091, SHARED),
    (FOUR_BY_THREE, 97, 20, 4_703, WHOLE_PACK),
]
BIG_TREES: list[tuple[dict[str, Any], int, int, int, set[int]]] = [
    ({**TWO_BY_FOUR, "cards_per_seat": 3, **LEFT}, 1, 1_080, 9_236, SHARED),
    ({**TWO_BY_FOUR, "cards_per_seat": 3, **PASSES, **EXPLICIT, **LEFT}, 1, 1_080, 10_812, BY_PASSES),
    ({**TWO_BY_SIX, "cards_per_seat": 5, **PASSES, **LEFT}, 11, 2_979, 83_069, BY_PASSES),
    ({**FOUR_BY_THREE, "cards_per_seat": 4, **LEFT}, 101, 685, 15_349, SHARED),
    (FOUR_BY_THREE, 3, 616, 147_674, WHOLE_PACK),
]


@pytest.mark.parametrize(
    ("options", "every", "deals", "positions", "forms"),
    [*TREES, *(pytest.param(*tree, marks=pytest.mark.slow) for tree in BIG_TREES)],
)
def test_whole_trees__solver_and_search_agree_in_every_position(
    options: dict[str, Any], every: int, deals: int, positions: int, forms: set[int]
) -> None:
    rules = Rules.of(options, num_players=2)
    walked = [assert_same_everywhere(game) for game in itertools.islice(every_deal(rules), 0, None, every)]
    assert (len(walked), sum(number for number, _ in walked)) == (deals, positions)
    assert set.union(*(met for _, met in walked)) == forms


# --- endgames of every preset, and of drawn rule sets ----------------------------------------------------------------

CARDS_LEFT = 12  # in both hands: up to some thousand positions


def endgame(game: Game, rng: random.Random, cards_left: int = CARDS_LEFT) -> Game:
    """Random play until few cards are left; the game may be over before."""
    while not game.is_over and int(game.record["cards_left"].sum()) > cards_left:
        play_random(game, rng, plies=1)
    return game


@pytest.mark.parametrize("games", [pytest.param(30, id="30"), pytest.param(400, id="400", marks=pytest.mark.slow)])
@pytest.mark.parametrize("preset", PRESETS)
def test_endgames__solver_and_search_agree_in_every_position(preset: str, games: int) -> None:
    rules, rng = Rules.of(preset, num_players=2), random.Random(preset)
    positions, compared, index = 0, 0, 0
    while compared < games:
        game = endgame(Game.deal(rules, 0, index), rng, CARDS_LEFT + 8 * (preset == "nine_each"))
        index += 1
        if not game.is_over:
            positions += assert_same_everywhere(game)[0]
            compared += 1
    assert positions > 20 * games  # the trees are worth the name


@pytest.mark.parametrize("count", [pytest.param(100, id="100"), pytest.param(2_000, id="2000", marks=pytest.mark.slow)])
def test_random_rule_sets__solver_and_search_agree_in_every_position(count: int) -> None:
    forms: set[int] = set()
    compared = 0
    for seed in range(count):
        rng = random.Random(seed)
        rules = Rules.of(choose_rules(rng.choice), num_players=2)
        if rules.payoff == "bank":  # `assert_same_everywhere` tries every payoff there is
            rules = Rules.of(rules, payoff="win", ante=1, pass_fee=1)
        game = endgame(Game.deal(rules, seed), rng)
        if not game.is_over:
            forms |= assert_same_everywhere(game)[1]
            compared += 1
    assert compared > count / 2
    assert forms >= {PLAIN, BANKED, FEWER_PASSES}


# --- one value, however it is asked for ------------------------------------------------------------------------------


def solvable(index: int) -> Rules:
    """A preset with one of its payoffs, another one for each index."""
    found = variants(Rules.of(list(PRESETS)[index % len(PRESETS)], num_players=2))
    return found[index % len(found)]


@pytest.mark.parametrize("index", range(14))
def test_values__do_not_depend_on_the_way_they_are_asked_for(index: int) -> None:
    rules = solvable(index)
    game, rng = Game.deal(rules, 5, index), random.Random(index)
    table = TwoSeatTable(rules, game.dealt_masks, game.dealer)
    moments = []
    while not game.is_over:
        moments.append(game.clone())
        game.play(rng.choice(game.legal_actions()))
    states = np.concatenate([moment.states for moment in moments])
    together, best = values_many(states, rules), best_many(states, rules)
    backwards = values_many(states[::-1], rules)[::-1]  # each of them needs a table of its own
    work = workspace(rules)
    for i, moment in enumerate(moments):
        values = table.values(moment)
        assert list(values) == moment.legal_actions()
        assert TwoSeatTable.of(moment).values(moment) == values
        row = {action: value for action, value in enumerate(together[i].tolist()) if value == value}
        assert row == values
        assert np.array_equal(together[i], backwards[i], equal_nan=True)
        assert np.array_equal(together[i], values_many(moment.states, rules, work)[0], equal_nan=True)
        assert table.value(moment.table_mask, moment.turn, moment.record["passes"][:2]) == max(values.values())
        top = [card for card, value in values.items() if value == max(values.values()) and card < rules.pass_action]
        assert card_ids(int(best[i])) == top
    assert (best_many(game.states, rules), np.isnan(values_many(game.states, rules)).all()) == (0, True)


def permuted(game: Game, order: Sequence[int], seats: Sequence[int]) -> Game:
    """The same game with suit ``order[k]`` in the place of suit ``k``, and seat ``seats[k]`` in that of seat ``k``."""
    ranks = len(game.rules.ranks)

    def moved(card: int) -> int:
        return card if card == game.rules.pass_action else order[card // ranks] * ranks + card % ranks

    hands = [to_mask(map(moved, card_ids(game.dealt_masks[seat]))) for seat in seats]
    twin = Game.from_hands(game.rules, hands, seats[game.dealer])
    for action in game.actions:
        twin.play(moved(action))
    return twin


@pytest.mark.parametrize("index", range(10))
def test_values__follow_the_suits_and_the_seats(index: int) -> None:
    rules = solvable(index)
    rng = random.Random(index)
    for seed in range(4):
        game = random_moment(rules, seed)
        order = rng.sample(range(4), 4)
        if rules.opening == "holder":  # the opening card stays what it is
            order.remove(1)
            order.insert(1, 1)
        for seats in ((0, 1), (1, 0)):
            twin = permuted(game, order, seats)
            assert twin.turn == seats[game.turn]
            values, moved = solve(game).values, solve(twin).values
            ranks = len(rules.ranks)
            for card, value in values.items():
                assert (
                    moved[card if card == rules.pass_action else order[card // ranks] * ranks + card % ranks] == value
                )


# --- a solution ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS)
def test_solve__its_line_is_legal_and_worth_the_value(preset: str) -> None:
    rules = Rules.of(preset, num_players=2)
    for seed in range(5):
        game = random_moment(rules, seed)
        before = game.clone()
        solution = solve(game)
        assert isinstance(solution, Solution)
        assert game == before
        assert list(solution.values) == game.legal_actions()
        assert solution.value == max(solution.values.values())
        assert solution.best == tuple(a for a, value in solution.values.items() if value == solution.value)
        assert solution.line[0] == solution.best[0]
        for action in solution.line:
            game.play(action)
        assert margin(game.result(), before.turn, rules) == pytest.approx(solution.value, abs=1e-9)


def test_solve__counts_the_positions_of_a_whole_deal() -> None:
    # Three closed rows of 25 states and the opened one of 24, or four of 25; either seat to move.
    assert solve(Game.deal(Rules.of(num_players=2))).states == 25**3 * 24 * 2
    assert solve(Game.deal(Rules.of("any_nine", num_players=2))).states == 25**4 * 2


def test_workspace__of_52_cards_takes_less_than_200_mb() -> None:
    for preset in ("deck_52", "sevens"):
        for payoff in ("win", "points"):
            assert workspace(Rules.of(preset, num_players=2, payoff=payoff)).cells.nbytes < 50e6


@pytest.mark.parametrize(
    "deals", [pytest.param(300, id="300"), pytest.param(10_000, id="10000", marks=pytest.mark.slow)]
)
def test_best_play__never_gets_less_than_the_value_whatever_the_other_seat_does(deals: int) -> None:
    got_more = 0
    for index in range(deals):
        rules = PLAYED[index % len(PLAYED)]
        game, rng = Game.deal(rules, 11, index), random.Random(index)
        table = TwoSeatTable.of(game)
        values = table.values(game)
        me = index // len(PLAYED) % 2
        value = max(values.values()) if game.turn == me else -max(values.values())
        while not game.is_over:
            legal = game.legal_actions()
            if game.turn == me and len(legal) > 1:
                values = table.values(game)
                legal = [action for action, worth in values.items() if worth == max(values.values())]
            game.play(rng.choice(legal))
        got = margin(game.result(), me, rules)
        assert got >= value - 1e-9, game.position
        got_more += got > value + 1e-9
    assert got_more > deals / 10  # the random seat threw something away, so there was something to keep


PLAYED = [
    Rules.of("first_out", num_players=2),
    Rules.of("winner_and_loser", num_players=2),
    Rules.of("round", num_players=2),
    Rules.of("bank", num_players=2),
    Rules.of("nine_each", num_players=2, passes_count=True, payoff="place"),
]


# --- what it costs ---------------------------------------------------------------------------------------------------

# In a fresh process: which kernels are loaded or compiled between the first and the last look at the solver's clock?
WATCH = """
import gc, time, types
from numba.core.dispatcher import Dispatcher
from devyatka_env import Game, Rules
from devyatka_env.bots import CallableBot, ceiling_values
from devyatka_env.solver import max_n, open_hands, solve, TwoSeatTable, two_seats

looks = []
def look():
    kernels = [one for one in gc.get_objects() if isinstance(one, Dispatcher)]
    looks.append({str(one.py_func): len(one.signatures) for one in kernels if one.signatures})
    return time.perf_counter()

for module in (ceiling_values, open_hands, two_seats):
    module.time = types.SimpleNamespace(perf_counter=look)
last_card = CallableBot(lambda view, rng: view.legal_actions()[-1], "last_card", deterministic=True)
two = Rules.of("first_out", num_players=2)
"""
ASKED = {
    "solve(Game.deal(two))": 4,  # looks at the clock: here and in the table
    "solve(Game.deal(Rules.of(two, payoff='points')))": 4,
    "TwoSeatTable.of(Game.deal(two))": 2,
    "max_n(Game.deal('first_out'))": 2,
    "ceiling_values.ceiling(Game.deal('first_out'), 0, 'greedy')": 2,
    "ceiling_values.ceilings('first_out', last_card, [0])": 2,
}


@pytest.mark.parametrize("question", ASKED)
def test_seconds__are_those_of_the_search_and_not_of_its_kernels(question: str) -> None:
    report = f"print(sorted(looks[-1].items() - looks[-{ASKED[question]}].items()), len(looks[0]))"
    run = subprocess.run(
        [sys.executable, "-c", f"{WATCH}\n{question}\n{report}"], capture_output=True, text=True, check=True
    )
    new, loaded = run.stdout.rsplit(" ", 1)
    assert new == "[]"
    assert int(loaded) > 0


# --- what is refused -------------------------------------------------------------------------------------------------


def test_errors__rules_that_are_not_solved() -> None:
    with pytest.raises(ValueError, match=r"num_players=2, not 4.*paranoid.*max_n"):
        solve(Game.deal("first_out"))
    with pytest.raises(ValueError, match=r"cards_per_seat is not solved.*`paranoid` and `max_n` .* are exact there"):
        solve(Game.deal(Rules.of("nine_each", num_players=2, payoff="bank", passes_count=True)))
    assert solve(Game.deal(Rules.of("bank", num_players=2, passes_count=True))).value != 0  # no deal of it is blocked


def test_errors__a_finished_game() -> None:
    game = play_random(Game.deal(Rules.of(num_players=2)), random.Random(0))
    for ask in (solve, TwoSeatTable.of):
        with pytest.raises(ValueError, match="the deal is over"):
            ask(game)


def test_errors__what_is_no_game() -> None:
    for ask in (solve, TwoSeatTable.of):
        with pytest.raises(ValueError, match=r"game must be a Game \(from Game.deal, .*, not 'foo'"):
            ask("foo")  # type: ignore[arg-type]


def test_errors__positions_of_another_table() -> None:
    rules = Rules.of(num_players=2)
    game = Game.deal(rules, 0)
    later = play_random(game.clone(), random.Random(0), plies=6)
    table = TwoSeatTable.of(later)
    with pytest.raises(ValueError, match="no position of this deal's table: 9♦"):
        table.values(play_random(game.clone(), random.Random(0), plies=1))
    with pytest.raises(ValueError, match="not of this table's deal and rules"):
        table.values(Game.deal(rules, 1))
    with pytest.raises(ValueError, match="not of this table's deal and rules"):
        table.values(Game(Rules.of(rules, payoff="cards"), later.states, later.actions))
    whole = TwoSeatTable(rules, game.dealt_masks, game.dealer)
    other = 1 - game.turn
    with pytest.raises(ValueError, match=f"seat {game.turn} opens this deal, not seat {other}"):
        whole.value(0, other)
    with pytest.raises(ValueError, match="turn must be 0 or 1, not 2"):
        whole.value(0, 2)
    with pytest.raises(ValueError, match="outside the deck of 36"):
        whole.value(1 << 36, 0)
    for text in ("9♦ J♦", "8♦", "9♦ 10♣"):  # a gap, a row without its starter, another such row
        with pytest.raises(ValueError, match="no position of this deal's table"):
            whole.value(rules.deck.parse_mask(text), 0)


@pytest.mark.parametrize("passes", [[], (5,), (1, 2, 3), (-1, -2), (0.0, 1.0), (0, 10**30), 5, "00", (True, False)])
def test_table_value__takes_two_whole_numbers_of_passes(passes: Any) -> None:
    table = TwoSeatTable.of(Game.deal("bank num_players=2"))
    with pytest.raises(ValueError, match="passes must be two whole numbers from 0 to 255, not "):
        table.value(1 << table.rules.opening_card, 0, passes)


def test_table_value__refuses_what_is_no_table_or_turn() -> None:
    table = TwoSeatTable.of(Game.deal("first_out num_players=2"))
    for turn in (0.0, True, "0", None):
        with pytest.raises(ValueError, match="turn must be 0 or 1, not"):
            table.value(0, turn)  # type: ignore[arg-type]
    for mask in ("9♦", 1.0, None):
        with pytest.raises(ValueError, match="table_mask must be a bitboard"):
            table.value(mask, 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no position of this deal's table"):
        table.value(table.rules.deck.mask, 0)  # both hands empty


FOREIGN = {
    "deck_52": "cards outside the deck of 36",
    "nine_each": "hand sizes",
}


@pytest.mark.parametrize("seats", [2, 3])
@pytest.mark.parametrize("preset", FOREIGN)
def test_errors__records_of_other_rules_are_refused_everywhere(preset: str, seats: int) -> None:
    rules, game = Rules.of("first_out", num_players=seats), random_moment(Rules.of(preset, num_players=seats), 3)
    states = np.concatenate([Game.deal(rules).states, game.states])
    many: list[Any] = [max_n_values, paranoid_values, *([values_many, best_many] if seats == 2 else [])]
    for ask in many:
        with pytest.raises(ValueError, match=f"record 1 .*{FOREIGN[preset]}"):
            ask(states, rules)
    for solve_one in every_solver(seats):
        with pytest.raises(ValueError, match=f"states: record 0 .*{FOREIGN[preset]}"):
            solve_one(Game(rules, game.states))


@pytest.mark.parametrize("seats", [2, 3])
def test_errors__a_view_with_blank_hands_is_refused_everywhere(seats: int) -> None:
    game = random_moment(Rules.of("first_out", num_players=seats), 3)
    record = game.view(game.turn).record
    many: list[Any] = [max_n_values, paranoid_values, *([values_many, best_many] if seats == 2 else [])]
    for ask in many:
        with pytest.raises(ValueError, match="record 0 lacks a hand"):
            ask(record, game.rules)
    for solve_one in every_solver(seats):
        with pytest.raises(ValueError, match="the record of the game lacks a hand"):
            solve_one(Game(game.rules, record))


def every_solver(seats: int) -> list[Any]:
    """What answers for a game."""
    exact: list[Any] = [solve, TwoSeatTable.of] if seats == 2 else []
    return [*exact, max_n, paranoid, lambda game: ceiling(game, 0, "greedy")]


def damaged(game: Game, **changes: Any) -> States:
    """The record of a game with some fields changed."""
    states = game.states.copy()
    for name, value in changes.items():
        states[name] = value
    return states


def test_errors__records_that_contradict_themselves() -> None:
    rules = Rules.of("first_out", num_players=2)
    game = play_random(Game.deal(rules), random.Random(0), 8)
    hands = game.states["hands"].copy()
    twice = hands.copy()
    twice[0, 1] = twice[0, 1] & (twice[0, 1] - np.uint64(1)) | hands[0, 0] & (~hands[0, 0] + np.uint64(1))
    found = {
        "no seat from 0 to 1": damaged(game, dealer=2),
        "or a turn that is no seat": damaged(game, turn=5),
        "after a seat went out": damaged(game, num_out=1),
        "or was excluded": damaged(game, num_excluded=1),
        "lacks a hand": damaged(game, hands=hands[:, ::-1]),
        "other cards on the table": damaged(game, table=game.table_mask & (game.table_mask - 1)),
        "a card in two places": damaged(game, hands=twice),
    }
    for message, states in found.items():
        with pytest.raises(ValueError, match=f"record 0 .*{message}"):
            values_many(states, rules)


def test_values_many__takes_rules_as_text() -> None:
    states = Game.deal("first_out num_players=2").states
    for ask in (values_many, best_many, max_n_values, paranoid_values):
        np.testing.assert_array_equal(
            ask(states, "first_out num_players=2"), ask(states, Rules.of("first_out", num_players=2))
        )


def test_max_n__is_exact_where_two_seats_have_no_table() -> None:
    """The bank goes to the seat with fewer passes: what one gains the other loses, so all values agree."""
    rules = Rules.of("bank", num_players=2, passes_count=True, cards_per_seat=9, opening="left_of_dealer")
    for seed in range(5):
        game = Game.deal(rules, seed)
        each, floor = max_n(game), paranoid(game)
        assert each.values == pytest.approx(floor.values)
        assert sum(each.payoffs) == pytest.approx(0)


def test_solutions__have_a_hash_by_value() -> None:
    game = Game.deal("first_out num_players=2")
    for solve_one in (solve, max_n, paranoid):
        found = solve_one(game)
        assert {found: 1}[pickle.loads(pickle.dumps(found))] == 1


def test_errors__records_that_cannot_be_read() -> None:
    rules = Rules.of(num_players=2)
    game = Game.deal(rules)
    for ask in (values_many, best_many):
        with pytest.raises(ValueError, match="record 0 has 4 seats, the rules have 2"):
            ask(Game.deal("first_out").states, rules)
        with pytest.raises(ValueError, match="record 0 lacks a hand"):
            ask(game.view(game.turn).record, rules)
        with pytest.raises(ValueError, match="STATE_DTYPE"):
            ask(np.zeros(3), rules)
        with pytest.raises(ValueError, match="made for other rules"):
            ask(game.states, rules, workspace(Rules.of(rules, payoff="cards")))
