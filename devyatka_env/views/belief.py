"""What one seat can conclude about the cards it does not see: exact counts, probabilities and random deals.

A *deal* here is a way in which the hidden cards can lie that agrees with the view record of a running deal; all of them
are equally likely. That is the truth for a pack dealt at random and players of whom nothing is assumed: what the
*choice* of a card may tell about a hand is not used. A deal agrees with the record when

- every seat holds as many cards as it has left, an excluded one too, and the rest is out of play;
- no seat holds a card that the opening or one of its passes has ruled out (``cannot_hold``);
- under automatic passes the seat on turn holds a card that fits, for it was not passed over; under explicit passes some
  seat still in does, or the deal would have been over as blocked (rules, section 6).

Nothing else is known. The last line holds for every earlier moment, too, but the card laid next proves it there. A deal
without a starter, which is dealt again, never has a first card. Any hand can commit a foul, and the record does not
tell which it was. A finished deal is refused: its places depend on the points of hidden cards.

**Method.** The hidden cards are dealt out one by one to the *slots*: the seats and, last, the cards out of play. In how
many ways that can be finished depends only on the room left in each slot, which tells also how many cards, and so which
ones, are still to come: a table with one entry for each vector of rooms, at most 8**5 * 11 = 360,448 under any rules
(11.5 MB). The cards that fit come first, and a second column counts while none of them has gone to a seat that must
hold one. Counts are exact, in 128 bits: without any knowledge they would be at most 51!/(8!**3 * 9!**3) < 2**119. So
deals can be numbered, the table leads to deal number k, and a uniform random number gives a uniform random deal.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from devyatka_env.engine import STATE_DTYPE, States, rules_record
from devyatka_env.engine.compiling import kernel
from devyatka_env.rules.numbers import is_whole
from devyatka_env.views.view import PlayerView
from devyatka_env.views.worlds import (
    HIDDEN_DTYPE,
    NUM_SLOTS,
    Table,
    count_ways,
    deal_out,
    frame,
    make_worlds,
    random_deal,
    weigh,
)


class BeliefError(ValueError):
    """A view of a finished deal, or one that no deal agrees with."""


# --- for people and tools --------------------------------------------------------------------------------------------


@kernel
def _table_of(views: States, rules: States, viewer: int, frames: States) -> Table:
    ways = np.empty((frame(views[0], rules[0], viewer, frames[0]), 4), np.uint64)
    if len(ways):
        count_ways(frames[0], ways)
    return ways


@kernel
def _deal_out_all(frames: States, ways: Table, numbers: NDArray[np.uint64], hands: NDArray[np.uint64]) -> None:
    for i in range(len(numbers)):
        deal_out(frames[0], ways, numbers[i, 0], numbers[i, 1], hands[i])


@kernel
def _random_deals(frames: States, ways: Table, state: np.uint64, hands: NDArray[np.uint64]) -> None:
    for i in range(len(hands)):
        state = random_deal(frames[0], ways, state, hands[i])


@kernel
def _weigh_all(frames: States, ways: Table, out: NDArray[np.float64]) -> None:
    weigh(frames[0], ways, out)


@kernel
def _make_worlds(views: States, rules: States, frames: States, ways: Table, state: np.uint64, worlds: States) -> None:
    make_worlds(views[0], rules[0], frames[0], ways, state, worlds)


class Belief:
    """The deals that agree with a view, all equally likely.

    Slots are the seats in order and, last, the cards out of play (none when the whole pack is dealt). An excluded seat
    still holds its cards.

    Attributes:
        view: the view at the time.
        count: the number of deals, exact.
    """

    def __init__(self, view: PlayerView) -> None:
        """Count the deals.

        Raises:
            ValueError: no `PlayerView`.
            BeliefError: the deal is over, or no deal agrees with the view.
        """
        if not isinstance(view, PlayerView):
            raise ValueError(f"view must be a PlayerView, what one seat knows: game.view(seat), not {view!r}")
        self.view = PlayerView(view.record.copy(), view.rules, view.seat)
        self._frames = np.zeros(1, HIDDEN_DTYPE)
        self._ways: Table = _table_of(self.view.record, rules_record(view.rules), view.seat, self._frames)
        if view.is_over:
            raise BeliefError(f"{view!r}: the deal is over; beliefs are for running deals")
        if not len(self._ways):
            raise BeliefError(
                f"{view!r}: {view.unseen_mask.bit_count()} cards are hidden, but the other seats have"
                f" {sum(view.cards_left) - view.cards_left[view.seat]} left and"
                f" {view.rules.deck.num_cards - sum(self.view.record['dealt'][0].tolist())} were not dealt"
            )
        low, high = self._ways[-1].tolist()[2 * int(self._frames["pending"][0]) :][:2]
        self.count: int = low + (high << 64)
        if not self.count:
            raise BeliefError(f"{view!r}: the cards cannot lie in any way that agrees with the passes and the turn")

    @cached_property
    def marginals(self) -> NDArray[np.float64]:
        """``float64 [num_players + 1, C]``, read-only: the probability that a slot holds a card.

        0 is written for what is impossible and for nothing else; any other value has a relative error below 1e-11, the
        bound for adding up the positive terms, and in practice below 1e-13. Cards on the table are 0 everywhere, the
        viewer's row is its hand.
        """
        out = np.empty((self.view.num_players + 1, self.view.rules.deck.num_cards))
        _weigh_all(self._frames, self._ways, out)
        out.flags.writeable = False
        return out

    @cached_property
    def void_masks(self) -> tuple[int, ...]:
        """By slot, the cards it certainly does not hold: by the opening, by passes, by counting, or seen elsewhere."""
        rows = self.marginals == 0
        return tuple(sum(1 << card for card in np.flatnonzero(row).tolist()) for row in rows)

    def deals(self, numbers: Sequence[int]) -> NDArray[np.uint64]:
        """Some of the deals by their numbers, each from 0 to ``count - 1``: ``range(count)`` gives every deal once.

        Returns:
            ``uint64 [len(numbers), num_players + 1]``, the hand of each slot.

        Raises:
            ValueError: no such number.
        """
        halves = np.empty((len(numbers), 2), np.uint64)
        for i, number in enumerate(map(operator.index, numbers)):
            if not 0 <= number < self.count:
                raise ValueError(f"deals are numbered 0 to {self.count - 1}, not {number!r}")
            halves[i] = number & 0xFFFFFFFFFFFFFFFF, number >> 64
        hands = np.empty((len(numbers), NUM_SLOTS), np.uint64)
        _deal_out_all(self._frames, self._ways, halves, hands)
        return hands[:, : self.view.num_players + 1]

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.uint64]:
        """Draw ``n`` deals, each uniform among all and independent of the others.

        Returns:
            ``uint64 [n, num_players + 1]``, the hand of each slot.

        Raises:
            ValueError: no generator, or ``n`` is not a whole number from 0.
        """
        _check_number(n)
        hands = np.empty((n, NUM_SLOTS), np.uint64)
        _random_deals(self._frames, self._ways, random_word(rng), hands)
        return hands[:, : self.view.num_players + 1]

    def sample_states(self, rng: np.random.Generator, n: int) -> States:
        """Draw ``n`` deals as engine records ``[n]`` of `STATE_DTYPE`, ready to be played on.

        The same deals as `sample` draws from the same generator, and the same errors.
        """
        _check_number(n)
        worlds = np.empty(n, STATE_DTYPE)
        _make_worlds(
            self.view.record, rules_record(self.view.rules), self._frames, self._ways, random_word(rng), worlds
        )
        return worlds


def _check_number(n: int) -> None:
    if not is_whole(n) or n < 0:
        raise ValueError(f"n must be a whole number, at least 0, not {n!r}")


def random_word(rng: np.random.Generator) -> np.uint64:
    """64 random bits.

    Raises:
        ValueError: no numpy generator.
    """
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a numpy Generator, such as np.random.default_rng(0), not {rng!r}")
    return rng.integers(0, 2**64, dtype=np.uint64)
