"""The opponents inside the single-seat environment: where they sit, what they may be, how they fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devyatka_env import PlayerView
from devyatka_env.bots import Bot
from devyatka_env.bots.checkpoint import write_checkpoint
from devyatka_env.envs import DevyatkaEnv
from tests.helpers.players import NETWORK, RULES, lowest, play_lowest, tiny_network


class Watcher(Bot):
    """A bot that plays its lowest card and writes down when it was asked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seats: set[int] = set()

    def act(self, view: PlayerView, rng: np.random.Generator) -> int:
        assert view.turn == view.seat
        assert [mask for seat, mask in enumerate(view.record["hands"][0].tolist()) if seat != view.seat and mask] == []
        self.seats.add(view.seat)
        return view.legal_actions()[0]


@pytest.mark.parametrize("seat", range(4))
def test_opponents__sit_clockwise_from_the_learner(seat: int) -> None:
    bots = [Watcher("a"), Watcher("b"), Watcher("c")]
    env = DevyatkaEnv(opponents=bots, seat=seat)
    env.reset(seed=0)
    play_lowest(env)
    assert [bot.seats for bot in bots] == [{(seat + 1) % 4}, {(seat + 2) % 4}, {(seat + 3) % 4}]


def test_opponents__are_taken_in_every_form(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    write_checkpoint(folder, tiny_network().state_dict(), [RULES], NETWORK)
    for opponents in ("random", lowest, Watcher("w"), folder, [f"{folder}+sample", "greedy", lowest]):
        env = DevyatkaEnv(opponents=opponents)
        env.reset(seed=0)
        play_lowest(env)
        assert len(env.opponents) == 3
    env.set_opponents("greedy")
    assert {bot.name for bot in env.opponents} == {"greedy"}
    with pytest.raises(ValueError, match="unknown bot 'x'"):
        env.set_opponents(["x", "greedy", "greedy"])
    assert {bot.name for bot in env.opponents} == {"greedy"}


def start_and_play(env: DevyatkaEnv) -> None:
    """A match in which the opponents are asked more than once."""
    env.reset(seed=0)
    play_lowest(env)


BAD_ANSWERS: dict[str, Any] = {"pass": 36, "negative": -1, "huge": 2**70, "none": None, "fraction": 3.7, "text": "9♦"}


@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=BAD_ANSWERS.keys())
def test_opponents__one_that_plays_illegally_is_named_in_the_error(answer: Any) -> None:
    def cheater(view: PlayerView, rng: np.random.Generator) -> Any:
        return answer

    with pytest.raises(Exception, match="cheater"):
        start_and_play(DevyatkaEnv(opponents=cheater, seat=0))


def test_opponents__one_that_fails_is_named_in_the_error() -> None:
    def clumsy(view: PlayerView, rng: np.random.Generator) -> int:
        raise KeyError("lost my notes")

    with pytest.raises(Exception, match=r"clumsy.*lost my notes"):
        start_and_play(DevyatkaEnv(opponents=clumsy, seat=0))
