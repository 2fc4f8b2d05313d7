"""promptfoo: a provider in Python, which gives the prompt to the agent of the other suites."""

from __future__ import annotations

from typing import Any

from agent import build_agent

AGENT = build_agent()


def call_api(prompt: str, _options: dict[str, Any], _context: dict[str, Any]) -> dict[str, Any]:
    """Answer as promptfoo asks for it."""
    result = AGENT.run_sync(prompt)
    return {"output": result.output, "tokenUsage": {"total": result.usage.total_tokens}}
