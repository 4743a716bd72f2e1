"""Open-hands values against a search over the referee: whole trees of mini-decks, endgames of every preset."""

from __future__ import annotations

import copy
import pickle
import random
from itertools import permutations

import numpy as np
import pytest

from devyatka_env.engine import STATE_DTYPE
from devyatka_env.games import Deals, Game
from devyatka_env.rules import Rules, to_mask
from devyatka_env.solver import MaxN, StateLimitError, max_n, max_n_values, paranoid, paranoid_values, solve
from tests.helpers.games import COMBINATIONS, card_ids, choose_rules, play_random, referee_of
from tests.helpers.referee import Referee

every_combination = pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)

# --- the independent search: lists, recursion, no memory -------------------------------------------------------------


def after(referee: Referee, action: int) -> Referee:
    """A copy in which the action has been taken."""
    then = copy.copy(referee)
    then.hands = [list(hand) for hand in referee.hands]
    then.rows = [list(row) for row in referee.rows]
    then.passes, then.went_out = list(referee.passes), list(referee.went_out)
    then.play(action)
    return then


def floor_of(referee: Referee, seat: int) -> float:
    """What ``seat`` gets against all others."""
    if referee.is_over:
        return referee.payoffs()[seat]
    values = [floor_of(after(referee, action), seat) for action in referee.legal_actions()]
    return max(values) if referee.turn == seat else min(values)


def everybody_for_itself(referee: Referee) -> list[float]:
    """The payoffs of max^n; of equal own payoffs those that leave the next seats least, the nearest first."""
    if referee.is_over:
        return referee.payoffs()

    def liking(payoffs: list[float]) -> list[float]:
        own, *others = payoffs[referee.turn :] + payoffs[: referee.turn]
        return [own, *(-payoff for payoff in others)]

    return max((everybody_for_itself(after(referee, action)) for action in referee.legal_actions()), key=liking)


def referee_now(game: Game) -> Referee:
    """A referee at the game's present moment."""
    referee = referee_of(game)
    for action in game.actions:
        referee.play(action)
    return referee


def assert_exact(game: Game) -> None:
    """Every value of every action, for every seat, is that of the independent search; lines lead to it."""
    referee = referee_now(game)
    for seat in range(game.num_players):
        expected = {action: floor_of(after(referee, action), seat) for action in game.legal_actions()}
        floor = paranoid(game, seat)
        assert floor.values == expected, game.position
        assert floor.value == (max if game.turn == seat else min)(expected.values())
        assert floor.best == tuple(action for action in expected if expected[action] == floor.value)
        assert floor.line[0] == floor.best[0]
        assert payoffs_after(game, floor.line)[seat] == floor.value, game.position
    payoffs = {action: tuple(everybody_for_itself(after(referee, action))) for action in game.legal_actions()}
    solution = max_n(game)
    assert solution.payoffs_by_action == payoffs, game.position
    assert solution.payoffs == tuple(everybody_for_itself(referee)), game.position
    assert solution.values == {action: vector[game.turn] for action, vector in payoffs.items()}
    assert solution.value == max(solution.values.values()) == solution.payoffs[game.turn]
    assert solution.line[0] in solution.best
    assert payoffs_after(game, solution.line) == solution.payoffs, game.position


def payoffs_after(game: Game, line: tuple[int, ...]) -> tuple[float, ...]:
    """The payoffs of the finished deal that a line leads to."""
    end = game.clone()
    for action in line:
        end.play(action)
    return end.result().payoffs


def endgame(rules: Rules, seed: int, cards: int) -> Game | None:
    """A random game, stopped when so many cards are left in the hands; ``None`` when it was over before."""
    game = Game.deal(rules, seed)
    rng = random.Random(seed)
    while not game.is_over and sum(game.record["cards_left"].tolist()) > cards:
        play_random(game, rng, 1)
    return None if game.is_over else game


# --- exactness -------------------------------------------------------------------------------------------------------

# Every field that a payoff or the course of a deal hangs on.
MINI = [
    "first_out num_players=3 num_suits=2 ranks=89T",
    "first_out_passes num_players=3 num_suits=2 ranks=89T",
    "one_loser num_players=3 num_suits=2 ranks=89T",
    "winner_and_loser num_players=3 num_suits=2 ranks=89T",
    "any_nine num_players=3 num_suits=2 ranks=89T payoff=place",
    "bank num_players=3 num_suits=2 ranks=89T",
    "bank num_players=3 num_suits=2 ranks=89T end=last_holder ante=0",
    "bank num_players=3 num_suits=2 ranks=89T end=last_holder pass_fee=0",
    "round num_players=3 num_suits=2 ranks=89T payoff=points end=last_holder",
]


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 8])
@pytest.mark.parametrize("text", MINI)
def test_values__of_every_deal_of_a_mini_deck(text: str, step: int) -> None:
    rules = Rules.of(text)
    deals = {tuple(to_mask(order[i : i + 2]) for i in (0, 2, 4)) for order in permutations(range(rules.deck.num_cards))}
    assert len(deals) == 90
    for hands in sorted(deals)[::step]:
        assert_exact(Game.from_hands(rules, hands))


# Deals found by breaking the search on purpose: each has a value that comes out wrong then.
TELLING = {
    "the key leaves out who went out first": [
        ("any_nine num_players=4 num_suits=3 ranks=789TJ", (45, 215)),
        ("any_nine num_players=5 num_suits=3 ranks=89TJQ", (256, 589)),
        ("any_nine num_players=4 num_suits=3 ranks=789TJ payoff=bank pass_fee=0", (254,)),
    ],
    "the key leaves out in which order the others went out": [
        ("any_nine num_players=5 num_suits=3 ranks=89TJQ payoff=place", (224,)),
    ],
    "the key leaves out the passes": [
        ("bank num_players=3 num_suits=3 ranks=89TJ", (90,)),
        ("any_nine num_players=4 num_suits=3 ranks=89TJ payoff=bank", (134, 176)),
    ],
    "the winner of a bank that still grows takes its payoff for settled": [
        ("any_nine num_players=4 num_suits=3 ranks=89TJ payoff=bank", (4, 8)),
        ("any_nine num_players=3 num_suits=3 ranks=89TJ payoff=bank", (5, 13)),
    ],
    # Which seats share a place of a blocked deal hangs on their passes alone: the cards they keep are the same.
    "the bounds of a payoff leave out that the first place may be shared": [
        ("nine_each num_players=3 ranks=89TJ cards_per_seat=4 passes_count=True", (13, 30, 41)),
        ("nine_each num_players=4 ranks=89TJ cards_per_seat=3 passes_count=True", (68, 122)),
    ],
    "the bounds of a payoff leave out that the last place may be shared": [
        ("any_nine num_players=3 ranks=89TJ cards_per_seat=4 payoff=lose passes_count=True", (43, 184)),
    ],
    "a seat that is out takes its payoff for settled though the last place may be shared": [
        ("any_nine num_players=4 ranks=89TJ cards_per_seat=3 payoff=lose passes_count=True", (737,)),
    ],
}


@pytest.mark.parametrize("case", TELLING)
def test_values__are_right_where_they_would_be_wrong_if(case: str) -> None:
    for text, indices in TELLING[case]:
        for index in indices:
            assert_exact(Game.deal(text, 0, index))


@pytest.mark.parametrize("part", range(4))
def test_values__of_endgames_of_any_rules(part: int) -> None:
    exact = 0
    for seed in range(40 * part, 40 * part + 40):
        game = endgame(choose_rules(random.Random(seed).choice), seed, cards=9)
        if game is not None:
            assert_exact(game)
            exact += 1
    assert exact > 20


@every_combination
def test_values__of_endgames_of_every_preset(preset: str, seats: int) -> None:
    games = [endgame(Rules.of(preset, num_players=seats), seed, cards=11) for seed in range(60)]
    games = [game for game in games if game is not None and len(game.legal_actions()) > 1][:2]
    assert games or preset == "nine_each" or seats > 4  # at many seats most deals end with more cards left
    for game in games:
        assert_exact(game)


@pytest.mark.slow
@every_combination
def test_values__of_longer_endgames_of_every_preset(preset: str, seats: int) -> None:
    for seed in range(20):
        game = endgame(Rules.of(preset, num_players=seats), seed, cards=11 if seats == 2 else 13)
        if game is not None:
            assert_exact(game)


# --- what must hold of whole deals -----------------------------------------------------------------------------------


@every_combination
def test_max_n__leaves_no_seat_less_than_its_floor(preset: str, seats: int) -> None:
    # It is an equilibrium: a seat that got less would rather play for its floor. At two seats of a zero-sum payoff it
    # gets no more either.
    rules = Rules.of(preset, num_players=seats)
    small = rules.deck.num_cards == 36
    for seed in range(2 if small else 1):
        game = play_random(Game.deal(rules, seed), random.Random(seed), 0 if small else 12)
        solution = max_n(game)
        floors = [paranoid(game, seat).value for seat in range(seats)]
        assert all(floor <= payoff for floor, payoff in zip(floors, solution.payoffs, strict=True))
        assert payoffs_after(game, solution.line) == solution.payoffs
        if seats == 2 and rules.payoff not in ("cards", "points"):
            assert solution.payoffs == tuple(floors)
            assert solution.values == paranoid(game).values == solve(game).values


def relabelled(game: Game, suits: tuple[int, ...]) -> list[int]:
    """The dealt hands with suit ``i`` renamed to ``suits[i]``."""
    ranks = game.rules.deck.num_ranks
    return [
        to_mask([suits[card // ranks] * ranks + card % ranks for card in card_ids(mask)]) for mask in game.dealt_masks
    ]


@pytest.mark.parametrize("text", ["first_out num_players=4", "one_loser num_players=3", "bank num_players=5"])
def test_values__do_not_depend_on_the_names_of_suits_and_seats(text: str) -> None:
    rules = Rules.of(text)
    n = rules.num_players
    for seed in range(2):
        game = Game.deal(rules, seed)
        solution, floor = max_n(game), paranoid(game, 0).value
        for suits in [(2, 1, 0, 3), (3, 1, 2, 0), (2, 1, 3, 0)]:  # the nine of the second suit opens
            other = Game.from_hands(rules, relabelled(game, suits), game.dealer)
            assert max_n(other).payoffs == solution.payoffs
            assert paranoid(other, 0).value == floor
        turned = Game.from_hands(rules, game.dealt_masks[1:] + game.dealt_masks[:1], (game.dealer - 1) % n)
        assert max_n(turned).payoffs == solution.payoffs[1:] + solution.payoffs[:1]
        assert paranoid(turned, n - 1).value == floor


def test_paranoid__by_default_is_for_the_seat_on_turn() -> None:
    game = Game.deal("first_out", 3)
    assert paranoid(game).seat == game.turn
    assert paranoid(game).values == paranoid(game, game.turn).values


def test_solutions__are_frozen_and_tell_their_cost() -> None:
    game = Game.deal("one_loser", 0)
    for solution in (paranoid(game), max_n(game)):
        assert solution.states > 10
        assert solution.seconds > 0
        with pytest.raises(AttributeError):
            solution.value = 1.0  # type: ignore[misc]


def test_solutions__cannot_be_changed_and_nor_can_their_copies() -> None:
    found = max_n(Game.deal("one_loser", 0))
    for solution in (found, copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert solution == found
        for mapping in (solution.values, solution.payoffs_by_action):
            with pytest.raises(TypeError, match="does not support item assignment"):
                mapping[0] = 0  # type: ignore[index]


# --- many records ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["first_out", "winner_and_loser num_players=3", "bank num_players=5", "nine_each"])
def test_values_of_many__are_those_of_each_game(text: str) -> None:
    rules = Rules.of(text)
    games = [play_random(Game.deal(rules, seed), random.Random(seed), 5 * seed) for seed in range(12)]
    assert any(game.is_over for game in games)
    states = np.concatenate([game.states for game in games])
    for values, solve_one in ((paranoid_values(states, rules), paranoid), (max_n_values(states, rules), max_n)):
        assert values.shape == (12, rules.deck.num_cards + 1)
        for game, row in zip(games, values, strict=True):
            found = {action: row[action] for action in np.flatnonzero(~np.isnan(row)).tolist()}
            assert found == ({} if game.is_over else solve_one(game).values)
    seats = np.arange(12) % rules.num_players
    values = paranoid_values(states, rules, seats)
    for game, seat, row in zip(games, seats.tolist(), values, strict=True):
        if not game.is_over:
            assert all(row[action] == value for action, value in paranoid(game, seat).values.items())


def test_values_of_many__of_no_records() -> None:
    rules = Rules.of("first_out")
    none = np.zeros(0, STATE_DTYPE)
    assert paranoid_values(none, rules).shape == max_n_values(none, rules).shape == (0, 37)


def test_table__grows_without_a_change_of_values() -> None:
    # An opening of this takes some 100,000 positions, the table starts with 4,096 places: six times doubled.
    rules = Rules.of("one_loser", num_players=3)
    states = Deals(rules, np.arange(2)).states
    together = max_n_values(states, rules)
    assert max_n(Game(rules, states[:1])).states > 40_000
    np.testing.assert_array_equal(together[1:], max_n_values(states[1:], rules))


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solve_one", [paranoid, max_n])
def test_solving__a_finished_deal_is_refused(solve_one: object) -> None:
    game = play_random(Game.deal("first_out"), random.Random(0))
    with pytest.raises(ValueError, match="the deal is over"):
        solve_one(game)  # type: ignore[operator]


@pytest.mark.parametrize("solve_one", [paranoid, max_n])
def test_solving__what_is_no_game_is_refused(solve_one: object) -> None:
    for what in ("foo", Game.deal("first_out").view(0), None):
        with pytest.raises(ValueError, match=r"game must be a Game \(from Game.deal, .*, not "):
            solve_one(what)  # type: ignore[operator]


@pytest.mark.parametrize("seat", [-1, 4, 1.5, "1", True])
def test_paranoid__refuses_seats_that_do_not_exist(seat: object) -> None:
    with pytest.raises(ValueError, match="seat must be 0 to 3, not"):
        paranoid(Game.deal("first_out"), seat)  # type: ignore[arg-type]


def test_limit__is_an_error_and_never_a_wrong_value() -> None:
    game = Game.deal("one_loser", 0)
    need = max_n(game).states
    assert isinstance(max_n(game, max_states=2 * need), MaxN)
    for too_few in (1, need // 2, need - 1):
        with pytest.raises(StateLimitError, match=rf"max_states={too_few:,} positions are needed to search one_loser"):
            max_n(game, max_states=too_few)
    with pytest.raises(StateLimitError, match="max_states=100 positions"):
        paranoid(game, max_states=100)
    states = Deals(game.rules, np.arange(3)).states
    with pytest.raises(StateLimitError, match="to search record 2"):
        paranoid_values(states, game.rules, max_states=100)
    for bad in (0, -1, "x", 1e6, None, True):
        for solve_one in (paranoid, max_n):
            with pytest.raises(ValueError, match=f"max_states must be a whole number, at least 1, not {bad!r}"):
                solve_one(game, max_states=bad)  # type: ignore[arg-type]
    for solve_one in (paranoid, max_n):
        with pytest.raises(ValueError, match=r"max_states must be at most 2\*\*63 - 1, not 1000"):
            solve_one(game, max_states=10**30)


def test_values_of_many__refuse_what_they_would_misread() -> None:
    rules = Rules.of("first_out")
    states = Deals(rules, np.arange(3)).states
    with pytest.raises(ValueError, match="STATE_DTYPE"):
        paranoid_values(states["hands"], rules)
    with pytest.raises(ValueError, match="record 0 has 4 seats, the rules have 3"):
        max_n_values(states, Rules.of("first_out", num_players=3))
    for seats in ([0, 1], [0, 1, 4], [-1, 0, 0]):
        with pytest.raises(ValueError, match="3 records need as many seats from 0 to 3"):
            paranoid_values(states, rules, np.array(seats))
