"""The rules, executed: compiled kernels over one record per game. Nothing else in the project plays a card.

- `STATE_DTYPE`: one game as a record of a structured array.
- `States`: the type of arrays of such records.
- `REASONS`: why a deal is over, by the number in its record.
- `RULES_DTYPE`: one rule set as kernels read it.
- `rules_record`: that record of a `Rules`.

The kernels themselves are internal: they check nothing. `records` is what they read and write; `deal` starts a deal,
`turn` executes an action, `ending` and `payoffs` close it, `knowledge` leaves what one seat may know; `calls` are their
entry points for Python callers. Below them stand `compiling`, `randomness`, `bitboards` and `spread`.
"""

from devyatka_env.engine.records import REASONS, RULES_DTYPE, STATE_DTYPE, States, rules_record

__all__ = [
    "REASONS",
    "RULES_DTYPE",
    "STATE_DTYPE",
    "States",
    "rules_record",
]
