"""Benchmarks of bots and checkpoints over duplicate deals, with intervals."""

from devyatka_env.evaluation.arena import Comparison, Difference, Evaluation, compare, evaluate
from devyatka_env.evaluation.stats import Estimate
from devyatka_env.evaluation.workers import Workers

__all__ = ["Comparison", "Difference", "Estimate", "Evaluation", "Workers", "compare", "evaluate"]
