"""Many single-seat games as one stable-baselines3 `VecEnv`, played natively in a batch.

Needs stable-baselines3 (the extra ``train``) and is imported only by name: ``devyatka_env.envs.sb3``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from devyatka_env.bots import Bot, BotSpec, make_opponents
from devyatka_env.bots.play import OUTSIDE, play_on
from devyatka_env.deals import Deals
from devyatka_env.envs.core import Table
from devyatka_env.observation import Int8Array
from devyatka_env.rules import Rules


class DevyatkaVecEnv(VecEnv):
    """``num_envs`` deals side by side, one learner's seat in each, the opponents inside.

    An episode is one deal. Transitions are the learner's own turns (with ``skip_forced`` only those with a choice);
    the reward is its payoff, at its last transition of the deal, whoever ended it. Game ``i`` plays deals ``i``,
    ``i + num_envs``, ... of the seed, the learner's seat moving on by one each time, so all seats are learned alike.

    Args:
        rules: the rule set; a match of several deals is trained deal by deal, its dealer moving as in the match.
        num_envs: games side by side.
        opponents: what plays the other seats, as in the Gymnasium environment; `set_pool` makes it a random draw.
        seed: seed of the deals and of the draws.
        first_deal: deal index of game 0, for a run that continues another.
        skip_forced: play turns with one legal action inside.
    """

    def __init__(
        self,
        rules: Rules,
        num_envs: int,
        opponents: BotSpec | Sequence[BotSpec] = "greedy",
        seed: int = 0,
        first_deal: int = 0,
        skip_forced: bool = True,
    ) -> None:
        table = Table(rules, None)
        self.rules = rules
        self.skip_forced = skip_forced
        self.moves = 0  # cards laid by all seats of the finished deals
        self._first_deal = first_deal
        self._rng = np.random.default_rng([seed, first_deal])
        self._games = Deals(rules, np.arange(first_deal, first_deal + num_envs), seed)
        self._seats = np.zeros(num_envs, np.int64)
        self._seating = np.full((num_envs, rules.num_players), OUTSIDE)
        self._decisions = np.zeros(num_envs, np.int64)
        self._actions: NDArray[np.int64] = np.zeros(num_envs, np.int64)
        self._infos: list[dict[str, Any]] = [{} for _ in range(num_envs)]
        self._weights: NDArray[np.float64] | None = None
        super().__init__(num_envs, table.observation_space(), table.action_space())
        self.set_opponents(opponents)

    @property
    def next_deal(self) -> int:
        """A deal index beyond all that have been dealt."""
        return int(self._games.indices.max()) + 1

    # --- who plays ---

    def set_opponents(self, opponents: BotSpec | Sequence[BotSpec]) -> None:
        """Seat fixed opponents: one bot for all seats, or one each, clockwise from the learner."""
        self._bots: list[Bot] = make_opponents(opponents, self.rules.num_players - 1)
        self._weights = None
        self._seat(self._games.all)

    def set_pool(self, bots: Sequence[Bot], weights: Sequence[float]) -> None:
        """Draw the bot of every opponent's seat of every deal from ``bots``, with probabilities ``weights``.

        Deals in play continue with newly drawn opponents.

        Raises:
            ValueError: weights that are not as many as bots, or do not add up to 1.
        """
        if len(bots) != len(weights) or min(weights) < 0 or not np.isclose(sum(weights), 1):
            raise ValueError(f"{len(bots)} bots need as many weights that add up to 1, not {list(weights)}")
        self._bots = list(bots)
        self._weights = np.array(weights)
        self._seat(self._games.all)

    def _seat(self, which: NDArray[np.int64]) -> None:
        """Give every seat of the games ``which`` its player: a number in the bots, or `OUTSIDE`."""
        n = self.rules.num_players
        if self._weights is None:
            lineup = np.array([OUTSIDE, *range(n - 1)])
            self._seating[which] = lineup[(np.arange(n)[None, :] - self._seats[which, None]) % n]
        else:
            self._seating[which] = self._rng.choice(len(self._bots), size=(len(which), n), p=self._weights)
            self._seating[which, self._seats[which]] = OUTSIDE

    # --- the VecEnv API ---

    def reset(self) -> dict[str, Int8Array]:
        """Deal every game afresh, from the first deal of the seed, and play on to the learner's first turn."""
        everything = self._games.all
        if self._seeds[0] is not None:
            self._games = Deals(self.rules, self._first_deal + everything, self._seeds[0])
            self._rng = np.random.default_rng([self._seeds[0], self._first_deal])
            self._reset_seeds()
        else:
            self._games.deal(everything, self._first_deal + everything)
        self._start(everything)
        return self._observe(everything)

    def _start(self, which: NDArray[np.int64]) -> None:
        """Give the learner its seat in the freshly dealt games ``which``, and play on to its first turn.

        The seat is counted from the dealer's, so that in a match, too, every place at the table is visited alike.
        """
        dealers = self._games.states["dealer"][which].astype(np.int64)
        rounds = (self._games.indices[which].astype(np.int64) - self._first_deal - which) // self.num_envs
        self._seats[which] = (dealers + 1 + self._first_deal + which + rounds) % self.rules.num_players
        self._seat(which)
        self._decisions[which] = 0
        self._play_on(which)

    def _play_on(self, which: NDArray[np.int64]) -> None:
        """Play the games ``which`` to the learner's next turn, or to the end of the deal."""
        play_on(self._games, self._bots, self._seating, which, skip_forced=self.skip_forced)

    def _observe(self, which: NDArray[np.int64]) -> dict[str, Int8Array]:
        observations, masks = self._games.observations(which, self._seats[which])
        return {"observation": observations, "action_mask": masks}

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Keep the learner's actions ``int64 [num_envs]`` for `step_wait`."""
        self._actions = np.asarray(actions, np.int64)

    def step_wait(self) -> VecEnvStepReturn:
        """Take the actions, play on, and deal finished games afresh.

        Raises:
            ValueError: an illegal action; it names the game, and no game has changed.
        """
        games = self._games
        running = games.all[games.turns >= 0]  # a deal that left the learner no choice is over before its first step
        games.step(running, self._actions[running])
        self._decisions += 1
        self._play_on(running)
        over = games.all[games.turns < 0]
        dones = games.turns < 0
        rewards = np.zeros(self.num_envs, np.float32)
        self._infos = [{} for _ in range(self.num_envs)]
        if len(over):
            rewards[over] = games.payoffs(over)[np.arange(len(over)), self._seats[over]]
            self._finish(over, rewards)
        return self._observe(games.all), rewards, dones, self._infos

    def _finish(self, over: NDArray[np.int64], rewards: NDArray[np.float32]) -> None:
        """Report the finished games ``over`` and deal their next ones."""
        games = self._games
        last = self._observe(over)
        for k, game in enumerate(over):
            self._infos[game]["terminal_observation"] = {name: array[k] for name, array in last.items()}
            self._infos[game]["episode"] = {"r": float(rewards[game]), "l": int(self._decisions[game]), "t": 0.0}
        self.moves += int(games.states["num_played"][over].sum())
        games.deal(over, games.indices[over] + np.uint64(self.num_envs))
        self._start(over)

    def action_masks(self) -> NDArray[np.bool_]:
        """The learner's legal actions in every game, ``bool [num_envs, C + 1]``, as MaskablePPO asks for them."""
        return self._observe(self._games.all)["action_mask"].astype(np.bool_)

    def set_options(self, options: list[dict[str, Any]] | dict[str, Any] | None = None) -> None:
        """Reset options are those of single environments; a batch has none.

        Raises:
            ValueError: options were given.
        """
        if options and any([options] if isinstance(options, dict) else options):
            raise ValueError(f"a batch of deals takes no reset options, not {options!r}")

    def close(self) -> None:
        """Release nothing."""

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The value of an attribute, the same for each of the games asked for."""
        value = None if attr_name == "render_mode" else getattr(self, attr_name)
        return [value] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of all games.

        Raises:
            ValueError: asked for some of the games only: they share their attributes.
        """
        if indices is not None:
            raise ValueError(f"the games of a batch share {attr_name!r}; set it for all (indices=None)")
        setattr(self, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method; ``action_masks`` gives a row a game, anything else one shared result for each."""
        chosen = list(self._get_indices(indices))
        result = getattr(self, method_name)(*method_args, **method_kwargs)
        return [result[i] for i in chosen] if method_name == "action_masks" else [result] * len(chosen)

    def env_is_wrapped(self, wrapper_class: type[gymnasium.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        """No game is wrapped."""
        return [False] * len(list(self._get_indices(indices)))
