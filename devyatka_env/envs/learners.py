"""`LearnerBatch`: deals side by side, one learner's seat in each, the opponents inside.

What the environments for learners that take batches share; they only translate it into their API
(`devyatka_env.envs.vector`, `devyatka_env.envs.sb3`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots import Bot, BotSpec, make_opponents
from devyatka_env.bots.rollout import OUTSIDE, play_on
from devyatka_env.engine import STATE_DTYPE, States, rules_record
from devyatka_env.engine.bitboards import random_card
from devyatka_env.engine.calls import legal_actions
from devyatka_env.engine.compiling import kernel
from devyatka_env.engine.turn import ILLEGAL, step
from devyatka_env.games import Deals
from devyatka_env.rules import Rules
from devyatka_env.rules.numbers import check_seed
from devyatka_env.views import observation
from devyatka_env.views.observation import Int8Array

Index = NDArray[np.int64]
Words = NDArray[np.uint64]


class Episodes(NamedTuple):
    """The deals that ended in a step; their games have been dealt anew since.

    Attributes:
        games: ``int64 [K]``, game numbers, ascending.
        observations: the last moment as the learner sees it: ``observation int8 [K, D]`` and
            ``action_mask int8 [K, C + 1]`` (PASS alone).
        seats: ``int64 [K]``, the learner's seat in the deal that ended.
        decisions: ``int64 [K]``, the learner's actions in that deal.
    """

    games: Index
    observations: dict[str, Int8Array]
    seats: Index
    decisions: Index


@kernel
def _find_refused(states: States, rules: States, actions: Index, out: NDArray[np.bool_]) -> int:
    """Mark the games that refuse their action, and count them; a deal that is over refuses none."""
    probe = np.empty(1, STATE_DTYPE)
    refused = 0
    for i in range(len(states)):
        s, action = states[i], actions[i]
        out[i] = False
        if s.turn < 0 or (0 <= action < rules[0].num_cards and (s.legal >> np.uint64(action)) & np.uint64(1)):
            continue
        probe[0] = s
        out[i] = step(probe[0], rules[0], action) == ILLEGAL
        refused += out[i]
    return refused


@kernel
def _replace(states: States, rules: States, which: Index, words: Words, actions: Index) -> None:
    """Put a uniformly random legal action in the place of those of the games ``which``."""
    for k in range(len(which)):
        legal = states[which[k]].legal
        actions[which[k]] = random_card(legal, words[k]) if legal else np.int64(rules[0].num_cards)


@kernel
def _step_running(states: States, rules: States, actions: Index) -> None:
    for i in range(len(states)):
        if states[i].turn >= 0:
            step(states[i], rules[0], actions[i])


@kernel
def _observe(
    states: States, rules: States, which: Index, seats: Index, out: Int8Array, size: int, masks: Int8Array
) -> None:
    num_actions = np.int64(rules[0].num_cards) + 1
    for k in range(len(which)):
        i = which[k]
        observation.encode_seat(states[i], rules[0], seats[i], out, k * size)
        observation.write_action_mask(states[i], rules[0], seats[i], masks, k * num_actions)


class LearnerBatch:
    """``num_games`` deals side by side, in each of them a seat whose actions come from outside.

    An episode is one deal; of a match (``deals`` > 1) too, its dealer moving as in the match. Game ``i`` plays deals
    ``i``, ``i + num_games``, ... of the seed. A rotating learner moves on by one seat each time, counted from the
    dealer's, so that every place at the table is visited alike. With ``skip_forced`` a deal may leave the learner no
    choice: it is over before its first action, PASS alone is legal, and that step (whatever the action) brings the
    reward.

    Args:
        rules: a preset name or a `Rules`.
        num_games: games, `B` below.
        opponents: what plays the other seats: one bot for all, or a list of one each, clockwise from the learner.
        seed: seed of the deals and of the draws of `set_pool`.
        first_deal: deal index of game 0, for a run that continues another.
        seat: the learner's seat, or ``rotate``.
        skip_forced: play the learner's turns with one legal action inside.

    Attributes:
        games: the deals; their records hold all hands.
        seats: ``int64 [B]``, the learner's seat in each game.
        moves: cards laid by all seats of the finished deals.

    Raises:
        RulesError: rules that cannot be played.
        ValueError: numbers that cannot be, or a bad opponent.
    """

    def __init__(
        self,
        rules: Rules | str,
        num_games: int,
        opponents: BotSpec | Sequence[BotSpec] = "greedy",
        seed: int = 0,
        first_deal: int = 0,
        *,
        seat: int | str = "rotate",
        skip_forced: bool = True,
    ) -> None:
        self.rules = Rules.of(rules)
        if isinstance(num_games, bool) or not isinstance(num_games, int | np.integer) or num_games < 1:
            raise ValueError(f"the number of games must be a whole number from 1, not {num_games!r}")
        self.num_games = int(num_games)
        self.skip_forced = skip_forced
        self.moves = 0
        self._fixed_seat = check_seat(seat, self.rules.num_players)
        self._first_deal = check_seed(first_deal, "first_deal")
        if self._first_deal >= 2**62:  # deal numbers are added up in 64 bits
            raise ValueError(f"first_deal must be below 2**62, not {first_deal}")
        self._numbers = np.arange(self.num_games)
        self._r = rules_record(self.rules)
        self._size = observation.observation_layout(self.rules.deck.num_cards).size
        self._refused = np.zeros(self.num_games, np.bool_)
        self.seats = np.zeros(self.num_games, np.int64)
        self._seating = np.full((self.num_games, self.rules.num_players), OUTSIDE)
        self._decisions = np.zeros(self.num_games, np.int64)
        self._started = False
        self._weights: NDArray[np.float64] | None = None
        self._deal_from(check_seed(seed))
        self.set_opponents(opponents)

    def __len__(self) -> int:
        return self.num_games

    @property
    def next_deal(self) -> int:
        """A deal index beyond all that have been dealt."""
        return int(self.games.indices.max()) + 1

    # --- who plays ---

    def set_opponents(self, opponents: BotSpec | Sequence[BotSpec]) -> None:
        """Seat fixed opponents: one bot for all seats, or one each, clockwise from the learner.

        Raises:
            ValueError: a bad bot, one that does not play these rules, or a list of another length; the old ones stay.
        """
        bots = make_opponents(opponents, self.rules.num_players - 1)
        self._take_bots(bots, None)

    def set_pool(self, bots: Sequence[Bot], weights: Sequence[float]) -> None:
        """Draw the bot of every opponent's seat of every deal from ``bots``, with probabilities ``weights``.

        Deals in play continue with newly drawn opponents.

        Raises:
            ValueError: weights that are not as many as bots, or do not add up to 1, or a bot that does not play these
                rules; the old opponents stay.
        """
        if len(bots) != len(weights) or min(weights, default=-1) < 0 or not np.isclose(sum(weights), 1):
            raise ValueError(f"{len(bots)} bots need as many weights that add up to 1, not {list(weights)}")
        self._take_bots(list(bots), np.array(weights))

    def _take_bots(self, bots: list[Bot], weights: NDArray[np.float64] | None) -> None:
        for bot in bots:
            bot.check_rules(self.rules)
        self._bots, self._weights = bots, weights
        self._seat(self._numbers)

    def _seat(self, which: Index) -> None:
        """Give every seat of the games ``which`` its player: a number in the bots, or `OUTSIDE`."""
        n = self.rules.num_players
        if self._weights is None:
            lineup = np.array([OUTSIDE, *range(n - 1)])
            self._seating[which] = lineup[(np.arange(n)[None, :] - self.seats[which, None]) % n]
        else:
            self._seating[which] = self._rng.choice(len(self._bots), size=(len(which), n), p=self._weights)
            self._seating[which, self.seats[which]] = OUTSIDE

    # --- the course of play ---

    def _deal_from(self, seed: int) -> None:
        self.games = Deals(self.rules, self._first_deal + self._numbers, seed)
        self._rng = np.random.default_rng([seed, self._first_deal])

    def reset(self, seed: int | None = None) -> None:
        """Deal every game its first deal again, of another ``seed`` if given, and play on to the learner's first turn.

        Raises:
            ValueError: a bad seed.
            BotError: an opponent failed.
        """
        self._started = False
        if seed is not None:
            self._deal_from(check_seed(seed))
        else:
            self.games.deal(self._numbers, self._first_deal + self._numbers)
        self._start(self._numbers)
        self._started = True

    def deal_next(self) -> None:
        """Break off every game and deal it its next deal.

        Raises:
            BotError: an opponent failed.
        """
        self._started = False
        self.games.deal(self._numbers, self.games.indices + np.uint64(self.num_games))
        self._start(self._numbers)
        self._started = True

    def _start(self, which: Index) -> None:
        """Give the learner its seat in the freshly dealt games ``which``, and play on to its first turn."""
        if self._fixed_seat is None:
            dealers = self.games.states["dealer"][which].astype(np.int64)
            rounds = (self.games.indices[which].astype(np.int64) - self._first_deal - which) // self.num_games
            self.seats[which] = (dealers + 1 + self._first_deal + which + rounds) % self.rules.num_players
        else:
            self.seats[which] = self._fixed_seat
        self._seat(which)
        self._decisions[which] = 0
        self._play_on(which)

    def _play_on(self, which: Index) -> None:
        """Play the games ``which`` to the learner's next turn, or to the end of the deal."""
        play_on(self.games, self._bots, self._seating, which, skip_forced=self.skip_forced)

    def check_actions(self, actions: Any) -> Index:
        """Actions as ``int64 [B]``.

        Raises:
            ValueError: not one whole number a game.
        """
        given = np.asarray(actions)
        if given.shape != (self.num_games,) or not np.issubdtype(given.dtype, np.integer):
            raise ValueError(f"actions must be {self.num_games} whole numbers, not {given.dtype} {given.shape}")
        return given.astype(np.int64)

    def replace_illegal(self, actions: Index, rng: np.random.Generator) -> Index:
        """Replace in ``actions`` every illegal one by a uniformly random legal one; returns the games ``int64 [K]``."""
        self._check_started()
        if not _find_refused(self.games.states, self._r, actions, self._refused):
            return self._numbers[:0]
        which = np.flatnonzero(self._refused)
        words = rng.integers(0, 2**64, size=len(which), dtype=np.uint64)
        _replace(self.games.states, self._r, which, words, actions)
        return which

    def step(self, actions: Any) -> tuple[NDArray[np.float64], Episodes | None]:
        """Take the learner's actions ``[B]``, play on to its next turns, and deal finished games anew.

        Returns:
            The learner's rewards ``float64 [B]``: its payoffs where a deal ended, whoever ended it, else 0; and the
            deals that ended, if any.

        Raises:
            ValueError: not one whole number a game, or an illegal action (it names the game); no game has changed.
            BotError: an opponent failed; `reset` before the next step.
            RuntimeError: `reset` was not called.
        """
        self._check_started()
        chosen = self.check_actions(actions)
        if _find_refused(self.games.states, self._r, chosen, self._refused):
            raise self._illegal(chosen)
        self._started = False
        running = np.flatnonzero(self.games.turns >= 0)
        _step_running(self.games.states, self._r, chosen)
        self._decisions += 1
        self._play_on(running)
        rewards = np.zeros(self.num_games)
        over = np.flatnonzero(self.games.turns < 0)
        episodes = self._finish(over, rewards) if len(over) else None
        self._started = True
        return rewards, episodes

    def _check_started(self) -> None:
        if not self._started:
            raise RuntimeError("call reset() before step(): no games are running, or an opponent failed in them")

    def _illegal(self, actions: Index) -> ValueError:
        games, game = self.games, int(self._refused.argmax())
        return ValueError(
            f"illegal action {int(actions[game])} in game {game} (deal {int(games.indices[game])} of seed"
            f" {games.seed}, seat {int(games.turns[game])} to move);"
            f" legal: {legal_actions(games.states[game], self.rules)}"
        )

    def _finish(self, over: Index, rewards: NDArray[np.float64]) -> Episodes:
        """Pay the finished games ``over`` and deal their next ones."""
        games, seats = self.games, self.seats[over]
        rewards[over] = games.payoffs(over)[np.arange(len(over)), seats]
        episodes = Episodes(over, self.observe(over), seats, self._decisions[over])
        self.moves += int(games.states["num_played"][over].sum())
        games.deal(over, games.indices[over] + np.uint64(self.num_games))
        self._start(over)
        return episodes

    # --- the moment ---

    def observe(self, which: Index | None = None) -> dict[str, Int8Array]:
        """What the learner sees in the games ``which`` (all of them by default), in arrays of the caller's own.

        ``observation int8 [K, D]`` and ``action_mask int8 [K, C + 1]``; PASS alone is legal where the deal is over.
        """
        which = self._numbers if which is None else which
        out = np.empty((len(which), self._size), np.int8)
        masks = np.empty((len(which), self.rules.pass_action + 1), np.int8)
        flat, flat_masks = out.reshape(-1), masks.reshape(-1)
        _observe(self.games.states, self._r, which, self.seats, flat, self._size, flat_masks)
        return {"observation": out, "action_mask": masks}

    def action_masks(self) -> NDArray[np.bool_]:
        """The learner's legal actions in every game, ``bool [B, C + 1]``."""
        return self.observe()["action_mask"].astype(np.bool_)


def check_seat(seat: object, num_players: int) -> int | None:
    """A learner's fixed seat, or ``None`` for ``rotate``.

    Raises:
        ValueError: neither.
    """
    if isinstance(seat, str) and seat == "rotate":
        return None
    if not isinstance(seat, int | np.integer) or isinstance(seat, bool) or not 0 <= seat < num_players:
        raise ValueError(f"seat must be 0 to {num_players - 1} or 'rotate', not {seat!r}")
    return int(seat)
