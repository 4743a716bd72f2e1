"""`PlayerView`: exactly what one seat may know, as a type.

A view is built from a *view record*: an engine record in which the engine has blanked the other hands (and the legal
cards of another seat on turn). A bot that is given a view has nothing to peek at.
"""

from __future__ import annotations

import numpy as np

from devyatka_env.engine import STATE_DTYPE, States, rules_record
from devyatka_env.engine.calls import blank_at, could_hold_at, fitting_at
from devyatka_env.engine.checks import check_records, check_seat
from devyatka_env.rules import Card, Rules, iter_mask
from devyatka_env.rules.numbers import is_whole
from devyatka_env.views.layout import Int8Array, observation_layout
from devyatka_env.views.observation import encode_at


class PlayerView:
    """One seat's knowledge of a deal: its hand, the public table, and what passes have proved.

    Attributes:
        rules: the rule set.
        seat: the seat that looks, 0 to n-1.
        record: the view record, an array ``[1]`` of `STATE_DTYPE`, as compiled bots read it.

    Raises:
        ValueError: a record that cannot be of these rules, rules that are none, or a seat that is not there.
    """

    __slots__ = ("record", "rules", "seat")

    def __init__(self, record: States, rules: Rules, seat: int) -> None:
        check_records(record, rules, "record", (1,))
        self.record = record
        self.rules = rules
        self.seat = check_seat(seat, rules.num_players)

    @classmethod
    def _of(cls, record: States, rules: Rules, seat: int) -> PlayerView:
        """A view of a record that the engine has made: nothing is checked."""
        self = object.__new__(cls)
        self.record, self.rules, self.seat = record, rules, seat
        return self

    @classmethod
    def of_state(cls, states: States, index: int, rules: Rules, seat: int) -> PlayerView:
        """Blank a copy of ``states[index]`` for ``seat``.

        Raises:
            ValueError: no such seat in this deal.
        """
        is_states = isinstance(states, np.ndarray) and states.dtype == STATE_DTYPE and states.ndim == 1
        if not is_states or not is_whole(index) or not 0 <= index < len(states):
            raise ValueError(f"states must be an array of STATE_DTYPE, and index one of it, not {index!r}")
        seat = check_seat(seat, int(states["num_players"][index]))
        record = np.zeros(1, STATE_DTYPE)
        blank_at(states, index, seat, record)
        return cls._of(record, rules, seat)

    def observation(self) -> Int8Array:
        """What a network is shown of this view, ``int8 [D]`` (`devyatka_env.views.observation_layout`)."""
        return self._encoded()[0]

    def action_mask(self) -> Int8Array:
        """The legal actions, ``int8 [C + 1]``; PASS alone for a seat that is not on turn, or stuck."""
        return self._encoded()[1]

    def _encoded(self) -> tuple[Int8Array, Int8Array]:
        out = np.empty(observation_layout(self.rules.deck.num_cards).size, np.int8)
        mask = np.empty(self.rules.pass_action + 1, np.int8)
        encode_at(self.record, 0, rules_record(self.rules), self.seat, out, mask)
        return out, mask

    def _list(self, field: str) -> tuple[int, ...]:
        return tuple(self.record[field][0].tolist()[: self.num_players])

    @property
    def num_players(self) -> int:
        """Seats in the deal."""
        return int(self.record["num_players"][0])

    @property
    def hand_mask(self) -> int:
        """The seat's own cards."""
        return int(self.record["hands"][0, self.seat])

    @property
    def hand(self) -> tuple[Card, ...]:
        """The seat's own cards in card order."""
        return tuple(self.rules.deck.cards[card] for card in iter_mask(self.hand_mask))

    @property
    def table_mask(self) -> int:
        """The cards on the table."""
        return int(self.record["table"][0])

    @property
    def fitting_mask(self) -> int:
        """The cards that the rows take now, whoever holds them."""
        return int(fitting_at(self.record, 0, rules_record(self.rules)))

    @property
    def legal_mask(self) -> int:
        """The seat's legal cards; 0 when it is not on turn or has to pass."""
        return int(self.record["legal"][0])

    def legal_actions(self) -> list[int]:
        """The seat's legal actions, ascending; only PASS when it is not on turn, is stuck, or the deal is over."""
        return list(iter_mask(self.legal_mask)) or [self.rules.pass_action]

    @property
    def turn(self) -> int:
        """The seat to move; -1 when the deal is over."""
        return int(self.record["turn"][0])

    @property
    def is_over(self) -> bool:
        """Whether the deal is over."""
        return self.turn < 0

    @property
    def dealer(self) -> int:
        """The dealer's seat."""
        return int(self.record["dealer"][0])

    @property
    def opener(self) -> int:
        """The seat that moved first; -1 while that is open."""
        return int(self.record["opener"][0])

    @property
    def cards_left(self) -> tuple[int, ...]:
        """Cards in each hand, by seat."""
        return self._list("cards_left")

    @property
    def passes(self) -> tuple[int, ...]:
        """Passes of each seat."""
        return self._list("passes")

    @property
    def status(self) -> tuple[int, ...]:
        """By seat: 0 still in; k > 0 went out k-th; k < 0 excluded (-k)-th."""
        return self._list("status")

    @property
    def played_masks(self) -> tuple[int, ...]:
        """The cards that each seat has laid."""
        return self._list("played")

    @property
    def cannot_hold_masks(self) -> tuple[int, ...]:
        """By seat, the cards that its passes (and the opening) prove it does not hold."""
        return self._list("cannot_hold")

    def could_hold_mask(self, seat: int) -> int:
        """The cards that ``seat`` may hold as far as this view tells.

        For the viewer its hand; for another seat the unseen cards less those its passes rule out.

        Raises:
            ValueError: no such seat.
        """
        seat = check_seat(seat, self.num_players)
        rules = rules_record(self.rules)
        return int(could_hold_at(self.record, 0, rules, self.seat, seat))

    @property
    def unseen_mask(self) -> int:
        """The cards neither on the table nor in the viewer's hand."""
        return self.rules.deck.mask & ~self.table_mask & ~self.hand_mask

    @property
    def laid(self) -> tuple[Card, ...]:
        """The cards on the table in the order they were laid."""
        order = self.record["log"][0, : int(self.record["num_played"][0])]
        return tuple(self.rules.deck.cards[card] for card in order)

    def __eq__(self, other: object) -> bool:
        """Equal when the rules, the seat and every known fact are equal."""
        if not isinstance(other, PlayerView):
            return NotImplemented
        return self.seat == other.seat and self.rules == other.rules and bool((self.record == other.record).all())

    __hash__ = None  # type: ignore[assignment]  # a view wraps a mutable record

    def __repr__(self) -> str:
        deck = self.rules.deck
        return f"<PlayerView seat {self.seat}: hand {deck.text(self.hand_mask)}, table {deck.text(self.table_mask)}>"
