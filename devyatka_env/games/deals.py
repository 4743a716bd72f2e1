"""`Deals`: given deals in one array of engine records, any of which can be advanced at a time.

For the arena, for self-play tables and for environments with opponents inside; `devyatka_env.games.batch` is an endless
stream of games. Game ``i`` plays the very deal that ``Game.deal(rules, seed, indices[i])`` gives. Every method takes
``which``, an ``int64 [K]`` array of game numbers, and works on those games alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine import STATE_DTYPE, States, rules_record
from devyatka_env.engine.bitboards import lowest
from devyatka_env.engine.calls import legal_actions
from devyatka_env.engine.compiling import kernel
from devyatka_env.engine.deal import deal_index, deal_keyed, dealer_of
from devyatka_env.engine.knowledge import blank
from devyatka_env.engine.payoffs import write_payoffs
from devyatka_env.engine.randomness import Key, decision_word
from devyatka_env.engine.seeds import Secret, Seed, check_source, deal_key, word_key
from devyatka_env.engine.turn import ILLEGAL, step
from devyatka_env.rules import MAX_PLAYERS, Rules
from devyatka_env.views import observation

Index = NDArray[np.int64]
Words = NDArray[np.uint64]


@kernel
def _deal_many(states: States, which: Index, rules: States, seed: np.uint64, indices: Words) -> None:
    r = rules[0]
    for i in which:
        deal_index(states[i], r, np.int64(r.num_players), seed, indices[i])


@kernel
def _deal_many_keyed(states: States, which: Index, rules: States, key: Key, indices: Words) -> None:
    r = rules[0]
    n = np.int64(r.num_players)
    for i in which:
        deal_keyed(states[i], r, n, dealer_of(r, n, indices[i]), key, indices[i])


@kernel
def _first_illegal(states: States, which: Index, rules: States, actions: Index) -> int:
    """The first position in ``which`` whose game stands there twice or refuses its action; -1 when all are fine."""
    probe = np.empty(1, STATE_DTYPE)
    seen = np.zeros(len(states), np.bool_)
    for k in range(len(which)):
        if seen[which[k]]:
            return k
        seen[which[k]] = True
        s = states[which[k]]
        action = actions[k]
        if s.turn >= 0 and 0 <= action < rules[0].num_cards and (s.legal >> np.uint64(action)) & np.uint64(1):
            continue
        probe[0] = s
        if step(probe[0], rules[0], action) == ILLEGAL:
            return k
    return -1


@kernel
def _step_many(states: States, which: Index, rules: States, actions: Index) -> None:
    for k in range(len(which)):
        step(states[which[k]], rules[0], actions[k])


@kernel
def _play_forced(states: States, which: Index, rules: States) -> None:
    for i in which:
        s = states[i]
        while s.turn >= 0 and s.legal & (s.legal - np.uint64(1)) == np.uint64(0):
            action = np.int64(lowest(s.legal) if s.legal else rules[0].num_cards)
            step(s, rules[0], action)


@kernel
def blank_movers(states: States, which: Index, out: States) -> None:
    """Blank each of the games ``which`` for its mover, into ``out``."""
    for k in range(len(which)):
        s = states[which[k]]
        blank(s, np.int64(s.turn), out[k])


@kernel
def _decision_words(states: States, which: Index, key: Key, indices: Words, out: Words) -> None:
    for k in range(len(which)):
        s = states[which[k]]
        out[k] = decision_word(key, indices[which[k]], np.int64(s.turn), np.int64(s.num_played))


@kernel
def _payoffs_many(states: States, which: Index, rules: States, out: NDArray[np.float64]) -> None:
    for k in range(len(which)):
        write_payoffs(states[which[k]], rules[0], out[k])


class Deals:
    """Deals of one rule set, side by side.

    Attributes:
        rules: the rule set.
        seed: the seed of every deal, or a `Secret` in its place.
        word_key: ``uint64 [2]``, the key of the bots' words.
        indices: ``uint64 [B]``, the deal index of each game.
        states: ``[B]`` records of `records.STATE_DTYPE`.
    """

    def __init__(self, rules: Rules | str, indices: NDArray[np.integer], seed: Seed = 0) -> None:
        self.rules = rules = Rules.of(rules)
        self.seed = check_source(seed)
        self.word_key = word_key(self.seed)
        self.indices = deal_indices(indices)
        self.states = np.zeros(len(self.indices), STATE_DTYPE)
        self._r = rules_record(rules)
        self.all = np.arange(len(self.indices))
        self.deal(self.all)

    def __len__(self) -> int:
        return len(self.states)

    def deal(self, which: Index, indices: NDArray[np.integer] | None = None) -> None:
        """Deal the games ``which`` afresh, with new deal ``indices [K]`` if given."""
        self._check(which)
        if indices is not None:
            fresh = deal_indices(indices)
            if fresh.shape != which.shape:
                raise ValueError(f"{len(which)} games need as many deal indices, not {len(fresh)}")
            self.indices[which] = fresh
        if isinstance(self.seed, Secret):
            _deal_many_keyed(self.states, which, self._r, deal_key(self.seed), self.indices)
        else:
            _deal_many(self.states, which, self._r, np.uint64(self.seed), self.indices)

    def _check(self, which: Index) -> None:
        """Refuse numbers that are no game: the kernels would read and write beside the array."""
        if not isinstance(which, np.ndarray) or which.ndim != 1 or which.dtype.kind not in "iu":
            shown = f"{which.dtype} {which.shape}" if isinstance(which, np.ndarray) else repr(which)[:80]
            raise ValueError(f"`which` must be an array int64 [K] of game numbers, not {shown}")
        if len(which) and not 0 <= int(which.min()) <= int(which.max()) < len(self.states):
            raise ValueError(f"`which` must hold game numbers 0 to {len(self.states) - 1}, not {which}")

    @property
    def turns(self) -> NDArray[np.int8]:
        """``int8 [B]``: the seat to move in each game, -1 where the deal is over."""
        turns: NDArray[np.int8] = self.states["turn"]
        return turns

    def step(self, which: Index, actions: NDArray[np.integer]) -> None:
        """Take ``actions [K]`` for the seats to move in the games ``which``.

        Raises:
            ValueError: not one action a game, or an illegal action (it names the game); no game has changed.
        """
        self._check(which)
        actions = np.asarray(actions)
        if not np.issubdtype(actions.dtype, np.integer):
            raise ValueError(f"actions must be whole numbers, not {actions.dtype}")
        actions = actions.astype(np.int64)
        if actions.shape != which.shape:
            raise ValueError(f"{len(which)} games need actions of shape {which.shape}, not {actions.shape}")
        bad = int(_first_illegal(self.states, which, self._r, actions))
        if bad >= 0:
            game = int(which[bad])
            if game in which[:bad]:
                raise ValueError(f"game {game} stands twice in `which`; a step is one action a game")
            legal = legal_actions(self.states[game], self.rules)
            raise ValueError(
                f"illegal action {int(actions[bad])} in game {game} (deal {int(self.indices[game])} of seed"
                f" {self.seed}, seat {int(self.turns[game])} to move); legal: {legal}"
            )
        _step_many(self.states, which, self._r, actions)

    def play_forced(self, which: Index) -> None:
        """Advance the games over every turn that has one legal action."""
        self._check(which)
        _play_forced(self.states, which, self._r)

    def views(self, which: Index) -> States:
        """View records ``[K]`` of the seats to move: what each mover may know, the rest blanked."""
        self._check(which)
        out = np.empty(len(which), STATE_DTYPE)
        blank_movers(self.states, which, out)
        return out

    def decision_words(self, which: Index) -> Words:
        """A random word ``uint64 [K]`` for each mover's decision (`randomness.decision_word`)."""
        self._check(which)
        out = np.empty(len(which), np.uint64)
        _decision_words(self.states, which, self.word_key, self.indices, out)
        return out

    def payoffs(self, which: Index) -> NDArray[np.float64]:
        """Payoffs ``[K, 6]`` by seat of the finished games ``which``; seats that do not exist get 0.

        Raises:
            ValueError: a game that is not over.
        """
        self._check(which)
        on = which[self.turns[which] >= 0]
        if len(on):
            raise ValueError(f"game {int(on[0])} is not over: it has no payoffs yet")
        out = np.empty((len(which), MAX_PLAYERS))
        _payoffs_many(self.states, which, self._r, out)
        return out

    def observations(
        self, which: Index, seats: Index | None = None
    ) -> tuple[observation.Int8Array, observation.Int8Array]:
        """Observations ``int8 [K, D]`` and action masks ``int8 [K, C + 1]`` of ``seats [K]``, or of the movers.

        Raises:
            ValueError: seats that do not exist, or not one a game.
        """
        self._check(which)
        n = self.rules.num_players
        if seats is not None:
            is_array = isinstance(seats, np.ndarray) and seats.dtype.kind in "iu" and seats.shape == which.shape
            if not is_array or not ((seats >= 0) & (seats < n)).all():
                raise ValueError(f"{len(which)} games need as many seats, 0 to {n - 1}, not {seats!r}")
            seats = seats.astype(np.int64, copy=False)
        num_cards = self.rules.deck.num_cards
        out = np.empty((len(which), observation.observation_layout(num_cards).size), np.int8)
        masks = np.empty((len(which), num_cards + 1), np.int8)
        if seats is None:
            observation.encode_movers(self.states[which], self._r, out, masks)
        else:
            observation.encode_seats(self.states[which], self._r, seats, out, masks)
        return out, masks


def deal_indices(indices: NDArray[np.integer]) -> Words:
    """Deal indices as ``uint64``.

    Raises:
        ValueError: not whole numbers from 0.
    """
    indices = np.asarray(indices)
    if not np.issubdtype(indices.dtype, np.integer) or (len(indices) and int(indices.min()) < 0):
        raise ValueError(f"deal indices must be whole numbers from 0, not {indices}")
    return indices.astype(np.uint64)
