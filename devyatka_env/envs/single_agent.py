"""The Gymnasium environment of one seat, the opponents inside it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from devyatka_env.bots import Bot, BotError, BotSpec, make_opponents
from devyatka_env.engine import STATE_DTYPE
from devyatka_env.engine.calls import blank_at, legal_actions
from devyatka_env.engine.randomness import decision_word
from devyatka_env.engine.seeds import word_key
from devyatka_env.engine.turn import ILLEGAL
from devyatka_env.envs.core import RENDER_MODES, Table, as_action, make_rules
from devyatka_env.rules import Rules
from devyatka_env.views.observation import Int8Array

ILLEGAL_MODES = ("random", "raise")


class DevyatkaEnv(gymnasium.Env[dict[str, Int8Array], np.int64]):
    """One learner among opponents: only its own turns are transitions, its reward comes with the end of each deal.

    Args:
        rules: a preset name, a `Rules`, or a mapping of rule fields.
        num_players: seats, 2 to 6; ``None`` keeps that of ``rules`` (4 in every preset).
        opponents: what plays the other seats: one bot for all, or a list of one each, clockwise from the learner.
            A bot is a registered name, the folder of a checkpoint, a `Bot`, or a function ``(view, rng) -> action``.
        seat: the learner's seat, or ``rotate`` for the next seat at each reset (seat 0 after a seeded one).
        skip_forced: play turns with a single legal action inside the environment. A match in which nothing was left
            to choose starts at its end: PASS alone is legal, and the first step brings the reward.
        illegal: what an illegal action does: ``random`` replaces it by a random legal one and reports it in
            ``info["illegal_action"]`` (for samplers that know no masks); ``raise`` refuses it and changes nothing.
        render_mode: ``human`` prints each position of the learner, ``ansi`` and ``rgb_array`` return it.
        **overrides: rule fields on top of ``rules``.

    Raises:
        RulesError: rules that cannot be played.
        ValueError: an unknown bot, seat, or option.
    """

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": 2}  # noqa: RUF012 - Gymnasium's attribute

    def __init__(
        self,
        rules: str | Rules | dict[str, Any] = "first_out",
        num_players: int | None = None,
        opponents: BotSpec | Sequence[BotSpec] = "greedy",
        seat: int | str = "rotate",
        skip_forced: bool = False,
        illegal: str = "random",
        render_mode: str | None = None,
        **overrides: Any,
    ) -> None:
        self._table = Table(make_rules(rules, num_players, overrides), render_mode)
        self.render_mode = render_mode
        n = self._table.num_players
        if illegal not in ILLEGAL_MODES:
            raise ValueError(f"illegal must be one of {', '.join(ILLEGAL_MODES)}, not {illegal!r}")
        is_seat = isinstance(seat, int | np.integer) and not isinstance(seat, bool) and 0 <= seat < n
        if seat != "rotate" and not is_seat:
            raise ValueError(f"seat must be 0 to {n - 1} or 'rotate', not {seat!r}")
        self._fixed_seat = None if seat == "rotate" else int(seat)
        self._skip_forced = skip_forced
        self._illegal = illegal
        self.seat = self._fixed_seat or 0
        self._rotation = -1
        self.set_opponents(opponents)
        self.observation_space = self._table.observation_space()  # type: ignore[assignment] # Dict is such a Space
        self.action_space = self._table.action_space()

    @property
    def rules(self) -> Rules:
        """The rule set in play."""
        return self._table.rules

    def set_opponents(self, opponents: BotSpec | Sequence[BotSpec]) -> None:
        """Change the opponents, from the next turn on.

        Raises:
            ValueError: a bad bot or a list of another length; the old opponents stay.
        """
        bots = make_opponents(opponents, self._table.num_players - 1)
        for bot in bots:
            bot.check_rules(self.rules)
        self.opponents: list[Bot] = bots

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Int8Array], dict[str, Any]]:
        """Start a match and play on to the learner's first turn.

        Args:
            seed: play deal 0 of this seed, and the deals that follow at further resets without a seed.
            options: ``hands``, ``dealer`` and ``rules`` as in the AEC environment.

        Raises:
            ValueError: a bad seed or option; the running match goes on unchanged.
        """
        for bot in self.opponents:
            bot.check_rules(self._table.rules_after(options))
        self._table.reset(seed, options)
        super().reset(seed=None if seed is None else int(seed) % 2**63)
        self._rotation = 0 if seed is not None else self._rotation + 1
        if self._fixed_seat is None:
            self.seat = self._rotation % self._table.num_players
        # What falls due before the learner's first choice is paid with its first step, even when the match is over.
        self._owed: float | None = self._play_on()
        if self.render_mode == "human":
            self.render()
        return self._answer({})

    def step(self, action: Any) -> tuple[dict[str, Int8Array], float, bool, bool, dict[str, Any]]:
        """Take the learner's action and play on to its next turn or the end of the match.

        Returns:
            The observation, the payoffs that fell due, whether the match is over, ``False``, and the info.

        Raises:
            IllegalActionError: an illegal action with ``illegal="raise"``; nothing has changed.
            BotError: an opponent failed or chose an illegal action.
            RuntimeError: `reset` was not called, or the match is over.
        """
        self._table.require_start("step()")
        info: dict[str, Any] = {}
        if not self._table.is_match_over:
            number = as_action(action)
            if self._table.step(number) == ILLEGAL:
                if self._illegal == "raise":
                    raise self._table.illegal(action)
                legal = np.flatnonzero(self.action_masks())
                info["illegal_action"] = operator.index(action)
                info["played_action"] = int(self.np_random.choice(legal))
                self._table.step(info["played_action"])
            due = self._play_on()
        elif self._owed is None:
            raise RuntimeError("call reset() before step(): the match is over")
        else:  # over at reset: all of it is owed
            due = 0.0
        reward = (self._owed or 0.0) + due
        self._owed = None if self._table.is_match_over else 0.0
        if self.render_mode == "human":
            self.render()
        observation, info = self._answer(info)
        return observation, reward, self._table.is_match_over, False, info

    def _answer(self, info: dict[str, Any]) -> tuple[dict[str, Int8Array], dict[str, Any]]:
        observation = self._table.observe(self.seat)
        info["action_mask"] = observation["action_mask"].copy()
        info["seat"] = self.seat
        return observation, info

    def _play_on(self) -> float:
        """Play to the learner's next choice; returns the payoffs that fell due on the way."""
        table, due = self._table, 0.0
        while True:
            if table.turn < 0:
                due += table.payoffs()[self.seat]
                if table.is_match_over:
                    return due
                table.next_deal()
            elif (table.turn != self.seat or self._skip_forced) and (forced := self._forced_action()) is not None:
                table.step(forced)
            elif table.turn != self.seat:
                self._opponent_turn()
            else:
                return due

    def _forced_action(self) -> int | None:
        legal = legal_actions(self._table.states[0], self._table.rules)
        return legal[0] if len(legal) == 1 else None

    def _opponent_turn(self) -> None:
        table, seat = self._table, self._table.turn
        bot = self.opponents[(seat - self.seat - 1) % table.num_players]
        view = table.states
        if not bot.sees_all_hands:
            view = np.zeros(1, STATE_DTYPE)
            blank_at(table.states, 0, seat, view)
        assert table.seed is not None
        word = decision_word(word_key(table.seed), np.uint64(table.index), seat, int(table.states["num_played"][0]))
        try:
            action = int(bot.act_batch(view, table.rules, np.array([word], np.uint64))[0])
            if table.step(as_action(action)) == ILLEGAL:
                raise table.illegal(action)
        except Exception as error:
            raise BotError(f"bot {bot.name} failed (deal {table.index} of seed {table.seed}): {error}") from error

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """The learner's legal actions now, ``bool [C + 1]``, as sb3-contrib's MaskablePPO asks for them."""
        return self._table.observe(self.seat)["action_mask"].astype(np.bool_)

    def state(self) -> Int8Array:
        """The full-information state ``int8 [D_state]``, for centralised critics."""
        return self._table.state()

    def render(self) -> Any:
        """The position in the render mode: a text, an image ``uint8 [H, W, 3]``, or printed."""
        return self._table.render()
