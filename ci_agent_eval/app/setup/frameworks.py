"""The agent frameworks that `agent-eval init` knows, and the agents in a project's code. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownFramework:
    """An agent framework."""

    name: str
    packages: tuple[str, ...]
    """Names of its distributions, normalized."""
    modules: tuple[str, ...]
    """Its top-level modules."""
    factories: tuple[str, ...]
    """Classes and functions that create an agent, and methods such as `compile`."""
    extra: str = "traffic"
    """The extra of our package that runs its agents."""


FRAMEWORKS: tuple[KnownFramework, ...] = (
    KnownFramework("OpenAI Agents SDK", ("openai-agents",), ("agents",), ("Agent",)),
    KnownFramework(
        "PydanticAI", ("pydantic-ai", "pydantic-ai-slim"), ("pydantic_ai",), ("Agent",), "engine"
    ),
    KnownFramework(
        "LangGraph",
        ("langgraph", "langchain"),
        ("langgraph", "langchain"),
        ("create_agent", "create_react_agent", "compile"),
    ),
    KnownFramework("Google ADK", ("google-adk",), ("google.adk",), ("Agent", "LlmAgent")),
    KnownFramework(
        "smolagents", ("smolagents",), ("smolagents",), ("ToolCallingAgent", "CodeAgent")
    ),
    KnownFramework("Strands Agents", ("strands-agents",), ("strands",), ("Agent",)),
    KnownFramework("CrewAI", ("crewai",), ("crewai",), ("Crew", "Agent")),
    KnownFramework("AutoGen", ("autogen-agentchat",), ("autogen_agentchat",), ("AssistantAgent",)),
    KnownFramework(
        "LlamaIndex",
        ("llama-index", "llama-index-core"),
        ("llama_index",),
        ("FunctionAgent", "ReActAgent", "AgentWorkflow"),
    ),
    KnownFramework("Agno", ("agno",), ("agno",), ("Agent", "Team")),
)

_REQUIREMENT = re.compile(r"^\s*[\"']?([A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass(frozen=True, slots=True)
class DefinedAgent:
    """An agent that a module assigns to a global name."""

    framework: KnownFramework
    name: str
    has_deps: bool = False
    """Whether a PydanticAI agent needs dependencies to run (`deps_type`)."""


def find_required_framework(requirements: Iterator[str]) -> KnownFramework | None:
    """Return the first known framework that the requirements name."""
    names = {
        re.sub(r"[-_.]+", "-", match[1]).lower()
        for line in requirements
        if (match := _REQUIREMENT.match(line))
    }
    return next((one for one in FRAMEWORKS if not names.isdisjoint(one.packages)), None)


def find_agent(source: str) -> DefinedAgent | None:
    """Return the last agent that a module assigns to a global name; None if there is none.

    The last one is usually the entry point: the agents it hands over to are defined before it.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    imported = {module for node in ast.walk(tree) for module in _list_modules(node)}
    known = [one for one in FRAMEWORKS if any(_is_from(m, one) for m in imported)]
    found = [agent for node in tree.body for agent in _iterate_agents(node, known)]
    return found[-1] if found else None


def _list_modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []


def _is_from(module: str, framework: KnownFramework) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in framework.modules)


def _iterate_agents(node: ast.stmt, known: list[KnownFramework]) -> Iterator[DefinedAgent]:
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    if not isinstance(value, ast.Call):
        return
    called = _get_called_name(value.func)
    if isinstance(value.func, ast.Attribute) and _get_called_name(value.func.value) == "re":
        return  # re.compile
    has_deps = any(keyword.arg == "deps_type" for keyword in value.keywords)
    for framework in known:
        if called in framework.factories:
            names = (target.id for target in targets if isinstance(target, ast.Name))
            yield from (DefinedAgent(framework, name, has_deps) for name in names)
            return


def _get_called_name(function: ast.expr) -> str | None:
    """Return the last name of a called expression: `Agent` of `agents.Agent[Context](...)`."""
    if isinstance(function, ast.Subscript):
        function = function.value
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None
