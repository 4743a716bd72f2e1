"""Self-play's opponents: the pool of snapshots and scripted bots, and how the environment draws them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from training_helpers import random_legal

from devyatka_env import Rules
from devyatka_env.bots import GreedyBot, RandomBot
from devyatka_env.bots.checkpoint import write_checkpoint
from devyatka_env.bots.network import build_network
from devyatka_env.envs.sb3 import DevyatkaVecEnv
from devyatka_env.records import States
from training.pool import OpponentPool

# --- the pool -------------------------------------------------------------------------------------------------


def pool_of(folder: Path, size: int, bots: tuple[str, ...] = ("random", "greedy"), share: float = 0.5) -> OpponentPool:
    return OpponentPool(folder, bots, share, size)


def add(pool: OpponentPool, step: int) -> None:
    """A snapshot as `Monitor.take_snapshot` makes it: on disk, then in the pool."""
    spec = {"kind": "mlp", "hidden": [2]}
    network = build_network(12, spec)
    with torch.no_grad():
        next(iter(network.parameters())).fill_(float(step))
    rules = Rules.from_text("first_out num_players=2 num_suits=2 ranks=6789TJ")
    write_checkpoint(pool.path(step), network.state_dict(), [rules], spec, steps=step)
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


@pytest.mark.parametrize("bots", [(), ("random",), ("random", "greedy")])
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_lineup__gives_bots_their_share_and_the_latest_half_of_the_rest(
    bots: tuple[str, ...], count: int, share: float, tmp_path: Path
) -> None:
    pool = pool_of(tmp_path / "pool", 4, bots, share)
    for step in range(count):
        add(pool, step)
    lineup, weights = pool.lineup()
    assert len(lineup) == len(weights) == len(bots) + count
    assert sum(weights) == pytest.approx(1)
    assert min(weights) >= 0
    of_bots = share if bots else 0.0
    assert sum(weights[: len(bots)]) == pytest.approx(of_bots)
    assert weights[-1] == pytest.approx((1 - of_bots) * (1 if count == 1 else 0.5))
    assert lineup[-1] is pool.snapshots[-1][1]


# --- drawn for every deal ---------------------------------------------------------------------------------------------


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
