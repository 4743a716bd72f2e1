"""`Belief`: exact counts, probabilities and uniform sampling of hidden cards, against enumeration by the referee."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import factorial, prod, sqrt

import numpy as np
import pytest

from devyatka_env.engine import STATE_DTYPE, rules_record
from devyatka_env.engine.calls import stop_at
from devyatka_env.games import Game
from devyatka_env.rules import Rules, to_mask
from devyatka_env.views import Belief, BeliefError, PlayerView
from devyatka_env.views.worlds import sample_worlds_at
from tests.helpers.games import COMBINATIONS, card_ids, choose_rules, fouls, play_random, referee_rules
from tests.helpers.redeal import redeal
from tests.helpers.referee import Referee, RefereeError

FOUL_RATE = 0.08
Deal = tuple[int, ...]  # the hands of the seats and, last, the cards out of play

SMALL = {"ranks": "89TJ", "num_suits": 2, "starter": "9"}  # 8♣ 9♣ 10♣ J♣ 8♦ 9♦ 10♦ J♦


def multinomial(*parts: int) -> int:
    """In how many ways cards can be dealt to hands of these sizes."""
    return factorial(sum(parts)) // prod(map(factorial, parts))


def rooms(view: PlayerView) -> list[int]:
    """Hidden cards by slot."""
    left = [0 if seat == view.seat else cards for seat, cards in enumerate(view.cards_left)]
    return [*left, view.unseen_mask.bit_count() - sum(left)]


# --- enumeration -----------------------------------------------------------------------------------------------------


def splits(cards: list[int], sizes: list[int]) -> Iterator[list[list[int]]]:
    """Every way to deal the cards to hands of these sizes."""
    if not sizes:
        yield []
        return
    for hand in itertools.combinations(cards, sizes[0]):
        for others in splits([card for card in cards if card not in hand], sizes[1:]):
            yield [list(hand), *others]


def public_course(
    game: Game, hands: list[list[int]], told: list[tuple[object, ...]] | None
) -> list[tuple[object, ...]]:
    """What everybody sees when the game's actions are played from ``hands``, move by move, by the referee.

    A foul shows only that it was one: here the seat commits any. Stops where it departs from what was ``told``.
    """
    seen: list[tuple[object, ...]] = []
    true_game = Game.from_hands(game.rules, game.dealt_masks, game.dealer)
    referee = Referee(referee_rules(game.rules), hands, game.dealer)
    for action in [None, *game.actions]:
        if action is not None:
            if action in fouls(true_game):
                legal = referee.legal_actions()
                pass_action = game.rules.pass_action
                referee.play(referee.hands[referee.turn][0] if pass_action in legal else pass_action)
            else:
                referee.play(action)
            true_game.play(action)
        seen.append((referee.turn, *referee.passes, *referee.went_out, *referee.excluded, referee.is_over))
        if told is not None and seen[-1] != told[len(seen) - 1]:
            break
    return seen


def enumerate_deals(game: Game, viewer: int) -> list[Deal]:
    """Every deal from which the game's actions lead to what ``viewer`` sees: hand by hand, replayed by the referee."""
    view = game.view(viewer)
    laid = [card_ids(mask) for mask in view.played_masks]
    told = public_course(game, [card_ids(mask) for mask in game.dealt_masks], None)
    sizes, deals = rooms(view), []
    for hands in splits(card_ids(view.unseen_mask), sizes):
        hands[viewer] = card_ids(view.hand_mask)
        try:
            seen = public_course(game, [hand + own for hand, own in zip(hands, laid, strict=False)], told)
        except RefereeError:
            continue
        if seen == told:
            deals.append(tuple(map(to_mask, hands)))
    return deals


def moment(rules: Rules, seed: int, most: int) -> tuple[Game, int] | None:
    """A random running moment and viewer with at most ``most`` ways to deal the hidden cards, passes left aside."""
    rng = random.Random(seed)
    whole = play_random(Game.deal(rules, seed), rng, foul_rate=FOUL_RATE)
    viewer, game, plies = rng.randrange(rules.num_players), Game.deal(rules, seed), []
    for ply, action in enumerate(whole.actions):
        if multinomial(*rooms(game.view(viewer))) <= most:
            plies.append(ply)
        game.play(action)
    if not plies:
        return None
    game = Game.deal(rules, seed)
    for action in whole.actions[: rng.choice(plies)]:
        game.play(action)
    return game, viewer


def check_against_enumeration(game: Game, viewer: int) -> int:
    """Count, deals, marginals and voids are those of the enumeration; returns the count."""
    expected = enumerate_deals(game, viewer)
    belief = Belief(game.view(viewer))
    assert belief.count == len(expected)
    deals = [tuple(deal) for deal in belief.deals(range(belief.count)).tolist()]
    assert sorted(deals) == sorted(expected)
    holds = np.zeros(belief.marginals.shape)
    for deal in expected:
        for slot, hand in enumerate(deal):
            holds[slot, card_ids(hand)] += 1
    shares = holds / len(expected)
    np.testing.assert_allclose(belief.marginals, shares, rtol=1e-12, atol=0)
    assert ((belief.marginals == 1) == (shares == 1)).all()
    assert belief.void_masks == tuple(to_mask(np.flatnonzero(row == 0).tolist()) for row in holds)
    return len(expected)


# Of two seats only nine_each hides anything; five and more that stop at the first empty hand always hide too much.
ENDGAMES = [
    (preset, seats)
    for preset, seats in COMBINATIONS
    if preset == "nine_each" or 3 <= seats <= (6 if Rules.of(preset).end == "last_holder" else 4)
]


@pytest.mark.parametrize(("preset", "seats"), ENDGAMES)
def test_belief__of_real_endgames_equals_enumeration(preset: str, seats: int) -> None:
    rules, checked, narrowed = Rules.of(preset, num_players=seats), 0, 0
    for seed in itertools.count():
        found = moment(rules, seed, 150)
        if found is not None:
            narrowed += check_against_enumeration(*found) < multinomial(*rooms(found[0].view(found[1])))
            checked += 1
        if checked >= 3 and narrowed:  # passes or the turn told something
            break


def moment_of_any_rules(seed: int, most: int) -> tuple[Game, int]:
    """A `moment` with every rule field drawn: cards out of play, explicit passes, fouls, any opening, mini-decks."""
    rng, found = random.Random(seed), None
    while found is None:
        found = moment(choose_rules(rng.choice), rng.randrange(10**6), most)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_belief__of_any_rules_equals_enumeration(seed: int) -> None:
    check_against_enumeration(*moment_of_any_rules(seed, 100))


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(1, 21))
def test_belief__of_any_rules_equals_enumeration_many_times(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        check_against_enumeration(*moment_of_any_rules(seed, 1000))


# --- examples by hand ------------------------------------------------------------------------------------------------


def test_belief__fresh_opening_view_is_a_multinomial() -> None:
    game = Game.deal("first_out", 1)
    opener = game.turn
    belief = Belief(game.view(opener))
    assert belief.count == multinomial(9, 9, 9)
    other = Belief(game.view((opener + 1) % 4))  # knows who holds the 9♦
    assert other.count == multinomial(8, 9, 9)
    nine = game.rules.opening_card
    assert other.marginals[opener, nine] == 1
    assert other.marginals[opener, nine - 1] == pytest.approx(8 / 26, rel=1e-13)


def test_belief__automatic_passes_say_that_the_seat_on_turn_can_play() -> None:
    rules = Rules.of(num_players=3, **SMALL)
    game = Game.from_hands(rules, ["8♣ 9♣ 9♦", "10♣ J♣ 8♦", "10♦ J♦"]).play("9♦")
    belief = Belief(game.view(0))
    # 10♣ J♣ 8♦ 10♦ J♦ in hands of 3 and 2 cards: 10 ways, but one leaves seat 1 without 8♦ and 10♦.
    assert belief.count == 9
    cards = [rules.deck.card_id(text) for text in ("8♦", "10♦", "J♦", "10♣", "J♣")]
    assert belief.marginals[1, cards] == pytest.approx([6 / 9, 6 / 9, 5 / 9, 5 / 9, 5 / 9], rel=1e-13)
    assert Belief(game.view(1)).count == multinomial(2, 2)  # the seat on turn learns nothing from being on turn


def test_belief__explicit_passes_say_that_somebody_can_play() -> None:
    rules = Rules.of(
        num_players=2, opening="left_of_dealer", cards_per_seat=2, explicit_pass=True, foul="exclude", **SMALL
    )
    # Six hidden cards, two of them in the other hand. It holds a starter, or the deal would have been dealt again.
    blind = Belief(Game.from_hands(rules, ["9♣ J♣", "8♣ 8♦"]).view(1))
    assert blind.count == multinomial(2, 4) - multinomial(2, 2)
    assert blind.marginals[0, rules.opening_card] == pytest.approx(5 / 9, rel=1e-13)
    assert blind.marginals[2, rules.opening_card] == pytest.approx(4 / 9, rel=1e-13)
    # One's own starter explains it as well.
    assert Belief(Game.from_hands(rules, ["8♣ 8♦", "9♣ J♣"]).view(1)).count == multinomial(2, 4)


def test_belief__a_pass_rules_cards_out_and_counting_does_the_rest() -> None:
    rules = Rules.of(num_players=3, **SMALL)
    game = Game.from_hands(rules, ["8♣ 8♦ 9♦", "10♣ J♣ J♦", "9♣ 10♦"]).play("9♦")
    belief = Belief(game.view(0))  # seat 1 was passed over: no 9♣ and no 10♦, so seat 2 holds just these
    assert belief.count == 1
    assert belief.sample(np.random.default_rng(0), 2).tolist() == [[*game.hand_masks, 0]] * 2
    assert belief.void_masks == tuple(rules.deck.mask & ~hand for hand in [*game.hand_masks, 0])


def test_belief__excluded_seat_still_holds_its_cards() -> None:
    rules = Rules.of("winner_and_loser", num_players=3)
    game = Game.deal(rules, 3)
    offender = game.turn
    belief = Belief(game.play(rules.pass_action).view((offender + 1) % 3))  # it hid the 9♦
    assert belief.marginals[offender, rules.opening_card] == 1
    assert belief.marginals[offender].sum() == pytest.approx(12)
    assert Belief(game.view(offender)).marginals[offender].sum() == 12


@pytest.mark.parametrize("preset", ["deck_52", "sevens"])
def test_belief__of_six_seats_and_52_cards(preset: str) -> None:
    game = Game.deal(Rules.of(preset, num_players=6), 5)
    viewer = (game.turn + 1) % 6
    sizes = rooms(game.view(viewer))
    belief = Belief(game.view(viewer))
    sizes[game.turn] -= 1  # the opening card is known
    assert belief.count == multinomial(*sizes) > 2**80
    free = [card for card in range(52) if card != game.rules.opening_card and not game.hand_masks[viewer] >> card & 1]
    shares = np.array(sizes)[:, None] / sum(sizes)
    np.testing.assert_allclose(belief.marginals[:, free], np.repeat(shares, len(free), 1), rtol=1e-13, atol=0)


def test_belief__of_the_largest_table() -> None:
    rules = Rules.of(
        "any_nine", num_players=6, ranks="23456789TJQKA", cards_per_seat=7, payoff="win", explicit_pass=True
    )
    for seed in range(20):
        game = Game.deal(rules, seed)
        viewer = next(seat for seat, hand in enumerate(game.hand_masks) if not hand & game.view(0).fitting_mask)
        # No starter in the own hand: one is with the five other seats, so not all four are among the ten out of play.
        assert Belief(game.view(viewer)).count == multinomial(7, 7, 7, 7, 7, 10) - multinomial(
            7, 7, 7, 7, 7, 6
        )  # of 41 cards, 6 of them out of play besides the starters


# --- properties ------------------------------------------------------------------------------------------------------


def pinned(view: PlayerView, hands: tuple[int, ...]) -> PlayerView:
    """The view of a seat that knows, besides, that each other seat holds nothing but the cards of ``hands``."""
    record = view.record.copy()
    for seat, hand in enumerate(hands):
        if seat != view.seat:
            record["cannot_hold"][0, seat] |= np.uint64(view.rules.deck.mask & ~hand)
    return PlayerView(record, view.rules, view.seat)


def moments(rules: Rules, seed: int) -> Iterator[Game]:
    """Every running moment of a random game."""
    game, rng = Game.deal(rules, seed), random.Random(seed)
    while not game.is_over:
        yield game
        play_random(game, rng, 1, FOUL_RATE)


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_belief__always_holds_the_true_deal_possible(preset: str, seats: int) -> None:
    """10,000 positions and more in all: with every other deal ruled out, exactly one is left."""
    rules, positions = Rules.of(preset, num_players=seats), 0
    for seed in itertools.count():
        for game in moments(rules, seed):
            viewer = positions % seats
            view = game.view(viewer)
            belief = Belief(view)
            assert Belief(pinned(view, game.hand_masks)).count == 1
            for hand, void in zip(game.hand_masks, belief.void_masks, strict=False):
                assert not hand & void
            positions += 1
        if positions >= 11_000 / len(COMBINATIONS):
            break


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_belief__rows_sum_to_the_cards_held_and_columns_to_one(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    for game in moments(rules, 7):
        for viewer in range(seats):
            view = game.view(viewer)
            marginals = Belief(view).marginals
            assert marginals.shape == (seats + 1, rules.deck.num_cards)
            out_of_play = rules.deck.num_cards - sum(map(int.bit_count, game.dealt_masks))
            np.testing.assert_allclose(marginals.sum(1), [*view.cards_left, out_of_play], rtol=1e-12)
            on_table = [view.table_mask >> card & 1 for card in range(rules.deck.num_cards)]
            np.testing.assert_allclose(marginals.sum(0), 1 - np.array(on_table), rtol=1e-12)
            assert card_ids(view.hand_mask) == np.flatnonzero(marginals[viewer]).tolist()
            assert not marginals[viewer].any() or marginals[viewer].max() == 1


@pytest.mark.parametrize(("preset", "seats"), [("deck_52", 6), ("any_nine", 5), ("winner_and_loser", 4)])
def test_marginals__equal_exact_fractions_of_counts(preset: str, seats: int) -> None:
    """Where there are too many deals to enumerate: the deals in which a seat holds a card, counted exactly."""
    for game in itertools.islice(moments(Rules.of(preset, num_players=seats), 11), 6, 30, 8):
        view = game.view((game.turn + 1) % seats)
        belief = Belief(view)
        for card in card_ids(view.unseen_mask)[::5]:
            for seat in range(seats):
                if seat == view.seat or not belief.marginals[seat, card]:
                    continue
                record = view.record.copy()
                record["cannot_hold"][0, np.arange(6) != seat] |= np.uint64(1 << card)
                share = Fraction(Belief(PlayerView(record, view.rules, view.seat)).count, belief.count)
                assert belief.marginals[seat, card] == pytest.approx(float(share), rel=1e-13)


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_belief__does_not_depend_on_how_the_hidden_cards_lie(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    for number, game in enumerate(itertools.islice(moments(rules, 5), 0, None, 3)):
        viewer = number % seats
        other = redeal(game, viewer, random.Random(number))
        # The second one is given all hands and the mover's legal cards: it must not look at them.
        beliefs = [Belief(game.view(viewer)), Belief(PlayerView(other.states, rules, viewer))]
        assert beliefs[0].count == beliefs[1].count
        assert (beliefs[0].marginals == beliefs[1].marginals).all()
        drawn = [belief.sample(np.random.default_rng(number), 5).tolist() for belief in beliefs]
        assert drawn[0] == drawn[1]


# --- sampling --------------------------------------------------------------------------------------------------------


def chi_square_bound(freedom: int) -> float:
    """What a chi-square variable exceeds with probability 1e-4 (Wilson and Hilferty 1931)."""
    part = 2 / (9 * freedom)
    return float(freedom * (1 - part + 3.719 * sqrt(part)) ** 3)


@pytest.mark.parametrize(("preset", "seats"), [("first_out", 3), ("any_nine", 5), ("nine_each", 2), ("deck_52", 6)])
def test_sample__is_uniform_over_the_enumeration(preset: str, seats: int) -> None:
    rules, tested = Rules.of(preset, num_players=seats), 0
    for seed in itertools.count():
        found = moment(rules, seed, 600)
        if found is None:
            continue
        game, viewer = found
        belief = Belief(game.view(viewer))
        if belief.count < 12:
            continue
        deals = enumerate_deals(game, viewer)
        seen = Counter(map(tuple, belief.sample(np.random.default_rng(seed), 20 * len(deals)).tolist()))
        assert set(seen) <= set(deals)
        assert sum((seen[deal] - 20) ** 2 / 20 for deal in deals) < chi_square_bound(len(deals) - 1)
        tested += 1
        if tested == 3:
            break


@pytest.mark.parametrize(("preset", "seats"), [("first_out", 4), ("deck_52", 6)])
def test_sample__holds_cards_as_often_as_the_marginals_say(preset: str, seats: int) -> None:
    """Where there are too many deals to enumerate, more than 2**64 at six seats."""
    n = 20_000
    game = play_random(Game.deal(Rules.of(preset, num_players=seats), 2), random.Random(2), seats)
    belief = Belief(game.view((game.turn + 1) % seats))
    assert (belief.count > 2**64) == (seats == 6)
    drawn = belief.sample(np.random.default_rng(0), n)
    assert len(np.unique(drawn, axis=0)) > n * 0.99
    bits = drawn[:, :, None] >> np.arange(game.rules.deck.num_cards, dtype=np.uint64) & np.uint64(1)
    shares, exact = bits.mean(0), belief.marginals
    assert (shares[(exact == 0) | (exact == 1)] == exact[(exact == 0) | (exact == 1)]).all()
    # At most 300 entries: 5 standard deviations are exceeded by chance in one of 5,000 such tests.
    assert (abs(shares - exact) <= 5 * np.sqrt(exact * (1 - exact) / n)).all()


def test_deals__are_numbered_without_a_gap_beyond_64_bits() -> None:
    game = play_random(Game.deal(Rules.of("deck_52", num_players=6), 2), random.Random(2), 6)
    view = game.view((game.turn + 1) % 6)
    belief = Belief(view)
    numbers = [0, 2**64 - 1, 2**64, 2**64 + 1, belief.count // 2, belief.count - 1]
    deals = {tuple(deal) for deal in belief.deals(numbers).tolist()}
    assert len(deals) == len(numbers)
    for deal in deals:
        assert Belief(pinned(view, deal[:6])).count == 1
        assert sum(deal) == view.unseen_mask | view.hand_mask


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_sample_states__are_games_that_look_the_same_and_go_on(preset: str, seats: int) -> None:
    rules = Rules.of(preset, num_players=seats)
    for number, game in enumerate(itertools.islice(moments(rules, 9), 0, None, 5)):
        view = game.view(number % seats)
        belief = Belief(view)
        worlds = belief.sample_states(np.random.default_rng(number), 3)
        hands = belief.sample(np.random.default_rng(number), 3)
        for i in range(3):
            world = Game(rules, worlds[i : i + 1].copy())
            assert [*world.hand_masks] == hands[i, :seats].tolist()
            assert world.view(view.seat) == view
            assert world.legal_mask == world.hand_masks[world.turn] & view.fitting_mask
            assert world.record["hands"][seats:].tolist() == [0] * (6 - seats)
            assert play_random(world, random.Random(number)).is_over


def test_sample_worlds__is_the_compiled_form_of_sample_states() -> None:
    game = play_random(Game.deal("first_out", 6), random.Random(6), 9)
    rules, word = rules_record(game.rules), np.random.default_rng(4).integers(0, 2**64, dtype=np.uint64)
    worlds = np.zeros(50, STATE_DTYPE)
    assert sample_worlds_at(game.view(2).record, 0, rules, 2, word, worlds)
    assert (worlds == Belief(game.view(2)).sample_states(np.random.default_rng(4), 50)).all()
    impossible = pinned(game.view(2), (0, 0, 0, 0))
    assert not sample_worlds_at(impossible.record, 0, rules, 2, word, worlds)
    wrong = game.view(2).record.copy()
    wrong["cards_left"][0, 1] += 1
    assert not sample_worlds_at(wrong, 0, rules, 2, word, worlds)


def test_sample__is_a_function_of_the_generator_alone() -> None:
    belief = Belief(Game.deal("first_out", 1).view(0))
    first = belief.sample(np.random.default_rng(3), 10)
    assert (first == belief.sample(np.random.default_rng(3), 10)).all()
    assert (first != belief.sample(np.random.default_rng(4), 10))[:, 1:4].all()
    assert belief.sample(np.random.default_rng(3), 0).shape == (0, 5)


# --- refusals --------------------------------------------------------------------------------------------------------


def test_belief__is_a_copy_that_later_changes_of_the_view_do_not_touch() -> None:
    view = Game.deal("first_out", 1).view(0)
    belief = Belief(view)
    before = belief.marginals
    view.record["cards_left"][0] = 0
    assert (Belief(belief.view).marginals == before).all()
    with pytest.raises(ValueError, match="read-only"):
        before[0, 0] = 1


def test_belief__refuses_views_that_cannot_be() -> None:
    game = Game.deal("first_out", 1).play("9♦")
    view = game.view(2)
    view.record["cards_left"][0, 1] += 1
    with pytest.raises(ValueError, match="record: record 0 is of a deal with other hand sizes than those of first_out"):
        Belief(view)
    with pytest.raises(BeliefError, match="cannot lie in any way"):
        Belief(pinned(game.view(2), (0, 0, 0, 0)))
    stop_at(game.states, 0)
    with pytest.raises(BeliefError, match="the deal is over"):
        Belief(game.view(2))
    with pytest.raises(BeliefError, match="the deal is over"):
        Belief(play_random(Game.deal("first_out", 2), random.Random(2)).view(0))


def test_belief__refuses_what_is_no_view() -> None:
    for what in (Game.deal("first_out", 1), "hand 9♦", None):
        with pytest.raises(
            ValueError, match=r"view must be a PlayerView, what one seat knows: game.view\(seat\), not "
        ):
            Belief(what)  # type: ignore[arg-type]


def test_sample__refuses_what_is_no_generator_and_no_number() -> None:
    belief = Belief(Game.deal("first_out", 1).view(0))
    for draw in (belief.sample, belief.sample_states):
        for n in (-1, 2.5, "7", None, True):
            with pytest.raises(ValueError, match=f"n must be a whole number, at least 0, not {n!r}"):
                draw(np.random.default_rng(0), n)  # type: ignore[arg-type]
        for rng in (7, None, np.random):
            with pytest.raises(ValueError, match=r"rng must be a numpy Generator, such as .*, not "):
                draw(rng, 3)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'n'"):
            draw(7)  # type: ignore[call-arg, arg-type]


@pytest.mark.parametrize("number", [-1, multinomial(8, 9, 9)])
def test_deals__refuses_numbers_that_do_not_exist(number: int) -> None:
    game = Game.deal("first_out", 1)
    belief = Belief(game.view((game.turn + 1) % 4))
    with pytest.raises(ValueError, match=f"numbered 0 to {multinomial(8, 9, 9) - 1}, not {number}"):
        belief.deals([0, number])
