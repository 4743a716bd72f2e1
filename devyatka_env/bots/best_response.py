"""The best end that one seat can reach against bots whose choices are known: the search behind `bots.ceiling_values`.

Against deterministic bots the rest of a deal is a maze for the one seat that chooses: every course it can take leads to
one end, and the best of them is the exact best response. Two courses that lead to the same position are searched once,
where "the same" includes everything that an opponent looks at (`Bot.reads_history`, `Bot.reads_order`).

Scripted bots that do not read the history are played in compiled code. With any other bot, blocks of positions of many
deals advance together, so that a network is asked for many of them in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots.base import Bot
from devyatka_env.bots.rollout import OUTSIDE, BotError, Index, play_on
from devyatka_env.bots.scripted import scripted_choice, scripted_code
from devyatka_env.engine import STATE_DTYPE, States, rules_record
from devyatka_env.engine.bitboards import lowest
from devyatka_env.engine.compiling import call, kernel
from devyatka_env.engine.knowledge import blank
from devyatka_env.engine.payoffs import write_payoffs
from devyatka_env.engine.records import MAX_CARDS
from devyatka_env.engine.turn import step
from devyatka_env.games import Deals
from devyatka_env.rules import MAX_PLAYERS, Rules
from devyatka_env.solver.transpositions import (
    FULL,
    STAMP,
    USED,
    Meter,
    Numbers,
    add,
    check_limit,
    empty_table,
    find,
    limit_error,
    new_meter,
    position_key,
)
from devyatka_env.solver.tree_search import is_settled, payoff_range

# Positions in which the seat has a choice, for one deal and seat. In compiled code a million take a few seconds.
MAX_STATES = 1_000_000

_ONE = np.uint64(1)
_NO_WORD = np.uint64(0)  # of randomness: these bots use none


@dataclass(frozen=True, eq=False)
class Ends:
    """The best end of each of some deals, for the seat in question.

    Attributes:
        records: ``[K]`` of `records.STATE_DTYPE`, the finished deals; their logs tell how they went.
        payoffs: ``float64 [K, 6]`` of all seats, under the rules that the search went by.
        states: ``int64 [K]``, positions searched in which the seat had a choice.
    """

    records: States
    payoffs: NDArray[np.float64]
    states: Index


def check_opponents(bots: Sequence[Bot], rules: Rules) -> None:
    """Refuse opponents against which there is no exact best response.

    Raises:
        ValueError: a bot that is not deterministic, or does not play these rules.
    """
    for bot in bots:
        bot.check_rules(rules)
        if not bot.deterministic:
            raise ValueError(
                f"bot {bot.name} is not deterministic, so no best response to it is exact; give bots that are, such as"
                " greedy or a checkpoint without +sample (a bot of your own says so by `deterministic = True`)"
            )


def must_be_asked(bots: Sequence[Bot]) -> bool:
    """Whether some of the bots cannot be played in compiled code."""
    return any(scripted_code(bot) < 0 or bot.reads_history for bot in bots)


def best_ends(
    deals: Deals, seats: Index, bots: Sequence[Bot], max_states: int = MAX_STATES, goal: Rules | None = None
) -> Ends:
    """The best end for one seat in each of some running deals, all hands seen, against given bots.

    Args:
        deals: the deals, ``K`` games.
        seats: ``int64 [K]``, the seats that respond.
        bots: the opponents of every one of them, ``n - 1`` clockwise from it.
        max_states: positions with a choice that the search of one of the deals may take.
        goal: the rules whose payoff is sought, if it is another than that of the rules played (and shown to the bots).

    Raises:
        ValueError: an opponent that is not deterministic, or does not play these rules; or ``max_states`` is no number
            from 1.
        StateLimitError: a deal takes more positions.
        BotError: an opponent failed, or chose an illegal action or a foul.
    """
    check_opponents(bots, deals.rules)
    check_limit(max_states)
    goal = deals.rules if goal is None else goal
    if not must_be_asked(bots):
        codes = np.array([scripted_code(bot) for bot in bots])
        return _compiled(deals, seats, codes, max_states, goal)
    return _InBlocks(deals, seats, bots, max_states, goal).run()


# --- compiled --------------------------------------------------------------------------------------------------------


@kernel
def _worth_trying(s: Any, goal: Any, seat: int) -> np.uint64:
    """The legal cards of the seat on turn; just one when that is ``seat`` and all is settled for it."""
    legal: np.uint64 = s.legal
    if s.turn == seat and is_settled(s, goal, seat):
        legal &= np.uint64(0) - legal
    return legal


@kernel
def _to_own_choice(s: Any, r: Any, goal: Any, seat: int, codes: Index, view: States, action: np.int64) -> None:
    """Take ``action`` (-1: none), then play on to a turn on which ``seat`` has a choice that matters, or to the end."""
    while True:
        if action >= 0:
            step(s, r, action)
        if s.turn < 0:
            return
        mover = np.int64(s.turn)
        cards = _worth_trying(s, goal, seat)
        if cards & (cards - _ONE) == np.uint64(0):
            action = np.int64(lowest(cards) if cards else r.num_cards)
        elif mover == seat:
            return
        else:
            blank(s, mover, view[0])
            code = codes[(mover - seat - 1) % s.num_players]
            action = np.int64(scripted_choice(code, view[0], r, _NO_WORD))


@kernel
def _best_end(
    s: Any,
    r: Any,
    goal: Any,
    seat: int,
    codes: Index,
    stack: States,
    keys: States,
    numbers: Numbers,
    meter: Meter,
    end: States,
    payoffs: NDArray[np.float64],
) -> tuple[States, Numbers]:
    """Write the best end for ``seat`` into ``end[0]`` and its payoffs; of equal ends the first by lowest cards."""
    todo = np.empty(MAX_CARDS + 1, np.uint64)
    reached = np.empty(MAX_PLAYERS)
    best = -np.inf
    _, enough = payoff_range(s, goal, seat)
    view = np.empty(1, STATE_DTYPE)
    stack[0] = s
    depth, action = 0, np.int64(-1)
    while depth >= 0:
        _to_own_choice(stack[depth], r, goal, seat, codes, view, action)
        todo[depth] = stack[depth].legal  # none at an end
        if stack[depth].turn < 0:
            write_payoffs(stack[depth], goal, reached)
            if reached[seat] > best:
                best = reached[seat]
                payoffs[:] = reached
                end[0] = stack[depth]
            if best >= enough:
                break
        else:
            where, what = position_key(stack[depth], goal, seat)
            if keys[find(keys, where, what, meter[STAMP])].stamp == meter[STAMP]:
                todo[depth] = np.uint64(0)
            else:
                keys, numbers, _ = add(keys, numbers, meter, where, what)
                if meter[FULL]:
                    break
        while depth >= 0 and todo[depth] == np.uint64(0):
            depth -= 1
        if depth >= 0:
            action = np.int64(lowest(todo[depth]))
            todo[depth] &= todo[depth] - _ONE
            stack[depth + 1] = stack[depth]
            depth += 1
    return keys, numbers


@kernel
def _best_end_many(
    states: States,
    rules: States,
    goals: States,
    seats: Index,
    codes: Index,
    keys: States,
    numbers: Numbers,
    meter: Meter,
    ends: States,
    payoffs: NDArray[np.float64],
    used: Index,
) -> int:
    """Fill ``ends``, ``payoffs`` and ``used`` ``[K]``; returns the first deal with too many positions, or -1."""
    stack = np.empty(MAX_CARDS + 2, STATE_DTYPE)
    for i in range(len(states)):
        meter[STAMP] += 1
        meter[USED] = 0
        keys, numbers = _best_end(
            states[i], rules[0], goals[0], seats[i], codes, stack, keys, numbers, meter, ends[i : i + 1], payoffs[i]
        )
        if meter[FULL]:
            return i
        used[i] = meter[USED]
    return -1


def _compiled(deals: Deals, seats: Index, codes: Index, max_states: int, goal: Rules) -> Ends:
    count = len(deals)
    ends = Ends(np.zeros(count, STATE_DTYPE), np.zeros((count, MAX_PLAYERS)), np.zeros(count, np.int64))
    records = rules_record(deals.rules), rules_record(goal)
    table, meter = empty_table(0), new_meter(max_states)
    out = ends.records, ends.payoffs, ends.states
    bad = call(_best_end_many, deals.states, *records, seats, codes, *table, meter, *out)
    if bad >= 0:
        raise limit_error(max_states, _named(deals, seats, bad))
    return ends


# --- in blocks -------------------------------------------------------------------------------------------------------

# Positions that bots are asked about at once. A larger block is split, so that some courses reach their end early: they
# may make the rest superfluous.
_BLOCK = 4096


class _InBlocks:
    """The search with bots that are asked in batches.

    Attributes:
        deals: the deals to search, ``K`` games.
        seats: ``int64 [K]``, the seats that respond.
        bots: the players.
        goal: the rules whose payoff is sought.
        seating: ``int64 [K, n]``, as `play_on` takes it.
        fields: what tells the positions of a deal apart for these bots and the payoff.
        enough: ``float64 [K]``, payoffs that cannot be surpassed.
    """

    def __init__(self, deals: Deals, seats: Index, bots: Sequence[Bot], max_states: int, goal: Rules) -> None:
        n = deals.rules.num_players
        self.deals, self.seats, self.max_states, self.goal = deals, seats, max_states, goal
        self.bots = list(dict.fromkeys(bots))  # one call for all seats that the same bot holds
        numbers = np.array([OUTSIDE, *(self.bots.index(bot) for bot in bots)])
        self.seating = numbers[(np.arange(n) - seats[:, None]) % n]
        self.fields = _told_apart_by(bots, goal)
        self.enough = np.empty(len(deals))
        _enough_many(deals.states, rules_record(goal), seats, self.enough)
        self._seen: set[bytes] = set()

    def run(self) -> Ends:
        """Search all deals."""
        count = len(self.deals)
        ends = Ends(np.zeros(count, STATE_DTYPE), np.full((count, MAX_PLAYERS), -np.inf), np.zeros(count, np.int64))
        blocks = [(self.deals.states, np.arange(count))]  # positions, and the deal that each belongs to
        while blocks:
            states, root = blocks.pop()
            if len(root) > _BLOCK:
                blocks.append((states[_BLOCK:], root[_BLOCK:]))
            is_open = ends.payoffs[root[:_BLOCK], self.seats[root[:_BLOCK]]] < self.enough[root[:_BLOCK]]
            states, root = states[:_BLOCK][is_open], root[:_BLOCK][is_open]
            if len(root):
                blocks.append(self._advance(self._games(states, root), root, ends))
        return ends

    def _advance(self, games: Deals, root: Index, ends: Ends) -> tuple[States, Index]:
        """Play a block on to the next own choices, keep the ends among them, and return what the choices lead to."""
        play_on(games, self.bots, self.seating[root], games.all)
        fouled = np.flatnonzero(games.states["num_excluded"] > self.deals.states["num_excluded"][root])
        if len(fouled):
            raise BotError(
                f"a bot fouled (deal {int(games.indices[fouled[0]])} of seed {games.seed}): best responses are to play"
                " by the rules"
            )
        self._note_ends(games, root, ends)
        running = np.flatnonzero(games.turns >= 0)
        running = running[self._new(games.states[running], root[running])]
        np.add.at(ends.states, root[running], 1)
        most = int(ends.states.argmax())
        if ends.states[most] > self.max_states:
            raise limit_error(self.max_states, _named(self.deals, self.seats, most))
        tried = np.empty(len(running), np.uint64)
        _worth_trying_many(games.states[running], rules_record(self.goal), self.seats[root[running]], tried)
        parents, cards = _each_card(tried, games.rules)
        after = self._games(games.states[running[parents]], root[running[parents]])
        after.step(after.all, cards)
        return after.states, root[running[parents]]

    def _games(self, states: States, root: Index) -> Deals:
        """Given positions as games that bots can be asked about."""
        games = Deals(self.deals.rules, self.deals.indices[root], self.deals.seed)
        games.states[:] = states
        return games

    def _note_ends(self, games: Deals, root: Index, ends: Ends) -> None:
        """Keep the finished games that are better for their seat than any before; of equal ones the first."""
        over = np.flatnonzero(games.turns < 0)
        payoffs, owner = np.empty((len(over), MAX_PLAYERS)), root[over]
        _payoffs_many(games.states[over], rules_record(self.goal), payoffs)
        own = payoffs[np.arange(len(over)), self.seats[owner]]
        order = np.argsort(-own, kind="stable")
        owners, first = np.unique(owner[order], return_index=True)
        best = order[first]
        better = own[best] > ends.payoffs[owners, self.seats[owners]]
        ends.records[owners[better]] = games.states[over[best[better]]]
        ends.payoffs[owners[better]] = payoffs[best[better]]

    def _new(self, states: States, root: Index) -> Index:
        """The positions ``int64`` that have not been met before, as far as the bots and the payoff can tell."""
        if not self.fields or not len(root):
            return np.arange(len(root))
        columns = [root, *(states[name] for name in self.fields)]
        rows = np.hstack([np.ascontiguousarray(c).reshape(len(root), -1).view(np.uint8) for c in columns])
        found = []
        for i, row in enumerate(rows):
            key = row.tobytes()
            if key not in self._seen:
                self._seen.add(key)
                found.append(i)
        return np.array(found, np.int64)


def _named(deals: Deals, seats: Index, i: int) -> str:
    return f"the responses of seat {int(seats[i])} in deal {int(deals.indices[i])} of seed {deals.seed}"


def _told_apart_by(bots: Sequence[Bot], rules: Rules) -> tuple[str, ...]:
    """The fields of a record that tell the positions of a deal apart; none when every course is one of its own.

    The hands, what each seat has laid, and all counts of cards follow from the table.
    """
    if any(bot.reads_order for bot in bots):
        return ()
    if any(bot.reads_history for bot in bots):
        return "table", "turn", "status", "passes", "cannot_hold"
    passes = ("passes",) if rules.passes_count or rules.payoff == "bank" else ()
    return ("table", "turn", "status", *passes)


def _each_card(masks: NDArray[np.uint64], rules: Rules) -> tuple[Index, Index]:
    """Every card of some bitboards ``[K]``, ascending: the number of its bitboard, and its id."""
    cards = np.arange(rules.deck.num_cards, dtype=np.uint64)
    numbers, ids = np.nonzero(masks[:, None] >> cards & _ONE)
    return numbers, ids


@kernel
def _enough_many(states: States, goals: States, seats: Index, out: NDArray[np.float64]) -> None:
    for i in range(len(states)):
        out[i] = payoff_range(states[i], goals[0], seats[i])[1]


@kernel
def _worth_trying_many(states: States, goals: States, seats: Index, out: NDArray[np.uint64]) -> None:
    for i in range(len(states)):
        out[i] = _worth_trying(states[i], goals[0], seats[i])


@kernel
def _payoffs_many(states: States, goals: States, out: NDArray[np.float64]) -> None:
    for i in range(len(states)):
        write_payoffs(states[i], goals[0], out[i])
