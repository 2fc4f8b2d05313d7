"""Which objects are agents of a framework; `make frameworks` tries the real ones."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from pydantic_ai import Agent

from ci_agent_eval.authoring.simulation.app_under_test import is_engine_agent
from ci_agent_eval.engine.adapters.frameworks.registry import FRAMEWORKS, find_framework
from ci_agent_eval.engine.adapters.loop import LoopAgent
from ci_agent_eval.engine.run import build_adapter
from ci_agent_eval.errors import InputError
from tests.tables import each_row


def make_agent(module, name, base=object):
    return type(name, (base,), {"__module__": module, "name": "teller"})()


@each_row(
    ("module", "name", "label"),
    [
        ("langgraph.pregel.main", "Pregel", "LangGraph"),
        ("google.adk.agents.base_agent", "BaseAgent", "Google ADK"),
        ("google.adk.runners", "Runner", "Google ADK"),
        ("smolagents.agents", "MultiStepAgent", "smolagents"),
        ("autogen_agentchat.teams._group_chat", "BaseGroupChat", "AutoGen"),
        ("llama_index.core.agent.workflow.base_agent", "BaseWorkflowAgent", "LlamaIndex"),
        ("agno.agent.agent", "Agent", "agno"),
    ],
)
def test_an_agent_is_found_by_the_module_of_its_class_or_of_a_base(module, name, label):
    agent = make_agent(module, name)
    own = make_agent("my_bank.agents", "Teller", type(agent))
    for one in (agent, own):
        assert find_framework(one).label == label
        assert is_engine_agent(one)
        assert build_adapter(one).label == "teller"
    assert not any(name.partition(".")[0] == "langgraph" for name in sys.modules)


def test_a_module_with_a_common_name_must_be_the_framework(monkeypatch):
    agent = make_agent("agents.teller", "Agent")
    monkeypatch.setitem(sys.modules, "agents", ModuleType("agents"))
    assert find_framework(agent) is None
    sys.modules["agents"].Runner = object
    assert find_framework(agent).label == "OpenAI Agents SDK"


def test_other_objects_are_none():
    for agent in (lambda message: message, make_agent("langgraph_tools.main", "Pregel"), 1):
        assert find_framework(agent) is None
    with pytest.raises(
        InputError,
        match=r"builtins\.int is not an agent .*\(PydanticAI, OpenAI Agents SDK, .*`async def answer",
    ):
        build_adapter(1)


def test_pydantic_ai_is_one_of_them():
    assert isinstance(build_adapter(Agent()), LoopAgent)
    assert FRAMEWORKS[0].label == "PydanticAI"
