"""Locations of steering's files. Imports little, because the hook starts for each command."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG_NAME = "agent-eval-steering.yaml"
"""The default configuration file, which is optional."""


def find_root(environ: Mapping[str, str]) -> str:
    """Return the project's folder, which may differ from the agent's working directory.

    Claude Code defines the variable (https://code.claude.com/docs/en/hooks); others follow it.
    """
    return environ.get("CLAUDE_PROJECT_DIR") or os.getcwd()  # noqa: PTH109 - pathlib is slow to import


def find_settings(environ: Mapping[str, str], config: str | None) -> str:
    """Return the path of the settings file, which may not exist."""
    return os.path.join(find_root(environ), config or CONFIG_NAME)  # noqa: PTH118 - as above


def get_default_store_path(environ: Mapping[str, str], home: str) -> str:
    """Return the default file of sessions in the user's state folder.

    https://specifications.freedesktop.org/basedir-spec/latest/
    """
    folder = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(folder):  # noqa: PTH117 - as above
        folder = f"{home}/.local/state"
    return f"{folder}/agent-eval/steering.sqlite3"
