"""Fill the generated parts of README.md and draw its picture: ``make docs``.

Tables stand between ``<!-- NAME: made by docs/generate.py -->`` and ``<!-- end -->``; a test compares them to the code.
"""

from __future__ import annotations

import re
from pathlib import Path

from devyatka_env.bots import make_bot, make_opponents
from devyatka_env.evaluation import evaluate
from devyatka_env.game import Game
from devyatka_env.observation import observation_layout
from devyatka_env.render import draw_rgb
from devyatka_env.rules import PRESETS, Rules

ROOT = Path(__file__).resolve().parents[1]
STRENGTH_DEALS = 20_000


def presets_table() -> str:
    """The preset table."""
    lines = ["| preset | source | deck | opening | end | payoff | in short |", "|---|---|---|---|---|---|---|"]
    for name, preset in PRESETS.items():
        rules = Rules.of(name)
        cells = [f"`{name}`", preset.source, str(rules.deck.num_cards), rules.opening, rules.end, rules.payoff]
        lines.append(f"| {' | '.join([*cells, preset.summary])} |")
    return "\n".join(lines)


def observation_table() -> str:
    """The observation table of the 36-card deck."""
    layout = observation_layout(36)
    return f"{layout.markdown()}\n\nLength {layout.size}, layout hash `{layout.hash}`."


def strength_table(deals: int = STRENGTH_DEALS) -> str:
    """Scripted bots against fields of one kind, 2 to 6 seats."""
    lines = [
        "| candidate | against | 2 seats | 3 seats | 4 seats | 5 seats | 6 seats |",
        "|---|---|---|---|---|---|---|",
    ]
    for candidate, against in (("greedy", "random"), ("greedy", "greedy"), ("random", "greedy")):
        cells = []
        for seats in range(2, 7):
            opponents = make_opponents(against, seats - 1)
            win_rate = evaluate(make_bot(candidate), opponents, Rules.of(num_players=seats), deals).win_rate
            cells.append(str(win_rate))
        lines.append(f"| {' | '.join([candidate, against, *cells])} |")
    lines.append(f"| chance | | {' | '.join(f'{1 / seats:.4f}' for seats in range(2, 7))} |")
    return "\n".join(lines)


def fill(text: str, name: str, table: str) -> str:
    """Put a table between its markers."""
    opening = f"<!-- {name}: made by docs/generate.py -->"
    pattern = re.compile(re.escape(opening) + r".*?<!-- end -->", re.DOTALL)
    filled, count = pattern.subn(lambda _: f"{opening}\n{table}\n<!-- end -->", text)
    if count != 1:
        raise ValueError(f"expected one place for {name}, found {count}")
    return filled


def between(text: str, name: str) -> str:
    """The table that stands between the markers now."""
    match = re.search(rf"<!-- {name}: made by docs/generate.py -->\n(.*?)\n<!-- end -->", text, re.DOTALL)
    if match is None:
        raise ValueError(f"no place for {name}")
    return match[1]


def draw_game() -> None:
    """The picture of a four-seat game between greedy bots, after 17 cards."""
    import numpy as np
    from PIL import Image

    game, bot, rng = Game.deal("first_out", seed=4), make_bot("greedy"), np.random.default_rng(0)
    for _ in range(17):
        game.play(bot.act(game.view(game.turn), rng))
    Image.fromarray(draw_rgb(game.record, game.rules)).save(ROOT / "docs/images/game.png", optimize=True)


def main() -> None:
    """Rewrite README.md and the picture."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    tables = {"presets": presets_table(), "observation": observation_table(), "strength": strength_table()}
    for name, table in tables.items():
        text = fill(text, name, table)
    readme.write_text(text, encoding="utf-8")
    draw_game()


if __name__ == "__main__":
    main()
