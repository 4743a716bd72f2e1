"""Bots that search: `pimc` and `reader` over hands that the others can hold; `oracle` sees them, and so cheats.

Both are exact at two seats (`devyatka_env.solver`). With more seats they play on with a scripted bot in every seat, now
and then a card by chance: a *playout*.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots.base import Bot
from devyatka_env.bots.best_response import best_ends
from devyatka_env.bots.parameters import SEPARATOR
from devyatka_env.bots.playouts import COLUMNS, PAYOFF, PAYOFF2, PRODUCTS, Actions, Words, search_states, search_views
from devyatka_env.bots.scripted import SCRIPTED, GreedyBot
from devyatka_env.engine import States, rules_record
from devyatka_env.engine.checks import check_records, check_views
from devyatka_env.engine.compiling import call
from devyatka_env.engine.records import MAX_CARDS
from devyatka_env.games import Deals
from devyatka_env.rules import Rules
from devyatka_env.rules.numbers import check_whole
from devyatka_env.solver import Workspace, workspace
from devyatka_env.solver.lattice import is_solved
from devyatka_env.solver.solution import check_states
from devyatka_env.views import PlayerView
from devyatka_env.views.belief import random_word

# Worlds a decision. Beyond some hundred the choice hardly changes.
WORLDS = 200
MAX_WORLDS = 100_000  # 300 bytes each; means are exact to some 0.003 then

# Consistent deals from which `reader` draws one of its worlds.
CANDIDATES_A_WORLD = 10
MAX_CANDIDATES = CANDIDATES_A_WORLD * MAX_WORLDS


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
    (`devyatka_env.views.belief`), each legal card is laid in each of them, and valued: exactly at two seats, by a
    playout with more. At two seats with the whole pack dealt there is but one deal, and the choice is perfect; among
    equal cards it takes the one of the best playouts, so it sets traps in a lost deal.

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
            ValueError: a view that cannot be of these rules, or that no deal agrees with; or not a word each.
        """
        return self._search(views, rules, words)[0]

    def _search(self, views: States, rules: Rules, words: Words) -> tuple[Actions, NDArray[np.float64]]:
        check_records(views, rules, "views")  # playouts of what cannot be might never end
        check_views(views, words)
        work, is_exact = self._work(rules)
        alone = is_exact and _deals_all_cards(rules)  # one deal agrees; all worlds are playouts of it
        num_worlds, playouts = (1, self.worlds) if alone else (self.worlds, 1)
        actions = np.empty(len(views), np.int64)
        sums = np.zeros((MAX_CARDS, COLUMNS))
        candidates = 0 if alone else self.candidates
        shape = (is_exact, num_worlds, candidates, playouts, self._code)
        bad = call(search_views, views, rules_record(rules), work, *shape, words, actions, sums)
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
            value, payoff, win, payoff2, win2 = (sums[card, :PRODUCTS] / n).tolist()
            behind = payoff - float(sums[laid, PAYOFF]) / n
            squares = sums[card, PAYOFF2] + sums[laid, PAYOFF2] - 2 * sums[card, PRODUCTS + laid]
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

    With more seats it plays the exact best response to `greedy` in every other seat
    (`devyatka_env.bots.ceiling_values`): nothing wins more often against that field. Under rules of two seats that are
    not solved it does the same.

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
        check_views(views, words)
        work, is_exact = self._work(rules)
        if not is_exact:
            return self._respond(views, rules)
        actions = np.empty(len(views), np.int64)
        call(search_states, views, rules_record(rules), work, self._playouts, self._code, words, actions)
        return actions

    def _respond(self, states: States, rules: Rules) -> Actions:
        """The next card of the best end against `greedy`; PASS for a stuck seat."""
        deals = Deals(rules, np.zeros(len(states), np.int64))
        deals.states[:] = states
        seats = states["turn"].astype(np.int64)
        ends = best_ends(deals, seats, [self._greedy] * (rules.num_players - 1))
        laid = ends.records["log"][np.arange(len(states)), np.minimum(states["num_played"], MAX_CARDS - 1)]
        return np.where(states["legal"] == 0, rules.pass_action, laid).astype(np.int64)
