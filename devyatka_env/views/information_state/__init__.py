"""What a person sees at a real table, typed as text, and the `PlayerView` that it stands for (`view_text`).

- `FIELDS`: the names of the fields of a text.
- `InformationStateError`: a text that cannot be read or cannot be true.
- `MustPassError`: a text whose seat has nothing to lay.
- `format_information_state`: the text of a view.
- `parse_information_state`: the view of a text.
- `passes_known`: what a text tells of the passes.
- `untold_history`: what of the past a text does not tell.
"""

from devyatka_env.views.information_state.fields import FIELDS, InformationStateError
from devyatka_env.views.information_state.view_text import (
    MustPassError,
    format_information_state,
    parse_information_state,
    passes_known,
    untold_history,
)

__all__ = [
    "FIELDS",
    "InformationStateError",
    "MustPassError",
    "format_information_state",
    "parse_information_state",
    "passes_known",
    "untold_history",
]
