"""What each coding agent asks before a tool runs, and how it wants to be answered. Pure.

To let a call through is to have no opinion: the agent's own permission rules go on to apply. In
Claude Code an explicit `allow` would skip its question to the user, and Codex takes one for an
error, so both are answered with nothing. Cursor's documented answer is `allow`, which it asks
for before its own rules. Sources, as of November 2026:

- Claude Code: https://code.claude.com/docs/en/hooks (PreToolUse)
- Codex CLI: https://developers.openai.com/codex/hooks, and `codex-rs/hooks` of openai/codex
- Gemini CLI: https://geminicli.com/docs/hooks/reference (BeforeTool)
- Cursor: https://cursor.com/docs/hooks (beforeShellExecution, beforeMCPExecution, preToolUse)
- Copilot CLI: https://docs.github.com/en/copilot/reference/hooks-reference (preToolUse); a hook
  that ends with anything but 0 denies the call there
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.steering.policy.model import Steer, ToolCallRequest

HookEvent = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HookRequest:
    """The call that an event asks about, and whose it is."""

    call: ToolCallRequest
    session: str | None
    """None where the event names none."""


@dataclass(frozen=True, slots=True)
class CodingAgent:
    """A coding agent's way to ask and to be answered."""

    name: str
    asked: Callable[[HookEvent], HookRequest | None]
    """None for an event of another kind than before a tool."""
    denied: Callable[[Steer], Mapping[str, object]]
    allowed: str = ""
    """What lets a call through: nothing, or an answer without an opinion."""

    def answer(self, decision: object) -> str:
        """Return what is written for a decision: one line of JSON in ASCII, or nothing."""
        if isinstance(decision, Steer):
            return json.dumps(self.denied(decision)) + "\n"
        return self.allowed


def recognize_agent(event: HookEvent) -> CodingAgent | None:
    """Return the agent that sends such events; None for an event that no agent sends."""
    name = event.get("hook_event_name")
    if name == "BeforeTool":
        return AGENTS["gemini"]
    if name in _CURSOR_EVENTS or "cursor_version" in event:
        return AGENTS["cursor"]
    if name == "PreToolUse":
        return _recognize_pre_tool_use(event)
    return AGENTS["copilot"] if "toolName" in event else None


def _recognize_pre_tool_use(event: HookEvent) -> CodingAgent:
    """Tell apart the three that share the name of an event, by fields the others do not send."""
    if "turn_id" in event or "model" in event:
        return AGENTS["codex"]
    if "timestamp" in event and "transcript_path" not in event:
        return AGENTS["copilot"]
    return AGENTS["claude-code"]


def _as_text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _read_common_event(event: HookEvent, event_name: str) -> HookRequest | None:
    """Read the event that most of them agree on."""
    tool = _as_text(event.get("tool_name"))
    if event.get("hook_event_name") != event_name or tool is None:
        return None
    return HookRequest(
        ToolCallRequest(tool, event.get("tool_input")), _as_text(event.get("session_id"))
    )


def _read_pre_tool_use(event: HookEvent) -> HookRequest | None:
    return _read_common_event(event, "PreToolUse")


def _read_before_tool(event: HookEvent) -> HookRequest | None:
    return _read_common_event(event, "BeforeTool")


_CURSOR_EVENTS = ("beforeShellExecution", "beforeMCPExecution", "preToolUse")


def _read_cursor(event: HookEvent) -> HookRequest | None:
    session = _as_text(event.get("conversation_id"))
    name = event.get("hook_event_name")
    if name == "beforeShellExecution":
        return HookRequest(ToolCallRequest("shell", {"command": event.get("command")}), session)
    tool = _as_text(event.get("tool_name"))
    if name not in _CURSOR_EVENTS or tool is None:
        return None
    return HookRequest(ToolCallRequest(tool, event.get("tool_input")), session)


def _read_copilot(event: HookEvent) -> HookRequest | None:
    """Read both its formats: fields in camelCase, and those of VS Code."""
    tool = _as_text(event.get("toolName"))
    if tool is None:
        return _read_pre_tool_use(event)
    return HookRequest(
        ToolCallRequest(tool, event.get("toolArgs")), _as_text(event.get("sessionId"))
    )


def _deny_pre_tool_use(steer: Steer) -> Mapping[str, object]:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": steer.message,
        }
    }


def _deny_gemini(steer: Steer) -> Mapping[str, object]:
    return {"decision": "deny", "reason": steer.message}


def _deny_cursor(steer: Steer) -> Mapping[str, object]:
    shown = f"agent-eval held a command back: {steer.reason}"
    return {"permission": "deny", "user_message": shown, "agent_message": steer.message}


def _deny_copilot(steer: Steer) -> Mapping[str, object]:
    return {"permissionDecision": "deny", "permissionDecisionReason": steer.message}


AGENTS: Mapping[str, CodingAgent] = {
    agent.name: agent
    for agent in (
        CodingAgent("claude-code", _read_pre_tool_use, _deny_pre_tool_use),
        CodingAgent("codex", _read_pre_tool_use, _deny_pre_tool_use),
        CodingAgent("gemini", _read_before_tool, _deny_gemini, allowed="{}\n"),
        CodingAgent("cursor", _read_cursor, _deny_cursor, allowed='{"permission": "allow"}\n'),
        CodingAgent("copilot", _read_copilot, _deny_copilot),
    )
}
"""By the names that `--for` takes."""
