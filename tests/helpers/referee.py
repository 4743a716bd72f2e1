"""A naive referee of Devyatka, written from the rules page alone, for differential tests.

It is meant to be slow and plainly right: hands and rows are lists, every question is answered by
looking at them again. It shares no code with the engine. Each method names the section it does.
"""

from dataclasses import dataclass

SEATS = range(2, 7)  # rules, section 2
SUITS = range(2, 5)  # rules, section 1
RANKS = range(3, 14)  # rules, section 1
OPENING_SUIT = 1  # diamonds; in a mini-deck the second suit (rules, section 3)
POINTS = {"A": 11, "K": 4, "Q": 3, "J": 2, "T": 10}  # any other: its number (rules, section 7)
CHOICES = {
    "opening": ("holder", "left_of_dealer"),
    "end": ("first_out", "last_holder"),
    "foul": ("error", "exclude"),
    "payoff": ("win", "lose", "win_lose", "place", "cards", "points", "bank"),
}


class RefereeError(ValueError):
    """A rule set, a deal or an action that is refused; nothing changes."""


@dataclass(frozen=True)
class RefereeRules:
    """The rules as data (rules, sections 1 to 8 and 10); the defaults are the base preset."""

    num_players: int = 4
    suits: int = 4
    ranks: str = "6789TJQKA"
    starter: str = "9"
    opening: str = "holder"
    end: str = "first_out"
    cards_per_seat: int | None = None
    explicit_pass: bool = False
    foul: str = "error"
    passes_count: bool = False
    payoff: str = "win"
    ante: float = 1.0
    pass_fee: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what the rules page does not know (rules, sections 1, 2 and 8)."""
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise RefereeError(f"{name} must be one of {allowed}")
        if self.num_players not in SEATS or self.suits not in SUITS:
            raise RefereeError("2 to 6 seats and 2 to 4 suits")
        if len(self.ranks) not in RANKS or len(set(self.ranks)) != len(self.ranks):
            raise RefereeError("3 to 13 ranks, each once")
        if not set(self.ranks) <= set("23456789TJQKA"):
            raise RefereeError("a rank is one of 2 3 4 5 6 7 8 9 T J Q K A")
        if len(self.starter) != 1 or self.starter not in self.ranks:
            raise RefereeError("the starter is a rank of the deck")
        most = self.deck_size // self.num_players
        if self.cards_per_seat is not None and not 1 <= self.cards_per_seat <= most:
            raise RefereeError("too many or too few cards a seat")

    @property
    def deck_size(self) -> int:
        """How many cards the deck has, which is also the number of PASS (rules, section 1)."""
        return self.suits * len(self.ranks)

    @property
    def starter_rank(self) -> int:
        """The rank index of the starter (rules, section 1)."""
        return self.ranks.index(self.starter)

    @property
    def opening_card(self) -> int:
        """The card that opens the deal under `holder` (rules, section 3)."""
        return OPENING_SUIT * len(self.ranks) + self.starter_rank

    @property
    def passes_are_explicit(self) -> bool:
        """Whether a pass is an action: by option, and always with `exclude` (rules, section 5)."""
        return self.explicit_pass or self.foul == "exclude"

    def suit_and_rank(self, card: int) -> tuple[int, int]:
        """The suit index and the rank index of a card id (rules, section 1)."""
        return card // len(self.ranks), card % len(self.ranks)

    def points_of(self, card: int) -> int:
        """The points of a card (rules, section 7)."""
        letter = self.ranks[self.suit_and_rank(card)[1]]
        return POINTS[letter] if letter in POINTS else int(letter)


class Referee:
    """One deal, from the dealt hands to the places and the payoffs."""

    def __init__(self, rules: RefereeRules, hands: list[list[int]], dealer: int) -> None:
        """Take the dealt hands and bring the turn to the first seat (rules, sections 2 and 3)."""
        self.rules = rules
        self._check_deal(hands, dealer)
        self.hands: list[list[int]] = [sorted(hand) for hand in hands]
        self.rows: list[list[int]] = [[] for _ in range(rules.suits)]
        self.passes: list[int] = [0] * rules.num_players
        self.went_out: list[int] = []
        self.excluded: list[int] = []
        self.is_over: bool = False
        self.reason: str = ""
        self._must_open: int | None = None  # the one legal first card, until the first action
        if rules.opening == "holder":
            self._must_open = rules.opening_card
            self.turn: int = self._holder_of(rules.opening_card)
        else:
            self.turn = (dealer + 1) % rules.num_players
        self._pass_stuck_seats()

    # -- the deal and the opening -----------------------------------------------------------

    @staticmethod
    def can_begin(rules: RefereeRules, hands: list[list[int]]) -> bool:
        """Whether the first card is in some hand (rules, sections 2 and 3)."""
        for hand in hands:
            for card in hand:
                if rules.opening == "holder" and card == rules.opening_card:
                    return True
                is_starter = rules.suit_and_rank(card)[1] == rules.starter_rank
                if rules.opening == "left_of_dealer" and is_starter:
                    return True
        return False

    def _check_deal(self, hands: list[list[int]], dealer: int) -> None:
        """Refuse what is no deal of this deck (rules, section 2). Hand sizes are left free."""
        rules = self.rules
        dealt = [card for hand in hands for card in hand]
        if len(hands) != rules.num_players or any(not hand for hand in hands):
            raise RefereeError("one hand a seat, none empty")
        if dealer not in range(rules.num_players):
            raise RefereeError("the dealer is a seat")
        if len(set(dealt)) != len(dealt):
            raise RefereeError("a card is dealt twice")
        if any(card not in range(rules.deck_size) for card in dealt):
            raise RefereeError("a card is not of this deck")
        if rules.cards_per_seat is None and len(dealt) != rules.deck_size:
            raise RefereeError("the whole pack is dealt")
        if not self.can_begin(rules, hands):
            raise RefereeError("nobody can open: the deal cannot begin")

    def _holder_of(self, card: int) -> int:
        """The seat with this card (rules, section 3)."""
        return next(seat for seat, hand in enumerate(self.hands) if card in hand)

    # -- what fits --------------------------------------------------------------------------

    def _fits(self, card: int) -> bool:
        """Whether the table takes the card (rules, section 4; the first card: section 3)."""
        if self._must_open is not None:
            return card == self._must_open
        suit, rank = self.rules.suit_and_rank(card)
        row = self.rows[suit]
        if not row:
            return rank == self.rules.starter_rank
        return rank == max(row) + 1 or rank == min(row) - 1

    def _playable(self, seat: int) -> list[int]:
        """The cards of the seat that fit, ascending (rules, section 4)."""
        return sorted(card for card in self.hands[seat] if self._fits(card))

    def legal_actions(self) -> list[int]:
        """The legal actions of the seat to move, ascending (rules, section 4)."""
        if self.is_over:
            return []
        return self._playable(self.turn) or [self.rules.deck_size]

    def is_foul(self, action: int) -> bool:
        """Whether the action would exclude the seat to move (rules, section 5)."""
        if self.is_over or self.rules.foul != "exclude":
            return False
        if action in self.legal_actions():
            return False
        return action == self.rules.deck_size or action in self.hands[self.turn]

    # -- playing ----------------------------------------------------------------------------

    def play(self, action: int) -> None:
        """Play a card, pass, or commit a foul under `exclude` (rules, sections 4, 5 and 6)."""
        if self.is_over:
            raise RefereeError("the deal is over")
        seat = self.turn
        if self.is_foul(action):
            self._exclude(seat)
        elif action not in self.legal_actions():
            raise RefereeError(f"seat {seat} may not do {action}")
        elif action == self.rules.deck_size:
            self.passes[seat] += 1
        else:
            self._lay(seat, action)
        if self.is_over:
            self.turn = -1
        else:
            self.turn = self._next_seat(seat)
            self._pass_stuck_seats()

    def _lay(self, seat: int, card: int) -> None:
        """Put one card on the table; see whether the deal ends (rules, sections 4 and 6)."""
        suit, rank = self.rules.suit_and_rank(card)
        self._must_open = None
        self.hands[seat].remove(card)
        self.rows[suit] = sorted([*self.rows[suit], rank])
        if not self.hands[seat]:
            self.went_out.append(seat)
            if self.rules.end == "first_out":
                self._finish("out")
                return
            if len(self._seats_in()) == 1:
                self._finish("last_holder")
                return
        self._finish_if_blocked()

    def _exclude(self, seat: int) -> None:
        """The offender leaves with its cards (rules, section 5).

        If it was to open, any starter may open from now on (rules, section 6).
        """
        self._must_open = None
        self.excluded.append(seat)
        if len(self._seats_in()) == 1:
            self._finish("last_seat")
            return
        self._finish_if_blocked()

    def _finish_if_blocked(self) -> None:
        """End the deal if no seat still in can ever play (rules, section 6).

        The table changes only by a card, so nobody can ever play when nobody can play now.
        """
        if not any(self._playable(seat) for seat in self._seats_in()):
            self._finish("blocked")

    def _finish(self, reason: str) -> None:
        """End the deal (rules, section 6)."""
        self.is_over = True
        self.reason = reason

    # -- the turn ---------------------------------------------------------------------------

    def _seats_in(self) -> list[int]:
        """The seats still holding and not excluded (rules, sections 5 and 6)."""
        seats = range(self.rules.num_players)
        return [seat for seat in seats if self.hands[seat] and seat not in self.excluded]

    def _next_seat(self, seat: int) -> int:
        """The next seat clockwise that is still in (rules, sections 4 and 6)."""
        following = (seat + 1) % self.rules.num_players
        while following not in self._seats_in():
            following = (following + 1) % self.rules.num_players
        return following

    def _pass_stuck_seats(self) -> None:
        """Count a pass for each stuck seat the turn comes to (rules, sections 4 and 6)."""
        if self.rules.passes_are_explicit:
            return
        while not self._playable(self.turn):
            self.passes[self.turn] += 1
            self.turn = self._next_seat(self.turn)

    # -- places -----------------------------------------------------------------------------

    def cards_left(self) -> list[int]:
        """How many cards each seat has left, an excluded one too (rules, section 8)."""
        return [len(hand) for hand in self.hands]

    def card_points(self) -> list[int]:
        """The points of the cards each seat has left (rules, section 7)."""
        return [sum(self.rules.points_of(card) for card in hand) for hand in self.hands]

    def _rank_key(self, seat: int) -> tuple[int, int, int]:
        """What places a seat still holding; smaller is better (rules, section 7)."""
        passes = self.passes[seat] if self.rules.passes_count else 0
        return self.cards_left()[seat], passes, self.card_points()[seat]

    def places(self) -> list[int]:
        """The place of each seat, 1 the best, shared places alike (rules, section 7)."""
        if not self.is_over:
            raise RefereeError("the deal is on")
        places = [0] * self.rules.num_players
        for position, seat in enumerate(self.went_out):
            places[seat] = 1 + position
        holding = self._seats_in()
        for seat in holding:
            better = [rival for rival in holding if self._rank_key(rival) < self._rank_key(seat)]
            places[seat] = len(self.went_out) + len(better) + 1
        for position, seat in enumerate(self.excluded):
            places[seat] = self.rules.num_players - position
        return places

    # -- payoffs ----------------------------------------------------------------------------

    def payoffs(self) -> list[float]:
        """What each seat gets (rules, section 8)."""
        places = self.places()
        kind = self.rules.payoff
        if kind == "cards":
            return [float(-cards) for cards in self.cards_left()]
        if kind == "points":
            return [float(-points) for points in self.card_points()]
        if kind == "bank":
            return self._bank(places)
        if kind == "place":
            return [self._place_payoff(places, seat) for seat in range(len(places))]
        if len(set(places)) == 1:
            return [0.0] * len(places)
        if kind == "win":
            return self._one_against_rest(places, min(places), 1.0)
        if kind == "lose":
            return self._one_against_rest(places, max(places), -1.0)
        return self._win_lose(places)

    @staticmethod
    def _one_against_rest(places: list[int], place: int, amount: float) -> list[float]:
        """Split `amount` on `place`, its opposite on the rest (rules, section 8)."""
        sharing = places.count(place)
        rest = len(places) - sharing
        return [amount / sharing if mine == place else -amount / rest for mine in places]

    @staticmethod
    def _win_lose(places: list[int]) -> list[float]:
        """Place 1 takes 1, the last gives 1, divided if shared (rules, section 8)."""
        payoffs = [0.0] * len(places)
        for seat, place in enumerate(places):
            if place == min(places):
                payoffs[seat] = 1.0 / places.count(place)
            elif place == max(places):
                payoffs[seat] = -1.0 / places.count(place)
        return payoffs

    @staticmethod
    def _place_payoff(places: list[int], seat: int) -> float:
        """From +1 to -1 by the mean of the places spanned (rules, section 8)."""
        first = places[seat]
        spanned = range(first, first + places.count(first))
        mean = sum(spanned) / len(spanned)
        return 1.0 - 2.0 * (mean - 1.0) / (len(places) - 1)

    def _bank(self, places: list[int]) -> list[float]:
        """Every seat pays ante and passes; place 1 takes it all (rules, section 8)."""
        paid = [self.rules.ante + self.rules.pass_fee * passes for passes in self.passes]
        share = sum(paid) / places.count(1)
        taken = [share if place == 1 else 0.0 for place in places]
        return [taken[seat] - paid[seat] for seat in range(len(places))]
