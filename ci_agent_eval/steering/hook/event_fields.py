"""Fields of hook events that tell agents apart and contain the call. Imports nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TOOL_FIELDS = ("tool_name", "toolName")
ARGUMENT_FIELDS = ("tool_input", "toolArgs", "command")
"""All fields in which an agent sends a call's arguments."""

CURSOR_EVENTS = ("beforeShellExecution", "beforeMCPExecution", "preToolUse")
OPENCODE_EVENT = "tool.execute.before"

ALLOW_OUTPUTS = {
    "claude-code": "",
    "codex": "",
    "gemini": "{}\n",
    "cursor": '{"permission": "allow"}\n',
    "copilot": "",
    "qwen-code": "",
    "opencode": "",
}
"""Each agent's answer that lets a call through: empty or neutral."""


def recognize_agent_name(event: Mapping[str, Any]) -> str | None:
    """Return the name of the agent that sent the event; None if it is unknown."""
    name = event.get("hook_event_name")
    if name == "BeforeTool":
        return "gemini"
    if name in CURSOR_EVENTS or "cursor_version" in event:
        return "cursor"
    if name == OPENCODE_EVENT:
        return "opencode"
    if name == "PreToolUse":
        return _recognize_pre_tool_use(event)
    return "copilot" if "toolName" in event else None


def _recognize_pre_tool_use(event: Mapping[str, Any]) -> str:
    """Distinguish the four agents with the event `PreToolUse` by their distinct fields."""
    if "turn_id" in event or "model" in event:
        return "codex"
    if "tool_call_id" in event:
        return "qwen-code"
    if "timestamp" in event and "transcript_path" not in event:
        return "copilot"
    return "claude-code"
