"""How far from perfect a bot plays at two seats, where the exact value of every card is known.

So is the best response to a bot that plays without chance.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from devyatka_env.bots import Bot, BotError, BotSpec, OracleBot, make_bot
from devyatka_env.bots.best_response import best_ends
from devyatka_env.engine import States
from devyatka_env.engine.seeds import Seed
from devyatka_env.evaluation.arena import MOVE_SECONDS, check_deals, make_field, spans
from devyatka_env.evaluation.duplicate import Field, measure, play_rotations, whole_deals
from devyatka_env.evaluation.stats import Estimate, Moments, ratio
from devyatka_env.evaluation.streaming import (
    Index,
    Measured,
    Part,
    Progress,
    WinRate,
    cause,
    is_whole,
    named,
    search_spans,
    stream,
    win_rates,
)
from devyatka_env.evaluation.workers import Workers
from devyatka_env.games import Deals
from devyatka_env.rules import Rules
from devyatka_env.solver import StateLimitError, Workspace, values_many, workspace


@dataclass(frozen=True)
class Regret:
    """What a bot gave away, by the exact values of its two-seat decisions (turns with one legal card are none).

    Attributes:
        match: the games that the decisions come from.
        opponent: name of the bot in the other seat.
        decisions: how many.
        value_lost: mean value lost a decision, in the rules' payoff.
        mistakes: share of decisions that turned a won deal into one that is not won.
        mattered: decisions in a won deal of which some card would have given it away.
        mistakes_of_mattered: share of those that were mistakes.
    """

    match: WinRate
    opponent: str
    decisions: int
    value_lost: Estimate
    mistakes: Estimate
    mattered: int
    mistakes_of_mattered: Estimate


@dataclass(frozen=True)
class TwoSeatExact:
    """A bot at two seats, all of it on the same deals.

    Attributes:
        bot: its name.
        cheats: whether it is shown all hands.
        rules: the rule set.
        seed: seed of the deals.
        hands_known: whether the whole pack is dealt, so that a seat knows the other hand. If not, the exact values are
            those of open hands, which honest play cannot count on.
        regret: what it gives away in play against itself.
        against_oracle: how it does against perfect play (`oracle`), against which a perfect player has 1/2; ``None``
            when all ended before.
        best_response: how it does against the exact best response to it, which sees all hands and knows its play; a
            perfect player has 1/2 there, too, and what is lacking to that is the exploitability of the bot. Not known
            for bots that are not deterministic; ``None`` when all ended before.
    """

    bot: str
    cheats: bool
    rules: Rules
    seed: Seed
    hands_known: bool
    regret: Regret
    against_oracle: WinRate | None
    best_response: WinRate | None

    @property
    def parts(self) -> tuple[WinRate, ...]:
        """What was measured."""
        return tuple(one for one in (self.regret.match, self.against_oracle, self.best_response) if one is not None)


def regret(bot: BotSpec, rules: Rules | str, deals: int, seed: Seed = 0, opponent: BotSpec | None = None) -> Regret:
    """Play duplicate two-seat deals and hold every decision of the bot against the exact values.

    The values are those of open hands. With the whole pack dealt that is what a seat can know. With cards out of play
    (``nine_each``) no seat knows the other hand, so the figures overstate its mistakes: some of them no honest player
    could have seen. Ctrl-C stops it early with the result of the deals done so far.

    Args:
        bot: the bot in question.
        rules: two-seat rules.
        deals: deals, each played from both seats.
        seed: seed of the deals.
        opponent: what it plays against; by default itself.

    Raises:
        ValueError: rules that are not solved exactly (`devyatka_env.solver`), of more than two seats among them; a bad
            number of deals; or a bot that does not play these rules.
        BotError: a bot failed, chose an illegal action, or fouled. `two_seats` keeps what was done until then.
    """
    candidate = make_bot(bot)
    game = _two_seat_field(candidate, candidate if opponent is None else make_bot(opponent), rules, deals, seed, None)
    result = _regret(game, deals, Workers(), None)
    failure = result.match.failure
    if failure is not None:
        raise BotError(failure.message, failure.bot, failure.deal)
    if result.match.interrupted and not result.match.deals:
        raise KeyboardInterrupt
    return result


def two_seats(
    bot: BotSpec,
    rules: Rules | str,
    deals: int,
    seed: Seed = 0,
    progress: Progress | None = None,
    *,
    workers: Workers | None = None,
    move_seconds: float | None = MOVE_SECONDS,
) -> TwoSeatExact:
    """Measure a bot by all that is exact at two seats. Ctrl-C, or a bot that fails, ends it with what was done so far.

    Args:
        bot: the bot in question (as `make_bot` takes it).
        rules: two-seat rules (as `Rules.of` takes them). Of a match every deal is counted by itself.
        deals: deals, each played from both seats.
        seed: seed of the deals and of the bots' coin flips.
        progress: called now and then.
        workers: who plays; by default this process.
        move_seconds: a bot that takes longer for a move has failed; ``None`` for no limit.

    Raises:
        ValueError: rules that are not solved exactly (`devyatka_env.solver`), of more than two seats among them; a bad
            number of deals; or a bot that does not play these rules.
        KeyboardInterrupt: stopped before anything was done.
    """
    candidate, workers = make_bot(bot), workers or Workers()
    game = _two_seat_field(candidate, candidate, rules, deals, seed, move_seconds)
    given_away, against_oracle, best_response = _regret(game, deals, workers, progress), None, None
    if given_away.match.interrupted and not given_away.match.deals:
        raise KeyboardInterrupt
    if is_whole(given_away.match):
        match = dataclasses.replace(game, opponents=(OracleBot(),))
        sums, done = stream(win_rates, match, spans(deals, 2), 1, workers, named(progress, "perfect play", deals))
        against_oracle = WinRate(**vars(done), win_rate=sums.column(0))
        if is_whole(against_oracle):
            best_response = _best_response(game, deals, workers, progress)
    return TwoSeatExact(
        bot=candidate.name,
        cheats=candidate.sees_all_hands,
        rules=game.rules,
        seed=seed,
        hands_known=game.rules.cards_per_seat is None or 2 * game.rules.cards_per_seat == game.rules.deck.num_cards,
        regret=given_away,
        against_oracle=against_oracle,
        best_response=best_response,
    )


def _two_seat_field(
    bot: Bot, opponent: Bot, rules: Rules | str, deals: int, seed: Seed, move_seconds: float | None
) -> Field:
    rules = Rules.of(rules)
    _workspace(rules)  # refuses rules that are not solved
    check_deals(deals)
    return make_field([bot], opponent, rules, seed, move_seconds)


def _regret(game: Field, deals: int, workers: Workers, progress: Progress | None) -> Regret:
    sums, done = stream(_judge, game, spans(deals, 2), 5, workers, named(progress, "choices", deals))
    return Regret(
        match=WinRate(**vars(done), win_rate=sums.column(4)),
        opponent=game.opponents[0].name,
        decisions=round(sums.means[0] * sums.count),
        value_lost=ratio(sums, 1, 0),
        mistakes=ratio(sums, 2, 0),
        mattered=round(sums.means[3] * sums.count),
        mistakes_of_mattered=ratio(sums, 2, 3),
    )


def _judge(game: Field, span: tuple[int, int]) -> Part:
    """Of the candidate in each deal: decisions, value lost, mistakes, decisions that mattered; and its win rate."""
    return whole_deals(lambda some: _judged(game, some), span)


def _judged(game: Field, some: Index) -> Moments:
    games, seats = play_rotations(game.seating(0), game.rules, some, game.seed, game.move_seconds)
    fouled = np.flatnonzero(games.states["num_excluded"])
    if len(fouled):
        names, deal = dict.fromkeys(bot.name for bot in game.seating(0)), int(games.indices[fouled[0]])
        why = f"{' or '.join(names)} fouled (deal {deal} of seed {game.seed}): exact values are of play by the rules"
        raise BotError(why, "", deal)
    states, actions, deals = _decisions(games, seats)
    sums = np.zeros((len(some), 5))
    if len(states):
        values = values_many(states, game.rules, _workspace(game.rules))
        best, worst = np.nanmax(values, axis=1), np.nanmin(values, axis=1)
        chosen = values[np.arange(len(actions)), actions]
        columns = (np.ones(len(best)), best - chosen, (best > 0) & (chosen <= 0), (best > 0) & (worst <= 0))
        np.add.at(sums[:, :4], deals, np.stack(columns, axis=1))
    sums[:, 4] = measure(games, seats)[:, 0]
    return Moments.of(sums)


def _decisions(games: Deals, seats: Index) -> tuple[States, Index, Index]:
    """Where bot 0 of `play_rotations` had a choice: the full positions, its actions, and the row of their deals.

    Finished games are gone through again by their logs. The positions of a deal stand together, in playing order.
    """
    again = Deals(games.rules, games.indices, games.seed)
    states, actions, owners = [again.states[:0]], [again.all[:0]], [again.all[:0]]
    while len(on := np.flatnonzero(again.turns >= 0)):
        legal = again.states["legal"][on]
        cards = games.states["log"][on, again.states["num_played"][on]].astype(np.int64)
        taken = np.where(legal == 0, games.rules.pass_action, cards)
        decided = (again.turns[on] == seats[on]) & (legal & (legal - np.uint64(1)) != 0)
        states.append(again.states[on[decided]])
        actions.append(taken[decided])
        owners.append(on[decided])
        again.step(on, taken)
    joint = np.concatenate(states), np.concatenate(actions), np.concatenate(owners) // games.rules.num_players
    order = np.lexsort((joint[0]["num_played"], joint[2]))
    return joint[0][order], joint[1][order], joint[2][order]


def _best_response(game: Field, deals: int, workers: Workers, progress: Progress | None) -> WinRate:
    """The candidate against the exact best response to it."""
    (bot,) = game.candidates
    sums, done, unknown = Moments(1), Measured(0, 0.0, interrupted=False, failure=None), ""
    if bot.deterministic:
        told = named(progress, "best responses", deals)
        try:
            sums, done = stream(_respond, game, search_spans(deals, 2, [bot]), 1, workers, told)
        except StateLimitError as error:
            unknown = f"no exact best response to {bot.name}: {cause(error)}"
    else:
        unknown = f"no exact best response to {bot.name}: not deterministic"
    return WinRate(**vars(done), win_rate=sums.column(0), unknown=unknown)


def _respond(game: Field, span: tuple[int, int]) -> Part:
    """The candidate's win rate by deal, the other seat responding."""
    return whole_deals(lambda some: _responded(game, some), span)


def _responded(game: Field, some: Index) -> Moments:
    """Play the best response of the other seat.

    A seat that has won the deal needs no search: perfect play is a best response of it. So only the deals that the
    candidate should win are searched for a line on which it fails to.
    """
    to_win = Rules.of(game.rules, payoff="win", ante=Rules.ante, pass_fee=Rules.pass_fee)
    rows, seats = np.divmod(np.arange(2 * len(some)), 2)
    start = Deals(game.rules, some[rows], game.seed)
    value = np.nanmax(values_many(start.states, to_win, _workspace(to_win)), axis=1)
    todo = np.flatnonzero(np.where(start.turns == seats, value, 0.0 - value) < 1)
    share = np.ones(len(rows))
    searched = Deals(game.rules, start.indices[todo], game.seed)
    ends = best_ends(searched, seats[todo], game.candidates, goal=to_win).records
    firsts = ends["places"][:, :2] == 1
    share[todo] = firsts[np.arange(len(todo)), seats[todo]] / firsts.sum(1)
    return Moments.of(1 - share.reshape(-1, 2).mean(1, keepdims=True))


@lru_cache(maxsize=2)
def _workspace(rules: Rules) -> Workspace:
    return workspace(rules)
