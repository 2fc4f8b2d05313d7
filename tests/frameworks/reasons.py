"""Cells that cannot be reached, with the reason that the table shows."""

from __future__ import annotations

from collections.abc import Mapping

_PLAIN_TEXT = "it sends the results of tools to the model as plain text"
_NO_TYPED_OUTPUT = "it has no typed output"
_NO_AGENTS = "an SDK has no agents"

REASONS: Mapping[tuple[str, str], str] = {
    ("smolagents", "turns"): f"{_PLAIN_TEXT}, which are turns of the role `system`",
    ("smolagents", "tool_results"): _PLAIN_TEXT,
    ("smolagents", "tool_errors"): _PLAIN_TEXT,
    ("smolagents", "typed"): _NO_TYPED_OUTPUT,
    ("openai_sdk", "handoffs"): _NO_AGENTS,
    ("anthropic_sdk", "handoffs"): _NO_AGENTS,
    ("google_sdk", "handoffs"): _NO_AGENTS,
    ("vercel_ai", "handoffs"): _NO_AGENTS,
    ("codex", "handoffs"): "its sub-agents are not run here",
    ("codex", "suite_replay"): "its shell answers "
    '"Process running" on a busy machine, which makes other requests',
    ("codex", "conversation"): "each message starts a new session of `codex exec`",
}
"""By framework and column."""
