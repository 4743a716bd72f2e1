"""Many single-seat games as one stable-baselines3 `VecEnv`, played natively in a batch.

Needs stable-baselines3 (the extra ``train``) and is imported only by name: ``devyatka_env.envs.sb3``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from devyatka_env.bots import Bot, BotSpec
from devyatka_env.envs.core import Table, make_rules
from devyatka_env.envs.learners import LearnerBatch
from devyatka_env.rules import Rules
from devyatka_env.views.observation import Int8Array


class DevyatkaVecEnv(VecEnv):
    """``num_envs`` deals side by side, one learner's seat in each, the opponents inside.

    An episode is one deal. Transitions are the learner's own turns (with ``skip_forced`` only those with a choice);
    the reward is its payoff, at its last transition of the deal, whoever ended it. Game ``i`` plays deals ``i``,
    ``i + num_envs``, ... of the seed, the learner's seat moving on by one each time, so all seats are learned alike.

    Args:
        rules: a preset name, a `Rules`, or a mapping of rule fields; a match of several deals is trained deal by deal,
            its dealer moving as in the match.
        num_envs: games side by side.
        opponents: what plays the other seats, as in the Gymnasium environment; `set_pool` makes it a random draw.
        seed: seed of the deals and of the draws.
        first_deal: deal index of game 0, for a run that continues another.
        skip_forced: play turns with one legal action inside.
        num_players: seats, 2 to 6; ``None`` keeps that of ``rules`` (4 in every preset).
        **overrides: rule fields on top of ``rules``.

    Raises:
        RulesError: rules that cannot be played.
        TypeError: an unknown keyword.
        ValueError: numbers that cannot be, or a bad opponent.
    """

    def __init__(
        self,
        rules: Rules | str | Mapping[str, Any],
        num_envs: int,
        opponents: BotSpec | Sequence[BotSpec] = "greedy",
        seed: int = 0,
        first_deal: int = 0,
        skip_forced: bool = True,
        num_players: int | None = None,
        **overrides: Any,
    ) -> None:
        complete = make_rules(rules, num_players, overrides)
        self.batch = LearnerBatch(complete, num_envs, opponents, seed, first_deal, skip_forced=skip_forced)
        self._actions: NDArray[np.int64] = np.zeros(num_envs, np.int64)
        table = Table(self.batch.rules, None)
        super().__init__(num_envs, table.observation_space(), table.action_space())

    @property
    def rules(self) -> Rules:
        """The rule set in play."""
        return self.batch.rules

    @property
    def skip_forced(self) -> bool:
        """Whether turns with one legal action are played inside."""
        return self.batch.skip_forced

    @skip_forced.setter
    def skip_forced(self, value: bool) -> None:
        self.batch.skip_forced = value

    @property
    def moves(self) -> int:
        """Cards laid by all seats of the finished deals."""
        return self.batch.moves

    @property
    def next_deal(self) -> int:
        """A deal index beyond all that have been dealt."""
        return self.batch.next_deal

    def set_opponents(self, opponents: BotSpec | Sequence[BotSpec]) -> None:
        """Seat fixed opponents: one bot for all seats, or one each, clockwise from the learner.

        Raises:
            ValueError: a bad bot, one that does not play these rules, or a list of another length; the old ones stay.
        """
        self.batch.set_opponents(opponents)

    def set_pool(self, bots: Sequence[Bot], weights: Sequence[float]) -> None:
        """Draw the bot of every opponent's seat of every deal from ``bots``, with probabilities ``weights``.

        Deals in play continue with newly drawn opponents.

        Raises:
            ValueError: weights that are not as many as bots, or do not add up to 1, or a bot that does not play these
                rules; the old opponents stay.
        """
        self.batch.set_pool(bots, weights)

    # --- the VecEnv API ---

    def reset(self) -> dict[str, Int8Array]:
        """Deal every game afresh, from the first deal of the seed, and play on to the learner's first turn."""
        self.batch.reset(self._seeds[0])
        self._reset_seeds()
        return self.batch.observe()

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Keep the learner's actions ``int64 [num_envs]`` for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Take the actions, play on, and deal finished games afresh.

        Raises:
            ValueError: an illegal action; it names the game, and no game has changed.
        """
        payoffs, episodes = self.batch.step(self._actions)
        rewards = payoffs.astype(np.float32)
        dones = np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if episodes is not None:
            dones[episodes.games] = True
            paid, lengths = rewards[episodes.games].tolist(), episodes.decisions.tolist()
            last = zip(*episodes.observations.values(), strict=True)
            for game, row, reward, length in zip(episodes.games.tolist(), last, paid, lengths, strict=True):
                infos[game] = {
                    "terminal_observation": dict(zip(episodes.observations, row, strict=True)),
                    "episode": {"r": reward, "l": length, "t": 0.0},
                }
        return self.batch.observe(), rewards, dones, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """The learner's legal actions in every game, ``bool [num_envs, C + 1]``, as MaskablePPO asks for them."""
        return self.batch.action_masks()

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
        """Call a method; ``action_masks`` gives one array, a row a game, anything else the same result for each."""
        chosen = list(self._get_indices(indices))
        result = getattr(self, method_name)(*method_args, **method_kwargs)
        return result[chosen] if method_name == "action_masks" else [result] * len(chosen)

    def env_is_wrapped(self, wrapper_class: type[gymnasium.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        """No game is wrapped."""
        return [False] * len(list(self._get_indices(indices)))
