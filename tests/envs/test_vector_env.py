"""`DevyatkaVectorEnv`: Gymnasium's vector API, natively batched, in the format of Gymnasium's own vector classes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from numpy.typing import NDArray

import devyatka_env
from devyatka_env import Game, PlayerView, Rules, RulesError
from devyatka_env.bots import BotError, CallableBot, GreedyBot, PolicyBot, RandomBot
from devyatka_env.envs import DevyatkaEnv, DevyatkaVectorEnv
from devyatka_env.envs.learners import LearnerBatch
from devyatka_env.views.observation import Int8Array, observation_layout
from tests.helpers.players import tiny_network

ID = "devyatka/Devyatka-v0"
NO_CHOICE = "first_out num_players=2 num_suits=2 ranks=789 starter=8"
Masks = NDArray[Any]


def make(num_envs: int, rules: str = "first_out", **arguments: Any) -> DevyatkaVectorEnv:
    return DevyatkaVectorEnv(num_envs, Rules.from_text(rules), **arguments)


def random_legal(masks: Masks, rng: np.random.Generator) -> NDArray[np.int64]:
    """A random legal action for every mask."""
    actions: NDArray[np.int64] = (rng.random(masks.shape) * masks).argmax(1)
    return actions


def steps(env: Any, count: int, seed: int | None = 0, rng_seed: int = 0) -> Iterator[tuple[Any, ...]]:
    """Play with random legal actions; every step's answer, the actions after it."""
    rng = np.random.default_rng(rng_seed)
    observations, _ = env.reset(seed=seed)
    for _ in range(count):
        actions = random_legal(observations["action_mask"], rng)
        answer = env.step(actions)
        observations = answer[0]
        yield (*answer, actions)


def arrays_in(value: Any) -> Iterator[NDArray[Any]]:
    """Every array of numbers in nested dicts and object arrays."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from arrays_in(inner)
    elif isinstance(value, tuple | list) or (isinstance(value, np.ndarray) and value.dtype == object):
        for inner in value:
            yield from arrays_in(inner)
    elif isinstance(value, np.ndarray):
        yield value


def plain(value: Any) -> Any:
    """The same in values that compare."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list) or (isinstance(value, np.ndarray) and value.dtype == object):
        return [plain(inner) for inner in value]
    return (str(value.dtype), value.tolist()) if isinstance(value, np.ndarray) else value


def trace(env: Any, count: int, seed: int | None = 0, rng_seed: int = 0) -> list[Any]:
    return [plain(answer) for answer in steps(env, count, seed, rng_seed)]


def episode_ends(env: DevyatkaVectorEnv, count: int) -> Iterator[tuple[int, float, dict[str, Int8Array], int]]:
    """``(game, reward, final observation, seat)`` of every deal that ends in ``count`` steps."""
    for _, rewards, terminated, _, infos, _ in steps(env, count):
        for i in terminated.nonzero()[0]:
            yield int(i), float(rewards[i]), infos["final_obs"][i], int(infos["final_info"]["seat"][i])


# --- the contract ----------------------------------------------------------------------------------------------------


def test_make_vec__gives_the_native_batch() -> None:
    env: Any = gymnasium.make_vec(devyatka_env.ENV_ID, num_envs=64, opponents="greedy", num_players=3)
    assert type(env) is DevyatkaVectorEnv
    assert (env.num_envs, env.rules) == (64, Rules.of("first_out", num_players=3))
    assert env.spec.id == ID
    assert env.unwrapped is env
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    observations, _ = env.reset(seed=1)
    assert observations["action_mask"].shape == (64, 37)
    env.close()
    assert env.closed


def test_make_vec__still_batches_single_environments_when_asked() -> None:
    env = gymnasium.make_vec(ID, num_envs=2, vectorization_mode="sync", opponents="random")
    assert isinstance(env, SyncVectorEnv)
    env.reset(seed=0)


def test_constructor__takes_every_argument_of_the_single_environment() -> None:
    single, batch = (
        [(one.name, one.default, one.kind) for one in inspect.signature(kind).parameters.values()]
        for kind in (DevyatkaEnv, DevyatkaVectorEnv)
    )
    assert batch[1:] == single
    assert make(2, render_mode=None).render_mode is None
    with pytest.raises(ValueError, match="a batch draws no pictures"):
        make(2, render_mode="ansi")


@pytest.mark.parametrize("text", ["first_out", "round num_players=5", "sevens num_players=6", NO_CHOICE])
@pytest.mark.parametrize("skip_forced", [False, True])
def test_step__has_the_shapes_and_dtypes_of_its_spaces(text: str, skip_forced: bool) -> None:
    env = make(5, text, opponents="random", skip_forced=skip_forced)
    single = DevyatkaEnv(Rules.from_text(text))
    assert env.single_observation_space == single.observation_space
    assert env.single_action_space == single.action_space
    assert env.observation_space == gymnasium.vector.utils.batch_space(single.observation_space, 5)
    observations, infos = env.reset(seed=0)
    assert observations in env.observation_space
    assert (infos["action_mask"] == observations["action_mask"]).all()
    for seen, rewards, terminated, truncated, infos, actions in steps(env, 60):
        assert seen in env.observation_space
        assert actions in env.action_space
        assert (rewards.shape, rewards.dtype) == ((5,), np.float64)
        for flags in (terminated, truncated):
            assert (flags.shape, flags.dtype) == ((5,), np.bool_)
        assert not truncated.any()
        assert not rewards[~terminated].any()
        assert seen["action_mask"].any(1).all()  # a mask is never all zero, of a deal just begun neither
        assert (infos["action_mask"] == seen["action_mask"]).all()
        assert (env.action_masks() == seen["action_mask"]).all()
        assert env.action_masks().dtype == np.bool_
        assert ("final_obs" in infos) == terminated.any()
        if terminated.any():
            assert (infos["_final_obs"] == terminated).all()
            assert (infos["_final_info"] == terminated).all()
            for i, over in enumerate(terminated):
                assert (infos["final_obs"][i] is not None) == over
                if over:
                    last = infos["final_obs"][i]
                    assert last in env.single_observation_space
                    assert last["action_mask"].nonzero()[0].tolist() == [env.rules.pass_action]
                    assert (infos["final_info"]["action_mask"][i] == last["action_mask"]).all()


def kinds(value: Any) -> Any:
    """The structure of an info: keys, shapes and dtypes."""
    if isinstance(value, dict):
        return {key: kinds(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [kinds(inner) for inner in value]
    return (value.shape, value.dtype) if isinstance(value, np.ndarray) else value


def test_infos__have_the_format_of_gymnasiums_own_vector_environments() -> None:
    """The same deal in every game of both, seats fixed: answer for answer equal until the first deal ends."""
    for seed in range(12):
        native = make(1, opponents="greedy", seat=seed % 4)
        singles = SyncVectorEnv(
            [lambda seat=seed % 4: DevyatkaEnv(opponents="greedy", seat=seat)],  # type: ignore[misc]
            autoreset_mode=AutoresetMode.SAME_STEP,
        )
        assert plain(native.reset(seed=seed)) == plain(singles.reset(seed=seed))
        assert trace(native, 40, seed) == trace(singles, 40, seed)  # one game: its next deals are the same ones, too
        native.reset(seed=seed)
        singles.reset(seed=seed)
        for action in (0, 1, 2, 3) * 3:  # mostly illegal
            one, other = native.step([action]), singles.step(np.array([action]))
            assert kinds(one[4]) == kinds(other[4])
            if plain(one) != plain(other):  # another random card in its place: from here the games are different ones
                break


def test_step__arrays_belong_to_the_caller() -> None:
    env, twin = (make(16, NO_CHOICE, opponents="random") for _ in range(2))
    kept = [(array, array.copy()) for answer in steps(env, 30) for array in arrays_in(answer)]
    assert len(kept) > 300
    assert all((array == then).all() for array, then in kept)
    expected = trace(twin, 30)
    found = []
    for answer in steps(env, 30):
        found.append(plain(answer))
        for array in arrays_in(answer[4]):
            array[...] = 1  # infos share nothing with the observations, nor with each other, nor with the game
        assert plain(answer[:4]) == found[-1][:4]
    assert found == expected


def test_wrappers__of_gymnasium_work_on_it() -> None:
    env = DictInfoToList(RecordEpisodeStatistics(make(8, NO_CHOICE, opponents="random")))
    observations, _ = env.reset(seed=0)
    rng, ended = np.random.default_rng(0), 0
    for _ in range(20):
        observations, rewards, terminated, _, infos = env.step(random_legal(observations["action_mask"], rng))  # type: ignore[call-overload]
        for i in terminated.nonzero()[0]:
            assert infos[i]["episode"]["r"] == rewards[i]
            assert set(infos[i]["final_obs"]) == {"observation", "action_mask"}
            ended += 1
    assert ended > 20


# --- seeds and deals -------------------------------------------------------------------------------------------------


def hands_of(env: DevyatkaVectorEnv, observations: Any) -> list[int]:
    layout = observation_layout(env.rules.pass_action)
    rows = [layout.split(row)["hand"][0] for row in observations["observation"]]
    return [sum(1 << int(card) for card in row.nonzero()[0]) for row in rows]


@pytest.mark.parametrize("text", ["first_out", "round num_players=5", "any_nine", "nine_each num_players=2"])
def test_reset__deals_are_those_of_game_and_without_a_seed_the_next_ones(text: str) -> None:
    env = make(12, text, opponents="random")
    for first, seed in ((0, 2), (12, None), (24, None), (0, 2)):
        observations, infos = env.reset(seed=seed)
        for i, hand in enumerate(hands_of(env, observations)):
            assert hand == Game.deal(env.rules, 2, first + i).hand_masks[infos["seat"][i]]


def test_reset__of_a_seed_determines_all_that_follows() -> None:
    env = make(8, opponents="random", illegal="random")
    first = trace(env, 40, 5)
    assert trace(env, 40, 5) == first
    assert trace(make(8, opponents="random"), 40, 5) == first
    assert trace(env, 40, 6) != first


def test_reset__of_a_seed_determines_the_replaced_actions() -> None:
    def play(env: DevyatkaVectorEnv) -> list[Any]:
        env.reset(seed=2**64 - 1)
        return [plain(env.step(np.full(8, step % 37))) for step in range(30)]

    assert play(make(8)) == play(make(8))


def test_reset__without_any_seed_draws_one() -> None:
    first, second = (make(8).reset()[0] for _ in range(2))
    assert plain(first) != plain(second)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1", True, [1, 2]])
def test_reset__refuses_a_bad_seed_and_options_and_changes_nothing(seed: Any) -> None:
    env, twin = make(4), make(4)
    for one in (env, twin):
        one.reset(seed=3)
    with pytest.raises(ValueError, match="seed must be a whole number"):
        env.reset(seed=seed)
    with pytest.raises(ValueError, match=r"no reset options, not .*hands"):
        env.reset(options={"hands": ["6♣"]})
    assert plain(env.step([0] * 4)) == plain(twin.step([0] * 4))


def test_step__needs_a_reset() -> None:
    for illegal in ("random", "raise"):
        with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\)"):
            make(4, illegal=illegal).step([12] * 4)


# --- seats -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["first_out", "first_out num_players=5", "round", "any_nine deals=4"])
@pytest.mark.parametrize("num_envs", [1, 4, 5])
def test_rotate__every_game_visits_every_place_alike(text: str, num_envs: int) -> None:
    env = make(num_envs, text, opponents="random")
    n, deals = env.rules.num_players, [0] * num_envs
    visits = np.zeros((num_envs, n), int)
    for game, _, _, seat in episode_ends(env, 150):
        index = game + num_envs * deals[game]
        deals[game] += 1
        visits[game, (seat - env.rules.dealer(index)) % n] += 1
    assert (visits.max(1) - visits.min(1) <= 1).all()
    assert visits.sum() > 10 * num_envs


@pytest.mark.parametrize("seat", [0, 2, np.int64(3)])
def test_seat__fixed_is_that_seat_in_every_deal(seat: Any) -> None:
    env = make(6, "round", opponents="random", seat=seat)
    assert (env.reset(seed=0)[1]["seat"] == seat).all()
    seats = {found for *_, found in episode_ends(env, 80)}
    assert seats == {int(seat)}


@pytest.mark.parametrize("seat", [-1, 4, "2", "north", True, 1.0, None])
def test_seat__that_does_not_exist_is_refused(seat: Any) -> None:
    with pytest.raises(ValueError, match=r"seat must be 0 to 3 or 'rotate'"):
        make(2, seat=seat)
    with pytest.raises(ValueError, match=r"seat must be 0 to 3 or 'rotate'"):
        LearnerBatch("first_out", 2, seat=seat)


# --- rewards ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_reward__comes_at_the_end_and_reaches_the_loser_although_an_opponent_ends_the_deal(seats: int) -> None:
    # Paid by cards left, a seat that ends the deal itself gets 0: every other reward arrives on an opponent's move.
    env, lost = make(64, f"first_out num_players={seats} payoff=cards"), 0
    for _, reward, last, _ in episode_ends(env, 60):
        left = observation_layout(36).split(last["observation"])["cards_left"][0]
        assert reward == -left[0]
        assert (left[:seats] == 0).sum() == 1
        lost += left[0] > 0
    assert lost > 100  # greedy wins more than 100 of several hundred deals against random play


def test_deal_without_a_choice__is_over_before_the_first_step_which_brings_the_reward() -> None:
    for illegal in ("random", "raise"):
        env = make(64, NO_CHOICE, opponents="random", skip_forced=True, illegal=illegal)
        observations, _ = env.reset(seed=0)
        over = observations["action_mask"][:, -1] == 1
        assert over.any()
        assert not over.all()
        actions = random_legal(observations["action_mask"], np.random.default_rng(0))
        actions[over] = 77  # nothing is left to choose: whatever it is, as in the single environment
        _, rewards, terminated, _, infos = env.step(actions)
        assert terminated[over].all()
        assert set(np.abs(rewards[over])) == {1.0}
        assert "illegal_action" not in infos


# --- illegal actions -------------------------------------------------------------------------------------------------


def test_illegal_random__is_replaced_by_a_random_legal_one_and_reported() -> None:
    env = make(400, opponents="greedy")
    observations, _ = env.reset(seed=0)
    rng, replaced, final, played = np.random.default_rng(0), 0, 0, set()
    for _ in range(30):
        actions = rng.integers(-3, 40, 400)
        known = (actions >= 0) & (actions <= 36)
        legal = known & (observations["action_mask"][np.arange(400), np.where(known, actions, 0)] == 1)
        masks = observations["action_mask"]
        observations, _, terminated, _, infos = env.step(actions)
        reports = [(infos, ~terminated)] + ([(infos["final_info"], terminated)] if terminated.any() else [])
        for report, here in reports:
            wrong = ~legal & here
            assert (report.get("_illegal_action", np.zeros(400, bool)) == wrong).all()
            assert ("illegal_action" in report) == wrong.any()
            if wrong.any():
                assert (report["_played_action"] == wrong).all()
                assert (report["illegal_action"][wrong] == actions[wrong]).all()
                assert masks[np.flatnonzero(wrong), report["played_action"][wrong]].all()
                assert not report["illegal_action"][~wrong].any()
                replaced += int(wrong.sum())
                final += int(wrong.sum()) if report is not infos else 0
                played |= set(report["played_action"][wrong].tolist())
    assert replaced > 9000
    assert final > 100
    assert played == set(range(36))


def test_illegal_random__the_replacement_is_uniform_over_the_legal_cards() -> None:
    env = make(20_000, "first_out num_players=2", seat=0)
    observations, _ = env.reset(seed=0)
    for _ in range(3):
        observations, *_ = env.step(observations["action_mask"].argmax(1))
    masks = observations["action_mask"]
    _, _, _, _, infos = env.step(np.full(20_000, 36))  # PASS, illegal
    for report in (infos, infos.get("final_info", {})):
        if "_played_action" in report:
            masks_here, chosen = masks[report["_played_action"]], report["played_action"][report["_played_action"]]
            ranks = np.cumsum(masks_here, 1)[np.arange(len(chosen)), chosen] - 1
            for options in (2, 3, 4):
                counts = np.bincount(ranks[masks_here.sum(1) == options], minlength=options)
                # Binomial counts: five standard deviations.
                total = counts.sum()
                deviation = (total / options * (1 - 1 / options)) ** 0.5
                assert report is not infos or total > 500
                assert (np.abs(counts - total / options) <= 5 * max(deviation, 1)).all()


def test_illegal_raise__names_the_game_and_changes_nothing() -> None:
    env, twin = (make(6, opponents="random", illegal="raise") for _ in range(2))
    observations, _ = env.reset(seed=3)
    twin.reset(seed=3)
    actions = random_legal(observations["action_mask"], np.random.default_rng(0))
    for action in (int((observations["action_mask"][4] == 0).argmax()), 36, 99, -1, 12 - 64):
        wrong = actions.copy()
        wrong[4] = action
        with pytest.raises(ValueError, match=rf"illegal action {action} in game 4 \(deal 4 of seed 3.*legal: \["):
            env.step(wrong)
    assert plain(env.step(actions)) == plain(twin.step(actions))


def test_illegal__a_foul_is_an_action_where_the_rules_say_so() -> None:
    env = make(8, "winner_and_loser", opponents="random", illegal="raise")
    observations, _ = env.reset(seed=0)
    _, rewards, terminated, _, infos = env.step(np.full(8, 36))  # PASS with a card that fits: out of the deal
    assert "illegal_action" not in infos
    fouls = observations["action_mask"][:, 36] == 0
    assert terminated[fouls].all()  # played to its end without the learner
    assert (rewards[fouls] < 0).all()


@pytest.mark.parametrize("actions", [[12], [12] * 3, 12, [12.0, 12.0], [[12, 12]], [None, None], ["a", "b"]])
@pytest.mark.parametrize("illegal", ["random", "raise"])
def test_step__needs_one_whole_number_a_game(actions: Any, illegal: str) -> None:
    env = make(2, illegal=illegal)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="actions must be 2 whole numbers"):
        env.step(actions)


def test_illegal__another_word_is_refused() -> None:
    with pytest.raises(ValueError, match="illegal must be one of random, raise, not 'ignore'"):
        make(2, illegal="ignore")


# --- opponents -------------------------------------------------------------------------------------------------------


def test_opponents__scripted_asked_in_python_and_mixed_play_alike() -> None:
    class Random(RandomBot):
        """Asked in Python: no scripted code is its own."""

    class Greedy(GreedyBot):
        """The same."""

    mixes = ([RandomBot(), GreedyBot(), RandomBot()], [Random(), Greedy(), Random()], [RandomBot(), Greedy(), Random()])
    traces = [trace(make(16, opponents=mix, skip_forced=True), 40) for mix in mixes]
    assert traces[0] == traces[1] == traces[2]


class Counted(PolicyBot):
    calls = 0

    def act_batch(self, views: Any, rules: Rules, words: Any) -> Any:
        self.calls += 1
        return super().act_batch(views, rules, words)


def test_opponents__networks_are_asked_for_all_games_at_once() -> None:
    bot = Counted(tiny_network())
    env = make(256, opponents=bot)
    list(steps(env, 10))
    assert 30 <= bot.calls < 300  # rounds of three seats and of deals that begin; a call a game would be thousands


@pytest.mark.parametrize("change", ["set_opponents", "set_pool"])
def test_opponents__that_do_not_play_the_rules_are_refused_and_the_old_ones_stay(change: str) -> None:
    other = PolicyBot(tiny_network(), (Rules.of("one_loser"),), name="specialist")
    with pytest.raises(ValueError, match="specialist was trained for one_loser"):
        make(2, opponents=other)
    batch, twin = (LearnerBatch("first_out", 8, "greedy", 3) for _ in range(2))
    for one in (batch, twin):
        one.reset()
    arguments: list[Any] = {
        "set_pool": [[RandomBot(), other], [1.0, 0.0]],
        "set_opponents": [["random", "random", other]],
    }[change]
    with pytest.raises(ValueError, match="specialist was trained for one_loser"):
        getattr(batch, change)(*arguments)
    for _ in range(40):
        actions = batch.action_masks().argmax(1)
        assert plain(batch.step(actions)) == plain(twin.step(actions))


def test_set_opponents__changes_them_from_the_next_turn_on() -> None:
    env, twin = make(16, opponents="random"), make(16, opponents="greedy")
    env.set_opponents("greedy")
    assert trace(env, 20) == trace(twin, 20)
    with pytest.raises(ValueError, match="2 opponents given"):
        env.set_opponents(["random", "greedy"])
    assert trace(env, 20) == trace(twin, 20)


def test_opponents__a_failing_one_is_named_and_the_next_step_needs_a_reset() -> None:
    def faulty(view: PlayerView, rng: np.random.Generator) -> int:
        return 99 if failing else view.legal_actions()[0]

    failing = False
    env = make(8, opponents=CallableBot(faulty, "cheater"))
    observations, _ = env.reset(seed=4)
    failing = True
    with pytest.raises(BotError, match=r"bot cheater failed \(deal .* of seed 4\): illegal action 99"):
        env.step(observations["action_mask"].argmax(1))
    with pytest.raises(RuntimeError, match="an opponent failed"):
        env.step(observations["action_mask"].argmax(1))
    failing = False
    assert plain(env.reset(seed=4)[0]) == plain(observations)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_envs", [0, -1, 1.5, "3", True])
def test_num_envs__that_cannot_be_is_refused(num_envs: Any) -> None:
    with pytest.raises(ValueError, match="the number of games must be a whole number from 1"):
        make(num_envs)


def test_constructor__refuses_bad_rules_and_bots() -> None:
    with pytest.raises(RulesError):
        DevyatkaVectorEnv(2, "no_such_rules")
    with pytest.raises(RulesError):
        DevyatkaVectorEnv(2, "nine_each", num_players=6)
    with pytest.raises(ValueError, match="unknown bot"):
        DevyatkaVectorEnv(2, opponents="no_such_bot")
    assert DevyatkaVectorEnv(2, "first_out", 3, payoff="cards").rules == Rules.of(num_players=3, payoff="cards")


def test_moves__are_the_cards_of_finished_deals() -> None:
    env = make(32, opponents="random")
    played = sum(
        int(observation_layout(36).split(last["observation"])["table"][0].sum())
        for _, _, last, _ in episode_ends(env, 40)
    )
    assert env.moves == played > 0
