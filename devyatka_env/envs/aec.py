"""The PettingZoo AEC environment.

The checks that PettingZoo's wrapper stack makes (action range, illegal actions, calls out of order) live in the
environment itself, so `env` and `raw_env` are the same class and no wrapper slows the loop.
"""

from __future__ import annotations

from typing import Any

from pettingzoo import AECEnv

from devyatka_env.engine.turn import ILLEGAL
from devyatka_env.envs.core import RENDER_MODES, Agents, as_action
from devyatka_env.rules import Rules
from devyatka_env.views.observation import Int8Array

_MADE_BY_RESET = (
    "rewards", "_cumulative_rewards", "terminations", "truncations", "infos", "agent_selection",
)  # fmt: skip


class raw_env(Agents, AECEnv):  # type: ignore[misc]  # noqa: N801 - PettingZoo's name for it
    """Devyatka for PettingZoo's AEC API. Agent ``player_i`` sits in seat ``i``.

    Observations are ``{"observation": int8 [D], "action_mask": int8 [C + 1]}`` (`devyatka_env.views.observation`); the
    mask stands in ``infos[agent]["action_mask"]`` too. Rewards are the payoffs at the end of each deal, 0 elsewhere;
    all seats end together. Copies and pickles of a running environment continue identically.

    For the parallel API there is `parallel_env`. PettingZoo's `aec_to_parallel` wants agents that act in a fixed cycle;
    here a seat that must pass has no turn.

    Arguments: those of `devyatka_env.envs.core.Agents`.
    """

    metadata = {  # noqa: RUF012 - the attribute PettingZoo asks for
        "name": "devyatka_v0",
        "render_modes": list(RENDER_MODES),
        "is_parallelizable": False,
        "render_fps": 2,
    }

    def __getattr__(self, name: str) -> Any:
        """Name what is missing when the match is: PettingZoo keeps its state in attributes that `reset` makes."""
        if name in _MADE_BY_RESET:
            raise AttributeError(f"call reset() before {name}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def agent_iter(self, max_iter: int = 2**63) -> Any:
        """The agents to act, one after the other, until all have had their last step.

        Raises:
            RuntimeError: `reset` was not called.
        """
        self._table.require_start("agent_iter()")
        return super().agent_iter(max_iter)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a match.

        Args:
            seed: play deal 0 of this seed, and the deals that follow at further resets without a seed.
            options: ``hands`` (a card text, bitboard or list by seat) and ``dealer`` lay out this deal;
                ``rules`` changes the rule set from now on (same seats and deck size).

        Raises:
            ValueError: a bad seed or option; the running match goes on unchanged.
        """
        self._table.reset(seed, options)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {
            agent: {"action_mask": self._table.pass_only_mask()} for agent in self.agents
        }
        self._skip_agent_selection = None
        self._select()
        if self.render_mode == "human":
            self.render()

    def _select(self) -> None:
        """Point ``agent_selection`` at the seat to move, and renew the info masks."""
        seat = self._table.turn
        if seat >= 0:
            agent = self.possible_agents[seat]
            self.agent_selection = agent
            self.infos[agent] = {"action_mask": self._table.observe(seat)["action_mask"]}

    def observe(self, agent: str) -> dict[str, Int8Array]:
        """What ``agent`` may know, at any time; its mask allows PASS alone when it is not on turn."""
        return self._table.observe(self._seat_of[agent])

    def step(self, action: Any) -> None:
        """Take the action of ``agent_selection``; ``None`` for an agent whose match is over.

        Raises:
            IllegalActionError: an illegal action with ``illegal="raise"``; nothing has changed.
            RuntimeError: `reset` was not called, or every agent has had its last step.
        """
        if not self.agents:
            raise RuntimeError("call reset() before step(): no match is running")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        outcome = self._table.step(as_action(action))
        if outcome == ILLEGAL and self._illegal == "raise":
            raise self._table.illegal(action)
        self._cumulative_rewards[agent] = 0.0
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self.infos[agent] = {"action_mask": self._table.pass_only_mask()}
        if outcome == ILLEGAL:
            self._end(agent)
        elif self._table.turn < 0:
            self._end_deal()
        self._select()
        if self.render_mode == "human":
            self.render()

    def _end_deal(self) -> None:
        """Pay the finished deal; deal again, or end the match."""
        for agent, payoff in zip(self.agents, self._table.payoffs(), strict=True):
            self.rewards[agent] = payoff
            self._cumulative_rewards[agent] += payoff
        if self._table.is_match_over:
            self.terminations = dict.fromkeys(self.agents, True)
        else:
            self._table.next_deal()

    def _end(self, offender: str) -> None:
        """End the match for an illegal action."""
        self._table.stop()
        self.rewards[offender] = -1.0
        self._cumulative_rewards[offender] -= 1.0
        self.terminations = dict.fromkeys(self.agents, True)
        self.truncations = dict.fromkeys(self.agents, True)


def env(
    rules: str | Rules | dict[str, Any] = "first_out",
    num_players: int | None = None,
    render_mode: str | None = None,
    illegal: str = "raise",
    **overrides: Any,
) -> raw_env:
    """The AEC environment, checks included (see `raw_env`, which takes the same arguments)."""
    return raw_env(rules, num_players, render_mode, illegal, **overrides)
