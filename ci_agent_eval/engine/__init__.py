"""The agent engine: declare an agent, run it, inspect its actions.

An extra of the package: `pip install 'ci-agent-eval[engine]'`. Importing this package
is cheap; each name imports its libraries (PydanticAI, the MCP library) at its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_agent_eval.errors import create_lazy_getattr

if TYPE_CHECKING:
    from ci_agent_eval.engine.adapters import (
        AgentAdapter,
        CommandAgent,
        FunctionAgent,
        HTTPAgent,
        LoopAgent,
        Reply,
    )
    from ci_agent_eval.engine.cassette import CassetteModel, CassetteStore
    from ci_agent_eval.engine.declarations import Agent, CLIServer, MCPServer, Provider, Wait
    from ci_agent_eval.engine.infrastructure_errors import ModelError, ServerError
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
    "CassetteStore",
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
    "Agent": "engine.declarations",
    "AgentAdapter": "engine.adapters",
    "AgentResult": "engine.result",
    "CLIServer": "engine.declarations",
    "CassetteCounts": "engine.result",
    "CassetteModel": "engine.cassette",
    "CassetteStore": "engine.cassette",
    "CommandAgent": "engine.adapters",
    "EngineSession": "engine.session",
    "FunctionAgent": "engine.adapters",
    "HTTPAgent": "engine.adapters",
    "LoopAgent": "engine.adapters",
    "MCPServer": "engine.declarations",
    "ModelError": "engine.infrastructure_errors",
    "Provider": "engine.declarations",
    "Reply": "engine.adapters",
    "RunLimits": "engine.limits",
    "ServerError": "engine.infrastructure_errors",
    "Skill": "engine.skills",
    "SteeringSettings": "engine.declarations",
    "Wait": "engine.declarations",
    "aitest_run": "engine.run",
    "record_spans": "engine.traces",
    "trajectory_from_spans": "engine.traces",
}

__getattr__ = create_lazy_getattr(__name__, _HOMES, extra="engine")
