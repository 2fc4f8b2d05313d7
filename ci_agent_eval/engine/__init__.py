"""The agent engine: declare an agent, run it, look at what it did.

An extra of the package: `pip install 'ci-agent-eval[engine]'`. Importing this opens
nothing; each name brings what it needs (PydanticAI, the MCP library) when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ci_agent_eval.errors import InputError

if TYPE_CHECKING:
    from ci_agent_eval.engine.adapters import (
        AgentAdapter,
        CommandAgent,
        FunctionAgent,
        HTTPAgent,
        LoopAgent,
        Reply,
    )
    from ci_agent_eval.engine.cassette import CassetteModel, CassetteShelf
    from ci_agent_eval.engine.declarations import Agent, CLIServer, MCPServer, Provider, Wait
    from ci_agent_eval.engine.faults import ModelError, ServerError
    from ci_agent_eval.engine.limits import RunLimits
    from ci_agent_eval.engine.result import AgentResult, CassetteCounts
    from ci_agent_eval.engine.run import aitest_run
    from ci_agent_eval.engine.session import EngineSession
    from ci_agent_eval.engine.skills import Skill
    from ci_agent_eval.engine.traces import record_spans, trajectory_from_spans
    from ci_agent_eval.steering.policy.settings import SteeringSettings

__all__ = [
    "Agent",
    "AgentAdapter",
    "AgentResult",
    "CLIServer",
    "CassetteCounts",
    "CassetteModel",
    "CassetteShelf",
    "CommandAgent",
    "EngineSession",
    "FunctionAgent",
    "HTTPAgent",
    "LoopAgent",
    "MCPServer",
    "ModelError",
    "Provider",
    "Reply",
    "RunLimits",
    "ServerError",
    "Skill",
    "SteeringSettings",
    "Wait",
    "aitest_run",
    "record_spans",
    "trajectory_from_spans",
]

_HOMES = {
    "Agent": "declarations",
    "AgentAdapter": "adapters",
    "AgentResult": "result",
    "CLIServer": "declarations",
    "CassetteCounts": "result",
    "CassetteModel": "cassette",
    "CassetteShelf": "cassette",
    "CommandAgent": "adapters",
    "EngineSession": "session",
    "FunctionAgent": "adapters",
    "HTTPAgent": "adapters",
    "LoopAgent": "adapters",
    "MCPServer": "declarations",
    "ModelError": "faults",
    "Provider": "declarations",
    "Reply": "adapters",
    "RunLimits": "limits",
    "ServerError": "faults",
    "Skill": "skills",
    "SteeringSettings": "declarations",
    "Wait": "declarations",
    "aitest_run": "run",
    "record_spans": "traces",
    "trajectory_from_spans": "traces",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{name} needs {error.name}, which is not installed; "
            "run: pip install 'ci-agent-eval[engine]'"
        ) from error
