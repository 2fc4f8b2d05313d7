"""Agent tests as a required status check.

What a test file imports stands here; each name brings what it needs when it is first used,
so that pytest's start stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ci_agent_eval.bridge import llm_episode, llm_unit
    from ci_agent_eval.checking import check
    from ci_agent_eval.conversations import conversation
    from ci_agent_eval.scenario_files import scenarios
    from ci_agent_eval.simulation import SimulatedUser, SimulationResult, run_simulation

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
    "SimulatedUser": "simulation",
    "SimulationResult": "simulation",
    "check": "checking",
    "conversation": "conversations",
    "llm_episode": "bridge",
    "llm_unit": "bridge",
    "run_simulation": "simulation",
    "scenarios": "scenario_files",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
