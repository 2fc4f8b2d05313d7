"""Formats of the coding agents' hook events before a tool runs, and of the answers. Pure.

A call that is let through remains subject to the agent's own permission rules. In Claude Code
an explicit `allow` would skip its question to the user, and Codex treats one as an error, so
both get an empty answer. Cursor's documented answer is `allow`; Cursor runs the hook before its
own rules. Sources, as of November 2026:

- Claude Code: https://code.claude.com/docs/en/hooks (PreToolUse)
- Codex CLI: https://developers.openai.com/codex/hooks, and `codex-rs/hooks` of openai/codex
- Gemini CLI: https://geminicli.com/docs/hooks/reference (BeforeTool)
- Cursor: https://cursor.com/docs/hooks (beforeShellExecution, beforeMCPExecution, preToolUse)
- Copilot CLI: https://docs.github.com/en/copilot/reference/hooks-reference (preToolUse); a hook
  with an exit code other than 0 denies the call there
- Qwen Code: https://qwenlm.github.io/qwen-code-docs/en/users/features/hooks (PreToolUse)
- opencode: the event of the plugin that `agent-eval steer install` writes
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.steering.hook.event_fields import (
    ALLOW_OUTPUTS,
    CURSOR_EVENTS,
    OPENCODE_EVENT,
    recognize_agent_name,
)
from ci_agent_eval.steering.policy.model import Steer, ToolCallRequest

HookEvent = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HookRequest:
    """The tool call of an event, with its session."""

    call: ToolCallRequest
    session: str | None
    """None if the event names no session."""
    ended: bool = False
    """Whether the call has already run."""
    seconds: float | None = None
    """Duration of an ended call, as the agent measured it."""


@dataclass(frozen=True, slots=True)
class CodingAgent:
    """A coding agent's formats of events and answers."""

    name: str
    read_event: Callable[[HookEvent], HookRequest | None]
    """Reads an event; returns None for events other than those before a tool."""
    render_denial: Callable[[Steer], Mapping[str, object]]

    @property
    def allow_output(self) -> str:
        """The answer that lets a call through: empty or neutral."""
        return ALLOW_OUTPUTS[self.name]

    def answer(self, decision: object) -> str:
        """Return the output for a decision: one line of JSON in ASCII, or an empty text."""
        if isinstance(decision, Steer):
            return json.dumps(self.render_denial(decision)) + "\n"
        return self.allow_output


def recognize_agent(event: HookEvent) -> CodingAgent | None:
    """Return the agent that sent the event; None if it is unknown."""
    return AGENTS.get(recognize_agent_name(event) or "")


def _as_text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _read_common_event(event: HookEvent, event_name: str) -> HookRequest | None:
    """Read the event format that most agents share."""
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


def _read_opencode(event: HookEvent) -> HookRequest | None:
    return _read_common_event(event, OPENCODE_EVENT)


def _read_cursor(event: HookEvent) -> HookRequest | None:
    session = _as_text(event.get("conversation_id"))
    name = event.get("hook_event_name")
    if name == "beforeShellExecution":
        return HookRequest(ToolCallRequest("shell", {"command": event.get("command")}), session)
    tool = _as_text(event.get("tool_name"))
    if name not in CURSOR_EVENTS or tool is None:
        return None
    return HookRequest(ToolCallRequest(tool, event.get("tool_input")), session)


def _read_copilot(event: HookEvent) -> HookRequest | None:
    """Read both formats of Copilot: camelCase fields, and the fields of VS Code."""
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


def _deny_opencode(steer: Steer) -> Mapping[str, object]:
    return {"reason": steer.message}


def _deny_cursor(steer: Steer) -> Mapping[str, object]:
    user_message = f"agent-eval held a command back: {steer.reason}"
    return {"permission": "deny", "user_message": user_message, "agent_message": steer.message}


def _deny_copilot(steer: Steer) -> Mapping[str, object]:
    return {"permissionDecision": "deny", "permissionDecisionReason": steer.message}


AGENTS: Mapping[str, CodingAgent] = {
    agent.name: agent
    for agent in (
        CodingAgent("claude-code", _read_pre_tool_use, _deny_pre_tool_use),
        CodingAgent("codex", _read_pre_tool_use, _deny_pre_tool_use),
        CodingAgent("gemini", _read_before_tool, _deny_gemini),
        CodingAgent("cursor", _read_cursor, _deny_cursor),
        CodingAgent("copilot", _read_copilot, _deny_copilot),
        CodingAgent("qwen-code", _read_pre_tool_use, _deny_pre_tool_use),
        CodingAgent("opencode", _read_opencode, _deny_opencode),
    )
}
"""The coding agents by their names in `--for`."""
