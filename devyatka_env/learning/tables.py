"""Deals side by side in which any seat may be the learner's: where all-seats self-play gets its decisions.

In every game one decision is pending at all times: of the learner, or of an opponent that is a network. Scripted
opponents and turns with one legal action are played inside, in compiled code; a finished deal is paid and dealt anew.
So a round of training is one forward pass of each network over all games that wait for it, whatever the number of
seats and the rules of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots import Bot, PolicyBot
from devyatka_env.bots.rollout import OUTSIDE, play_on
from devyatka_env.engine import rules_record
from devyatka_env.games import Deals
from devyatka_env.rules import MAX_PLAYERS, Rules
from devyatka_env.views import observation
from devyatka_env.views.observation import Int8Array

# Players of a seat: the learner, else 1 + the number of an opponent in the line-up.
LEARNER = 0
# Deals in a row without a decision after which a rule set counts as one that has none.
MAX_FORCED = 1000

Index = NDArray[np.int64]


class Finished(NamedTuple):
    """The deals that ended in a round; their games have been dealt anew since.

    Attributes:
        games: ``int64 [K]``, game numbers; a game stands here twice when a deal ended before it had any decision.
        players: ``int64 [K, 6]``, who sat where: `LEARNER`, or 1 + the number of an opponent; -1 beyond the seats.
        payoffs: ``float64 [K, 6]`` by seat.
        wins: ``float64 [K, 6]``, each seat's share of the first place.
    """

    games: Index
    players: Index
    payoffs: NDArray[np.float64]
    wins: NDArray[np.float64]


class Lineup(NamedTuple):
    """Who may sit beside the learner.

    Attributes:
        bots: the opponents; networks (`PolicyBot`) are asked through `Tables.pending`, others play inside.
        weights: the probability of each to be drawn for a deal.
        share: share of the deals that have opponents; all seats of the others are the learner's.
        learner_seats: seats of the learner in a deal with opponents; ``None`` draws 1 to n-1.
    """

    bots: Sequence[Bot] = ()
    weights: Sequence[float] = ()
    share: float = 0.0
    learner_seats: int | None = None


class Tables:
    """``num_games`` deals side by side, of one or more rule sets of one deck size.

    Args:
        rules: the rule sets; the games are shared out evenly, in this order.
        num_games: games, `N` below.
        seed: seed of the deals, of the line-ups and of the opponents' words.
        first_deal: deal index of game 0, for a run that continues another. Game ``i`` of a rule set that has ``m``
            games plays deals ``first_deal + i``, ``first_deal + i + m``, ... of the seed.

    Attributes:
        observations: ``int8 [N, D]``, of the seat whose decision is pending in each game.
        action_masks: ``int8 [N, C + 1]``.
        seats: ``int64 [N]``, that seat.
        pending: ``int64 [N]``, who sits there: `LEARNER`, or 1 + the number of an opponent.
        moves: cards laid by all seats of the finished deals.
    """

    def __init__(self, rules: Sequence[Rules], num_games: int, seed: int, first_deal: int = 0) -> None:
        if len({one.deck.num_cards for one in rules}) != 1:
            raise ValueError(f"one network plays decks of one size, not {', '.join(map(str, rules))}")
        if num_games < len(rules):
            raise ValueError(f"{len(rules)} rule sets need at least as many games, not {num_games}")
        self.rules = tuple(rules)
        self.num_games = num_games
        self.moves = 0
        num_cards = rules[0].deck.num_cards
        size = observation.observation_layout(num_cards).size
        self.observations: Int8Array = np.zeros((num_games, size), np.int8)
        self.action_masks: Int8Array = np.zeros((num_games, num_cards + 1), np.int8)
        self.seats = np.zeros(num_games, np.int64)
        self.pending = np.zeros(num_games, np.int64)
        self._players = np.full((num_games, MAX_PLAYERS), -1)
        self._seating = np.full((num_games, MAX_PLAYERS), OUTSIDE)
        self._rng = np.random.default_rng([seed, first_deal])
        self._lineup = Lineup()
        self._weights = np.zeros(0)
        self._inside = np.array([OUTSIDE])
        bounds = np.linspace(0, num_games, len(rules) + 1).round().astype(int)
        self._blocks = [slice(low, high) for low, high in pairwise(bounds)]
        self._deals = [
            Deals(one, first_deal + np.arange(block.stop - block.start), seed)
            for one, block in zip(rules, self._blocks, strict=True)
        ]
        for block, deals in zip(self._blocks, self._deals, strict=True):
            self._seat(block, deals, deals.all)
            self._play_on(block, deals, deals.all)
        self._observe()

    @property
    def next_deal(self) -> int:
        """A deal index beyond all that have been dealt."""
        return max(int(deals.indices.max()) for deals in self._deals) + 1

    def set_lineup(self, lineup: Lineup) -> None:
        """Draw the opponents of new deals from ``lineup``; in deals in play they change at once, place for place.

        Raises:
            ValueError: weights that are not as many as bots or do not add up to 1, a bot that does not play the rules,
                or a network in a place where the last line-up had none, or the reverse.
        """
        bots, weights = lineup.bots, lineup.weights
        if lineup.share > 0 and (len(bots) != len(weights) or not np.isclose(sum(weights), 1)):
            raise ValueError(f"{len(bots)} opponents need as many weights that add up to 1, not {list(weights)}")
        for bot in bots:
            for rules in self.rules:
                bot.check_rules(rules)
        kinds = [is_network(bot) for bot in bots]
        if self._lineup.bots and kinds != [is_network(bot) for bot in self._lineup.bots]:
            raise ValueError(f"a new line-up has networks in the places of the last one's, not {list(bots)}")
        self._lineup = lineup
        self._weights = np.asarray(weights, np.float64)
        self._inside = np.array([OUTSIDE, *(OUTSIDE if network else k for k, network in enumerate(kinds))])

    def network(self, player: int) -> PolicyBot:
        """The network that a number in `pending` above `LEARNER` stands for."""
        bot = self._lineup.bots[player - 1]
        assert isinstance(bot, PolicyBot)
        return bot

    def words(self, games: Index) -> NDArray[np.uint64]:
        """Random words ``uint64 [K]`` for the pending decisions of ``games`` (ascending): those of the deals."""
        return np.concatenate(
            [
                deals.decision_words(games[(games >= block.start) & (games < block.stop)] - block.start)
                for block, deals in zip(self._blocks, self._deals, strict=True)
            ]
        )

    def step(self, actions: Index) -> Finished:
        """Take the pending action of every game (``int64 [N]``), and play on to the next ones.

        Raises:
            ValueError: not one action a game, or an illegal action (it names the game); no game has changed.
            BotError: an opponent failed.
        """
        self._check(actions)
        finished = []
        for block, deals in zip(self._blocks, self._deals, strict=True):
            deals.step(deals.all, actions[block])
            finished += self._play_on(block, deals, deals.all)
        self._observe()
        if not finished:
            nothing = np.zeros((0, MAX_PLAYERS))
            return Finished(np.zeros(0, np.int64), nothing.astype(np.int64), nothing, nothing)
        return Finished(*(np.concatenate(parts) for parts in zip(*finished, strict=True)))

    def _check(self, actions: Index) -> None:
        """Refuse actions before any block has taken its own."""
        if actions.shape != (self.num_games,):
            raise ValueError(f"{self.num_games} games need actions of shape ({self.num_games},), not {actions.shape}")
        legal = (actions >= 0) & (actions < self.action_masks.shape[1])
        legal[legal] = self.action_masks[legal, actions[legal]] == 1
        if not legal.all():
            game = int(legal.argmin())
            allowed = np.flatnonzero(self.action_masks[game]).tolist()
            raise ValueError(f"illegal action {int(actions[game])} in game {game}; legal: {allowed}")

    def _seat(self, block: slice, deals: Deals, which: Index) -> None:
        """Draw who plays the freshly dealt games ``which`` of a block."""
        n = deals.rules.num_players
        lineup, rng = self._lineup, self._rng
        players = np.zeros((len(which), n), np.int64)
        if lineup.share > 0:
            with_opponents = rng.random(len(which)) < lineup.share
            opponent = 1 + rng.choice(len(lineup.bots), size=len(which), p=self._weights)
            if lineup.learner_seats is None:
                own = rng.integers(1, n, size=len(which))
            else:
                own = np.full(len(which), min(lineup.learner_seats, n - 1))
            order = rng.random((len(which), n)).argsort(1).argsort(1)
            players = np.where(with_opponents[:, None] & (order >= own[:, None]), opponent[:, None], LEARNER)
        rows = block.start + which
        self._players[rows, :n] = players
        self._seating[rows, :n] = self._inside[players]

    def _play_on(self, block: slice, deals: Deals, which: Index) -> list[tuple[Any, ...]]:
        """Play the games ``which`` of a block to their next decision; returns the parts of `Finished`."""
        finished: list[tuple[Any, ...]] = []
        seating = self._seating[block]
        for _ in range(MAX_FORCED):
            play_on(deals, self._lineup.bots, seating, which)
            which = which[deals.turns[which] < 0]
            if len(which):
                places = deals.states["places"][which]
                first = (places == 1).astype(np.float64)
                players = self._players[block][which]
                finished.append(
                    (block.start + which, players, deals.payoffs(which), first / first.sum(1, keepdims=True))
                )
                self.moves += int(deals.states["num_played"][which].sum())
                deals.deal(which, deals.indices[which] + np.uint64(len(deals)))
                self._seat(block, deals, which)
            else:
                return finished
        raise ValueError(f"{MAX_FORCED} deals of {deals.rules} in a row had no decision to learn from")

    def _observe(self) -> None:
        for block, deals in zip(self._blocks, self._deals, strict=True):
            self.seats[block] = deals.turns
            record = rules_record(deals.rules)
            observation.encode_movers(deals.states, record, self.observations[block], self.action_masks[block])
        self.pending[:] = np.take_along_axis(self._players, self.seats[:, None], 1)[:, 0]


def is_network(bot: Bot) -> bool:
    """Whether an opponent is asked through `Tables.pending`, many games in one forward pass."""
    return isinstance(bot, PolicyBot)
