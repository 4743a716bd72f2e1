"""Ratings: the fit against another library, against truth, its intervals; matches; sums by blocks of deals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import choix
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import check_grad

from devyatka_env.evaluation.tournaments.ratings import (
    MAX_BLOCKS,
    POINTS,
    Pair,
    Places,
    _Likelihood,
    before,
    best_of,
    deals_needed,
    fit,
    place_chances,
)

Floats = NDArray[np.float64]
ABILITIES = np.array([0.9, 0.2, -0.4, -0.7])


def orders(abilities: Floats, num_players: int, deals: int, seed: int) -> dict[tuple[int, int], NDArray[np.int64]]:
    """Rankings ``[D, rotation, n]`` of every pairing, as numbers of players; place 1 first.

    Every hand brings luck of its own to whoever holds it: Gumbel noise, so each game is Plackett-Luce, but those of one
    deal, in any rotation and pairing, go together.
    """
    luck = np.random.default_rng(seed).gumbel(size=(deals, 1, num_players))
    found = {}
    for a, b in itertools.permutations(range(len(abilities)), 2):
        seated = np.full((num_players, num_players), b)
        np.fill_diagonal(seated, a)
        ranking = np.argsort(-(luck + abilities[seated]), 2)
        found[a, b] = np.take_along_axis(np.broadcast_to(seated, ranking.shape), ranking, 2)
    return found


def pairs_of(rankings: dict[tuple[int, int], NDArray[np.int64]]) -> list[Pair]:
    pairs = []
    for (a, b), ranking in rankings.items():
        places = Places(ranking.shape[2])
        places.add(0, (ranking == a).mean(1))
        pairs.append(Pair(a, b, places))
    return pairs


# --- the fit ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_players", [2, 4])
def test_fit__agrees_with_choix_on_the_same_rankings(num_players: int) -> None:
    rankings = orders(ABILITIES[:3], num_players, 80, seed=1)
    games = [list(map(int, game)) for one in rankings.values() for deal in one for game in deal]
    whole = fit(pairs_of(rankings), 3).abilities
    assert whole == pytest.approx(choix.ilsr_rankings(3, games), abs=1e-4)
    wins = fit(pairs_of(rankings), 3, wins_alone=True).abilities
    assert wins == pytest.approx(choix.ilsr_top1(3, [(game[0], game[1:]) for game in games]), abs=1e-4)
    assert np.abs(whole - wins).max() > (0.01 if num_players > 2 else -1)


@pytest.mark.parametrize("wins_alone", [False, True])
@pytest.mark.parametrize("num_players", [2, 3, 6])
def test_fit__finds_true_abilities(num_players: int, wins_alone: bool) -> None:
    truth = ABILITIES - ABILITIES.mean()
    found = fit(pairs_of(orders(ABILITIES, num_players, 4000, seed=2)), 4, wins_alone=wins_alone)
    errors = np.sqrt(np.diag(found.covariance))
    assert (np.abs(found.abilities - truth) < 4 * errors).all()  # 4 standard errors: 1 seed in 4,000 fails
    assert (errors < 0.05).all()
    assert found.rating(0).mean == pytest.approx(POINTS * found.abilities[0])
    assert found.difference(0, 3).mean == pytest.approx(POINTS * (found.abilities[0] - found.abilities[3]))


def test_fit__has_exact_derivatives() -> None:
    pairs = pairs_of(orders(ABILITIES, 4, 50, seed=3))
    for wins_alone in (False, True):
        likelihood = _Likelihood(pairs, 4, wins_alone)
        assert check_grad(likelihood.loss, likelihood.gradient, ABILITIES) < 1e-6
        steps = 1e-6 * np.eye(4)
        numeric = [(likelihood.gradient(ABILITIES + h) - likelihood.gradient(ABILITIES - h)) / 2e-6 for h in steps]
        assert likelihood.hessian(ABILITIES) == pytest.approx(np.array(numeric), abs=1e-7)


@pytest.mark.parametrize("wins_alone", [False, True])
def test_fit__intervals_hold_the_truth_in_95_of_100(wins_alone: bool) -> None:
    """Of one draw of 400 tournaments the share is within 0.033 of 0.95 (three standard errors).

    Over 1,500 tournaments it is 94.5 to 95.9 %. The middle player's rating is the hard one: nearly all of its luck
    cancels, so few deals decide, and at 150 deals its interval holds the truth in 92 to 94 % (of 3,000).
    """
    truth, repeats, inside = ABILITIES[:3] - ABILITIES[:3].mean(), 400, np.zeros(3)
    for seed in range(repeats):
        found = fit(pairs_of(orders(ABILITIES[:3], 3, 600, seed)), 3, wins_alone=wins_alone)
        ratings = [found.rating(0), found.rating(1), found.difference(0, 2)]
        for k, (one, true) in enumerate(zip(ratings, (truth[0], truth[1], truth[0] - truth[2]), strict=True)):
            inside[k] += one.low <= POINTS * true <= one.high
    assert (np.abs(inside / repeats - 0.95) < 0.033).all(), inside / repeats


def test_fit__equal_players_of_the_same_luck_are_equal_for_sure() -> None:
    found = fit(pairs_of(orders(np.array([0.5, 0.0, 0.0]), 3, 200, seed=5)), 3)
    same, better = found.difference(1, 2), found.difference(0, 1)
    assert same.mean == 0
    assert same.half_width == pytest.approx(0, abs=1e-4)
    assert same.p_value == 1
    assert better.half_width > 1


def test_fit__unequal_numbers_of_deals_and_unplayed_pairings() -> None:
    rankings = orders(ABILITIES, 3, 3000, seed=6)
    short = {pair: ranking[: 3000 if 3 not in pair else 700] for pair, ranking in rankings.items()}
    del short[3, 0]
    pairs = [*pairs_of(short), Pair(3, 0, Places(3))]
    found = fit(pairs, 4)
    errors = np.sqrt(np.diag(found.covariance))
    assert (np.abs(found.abilities - ABILITIES + ABILITIES.mean()) < 4 * errors).all()
    assert found.count == 3000


def test_fit__who_is_never_beaten_has_no_bound() -> None:
    pairs = pairs_of(orders(np.array([0.3, 0.0]), 3, 300, seed=7))
    for other in (0, 1):
        for a, b, place in ((2, other, 0), (other, 2, 2)):
            places = Places(3)
            places.add(0, np.tile(np.eye(3)[place], (300, 1)))
            pairs.append(Pair(a, b, places))
    found = fit(pairs, 3)
    assert found.groups[0] == found.groups[1] != found.groups[2]
    assert math.isinf(found.rating(0).half_width)
    assert math.isinf(found.difference(2, 0).half_width)
    assert 0 < found.difference(0, 1).half_width < 50
    assert np.isfinite(found.abilities).all()
    assert found.abilities.argmax() == 2


@pytest.mark.parametrize(("pairs", "entrants"), [([], 2), ([Pair(0, 1, Places(4))], 2)])
def test_fit__nothing_played_is_refused(pairs: Sequence[Pair], entrants: int) -> None:
    with pytest.raises(ValueError, match="a deal between them"):
        fit(pairs, entrants)


# --- chances ---------------------------------------------------------------------------------------------------------


def test_place_chances__are_those_of_all_orders_one_by_one() -> None:
    weights = np.exp([0.7, 0.0, 0.0, 0.0])
    expected = np.zeros(4)
    for order in itertools.permutations(range(4)):
        left = np.cumsum(weights[list(order)][::-1])[::-1]
        expected[order.index(0)] += np.prod(weights[list(order)] / left)
    assert place_chances(0.7, 4) == pytest.approx(expected)


@pytest.mark.parametrize("chance", [0.5, 0.53, 0.9, 1.0])
@pytest.mark.parametrize("deals", [1, 3, 11, 101])
def test_best_of__is_the_binomial_sum(chance: float, deals: int) -> None:
    terms = [math.comb(deals, k) * chance**k * (1 - chance) ** (deals - k) for k in range(deals // 2 + 1, deals + 1)]
    assert best_of(chance, deals) == pytest.approx(sum(terms))


@pytest.mark.parametrize("chance", [0.52, 0.6, 0.94, 0.96])
def test_deals_needed__is_the_shortest_match(chance: float) -> None:
    deals = int(deals_needed(chance))
    assert deals % 2 == 1
    assert best_of(chance, deals) >= 0.95
    assert deals == 1 or best_of(chance, deals - 2) < 0.95


def test_deals_needed__is_endless_for_equals() -> None:
    assert deals_needed(0.5) == deals_needed(0.3) == math.inf


def test_before__400_points_are_ten_to_one() -> None:
    assert before(400) == pytest.approx(10 / 11)
    assert before(-400) == pytest.approx(1 / 11)
    assert (before(0), before(math.inf), before(-math.inf)) == (0.5, 1, 0)


# --- sums by blocks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("deals", [1, MAX_BLOCKS, MAX_BLOCKS + 1, 5000])
def test_places__are_the_same_in_any_chunks(deals: int) -> None:
    rng = np.random.default_rng(8)
    shares = np.eye(4)[rng.integers(0, 4, deals)]
    whole, parts = Places(4), Places(4)
    whole.add(0, shares)
    cuts = sorted({0, deals, *rng.integers(0, deals, 10).tolist()})
    for first, last in itertools.pairwise(cuts):
        before_it = parts.copy()
        count = before_it.count
        parts.add(first, shares[first:last])
        assert before_it.count == count
    assert parts.block == whole.block
    assert np.array_equal(parts.sums, whole.sums)
    assert np.array_equal(parts.sums.sum(0), shares.sum(0))
    assert len(parts.sums) <= MAX_BLOCKS
    assert parts.count == deals
    assert len(parts.sums) == -(-deals // parts.block) > min(deals, MAX_BLOCKS) / 2.01
    assert np.array_equal(Places.from_json(parts.to_json()).sums, parts.sums)
    assert np.array_equal(parts.by_blocks(4 * parts.block)[0], shares[: 4 * parts.block].sum(0))
