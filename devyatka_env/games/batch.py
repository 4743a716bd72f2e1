"""`BatchGame`: thousands of games that never end, in one array; a finished deal is dealt anew within the step.

For training, search and statistics. Game ``i`` of ``B`` plays deals ``i``, ``i + B``, ``i + 2B``, ... of the seed, the
very deals of ``Game.deal(rules, seed, index)`` and of every environment. Results do not depend on the batch size that a
deal happens to be played in, on the number of threads, or on the platform.

In a batch of mixed sizes ``rules.deals`` holds for all: a table of three in a batch of the four-seat preset ``round``
has four deals a match, not three.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine import STATE_DTYPE, States, rules_record
from devyatka_env.engine.calls import legal_actions
from devyatka_env.games.batch_kernels import (
    blank_all,
    deal_all,
    encode_states,
    first_illegal,
    forced_run,
    forced_threads,
    masks_run,
    masks_threads,
    observe_run,
    observe_threads,
    sample_run,
    sample_threads,
    step_run,
    step_threads,
    warm_up,
)
from devyatka_env.rules import MAX_PLAYERS, Rules
from devyatka_env.rules.numbers import check_seed, is_whole
from devyatka_env.views import observation
from devyatka_env.views.observation import Int8Array

Index = NDArray[np.int64]


class Finished(NamedTuple):
    """The deals that ended in a step; each game has been dealt its next deal since.

    Attributes:
        games: ``int64 [K]``, game numbers, ascending.
        deals: ``uint64 [K]``, the index of the deal that ended.
        payoffs: ``float64 [K, 6]`` by seat; seats that the game does not have get 0.
        places: ``uint8 [K, 6]`` by seat, 1 is best; 0 for seats that the game does not have.
    """

    games: Index
    deals: NDArray[np.uint64]
    payoffs: NDArray[np.float64]
    places: NDArray[np.uint8]


class BatchGame:
    """``num_games`` games side by side, a seat to move in each at all times.

    Args:
        rules: the rule set (as `Rules.of` takes it). Its `deals` hold for games of every size.
        num_games: games, `B` below.
        seed: seed of the deals.
        num_players: seats of each game, ``[B]``, for a batch of mixed sizes; ``None`` for those of ``rules``.
        num_threads: threads of everything that is done for all games at once; results do not depend on it. Threads do
            not outlive a fork: a batch that has run on several refuses to in a forked process (spawn it instead). Where
            numba has only its ``workqueue`` (no OpenMP or TBB), no two Python threads may step batches at a time.

    Attributes:
        states: the engine's records ``[B]`` of `records.STATE_DTYPE`, all hands included: for solvers and critics.
        indices: ``uint64 [B]``, the deal that each game is in.

    Raises:
        ValueError: numbers that cannot be.
        RulesError: rules that cannot be played by one of ``num_players``.
    """

    def __init__(
        self,
        rules: Rules | str,
        num_games: int,
        seed: int = 0,
        *,
        num_players: Sequence[int] | NDArray[np.integer] | None = None,
        num_threads: int = 1,
    ) -> None:
        if not is_whole(num_games) or num_games < 1:
            raise ValueError(f"num_games must be a whole number of at least 1, not {num_games!r}")
        most = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined] # set at run time
        if not is_whole(num_threads) or not 1 <= num_threads <= most:
            raise ValueError(f"num_threads must be 1 to {most} (numba's threads on this machine), not {num_threads!r}")
        rules, seed = Rules.of(rules), check_seed(seed)
        players = np.full(num_games, rules.num_players) if num_players is None else np.asarray(num_players)
        if players.shape != (num_games,) or not np.issubdtype(players.dtype, np.integer):
            raise ValueError(f"num_players must be {num_games} whole numbers, one a game, not {num_players!r}")
        for n in np.unique(players):
            Rules.of(rules, num_players=int(n))
        self.rules = rules
        self.num_games = num_games
        self.num_threads = num_threads
        self.states: States = np.zeros(num_games, STATE_DTYPE)
        self.indices = np.zeros(num_games, np.uint64)
        self._players = players.astype(np.int8)
        self._r = rules_record(rules)
        self._num_actions = rules.pass_action + 1
        self._layout = observation.observation_layout(rules.deck.num_cards)
        self._done = np.zeros(num_games, np.bool_)
        self._payoffs = np.zeros((num_games, MAX_PLAYERS))
        self._places = np.zeros((num_games, MAX_PLAYERS), np.uint8)
        self._observations: Int8Array | None = None
        self._masks: Int8Array | None = None
        self._process = os.getpid()
        warm_up(rules, num_threads > 1)
        self.reset(seed)

    def __len__(self) -> int:
        return self.num_games

    def reset(self, seed: int | None = None) -> None:
        """Deal every game its first deal again; of another ``seed`` if given."""
        if seed is not None:
            self.seed = check_seed(seed)
        self.indices[:] = np.arange(self.num_games)
        deal_all(self.states, self._r, self._players, np.uint64(self.seed), self.indices)

    # --- the moment ---

    def seats(self) -> NDArray[np.int8]:
        """The seat to move in each game, ``int8 [B]`` (a view of the records)."""
        seats: NDArray[np.int8] = self.states["turn"]
        return seats

    def forced(self) -> NDArray[np.bool_]:
        """Whether the seat to move has one legal action, ``bool [B]``."""
        legal = self.states["legal"]
        forced: NDArray[np.bool_] = (legal & (legal - np.uint64(1))) == 0
        return forced

    def observations(self, out: Int8Array | None = None) -> Int8Array:
        """What the seats to move observe, ``int8 [B, D]``.

        Args:
            out: a C-contiguous buffer of that shape. Without one the batch's own is filled and returned, the same
                array at every call.

        Raises:
            ValueError: a buffer of another shape, type or memory layout.
        """
        size = self._layout.size
        if out is None:
            if self._observations is None:
                self._observations = np.empty((self.num_games, size), np.int8)
            out = self._observations
        flat = self._flat(out, size)
        self._for_all(observe_run, observe_threads, flat, size)
        return out

    def action_masks(self, out: Int8Array | None = None) -> Int8Array:
        """The legal actions of the seats to move, ``int8 [B, C + 1]``; ``out`` as in `observations`."""
        if out is None:
            if self._masks is None:
                self._masks = np.empty((self.num_games, self._num_actions), np.int8)
            out = self._masks
        flat = self._flat(out, self._num_actions)
        self._for_all(masks_run, masks_threads, flat, self._num_actions)
        return out

    def _flat(self, out: Int8Array, size: int) -> Int8Array:
        if not isinstance(out, np.ndarray):
            raise ValueError(f"the buffer must be a NumPy array, not {type(out).__name__}")
        wanted = (self.num_games, size)
        usable = out.flags.c_contiguous and out.flags.writeable
        if out.shape != wanted or out.dtype != np.int8 or not usable:
            raise ValueError(
                f"the buffer must be writeable C-contiguous int8 of shape {wanted}, not {out.dtype} {out.shape}"
            )
        return out.reshape(-1)

    def views(self) -> States:
        """View records ``[B]``: what each seat to move may know, the rest blanked (for bots)."""
        out = np.empty(self.num_games, STATE_DTYPE)
        blank_all(self.states, out)
        return out

    def state_vectors(self) -> Int8Array:
        """The full-information states ``int8 [B, D_state]``, for centralised critics."""
        size = observation.state_layout(self.rules.deck.num_cards).size
        out = np.empty((self.num_games, size), np.int8)
        encode_states(self.states, self._r, out.reshape(-1), size)
        return out

    def sample_actions(self, rng: np.random.Generator) -> Index:
        """A uniformly random legal action for each game, ``int64 [B]``."""
        if not isinstance(rng, np.random.Generator):
            raise ValueError(f"rng must be a numpy Generator, such as np.random.default_rng(0), not {rng!r}")
        out = np.empty(self.num_games, np.int64)
        key = rng.integers(0, 2**64, dtype=np.uint64)
        self._for_all(sample_run, sample_threads, key, out)
        return out

    # --- playing ---

    def step(self, actions: NDArray[np.integer], *, check: bool = True) -> Finished:
        """Take an action for the seat to move in every game, and deal finished games anew.

        Args:
            actions: ``[B]`` card ids or PASS.
            check: refuse illegal actions. ``False`` is the fast path for callers that follow the masks: there an
                illegal action leaves its game as it was, in silence.

        Raises:
            ValueError: not one whole number a game, or an illegal action (it names the game); no game has changed.
        """
        given = np.asarray(actions)
        if given.shape != (self.num_games,) or not np.issubdtype(given.dtype, np.integer):
            raise ValueError(f"actions must be {self.num_games} whole numbers, not {given.dtype} {given.shape}")
        chosen = given.astype(np.int64, copy=False)
        if check:
            self._refuse_illegal(chosen)
        arguments = (np.uint64(self.seed), self.indices, self._done, self._payoffs, self._places)
        self._for_all(step_run, step_threads, chosen, *arguments)
        return self._finished()

    def play_forced(self) -> Finished:
        """Play every turn that has one legal action, in each game until its seat has a choice or its deal has ended.

        A game whose deal ended stands at the start of its next deal, however forced that may be; call again, or step.
        """
        arguments = (np.uint64(self.seed), self.indices, self._done, self._payoffs, self._places)
        self._for_all(forced_run, forced_threads, *arguments)
        return self._finished()

    def _for_all(self, run: Callable[..., None], on_threads: Callable[..., None], *arguments: Any) -> None:
        """Call the kernel of a run of games for all of them, or its twin for threads, as many as this batch's."""
        if self.num_threads == 1:
            run(self.states, self._r, 0, self.num_games, *arguments)
            return
        if self._process != os.getpid():
            raise RuntimeError(
                f"this batch was made in process {self._process} with num_threads={self.num_threads}, whose threads are"
                f" not in its fork {os.getpid()}: use num_threads=1 there, or start processes by spawn"
            )
        before = numba.get_num_threads()  # a setting of the process, to be left as it was
        if before == self.num_threads:  # setting it twice would cost more than a small batch's turn
            on_threads(self.states, self._r, *arguments)
            return
        numba.set_num_threads(self.num_threads)
        try:
            on_threads(self.states, self._r, *arguments)
        finally:
            numba.set_num_threads(before)

    def _refuse_illegal(self, actions: Index) -> None:
        game = int(first_illegal(self.states, self._r, actions))
        if game >= 0:
            legal = legal_actions(self.states[game], self.rules)
            raise ValueError(
                f"illegal action {int(actions[game])} in game {game} (deal {int(self.indices[game])} of seed"
                f" {self.seed}, seat {int(self.states['turn'][game])} to move); legal: {legal}"
            )

    def _finished(self) -> Finished:
        games = np.flatnonzero(self._done)
        deals = self.indices[games] - np.uint64(self.num_games)  # these games have gone on to the next deal
        return Finished(games, deals, self._payoffs[games], self._places[games])
