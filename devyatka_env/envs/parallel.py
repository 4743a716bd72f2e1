"""The PettingZoo parallel environment: every seat acts at each step, all but the seat on turn with PASS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pettingzoo import ParallelEnv

from devyatka_env.engine.turn import ILLEGAL
from devyatka_env.envs.core import RENDER_MODES, Agents, as_action
from devyatka_env.games import IllegalActionError
from devyatka_env.views.observation import Int8Array

Observations = dict[str, dict[str, Int8Array]]


class DevyatkaParallelEnv(Agents, ParallelEnv):  # type: ignore[misc]
    """Devyatka for PettingZoo's parallel API. Agent ``player_i`` sits in seat ``i``.

    One step is one turn. The seat on turn plays a card; PASS is the only legal action of the others, as their action
    masks say. Observations, rewards and reset options are those of the AEC environment (`raw_env`).

    Arguments: those of `devyatka_env.envs.core.Agents`.
    """

    metadata = {"name": "devyatka_v0", "render_modes": list(RENDER_MODES), "render_fps": 2}  # noqa: RUF012

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, dict[str, Any]]]:
        """Start a match; seeds and options as in the AEC environment."""
        self._table.reset(seed, options)
        self.agents = list(self.possible_agents)
        if self.render_mode == "human":
            self.render()
        return self._observe()

    def _observe(self) -> tuple[Observations, dict[str, dict[str, Any]]]:
        seen = {agent: self._table.observe(seat) for seat, agent in enumerate(self.possible_agents)}
        return seen, {agent: {"action_mask": one["action_mask"].copy()} for agent, one in seen.items()}

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[Observations, dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one turn.

        Args:
            actions: one action for every agent.

        Raises:
            IllegalActionError: an illegal action with ``illegal="raise"``; nothing has changed.
            ValueError: an agent without an action, or an action without an agent.
            RuntimeError: `reset` was not called, or the match is over.
        """
        if not self.agents:
            raise RuntimeError("call reset() before step(): no match is running")
        if set(actions) != set(self.agents):
            raise ValueError(
                f"expected an action for each of {', '.join(self.agents)}, got {', '.join(map(str, actions))}"
            )
        rewards = dict.fromkeys(self.agents, 0.0)
        ended = cut = False
        chosen = [as_action(actions[agent]) for agent in self.agents]
        mover = self._table.turn
        offender = next(
            (seat for seat, action in enumerate(chosen) if seat != mover and action != self._table.pass_action),
            None,
        )
        if offender is None and self._table.step(chosen[mover]) == ILLEGAL:
            offender = mover
        if offender is not None:
            if self._illegal == "raise":
                raise self._error(offender, actions[self.agents[offender]])
            self._table.stop()
            rewards[self.agents[offender]] = -1.0
            ended = cut = True
        elif self._table.turn < 0:
            rewards = dict(zip(self.agents, self._table.payoffs(), strict=True))
            ended = self._table.is_match_over
            if not ended:
                self._table.next_deal()
        if self.render_mode == "human":
            self.render()
        seen, infos = self._observe()
        terminations, truncations = dict.fromkeys(self.agents, ended), dict.fromkeys(self.agents, cut)
        if ended:
            self.agents = []
        return seen, rewards, terminations, truncations, infos

    def _error(self, offender: int, action: object) -> IllegalActionError:
        if offender == self._table.turn:
            return self._table.illegal(action)
        where = f"{self.possible_agents[offender]} is not on turn and can only pass; {self._table.text()}"
        return IllegalActionError(action, [self._table.pass_action], self.rules, where)


parallel_env = DevyatkaParallelEnv
