"""Agent tests as a required status check.

Exports the names that test files import. Each name's module is imported on first use, so
that pytest starts fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_agent_eval.errors import create_lazy_getattr

if TYPE_CHECKING:
    from ci_agent_eval.authoring.check_function import check
    from ci_agent_eval.authoring.conversations import conversation
    from ci_agent_eval.authoring.scenarios import scenarios
    from ci_agent_eval.authoring.simulation import SimulatedUser, SimulationResult, run_simulation
    from ci_agent_eval.opik.decorators import llm_episode, llm_unit

__version__ = "0.1.0"

__all__ = [
    "SimulatedUser",
    "SimulationResult",
    "check",
    "conversation",
    "llm_episode",
    "llm_unit",
    "run_simulation",
    "scenarios",
]

_HOMES = {
    "SimulatedUser": "authoring.simulation",
    "SimulationResult": "authoring.simulation",
    "check": "authoring.check_function",
    "conversation": "authoring.conversations",
    "llm_episode": "opik.decorators",
    "llm_unit": "opik.decorators",
    "run_simulation": "authoring.simulation",
    "scenarios": "authoring.scenarios",
}

__getattr__ = create_lazy_getattr(__name__, _HOMES)
