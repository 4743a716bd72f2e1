"""Playouts and weighed worlds, compiled: the searches of `devyatka_env.bots.search`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots.scripted import scripted_choice
from devyatka_env.engine import STATE_DTYPE, States
from devyatka_env.engine.bitboards import count, lowest, random_card
from devyatka_env.engine.calls import begin_at
from devyatka_env.engine.compiling import kernel
from devyatka_env.engine.payoffs import write_payoffs
from devyatka_env.engine.randomness import mix, next_word
from devyatka_env.engine.records import MAX_CARDS
from devyatka_env.engine.turn import step
from devyatka_env.rules import MAX_PLAYERS
from devyatka_env.solver import Workspace
from devyatka_env.solver.lookup import ready, value_after
from devyatka_env.views.worlds import sample_worlds

Actions = NDArray[np.int64]
Words = NDArray[np.uint64]

# Share of the turns of a playout that are played by chance: it stands for all the ways others may play.
CHANCE = 0.1

# Share of an opponent's choices that a model of it takes for chance.
NOISE = 0.1

_ZERO, _ONE = np.uint64(0), np.uint64(1)

# Columns of the sums over worlds, by card: the exact value (two seats), payoff and share of wins of the playouts, and
# the squares of these two.
VALUE, PAYOFF, WIN, PAYOFF2, WIN2 = range(5)
PRODUCTS = 5  # from here on, by other card: this payoff times that of the other card in the same playout
COLUMNS = PRODUCTS + MAX_CARDS


@kernel
def _play_out(s: Any, r: Any, code: int, word: np.uint64) -> np.uint64:
    """Play a record to its end, scripted bot ``code`` in every seat; returns the advanced random state."""
    while s.turn >= 0:
        card = np.int64(lowest(s.legal) if s.legal else r.num_cards)
        if count(s.legal) > 1:
            word = next_word(word)
            x = mix(word)
            if np.float64(x >> np.uint64(11)) * 2.0**-53 < CHANCE:
                card = np.int64(random_card(s.legal, mix(x)))
            else:  # these bots look at nothing but what their seat may see
                card = np.int64(scripted_choice(code, s, r, mix(x)))
        step(s, r, card)
    return word


@kernel
def _weigh(
    worlds: States, r: Any, work: Workspace, is_exact: bool, playouts: int, code: int, word: np.uint64, sums: Any
) -> None:
    """Add up what each legal card of the seat on turn brings in each world (``sums [C, COLUMNS]``)."""
    one = np.empty(1, STATE_DTYPE)
    brought = np.empty((MAX_CARDS, playouts))
    payoffs = np.empty(MAX_PLAYERS)
    seat = np.int64(worlds[0].turn)
    for w in range(len(worlds)):
        if is_exact:
            ready(worlds[w], r, work)
        start = next_word(word + np.uint64(w) * np.uint64(0xD1342543DE82EF95))
        legal = worlds[w].legal
        while legal:
            card = np.int64(lowest(legal))
            legal &= legal - _ONE
            if is_exact:
                sums[card, VALUE] += value_after(worlds[w], r, work, _ONE << np.uint64(card))
            state = start  # the same chances for every card
            for k in range(playouts):
                one[0] = worlds[w]
                s = one[0]
                step(s, r, card)
                state = _play_out(s, r, code, state)
                write_payoffs(s, r, payoffs)
                first = 0
                for other in range(s.num_players):
                    first += s.places[other] == 1
                win = 1.0 / first if s.places[seat] == 1 else 0.0
                sums[card, PAYOFF] += payoffs[seat]
                sums[card, WIN] += win
                sums[card, PAYOFF2] += payoffs[seat] ** 2
                sums[card, WIN2] += win**2
                brought[card, k] = payoffs[seat]
        _add_products(worlds[w].legal, brought, sums)


@kernel
def _add_products(legal: np.uint64, brought: Any, sums: Any) -> None:
    """Add up the products of payoffs ``[C, playouts]``, from which the errors of differences follow."""
    left = legal
    while left:
        card = np.int64(lowest(left))
        left &= left - _ONE
        others = legal
        while others:
            other = np.int64(lowest(others))
            others &= others - _ONE
            for k in range(brought.shape[1]):
                sums[card, PRODUCTS + other] += brought[card, k] * brought[other, k]


@kernel
def _likelihood(world: Any, rules: States, viewer: int, model: int, replay: States) -> float:
    """How likely the other seats' choices so far are in a world, if they play as scripted bot ``model``.

    The deal is played again from its start; a choice that the bot would not have made has the probability of a chance
    card (`NOISE`). A deal with an exclusion is not played again: the foul is no part of the record.
    """
    if world.num_excluded > 0:
        return 1.0
    r = rules[0]
    hands = np.empty(MAX_PLAYERS, np.uint64)
    for seat in range(world.num_players):
        hands[seat] = world.hands[seat] | world.played[seat]
    begin_at(replay, 0, rules, hands, np.int64(world.num_players), np.int64(world.dealer))
    s = replay[0]
    likelihood = 1.0
    for k in range(world.num_played):
        card = np.int64(world.log[k])
        while s.turn >= 0 and s.legal == _ZERO:  # explicit passes
            step(s, r, np.int64(r.num_cards))
        if s.turn < 0:  # a record that cannot be has no course to judge
            return likelihood
        choices = count(s.legal)
        if choices > 1 and s.turn != viewer:
            as_model = np.int64(scripted_choice(model, s, r, _ZERO)) == card
            likelihood *= NOISE / choices + (1.0 - NOISE if as_model else 0.0)
        step(s, r, card)
    return likelihood


@kernel
def _resample(
    pool: States, rules: States, viewer: int, model: int, replay: States, word: np.uint64, worlds: States
) -> None:
    """Draw ``worlds`` from ``pool`` by likelihood, evenly spread over its sum (systematic resampling)."""
    upto = np.empty(len(pool))
    total = 0.0
    for k in range(len(pool)):
        total += _likelihood(pool[k], rules, viewer, model, replay)
        upto[k] = total
    start = np.float64(mix(word) >> np.uint64(11)) * 2.0**-53
    k = 0
    for w in range(len(worlds)):
        while k < len(pool) - 1 and upto[k] < (w + start) * total / len(worlds):
            k += 1
        worlds[w] = pool[k]


@kernel
def _best_card(legal: np.uint64, is_exact: bool, sums: Any) -> int:
    """The card with the highest value, of equal ones that of the best playouts, of equal ones the lowest."""
    best = lowest(legal)
    while legal:
        card = lowest(legal)
        legal &= legal - _ONE
        lead = sums[card, VALUE] - sums[best, VALUE] if is_exact else 0.0
        if lead > 1e-9 or (lead > -1e-9 and sums[card, PAYOFF] > sums[best, PAYOFF]):
            best = card
    return best


@kernel
def search_views(
    views: States,
    rules: States,
    work: Workspace,
    is_exact: bool,
    num_worlds: int,
    num_candidates: int,
    playouts: int,
    code: int,
    words: Words,
    actions: Actions,
    sums: Any,
) -> int:
    """Choose for every view record (``sums`` are the last one's); returns the first that no deal agrees with, or -1."""
    r = rules[0]
    worlds = np.empty(num_worlds, STATE_DTYPE)
    pool = np.empty(num_candidates, STATE_DTYPE)
    replay = np.empty(1, STATE_DTYPE)
    for i in range(len(views)):
        s = views[i]
        actions[i] = np.int64(lowest(s.legal) if s.legal else r.num_cards)
        if count(s.legal) > 1:
            viewer = np.int64(s.turn)
            if not sample_worlds(s, r, viewer, words[i], pool if num_candidates else worlds):
                return i
            if num_candidates:
                _resample(pool, rules, viewer, code, replay, mix(words[i] + _ONE), worlds)
            sums[:] = 0.0
            _weigh(worlds, r, work, is_exact, playouts, code, mix(words[i]), sums)
            actions[i] = _best_card(s.legal, is_exact, sums)
    return -1


@kernel
def search_states(
    states: States, rules: States, work: Workspace, playouts: int, code: int, words: Words, actions: Actions
) -> None:
    """Choose exactly for every two-seat record with both hands in it."""
    r = rules[0]
    sums = np.empty((MAX_CARDS, COLUMNS))
    for i in range(len(states)):
        s = states[i]
        actions[i] = np.int64(lowest(s.legal) if s.legal else r.num_cards)
        if count(s.legal) > 1:
            sums[:] = 0.0
            _weigh(states[i : i + 1], r, work, True, playouts, code, mix(words[i]), sums)
            actions[i] = _best_card(s.legal, True, sums)
