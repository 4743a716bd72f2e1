"""What a seat may know: views, observations, exact beliefs, and the text of an information state.

- `PlayerView`: one seat's knowledge of a deal.
- `Layout`: the segments of an observation or state vector, with a version and a hash.
- `Segment`: a named part of such a vector.
- `LAYOUT_VERSION`: the version of the observation layout.
- `observation_layout`: the layout of what a seat observes, by deck size.
- `state_layout`: the layout of the full-information state.
- `encode_views`: what networks are shown of many view records.
- `describe`: an observation in words.
- `Belief`: the deals that agree with a view: counted, weighed and drawn.
- `BeliefError`: a view that no deal agrees with, or of a finished deal.
- `parse_information_state`: a typed text of what a seat sees as a view.
- `format_information_state`: a view as such a text.
- `InformationStateError`: a text that cannot be read or cannot be true.
- `MustPassError`: a text whose seat has nothing to lay.
"""

from devyatka_env.views.belief import Belief, BeliefError
from devyatka_env.views.information_state import (
    InformationStateError,
    MustPassError,
    format_information_state,
    parse_information_state,
)
from devyatka_env.views.layout import LAYOUT_VERSION, Layout, Segment, observation_layout, state_layout
from devyatka_env.views.observation import describe, encode_views
from devyatka_env.views.view import PlayerView

__all__ = [
    "LAYOUT_VERSION",
    "Belief",
    "BeliefError",
    "InformationStateError",
    "Layout",
    "MustPassError",
    "PlayerView",
    "Segment",
    "describe",
    "encode_views",
    "format_information_state",
    "observation_layout",
    "parse_information_state",
    "state_layout",
]
