"""The agent engine: declare an agent, run it, inspect its actions.

Extras of the package: `traffic` runs functions, endpoints, programs and agents of other
frameworks; `engine` adds declared agents, with PydanticAI and the MCP library. Importing this
package is cheap; each name imports its libraries at its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_agent_eval.errors import create_lazy_getattr

if TYPE_CHECKING:
    from ci_agent_eval.engine.adapters.command import CommandAgent
    from ci_agent_eval.engine.adapters.function import FunctionAgent
    from ci_agent_eval.engine.adapters.http import HTTPAgent
    from ci_agent_eval.engine.adapters.loop import LoopAgent
    from ci_agent_eval.engine.adapters.protocol import AgentAdapter
    from ci_agent_eval.engine.cassette.store import CassetteStore
    from ci_agent_eval.engine.declarations import Agent, CLIServer, MCPServer, Provider, Wait
    from ci_agent_eval.engine.infrastructure_errors import ModelError, ServerError
    from ci_agent_eval.engine.limits import RunLimits
    from ci_agent_eval.engine.result import AgentResult, CassetteCounts, ImageContent, SkillInfo
    from ci_agent_eval.engine.run import aitest_run
    from ci_agent_eval.engine.servers.contents import (
        get_prompt,
        list_prompts,
        list_resource_templates,
        list_resources,
        read_resource,
    )
    from ci_agent_eval.engine.session import EngineSession
    from ci_agent_eval.engine.skills import Skill
    from ci_agent_eval.recording import Reply
    from ci_agent_eval.steering.policy.settings import SteeringSettings

__all__ = [
    "Agent",
    "AgentAdapter",
    "AgentResult",
    "CLIServer",
    "CassetteCounts",
    "CassetteStore",
    "CommandAgent",
    "EngineSession",
    "FunctionAgent",
    "HTTPAgent",
    "ImageContent",
    "LoopAgent",
    "MCPServer",
    "ModelError",
    "Provider",
    "Reply",
    "RunLimits",
    "ServerError",
    "Skill",
    "SkillInfo",
    "SteeringSettings",
    "Wait",
    "aitest_run",
    "get_prompt",
    "list_prompts",
    "list_resource_templates",
    "list_resources",
    "read_resource",
]

_HOMES = {
    "Agent": "engine.declarations",
    "AgentAdapter": "engine.adapters.protocol",
    "AgentResult": "engine.result",
    "CLIServer": "engine.declarations",
    "CassetteCounts": "engine.result",
    "CassetteStore": "engine.cassette.store",
    "CommandAgent": "engine.adapters.command",
    "EngineSession": "engine.session",
    "FunctionAgent": "engine.adapters.function",
    "HTTPAgent": "engine.adapters.http",
    "ImageContent": "engine.result",
    "LoopAgent": "engine.adapters.loop",
    "MCPServer": "engine.declarations",
    "ModelError": "engine.infrastructure_errors",
    "Provider": "engine.declarations",
    "Reply": "recording.turn",
    "RunLimits": "engine.limits",
    "ServerError": "engine.infrastructure_errors",
    "Skill": "engine.skills",
    "SkillInfo": "engine.result",
    "SteeringSettings": "engine.declarations",
    "Wait": "engine.declarations",
    "aitest_run": "engine.run",
    "get_prompt": "engine.servers.contents",
    "list_prompts": "engine.servers.contents",
    "list_resource_templates": "engine.servers.contents",
    "list_resources": "engine.servers.contents",
    "read_resource": "engine.servers.contents",
}

_EXTRAS = dict.fromkeys(
    (
        "LoopAgent",
        "get_prompt",
        "list_prompts",
        "list_resource_templates",
        "list_resources",
        "read_resource",
    ),
    "engine",
)
"""Extras of the names that need more than `traffic`."""

__getattr__ = create_lazy_getattr(__name__, _HOMES, extra="traffic", extras=_EXTRAS)
