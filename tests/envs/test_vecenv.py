"""`DevyatkaVecEnv`: stable-baselines3's VecEnv contract, and game for game what single environments play."""

from __future__ import annotations

from collections import Counter
from typing import Any

import gymnasium
import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from devyatka_env import Game, PlayerView, Rules
from devyatka_env.bots import Bot, BotError, CallableBot, GreedyBot, PolicyBot, RandomBot
from devyatka_env.envs import DevyatkaEnv, DevyatkaVecEnv
from devyatka_env.learning import MaskedPolicy
from devyatka_env.views.observation import Int8Array, observation_layout
from tests.helpers.players import tiny_network
from tests.helpers.training_helpers import MINI, random_legal

Observations = dict[str, Int8Array]


def rules_of(text: str) -> Rules:
    return Rules.from_text(text)


def bytes_of(observations: Observations) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in observations.items()}


def play(env: DevyatkaVecEnv, observations: Any, steps: int, seed: int = 0) -> list[Any]:
    """Step with random legal actions; all that came back, in values that compare."""
    rng, trace = np.random.default_rng(seed), []
    for _ in range(steps):
        observations, rewards, dones, infos = env.step(random_legal(observations["action_mask"], rng))
        ends = [(info["episode"]["l"], bytes_of(info["terminal_observation"])) for info in infos if info]
        trace.append((bytes_of(observations), rewards.tolist(), dones.tolist(), ends))
    return trace


def random_card(view: PlayerView, rng: np.random.Generator) -> int:
    """An opponent in Python, with coin flips of its own."""
    return int(rng.choice(view.legal_actions()))


# --- the contract ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", ["first_out", "round num_players=5", "sevens num_players=6", MINI])
def test_step__has_the_shapes_and_dtypes_of_its_spaces(rules: str) -> None:
    env = DevyatkaVecEnv(rules_of(rules), 5, "random")
    single = DevyatkaEnv(rules_of(rules))
    assert isinstance(env, VecEnv)
    assert (env.observation_space, env.action_space) == (single.observation_space, single.action_space)
    observations: Any = env.reset()
    rng = np.random.default_rng(0)
    for _ in range(60):
        assert isinstance(observations, dict)
        assert set(observations) == {"observation", "action_mask"}
        assert all(array.shape[0] == 5 and array.dtype == np.int8 for array in observations.values())
        for game in range(5):
            assert env.observation_space.contains({name: array[game] for name, array in observations.items()})
        assert observations["action_mask"].any(1).all()  # a mask is never all zero
        observations, rewards, dones, infos = env.step(random_legal(observations["action_mask"], rng))
        assert (rewards.shape, rewards.dtype, dones.shape, dones.dtype) == ((5,), np.float32, (5,), np.bool_)
        assert len(infos) == 5
        for done, reward, info in zip(dones, rewards, infos, strict=True):
            assert set(info) == ({"terminal_observation", "episode"} if done else set())
            if done:
                assert env.observation_space.contains(info["terminal_observation"])
                assert info["terminal_observation"]["action_mask"].nonzero()[0].tolist() == [env.rules.pass_action]
                assert info["episode"]["r"] == reward
                assert info["episode"]["l"] >= 1


def test_step__arrays_belong_to_the_caller() -> None:
    env = DevyatkaVecEnv(rules_of(MINI), 16, "random")
    rng, kept = np.random.default_rng(0), []
    observations: Any = env.reset()
    for _ in range(30):
        observations, rewards, dones, infos = env.step(random_legal(observations["action_mask"], rng))
        arrays = [*observations.values(), rewards, dones]
        arrays += [array for info in infos for array in info.get("terminal_observation", {}).values()]
        kept += [(array, array.copy()) for array in arrays]
    assert all((array == then).all() for array, then in kept)
    before = bytes_of(env.reset())
    for array in observations.values():
        array[:] = 1  # nor is the game the caller's to change
    assert bytes_of(env.reset()) == before


def test_attributes__follow_the_vecenv_contract() -> None:
    env = DevyatkaVecEnv(rules_of("first_out"), 4)
    env.reset()
    assert env.get_attr("rules") == [env.rules] * 4
    assert env.get_attr("render_mode", [0, 2]) == [None, None]
    assert env.has_attr("rules")
    assert not env.has_attr("no_such_attribute")
    env.set_attr("note", "seen")
    assert env.get_attr("note", 1) == ["seen"]
    with pytest.raises(ValueError, match="share 'note'"):
        env.set_attr("note", "hidden", indices=[0])
    assert env.env_is_wrapped(Monitor) == [False] * 4
    assert env.env_is_wrapped(gymnasium.Wrapper, indices=[1]) == [False]
    env.close()


def test_env_method__gives_a_mask_a_game() -> None:
    env = DevyatkaVecEnv(rules_of("first_out"), 4)
    masks = env.reset()["action_mask"]
    assert env.action_masks().dtype == np.bool_
    assert (env.action_masks() == masks).all()
    chosen = env.env_method("action_masks", indices=[3, 1])
    assert [row.tolist() for row in chosen] == [(masks[3] != 0).tolist(), (masks[1] != 0).tolist()]


def test_step__an_illegal_action_names_the_game_and_changes_nothing() -> None:
    env, twin = (DevyatkaVecEnv(rules_of("first_out"), 6, "random", seed=3) for _ in range(2))
    observations = env.reset()
    twin.reset()
    actions = random_legal(observations["action_mask"], np.random.default_rng(0))
    for action in (int((observations["action_mask"][4] == 0).argmax()), 36, 99, -1):
        wrong = actions.copy()
        wrong[4] = action
        with pytest.raises(ValueError, match=rf"illegal action {action} in game 4 \(deal 4 of seed 3.*legal: \["):
            env.step(wrong)
    assert play(env, observations, 20) == play(twin, observations, 20)


# --- the same game as everywhere -------------------------------------------------------------------------------------

OPPONENTS: list[Bot] = [RandomBot(), GreedyBot(), CallableBot(random_card)]


@pytest.mark.parametrize("skip_forced", [True, False])
@pytest.mark.parametrize(
    "text",
    ["first_out", "first_out num_players=2", "one_loser num_players=5", "winner_and_loser num_players=3", "any_nine",
     "bank num_players=6", "nine_each num_players=3", "sevens", MINI, f"{MINI} payoff=cards",
     "first_out num_players=3 num_suits=2 ranks=789 starter=8"],
)  # fmt: skip
def test_step__equals_single_games_of_the_same_deals(text: str, skip_forced: bool) -> None:
    rules, num_envs, seed = rules_of(text), 5, 11
    opponents = [OPPONENTS[k % 3] for k in range(rules.num_players - 1)]
    env = DevyatkaVecEnv(rules, num_envs, opponents, seed=seed, skip_forced=skip_forced)

    def single(index: int, seat: int) -> tuple[DevyatkaEnv, Observations]:
        game = DevyatkaEnv(rules, opponents=opponents, seat=seat, skip_forced=skip_forced, illegal="raise")
        observation, _ = game.reset(seed=seed)
        for _ in range(index):
            observation, _ = game.reset()
        return game, observation

    deals = list(range(num_envs))
    seats = [game % rules.num_players for game in range(num_envs)]
    singles = [single(deal, seat) for deal, seat in zip(deals, seats, strict=True)]
    observations: Any = env.reset()
    rng, finished = np.random.default_rng(1), 0
    while finished < 4 * num_envs:
        actions = random_legal(observations["action_mask"], rng)
        for i, (_, seen) in enumerate(singles):
            assert bytes_of({name: array[i] for name, array in observations.items()}) == bytes_of(seen)
        observations, rewards, dones, infos = env.step(actions)
        for i, (game, _) in enumerate(singles):
            seen, reward, over, _, _ = game.step(actions[i])
            assert (rewards[i], dones[i]) == (np.float32(reward), over)
            singles[i] = game, seen
            if over:
                assert bytes_of(infos[i]["terminal_observation"]) == bytes_of(seen)
                finished += 1
                deals[i] += num_envs
                seats[i] = (seats[i] + 1) % rules.num_players
                singles[i] = single(deals[i], seats[i])


@pytest.mark.parametrize("text", ["first_out", "round num_players=5", "any_nine", "nine_each num_players=2"])
@pytest.mark.parametrize("first", [7, 126, 2**40])  # a resumed run begins far from deal 0
def test_reset__deals_are_those_of_game(text: str, first: int) -> None:
    rules = rules_of(text)
    env = DevyatkaVecEnv(rules, 12, "random", seed=2, first_deal=first, skip_forced=False)
    observations = env.reset()["observation"]
    for i, row in enumerate(observations):
        seen = observation_layout(rules.pass_action).split(row)
        game = Game.deal(rules, 2, first + i)
        dealt = sum(1 << int(card) for card in seen["hand"][0].nonzero()[0])
        assert dealt == game.hand_masks[env.batch.seats[i]]  # skip_forced=False: it has played nothing
    assert env.next_deal == first + 12
    offsets = (env.batch.seats - env.batch.games.states["dealer"]) % rules.num_players
    assert offsets.tolist() == [(1 + first + i) % rules.num_players for i in range(12)]


def test_reset__starts_the_same_deals_again() -> None:
    env = DevyatkaVecEnv(rules_of("first_out"), 8, "random", seed=5)
    first = env.reset()
    trace = play(env, first, 25)
    assert bytes_of(env.reset()) == bytes_of(first)
    assert play(env, first, 25) == trace


def test_seed__chooses_the_deals_of_the_next_reset() -> None:
    """PPO(seed=...) and users of VecEnv call `seed`; ignored silently, two seeds would train on the same deals."""
    env = DevyatkaVecEnv(rules_of("first_out"), 8, "random", seed=0)
    env.seed(5)
    assert bytes_of(env.reset()) == bytes_of(DevyatkaVecEnv(rules_of("first_out"), 8, "random", seed=5).reset())


# --- rewards ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_reward__comes_at_the_end_and_reaches_the_loser_although_an_opponent_ends_the_deal(seats: int) -> None:
    # Paid by cards left, a seat that ends the deal itself gets 0: every reward below arrives on an opponent's move.
    env = DevyatkaVecEnv(rules_of(f"first_out num_players={seats} payoff=cards"), 64, "greedy")
    layout = observation_layout(36)
    observations: Any = env.reset()
    rng, lost = np.random.default_rng(0), 0
    for _ in range(40):
        observations, rewards, dones, infos = env.step(random_legal(observations["action_mask"], rng))
        assert not rewards[~dones].any()
        for i in dones.nonzero()[0]:
            left = layout.split(infos[i]["terminal_observation"]["observation"])["cards_left"][0]
            assert rewards[i] == -left[0]
            assert (left[:seats] == 0).sum() == 1  # one seat is out: the learner, or the opponent that ended it
            lost += left[0] > 0
    assert lost > 100  # greedy wins more than 100 of several hundred deals against random play


def test_reward__of_a_learner_that_goes_out_early_comes_at_its_last_card() -> None:
    env = DevyatkaVecEnv(rules_of("one_loser num_players=5"), 64, "random")
    layout = observation_layout(36)
    observations: Any = env.reset()
    rng, seen = np.random.default_rng(0), Counter[float]()
    for _ in range(60):
        observations, rewards, dones, infos = env.step(random_legal(observations["action_mask"], rng))
        for i in dones.nonzero()[0]:
            last = layout.split(infos[i]["terminal_observation"]["observation"])
            assert (last["cards_left"][0] > 0).sum() == 1  # played on, without the learner, to a single loser
            assert rewards[i] == np.float32(-1 if last["cards_left"][0, 0] else 0.25)
            seen[round(float(rewards[i]), 2)] += 1
    assert min(seen[-1.0], seen[0.25]) > 20


# --- who sits where --------------------------------------------------------------------------------------------------


def offsets_from_dealer(env: DevyatkaVecEnv, steps: int) -> list[Counter[int]]:
    """For each game, how many deals the learner played at each distance from the dealer."""
    rng, seen = np.random.default_rng(0), [Counter[int]() for _ in range(env.num_envs)]
    observations: Any = env.reset()
    for _ in range(steps):
        offsets = (env.batch.seats - env.batch.games.states["dealer"]) % env.rules.num_players
        observations, _, dones, _ = env.step(random_legal(observations["action_mask"], rng))
        for i in dones.nonzero()[0]:
            seen[i][int(offsets[i])] += 1
    return seen


@pytest.mark.parametrize("text", ["first_out", "first_out num_players=5", "round", "any_nine deals=4"])
@pytest.mark.parametrize("num_envs", [1, 4, 5])
def test_rotation__every_game_visits_every_seat_alike(text: str, num_envs: int) -> None:
    """Also where the dealer moves: a learner that moves along with it would always open, or never."""
    for counts in offsets_from_dealer(DevyatkaVecEnv(rules_of(text), num_envs, "random"), 150):
        assert len(counts) == rules_of(text).num_players
        assert max(counts.values()) - min(counts.values()) <= 1


def test_skip_forced__leaves_choices_only_and_without_it_every_own_turn_is_shown() -> None:
    for skip_forced in (True, False):
        env = DevyatkaVecEnv(rules_of("first_out"), 32, "random", skip_forced=skip_forced)
        trace = play(env, env.reset(), 30)
        masks = np.concatenate([np.frombuffer(seen["action_mask"], np.int8).reshape(32, 37) for seen, *_ in trace])
        over = masks[:, 36] == 1  # deals that left the learner no choice at all; PASS is legal nowhere else
        assert (masks[over].sum(1) == 1).all()
        assert (masks[~over].sum(1).min() == 1) is not skip_forced


def test_deal_without_a_choice__is_over_before_the_first_step_which_brings_the_reward() -> None:
    env = DevyatkaVecEnv(rules_of("first_out num_players=2 num_suits=2 ranks=789 starter=8"), 64, "random")
    observations = env.reset()
    over = observations["action_mask"][:, -1] == 1
    assert over.any()
    assert not over.all()
    actions = random_legal(observations["action_mask"], np.random.default_rng(0))
    _, rewards, dones, infos = env.step(actions)
    assert dones[over].all()
    assert set(np.abs(rewards[over])) == {1.0}
    assert {infos[i]["episode"]["l"] for i in over.nonzero()[0]} == {1}


def test_opponents__that_do_not_play_the_rules_are_refused() -> None:
    specialist = PolicyBot(tiny_network(), (Rules.of("one_loser"),), name="specialist")
    with pytest.raises(ValueError, match="specialist was trained for one_loser"):
        DevyatkaVecEnv("first_out", 2, specialist)
    env = DevyatkaVecEnv("one_loser", 2, specialist)
    assert env.rules == Rules.of("one_loser")
    env.set_pool([specialist, RandomBot()], [0.5, 0.5])
    with pytest.raises(ValueError, match="0 bots need as many weights"):
        env.set_pool([], [])


def test_step__needs_a_reset() -> None:
    env = DevyatkaVecEnv("first_out", 2)
    with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\)"):
        env.step(np.full(2, 12))


def test_opponents__a_wrong_number_is_refused_and_a_failing_one_is_named() -> None:
    with pytest.raises(ValueError, match="2 opponents given; 3 seats need 1"):
        DevyatkaVecEnv(rules_of("first_out"), 2, ["random", "greedy"])
    env = DevyatkaVecEnv(rules_of("first_out"), 2, CallableBot(lambda view, rng: 99, "cheater"), seed=4)
    with pytest.raises(BotError, match=r"bot cheater failed \(deal .* of seed 4\): illegal action 99"):
        env.reset()


# --- stable-baselines3 around it -------------------------------------------------------------------------------------


def test_ppo__plain_multi_input_policy_is_accepted_and_its_illegal_play_is_refused() -> None:
    env = DevyatkaVecEnv(rules_of(MINI), 8, "random")
    model = PPO("MultiInputPolicy", env, n_steps=8, batch_size=32, device="cpu", seed=0)
    actions, _ = model.predict(env.reset())
    assert actions.shape == (8,)
    with pytest.raises(ValueError, match=r"illegal action \d+ in game \d"):
        model.learn(256)


def test_evaluate_policy__and_monitor_wrap_it() -> None:
    env = VecMonitor(DevyatkaVecEnv(rules_of(MINI), 4, "random"))
    spec = {"network": {"kind": "mlp", "hidden": [8]}}
    model = PPO(MaskedPolicy, env, n_steps=8, batch_size=32, policy_kwargs=spec, device="cpu", seed=0)
    rewards, lengths = evaluate_policy(model, env, 40, deterministic=False, return_episode_rewards=True)
    assert isinstance(rewards, list)
    assert isinstance(lengths, list)
    assert set(rewards) == {1.0, -1.0}
    assert min(lengths) >= 1


def test_set_options__are_refused_rather_than_ignored() -> None:
    env = DevyatkaVecEnv(rules_of("first_out"), 2, "random")
    env.set_options({})
    with pytest.raises(ValueError, match=r"no reset options, not .*hands"):
        env.set_options({"hands": ["6♣"]})


def test_infos__that_a_caller_keeps_are_not_emptied_by_later_steps() -> None:
    env = DevyatkaVecEnv(rules_of("first_out"), 16, "random")
    observation = env.reset()
    kept: list[dict[str, Any]] = []
    for _ in range(40):
        observation, _, dones, infos = env.step(observation["action_mask"].argmax(1))
        kept += [info for info, done in zip(infos, dones, strict=True) if done]
    assert kept
    assert all("episode" in info for info in kept)
