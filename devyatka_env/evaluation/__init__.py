"""Benchmarks of bots and checkpoints over duplicate deals, with intervals."""

from devyatka_env.evaluation.arena import Evaluation, evaluate
from devyatka_env.evaluation.stats import Estimate

__all__ = ["Estimate", "Evaluation", "evaluate"]
