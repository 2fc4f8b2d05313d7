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

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any

TIMEOUT_S = 40
"""Seconds that an agent waits for the hook, which a busy machine starts slowly."""
CURSOR, COPILOT, OPENCODE = "cursor", "copilot", "opencode"


class Agent:
    """A coding agent's formats and files: an entry of `agents.json`."""

    # A dataclass would take a tenth as long to define as Python takes to start.
    name: str
    folder: str
    """The project's folder of settings."""
    user_folder: str
    """The user's, relative to the home folder; by default as the project's."""
    folder_variable = ""
    """The environment variable that moves the user's folder."""
    file: str
    """The settings with hooks, in both folders."""
    initial: Mapping[str, object] = {}
    """Members of a new file, other than the hooks."""
    events: Sequence[str]
    """The events before a tool runs that its settings name."""
    other_events: Sequence[str] = ()
    """Further names of such events."""
    entry: Mapping[str, object] = {}
    """An item of an event's list of hooks; some agents count milliseconds."""
    denial: Mapping[str, object]
    """The answer to a held call."""
    allow_output = ""
    """The answer that lets a call through: empty or neutral."""
    next_step = ""
    """What the user must do before the agent runs the hook."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        vars(self).update({"user_folder": table["folder"], **table})

    def get_path(self, root: Path | None, environ: Mapping[str, str], home: Path) -> Path:
        """Return the settings of the project in `root`, or of the user if it is None."""
        folder = self.get_user_folder(environ, home) if root is None else root / self.folder
        return folder / self.file

    def get_user_folder(self, environ: Mapping[str, str], home: Path) -> Path:
        """Return the folder of the user's settings."""
        moved = environ.get(self.folder_variable) if self.folder_variable else None
        return home.cwd() / moved if moved else home / self.user_folder

    def build_entry(self, command: str) -> Any:
        """Build an item of an event's list from the hook's command line."""
        return _fill(self.entry, "{command}", command)

    def render_denial(self, message: str, reason: str) -> str:
        """Render the answer to a held call as JSON."""
        return json.dumps(_fill(_fill(self.denial, "{reason}", reason), "{message}", message))

    def is_before_tool(self, event: Mapping[str, Any]) -> bool:
        """Return whether an event is one that the agent sends before a tool runs."""
        name = event.get("hook_event_name")
        # Copilot CLI's own format has no name of the event.
        is_named = name in self.events or name in self.other_events
        return is_named or (self.name == COPILOT and "toolName" in event)


def _fill(template: object, name: str, value: str) -> object:
    """Return a template of JSON with a value in place of its name."""
    if isinstance(template, dict):
        return {key: _fill(each, name, value) for key, each in template.items()}
    if isinstance(template, list):
        return [_fill(each, name, value) for each in template]
    return template.replace(name, value) if isinstance(template, str) else template


def _load_agents() -> dict[str, Agent]:
    path = os.path.join(os.path.dirname(__file__), "agents.json")  # noqa: PTH118, PTH120 - pathlib is slow to import
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as above
        return {table["name"]: Agent(table) for table in json.load(file)}


AGENTS = _load_agents()
"""The coding agents by their names in `--for`."""


def recognize_agent(event: Mapping[str, Any]) -> Agent | None:
    """Return the agent that sent an event; None if it is unknown.

    Distinct fields distinguish the four agents with the event `PreToolUse`.
    """
    if event.get("hook_event_name") == "PreToolUse":
        if "turn_id" in event or "model" in event:
            return AGENTS["codex"]
        if "tool_call_id" in event:
            return AGENTS["qwen-code"]
        is_copilot = "timestamp" in event and "transcript_path" not in event
        return AGENTS[COPILOT if is_copilot else "claude-code"]
    if "cursor_version" in event:
        return AGENTS[CURSOR]
    others = (AGENTS[name] for name in ("gemini", CURSOR, OPENCODE, COPILOT))
    return next((agent for agent in others if agent.is_before_tool(event)), None)
