"""Ceilings: the most that a seat can get against given bots, on a given deal, by any play whatever.

A seat that sees all hands and knows what its opponents will do plays a best response, found exactly
(`devyatka_env.bots.best_response`). No policy, however clever, does better against those bots on that deal, by the
rules: fouls (``foul="exclude"``) are not considered. Averaged over deals it is the ceiling of every evaluation against
them; an honest player, who sees one hand, stays below it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots.base import Bot, CallableBot
from devyatka_env.bots.best_response import MAX_STATES, Ends, best_ends, check_opponents, must_be_asked
from devyatka_env.bots.registry import BotSpec, make_opponents
from devyatka_env.bots.scripted import GreedyBot
from devyatka_env.engine.seeds import Seed
from devyatka_env.games import Deals, Game
from devyatka_env.games.deals import deal_indices
from devyatka_env.rules import Rules, iter_mask
from devyatka_env.rules.numbers import is_whole
from devyatka_env.solver import StateLimitError
from devyatka_env.solver.solution import Frozen, check_game, small_deal
from devyatka_env.solver.transpositions import check_limit, limit_error

# Deals searched at a time when bots are asked in batches: enough for a network, few enough for the memory.
_DEALS_AT_ONCE = 64


@dataclass(frozen=True)
class Ceiling:
    """The best response of one seat.

    Attributes:
        seat: the seat that responds.
        against: names of its opponents, clockwise from it.
        value: its payoff.
        won: whether it has place 1, maybe shared.
        payoffs: of all seats.
        places: of all seats.
        line: all actions from the position given to the end of the deal, as action ids.
        states: positions searched in which the seat had a choice.
        seconds: time taken by the search and the bots; loading or compiling its kernels is not counted.
    """

    seat: int
    against: tuple[str, ...]
    value: float
    won: bool
    payoffs: tuple[float, ...]
    places: tuple[int, ...]
    line: tuple[int, ...]
    states: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Ceilings(Frozen):
    """The best responses of every seat in each of some deals. Its arrays are read-only.

    Attributes:
        rules: the rule set.
        against: names of the opponents, clockwise from the seat that responds.
        seed: seed of the deals.
        indices: ``uint64 [D]``, the deals.
        values: ``float64 [D, n]``, the highest payoff of each seat when it responds.
        wins: ``float64 [D, n]``, its highest share of place 1 when it plays for that instead: 1, 0, or a part when
            places are shared.
        states: ``int64 [D, n]``, positions searched in which it had a choice.
        seconds: time taken, counted as in `Ceiling`.
    """

    rules: Rules
    against: tuple[str, ...]
    seed: Seed
    indices: NDArray[np.uint64]
    values: NDArray[np.float64]
    wins: NDArray[np.float64]
    states: NDArray[np.int64]
    seconds: float


def ceiling(game: Game, seat: int, opponents: BotSpec | Sequence[BotSpec], *, max_states: int = MAX_STATES) -> Ceiling:
    """The exact best response of ``seat``, which sees all hands, against deterministic bots in the other seats.

    Args:
        game: a running deal.
        seat: the seat that responds; it need not be on turn.
        opponents: one bot for all other seats, or one each, clockwise from ``seat`` (as `make_bot` takes them).
        max_states: positions with a choice that the search may take.

    Raises:
        ValueError: no game; the deal is over; a hand is blank; no such seat; a wrong number of opponents; one that is
            not deterministic or does not play these rules; or ``max_states`` is no number from 1.
        StateLimitError: more positions would be needed; most at two seats against a bot that reads the order of play.
        BotError: an opponent failed, or chose an illegal action or a foul.
    """
    check_game(game)
    n = game.num_players
    if not is_whole(seat) or not 0 <= seat < n:
        raise ValueError(f"seat must be 0 to {n - 1}, not {seat!r}")
    bots = make_opponents(opponents, n - 1)
    _prepare(bots, game.rules, max_states)
    start = time.perf_counter()
    try:
        ends = _ends(game, int(seat), bots, max_states)
    except StateLimitError as error:
        raise limit_error(max_states, f"the responses of seat {seat} in {game.position}") from error
    places = tuple(ends.records["places"][0].tolist()[:n])
    payoffs = tuple(ends.payoffs[0].tolist()[:n])
    return Ceiling(
        seat=int(seat),
        against=tuple(bot.name for bot in bots),
        value=payoffs[seat],
        won=places[seat] == 1,
        payoffs=payoffs,
        places=places,
        line=_line(game, ends),
        states=int(ends.states[0]),
        seconds=time.perf_counter() - start,
    )


def _ends(game: Game, seat: int, bots: Sequence[Bot], max_states: int) -> Ends:
    """`best_ends` of a single game."""
    deals = Deals(game.rules, np.zeros(1, np.int64))
    deals.states[:] = game.states
    return best_ends(deals, np.array([seat]), bots, max_states)


def _prepare(bots: Sequence[Bot], rules: Rules, max_states: int) -> None:
    """Refuse what cannot be searched, and see to it that clocks measure no loading or compiling of kernels."""
    check_opponents(bots, rules)
    check_limit(max_states)
    _load_kernels(must_be_asked(bots))


@cache
def _load_kernels(for_asking: bool) -> None:
    """Load or compile the kernels, which are others for bots that must be asked."""
    game = small_deal()
    asked = CallableBot(lambda view, rng: view.legal_actions()[0], "first_card", deterministic=True)
    _line(game, _ends(game, game.turn, [asked if for_asking else GreedyBot()], MAX_STATES))


def _line(game: Game, ends: Ends) -> tuple[int, ...]:
    """The actions that lead from ``game`` to the end found: the cards of its log, and explicit passes between them."""
    play = game.clone()
    end = ends.records[0]
    for card in end["log"][int(game.record["num_played"]) : int(end["num_played"])].tolist():
        while card not in iter_mask(play.legal_mask):
            play.play(game.rules.pass_action)
        play.play(card)
    return tuple(play.actions[len(game.actions) :])


def ceilings(
    rules: Rules | str,
    opponents: BotSpec | Sequence[BotSpec],
    indices: NDArray[np.integer],
    seed: Seed = 0,
    *,
    max_states: int = MAX_STATES,
) -> Ceilings:
    """The exact best response of every seat in each of some deals: the ceiling of `evaluation.evaluate` on them.

    Args:
        rules: the rule set (as `Rules.of` takes it). Of a match every deal is counted by itself.
        opponents: one bot for all other seats, or one each, clockwise from the seat that responds.
        indices: ``[D]`` deal indices; `evaluate` plays 0 to ``deals - 1``.
        seed: seed of the deals.
        max_states: positions with a choice that the search of one seat in one deal may take.

    Raises:
        ValueError: a wrong number of opponents, one that is not deterministic or does not play these rules, bad
            indices, or ``max_states`` is no number from 1.
        StateLimitError: more positions would be needed.
        BotError: an opponent failed, or chose an illegal action or a foul.
    """
    rules = Rules.of(rules)
    n = rules.num_players
    bots = make_opponents(opponents, n - 1)
    if np.ndim(indices) != 1 or not len(indices):
        raise ValueError(f"no deal indices given: they must be a list of at least one whole number, not {indices!r}")
    deals = Deals(rules, np.repeat(deal_indices(indices), n), seed)
    _prepare(bots, rules, max_states)
    start = time.perf_counter()
    seats = np.tile(np.arange(n), len(deals) // n)
    for_payoff = _all_ends(deals, seats, bots, max_states, rules)
    # A payoff may leave several best responses, of which some win. A bot is shown the rules as they are.
    to_win = Rules.of(rules, payoff="win", ante=Rules.ante, pass_fee=Rules.pass_fee)
    for_place = for_payoff if rules.payoff == "win" else _all_ends(deals, seats, bots, max_states, to_win)
    rows, firsts = np.arange(len(deals)), for_place.records["places"] == 1
    return Ceilings(
        rules=rules,
        against=tuple(bot.name for bot in bots),
        seed=seed,
        indices=deals.indices[::n].copy(),
        values=for_payoff.payoffs[rows, seats].reshape(-1, n),
        wins=(firsts[rows, seats] / firsts.sum(1)).reshape(-1, n),
        states=(for_payoff.states + (for_place is not for_payoff) * for_place.states).reshape(-1, n),
        seconds=time.perf_counter() - start,
    )


def _all_ends(deals: Deals, seats: NDArray[np.int64], bots: Sequence[Bot], max_states: int, goal: Rules) -> Ends:
    """`best_ends`, some deals at a time."""
    step = _DEALS_AT_ONCE * deals.rules.num_players
    parts = []
    for first in range(0, len(deals), step):
        part = slice(first, first + step)
        some = Deals(deals.rules, deals.indices[part], deals.seed)
        parts.append(best_ends(some, seats[part], bots, max_states, goal))
    return Ends(
        records=np.concatenate([part.records for part in parts]),
        payoffs=np.concatenate([part.payoffs for part in parts]),
        states=np.concatenate([part.states for part in parts]),
    )
