"""`Game`: one deal as a friendly object.

For people, tests, notebooks and tools. Environments and batches use the engine's records directly.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from devyatka_env._files import parse_json, shown
from devyatka_env._schema import Schema, check
from devyatka_env.engine import REASONS, STATE_DTYPE, States, rules_record
from devyatka_env.engine.calls import begin_at, deal_at, deal_keyed_at, legal_actions, payoffs_at, step_at
from devyatka_env.engine.checks import check_records
from devyatka_env.engine.seeds import Secret, Seed, check_source, deal_key
from devyatka_env.engine.turn import ILLEGAL
from devyatka_env.games import notation
from devyatka_env.rules import MAX_PLAYERS, Card, DealError, Rules, RulesError, iter_mask
from devyatka_env.rules.hands import check_hands, hand_mask
from devyatka_env.rules.numbers import check_seed, is_whole
from devyatka_env.views import PlayerView

JSON_FORMAT = 1
_RECORD = "the game record"
_TEXTS = {"type": "array", "maxItems": 1000, "items": {"type": "string", "maxLength": 1000}}
_RECORD_SCHEMA: Schema = {
    "type": "object",
    "required": ["rules", "fingerprint", "dealer", "hands", "actions"],
    "properties": {
        "rules": {"type": "object"},
        "fingerprint": {"type": "string", "maxLength": 100},
        "dealer": {"type": "integer", "minimum": 0, "maximum": MAX_PLAYERS - 1},
        "hands": _TEXTS,
        "actions": _TEXTS,
    },
}


class IllegalActionError(ValueError):
    """An action that the rules refuse; nothing has changed.

    Attributes:
        action: what was given.
        legal: the legal actions, card ids or PASS.
        position: the position line, from which `Game.from_position` rebuilds the moment.
    """

    def __init__(self, action: Any, legal: Sequence[int], rules: Rules, position: str) -> None:
        self.action = action
        self.legal = list(legal)
        self.position = position
        self._rules = rules
        allowed = " ".join(notation.action_text(a, rules) for a in legal) or "none, the deal is over"
        shown: object = action
        if is_whole(action) and 0 <= int(action) <= rules.pass_action:
            shown = f"{int(action)} ({notation.action_text(int(action), rules)})"
        super().__init__(f"illegal action {shown}; legal: {allowed}; position: {position}")

    def __reduce__(self) -> tuple[Any, ...]:
        return IllegalActionError, (self.action, self.legal, self._rules, self.position)


@dataclass(frozen=True)
class Result:
    """The outcome of a deal, every field by seat but the last two.

    Attributes:
        places: 1 is best; shared places share the number.
        cards_left: cards in hand at the end.
        card_points: their points (rules, section 7).
        passes: passes counted.
        payoffs: by the preset's table (rules, section 8).
        reason: why the deal ended, one of `records.REASONS`.
        winners: the seats that share place 1.
    """

    places: tuple[int, ...]
    cards_left: tuple[int, ...]
    card_points: tuple[int, ...]
    passes: tuple[int, ...]
    payoffs: tuple[float, ...]
    reason: str
    winners: tuple[int, ...]


class Game:
    """One deal. Build it with `Game.deal`, `Game.from_hands`, `Game.from_position` or `Game.from_json`.

    Attributes:
        rules: the rule set.
        states: the engine's record, an array ``[1]`` of `records.STATE_DTYPE`.
        actions: the actions taken so far, automatic passes left out.
    """

    def __init__(self, rules: Rules, states: States, actions: Sequence[int] = ()) -> None:
        """Take a record as it stands.

        Raises:
            ValueError: rules that are none, or a record that cannot be of these rules.
        """
        check_records(states, rules, "states", (1,))
        self.rules = rules
        self.states = states
        self.actions = list(actions)

    @classmethod
    def _of(cls, rules: Rules, states: States, actions: Sequence[int] = ()) -> Game:
        """A game of a record that the engine has made: nothing is checked."""
        self = object.__new__(cls)
        self.rules, self.states, self.actions = rules, states, list(actions)
        return self

    # --- building a game ---

    @classmethod
    def deal(cls, rules: Rules | str = "first_out", seed: Seed = 0, index: int = 0) -> Game:
        """Deal number ``index`` of ``seed``: the very deal that every environment and batch plays.

        A `Secret` may stand for the seed.

        Raises:
            ValueError: a seed or index outside 0 to 2**64 - 1.
        """
        rules = Rules.of(rules)
        seed, index = check_source(seed), check_seed(index, "index")
        states = np.zeros(1, STATE_DTYPE)
        where = (states, 0, rules_record(rules), rules.num_players, rules.dealer(index))
        if isinstance(seed, Secret):
            deal_keyed_at(*where, deal_key(seed), np.uint64(index))
        else:
            deal_at(*where, np.uint64(seed), np.uint64(index))
        return cls._of(rules, states)

    @classmethod
    def from_hands(
        cls,
        rules: Rules | str,
        hands: Sequence[int | str | Sequence[Card | str | int]],
        dealer: int | None = None,
    ) -> Game:
        """Open a deal of given hands, each a card text (``"6♣ 9♦"``), a bitboard, or a list of cards or ids.

        Raises:
            DealError: wrong hand count or sizes, a card twice, missing, or nobody holds a starter.
            CardTextError: a card of another deck.
        """
        rules = Rules.of(rules)
        masks = [hand_mask(hand, rules) for hand in hands]
        dealer = rules.dealer(0) if dealer is None else dealer
        check_hands(masks, dealer, rules)
        states = np.zeros(1, STATE_DTYPE)
        if not begin_at(states, 0, rules_record(rules), np.array(masks, np.uint64), rules.num_players, dealer):
            raise DealError(f"no hand holds a starter ({rules.starter}), so nobody can open: deal again")
        return cls._of(rules, states)

    @classmethod
    def from_position(cls, text: str) -> Game:
        """Replay a position line (`devyatka_env.games.notation`).

        Raises:
            PositionTextError: it cannot be read.
            DealError: its hands cannot be dealt.
            IllegalActionError: its actions cannot have happened.
        """
        position = notation.parse_position(text)
        game = cls.from_hands(position.rules, position.hands, position.dealer)
        for action in position.actions:
            game.play(action)
        return game

    # --- the moment ---

    @property
    def record(self) -> np.void:
        """The engine's record."""
        record: np.void = self.states[0]
        return record

    @property
    def num_players(self) -> int:
        """Seats."""
        return int(self.record["num_players"])

    @property
    def turn(self) -> int:
        """The seat to move; -1 when the deal is over."""
        return int(self.record["turn"])

    @property
    def is_over(self) -> bool:
        """Whether the deal is over."""
        return self.turn < 0

    @property
    def legal_mask(self) -> int:
        """The legal cards of the seat on turn; 0 when it must pass."""
        return int(self.record["legal"])

    def legal_actions(self) -> list[int]:
        """The legal actions of the seat on turn, ascending: card ids, or PASS alone; none when the deal is over."""
        return legal_actions(self.record, self.rules)

    def legal_cards(self) -> list[Card]:
        """The legal cards of the seat on turn."""
        return [self.rules.deck.cards[card] for card in iter_mask(self.legal_mask)]

    @property
    def hand_masks(self) -> tuple[int, ...]:
        """Each seat's cards as a bitboard."""
        return tuple(self.record["hands"].tolist()[: self.num_players])

    @property
    def hands(self) -> tuple[tuple[Card, ...], ...]:
        """Each seat's cards in card order."""
        return tuple(tuple(self.rules.deck.cards[card] for card in iter_mask(mask)) for mask in self.hand_masks)

    @property
    def table_mask(self) -> int:
        """The cards on the table as a bitboard."""
        return int(self.record["table"])

    @property
    def table(self) -> tuple[Card, ...]:
        """The cards on the table in card order."""
        return tuple(self.rules.deck.cards[card] for card in iter_mask(self.table_mask))

    @property
    def dealt_masks(self) -> tuple[int, ...]:
        """Each seat's hand as it was dealt."""
        played = self.record["played"].tolist()
        return tuple(hand | laid for hand, laid in zip(self.hand_masks, played, strict=False))

    @property
    def dealer(self) -> int:
        """The dealer's seat."""
        return int(self.record["dealer"])

    @property
    def history(self) -> tuple[tuple[int, int], ...]:
        """``(seat, action)`` of every turn, automatic passes included as PASS."""
        game = Game.from_hands(self.rules, self.dealt_masks, self.dealer)
        turns: list[tuple[int, int]] = _passed_over(game.record, (0,) * MAX_PLAYERS, game.dealer, self.rules)
        for action in self.actions:
            seat, passes = game.turn, game.record["passes"].tolist()
            game.play(action)
            turns.append((seat, action))
            if action == self.rules.pass_action and game.record["status"][seat] == 0:
                passes[seat] += 1  # its own explicit pass is that turn, not one more
            turns += _passed_over(game.record, passes, seat, self.rules)
        return tuple(turns)

    def view(self, seat: int) -> PlayerView:
        """What ``seat`` may know now.

        Raises:
            ValueError: no such seat.
        """
        return PlayerView.of_state(self.states, 0, self.rules, seat)

    # --- playing ---

    def play(self, action: int | Card | str) -> Game:
        """Take an action for the seat on turn: a card (id, `Card`, text) or PASS (its id, ``"-"``). Returns the game.

        Raises:
            IllegalActionError: not legal now; nothing has changed.
            CardTextError: a text that is no card of this deck.
        """
        card = action
        if isinstance(card, Card):
            card = self.rules.deck.card_id(card)
        elif isinstance(card, str):
            card = notation.parse_action(card, self.rules)
        number = int(card) if is_whole(card) and -1 <= int(card) <= 255 else -1  # anything else the engine cannot hold
        if step_at(self.states, 0, rules_record(self.rules), number) == ILLEGAL:
            raise IllegalActionError(action, self.legal_actions(), self.rules, self.position)
        self.actions.append(number)
        return self

    def result(self) -> Result:
        """The outcome.

        Raises:
            ValueError: the deal is still on.
        """
        if not self.is_over:
            raise ValueError(f"the deal is not over: seat {self.turn} is to move")
        n = self.num_players
        payoffs = np.zeros(MAX_PLAYERS)
        payoffs_at(self.states, 0, rules_record(self.rules), payoffs)
        places = tuple(self.record["places"].tolist()[:n])
        return Result(
            places=places,
            cards_left=tuple(self.record["cards_left"].tolist()[:n]),
            card_points=tuple(self.rules.deck.points(mask) for mask in self.hand_masks),
            passes=tuple(self.record["passes"].tolist()[:n]),
            payoffs=tuple(payoffs.tolist()[:n]),
            reason=REASONS[int(self.record["reason"])],
            winners=tuple(seat for seat in range(n) if places[seat] == 1),
        )

    def clone(self) -> Game:
        """An independent copy."""
        return Game._of(self.rules, self.states.copy(), self.actions)

    # --- texts ---

    @property
    def position(self) -> str:
        """The position line; `Game.from_position` reads it back."""
        return notation.format_position(self.rules, self.dealer, self.dealt_masks, self.actions)

    def __str__(self) -> str:
        """The table and the seats as a person would draw them."""
        return notation.draw_table(self.record, self.rules)

    def __repr__(self) -> str:
        return f"<Game {self.position}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Game):
            return NotImplemented
        same_facts = bool((self.states == other.states).all())
        return same_facts and self.rules == other.rules and self.actions == other.actions

    __hash__ = None  # type: ignore[assignment]  # a game is mutable

    def to_json(self) -> str:
        """The deal and its actions as JSON; `Game.from_json` replays it."""
        deck = self.rules.deck
        content = {
            "format": JSON_FORMAT,
            "rules": self.rules.to_dict(),
            "fingerprint": self.rules.fingerprint,
            "dealer": self.dealer,
            "hands": [deck.text(mask) for mask in self.dealt_masks],
            "actions": [notation.action_text(action, self.rules) for action in self.actions],
        }
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Game:
        """Replay what `to_json` wrote.

        Raises:
            ValueError: another format, a damaged record, or one that breaks the rules.
        """
        content = parse_json(text, _RECORD)
        if not isinstance(content, dict) or content.get("format") != JSON_FORMAT:
            raise ValueError(f"not a game record of format {JSON_FORMAT}: {shown(text)}")
        check(content, _RECORD_SCHEMA, _RECORD)
        try:
            rules = Rules.of(content["rules"])
        except RulesError as error:
            raise RulesError(f"{_RECORD}: rules: {shown(str(error), 300)}") from error
        if rules.fingerprint != content["fingerprint"]:
            raise RulesError(
                f"the record was played under rules {shown(content['fingerprint'])}, these are {rules.fingerprint}"
            )
        game = cls.from_hands(rules, content["hands"], content["dealer"])
        for action in content["actions"]:
            game.play(action)
        return game


def _passed_over(record: np.void, before: Sequence[int], seat: int, rules: Rules) -> list[tuple[int, int]]:
    """The automatic passes since the counts ``before``, clockwise after ``seat``."""
    n = int(record["num_players"])
    after = record["passes"].tolist()
    order = [(seat + 1 + k) % n for k in range(n)]
    return [(other, rules.pass_action) for other in order if after[other] > before[other]]
