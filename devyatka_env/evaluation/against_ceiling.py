"""Where a bot stands between chance and the ceiling, the exact best response to its opponents that sees all hands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from devyatka_env.bots import BotSpec, ceilings
from devyatka_env.engine.seeds import Seed
from devyatka_env.evaluation.arena import MOVE_SECONDS, check_deals, make_field, spans
from devyatka_env.evaluation.duplicate import Field, measure, play_rotations, whole_deals
from devyatka_env.evaluation.stats import Estimate, Moments, ratio
from devyatka_env.evaluation.streaming import (
    Index,
    Measured,
    Part,
    Progress,
    cause,
    named,
    search_spans,
    stream,
    win_rates,
)
from devyatka_env.evaluation.workers import Workers
from devyatka_env.rules import Rules
from devyatka_env.solver import StateLimitError


@dataclass(frozen=True)
class Standing(Measured):
    """Where a bot stands between chance and the ceiling, against the same opponents on the same deals.

    Attributes:
        bot: its name.
        against: names of the opponents, clockwise from it.
        cheats: names of players that are shown all hands.
        rules: the rule set.
        seed: seed of the deals.
        win_rate: the bot's.
        ceiling: that of the exact best response to the opponents, which sees all hands.
        share: (win rate - 1/n) / (ceiling - 1/n): 0 is chance, 1 the ceiling; paired by deal (`ratio`).
        unknown: why there is no ceiling and no share; "" where there are.
    """

    bot: str
    against: tuple[str, ...]
    cheats: tuple[str, ...]
    rules: Rules
    seed: Seed
    win_rate: Estimate
    ceiling: Estimate
    share: Estimate
    unknown: str = ""


def standing(
    bot: BotSpec,
    against: BotSpec | Sequence[BotSpec],
    rules: Rules | str,
    deals: int,
    seed: Seed = 0,
    progress: Progress | None = None,
    *,
    workers: Workers | None = None,
    move_seconds: float | None = MOVE_SECONDS,
) -> Standing:
    """Measure where a bot stands between chance and the ceiling. Ctrl-C, or a bot that fails, ends it early.

    Args:
        bot: the bot in question (as `make_bot` takes it).
        against: the other seats: one bot for all, or one each, clockwise from the bot.
        rules: the rule set (as `Rules.of` takes it). Of a match every deal is counted by itself.
        deals: deals, each played from every seat.
        seed: seed of the deals and of the bots' coin flips.
        progress: called now and then.
        workers: who plays; by default this process.
        move_seconds: a bot that takes longer for a move has failed; ``None`` for no limit.

    Raises:
        ValueError: a wrong number of opponents or deals, or a bot that does not play these rules.
        KeyboardInterrupt: stopped before anything was done.
    """
    check_deals(deals)
    game = make_field([bot], against, rules, seed, move_seconds)
    n, workers = game.rules.num_players, workers or Workers()
    told = named(progress, "standing", deals)
    chancy = dict.fromkeys(one.name for one in game.opponents if not one.deterministic)
    unknown = f"no exact ceiling against {', '.join(chancy)}: not deterministic" if chancy else ""
    if not unknown:
        try:
            sums, done = stream(_stand, game, search_spans(deals, n, game.opponents), 2, workers, told)
        except StateLimitError as error:
            unknown = f"no exact ceiling: {cause(error)}"
    if unknown:
        sums, done = stream(win_rates, game, spans(deals, n), 1, workers, told)
    if done.interrupted and not done.deals:
        raise KeyboardInterrupt
    players = game.seating(0)
    return Standing(
        **vars(done),
        bot=players[0].name,
        against=tuple(one.name for one in players[1:]),
        cheats=tuple(sorted({one.name for one in players if one.sees_all_hands})),
        rules=game.rules,
        seed=seed,
        win_rate=sums.column(0),
        ceiling=Moments(1).column(0) if unknown else sums.column(1),
        share=Moments(1).column(0) if unknown else ratio(sums, 0, 1, less=1 / n),
        unknown=unknown,
    )


def _stand(game: Field, span: tuple[int, int]) -> Part:
    """The candidate's win rate and the ceiling by deal."""

    def play(some: Index) -> Moments:
        games, seats = play_rotations(game.seating(0), game.rules, some, game.seed, game.move_seconds)
        ceiling = ceilings(game.rules, game.opponents, some, game.seed).wins.mean(1)
        return Moments.of(np.column_stack([measure(games, seats)[:, 0], ceiling]))

    return whole_deals(play, span)
