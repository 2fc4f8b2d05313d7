"""Formats of the coding agents' hook events after a tool ran. Pure.

Only a duration that the agent measured counts: the time between the events before and after a
call includes the user's answer to a question for permission. Sources, as of November 2026:

- Claude Code: https://code.claude.com/docs/en/hooks (PostToolUse, PostToolUseFailure), with
  `duration_ms`, without the time of permission prompts; Qwen Code sends the same
- Cursor: https://cursor.com/docs/hooks (afterShellExecution), with `duration` in milliseconds,
  without the time of approval
- Codex, Gemini CLI and Copilot send no duration
"""

from __future__ import annotations

from ci_agent_eval.steering.hook.coding_agents import HookEvent, HookRequest
from ci_agent_eval.steering.policy.model import ToolCallRequest

_AFTER_TOOL = ("PostToolUse", "PostToolUseFailure")
_MAX_MILLISECONDS = 1e9


def read_ended_call(event: HookEvent) -> HookRequest | None:
    """Return the call that an event reports as ended; None for other events."""
    name = event.get("hook_event_name")
    if name == "afterShellExecution":
        call = ToolCallRequest("shell", {"command": event.get("command")})
        session, milliseconds = event.get("conversation_id"), event.get("duration")
    elif name in _AFTER_TOOL and isinstance(event.get("tool_name"), str):
        call = ToolCallRequest(event["tool_name"], event.get("tool_input"))
        session, milliseconds = event.get("session_id"), event.get("duration_ms")
    else:
        return None
    return HookRequest(
        call,
        session if isinstance(session, str) and session else None,
        ended=True,
        seconds=_convert_to_seconds(milliseconds),
    )


def _convert_to_seconds(milliseconds: object) -> float | None:
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool):
        return None
    return milliseconds / 1000 if 0 <= milliseconds < _MAX_MILLISECONDS else None
