"""How far from perfect a bot plays at two seats, where the exact value of every card is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots import Bot, BotSpec, make_bot
from devyatka_env.deals import blank_movers
from devyatka_env.evaluation.arena import Evaluation, evaluate
from devyatka_env.evaluation.stats import Estimate, ratio
from devyatka_env.records import STATE_DTYPE, States
from devyatka_env.rules import Rules
from devyatka_env.solver import values_many, workspace
from devyatka_env.view import PlayerView

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Regret:
    """What a bot gave away, by the exact values of its two-seat decisions (turns with one legal card are none).

    Attributes:
        match: the games that the decisions come from.
        decisions: how many.
        value_lost: mean value lost a decision, in the rules' payoff.
        mistakes: share of decisions that turned a won deal into one that is not won.
        mattered: decisions in a won deal of which some card would have given it away.
        mistakes_of_mattered: share of those that were mistakes.
    """

    match: Evaluation
    decisions: int
    value_lost: Estimate
    mistakes: Estimate
    mattered: int
    mistakes_of_mattered: Estimate


class _Recorder(Bot):
    """Plays as another bot, which sees its view as ever, and keeps the full positions and the actions."""

    sees_all_hands = True

    def __init__(self, bot: Bot) -> None:
        self.name = bot.name
        self._bot = bot
        self._states: list[States] = []
        self._actions: list[Index] = []

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        """Play as the bot does; nothing is kept."""
        return self._bot.act(view, rng)

    def act_batch(self, views: States, rules: Rules, words: NDArray[np.uint64]) -> Index:
        """Play as the bot does, and keep what it was asked and what it answered."""
        seen = views
        if not self._bot.sees_all_hands:
            seen = np.empty(len(views), STATE_DTYPE)
            blank_movers(views, np.arange(len(views)), seen)
        actions = self._bot.act_batch(seen, rules, words)
        self._states.append(views.copy())
        self._actions.append(actions)
        return actions

    def take(self) -> tuple[States, Index, Index]:
        """What was kept, sorted by deal and moment, and where each deal starts; it is dropped here."""
        states, actions = np.concatenate(self._states), np.concatenate(self._actions)
        self._states, self._actions = [], []
        dealt = states["hands"] | states["played"]
        order = np.lexsort((states["num_played"], dealt[:, 1], dealt[:, 0]))
        same = (dealt[order[1:]] == dealt[order[:-1]]).all(axis=1)
        return states[order], actions[order], np.flatnonzero(np.concatenate([[True], ~same]))


def regret(bot: BotSpec, rules: Rules | str, deals: int, seed: int = 0, opponent: BotSpec | None = None) -> Regret:
    """Play duplicate two-seat deals and hold every decision of the bot against the exact values.

    The values are those of open hands. With the whole pack dealt that is what a seat can know. With cards out of play
    (``nine_each``) no seat knows the other hand, so the figures overstate its mistakes: some of them no honest player
    could have seen.

    Args:
        bot: the bot in question.
        rules: two-seat rules.
        deals: deals, each played from both seats.
        seed: seed of the deals.
        opponent: what it plays against; by default itself.

    Raises:
        ValueError: rules that are not solved exactly (`devyatka_env.solver`), of more than two seats among them; a bad
            number of deals; or a bot that does not play these rules.
    """
    rules = Rules.of(rules)
    candidate = make_bot(bot)
    recorder = _Recorder(candidate)
    work = workspace(rules)
    sums: list[NDArray[np.float64]] = []  # by deal: decisions, value lost, mistakes, decisions that mattered

    def judge(played: int, win_rate: Estimate) -> None:
        states, actions, starts = recorder.take()
        values = values_many(states, rules, work)
        best, worst = np.nanmax(values, axis=1), np.nanmin(values, axis=1)
        chosen = values[np.arange(len(actions)), actions]
        columns = (np.ones(len(best)), best - chosen, (best > 0) & (chosen <= 0), (best > 0) & (worst <= 0))
        sums.append(np.add.reduceat(np.stack(columns, axis=1), starts))

    against = candidate if opponent is None else opponent
    match = evaluate(recorder, against, rules, deals, seed, judge)
    decisions, lost, mistakes, mattered = np.concatenate(sums).T
    return Regret(
        match=match,
        decisions=int(decisions.sum()),
        value_lost=ratio(lost, decisions),
        mistakes=ratio(mistakes, decisions),
        mattered=int(mattered.sum()),
        mistakes_of_mattered=ratio(mistakes, mattered),
    )
