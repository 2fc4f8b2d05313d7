"""Adapters for your own agents: the protocol `AgentAdapter` and its implementations."""

from ci_agent_eval.engine.adapters.command import CommandAgent
from ci_agent_eval.engine.adapters.function import FunctionAgent
from ci_agent_eval.engine.adapters.http import HTTPAgent
from ci_agent_eval.engine.adapters.loop import LoopAgent
from ci_agent_eval.engine.adapters.protocol import AgentAdapter, AgentTask, Reply
from ci_agent_eval.engine.adapters.run import build_adapter, run_adapter

__all__ = [
    "AgentAdapter",
    "AgentTask",
    "CommandAgent",
    "FunctionAgent",
    "HTTPAgent",
    "LoopAgent",
    "Reply",
    "build_adapter",
    "run_adapter",
]
