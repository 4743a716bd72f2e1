"""What every environment shares: the deal stream, reset options, spaces, observations and pictures.

The environments above it only translate between this table and their API.
"""

from __future__ import annotations

import difflib
import operator
import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from gymnasium import spaces

from devyatka_env._console import printable
from devyatka_env.engine import STATE_DTYPE, rules_record
from devyatka_env.engine.calls import deal_at, legal_actions, payoffs_at, step_at, stop_at
from devyatka_env.engine.compiling import compiling
from devyatka_env.games import Game, IllegalActionError, notation, render
from devyatka_env.rules import MAX_PLAYERS, DealError, Rules, RulesError
from devyatka_env.rules.numbers import check_seed
from devyatka_env.rules.rule_set import FIELDS
from devyatka_env.views import PlayerView, observation
from devyatka_env.views.observation import Int8Array

RENDER_MODES = ("human", "ansi", "rgb_array")
ILLEGAL_MODES = ("raise", "terminate")
RESET_OPTIONS = ("hands", "dealer", "rules")
# What the environments take beside rule fields, for the errors about what they do not.
_ARGUMENTS = ("rules", "num_players", "render_mode", "illegal", "opponents", "seat", "skip_forced", "num_envs", "seed")


@lru_cache(maxsize=1)
def _warm_up() -> None:
    """Load the kernels of a single game, or compile them, before the first game needs them."""
    rules = Rules()
    r, states = rules_record(rules), np.zeros(1, STATE_DTYPE)
    out = np.empty(observation.observation_layout(rules.pass_action).size, np.int8)
    with compiling():
        deal_at(states, 0, r, rules.num_players, 0, np.uint64(0), np.uint64(0))
        observation.encode_at(states, 0, r, 0, out, np.empty(rules.pass_action + 1, np.int8))
        step_at(states, 0, r, rules.pass_action)
        payoffs_at(states, 0, r, np.empty(MAX_PLAYERS))


class Table:
    """One running match: a rule set, a stream of deals, and the record of the deal in play.

    Deal ``i`` of a seed is the one that `Game.deal` gives. ``reset(seed=s)`` starts at deal 0 of ``s``, further resets
    take the deals that follow; without any seed the first reset draws one from the operating system.

    Attributes:
        rules: the rule set.
        states: the engine's record, an array ``[1]``.
        seed: seed of the deals; ``None`` before the first reset.
        index: index of the deal in play.
    """

    def __init__(self, rules: Rules, render_mode: str | None) -> None:
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(f"render_mode must be one of {', '.join(RENDER_MODES)} or None, not {render_mode!r}")
        _warm_up()
        self.render_mode = render_mode
        self.states = np.zeros(1, STATE_DTYPE)
        self.seed: int | None = None
        self.index = -1
        self._next_index = 0
        self._deals_left = 0
        self._set_rules(rules)

    def _set_rules(self, rules: Rules) -> None:
        self.rules = rules
        self.r = rules_record(rules)
        self.num_players = rules.num_players
        self.pass_action = rules.pass_action
        self.observation_size = observation.observation_layout(self.pass_action).size

    # --- spaces ---

    def observation_space(self) -> spaces.Dict:
        """The observation space: ``observation int8 [D]`` and ``action_mask int8 [C + 1]``."""
        layout = observation.observation_layout(self.pass_action)
        return spaces.Dict(
            {
                "observation": spaces.Box(np.zeros(layout.size, np.int8), layout.high, dtype=np.int8),
                "action_mask": spaces.Box(0, 1, (self.pass_action + 1,), np.int8),
            }
        )

    def action_space(self) -> spaces.Discrete:
        """The action space: a card id, or PASS = the number of cards."""
        return spaces.Discrete(self.pass_action + 1)

    def state_space(self) -> spaces.Box:
        """The space of `state`."""
        layout = observation.state_layout(self.pass_action)
        return spaces.Box(np.zeros(layout.size, np.int8), layout.high, dtype=np.int8)

    # --- deals ---

    def reset(self, seed: int | None, options: Mapping[str, Any] | None) -> None:
        """Start a match.

        Raises:
            ValueError: a bad seed, or an option with a bad value; nothing has changed then.
        """
        if seed is not None:
            seed = check_seed(seed)
        if not isinstance(options, Mapping | None):
            raise ValueError(f"reset options are a mapping, not {options!r}")
        options = dict(options or {})
        for key in options.keys() - set(RESET_OPTIONS):
            # Only a warning: PettingZoo's own tests hand every environment an option of their making.
            warnings.warn(
                f"unknown reset option {key!r} is ignored; the options are {', '.join(RESET_OPTIONS)}",
                stacklevel=3,
            )
        rules = self.rules_after(options)
        if options.get("dealer") is not None and options.get("hands") is None:
            raise DealError("the reset option 'dealer' goes with 'hands': a seeded deal has its own dealer")
        laid_out = None
        if options.get("hands") is not None:
            laid_out = Game.from_hands(rules, options["hands"], options.get("dealer"))
        if rules != self.rules:
            self._set_rules(rules)
        if seed is not None:
            self.seed, self._next_index = seed, 0
        elif self.seed is None:
            self.seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        # A match begins at a multiple of its length, so that the first deal has the last seat as dealer.
        self._next_index = -(-self._next_index // rules.deals) * rules.deals
        self._deals_left = rules.deals
        if laid_out is None:
            self.next_deal()
        else:
            self.index = self._next_index
            self._next_index += 1
            self._deals_left -= 1
            self.states[0] = laid_out.states[0]

    def rules_after(self, options: Mapping[str, Any] | None) -> Rules:
        """The rule set that a reset with these options would play.

        Raises:
            RulesError: rules that cannot be played, or that do not fit the spaces.
        """
        spec = dict(options or {}).get("rules")
        if spec is None:
            return self.rules
        if isinstance(spec, Mapping):
            spec = {"num_players": self.num_players, **spec}
        rules = Rules.of(spec, num_players=self.num_players) if isinstance(spec, str) else Rules.of(spec)
        if rules.num_players != self.num_players or rules.deck.num_cards != self.pass_action:
            raise RulesError(
                f"the reset option 'rules' must keep num_players={self.num_players} and {self.pass_action} cards"
                f" (the spaces are fixed), not {rules}"
            )
        return rules

    def next_deal(self) -> None:
        """Deal the next deal of the match."""
        assert self.seed is not None
        self.index = self._next_index
        self._next_index += 1
        self._deals_left -= 1
        deal_at(
            self.states, 0, self.r, self.num_players, self.rules.dealer(self.index),
            np.uint64(self.seed), np.uint64(self.index),
        )  # fmt: skip

    def stop(self) -> None:
        """Break off the match."""
        stop_at(self.states, 0)
        self._deals_left = 0

    @property
    def is_match_over(self) -> bool:
        """Whether the deal is over and was the last of the match."""
        return self.turn < 0 and self._deals_left == 0

    # --- the moment ---

    def require_start(self, call: str) -> None:
        """Refuse a call that needs a match.

        Raises:
            RuntimeError: `reset` was not called.
        """
        if self.index < 0:
            raise RuntimeError(f"call reset() before {call}")

    @property
    def turn(self) -> int:
        """The seat to move; -1 when the deal is over."""
        return int(self.states["turn"][0])

    def step(self, action: int) -> int:
        """Take an action for the seat to move; answers as `engine.turn.step`."""
        return int(step_at(self.states, 0, self.r, action))

    def payoffs(self) -> list[float]:
        """Payoffs of the finished deal by seat."""
        out = np.empty(MAX_PLAYERS)
        payoffs_at(self.states, 0, self.r, out)
        payoffs: list[float] = out.tolist()
        return payoffs[: self.num_players]

    def observe(self, seat: int) -> dict[str, Int8Array]:
        """The observation of a seat, in arrays of its own."""
        self.require_start("observing")
        out = np.empty(self.observation_size, np.int8)
        mask = np.empty(self.pass_action + 1, np.int8)
        observation.encode_at(self.states, 0, self.r, seat, out, mask)
        return {"observation": out, "action_mask": mask}

    def view(self, seat: int) -> PlayerView:
        """What a seat may know, as bots take it."""
        self.require_start("view()")
        return PlayerView.of_state(self.states, 0, self.rules, seat)

    def pass_only_mask(self) -> Int8Array:
        """The action mask of a seat that is not on turn."""
        mask = np.zeros(self.pass_action + 1, np.int8)
        mask[-1] = 1
        return mask

    def state(self) -> Int8Array:
        """The full-information state ``int8 [D_state]``, for centralised critics."""
        self.require_start("state()")
        out = np.empty(observation.state_layout(self.pass_action).size, np.int8)
        observation.encode_state_at(self.states, 0, self.r, out)
        return out

    def illegal(self, action: object) -> IllegalActionError:
        """The error for an illegal action now."""
        legal = legal_actions(self.states[0], self.rules)
        state = f"deal {self.index} of seed {self.seed}, seat {self.turn} to move\n{self.text()}"
        return IllegalActionError(action, legal, self.rules, state)

    # --- pictures ---

    def text(self) -> str:
        """The table as text, all hands shown."""
        return notation.draw_table(self.states[0], self.rules)

    def render(self) -> str | np.ndarray[Any, Any] | None:
        """The picture of the render mode: text for ``ansi``, ``uint8 [H, W, 3]`` for ``rgb_array``; else printed."""
        self.require_start("render()")
        if self.render_mode is None:
            warnings.warn(
                f"render() does nothing without a render_mode: make it with one of {', '.join(RENDER_MODES)}",
                stacklevel=3,
            )
            return None
        if self.render_mode == "rgb_array":
            return render.draw_rgb(self.states[0], self.rules)
        if self.render_mode == "ansi":
            return self.text()
        print(printable(self.text()), end="\n\n")  # noqa: T201 - "human" is this printing
        return None


class Agents:
    """What the AEC and the parallel environment have in common: agents, spaces, state and pictures.

    Args:
        rules: a preset name (``field=value`` words may follow), a YAML file, a `Rules`, or a mapping of rule fields.
        num_players: seats, 2 to 6; ``None`` keeps that of ``rules`` (4 in every preset).
        render_mode: ``human`` prints each position, ``ansi`` and ``rgb_array`` return it (all hands).
        illegal: what an illegal action does: ``raise`` refuses it and changes nothing; ``terminate`` ends the match for
            all with -1 for the offender, as PettingZoo's TerminateIllegalWrapper does.
        **overrides: rule fields on top of ``rules``.

    Raises:
        RulesError: rules that cannot be played.
        ValueError: an unknown render mode or ``illegal``.
    """

    def __init__(
        self,
        rules: str | Rules | Mapping[str, Any] = "first_out",
        num_players: int | None = None,
        render_mode: str | None = None,
        illegal: str = "raise",
        **overrides: Any,
    ) -> None:
        if illegal not in ILLEGAL_MODES:
            raise ValueError(f"illegal must be one of {', '.join(ILLEGAL_MODES)}, not {illegal!r}")
        self._table = Table(make_rules(rules, num_players, overrides), render_mode)
        self._illegal = illegal
        self.render_mode = render_mode
        self.possible_agents = [f"player_{seat}" for seat in range(self._table.num_players)]
        self._seat_of = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self.observation_spaces = {agent: self._table.observation_space() for agent in self.possible_agents}
        self.action_spaces = {agent: self._table.action_space() for agent in self.possible_agents}
        self.state_space = self._table.state_space()
        self.agents: list[str] = []

    @property
    def rules(self) -> Rules:
        """The rule set in play."""
        return self._table.rules

    def observation_space(self, agent: str) -> spaces.Dict:
        """The observation space, the same object at each call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """The action space, the same object at each call."""
        return self.action_spaces[agent]

    def view(self, agent: str) -> PlayerView:
        """What ``agent`` may know, as bots take it."""
        return self._table.view(self._seat_of[agent])

    def state(self) -> Int8Array:
        """The full-information state ``int8 [D_state]``, for centralised critics (all hands: never for players)."""
        return self._table.state()

    def render(self) -> Any:
        """The position in the render mode: a text, an image ``uint8 [H, W, 3]``, or printed."""
        return self._table.render()

    def close(self) -> None:
        """Release nothing: the environment holds no window, file or process."""


def make_rules(rules: str | Rules | Mapping[str, Any], num_players: int | None, overrides: dict[str, Any]) -> Rules:
    """The rule set of an environment's arguments; ``num_players=None`` keeps that of ``rules``.

    Raises:
        TypeError: a keyword that is neither an argument of environments nor a rule field: wrappers probe with those.
        RulesError: rules that cannot be played.
    """
    for key in overrides:
        if key not in FIELDS:
            known = [*_ARGUMENTS, *FIELDS]
            near = difflib.get_close_matches(key, known, 1)
            meant = f"; did you mean {near[0]!r}?" if near else f"; rule fields are {', '.join(FIELDS)}"
            raise TypeError(f"got an unexpected keyword argument {key!r}{meant}")
    if num_players is not None:
        overrides = {**overrides, "num_players": num_players}
    return Rules.of(rules, **overrides)


def as_action(action: Any) -> int:
    """An action as an ``int`` that the engine can refuse.

    Raises:
        TypeError: not a whole number (a float, ``None``, a vector).
    """
    try:
        number = operator.index(action)
        if isinstance(action, bool):
            raise TypeError
    except TypeError:
        raise TypeError(f"an action is a whole number (a card id or PASS), not {action!r}") from None
    return number if 0 <= number <= 255 else -1
