"""Agents that are broken on purpose, each in one way: what `devyatka check-agent` must name, and nothing else."""

from __future__ import annotations

import gc
import random
import sys
import threading
import time
from typing import Any

import numpy as np
import torch

from devyatka_env.bots import Bot, PolicyBot
from devyatka_env.engine import States
from devyatka_env.games import Deals, Game
from devyatka_env.rules import Rules
from devyatka_env.views import PlayerView
from tests.helpers.players import tiny_network

Rng = np.random.Generator


def first(view: PlayerView, rng: Rng) -> int:
    """Nothing wrong with it: the lowest legal action."""
    return view.legal_actions()[0]


def by_rng(view: PlayerView, rng: Rng) -> int:
    """Nothing wrong with it: a random legal action, by the generator that it is given."""
    return int(rng.choice(view.legal_actions()))


# --- failures --------------------------------------------------------------------------------------------------------


def illegal(view: PlayerView, rng: Rng) -> int:
    """Lays any card of its hand late in a deal."""
    if len(view.laid) < 12:
        return view.legal_actions()[0]
    return next(card for card in range(64) if view.hand_mask >> card & 1)


def out_of_range(view: PlayerView, rng: Rng) -> int:
    """Answers a number that is no action at all."""
    return 1000


def crash(view: PlayerView, rng: Rng) -> int:
    """Fails in the middle of a deal."""
    cards = view.hand
    return view.legal_actions()[0] if len(view.laid) < 8 else cards.index(cards[99])


def leaves(view: PlayerView, rng: Rng) -> int:
    """Ends the process."""
    sys.exit("enough")


class WrongRules(Bot):
    """Plays no rules at all."""

    name = "wrong_rules"

    def act(self, view: PlayerView, rng: Rng) -> int:
        return view.legal_actions()[0]

    def check_rules(self, rules: Rules) -> None:
        raise ValueError("no rules are good enough")


def nan_network() -> PolicyBot:
    """A checkpoint whose network answers NaN."""
    network = tiny_network()
    with torch.no_grad():
        network.policy_head.bias.fill_(float("nan"))
    return PolicyBot(network, name="nan_network")


def slow(view: PlayerView, rng: Rng) -> int:
    """Sleeps, but not at first."""
    time.sleep(0.3 if len(view.laid) > 8 else 0)
    return view.legal_actions()[0]


def slow_at_once(view: PlayerView, rng: Rng) -> int:
    """Sleeps at every move."""
    time.sleep(0.3)
    return view.legal_actions()[0]


def endless(view: PlayerView, rng: Rng) -> int:
    """Never answers late in a deal, and swallows every exception."""
    while len(view.laid) > 8:
        try:
            threading.Event().wait(0.01)
        except Exception:
            continue
    return view.legal_actions()[0]


class SlowStart(Bot):
    """Loads something at its first move."""

    name = "slow_start"
    _loaded = False

    def act(self, view: PlayerView, rng: Rng) -> int:
        if not self._loaded:
            time.sleep(0.3)
            self._loaded = True
        return view.legal_actions()[0]


# --- answers that are no numbers -------------------------------------------------------------------------------------


def answers_float(view: PlayerView, rng: Rng) -> Any:
    """A whole number as a float."""
    return float(view.legal_actions()[0])


def answers_none(view: PlayerView, rng: Rng) -> Any:
    """Nothing, where it has a choice."""
    return view.legal_actions()[0] if len(view.legal_actions()) == 1 else None


class AnswersBool(Bot):
    """A bool, which Python takes for a number."""

    name = "answers_bool"

    def act(self, view: PlayerView, rng: Rng) -> int:
        card = view.legal_actions()[0]
        return bool(card) if card < 2 else card


def answers_numpy(view: PlayerView, rng: Rng) -> Any:
    """A NumPy number: that is fine."""
    return np.uint8(view.legal_actions()[0])


class BatchOfFloats(Bot):
    """`act_batch` answers floats."""

    name = "batch_of_floats"

    def act(self, view: PlayerView, rng: Rng) -> int:
        return view.legal_actions()[0]

    def act_batch(self, views: States, rules: Rules, words: Any) -> Any:
        return super().act_batch(views, rules, words).astype(float)


# --- more than the view ----------------------------------------------------------------------------------------------


def _by_next_hand(view: PlayerView, hands: Any) -> int:
    """The lowest legal card when the next seat holds a card beside it, else the highest."""
    actions = view.legal_actions()
    other = int(hands[(view.seat + 1) % view.num_players])
    return actions[0] if other & (0b101 << actions[0] >> 1) else actions[-1]


_last_game: list[Game] = []


class PeeksByGlobal(Bot):
    """Has `Game` keep the last one in a global, from its making on."""

    name = "peeks_by_global"

    def __init__(self) -> None:
        make = Game.__dict__["_of"]

        def keep(cls: type[Game], *arguments: Any) -> Game:
            game: Game = make.__func__(cls, *arguments)
            _last_game[:] = [game]
            return game

        self.restore = lambda: setattr(Game, "_of", make)
        Game._of = classmethod(keep)  # type: ignore[assignment, method-assign]

    def act(self, view: PlayerView, rng: Rng) -> int:
        return _by_next_hand(view, _last_game[0].hand_masks)


def peeks_by_gc(view: PlayerView, rng: Rng) -> int:
    """Asks the garbage collector for the game in which it has its hand."""
    games = [thing for thing in gc.get_objects() if type(thing) is Game]
    own = [game for game in games if game.table_mask == view.table_mask and game.hands[view.seat] == view.hand]
    return _by_next_hand(view, own[-1].hand_masks)


def peeks_by_gc_at_deals(view: PlayerView, rng: Rng) -> int:
    """Asks the garbage collector for what the arena plays."""
    states = [thing.states[0] for thing in gc.get_objects() if type(thing) is Deals]
    own = [s for s in states if int(s["table"]) == view.table_mask and int(s["hands"][view.seat]) == view.hand_mask]
    return _by_next_hand(view, own[-1]["hands"])


def peeks_by_frame(view: PlayerView, rng: Rng) -> int:
    """Looks into its callers for whatever has hands."""
    frame = sys._getframe(1)
    while frame is not None:
        for thing in frame.f_locals.values():
            if isinstance(thing, Game):
                return _by_next_hand(view, thing.hand_masks)
            if isinstance(thing, Deals):
                return _by_next_hand(view, thing.states["hands"][0])
        frame = frame.f_back  # type: ignore[assignment]
    return view.legal_actions()[0]


def peeks_at_the_deal_number(view: PlayerView, rng: Rng) -> int:
    """Deals again what the caller's frame says is being played."""
    frame = sys._getframe(1)
    games = frame.f_locals.get("games")
    if not isinstance(games, Deals):
        return view.legal_actions()[0]
    return _by_next_hand(view, Game.deal(games.rules, games.seed, int(games.indices[0])).hand_masks)


class PeeksAtRandom(Bot):
    """Peeks in half of its moves, which it draws by itself."""

    name = "peeks_at_random"

    def __init__(self) -> None:
        self._rng = np.random.default_rng(5)

    def act(self, view: PlayerView, rng: Rng) -> int:
        if self._rng.random() < 0.5:
            return int(self._rng.choice(view.legal_actions()))
        return peeks_by_frame(view, rng)


class PeeksInBatches(Bot):
    """`act_batch` looks into its callers."""

    name = "peeks_in_batches"

    def act(self, view: PlayerView, rng: Rng) -> int:
        return peeks_by_frame(view, rng)

    def act_batch(self, views: States, rules: Rules, words: Any) -> Any:
        games = sys._getframe(1).f_locals["games"]
        seats = views["turn"].astype(int)
        looks = [PlayerView(views[i : i + 1].copy(), rules, seat) for i, seat in enumerate(seats)]
        return np.array([_by_next_hand(look, games.states["hands"][i]) for i, look in enumerate(looks)])


# --- more than the randomness given ----------------------------------------------------------------------------------


class DrawsItself(Bot):
    """Draws from a generator of its own."""

    name = "draws_itself"

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def act(self, view: PlayerView, rng: Rng) -> int:
        return int(self._rng.choice(view.legal_actions()))


def draws_globally(view: PlayerView, rng: Rng) -> int:
    """Draws from `random`."""
    return random.choice(view.legal_actions())


def draws_from_numpy(view: PlayerView, rng: Rng) -> int:
    """Draws from `np.random`."""
    return int(np.random.choice(view.legal_actions()))  # noqa: NPY002 - that is what is wrong with it


def draws_from_torch(view: PlayerView, rng: Rng) -> int:
    """Draws from torch."""
    actions = view.legal_actions()
    return actions[int(torch.randint(len(actions), (1,)))]


class SaysDeterministic(Bot):
    """Draws, and says that it doesn't."""

    name = "says_deterministic"
    deterministic = True

    def act(self, view: PlayerView, rng: Rng) -> int:
        return int(rng.choice(view.legal_actions()))


class Remembers(Bot):
    """Changes its mind after some games; it knows a new one by the cards laid."""

    name = "remembers"

    def __init__(self) -> None:
        self._games = 0
        self._laid = 0

    def act(self, view: PlayerView, rng: Rng) -> int:
        self._games += len(view.laid) < self._laid
        self._laid = len(view.laid)
        actions = view.legal_actions()
        return actions[0] if self._games % 5 else actions[-1]


class TakesTurns(Bot):
    """The lowest and the highest card by turns: not reproducible, and no look at anything hidden."""

    name = "takes_turns"

    def __init__(self) -> None:
        self.calls = 0

    def act(self, view: PlayerView, rng: Rng) -> int:
        self.calls += 1
        return view.legal_actions()[-(self.calls % 2)]


class RemembersDeterministically(Remembers):
    """The same, and says that it keeps nothing."""

    name = "remembers_deterministically"
    deterministic = True


# --- arguments and batches -------------------------------------------------------------------------------------------


def spoils_its_view(view: PlayerView, rng: Rng) -> int:
    """Changes the record that it is given."""
    action = view.legal_actions()[0]
    view.record["table"][0] = 0
    return action


class SpoilsWords(Bot):
    """`act_batch` changes its words."""

    name = "spoils_words"

    def act(self, view: PlayerView, rng: Rng) -> int:
        return view.legal_actions()[0]

    def act_batch(self, views: States, rules: Rules, words: Any) -> Any:
        words[:] = 0
        return super().act_batch(views, rules, words)


class OtherInBatches(Bot):
    """`act_batch` plays another way than `act`."""

    name = "other_in_batches"

    def act(self, view: PlayerView, rng: Rng) -> int:
        return view.legal_actions()[0]

    def act_batch(self, views: States, rules: Rules, words: Any) -> Any:
        looks = [PlayerView(views[i : i + 1].copy(), rules, int(views["turn"][i])) for i in range(len(views))]
        return np.array([look.legal_actions()[-1] for look in looks])


class Neighbourly(Bot):
    """`act_batch` heeds how many views there are."""

    name = "neighbourly"

    def act(self, view: PlayerView, rng: Rng) -> int:
        return view.legal_actions()[0]

    def act_batch(self, views: States, rules: Rules, words: Any) -> Any:
        looks = [PlayerView(views[i : i + 1].copy(), rules, int(views["turn"][i])) for i in range(len(views))]
        return np.array([look.legal_actions()[-(len(views) > 1)] for look in looks])


class DrawsOtherwise(Bot):
    """`act` and `act_batch` draw alike, but other numbers of the same word: worth knowing, no fault."""

    name = "draws_otherwise"

    def act(self, view: PlayerView, rng: Rng) -> int:
        actions = view.legal_actions()
        return actions[int(rng.random() * len(actions))]

    def act_batch(self, views: States, rules: Rules, words: Any) -> Any:
        looks = [PlayerView(views[i : i + 1].copy(), rules, int(views["turn"][i])) for i in range(len(views))]
        return np.array(
            [
                look.legal_actions()[int(word) * 0x9E3779B97F4A7C15 % 2**64 * len(look.legal_actions()) >> 64]
                for look, word in zip(looks, words, strict=True)
            ]
        )
