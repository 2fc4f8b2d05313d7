"""The agent that every suite with PydanticAI runs."""

from __future__ import annotations

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from work import INSTRUCTIONS, MODEL, URL, echo


def build_agent() -> Agent[None, str]:
    """Return the agent: one model, hence one client with one pool of connections."""
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=URL, api_key="no-key"))
    return Agent(model, instructions=INSTRUCTIONS, tools=[echo])
