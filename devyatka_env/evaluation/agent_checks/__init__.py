"""Checks of users' agents: faults, leaks, what is not reproducible.

- `check_agent`: check one.
- `AgentReport`: what was found.
- `AgentItem`: a verdict in it.
"""

from devyatka_env.evaluation.agent_checks.check import AgentReport, check_agent
from devyatka_env.evaluation.agent_checks.probes import AgentItem

__all__ = [
    "AgentItem",
    "AgentReport",
    "check_agent",
]
