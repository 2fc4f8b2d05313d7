"""Settings files of the coding agents: where they are, and what a hook looks like. Pure.

Sources, as of November 2026, each tried with the version that docs/steering-agents.md names:

- Claude Code: https://code.claude.com/docs/en/settings
- Codex CLI: https://developers.openai.com/codex/hooks
- Gemini CLI: https://geminicli.com/docs/hooks/reference (timeout in milliseconds)
- Qwen Code: https://qwenlm.github.io/qwen-code-docs/en/users/features/hooks (milliseconds)
- Cursor: https://cursor.com/docs/hooks
- Copilot CLI: https://docs.github.com/en/copilot/reference/hooks-reference
- opencode: https://opencode.ai/docs/plugins
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

TIMEOUT_S = 40
"""Seconds that an agent waits for the hook, which a busy machine starts slowly."""

BuildEntry = Callable[[str], Mapping[str, object]]


def _build_nothing(_command: str) -> Mapping[str, object]:
    return {}


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Where an agent reads hooks, and their format."""

    name: str
    project_file: str
    """Relative to the project."""
    user_folder: str
    """Relative to the home folder."""
    user_file: str
    """Relative to the user's folder of settings."""
    folder_variable: str = ""
    """The environment variable that moves the user's folder."""
    events: tuple[str, ...] = ()
    build_entry: BuildEntry = _build_nothing
    """Builds an item of an event's list from the hook's command line."""
    initial: Mapping[str, object] = field(default_factory=dict)
    """Members of a new file, other than the hooks."""
    allows_comments: bool = False
    next_step: str = ""
    """What the user must do before the agent runs the hook."""

    @property
    def is_own_file(self) -> bool:
        """Whether the file contains nothing but our hook."""
        return Path(self.project_file).stem == "agent-eval"

    def get_path(self, root: Path | None, environ: Mapping[str, str], home: Path) -> Path:
        """Return the settings of the project in `root`, or of the user if it is None."""
        if root is not None:
            return root / self.project_file
        return self.get_user_folder(environ, home) / self.user_file

    def get_user_folder(self, environ: Mapping[str, str], home: Path) -> Path:
        """Return the folder of the user's settings."""
        moved = environ.get(self.folder_variable) if self.folder_variable else None
        return Path(moved or home / self.user_folder)


def _build_group(matcher: str, timeout: int) -> BuildEntry:
    """Return a builder of a group, as most agents have it; `timeout` is in the agent's unit."""

    def build(command: str) -> Mapping[str, object]:
        hook = {"type": "command", "command": command, "timeout": timeout}
        return {"matcher": matcher, "hooks": [hook]}

    return build


def _build_cursor_entry(command: str) -> Mapping[str, object]:
    return {"command": command, "timeout": TIMEOUT_S}


def _build_copilot_entry(command: str) -> Mapping[str, object]:
    return {"type": "command", "bash": command, "timeoutSec": TIMEOUT_S}


AGENT_SETTINGS: Mapping[str, AgentSettings] = {
    settings.name: settings
    for settings in (
        AgentSettings(
            "claude-code",
            ".claude/settings.json",
            ".claude",
            "settings.json",
            "CLAUDE_CONFIG_DIR",
            events=("PreToolUse",),
            build_entry=_build_group("Bash|PowerShell|mcp__.*", TIMEOUT_S),
        ),
        AgentSettings(
            "codex",
            ".codex/hooks.json",
            ".codex",
            "hooks.json",
            "CODEX_HOME",
            events=("PreToolUse",),
            build_entry=_build_group("Bash|mcp__.*", TIMEOUT_S),
            next_step="Codex ignores a new or changed hook until you trust it: start `codex` in "
            "the project, enter /hooks and trust this one. Without a terminal, as in CI: "
            "`codex exec --dangerously-bypass-hook-trust`",
        ),
        AgentSettings(
            "gemini",
            ".gemini/settings.json",
            ".gemini",
            "settings.json",
            events=("BeforeTool",),
            build_entry=_build_group("run_shell_command|mcp_.*", TIMEOUT_S * 1000),
            allows_comments=True,
            next_step="Gemini CLI runs a project's hooks only in a trusted folder: answer its "
            "question, or set GEMINI_CLI_TRUST_WORKSPACE=true",
        ),
        AgentSettings(
            "qwen-code",
            ".qwen/settings.json",
            ".qwen",
            "settings.json",
            events=("PreToolUse",),
            build_entry=_build_group("run_shell_command|mcp__.*", TIMEOUT_S * 1000),
            allows_comments=True,
        ),
        AgentSettings(
            "cursor",
            ".cursor/hooks.json",
            ".cursor",
            "hooks.json",
            events=("beforeShellExecution", "beforeMCPExecution"),
            build_entry=_build_cursor_entry,
            initial={"version": 1},
        ),
        AgentSettings(
            "copilot",
            ".github/hooks/agent-eval.json",
            ".copilot",
            "hooks/agent-eval.json",
            "COPILOT_HOME",
            events=("preToolUse",),
            build_entry=_build_copilot_entry,
            initial={"version": 1},
            next_step="Copilot CLI runs a project's hooks only in a trusted folder: answer its "
            "question, or run `copilot -p … --trust-folder`",
        ),
        AgentSettings(
            "opencode",
            ".opencode/plugins/agent-eval.js",
            ".config/opencode",
            "plugins/agent-eval.js",
            "OPENCODE_CONFIG_DIR",
        ),
    )
}
"""The settings of the coding agents by their names in `--for`."""
