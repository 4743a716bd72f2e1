"""Bots in processes of their own: they play the same, they see nothing else, and whatever they do ends with them."""

from __future__ import annotations

import pickle
import re
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from devyatka_env import Deals, Game, Rules, evaluate
from devyatka_env.bots import BotError, make_bot
from devyatka_env.bots.isolated import IsolatedBot, IsolatedBotError

AGENTS = '''
import gc, os, sys, time
from devyatka_env import Game
from devyatka_env.bots import Bot, PassWatcherBot

def first(view, rng):
    print("what a bot prints is no answer")
    return view.legal_actions()[0]

def by_rng(view, rng):
    return int(rng.choice(view.legal_actions()))

def crash(view, rng):
    raise KeyError("x" * 5000 + "\\n\\x1b[31m")

def answers_text(view, rng):
    return "3"

def ends(view, rng):
    os._exit(7)

def endless(view, rng):
    while True:
        pass

def peeks(view, rng):
    """Plays its highest card if a deal lies open anywhere in the process, its lowest one else."""
    frame, places = sys._getframe(), []
    while frame is not None:
        places += list(frame.f_locals.values())
        frame = frame.f_back
    found = [one for one in [*gc.get_objects(), *places] if type(one) is Game]
    return view.legal_actions()[-1 if found else 0]

class Picky(PassWatcherBot):
    name = "picky"
    def check_rules(self, rules):
        if rules.num_players != 3:
            raise ValueError("three seats alone")
'''


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agents")
    (folder / "isolated_agents.py").write_text(AGENTS, encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def on_path(agents: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(agents))


RULES = Rules.of(num_players=3)


@pytest.mark.parametrize("name", ["isolated_agents:first", "isolated_agents:by_rng", "pass_watcher", "random"])
def test_isolated__plays_as_it_does_in_this_process(name: str) -> None:
    isolated = IsolatedBot(name)
    assert isolated.deterministic == make_bot(name).deterministic
    games = Deals("first_out", np.arange(30))
    views, words = games.views(games.all), games.decision_words(games.all)
    assert (
        isolated.act_batch(views, games.rules, words).tolist()
        == make_bot(name).act_batch(views, games.rules, words).tolist()
    )
    played = evaluate(isolated, "greedy", RULES, 20)
    assert played.win_rate == evaluate(name, "greedy", RULES, 20).win_rate


def test_isolated__sees_no_deal_where_one_lies_open_in_this_process() -> None:
    game = Game.deal(RULES, 3)
    view, rng = game.view(game.turn), np.random.default_rng(0)
    while len(view.legal_actions()) < 2:
        game.play(view.legal_actions()[0])
        view = game.view(game.turn)
    lowest, *_, highest = view.legal_actions()
    assert make_bot("isolated_agents:peeks").act(view, rng) == highest
    assert IsolatedBot("isolated_agents:peeks").act(view, rng) == lowest


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("crash", r"KeyError: 'x{300,}"),
        ("answers_text", r"answered '3', which is no whole number"),
        ("ends", r"its process ended \(isolated_agents:ends\)"),
    ],
)
def test_isolated__what_fails_there_is_an_error_here_and_the_next_question_starts_anew(name: str, message: str) -> None:
    bot = IsolatedBot(f"isolated_agents:{name}")
    for _ in range(2):
        with pytest.raises(BotError, match=message) as caught:
            evaluate(bot, "greedy", RULES, 2)
        assert len(str(caught.value)) < 700
        assert "\x1b" not in str(caught.value)


def test_isolated__an_endless_move_is_ended_with_its_process() -> None:
    bot = IsolatedBot("isolated_agents:endless", move_seconds=0.2)
    game = Game.deal(RULES, 0)
    with pytest.raises(IsolatedBotError, match=re.escape("it took longer than 0.2 s (isolated_agents:endless)")):
        bot.act(game.view(game.turn), np.random.default_rng(0))


def test_isolated__asks_the_bot_which_rules_it_plays() -> None:
    bot = IsolatedBot("isolated_agents:Picky")
    bot.check_rules(RULES)
    with pytest.raises(ValueError, match=r"^three seats alone$"):
        bot.check_rules(Rules.of())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("oracle", "must be shown all hands"),
        ("isolated_agents:nobody", "has no 'nobody'"),
        ("nope", "unknown bot 'nope'"),
    ],
)
def test_isolated__what_cannot_play_there_is_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        IsolatedBot(name)


def test_isolated__copies_start_processes_of_their_own() -> None:
    bot = IsolatedBot("isolated_agents:first")
    copy = pickle.loads(pickle.dumps(bot))
    game = Game.deal(RULES, 0)
    view = game.view(game.turn)
    assert copy.act(view, np.random.default_rng(0)) == bot.act(view, np.random.default_rng(0))
    assert copy._process.pid != bot._process.pid  # type: ignore[union-attr]


def test_isolated__its_process_ends_with_the_bot() -> None:
    bot = IsolatedBot("isolated_agents:first")
    assert bot._process is not None
    process = bot._process
    bot.close()
    assert process.poll() is not None


def test_isolated__its_process_ends_when_this_end_does_in_an_endless_move(tmp_path: Path) -> None:
    """As it does when this process is killed: all that its process then sees is that its input has ended."""
    bot = IsolatedBot("isolated_agents:endless")
    game = Game.deal(RULES, 0)

    def ask() -> None:
        with pytest.raises(IsolatedBotError):
            bot.act(game.view(game.turn), np.random.default_rng(0))

    assert bot._process is not None
    assert bot._process.stdin is not None
    process = bot._process
    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.2)  # nothing hangs on it: closing earlier ends the process as well
    process.stdin.close()
    process.wait(timeout=600)
    asking.join()
