"""Pictures of a deal as pixel arrays (text is `devyatka_env.games.notation`). Needs Pillow: the extra ``render``."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from devyatka_env.rules import Card, Rules, iter_mask

if TYPE_CHECKING:
    from PIL import Image, ImageDraw, ImageFont

_FELT, _SLOT, _PAPER, _EDGE = "#1f6b4a", "#2a7d58", "#fdfdf8", "#9aa39d"
_INK = {"♣": "#1c2430", "♠": "#1c2430", "♦": "#c8202f", "♥": "#c8202f"}
_LABEL, _ACTIVE, _DIM = "#e8f3ec", "#ffd75e", "#a9c9b8"
_SCALE = 3  # drawn this much larger and reduced, for smooth edges

# Sizes in pixels of the finished picture.
_CARD, _SMALL = (46, 62), (34, 46)
_GAP, _MARGIN, _LABEL_WIDTH = 6, 16, 150


def draw_rgb(record: np.void, rules: Rules) -> NDArray[np.uint8]:
    """The rows and the hands as an image ``uint8 [height, width, 3]``; its size depends on the rules alone.

    A view record shows the hand that its seat may see; of the other hands only the number of cards.

    Raises:
        ImportError: Pillow is not installed.
    """
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        raise ImportError(f"pictures need Pillow: pip install 'devyatka-env[render]' ({error})") from error
    deck, n = rules.deck, int(record["num_players"])
    width = _MARGIN * 2 + max(deck.num_ranks * (_CARD[0] + _GAP) + 34, _LABEL_WIDTH + 18 * (_SMALL[0] - 4))
    rows_height = deck.num_suits * (_CARD[1] + _GAP)
    height = _MARGIN * 3 + rows_height + n * (_SMALL[1] + _GAP)
    image = Image.new("RGB", (width, height), _FELT)
    draw = ImageDraw.Draw(image)
    table = int(record["table"])
    for card_id, card in enumerate(deck.cards):
        suit, rank = divmod(card_id, deck.num_ranks)
        x = _MARGIN + 34 + rank * (_CARD[0] + _GAP)
        y = _MARGIN + suit * (_CARD[1] + _GAP)
        if table >> card_id & 1:
            image.paste(_face(card, _CARD), (x, y))
        else:
            draw.rounded_rectangle((x, y, x + _CARD[0] - 1, y + _CARD[1] - 1), 6, fill=_SLOT)
            is_starter = card.rank == rules.starter
            draw.text(
                (x + _CARD[0] / 2, y + _CARD[1] / 2),
                _rank_text(card),
                font=_font(15),
                fill=_LABEL if is_starter else _DIM,
                anchor="mm",
            )
    for suit, sign in enumerate(deck.suits):
        _draw_suit(draw, sign, _MARGIN + 13, _MARGIN + suit * (_CARD[1] + _GAP) + _CARD[1] / 2, 11, light=True)
    for seat in range(n):
        _draw_seat(image, draw, record, rules, seat, _MARGIN * 2 + rows_height + seat * (_SMALL[1] + _GAP))
    return np.asarray(image, np.uint8)


def _draw_seat(image: Image.Image, draw: ImageDraw.ImageDraw, record: np.void, rules: Rules, seat: int, y: int) -> None:
    on_turn = int(record["turn"]) == seat
    cards, passes = int(record["cards_left"][seat]), int(record["passes"][seat])
    place, status = int(record["places"][seat]), int(record["status"][seat])
    colour = _ACTIVE if on_turn or place == 1 else _LABEL
    draw.text((_MARGIN, y + 6), f"seat {seat}", font=_font(16), fill=colour)
    facts = [f"{cards} cards" if cards != 1 else "1 card", f"{passes} passes" if passes != 1 else "1 pass"]
    if place:
        facts = [f"place {place}", *facts]
    if status < 0:
        facts = ["excluded", *facts[:1]]
    draw.text((_MARGIN, y + 27), ", ".join(facts), font=_font(12), fill=_ACTIVE if on_turn else _DIM)
    if on_turn:
        draw.rectangle((0, y, 5, y + _SMALL[1]), fill=_ACTIVE)
    hand = list(iter_mask(int(record["hands"][seat])))
    if not hand:
        return
    room = image.width - _MARGIN * 2 - _LABEL_WIDTH - _SMALL[0]
    step = min(_SMALL[0] + 3, room // max(len(hand) - 1, 1))
    for i, card_id in enumerate(hand):
        image.paste(_face(rules.deck.cards[card_id], _SMALL), (_MARGIN + _LABEL_WIDTH + i * step, y))


@lru_cache(maxsize=256)
def _face(card: Card, size: tuple[int, int]) -> Image.Image:
    from PIL import Image, ImageDraw

    width, height = size[0] * _SCALE, size[1] * _SCALE
    face = Image.new("RGB", (width, height), _FELT)
    draw = ImageDraw.Draw(face)
    draw.rounded_rectangle((0, 0, width - 1, height - 1), 6 * _SCALE, fill=_PAPER, outline=_EDGE, width=_SCALE)
    text_size = size[1] * 0.36 * _SCALE
    draw.text((4 * _SCALE, 3 * _SCALE), _rank_text(card), font=_font(text_size), fill=_INK[card.suit])
    _draw_suit(draw, card.suit, width * 0.62, height * 0.68, size[1] * 0.2 * _SCALE)
    return face.resize(size, Image.Resampling.LANCZOS)


def _draw_suit(draw: Any, suit: str, x: float, y: float, r: float, *, light: bool = False) -> None:
    """A suit sign of half-height ``r`` centred at ``x``, ``y``, from circles and polygons (no font has to hold it)."""
    ink = _INK[suit] if not light else ("#ff9a9a" if suit in "♦♥" else "#dfeee6")

    def disc(cx: float, cy: float, radius: float) -> None:
        draw.ellipse((x + cx - radius, y + cy - radius, x + cx + radius, y + cy + radius), fill=ink)

    def polygon(*points: tuple[float, float]) -> None:
        draw.polygon([(x + px, y + py) for px, py in points], fill=ink)

    if suit == "♦":
        polygon((0, -r), (0.75 * r, 0), (0, r), (-0.75 * r, 0))
    elif suit == "♥":
        disc(-0.43 * r, -0.4 * r, 0.5 * r)
        disc(0.43 * r, -0.4 * r, 0.5 * r)
        polygon((-0.88 * r, -0.17 * r), (0.88 * r, -0.17 * r), (0, r))
    else:
        polygon((0, 0.1 * r), (0.4 * r, r), (-0.4 * r, r))
        if suit == "♠":
            disc(-0.43 * r, 0.18 * r, 0.46 * r)
            disc(0.43 * r, 0.18 * r, 0.46 * r)
            polygon((-0.84 * r, 0.0), (0.84 * r, 0.0), (0, -r))
        else:
            disc(0, -0.5 * r, 0.46 * r)
            disc(-0.48 * r, 0.2 * r, 0.46 * r)
            disc(0.48 * r, 0.2 * r, 0.46 * r)


@lru_cache(maxsize=16)
def _font(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    from PIL import ImageFont

    return ImageFont.load_default(size)


def _rank_text(card: Card) -> str:
    return "10" if card.rank == "T" else card.rank
