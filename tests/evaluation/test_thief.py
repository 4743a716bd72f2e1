"""An attack on the words that bots are given: it knew every hand in 0.1, and must know none now, on any path."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from devyatka_env import Rules, evaluate
from devyatka_env.bots import Bot
from devyatka_env.engine.seeds import Secret, Seed
from devyatka_env.envs import DevyatkaEnv, DevyatkaVectorEnv
from devyatka_env.evaluation.agent_checks import check_agent
from devyatka_env.learning import Lineup, Tables
from tests.helpers.thief import Thief

SEED = 0x8C5D_39F1_0BA2_77E4  # no seed that anybody would guess
RULES = Rules.of()


class ThiefByAct(Thief):
    """The same attack through the generator that `act` is given."""

    act_batch = Bot.act_batch


def in_the_arena(thief: Thief, seed: Seed) -> None:
    result = evaluate(thief, "greedy", RULES, deals=8, seed=seed)
    assert result.win_rate.mean == 0.25  # it plays as greedy does, so each deal is won once in four


def in_a_gymnasium_environment(thief: Thief, seed: Seed) -> None:
    env = DevyatkaEnv(opponents=thief)
    assert isinstance(seed, int)
    _, info = env.reset(seed=seed)
    for _ in range(60):
        _, _, done, _, info = env.step(int(info["action_mask"].argmax()))
        if done:
            _, info = env.reset()


def in_a_vector_environment(thief: Thief, seed: Seed) -> None:
    env = DevyatkaVectorEnv(4, opponents=thief)
    assert isinstance(seed, int)
    _, info = env.reset(seed=seed)
    for _ in range(10):
        info = env.step(info["action_mask"].argmax(1))[-1]


def in_training(thief: Thief, seed: Seed) -> None:
    assert isinstance(seed, int)
    tables = Tables([RULES], 4, seed)
    tables.set_lineup(Lineup([thief], [1.0], 1.0))
    for _ in range(40):
        tables.step(tables.action_masks.argmax(1).astype(np.int64))


@pytest.mark.parametrize("play", [in_the_arena, in_a_gymnasium_environment, in_a_vector_environment, in_training])
@pytest.mark.parametrize("kind", [Thief, ThiefByAct])
def test_thief__recovers_nothing(kind: type[Thief], play: Callable[[Thief, Seed], None]) -> None:
    thief = kind()
    play(thief, SEED)
    assert thief.asked > 40
    assert thief.recovered == 0


def test_thief__recovers_nothing_of_secret_deals() -> None:
    thief = Thief()
    in_the_arena(thief, Secret(bytes(range(32))))
    assert thief.recovered == 0


def test_check_agent__names_a_bot_that_computes_hands_from_leaking_words() -> None:
    """The words of 0.1, offered as bait, are worth 15 points to it: nothing else is wrong with it."""
    thief = Thief()
    report = check_agent(thief, quick=True, rules=RULES)
    assert thief.recovered > 100
    assert [item.name for item in report.faults] == ["words"]
    assert "points more by words that tell the hands" in report.item("words").detail


@pytest.mark.parametrize("bot", ["random", "greedy"])
def test_check_agent__an_honest_bot_gains_nothing_by_bait(bot: str) -> None:
    assert check_agent(bot, quick=True, rules=RULES).item("words").verdict == "ok"
