"""The frameworks whose agents `aitest_run` takes: by the module and name of a class."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ci_agent_eval.engine.adapters.protocol import AgentAdapter

_PACKAGE = "ci_agent_eval.engine.adapters"


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework, the classes of its agents, and the adapter for them."""

    label: str
    package: str
    """The package whose modules define the classes."""
    classes: frozenset[str]
    """Names of the classes; classes derived from them count too."""
    adapter: str
    """Module and class of the adapter, below `engine.adapters`."""
    marker: str | None = None
    """A name that the package defines, if other packages may have the same name."""

    def defines(self, kind: type) -> bool:
        """Return whether a class is one of the framework's agents."""
        if kind.__name__ not in self.classes or not f"{kind.__module__}.".startswith(
            f"{self.package}."
        ):
            return False
        return self.marker is None or hasattr(sys.modules.get(self.package), self.marker)

    def wrap(self, agent: object) -> AgentAdapter:
        """Return the adapter of an agent."""
        module, _, name = self.adapter.rpartition(".")
        adapter: Callable[[object], AgentAdapter]
        adapter = getattr(import_module(f"{_PACKAGE}.{module}"), name)
        return adapter(agent)


def _describe(
    label: str, package: str, classes: str, adapter: str, marker: str | None = None
) -> Framework:
    return Framework(label, package, frozenset(classes.split()), adapter, marker)


FRAMEWORKS = (
    _describe("PydanticAI", "pydantic_ai", "AbstractAgent", "loop.LoopAgent"),
    _describe("OpenAI Agents SDK", "agents", "Agent", "frameworks.agents.OpenAIAgent", "Runner"),
    _describe("LangGraph", "langgraph", "Pregel", "frameworks.agents.GraphAgent"),
    _describe("Google ADK", "google.adk", "BaseAgent App Runner", "frameworks.agents.ADKAgent"),
    _describe("smolagents", "smolagents", "MultiStepAgent", "frameworks.agents.StepAgent"),
    _describe("Strands", "strands", "Agent", "frameworks.agents.StrandsAgent", "Agent"),
    _describe("CrewAI", "crewai", "Agent Crew", "frameworks.agents.CrewAgent", "Crew"),
    _describe(
        "AutoGen",
        "autogen_agentchat",
        "BaseChatAgent BaseGroupChat",
        "frameworks.agents.ChatAgent",
    ),
    _describe(
        "LlamaIndex",
        "llama_index.core",
        "BaseWorkflowAgent AgentWorkflow",
        "frameworks.agents.WorkflowAgent",
    ),
    _describe("agno", "agno", "Agent Team", "frameworks.agents.AgnoAgent"),
)


def find_framework(agent: object) -> Framework | None:
    """Return the framework of an agent; None for any other object."""
    kinds = type(agent).__mro__
    return next((one for one in FRAMEWORKS if any(one.defines(kind) for kind in kinds)), None)
