"""Whatever is thrown at a public callable, it answers with an error in words: no signal, no traceback of a compiler.

Each room's callables are called in a process of their own, since a fault may end it. Wrong are the type, the shape, the
range; what is right is made by `makers`, so that one argument at a time is wrong, too.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devyatka_env
from devyatka_env import BatchGame, Belief, Deals, Game, Match, PlayerView, Rules, evaluate, make_bot, register_bot
from devyatka_env.bots import Bot, BotError, CallableBot, GreedyBot, registry
from devyatka_env.engine import STATE_DTYPE
from devyatka_env.envs import DevyatkaEnv, DevyatkaVecEnv, DevyatkaVectorEnv
from devyatka_env.views import encode_views

ROOMS = ["rules", "engine", "views", "games", "solver", "bots", "envs", "evaluation"]
CALLS = 40  # of each callable
# Only these may come out: errors in words. (KeyError: of mappings, by their names.)
FINE = (ValueError, TypeError, ImportError, KeyError, AttributeError, OSError, RuntimeError, MemoryError)
# What is no error in words, though its type is fine.
BAD_WORDS = ("numba", "Cannot determine Numba type", "non-precise type", "No matching definition")


def wrong_values() -> list[Any]:
    noise = np.frombuffer(random.Random(5).randbytes(STATE_DTYPE.itemsize), STATE_DTYPE).copy()
    return [
        None, True, -1, 0, 1.5, 10**12, 2**70, float("nan"), float("inf"), "", "x", "x" * 300, "\0", b"x", [], [1, 2],
        {}, {"a": 1}, (), object(), int, np.zeros(0), np.zeros((2, 2)), np.zeros(3, np.int64), np.full(2, 10**12),
        np.zeros(1, np.int8), np.zeros(1, STATE_DTYPE), np.zeros((1, 1), STATE_DTYPE), noise, np.random.default_rng(0),
        np.float64(3.9), lambda *a: None,
    ]  # fmt: skip


def makers() -> list[Any]:
    """Right values of many kinds."""
    rules = Rules.of("first_out num_players=2 num_suits=2 ranks=789 starter=8")
    game = Game.deal(rules, 1)
    return [
        rules, "first_out", game, game.view(game.turn), game.states, game.view(game.turn).record, 0, 1, 3, "greedy",
        GreedyBot(), np.random.default_rng(0), Deals(rules, np.arange(2)), np.arange(2), [0, 1],
    ]  # fmt: skip


def callables(room: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public functions and classes of a room, and the public methods of what it makes."""
    module = importlib.import_module(f"devyatka_env.{room}")
    for name in module.__all__:
        found = getattr(module, name)
        if callable(found):
            yield name, found
    right = makers()
    for owner in right:
        if type(owner).__module__.startswith(f"devyatka_env.{room}."):
            for name, method in inspect.getmembers(owner, callable):
                if not name.startswith("_"):
                    yield f"{type(owner).__name__}().{name}", method


def arguments(call: Callable[..., Any], rng: random.Random) -> list[Any]:
    """Arguments for a call: all wrong, or all but one right."""
    try:
        parameters = [
            one
            for one in inspect.signature(call).parameters.values()
            if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        ]
    except ValueError:
        parameters = []
    count = max(1, rng.randint(sum(one.default is one.empty for one in parameters), max(1, len(parameters))))
    wrong, right = wrong_values(), makers()
    chosen = [rng.choice(right if rng.random() < 0.6 else wrong) for _ in range(count)]
    if rng.random() < 0.7:  # most callables begin with rules, a game, a view, or states
        chosen[0] = rng.choice(right)
        chosen[-1] = rng.choice(wrong)
    return chosen


def throw(room: str) -> list[str]:
    """Throw at a room's callables; what went wrong, in words."""
    found = []
    for name, call in callables(room):
        if name in SLOW:
            continue
        rng = random.Random(f"{room} {name}")
        for _ in range(CALLS):
            given = arguments(call, rng)
            try:
                call(*given)
            except FINE as error:
                text = f"{type(error).__module__} {error}"
                if any(words in text for words in BAD_WORDS) or len(str(error)) > 2000:
                    found.append(f"{name}{given!r:.300}: {type(error).__name__}: {str(error)[:300]}")
            except BaseException as error:  # whatever is not an error in words
                found.append(f"{name}{given!r:.300}: {type(error).__name__}: {str(error)[:300]}")
    return found


# Right arguments make these play for long: their arguments are tried one by one below.
SLOW = {
    "evaluate", "compare", "two_seats", "standing", "regret", "Workers", "max_n", "paranoid", "ceiling", "ceilings",
    "max_n_values", "paranoid_values", "advise",
}  # fmt: skip


@pytest.mark.parametrize("room", ROOMS)
def test_public__answers_whatever_it_is_given_in_words(room: str) -> None:
    root = Path(__file__).resolve().parents[1]
    code = (
        "import json, sys, warnings; warnings.simplefilter('ignore')\n"
        f"from tests.test_public_entry import throw; print('FOUND', json.dumps(throw({room!r})))"
    )
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.rpartition("FOUND")[2]) == []


# --- what release 0.1 crashed on, or answered silently wrong ---------------------------------------------------------


def test_record__of_random_bytes_is_refused_by_every_constructor() -> None:
    rules, rng = Rules.of(), random.Random(3)
    for _ in range(300):
        record = np.frombuffer(rng.randbytes(STATE_DTYPE.itemsize), STATE_DTYPE).copy()
        if rng.random() < 0.5:  # as far as it gets with the right number of seats, and a dealer and a turn that are
            record["num_players"], record["dealer"], record["turn"] = 4, rng.randrange(4), rng.randrange(-1, 4)
        for make in (lambda: PlayerView(record, rules, 0), lambda: Game(rules, record), lambda: Game.deal(rules)):  # noqa: B023
            try:
                made = make()
            except ValueError:
                continue
            assert not isinstance(made, PlayerView)
            assert made.states is not record


@pytest.mark.parametrize("seat", [-1, 4, 10**12, 1.0, True, "0", None])
def test_seat__that_is_not_there_is_refused(seat: Any) -> None:
    game = Game.deal("first_out", 1)
    for ask in (game.view, lambda one: PlayerView(game.view(0).record, game.rules, one), game.view(0).could_hold_mask):
        with pytest.raises(ValueError, match=f"seat must be 0 to 3, not {re.escape(repr(seat))}"):
            ask(seat)


def test_belief__looks_at_its_view_once_more() -> None:
    view = Game.deal("first_out", 1).view(1)
    view.seat = 9  # 5 * 10**18 deals, said 0.1
    with pytest.raises(ValueError, match="seat must be 0 to 3, not 9"):
        Belief(view)


@pytest.mark.parametrize("answer", [3.9, "3", True, None, np.float64(3.0), np.array([3]), np.True_])
def test_act__what_is_no_whole_number_is_named(answer: Any) -> None:
    class Wrong(Bot):
        name = "wrong"

        def act(self, view: PlayerView, rng: np.random.Generator) -> int:
            result: int = answer
            return result

    for bot in (Wrong(), CallableBot(lambda view, rng: answer, "wrong")):
        with pytest.raises(BotError, match=r"bot wrong (failed .*|.*)answered .* which is no whole number"):
            evaluate(bot, "greedy", Rules.of(), 1)
        env = DevyatkaEnv(opponents=bot)
        with pytest.raises(BotError, match=r"answered .* which is no whole number"):
            _ = [env.reset(seed=seed) for seed in range(9)]


def test_act__whole_numbers_of_numpy_are_fine() -> None:
    bot = CallableBot(lambda view, rng: np.int8(view.legal_actions()[0]), "small")
    assert evaluate(bot, "greedy", Rules.of(), 2).deals == 2


def test_deals__what_is_refused_changes_nothing() -> None:
    deals = Deals("first_out", np.arange(3))
    before = deals.states.tobytes(), deals.indices.tobytes()
    wrong: list[Any] = [np.array([5]), np.array([-1]), np.array([0.5]), np.array([[0]]), [0], None, 1]
    for which in wrong:
        for ask in (lambda one: deals.deal(one, np.array([9])), deals.views, deals.payoffs, deals.decision_words):
            with pytest.raises(ValueError, match="`which` must"):
                ask(which)
    with pytest.raises(ValueError, match="2 games need as many deal indices, not 3"):
        deals.deal(np.arange(2), np.arange(3))
    for seats in (np.array([0.5, 1, 2]), np.array([4, 0, 0]), [0, 0, 0]):
        with pytest.raises(ValueError, match="3 games need as many seats"):
            deals.observations(deals.all, seats)  # type: ignore[arg-type]
    assert (deals.states.tobytes(), deals.indices.tobytes()) == before


@pytest.mark.parametrize("spec", ["x" * 5000, "\0", "", "a/\0/b"])
def test_make_bot__any_text_is_answered_in_a_few_words(spec: str) -> None:
    with pytest.raises(ValueError, match="unknown bot") as caught:
        make_bot(spec)
    assert len(str(caught.value)) < 500


def test_register_bot__what_makes_no_bot_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    with pytest.raises(ValueError, match="factory must make the bot when it is called: 3 cannot be"):
        register_bot("three", 3)  # type: ignore[arg-type]
    register_bot("nothing", lambda: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match="the factory of bot 'nothing' made None, which is no Bot"):
        make_bot("nothing")


def test_batch__seeds_and_generators_are_checked() -> None:
    for seed in (None, -1, 1.5):
        with pytest.raises(ValueError, match="seed must be a whole number"):
            BatchGame("first_out", 2, seed)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="seed must be a whole number"):
            Match("first_out", seed)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rng must be a numpy Generator"):
        BatchGame("first_out", 2).sample_actions(None)  # type: ignore[arg-type]


# --- from a view to a network ----------------------------------------------------------------------------------------


def test_view__is_encoded_as_its_environment_does_and_in_batches_alike() -> None:
    for preset in ("first_out", "winner_and_loser", "sevens"):
        deals = Deals(preset, np.arange(20))
        views = deals.views(deals.all)
        observations, masks = encode_views(views, deals.rules)
        expected = deals.observations(deals.all)
        assert (observations == expected[0]).all()
        assert (masks == expected[1]).all()
        view = Game.deal(preset, 0, 7).view(int(deals.turns[7]))
        assert (view.observation() == observations[7]).all()
        assert (view.action_mask() == masks[7]).all()


def test_encode_views__what_cannot_be_encoded_is_refused() -> None:
    game = Game.deal("first_out", 1)
    record = game.view(game.turn).record
    with pytest.raises(ValueError, match="records: record 0 has 4 seats, the rules have 3"):
        encode_views(record, Rules.of(num_players=3))
    with pytest.raises(ValueError, match=r"records must be an array \[B\] of STATE_DTYPE"):
        encode_views(record[:, None], game.rules)
    over = record.copy()
    over["turn"], over["legal"] = -1, 0
    with pytest.raises(ValueError, match="record 0 is of a deal that is over"):
        encode_views(over, game.rules)


# --- what environments are called with -------------------------------------------------------------------------------

MAKERS: dict[str, Callable[..., Any]] = {
    "env": devyatka_env.env,
    "parallel_env": devyatka_env.parallel_env,
    "DevyatkaEnv": DevyatkaEnv,
    "DevyatkaVectorEnv": lambda **options: DevyatkaVectorEnv(2, **options),
    "DevyatkaVecEnv": lambda **options: DevyatkaVecEnv("first_out", 2, **options),
}


@pytest.mark.parametrize("name", MAKERS)
def test_environment__an_unknown_keyword_names_the_nearest_one(name: str) -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'opponent'; did you mean 'opponents'\?"):
        MAKERS[name](opponent="greedy")
    with pytest.raises(TypeError, match="unexpected keyword argument 'zzz'; rule fields are num_players"):
        MAKERS[name](zzz=1)
    assert MAKERS[name](num_players=3, payoff="place").rules == Rules.of(num_players=3, payoff="place")


@pytest.mark.skipif(os.name != "posix", reason="the encoding of a console is set by a variable there")
def test_render__works_on_a_console_without_the_signs() -> None:
    code = "import devyatka_env; env = devyatka_env.env(render_mode='human'); env.reset(seed=1)"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "9D" in done.stdout or "D  ." in done.stdout
