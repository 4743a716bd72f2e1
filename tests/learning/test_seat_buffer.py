"""`SeatBuffer`: every seat's decisions are one trajectory, paid at its deal's end, and used in exactly one update.

The reference is generalised advantage estimation as its paper writes it, over plain lists of one seat's own decisions.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from devyatka_env import Rules
from devyatka_env.bots import GreedyBot, PolicyBot
from devyatka_env.bots.network import build_network
from devyatka_env.learning import LEARNER, Lineup, MaskedPolicy, SeatBuffer, SelfPlayPPO, TablesEnv
from devyatka_env.learning.policy import policy_of
from devyatka_env.learning.tables import Finished
from devyatka_env.views import observation_layout
from devyatka_env.views.observation import Int8Array
from tests.helpers.training_helpers import MINI

MAX_SEATS = 6
NUM_CARDS = 30  # of the deck that nobody deals: the buffer makes room by it


def gae(values: Sequence[float], payoff: float, gamma: float, lam: float) -> list[float]:
    """Advantages of one seat's decisions in one deal (Schulman et al. 2016, equations 12 and 16), term by term.

    The reward is 0 but for the last decision, after which the deal pays; what follows the deal is worth 0.
    """
    last = len(values) - 1
    deltas = [(payoff if t == last else gamma * values[t + 1]) - values[t] for t in range(len(values))]
    return [sum((gamma * lam) ** (k - t) * deltas[k] for k in range(t, len(deltas))) for t in range(len(deltas))]


# --- events of games that no engine dealt ----------------------------------------------------------------------------


@dataclass
class Made:
    """A decision: its number, and the value that was estimated when it was made."""

    number: int
    value: float


@dataclass
class Script:
    """What has happened, told to the buffer under test and kept in plain lists."""

    num_games: int
    rng: random.Random
    gamma: float
    lam: float
    buffer: SeatBuffer = field(init=False)
    made: int = 0
    expected: dict[int, tuple[float, float]] = field(default_factory=dict)  # of finished deals, not yet used
    chains: list[list[list[Made]]] = field(init=False)

    def __post_init__(self) -> None:
        space = spaces.Dict(
            {
                "observation": spaces.Box(0, 127, (4,), np.int8),
                "action_mask": spaces.Box(0, 1, (NUM_CARDS + 1,), np.int8),
            }
        )
        self.buffer = SeatBuffer(
            6, space, spaces.Discrete(NUM_CARDS + 1), gamma=self.gamma, gae_lambda=self.lam, n_envs=self.num_games
        )
        self.chains = [[[] for _ in range(MAX_SEATS)] for _ in range(self.num_games)]

    def play_round(self, seats: Sequence[int], ends: float) -> None:
        """A decision in some games, each by one of its ``seats[game]``; then some deals end, some twice."""
        rng, buffer = self.rng, self.buffer
        games = [game for game in range(self.num_games) if rng.random() < 0.8]
        deciders = [rng.randrange(seats[game]) for game in games]
        values = [rng.uniform(-1, 1) for _ in games]
        numbers = list(range(self.made, self.made + len(games)))
        self.made += len(games)
        for game, seat, value, number in zip(games, deciders, values, numbers, strict=True):
            self.chains[game][seat].append(Made(number, float(np.float32(value))))
        buffer.add_decisions(
            np.array(games, np.int64),
            np.array(deciders, np.int64),
            observation=np.array([digits(number) for number in numbers], np.int8).reshape(-1, 4),
            action_mask=np.ones((len(games), NUM_CARDS + 1), np.int8),
            action=np.array(numbers, np.int64) % 9,
            value=np.array(values, np.float32),
            log_prob=-np.array(numbers, np.float32),
        )
        over = [game for game in range(self.num_games) if rng.random() < ends]
        over += [game for game in over if rng.random() < 0.2]  # the next deal of the game ended without a decision
        payoffs = [[rng.uniform(-3, 3) for _ in range(MAX_SEATS)] for _ in over]
        for game, paid in zip(over, payoffs, strict=True):
            for seat, chain in enumerate(self.chains[game]):
                values = [one.value for one in chain]
                for one, advantage in zip(chain, gae(values, paid[seat], self.gamma, self.lam), strict=True):
                    self.expected[one.number] = advantage, advantage + one.value
            self.chains[game] = [[] for _ in range(MAX_SEATS)]
        buffer.finish(np.array(over, np.int64), np.array(payoffs).reshape(-1, MAX_SEATS))

    def check_update(self, batch_size: int) -> int:
        """An update gets the oldest whole minibatches of what has finished, every decision with its own row.

        Returns the number of its decisions.
        """
        buffer, expected = self.buffer, self.expected
        assert buffer.num_complete == len(expected)
        due = sorted(expected)[: len(expected) // batch_size * batch_size]
        assert buffer.collect_finished(batch_size) == len(due)
        assert len(buffer.advantages) == len(buffer.returns) == len(buffer.values) == len(due)
        seen: list[int] = []
        for batch in buffer.get(batch_size) if due else ():
            assert len(batch.actions) == batch_size
            for i, row in enumerate(batch.observations["observation"].tolist()):
                number = sum(digit * 100**k for k, digit in enumerate(row))
                seen.append(number)
                advantage, gained = expected[number]
                assert float(batch.advantages[i]) == pytest.approx(advantage, abs=1e-5)
                assert float(batch.returns[i]) == pytest.approx(gained, abs=1e-5)
                assert float(batch.old_values[i]) == pytest.approx(gained - advantage, abs=1e-5)
                assert float(batch.old_log_prob[i]) == -number
                assert int(batch.actions[i]) == number % 9
        assert sorted(seen) == due
        for number in due:
            del expected[number]
        buffer.reset()
        return len(seen)


def digits(number: int) -> list[int]:
    """A number as it stands in an observation of this test."""
    return [number // 100**k % 100 for k in range(4)]


@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 0.95), (0.9, 0.8), (1.0, 1.0), (1.0, 0.0)])
@pytest.mark.parametrize("seed", range(3))
def test_advantages__equal_a_brute_force_per_seat_gae_over_deals_that_span_updates(
    seed: int, gamma: float, lam: float
) -> None:
    rng = random.Random(seed)
    script = Script(7, rng, gamma, lam)
    seats = [2, 3, 4, 5, 6, 2, 6]
    used, spanned = 0, 0
    for _ in range(25):
        spanned += sum(bool(chain) for game in script.chains for chain in game)
        for _ in range(6):
            script.play_round(seats, ends=0.15)
        used += script.check_update(batch_size=10)
    assert spanned > 100  # the case is not empty
    script.play_round(seats, ends=1.0)
    used += script.check_update(batch_size=1)
    assert used == script.made  # every decision once, none lost


def test_buffer__holds_any_number_of_decisions_that_wait() -> None:
    """A big minibatch of a few games takes many more rounds than a rollout was to have."""
    script = Script(3, random.Random(0), 1.0, 0.95)
    room = len(script.buffer.rows["action"])
    for _ in range(2 * room):
        script.play_round([6, 6, 6], ends=0.01)
    script.buffer.reset()
    script.play_round([6, 6, 6], ends=1.0)
    assert script.made > 4 * room
    assert script.check_update(1000) // 1000 == script.made // 1000
    assert script.check_update(1) == script.made % 1000


def test_minibatches__are_in_another_order_each_time_and_follow_torchs_seed() -> None:
    def orders(seed: int) -> list[list[int]]:
        torch.manual_seed(seed)
        return [[int(one) for batch in script.buffer.get(8) for one in batch.old_log_prob] for _ in range(2)]

    script = Script(4, random.Random(1), 1.0, 0.95)
    for _ in range(20):
        script.play_round([4] * 4, ends=0.2)
    script.buffer.collect_finished(8)
    first = orders(0)
    assert first[0] != first[1]
    assert sorted(first[0]) == sorted(first[1])
    assert orders(0) == first
    assert orders(1) != first
    assert len(list(script.buffer.get())) == 1  # without a size all at once


# --- real games ------------------------------------------------------------------------------------------------------


class Recorder(SelfPlayPPO):
    """Writes down, on a way of its own, what every seat decided and what its deal paid; and what the updates got."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.due: dict[bytes, tuple[float, ...]] = {}  # of finished deals: advantage, value, log-probability, action
        self.chains: dict[tuple[int, int], list[tuple[bytes, float, float, float]]] = {}
        self.decisions = self.updates = self.spanned = 0

    def _play_round(self, env: TablesEnv, buffer: SeatBuffer) -> Finished:
        tables, step = env.tables, env.tables.step
        asked = np.flatnonzero(tables.pending == LEARNER)
        seats, rows, masks = (rows[asked] for rows in (tables.seats, tables.observations, tables.action_masks))
        taken: list[np.ndarray[Any, Any]] = []
        with pytest.MonkeyPatch.context() as spy:
            spy.setattr(tables, "step", lambda actions: taken.append(actions[asked]) or step(actions))
            finished = super()._play_round(env, buffer)
        seen = {"observation": torch.from_numpy(rows), "action_mask": torch.from_numpy(masks)}
        with torch.no_grad():
            values, log_probs, _ = policy_of(self).evaluate_actions(seen, torch.from_numpy(taken[0]))
        columns = values[:, 0].tolist(), log_probs.tolist(), taken[0].tolist()
        for game, seat, row, *made in zip(asked.tolist(), seats.tolist(), rows, *columns, strict=True):
            self.chains.setdefault((game, seat), []).append((row.tobytes(), *made))
        self.decisions += len(asked)
        for game, payoffs in zip(finished.games.tolist(), finished.payoffs.tolist(), strict=True):
            for seat, payoff in enumerate(payoffs):
                chain = self.chains.pop((game, seat), [])
                advantages = gae([value for _, value, _, _ in chain], payoff, self.gamma, self.gae_lambda)
                self.due |= {row: (a, *made) for (row, *made), a in zip(chain, advantages, strict=True)}
        return finished

    def train(self) -> None:
        """Compare, then learn, so that the next rollout's values are others."""
        got: list[bytes] = []
        assert isinstance(self.rollout_buffer, SeatBuffer)
        for batch in self.rollout_buffer.get(self.batch_size):
            rows = [row.tobytes() for row in batch.observations["observation"].numpy()]
            columns = batch.advantages, batch.old_values, batch.old_log_prob, batch.actions
            made = np.stack([column.numpy() for column in columns], 1)
            np.testing.assert_allclose(made, [self.due[row] for row in rows], atol=1e-5)
            assert len(rows) == self.batch_size
            assert (batch.observations["action_mask"].sum(1) >= 2).all()  # no forced turn
            got += rows
        assert len(set(got)) == len(got) == len(self.due) // self.batch_size * self.batch_size
        for row in got:
            del self.due[row]
        self.updates += len(got)
        self.spanned += sum(map(len, self.chains.values()))
        super().train()


MIXED = [
    "first_out num_players=2", "one_loser num_players=3", "bank num_players=4", "winner_and_loser num_players=5",
    "any_nine num_players=6", "nine_each num_players=3",
]  # fmt: skip


def test_self_play__gives_every_seat_of_mixed_games_its_own_credit() -> None:
    """36 cards: no two of these few thousand decisions are made on the same observation."""
    torch.manual_seed(0)
    env = TablesEnv([Rules.of(text) for text in MIXED], 36, seed=1)
    spec = {"kind": "suits", "width": 8, "layers": 2}
    network = PolicyBot(build_network(36, spec), sample=True)
    env.tables.set_lineup(Lineup([GreedyBot(), network], [0.5, 0.5], share=0.5))
    model = Recorder(
        MaskedPolicy, env, n_steps=8, batch_size=72, n_epochs=1, gamma=0.97, gae_lambda=0.9, learning_rate=1e-2,
        policy_kwargs={"network": spec}, seed=0, device="cpu",
    )  # fmt: skip
    model.learn(3000)
    assert model.num_timesteps == model.decisions
    in_play = sum(map(len, model.chains.values()))
    assert model.updates + len(model.due) + in_play == model.decisions
    assert model.spanned > 500


def test_round__is_one_forward_pass_of_each_network_over_all_games_whatever_their_rules() -> None:
    class Counted(PolicyBot):
        asked = 0

        def choose(self, observations: Int8Array, masks: Int8Array, words: NDArray[np.uint64]) -> NDArray[np.int64]:
            self.asked += 1
            return super().choose(observations, masks, words)

    env = TablesEnv([Rules.of(text) for text in MIXED], 60, seed=1)
    spec = {"kind": "mlp", "hidden": [4]}
    bots = [Counted(build_network(36, spec), sample=True) for _ in range(2)]
    env.tables.set_lineup(Lineup(bots, [0.5, 0.5], share=0.5))
    model = SelfPlayPPO(
        MaskedPolicy, env, n_steps=30, batch_size=64, policy_kwargs={"network": spec}, seed=0, device="cpu"
    )
    passes = 0
    model.policy.register_forward_hook(lambda *_: counted())

    def counted() -> None:
        nonlocal passes
        passes += 1

    model.learn(1)
    assert passes == 30
    assert all(0 < bot.asked <= 30 for bot in bots)


def test_rollout__goes_on_until_a_minibatch_of_finished_deals_is_there() -> None:
    """In the first rounds of a run no deal has ended yet: there would be nothing to learn from."""
    env = TablesEnv([Rules.of()], 16, seed=0)
    model = Recorder(
        MaskedPolicy, env, n_steps=1, batch_size=16, n_epochs=1, gamma=1.0,
        policy_kwargs={"network": {"kind": "mlp", "hidden": [4]}}, seed=0, device="cpu",
    )  # fmt: skip
    model.learn(600)
    assert model.num_timesteps == model.decisions >= 600
    assert model.updates >= 16


def test_model__saved_and_loaded_goes_on_learning(tmp_path: Any) -> None:
    rules = [Rules.from_text(MINI)]
    model = SelfPlayPPO(
        MaskedPolicy, TablesEnv(rules, 16, 0), n_steps=8, batch_size=64, gae_lambda=0.9, gamma=0.98,
        policy_kwargs={"network": {"kind": "suits", "width": 8, "layers": 1, "num_suits": 3}}, seed=0, device="cpu",
    )  # fmt: skip
    model.learn(200)
    model.save(tmp_path / "model")
    loaded = SelfPlayPPO.load(tmp_path / "model", env=TablesEnv(rules, 16, 0), device="cpu")
    assert all(
        torch.equal(a, b) for a, b in zip(policy_of(model).parameters(), policy_of(loaded).parameters(), strict=True)
    )
    assert isinstance(loaded.rollout_buffer, SeatBuffer)
    assert (loaded.rollout_buffer.gamma, loaded.rollout_buffer.gae_lambda) == (0.98, 0.9)
    loaded.learn(200)
    assert not all(
        torch.equal(a, b) for a, b in zip(policy_of(model).parameters(), policy_of(loaded).parameters(), strict=True)
    )


def test_environment__offers_what_the_tables_show_and_refuses_to_be_stepped() -> None:
    env = TablesEnv([Rules.of(num_players=n) for n in (2, 5)], 4, seed=0)
    assert env.observation_space["observation"].shape == (observation_layout(36).size,)
    seen = env.reset()
    for i in range(4):
        assert env.observation_space.contains({key: values[i] for key, values in seen.items()})
    with pytest.raises(RuntimeError, match="SelfPlayPPO"):
        env.step(np.zeros(4, np.int64))
