"""Games to hold in the hand, one or thousands: played, written down, drawn.

- `Game`: one deal as an object.
- `Result`: the outcome of a deal.
- `IllegalActionError`: an action that the rules refuse.
- `Match`: deals in a row with a moving dealer.
- `BatchGame`: thousands of games that never end, in one array.
- `Finished`: the deals that ended in a step of a batch.
- `Deals`: many deals side by side, each played to its end.
- `Position`: the content of a position line.
- `PositionTextError`: a position line that cannot be read.
- `Effect`: what a card brings about when all hands are open.
- `effect_of`: that of an action.
- `draw_rgb`: a deal as an image.
"""

from typing import TYPE_CHECKING

from devyatka_env._package import lazy_attributes
from devyatka_env.games.deals import Deals
from devyatka_env.games.game import Game, IllegalActionError, Result
from devyatka_env.games.match import Match
from devyatka_env.games.notation import Position, PositionTextError
from devyatka_env.games.render import draw_rgb

if TYPE_CHECKING:
    from devyatka_env.games.batch import BatchGame, Finished
    from devyatka_env.games.effects import Effect, effect_of

__all__ = [
    "BatchGame",
    "Deals",
    "Effect",
    "Finished",
    "Game",
    "IllegalActionError",
    "Match",
    "Position",
    "PositionTextError",
    "Result",
    "draw_rgb",
    "effect_of",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    __all__,
    {
        "BatchGame": "devyatka_env.games.batch",
        "Finished": "devyatka_env.games.batch",
        "Effect": "devyatka_env.games.effects",
        "effect_of": "devyatka_env.games.effects",
    },
)
