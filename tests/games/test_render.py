"""Pictures: the golden text of a game in play and finished, and the pixel image."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from devyatka_env import Game, Rules
from devyatka_env.games import draw_rgb
from devyatka_env.games.notation import draw_table
from tests.helpers.games import COMBINATIONS, play_random, random_moment
from tests.helpers.redeal import redeal

# Remake a golden text with: python -c "from devyatka_env import Game; print(Game.from_position('…'))"
POSITION = (
    "first_out num_players=3 num_suits=3 ranks=789TJ | dealer 2 |"
    " 7♣ 8♣ 9♦ 10♦ J♥ / 8♦ 10♣ 9♣ 9♥ 7♥ / J♦ 7♦ J♣ 8♥ 10♥ | 9♦ 9♥ 8♥ 10♦ 7♥ 10♥"
)
IN_PLAY = """\
♣  ·  ·  ·  ·  ·
♦  ·  ·  9 10  ·
♥  7  8  9 10  ·
>seat 0  3 cards   0 passes   7♣ 8♣ J♥
 seat 1  3 cards   0 passes   9♣ 10♣ 8♦
 seat 2  3 cards   0 passes   J♣ 7♦ J♦"""
SEEN_BY_SEAT_1 = """\
♣  ·  ·  ·  ·  ·
♦  ·  ·  9 10  ·
♥  7  8  9 10  ·
>seat 0  3 cards   0 passes
 seat 1  3 cards   0 passes   9♣ 10♣ 8♦
 seat 2  3 cards   0 passes"""
FINISHED = """\
♣  ·  8  9 10  ·
♦  7  8  9 10  J
♥  7  8  9 10  J
 seat 0  1 card    1 pass     place 3  7♣
 seat 1  0 cards   0 passes   out, place 1
 seat 2  1 card    0 passes   place 2  J♣
The deal is over (out)."""


# --- text ------------------------------------------------------------------------------------------------------------


def test_text__of_a_game_in_play() -> None:
    assert str(Game.from_position(POSITION)) == IN_PLAY


def test_text__of_a_view_shows_its_own_hand_alone() -> None:
    game = Game.from_position(POSITION)
    assert draw_table(game.view(1).record[0], game.rules) == SEEN_BY_SEAT_1


def test_text__of_a_finished_game() -> None:
    assert str(Game.from_position(f"{POSITION} J♥ 8♦ 7♦ 9♣ J♦ 8♣ 10♣")) == FINISHED


def test_text__of_an_exclusion() -> None:
    game = Game.deal(Rules.of("winner_and_loser", num_players=3), 0)
    offender = game.turn
    game.play("-")
    assert f"seat {offender}  12 cards  0 passes   excluded" in str(game)


# --- pixels ----------------------------------------------------------------------------------------------------------


def picture(game: Game) -> NDArray[np.uint8]:
    """The image of a game, all hands shown."""
    return draw_rgb(game.record, game.rules)


@pytest.mark.parametrize(("preset", "seats"), COMBINATIONS)
def test_draw_rgb__is_an_image_whose_size_depends_on_the_rules_alone(preset: str, seats: int) -> None:
    shapes = set()
    for seed in range(2):
        game = Game.deal(Rules.of(preset, num_players=seats), seed)
        for image in (picture(game), picture(play_random(game, random.Random(seed)))):
            assert image.dtype == np.uint8
            assert image.ndim == 3
            assert image.shape[2] == 3
            assert len(np.unique(image)) > 20  # something is drawn
            shapes.add(image.shape)
    assert len(shapes) == 1


def test_draw_rgb__is_a_function_of_the_position() -> None:
    for seed in range(3):
        game = random_moment(Rules.of("first_out"), seed)
        np.testing.assert_array_equal(picture(game), picture(Game.from_position(game.position)))


def test_draw_rgb__changes_with_every_card_laid() -> None:
    game = Game.deal("first_out", 1)
    images = [picture(game).tobytes()]
    while not game.is_over:
        game.play(game.legal_actions()[0])
        images.append(picture(game).tobytes())
    assert len(set(images)) == len(images) > 20


def test_draw_rgb__lays_each_card_in_the_row_and_column_of_its_own() -> None:
    game = Game.deal("first_out", 1)
    rows = slice(0, 16 + 4 * 68)  # the margin and four rows of cards, the hands below
    columns: dict[int, set[int]] = {}
    while not game.is_over:
        before, card = picture(game)[rows], game.legal_actions()[0]
        suit, rank = divmod(card, 9)
        game.play(card)
        y, x = np.nonzero((before != picture(game)[rows]).any(2))
        assert y.size > 500  # a card is painted ...
        assert 16 + 68 * suit <= y.min() <= y.max() < 16 + 68 * suit + 62  # ... in its suit's row, and nothing else is
        assert x.max() - x.min() < 46
        columns.setdefault(rank, set()).add(int(x.min()))
    starts = [columns[rank] for rank in sorted(columns)]
    assert all(len(same) == 1 for same in starts)  # one column a rank
    assert [min(same) for same in starts] == sorted(min(same) for same in starts)


@pytest.mark.parametrize("preset", ["first_out", "nine_each", "one_loser", "winner_and_loser"])
def test_draw_rgb__of_a_view_shows_no_other_hand(preset: str) -> None:
    for seed in range(6):
        game = random_moment(Rules.of(preset), seed)
        viewer = seed % 4
        other = redeal(game, viewer, random.Random(seed))
        seen = draw_rgb(game.view(viewer).record[0], game.rules)
        np.testing.assert_array_equal(seen, draw_rgb(other.view(viewer).record[0], game.rules))
        hidden = any(left for seat, left in enumerate(game.view(viewer).cards_left) if seat != viewer)
        assert hidden
        assert not np.array_equal(seen, picture(game))  # the full picture does show them


def test_draw_rgb__without_pillow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"pip install 'devyatka-env\[render\]'"):
        picture(Game.deal("first_out", 0))
