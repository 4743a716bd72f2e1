"""`Match`: deals in a row with a moving dealer (rules, section 9)."""

from __future__ import annotations

import math

from devyatka_env.engine.seeds import Seed, check_source
from devyatka_env.games.game import Game
from devyatka_env.rules import Rules
from devyatka_env.rules.numbers import check_seed


class Match:
    """``rules.deals`` deals in a row, the dealer moving one seat clockwise after each (rules, section 9).

    Attributes:
        rules: the rule set.
        game: the deal in play.
        deal_number: its number within the match, from 0.
    """

    def __init__(self, rules: Rules | str, seed: Seed = 0, index: int = 0) -> None:
        self.rules = Rules.of(rules)
        self._seed = check_source(seed)
        self._first = check_seed(index, "index") * self.rules.deals
        self.deal_number = 0
        self._payoffs: list[tuple[float, ...]] = []
        self.game = Game.deal(self.rules, seed, self._first)

    @property
    def is_over(self) -> bool:
        """Whether every deal has been played and counted."""
        return self.deal_number == self.rules.deals

    def next_deal(self) -> Game | None:
        """Count the finished deal and deal the next; ``None`` after the last.

        Raises:
            ValueError: the deal is still on, or the match is over.
        """
        if self.is_over:
            raise ValueError(f"the match of {self.rules.deals} deals is over")
        self._payoffs.append(self.game.result().payoffs)
        self.deal_number += 1
        if self.is_over:
            return None
        self.game = Game.deal(self.rules, self._seed, self._first + self.deal_number)
        return self.game

    @property
    def totals(self) -> tuple[float, ...]:
        """Payoffs added up over the counted deals, by seat."""
        return tuple(math.fsum(deal[seat] for deal in self._payoffs) for seat in range(self.rules.num_players))

    def places(self) -> tuple[int, ...]:
        """Standings by the totals so far: the best total is place 1, equal totals share."""
        totals = [round(total, 9) for total in self.totals]  # thirds that add up to the same must not differ in the end
        return tuple(1 + sum(other > total for other in totals) for total in totals)
