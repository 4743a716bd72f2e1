"""Does it learn, and would these tests notice if it did not?

Two-seat games are measured against the exact solver: the average value that a choice gives away, in positions of random
play in which a choice matters. Other games are measured in wins over duplicate deals, the learner in every seat, so
that chance is exactly 1 / seats.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from devyatka_env import Rules
from devyatka_env.bots import Bot, GreedyBot, PolicyBot, RandomBot, make_opponents
from devyatka_env.bots.rollout import ask_bots, play_on
from devyatka_env.engine import States
from devyatka_env.envs import DevyatkaVecEnv
from devyatka_env.evaluation import Estimate, evaluate
from devyatka_env.games import Deals
from devyatka_env.games.deals import Index
from devyatka_env.learning import MaskedPolicy, SeatBuffer, SelfPlayPPO, TablesEnv
from devyatka_env.learning.policy import policy_of
from devyatka_env.solver import best_many, values_many

Payoffs = NDArray[np.float64]

# Two suits, 18 cards: deals of a dozen decisions, in which greedy still gives 0.13 of a deal away per choice.
TWO_SUITS = "first_out num_players=2 num_suits=2"
DEALS = 2**63  # the seed of what is measured on; training deals come from small seeds


def learner(rules: list[Rules], seed: int = 0, num_games: int = 128, **settings: Any) -> SelfPlayPPO:
    """All-seats self-play with a small network of suits."""
    torch.set_num_threads(1)
    spec = {"kind": "suits", "width": 32, "layers": 2, "num_suits": rules[0].num_suits}
    chosen: dict[str, Any] = {
        "learning_rate": 5e-3, "n_steps": 16, "batch_size": 512, "n_epochs": 4, "gamma": 1.0, "gae_lambda": 0.95,
        "ent_coef": 0.01, "policy_kwargs": {"network": spec}, **settings,
    }  # fmt: skip
    return SelfPlayPPO(MaskedPolicy, TablesEnv(rules, num_games, seed), seed=seed, device="cpu", **chosen)


def bot_of(model: PPO) -> PolicyBot:
    return PolicyBot(policy_of(model).network, name="learner")


# --- the exact yardstick ---------------------------------------------------------------------------------------------


def positions_that_matter(rules: Rules, deals: int) -> tuple[States, Payoffs]:
    """Positions of random play in which some choice is worth less than another, and the exact value of each action."""
    games = Deals(rules, np.arange(deals), DEALS)
    which, found = games.all, []
    while True:
        games.play_forced(which)
        which = which[games.turns[which] >= 0]
        if not len(which):
            break
        found.append(games.states[which].copy())
        ask_bots(games, [RandomBot()], np.zeros(len(which), np.int64), which)
    states = np.concatenate(found)
    values = values_many(states, rules)
    matters = np.nanmax(values, 1) > np.nanmin(values, 1)
    return states[matters], values[matters]


def value_given_away(bot: Bot, rules: Rules, deals: int = 500) -> float:
    """What a choice of the bot is worth less than the best one, on average; a deal won or lost is worth 2."""
    states, values = positions_that_matter(rules, deals)
    games = Deals(rules, np.arange(len(states)), DEALS)  # for the words of a bot that draws
    games.states[:] = states
    shown = games.states if bot.sees_all_hands else games.views(games.all)
    chosen = bot.act_batch(shown, rules, games.decision_words(games.all))
    lost: Payoffs = np.nanmax(values, 1) - values[games.all, chosen]
    return float(lost.mean())


class Perfect(Bot):
    """Plays one of the best cards, by the exact values."""

    name = "perfect"
    sees_all_hands = True

    def act(self, view: Any, rng: np.random.Generator) -> int:
        """Not asked: `act_batch` is."""
        raise NotImplementedError

    def act_batch(self, views: States, rules: Rules, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        best = best_many(views, rules)
        return np.array([int(mask).bit_length() - 1 for mask in best.tolist()])


def shortfall(bot: Bot, rules: Rules, deals: int = 500) -> float:
    """How far the bot stays below the exact values of the deals, in both seats against perfect play, a deal."""
    total = 0.0
    for seat in (0, 1):
        games = Deals(rules, np.arange(deals), DEALS)
        exact = np.nanmax(values_many(games.states, rules), 1)
        exact = np.where(games.turns == seat, exact, -exact)  # of a deal to the bot's seat
        seating = np.full((deals, 2), 1)
        seating[:, seat] = 0
        play_on(games, [bot, Perfect()], seating, games.all)
        total += float((exact - games.payoffs(games.all)[:, seat]).mean())
    return total / 2


def test_yardstick__perfect_play_loses_nothing_and_others_do() -> None:
    rules = Rules.of(TWO_SUITS)
    assert value_given_away(Perfect(), rules) == shortfall(Perfect(), rules) == 0
    assert value_given_away(GreedyBot(), rules) == pytest.approx(0.13, abs=0.005)
    _, values = positions_that_matter(rules, 500)
    by_chance = float((np.nanmax(values, 1) - np.nanmean(values, 1)).mean())
    assert value_given_away(RandomBot(), rules) == pytest.approx(by_chance, abs=0.1)


# --- whose reward it is ----------------------------------------------------------------------------------------------


class PaysLosersOnly(SeatBuffer):
    """A game whose only reward is due after another seat's move: the winner, who ends a deal, gets nothing.

    What is best in it is what is best in the game as it is: winning and losing are as far apart for every seat.
    """

    def finish(self, games: Index, payoffs: Payoffs) -> None:
        super().finish(games, np.minimum(payoffs, 0))


class PaysWhoDecidedLast(PaysLosersOnly):
    """A wrong collector: only the seat that made the deal's last decision is paid; who waits for the end is not."""

    def finish(self, games: Index, payoffs: Payoffs) -> None:
        last = self._last[games].argmax(1)
        paid = np.zeros_like(payoffs)
        paid[np.arange(len(games)), last] = payoffs[np.arange(len(games)), last]
        super().finish(games, paid)


class ChainsTheTable(PaysLosersOnly):
    """A wrong collector: the decisions of all seats of a game are one trajectory, paid as the last of them was.

    So do wrappers that give each step of a turn-based game to one learner.
    """

    def add_decisions(self, games: Index, seats: Index, **columns: NDArray[Any]) -> None:
        if not hasattr(self, "_deciders"):
            self._deciders = np.zeros(self.n_envs, np.int64)
        self._deciders[games] = seats
        super().add_decisions(games, np.zeros_like(seats), **columns)

    def finish(self, games: Index, payoffs: Payoffs) -> None:
        paid = np.zeros_like(payoffs)
        paid[:, 0] = payoffs[np.arange(len(games)), self._deciders[games]]
        super().finish(games, paid)


# What a choice gives away after 30,000 decisions, with seeds 0-7: 0.052-0.086 with the right credit (mean 0.074, spread
# 0.012), 0.22-0.34 when only the last to decide is paid, 0.30-0.57 when the table is one trajectory. Single runs go
# their own way where matrix products round otherwise (0.18 was seen for the first wrong one after 40,000), so means of
# two are compared: the right one is below greedy's 0.13 by six of its spreads, a wrong one is over twice as high.
BAR = 0.13
SEEDS = range(2)


@functools.cache
def given_away_when_credited_by(buffer: type[SeatBuffer]) -> float:
    def run(seed: int) -> float:
        model = learner([Rules.of(TWO_SUITS)], seed)
        model.rollout_buffer = buffer(
            model.n_steps, model.observation_space, model.action_space, model.device,
            gae_lambda=model.gae_lambda, gamma=model.gamma, n_envs=model.n_envs,
        )  # type: ignore[arg-type] # fmt: skip
        return value_given_away(bot_of(model.learn(30_000)), Rules.of(TWO_SUITS))

    return sum(map(run, SEEDS)) / len(SEEDS)


def test_self_play__learns_from_rewards_that_are_due_after_another_seats_move() -> None:
    assert given_away_when_credited_by(PaysLosersOnly) < BAR


@pytest.mark.parametrize("wrong", [PaysWhoDecidedLast, ChainsTheTable])
def test_self_play__of_wrong_credit_does_not_learn_it_so_the_probe_can_fail(wrong: type[SeatBuffer]) -> None:
    assert given_away_when_credited_by(wrong) > 2 * given_away_when_credited_by(PaysLosersOnly)


# --- how well it plays -----------------------------------------------------------------------------------------------


def test_self_play__reaches_the_exact_value_of_a_mini_deck() -> None:
    rules = Rules.of(TWO_SUITS)

    def run(seed: int) -> tuple[float, float]:
        model = learner([rules], seed, learning_rate=lambda left: 8e-3 * (0.05 + 0.95 * left), batch_size=256)
        bot = bot_of(model.learn(40_000))
        return value_given_away(bot, rules), shortfall(bot, rules)

    # With seeds 0-5: 0.043-0.052 a choice that matters, spread 0.004 (greedy 0.13, random 0.82); and a deal, which is
    # worth 1 or -1, against perfect play 0.036-0.052, spread 0.006 (greedy 0.09, random 0.50). So the bar is at seven
    # spreads of a mean of two.
    a_choice, a_deal = np.mean([run(seed) for seed in range(2)], 0)
    assert a_choice < 0.075
    assert a_deal < 0.075


def test_self_play__of_two_to_six_seats_at_once_beats_random_players_at_each() -> None:
    rules = [Rules.of(f"first_out num_players={n} num_suits=3 ranks=6789TJQ") for n in range(2, 7)]

    def run(seed: int) -> list[float]:
        bot = bot_of(learner(rules, seed, num_games=200).learn(40_000))
        wins = [evaluate(bot, make_opponents("random", one.num_players - 1), one, 400, DEALS).win_rate for one in rules]
        return [one.mean * n for n, one in enumerate(wins, 2)]

    # 1 is chance. With seeds 0-4: 1.73-1.76, 1.51-1.55, 1.21-1.23, 1.19-1.21, 1.07-1.08, spreads 0.005-0.015, as high
    # as greedy's own; an untrained network has 0.7-1.2, the highest at few seats.
    relative = np.mean([run(seed) for seed in range(2)], 0)
    assert (relative > [1.6, 1.4, 1.14, 1.12, 1.03]).all(), relative


def test_self_play__the_same_seed_gives_the_same_weights_bit_for_bit_and_another_does_not() -> None:
    def weights(seed: int) -> list[torch.Tensor]:
        return list(policy_of(learner([Rules.of(TWO_SUITS)], seed).learn(5_000)).parameters())

    one, two, other = weights(1), weights(1), weights(2)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(one, other, strict=True) if a.ndim > 1)


@pytest.mark.slow
def test_self_play__comes_close_to_perfect_play_of_27_cards_after_600_000_decisions() -> None:
    rules = Rules.of("first_out num_players=2 num_suits=3")
    model = learner([rules], num_games=256, learning_rate=lambda left: 5e-3 * left, batch_size=1024)
    bot = bot_of(model.learn(600_000))
    # Measured with seeds 0 and 1: 0.025 and 0.038 a choice that matters (greedy 0.107), 0.041 and 0.032 a deal (0.119).
    assert value_given_away(bot, rules, 1000) < 0.055
    assert shortfall(bot, rules, 1000) < 0.06


# --- the one-seat environment under stable-baselines3's own PPO ------------------------------------------------------

# Paid by cards left, the winner gets 0, and a seat that goes out pays nothing: every reward that is not 0 falls due on
# an opponent's move, after the learner's last one. Code that loses those rewards learns nothing at all.
DELAYED = TWO_SUITS + " payoff=cards"


class ForgetsDelayedRewards(DevyatkaVecEnv):
    """The fault the probe is for: a reward that falls due on an opponent's move is lost."""

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, dones, infos = super().step_wait()
        ended_by_learner: NDArray[np.bool_] = np.array(
            [bool(info) and info["terminal_observation"]["observation"][:18].sum() == 0 for info in infos]
        )
        return observations, np.where(ended_by_learner, rewards, 0).astype(np.float32), dones, infos


def train(env: DevyatkaVecEnv, decisions: int, learning_rate: float, hidden: list[int], seed: int = 0) -> PPO:
    torch.set_num_threads(1)
    model = PPO(
        MaskedPolicy, env, learning_rate=learning_rate, n_steps=16, batch_size=512, n_epochs=4, gamma=1.0,
        ent_coef=0.01, policy_kwargs={"network": {"kind": "mlp", "hidden": hidden}}, seed=seed, device="cpu",
    )  # fmt: skip
    return model.learn(decisions)


def win_rate_against_random(model: PPO, rules: Rules, deals: int) -> Estimate:
    return evaluate(bot_of(model), make_opponents("random", rules.num_players - 1), rules, deals, DEALS).win_rate


def wins_after_training_on(environment: type[DevyatkaVecEnv]) -> float:
    """The mean win rate of two trainings."""
    rules = Rules.of(DELAYED)
    models = [train(environment(rules, 128, "random"), 16_384, 5e-3, [32, 32], seed) for seed in range(2)]
    return float(np.mean([win_rate_against_random(model, rules, 1000).mean for model in models]))


# After 16,384 decisions with seeds 0-5: 0.725-0.765, spread 0.016, and 0.486-0.545, spread 0.028, when those rewards
# are lost. The bar is between them, six spreads of a mean of two from the nearer.
WINS = 0.64


def test_one_seat__learns_from_rewards_that_come_on_an_opponents_move() -> None:
    assert wins_after_training_on(DevyatkaVecEnv) > WINS


def test_one_seat__learns_nothing_when_those_rewards_are_lost_so_the_probe_can_fail() -> None:
    assert wins_after_training_on(ForgetsDelayedRewards) < WINS


@pytest.mark.slow
def test_one_seat__beats_three_random_bots_clearly_after_150_000_decisions() -> None:
    rules = Rules.of("first_out")
    model = train(DevyatkaVecEnv(rules, 256, "random"), 150_000, 2e-3, [128, 128])
    # Measured with seeds 0-2: 0.335-0.366, interval ±0.008 over 2,000 deals (greedy reaches some 0.40). 0.30 is three
    # intervals below the worst and six above chance.
    assert win_rate_against_random(model, rules, 2000).low > 0.30
