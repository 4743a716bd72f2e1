"""Duplicate deals: every deal is played once with the candidate in each seat, the opponents in the rest.

The luck of the deal falls on every seat alike, so it cancels; intervals are computed over deals, not over games, since
the games of one deal are not independent. A bot's coin flips are a function of deal, seat and moment
(`records.decision_word`), so two candidates meet the same luck.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots import Bot, BotSpec, make_bot, make_opponents
from devyatka_env.bots.play import play_on
from devyatka_env.deals import Deals
from devyatka_env.evaluation.stats import Estimate, Mean
from devyatka_env.rules import Rules

# Games in flight at once: enough for batched networks, few enough that records and observations stay in cache.
GAMES_AT_ONCE = 4096

Progress = Callable[[int, Estimate], None]


@dataclass(frozen=True)
class Evaluation:
    """How a candidate did over duplicate deals.

    Attributes:
        candidate: its name.
        against: names of the opponents, clockwise from the candidate.
        rules: the rule set.
        seed: seed of the deals.
        deals: deals played, each `rules.num_players` times.
        seconds: wall time.
        win_rate: share of first places, a shared one divided.
        mean_place: mean place, a shared one counted as the mean of the places it spans.
        mean_payoff: mean payoff of the rules.
        mean_cards_left: mean cards left in hand.
        win_rate_by_seat: the win rate in each seat.
        win_rate_opening: the win rate in games that the candidate opened.
        win_rate_not_opening: the win rate in the others.
        interrupted: whether it was stopped before all deals were played.
        cheats: names of players that were shown all hands.
    """

    candidate: str
    against: tuple[str, ...]
    rules: Rules
    seed: int
    deals: int
    seconds: float
    win_rate: Estimate
    mean_place: Estimate
    mean_payoff: Estimate
    mean_cards_left: Estimate
    win_rate_by_seat: tuple[Estimate, ...]
    win_rate_opening: Estimate
    win_rate_not_opening: Estimate
    interrupted: bool
    cheats: tuple[str, ...]

    @property
    def games(self) -> int:
        """Games played."""
        return self.deals * self.rules.num_players


def evaluate(
    candidate: BotSpec,
    opponents: BotSpec | Sequence[BotSpec],
    rules: Rules | str,
    deals: int,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Play ``deals`` duplicate deals. Ctrl-C stops it early with the result of the deals played so far.

    Args:
        candidate: the bot in question (as `make_bot` takes it).
        opponents: the other seats: one bot for all, or one each, clockwise from the candidate.
        rules: the rule set (as `Rules.of` takes it). Of a match every deal is counted by itself.
        deals: number of deals, each played ``rules.num_players`` times.
        seed: seed of the deals and of the bots' coin flips.
        progress: called with the deals played and the win rate so far, now and then.

    Raises:
        ValueError: a wrong number of opponents or deals, or a bot that does not play these rules.
        BotError: a bot failed or chose an illegal action.
    """
    rules = Rules.of(rules)
    n = rules.num_players
    bots = [make_bot(candidate), *make_opponents(opponents, n - 1)]
    if not isinstance(deals, int | np.integer):
        raise ValueError(f"deals must be a whole number, not {deals!r}")
    if deals < 1:
        raise ValueError(f"deals must be at least 1, not {deals}")
    for bot in bots:
        bot.check_rules(rules)
    tally = _Tally(n)
    per_chunk = max(1, GAMES_AT_ONCE // n)
    start = time.perf_counter()
    played, interrupted = 0, False
    try:
        while played < deals:
            count = min(per_chunk, deals - played)
            indices = np.arange(played, played + count)
            tally.add(*_play_rotations(bots, rules, indices, seed))
            played += count
            if progress:
                progress(played, tally.win.estimate())
    except KeyboardInterrupt:
        if not played:
            raise
        interrupted = True
    return Evaluation(
        candidate=bots[0].name,
        against=tuple(bot.name for bot in bots[1:]),
        rules=rules,
        seed=seed,
        deals=played,
        seconds=time.perf_counter() - start,
        win_rate=tally.win.estimate(),
        mean_place=tally.place.estimate(),
        mean_payoff=tally.payoff.estimate(),
        mean_cards_left=tally.cards.estimate(),
        win_rate_by_seat=tuple(mean.estimate() for mean in tally.by_seat),
        win_rate_opening=tally.opening.estimate(),
        win_rate_not_opening=tally.not_opening.estimate(),
        interrupted=interrupted,
        cheats=tuple(sorted({bot.name for bot in bots if bot.sees_all_hands})),
    )


def _play_rotations(
    bots: Sequence[Bot], rules: Rules, indices: NDArray[np.int64], seed: int
) -> tuple[Deals, NDArray[np.int64]]:
    """Play each deal once with bot 0 in every seat; game ``d * n + k`` has it in seat ``k``."""
    n = rules.num_players
    unique = list(dict.fromkeys(bots))  # one call for all seats that the same bot holds
    numbers = np.array([unique.index(bot) for bot in bots])
    seats = np.tile(np.arange(n), len(indices))
    seating = numbers[(np.arange(n)[None, :] - seats[:, None]) % n]
    games = Deals(rules, np.repeat(indices, n), seed)
    play_on(games, unique, seating, games.all)
    return games, seats


class _Tally:
    """Running means over deals of the candidate's games."""

    def __init__(self, num_players: int) -> None:
        self.win, self.place, self.payoff, self.cards = Mean(), Mean(), Mean(), Mean()
        self.by_seat = [Mean() for _ in range(num_players)]
        self.opening, self.not_opening = Mean(), Mean()

    def add(self, games: Deals, seats: NDArray[np.int64]) -> None:
        """Count finished games, ``n`` a deal, the candidate in ``seats [B]``."""
        n = games.rules.num_players
        rows = games.all
        places = games.states["places"][:, :n].astype(np.float64)
        mine = places[rows, seats]
        sharing = (places == mine[:, None]).sum(1)
        win = np.where(mine == 1, 1.0 / sharing, 0.0).reshape(-1, n)
        self.win.add(win.mean(1))
        self.place.add((mine + (sharing - 1) / 2).reshape(-1, n).mean(1))
        self.payoff.add(games.payoffs(rows)[rows, seats].reshape(-1, n).mean(1))
        self.cards.add(games.states["cards_left"][rows, seats].astype(np.float64).reshape(-1, n).mean(1))
        for seat, mean in enumerate(self.by_seat):
            mean.add(win[:, seat])
        opened = (games.states["opener"] == seats).reshape(-1, n)
        self.opening.add(_masked_mean(win, opened))
        self.not_opening.add(_masked_mean(win, ~opened))


def _masked_mean(values: NDArray[np.float64], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Mean of each row over the masked entries; NaN for a row with none."""
    count = mask.sum(1)
    with np.errstate(invalid="ignore"):
        mean: NDArray[np.float64] = (values * mask).sum(1) / count
    return mean
