"""How strong bots and checkpoints are: duplicate deals, intervals, exact regret, advice.

- `evaluate`: a candidate over duplicate deals.
- `compare`: several candidates on the same deals.
- `Evaluation`: how a candidate did.
- `Comparison`: how several did.
- `Difference`: one candidate less another, paired by deal.
- `Estimate`: a mean with its 95 % interval.
- `Workers`: processes or a Ray cluster that the work is spread over.
- `regret`: what a bot gives away at two seats, by exact values.
- `Regret`: that, in figures.
- `two_seats`: the same beside perfect play and the best response.
- `TwoSeatExact`: that, in figures.
- `standing`: where a bot stands between chance and the ceiling.
- `Standing`: that, in figures.
- `advise`: what each card of a view is worth to a bot.
- `Advice`: that, in figures.
- `read_result`: a result file.
- `ResultError`: a result file that cannot be read.

In folders of their own: `tournaments` (everyone against everyone, ratings), `reports` (a page about an agent) and
`agent_checks` (faults and leaks of users' agents).
"""

from typing import TYPE_CHECKING

from devyatka_env._package import lazy_attributes
from devyatka_env.evaluation.arena import Comparison, Difference, Evaluation, compare, evaluate
from devyatka_env.evaluation.stats import Estimate
from devyatka_env.evaluation.workers import Workers

if TYPE_CHECKING:
    from devyatka_env.evaluation.advice import Advice, advise
    from devyatka_env.evaluation.against_ceiling import Standing, standing
    from devyatka_env.evaluation.exact_regret import Regret, TwoSeatExact, regret, two_seats
    from devyatka_env.evaluation.results import ResultError, read_result

__all__ = [
    "Advice",
    "Comparison",
    "Difference",
    "Estimate",
    "Evaluation",
    "Regret",
    "ResultError",
    "Standing",
    "TwoSeatExact",
    "Workers",
    "advise",
    "compare",
    "evaluate",
    "read_result",
    "regret",
    "standing",
    "two_seats",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    __all__,
    {
        "regret": "devyatka_env.evaluation.exact_regret",
        "Regret": "devyatka_env.evaluation.exact_regret",
        "two_seats": "devyatka_env.evaluation.exact_regret",
        "TwoSeatExact": "devyatka_env.evaluation.exact_regret",
        "standing": "devyatka_env.evaluation.against_ceiling",
        "Standing": "devyatka_env.evaluation.against_ceiling",
        "advise": "devyatka_env.evaluation.advice",
        "Advice": "devyatka_env.evaluation.advice",
        "read_result": "devyatka_env.evaluation.results",
        "ResultError": "devyatka_env.evaluation.results",
    },
)
