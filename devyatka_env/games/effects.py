"""What a card brings about when all hands are open: whom it lets lay what, who must pass, who lays next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from devyatka_env.games.game import Game
from devyatka_env.rules import iter_mask


@dataclass(frozen=True)
class Effect:
    """What an action brings about, cards as texts.

    Attributes:
        gives: by other seat, the cards that it can lay from now on: on each side of the card, the run of the next one's
            holder, which nobody else can stop.
        own: the same of the seat that acts.
        passes: the seats that must pass now, in turn.
        next_seat: the seat that lays the next card; -1 when the deal is over.
        next_cards: the cards that it may lay.
        reason: why the deal is over (`records.REASONS`); "" while it is on.
    """

    gives: Mapping[int, tuple[str, ...]]
    own: tuple[str, ...]
    passes: tuple[int, ...]
    next_seat: int
    next_cards: tuple[str, ...]
    reason: str


def effect_of(game: Game, action: int) -> Effect:
    """What an action of the seat on turn brings about; the game itself is not changed.

    Raises:
        IllegalActionError: it is not legal.
    """
    mover, rules = game.turn, game.rules
    after = game.clone().play(action)
    beside = [] if action == rules.pass_action else _beside(game, action)
    gives = {
        seat: tuple(str(rules.deck.cards[card]) for holder, card in beside if holder == seat) for seat in dict(beside)
    }
    passes = [seat for seat, _ in after.history[len(game.history) + 1 :]]
    while not after.is_over and not after.legal_mask:  # explicit passes
        passes.append(after.turn)
        after.play(rules.pass_action)
    return Effect(
        own=gives.pop(mover, ()),
        gives=gives,
        passes=tuple(passes),
        next_seat=after.turn,
        next_cards=tuple(map(str, after.legal_cards())),
        reason=after.result().reason if after.is_over else "",
    )


def _beside(game: Game, card: int) -> list[tuple[int, int]]:
    """The cards ``(seat, card)`` that can be laid beside a card once it lies: on each side, one seat's run of them."""
    deck, table = game.rules.deck, game.table_mask
    holder = {one: seat for seat, mask in enumerate(game.hand_masks) for one in iter_mask(mask)}
    in_play = {seat for seat in range(game.num_players) if game.record["status"][seat] == 0}
    found = []
    for step in (-1, 1):
        one = card + step
        seat = holder.get(one, -1)
        while 0 <= one < deck.num_cards and one // deck.num_ranks == card // deck.num_ranks and not table >> one & 1:
            if holder.get(one, -1) != seat or seat not in in_play:
                break
            found.append((seat, one))
            one += step
    return sorted(found)
