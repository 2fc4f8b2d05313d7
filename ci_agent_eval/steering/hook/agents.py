"""The coding agents: their hook events, their answers, and where they read hooks. Pure.

A call that is let through remains subject to the agent's own permission rules. In Claude Code
an explicit `allow` would skip its question to the user, and Codex treats one as an error, so
both get an empty answer. Cursor's documented answer is `allow`; Cursor runs the hook before its
own rules. Sources, as of November 2026, each tried with the version that docs/steering.md names:

- Claude Code: https://code.claude.com/docs/en/hooks, https://code.claude.com/docs/en/settings
- Codex CLI: https://developers.openai.com/codex/hooks, and `codex-rs/hooks` of openai/codex
- Gemini CLI: https://geminicli.com/docs/hooks/reference (timeout in milliseconds)
- Qwen Code: https://qwenlm.github.io/qwen-code-docs/en/users/features/hooks (milliseconds)
- Cursor: https://cursor.com/docs/hooks
- Copilot CLI: https://docs.github.com/en/copilot/reference/hooks-reference; a hook with an exit
  code other than 0 denies the call there
- opencode: https://opencode.ai/docs/plugins; the events are of the plugin that
  `agent-eval steer install` writes
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    RenderDenial = Callable[[str, str], Mapping[str, object]]
    """Renders the answer to a held call from the message and the reason."""

TIMEOUT_S = 40
"""Seconds that an agent waits for the hook, which a busy machine starts slowly."""
CURSOR, COPILOT, OPENCODE = "cursor", "copilot", "opencode"
_CURSOR_EVENTS = ("beforeShellExecution", "beforeMCPExecution", "preToolUse")
_OPENCODE_EVENT = "tool.execute.before"


class Agent:
    """A coding agent's formats and files."""

    # A dataclass would take a tenth as long to define as Python takes to start.
    def __init__(
        self,
        name: str,
        event: str,
        folder: str,
        file: str,
        render_denial: RenderDenial,
        *,
        allow_output: str = "",
        matcher: str = "",
        units_per_second: int = 1,
        user_folder: str = "",
        folder_variable: str = "",
        next_step: str = "",
    ) -> None:
        self.name = name
        self.events = _CURSOR_EVENTS[:2] if name == CURSOR else (event,)
        """The events before a tool runs that its settings name."""
        self.folder = folder
        """The project's folder of settings."""
        self.user_folder = user_folder or folder
        """The user's, relative to the home folder."""
        self.file = file
        """The settings with hooks, in both folders."""
        self.render_denial = render_denial
        self.allow_output = allow_output
        """The answer that lets a call through: empty or neutral."""
        self.matcher = matcher
        """The tools for which the agent starts the hook."""
        self.units_per_second = units_per_second
        """The unit of the agent's timeouts."""
        self.folder_variable = folder_variable
        """The environment variable that moves the user's folder."""
        self.next_step = next_step
        """What the user must do before the agent runs the hook."""
        self.initial: Mapping[str, object] = {"version": 1} if name in {CURSOR, COPILOT} else {}
        """Members of a new file, other than the hooks."""

    def get_path(self, root: Path | None, environ: Mapping[str, str], home: Path) -> Path:
        """Return the settings of the project in `root`, or of the user if it is None."""
        folder = self.get_user_folder(environ, home) if root is None else root / self.folder
        return folder / self.file

    def get_user_folder(self, environ: Mapping[str, str], home: Path) -> Path:
        """Return the folder of the user's settings."""
        moved = environ.get(self.folder_variable) if self.folder_variable else None
        return home.cwd() / moved if moved else home / self.user_folder

    def build_entry(self, command: str) -> Mapping[str, object]:
        """Build an item of an event's list from the hook's command line."""
        if self.name == CURSOR:
            return {"command": command, "timeout": TIMEOUT_S}
        if self.name == COPILOT:
            return {"type": "command", "bash": command, "timeoutSec": TIMEOUT_S}
        timeout = TIMEOUT_S * self.units_per_second
        hook = {"type": "command", "command": command, "timeout": timeout}
        return {"matcher": self.matcher, "hooks": [hook]}


def _deny_pre_tool_use(message: str, _reason: str) -> Mapping[str, object]:
    denial = {"permissionDecision": "deny", "permissionDecisionReason": message}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **denial}}


def _deny_gemini(message: str, _reason: str) -> Mapping[str, object]:
    return {"decision": "deny", "reason": message}


def _deny_cursor(message: str, reason: str) -> Mapping[str, object]:
    user_message = f"agent-eval held a command back: {reason}"
    return {"permission": "deny", "user_message": user_message, "agent_message": message}


def _deny_copilot(message: str, _reason: str) -> Mapping[str, object]:
    return {"permissionDecision": "deny", "permissionDecisionReason": message}


def _deny_opencode(message: str, _reason: str) -> Mapping[str, object]:
    return {"reason": message}


AGENTS: Mapping[str, Agent] = {
    agent.name: agent
    for agent in (
        Agent(
            "claude-code",
            "PreToolUse",
            ".claude",
            "settings.json",
            _deny_pre_tool_use,
            matcher="Bash|PowerShell|mcp__.*",
            folder_variable="CLAUDE_CONFIG_DIR",
        ),
        Agent(
            "codex",
            "PreToolUse",
            ".codex",
            "hooks.json",
            _deny_pre_tool_use,
            matcher="Bash|mcp__.*",
            folder_variable="CODEX_HOME",
            next_step="Codex ignores a new or changed hook until you trust it: start `codex` in "
            "the project, enter /hooks and trust this one. Without a terminal, as in CI: "
            "`codex exec --dangerously-bypass-hook-trust`",
        ),
        Agent(
            "gemini",
            "BeforeTool",
            ".gemini",
            "settings.json",
            _deny_gemini,
            allow_output="{}\n",
            matcher="run_shell_command|mcp_.*",
            units_per_second=1000,
            next_step="Gemini CLI runs a project's hooks only in a trusted folder: answer its "
            "question, or set GEMINI_CLI_TRUST_WORKSPACE=true",
        ),
        Agent(
            "qwen-code",
            "PreToolUse",
            ".qwen",
            "settings.json",
            _deny_pre_tool_use,
            matcher="run_shell_command|mcp__.*",
            units_per_second=1000,
        ),
        Agent(
            CURSOR,
            "beforeShellExecution",
            ".cursor",
            "hooks.json",
            _deny_cursor,
            allow_output='{"permission": "allow"}\n',
        ),
        Agent(
            COPILOT,
            "preToolUse",
            ".github",
            "hooks/agent-eval.json",
            _deny_copilot,
            user_folder=".copilot",
            folder_variable="COPILOT_HOME",
            next_step="Copilot CLI runs a project's hooks only in a trusted folder: answer its "
            "question, or run `copilot -p … --trust-folder`",
        ),
        Agent(
            OPENCODE,
            _OPENCODE_EVENT,
            ".opencode",
            "plugins/agent-eval.js",
            _deny_opencode,
            user_folder=".config/opencode",
            folder_variable="OPENCODE_CONFIG_DIR",
        ),
    )
}
"""The coding agents by their names in `--for`."""


def recognize_agent(event: Mapping[str, Any]) -> Agent | None:
    """Return the agent that sent an event; None if it is unknown."""
    name = event.get("hook_event_name")
    if name == "BeforeTool":
        return AGENTS["gemini"]
    if name in _CURSOR_EVENTS or "cursor_version" in event:
        return AGENTS[CURSOR]
    if name == _OPENCODE_EVENT:
        return AGENTS[OPENCODE]
    if name == "PreToolUse":
        return AGENTS[_recognize_pre_tool_use(event)]
    return AGENTS[COPILOT] if "toolName" in event else None


def _recognize_pre_tool_use(event: Mapping[str, Any]) -> str:
    """Distinguish the four agents with the event `PreToolUse` by their distinct fields."""
    if "turn_id" in event or "model" in event:
        return "codex"
    if "tool_call_id" in event:
        return "qwen-code"
    if "timestamp" in event and "transcript_path" not in event:
        return COPILOT
    return "claude-code"


def is_before_tool(event: Mapping[str, Any], agent: Agent) -> bool:
    """Return whether an event is one that the agent sends before a tool runs."""
    if agent.name == CURSOR:
        return event.get("hook_event_name") in _CURSOR_EVENTS
    if agent.name == COPILOT:  # the format of VS Code has the event's name
        return "toolName" in event or event.get("hook_event_name") == "PreToolUse"
    return event.get("hook_event_name") in agent.events
