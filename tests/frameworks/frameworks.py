"""The frameworks and SDKs that the tests run, each in an environment with pinned versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TestedFramework:
    """A framework or SDK, and the environment of its tests."""

    label: str
    environment: str
    """Its section in requirements/matrix.txt, and its dependency group."""
    package: str
    """The package whose version is named."""


FRAMEWORKS: Mapping[str, TestedFramework] = {
    "openai_agents": TestedFramework("OpenAI Agents SDK", "openai-agents", "openai-agents"),
    "langgraph": TestedFramework("LangGraph, LangChain", "langgraph", "langgraph"),
    "google_adk": TestedFramework("Google ADK", "google-adk", "google-adk"),
    "smolagents": TestedFramework("smolagents", "smolagents", "smolagents"),
    "strands": TestedFramework("Strands (Bedrock)", "strands", "strands-agents"),
    "crewai": TestedFramework("CrewAI", "crewai", "crewai"),
    "autogen": TestedFramework("AutoGen", "autogen", "autogen-agentchat"),
    "llama_index": TestedFramework("LlamaIndex", "llama-index", "llama-index-core"),
    "agno": TestedFramework("agno", "agno", "agno"),
    "pydantic_ai": TestedFramework("PydanticAI", "pydantic-ai", "pydantic-ai-slim"),
    "openai_sdk": TestedFramework("only `openai`", "sdks", "openai"),
    "anthropic_sdk": TestedFramework("only `anthropic`", "sdks", "anthropic"),
    "google_sdk": TestedFramework("only `google-genai`", "sdks", "google-genai"),
    "vercel_ai": TestedFramework("Vercel AI SDK (JavaScript)", "node", "ai"),
    "codex": TestedFramework("Codex (coding agent)", "node", "@openai/codex"),
}
"""By the name of the module with its agents; those of SDKs are functions."""

FUNCTIONS: Mapping[str, Sequence[str]] = {
    "functions": (
        "agent_framework",
        "claude_agent_sdk",
        "dspy",
        "haystack",
        "litellm",
        "mirascope",
    ),
    "semantic-kernel": ("semantic_kernel",),
}
"""By environment: the functions of functions.py that ask models with libraries without an adapter."""
