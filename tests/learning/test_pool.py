"""Self-play's opponents: the pool of snapshots and fixed bots, and how the one-seat environment draws from a pool."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from devyatka_env import Rules
from devyatka_env.bots import GreedyBot, PolicyBot, RandomBot
from devyatka_env.bots.checkpoint import write_checkpoint
from devyatka_env.bots.network import build_network
from devyatka_env.engine import States
from devyatka_env.envs import DevyatkaVecEnv
from devyatka_env.learning import OpponentPool, Tables
from devyatka_env.learning.pool import ACTIVE
from devyatka_env.learning.tables import Finished
from tests.helpers.training_helpers import random_legal

SMALL = Rules.from_text("first_out num_players=2 num_suits=2 ranks=6789TJ")

# --- the pool -------------------------------------------------------------------------------------------------


def pool_of(folder: Path, size: int, bots: tuple[str, ...] = ("random", "greedy"), share: float = 0.5) -> OpponentPool:
    return OpponentPool(folder, bots, share, size)


def add(pool: OpponentPool, step: int) -> None:
    """A snapshot as `Monitor.take_snapshot` makes it: on disk, then in the pool."""
    spec = {"kind": "mlp", "hidden": [2]}
    network = build_network(12, spec)
    with torch.no_grad():
        next(iter(network.parameters())).fill_(float(step))
    write_checkpoint(pool.path(step), network.state_dict(), [SMALL], spec, steps=step)
    pool.add(step, network)


def test_pool__keeps_the_latest_and_earlier_ones_spread_over_the_run(tmp_path: Path) -> None:
    pool = pool_of(tmp_path / "pool", 4)
    for step in range(100, 3300, 100):
        add(pool, step)
        steps = [step for step, _ in pool.snapshots]
        assert len(steps) <= 4
        assert steps == sorted(steps)
        assert steps[-1] == step
        assert sorted(int(path.name) for path in (tmp_path / "pool").iterdir()) == steps
    gaps = np.diff([0, *steps])
    # Evenly spread they would be 800 apart; greedy thinning is known to stay within a factor of about two of that.
    assert gaps.max() <= 2.5 * 800
    assert steps[0] < 3200 / 2


def test_pool__of_one_snapshot_is_the_latest(tmp_path: Path) -> None:
    pool = pool_of(tmp_path / "pool", 1)
    for step in (10, 20, 30):
        add(pool, step)
    assert [step for step, _ in pool.snapshots] == [30]


def test_pool__restores_what_was_there_and_removes_later_ones(tmp_path: Path) -> None:
    pool = pool_of(tmp_path / "pool", 4)
    for step in (100, 200, 300, 400):
        add(pool, step)
    (tmp_path / "pool" / "000000000500.new").mkdir()  # half written when the run was killed
    again = pool_of(tmp_path / "pool", 4)
    again.restore(300)
    assert [step for step, _ in again.snapshots] == [100, 200, 300]
    for (step, bot), (_, old) in zip(again.snapshots, pool.snapshots, strict=False):
        assert bot.sample  # a snapshot plays as the learner did, sampling
        assert float(next(iter(bot.network.parameters())).view(-1)[0].detach()) == step
        assert bot.name == old.name
    assert not pool.path(400).exists()


@pytest.mark.parametrize("size", [0, 1, 2])
def test_pool__restored_with_less_room_thins_out(size: int, tmp_path: Path) -> None:
    pool = pool_of(tmp_path / "pool", 4)
    for step in (100, 200, 300, 400):
        add(pool, step)
    again = pool_of(tmp_path / "pool", size)
    again.restore(400)
    assert [step for step, _ in again.snapshots] == [200, 400][2 - size :]
    assert sorted(int(path.name) for path in (tmp_path / "pool").iterdir()) == [200, 400][2 - size :]
    assert again.takes_snapshots == (size > 0)


def test_pool__a_snapshot_is_not_touched_by_further_training(tmp_path: Path) -> None:
    pool = pool_of(tmp_path / "pool", 4)
    network = build_network(12, {"kind": "mlp", "hidden": [2]})
    pool.add(1, network)
    before = [weight.clone() for weight in pool.snapshots[0][1].network.parameters()]
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(1)
    assert all(torch.equal(a, b) for a, b in zip(before, pool.snapshots[0][1].network.parameters(), strict=True))
    assert network.training


# --- who plays next ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bots", [(), ("random",), ("random", "greedy")])
@pytest.mark.parametrize("count", [0, 1, 4])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_lineup__gives_the_fixed_bots_their_share_and_the_drawn_snapshots_the_rest(
    bots: tuple[str, ...], count: int, share: float, tmp_path: Path
) -> None:
    pool = pool_of(tmp_path / "pool", 4 if count else 0, bots, share)
    for step in range(count):
        add(pool, step)
    lineup = pool.lineup(0.25, 2)
    drawn = [bot for bot in lineup.bots if isinstance(bot, PolicyBot)]
    assert [bot.name for bot in lineup.bots[: len(bots)]] == list(bots)
    assert len(drawn) == len(lineup.bots) - len(bots) == (ACTIVE if count else 0)
    assert {id(bot) for bot in drawn} <= {id(bot) for _, bot in pool.snapshots}
    if not lineup.bots:
        assert lineup.share == 0
        return
    assert (lineup.share, lineup.learner_seats) == (0.25, 2)
    assert sum(lineup.weights) == pytest.approx(1)
    assert min(lineup.weights) >= 0
    of_bots = 0.0 if not bots else 1.0 if not count else share
    assert sum(lineup.weights[: len(bots)]) == pytest.approx(of_bots)
    assert len(set(lineup.weights[len(bots) :])) <= 1  # drawn by strength already, so alike from here on
    tables = Tables([SMALL], 4, 0)
    tables.set_lineup(lineup)  # refuses weights that do not fit


def test_lineup__fixed_bots_weigh_the_square_of_their_strength(tmp_path: Path) -> None:
    pool = pool_of(tmp_path / "pool", 0)
    pool.strengths = {"random": 0.5, "greedy": 1.5}
    assert pool.lineup(1.0, None).weights == pytest.approx([0.1, 0.9])
    pool.strengths = {"greedy": 2.0}  # one that has not played yet counts as the learner's equal
    assert pool.lineup(1.0, None).weights == pytest.approx([0.2, 0.8])
    pool.strengths = {"random": 0.0, "greedy": 1.0}  # and none is ever forgotten
    assert pool.lineup(1.0, None).weights == pytest.approx([0.01 / 1.01, 1 / 1.01])


def test_lineup__snapshots_are_drawn_by_the_square_of_their_strength(tmp_path: Path) -> None:
    pool = pool_of(tmp_path / "pool", 3, ())
    for step in (1, 2, 3):
        add(pool, step)
    pool.strengths = {"snapshot 1": 2.0, "snapshot 3": 0.5, "snapshot 2": 1.0}
    drawn = [bot.name for _ in range(2000) for bot in pool.lineup(1.0, None).bots]
    shares = [drawn.count(f"snapshot {step}") / len(drawn) for step in (1, 2, 3)]
    # Of 4,000 draws: a standard error of at most 0.007; five of them.
    assert shares == pytest.approx([4 / 5.25, 1 / 5.25, 0.25 / 5.25], abs=0.035)


def test_lineup__is_the_same_under_the_same_seed_and_another_under_another(tmp_path: Path) -> None:
    def draws(seed: int) -> list[str]:
        pool = OpponentPool(tmp_path / "pool", (), 0.0, 4, seed)
        for step in range(4):
            add(pool, step)
        return [bot.name for _ in range(20) for bot in pool.lineup(1.0, None).bots]

    assert draws(3) == draws(3)
    assert draws(3) != draws(4)


# --- how strong they are ----------------------------------------------------------------------------------------------


def finished(rows: Sequence[tuple[Sequence[int], Sequence[float]]]) -> Finished:
    """Deals by who sat where and who took the first place."""
    players = np.array([[*seats, *[-1] * (6 - len(seats))] for seats, _ in rows])
    wins = np.array([[*won, *[0.0] * (6 - len(won))] for _, won in rows])
    wins = wins.reshape(-1, 6)
    return Finished(np.arange(len(rows)), players.reshape(-1, 6), wins, wins)


def test_strength__moves_towards_the_wins_of_a_seat_relative_to_chance(tmp_path: Path) -> None:
    pool = pool_of(tmp_path / "pool", 0)
    pool.lineup(1.0, None)
    always = finished([((0, 1), (0, 1)), ((1, 0, 1, 0), (1, 0, 0, 0))])  # one of two seats, two of four: twice chance
    before = 1.0
    for _ in range(3000):
        pool.note(always)
        assert before < pool.strengths["random"] < 2
        before = pool.strengths["random"]
    assert before == pytest.approx(2, abs=0.06)  # 6,000 deals, of which each weighs 1 / 2,000
    assert "greedy" not in pool.strengths  # has not played
    for _ in range(3000):
        pool.note(finished([((2, 0, 0), (0, 0.5, 0.5)), ((0, 2, 2), (1, 0, 0))]))
    assert pool.strengths == pytest.approx({"random": before, "greedy": 0}, abs=0.06)


def test_strength__of_the_learners_equal_stays_1_at_any_number_of_seats_and_with_shared_places(tmp_path: Path) -> None:
    pool = pool_of(tmp_path / "pool", 0)
    pool.lineup(1.0, None)
    for _ in range(100):
        pool.note(
            finished([((0, 1, 1), (1 / 3, 1 / 3, 1 / 3)), ((1, 0), (0.5, 0.5)), ((1, 0), (1, 0)), ((1, 0), (0, 1))])
        )
    assert pool.strengths["random"] == pytest.approx(1)


def test_strength__does_not_depend_on_how_deals_come_in_and_needs_a_learner_at_the_table(tmp_path: Path) -> None:
    one, other = (pool_of(tmp_path / "pool", 0) for _ in range(2))
    for pool in (one, other):
        pool.lineup(1.0, None)
    win = ((0, 1, 0), (0.0, 1.0, 0.0))
    one.note(finished([win] * 6))
    for _ in range(6):
        other.note(finished([win]))
    assert one.strengths == pytest.approx(other.strengths)
    before = dict(one.strengths)
    one.note(finished([((1, 1), (1, 0)), ((0, 0), (1, 0))]))
    one.note(finished([]))
    assert one.strengths == before


def test_strength__is_kept_by_name_over_new_draws(tmp_path: Path) -> None:
    pool = pool_of(tmp_path / "pool", 1, ("random",))
    add(pool, 7)
    pool.lineup(1.0, None)
    pool.note(finished([((0, 2), (0, 1))]))
    kept = pool.strengths["snapshot 7"]
    assert kept > 1
    pool.lineup(1.0, None)
    pool.note(finished([((0, 2), (1, 0))]))
    assert pool.strengths["snapshot 7"] == pytest.approx(kept * (1 - 1 / 2000))


# --- `DevyatkaVecEnv.set_pool`: drawn for every seat of every deal ----------------------------------------------------


class Recorder(RandomBot):
    """A random bot that counts the decisions it was asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def act_batch(self, views: States, rules: Rules, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        self.asked += len(views)
        return super().act_batch(views, rules, words)


def play(env: DevyatkaVecEnv, steps: int) -> list[Any]:
    """Play afresh with random legal actions; what came back, in values that compare."""
    rng, trace = np.random.default_rng(0), []
    observations: Any = env.reset()
    for _ in range(steps):
        observations, rewards, dones, _ = env.step(random_legal(observations["action_mask"], rng))
        trace.append((observations["observation"].tobytes(), rewards.tolist(), dones.tolist()))
    return trace


def test_set_pool__draws_opponents_by_weight_for_each_seat_of_each_deal() -> None:
    bots = [Recorder(), Recorder(), Recorder()]
    env = DevyatkaVecEnv(Rules.of("first_out", num_players=3), 100)
    env.set_pool(bots, [0.2, 0.8, 0.0])
    play(env, 60)
    asked = np.array([bot.asked for bot in bots])
    # Over a thousand seats of deals: the share of the first is 0.2 with a standard error below 0.013; five of them.
    assert asked[0] / asked.sum() == pytest.approx(0.2, abs=0.065)
    assert asked[2] == 0


def test_set_pool__of_one_bot_is_that_opponent_in_every_seat() -> None:
    env, twin = (DevyatkaVecEnv(Rules.of("first_out"), 8, "random", seed=1) for _ in range(2))
    env.set_pool([GreedyBot(), RandomBot()], [1.0, 0.0])
    twin.set_opponents("greedy")
    assert play(env, 40) == play(twin, 40)


@pytest.mark.parametrize("weights", [[1.0], [0.5, 0.4], [0.5, 0.4, 0.1], [1.5, -0.5], [float("nan"), 1.0]])
def test_set_pool__refuses_bad_weights_and_keeps_the_old_opponents(weights: list[float]) -> None:
    env, twin = (DevyatkaVecEnv(Rules.of("first_out"), 8, "greedy", seed=1) for _ in range(2))
    with pytest.raises(ValueError, match="2 bots need as many weights"):
        env.set_pool([RandomBot(), RandomBot()], weights)
    assert play(env, 20) == play(twin, 20)
