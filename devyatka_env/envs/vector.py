"""The Gymnasium vector environment of one seat: native, as ``gymnasium.make_vec("devyatka/Devyatka-v0")`` gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from devyatka_env.bots import BotSpec
from devyatka_env.envs.core import Table, make_rules
from devyatka_env.envs.learners import Episodes, Index, LearnerBatch
from devyatka_env.envs.single_agent import ILLEGAL_MODES
from devyatka_env.rules import Rules
from devyatka_env.rules.numbers import check_seed
from devyatka_env.views.observation import Int8Array

Observations = dict[str, Int8Array]
Step = tuple[Observations, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class DevyatkaVectorEnv(VectorEnv[Observations, Index, NDArray[Any]]):
    """``num_envs`` deals side by side, one learner among opponents in each: `single_agent.DevyatkaEnv`, batched.

    An episode is one deal, also where the rules play a match of several (there the single environment's is the match).
    Game ``i`` plays deals ``i``, ``i + num_envs``, ... of the seed. Autoreset is SAME_STEP: with ``terminated`` come
    the first observation of the next deal, and ``final_obs`` and ``final_info`` of the one that ended.

    Observations are ``{"observation": int8 [B, D], "action_mask": int8 [B, C + 1]}``; infos hold ``action_mask`` and
    ``seat`` of every game, ``illegal_action`` and ``played_action`` where an action was replaced. All arrays returned
    are the caller's own.

    Args:
        num_envs: games side by side, `B`.
        rules: a preset name, a `Rules`, or a mapping of rule fields.
        num_players: seats, 2 to 6; ``None`` keeps that of ``rules`` (4 in every preset).
        opponents: what plays the other seats: one bot for all, or a list of one each, clockwise from the learner.
            A bot is a registered name, the folder of a checkpoint, a `Bot`, or a function ``(view, rng) -> action``.
        seat: the learner's seat, or ``rotate``: each deal of a game gives it the next place, counted from the dealer,
            and neighbouring games different ones.
        skip_forced: play turns with a single legal action inside. A deal in which nothing was left to choose starts at
            its end: PASS alone is legal, and the first step brings the reward.
        illegal: what an illegal action does: ``random`` replaces it by a random legal one and reports it; ``raise``
            refuses the step, naming the game, and changes nothing.
        render_mode: none; a batch draws no pictures.
        **overrides: rule fields on top of ``rules``.

    Raises:
        RulesError: rules that cannot be played.
        ValueError: an unknown bot, seat, or option.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 - Gymnasium's attribute

    def __init__(
        self,
        num_envs: int = 1,
        rules: str | Rules | Mapping[str, Any] = "first_out",
        num_players: int | None = None,
        opponents: BotSpec | Sequence[BotSpec] = "greedy",
        seat: int | str = "rotate",
        skip_forced: bool = False,
        illegal: str = "random",
        render_mode: str | None = None,
        **overrides: Any,
    ) -> None:
        if render_mode is not None:
            raise ValueError(f"render_mode must be None, not {render_mode!r}: a batch draws no pictures")
        if illegal not in ILLEGAL_MODES:
            raise ValueError(f"illegal must be one of {', '.join(ILLEGAL_MODES)}, not {illegal!r}")
        self._illegal = illegal
        complete = make_rules(rules, num_players, overrides)
        self.batch = LearnerBatch(complete, num_envs, opponents, seat=seat, skip_forced=skip_forced)
        self._is_seeded = False
        table = Table(complete, None)
        self.num_envs = self.batch.num_games
        self.single_observation_space = table.observation_space()
        self.single_action_space = table.action_space()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    @property
    def rules(self) -> Rules:
        """The rule set in play."""
        return self.batch.rules

    @property
    def moves(self) -> int:
        """Cards laid by all seats of the finished deals."""
        return self.batch.moves

    def set_opponents(self, opponents: BotSpec | Sequence[BotSpec]) -> None:
        """Change the opponents, from the next turn on.

        Raises:
            ValueError: a bad bot or a list of another length; the old opponents stay.
        """
        self.batch.set_opponents(opponents)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Deal every game and play on to the learner's first turn.

        Args:
            seed: play the first deals of this seed; without one every game breaks off and goes on to its next deal
                (the first reset of all then takes a seed from the operating system).
            options: none; a batch of deals has no reset options.

        Raises:
            ValueError: a bad seed, or options; nothing has changed then.
        """
        if options:
            raise ValueError(f"a batch of deals takes no reset options, not {options!r}")
        if seed is not None:
            seed = check_seed(seed)
            super().reset(seed=seed % 2**63)
        elif not self._is_seeded:
            seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        if seed is None:
            self.batch.deal_next()
        else:
            self.batch.reset(seed)
        self._is_seeded = True
        observations = self.batch.observe()
        return observations, self._info(observations["action_mask"], self.batch.seats)

    def step(self, actions: Any) -> Step:
        """Take the learner's actions ``[B]`` and play on to its next turns; finished games are dealt anew.

        Returns:
            The observations; the rewards ``float64 [B]``: the learner's payoffs where a deal ended, else 0; which deals
            ended, ``bool [B]``; truncations, all ``False``; and the infos.

        Raises:
            ValueError: not one whole number a game, or with ``illegal="raise"`` an illegal action, which it names
                with its game; no game has changed.
            RuntimeError: `reset` was not called.
        """
        given = self.batch.check_actions(actions)
        chosen, replaced = given, None
        if self._illegal == "random":
            chosen = given.copy()
            replaced = self.batch.replace_illegal(chosen, self.np_random)
        rewards, episodes = self.batch.step(chosen)
        terminated = np.zeros(self.num_envs, np.bool_)
        observations = self.batch.observe()
        info = self._info(observations["action_mask"], self.batch.seats)
        if episodes is not None:
            terminated[episodes.games] = True
            self._add_final(info, episodes, terminated)
        if replaced is not None and len(replaced):
            self._add_replaced(info, replaced, given, chosen, terminated)
        return observations, rewards, terminated, np.zeros(self.num_envs, np.bool_), info

    def _info(self, masks: Int8Array, seats: Index) -> dict[str, Any]:
        everywhere = np.ones(self.num_envs, np.bool_)
        return {
            "action_mask": masks.copy(), "_action_mask": everywhere, "seat": seats.copy(), "_seat": everywhere.copy()
        }  # fmt: skip

    def _add_final(self, info: dict[str, Any], episodes: Episodes, terminated: NDArray[np.bool_]) -> None:
        """Add the last observations and infos of the deals that ended, as Gymnasium's vector environments do."""
        games, last = episodes.games, episodes.observations
        final = np.full(self.num_envs, None, object)
        final[games] = [
            {"observation": observation, "action_mask": mask}
            for observation, mask in zip(last["observation"], last["action_mask"], strict=True)
        ]
        masks = np.zeros((self.num_envs, self.rules.pass_action + 1), np.int8)
        masks[games] = last["action_mask"]
        seats = np.zeros(self.num_envs, np.int64)
        seats[games] = episodes.seats
        info["final_obs"], info["_final_obs"] = final, terminated.copy()
        info["final_info"] = {
            "action_mask": masks, "_action_mask": terminated.copy(), "seat": seats, "_seat": terminated.copy()
        }  # fmt: skip
        info["_final_info"] = terminated.copy()

    def _add_replaced(
        self, info: dict[str, Any], which: Index, given: Index, played: Index, terminated: NDArray[np.bool_]
    ) -> None:
        """Report replaced actions: in ``final_info`` where they ended their deals, else in ``info``."""
        ended = terminated[which]
        for target, games in ((info, which[~ended]), (info.get("final_info"), which[ended])):
            if target is not None and len(games):
                for key, actions in (("illegal_action", given), ("played_action", played)):
                    target[key] = np.zeros(self.num_envs, np.int64)
                    target[key][games] = actions[games]
                    target[f"_{key}"] = np.zeros(self.num_envs, np.bool_)
                    target[f"_{key}"][games] = True

    def action_masks(self) -> NDArray[np.bool_]:
        """The learner's legal actions in every game, ``bool [B, C + 1]``."""
        return self.batch.action_masks()
