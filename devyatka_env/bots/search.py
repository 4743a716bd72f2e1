"""Bots that search: `pimc` over the hands that the others can hold, and `oracle`, which sees them and so cheats.

Both are exact at two seats (`devyatka_env.solver`). With more seats they play on with a scripted bot in every seat, now
and then a card by chance: a *playout*.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from devyatka_env import engine
from devyatka_env.belief import random_word, sample_worlds
from devyatka_env.bots.base import Bot
from devyatka_env.bots.best_response import best_ends
from devyatka_env.bots.parameters import SEPARATOR, check_whole
from devyatka_env.bots.scripted import SCRIPTED, GreedyBot, scripted_choice
from devyatka_env.deals import Deals
from devyatka_env.records import (
    MAX_CARDS,
    STATE_DTYPE,
    States,
    call,
    count,
    kernel,
    lowest,
    mix,
    next_word,
    random_card,
    rules_record,
)
from devyatka_env.rules import MAX_PLAYERS, Rules
from devyatka_env.solver import Workspace, workspace
from devyatka_env.solver.lattice import is_solved
from devyatka_env.solver.lookup import ready, value_after
from devyatka_env.solver.solution import check_states
from devyatka_env.view import PlayerView

Actions = NDArray[np.int64]
Words = NDArray[np.uint64]

# Share of the turns of a playout that are played by chance: it stands for all the ways others may play.
CHANCE = 0.1
# Share of an opponent's choices that a model of it takes for chance.
NOISE = 0.1
# Worlds a decision. Beyond some hundred the choice hardly changes.
WORLDS = 200
MAX_WORLDS = 100_000  # 300 bytes each; means are exact to some 0.003 then
# Consistent deals from which `reader` draws one of its worlds.
CANDIDATES_A_WORLD = 10
MAX_CANDIDATES = CANDIDATES_A_WORLD * MAX_WORLDS

_ZERO, _ONE = np.uint64(0), np.uint64(1)
# Columns of the sums over worlds, by card: the exact value (two seats), payoff and share of wins of the playouts, and
# the squares of these two.
_VALUE, _PAYOFF, _WIN, _PAYOFF2, _WIN2 = range(5)
_PRODUCTS = 5  # from here on, by other card: this payoff times that of the other card in the same playout
_COLUMNS = _PRODUCTS + MAX_CARDS


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
        engine.step(s, r, card)
    return word


@kernel
def _weigh(
    worlds: States, r: Any, work: Workspace, is_exact: bool, playouts: int, code: int, word: np.uint64, sums: Any
) -> None:
    """Add up what each legal card of the seat on turn brings in each world (``sums [C, _COLUMNS]``)."""
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
                sums[card, _VALUE] += value_after(worlds[w], r, work, _ONE << np.uint64(card))
            state = start  # the same chances for every card
            for k in range(playouts):
                one[0] = worlds[w]
                s = one[0]
                engine.step(s, r, card)
                state = _play_out(s, r, code, state)
                engine.payoffs(s, r, payoffs)
                first = 0
                for other in range(s.num_players):
                    first += s.places[other] == 1
                win = 1.0 / first if s.places[seat] == 1 else 0.0
                sums[card, _PAYOFF] += payoffs[seat]
                sums[card, _WIN] += win
                sums[card, _PAYOFF2] += payoffs[seat] ** 2
                sums[card, _WIN2] += win**2
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
                sums[card, _PRODUCTS + other] += brought[card, k] * brought[other, k]


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
    engine.begin_at(replay, 0, rules, hands, np.int64(world.num_players), np.int64(world.dealer))
    s = replay[0]
    likelihood = 1.0
    for k in range(world.num_played):
        card = np.int64(world.log[k])
        while s.turn >= 0 and s.legal == _ZERO:  # explicit passes
            engine.step(s, r, np.int64(r.num_cards))
        if s.turn < 0:  # a record that cannot be has no course to judge
            return likelihood
        choices = count(s.legal)
        if choices > 1 and s.turn != viewer:
            as_model = np.int64(scripted_choice(model, s, r, _ZERO)) == card
            likelihood *= NOISE / choices + (1.0 - NOISE if as_model else 0.0)
        engine.step(s, r, card)
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
        lead = sums[card, _VALUE] - sums[best, _VALUE] if is_exact else 0.0
        if lead > 1e-9 or (lead > -1e-9 and sums[card, _PAYOFF] > sums[best, _PAYOFF]):
            best = card
    return best


@kernel
def _search_views(
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
def _search_states(
    states: States, rules: States, work: Workspace, playouts: int, code: int, words: Words, actions: Actions
) -> None:
    """Choose exactly for every two-seat record with both hands in it."""
    r = rules[0]
    sums = np.empty((MAX_CARDS, _COLUMNS))
    for i in range(len(states)):
        s = states[i]
        actions[i] = np.int64(lowest(s.legal) if s.legal else r.num_cards)
        if count(s.legal) > 1:
            sums[:] = 0.0
            _weigh(states[i : i + 1], r, work, True, playouts, code, mix(words[i]), sums)
            actions[i] = _best_card(s.legal, True, sums)


@dataclass(frozen=True)
class CardEstimate:
    """What a card brings on average over sampled worlds and playouts.

    Attributes:
        payoff: mean payoff of the playouts.
        payoff_error: its standard error.
        win: mean share of place 1.
        win_error: its standard error.
        behind: mean payoff less that of the card that the bot lays, playout by playout; 0 for that card itself.
        behind_error: its standard error.
        value: mean exact value at two seats (`devyatka_env.solver.solve`); ``None`` where there is none.
    """

    payoff: float
    payoff_error: float
    win: float
    win_error: float
    behind: float
    behind_error: float
    value: float | None


def _deals_all_cards(rules: Rules) -> bool:
    return rules.cards_per_seat is None or rules.cards_per_seat * rules.num_players == rules.deck.num_cards


class _SearchBot(Bot):
    """What the searching bots share: their playouts, and their memory for exact values.

    Attributes:
        playout: name of the scripted bot that plays on.
    """

    def __init__(self, playout: str = GreedyBot.name, parameter: str = "playout") -> None:
        names = [bot.name for bot in SCRIPTED]
        if playout not in names:
            raise ValueError(f"{parameter} must be one of {', '.join(names)}, not {playout!r}")
        self.playout = playout
        self._code = names.index(playout)
        self._works: dict[str, Workspace] = {}
        self._unsolved = workspace(Rules.of("first_out", num_players=2, num_suits=2, ranks="89T"))

    def _work(self, rules: Rules) -> tuple[Workspace, bool]:
        """Memory for exact values, and whether these rules have them."""
        if not is_solved(rules):
            return self._unsolved, False
        if rules.fingerprint not in self._works:
            self._works[rules.fingerprint] = workspace(rules)
        return self._works[rules.fingerprint], True

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        """Choose for a single view."""
        return int(self.act_batch(view.record, view.rules, np.array([random_word(rng)]))[0])


class PimcBot(_SearchBot):
    """Lays the card best on average over deals that can be.

    Perfect-information Monte Carlo search (Ginsberg 2001; Long et al. 2010): consistent deals are drawn uniformly
    (`devyatka_env.belief`), each legal card is laid in each of them, and valued: exactly at two seats, by a playout
    with more. At two seats with the whole pack dealt there is but one deal, and the choice is perfect; among equal
    cards it takes the one of the best playouts, so it sets traps in a lost deal.

    Args:
        worlds: deals sampled a decision, 1 to `MAX_WORLDS`; an attribute, too.
        playout: the scripted bot that plays on; an attribute, too.
    """

    name = "pimc"

    def __init__(self, worlds: int = WORLDS, playout: str = GreedyBot.name) -> None:
        super().__init__(playout)
        self.worlds = check_whole("worlds", worlds, 1, MAX_WORLDS)

    @property
    def candidates(self) -> int:
        """Deals from which the worlds are drawn by weight; 0: each deal is drawn for itself."""
        return 0

    def with_worlds(self, worlds: int) -> Self:
        """The same bot with another number of worlds, which its name tells.

        Raises:
            ValueError: no number that this bot takes.
        """
        other = copy.copy(self)
        other.worlds = check_whole("worlds", worlds, 1, MAX_WORLDS)
        other.name = f"{self.name}{SEPARATOR}worlds={worlds}"
        return other

    def act_batch(self, views: States, rules: Rules, words: Words) -> Actions:
        """Choose for every view record.

        Raises:
            ValueError: a view that no deal agrees with.
        """
        return self._search(views, rules, words)[0]

    def _search(self, views: States, rules: Rules, words: Words) -> tuple[Actions, NDArray[np.float64]]:
        work, is_exact = self._work(rules)
        alone = is_exact and _deals_all_cards(rules)  # one deal agrees; all worlds are playouts of it
        num_worlds, playouts = (1, self.worlds) if alone else (self.worlds, 1)
        actions = np.empty(len(views), np.int64)
        sums = np.zeros((MAX_CARDS, _COLUMNS))
        candidates = 0 if alone else self.candidates
        shape = (is_exact, num_worlds, candidates, playouts, self._code)
        bad = call(_search_views, views, rules_record(rules), work, *shape, words, actions, sums)
        if bad >= 0:
            raise ValueError(f"no deal agrees with view {bad}: {views[bad]}")
        return actions, sums

    def evaluate_cards(self, view: PlayerView, rng: np.random.Generator) -> dict[int, CardEstimate]:
        """What each legal card of a view brings, by card id; `act` with an equal ``rng`` lays the best of these.

        Args:
            view: of the seat on turn, which has a choice.
            rng: the randomness, as `act` takes it.

        Raises:
            ValueError: no view, or no generator; the seat is not on turn, or has no choice; or no deal agrees with the
                view.
        """
        if not isinstance(view, PlayerView):
            raise ValueError(f"view must be a PlayerView (game.view(seat)), not {view!r}")
        if view.turn != view.seat:
            turn = "the deal is over" if view.is_over else f"seat {view.turn} is"
            raise ValueError(f"seat {view.seat} is not on turn, {turn}: {view!r}")
        if view.legal_mask.bit_count() < 2:
            raise ValueError(f"seat {view.seat} has no choice to search: {view!r}")
        actions, sums = self._search(view.record, view.rules, np.array([random_word(rng)]))
        _, is_exact = self._work(view.rules)
        n = self.worlds
        in_worlds = 1 if is_exact and _deals_all_cards(view.rules) else n
        laid, found = int(actions[0]), {}
        for card in view.legal_actions():
            value, payoff, win, payoff2, win2 = (sums[card, :_PRODUCTS] / n).tolist()
            behind = payoff - float(sums[laid, _PAYOFF]) / n
            squares = sums[card, _PAYOFF2] + sums[laid, _PAYOFF2] - 2 * sums[card, _PRODUCTS + laid]
            found[card] = CardEstimate(
                payoff=payoff,
                payoff_error=(max(payoff2 - payoff**2, 0) / n) ** 0.5,
                win=win,
                win_error=(max(win2 - win**2, 0) / n) ** 0.5,
                behind=behind,
                behind_error=(max(float(squares) / n - behind**2, 0) / n) ** 0.5,
                value=value * n / in_worlds if is_exact else None,
            )
        return found


class ReaderBot(PimcBot):
    """Pimc that weighs deals by what the others laid.

    Of ``candidates`` consistent deals those are drawn in which the others' choices so far are likely ones of the model,
    a scripted bot (the deal is played again in each); the same bot plays on. It assumes that the others do play about
    so; a choice in ten may be by chance. Two seats know everything, and there it plays as `PimcBot`.

    Args:
        worlds: deals drawn a decision.
        candidates: deals they are drawn from, ``worlds`` or more; ``None`` for ten times as many.
        model: the scripted bot that the others are taken for; one that uses no randomness.
    """

    name = "reader"

    def __init__(self, worlds: int = WORLDS, candidates: int | None = None, model: str = GreedyBot.name) -> None:
        _SearchBot.__init__(self, model, "model")
        self.worlds = check_whole("worlds", worlds, 1, MAX_WORLDS)
        if not SCRIPTED[self._code].deterministic:
            raise ValueError(f"model must be a bot that uses no randomness, not {model!r}")
        self._told = None if candidates is None else check_whole("candidates", candidates, 1, MAX_CANDIDATES)
        self._check_candidates()

    @property
    def candidates(self) -> int:
        """Deals from which the worlds are drawn by weight."""
        return CANDIDATES_A_WORLD * self.worlds if self._told is None else self._told

    def with_worlds(self, worlds: int) -> Self:
        """As of `PimcBot`; ``candidates`` follow unless they were told."""
        other = super().with_worlds(worlds)
        other._check_candidates()
        return other

    def _check_candidates(self) -> None:
        if self.candidates < self.worlds:
            raise ValueError(f"candidates must be at least worlds ({self.worlds}), not {self.candidates}")


class OracleBot(_SearchBot):
    """Cheats. Perfect at two seats, best response to greedy.

    With more seats it plays the exact best response to `greedy` in every other seat (`devyatka_env.bots.ceiling`):
    nothing wins more often against that field. Under rules of two seats that are not solved it does the same.

    Args:
        worlds: playouts a decision at two seats, to choose among equal cards.
    """

    name = "oracle"
    sees_all_hands = True

    def __init__(self, worlds: int = 50) -> None:
        super().__init__()
        self._playouts = check_whole("worlds", worlds, 1, MAX_WORLDS)
        self._greedy = GreedyBot()

    def act_batch(self, views: States, rules: Rules, words: Words) -> Actions:
        """Choose for every record; all hands are in them.

        Raises:
            ValueError: one is a view with hands blanked, or not of these rules.
        """
        try:
            check_states(views, rules)
        except ValueError as error:
            raise ValueError(f"oracle needs all hands: {error}") from error
        work, is_exact = self._work(rules)
        if not is_exact:
            return self._respond(views, rules)
        actions = np.empty(len(views), np.int64)
        call(_search_states, views, rules_record(rules), work, self._playouts, self._code, words, actions)
        return actions

    def _respond(self, states: States, rules: Rules) -> Actions:
        """The next card of the best end against `greedy`; PASS for a stuck seat."""
        deals = Deals(rules, np.zeros(len(states), np.int64))
        deals.states[:] = states
        seats = states["turn"].astype(np.int64)
        ends = best_ends(deals, seats, [self._greedy] * (rules.num_players - 1))
        laid = ends.records["log"][np.arange(len(states)), np.minimum(states["num_played"], MAX_CARDS - 1)]
        return np.where(states["legal"] == 0, rules.pass_action, laid).astype(np.int64)


__all__ = ["CHANCE", "MAX_WORLDS", "NOISE", "WORLDS", "CardEstimate", "OracleBot", "PimcBot", "ReaderBot"]
