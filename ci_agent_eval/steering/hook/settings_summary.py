"""A stored summary of a settings file, which answers most events without reading YAML.

Importing a YAML parser takes longer than all else that the hook does for most commands. The
summary contains the state of the file that it was made from, so it is not used for another one,
and never the file's text, which can contain secrets of other programs.
"""

# ruff: noqa: PTH100, PTH103, PTH105, PTH111, PTH116, PTH118, PTH120, PTH123 - pathlib is slow to import

from __future__ import annotations

import json
import os
import sys

from ci_agent_eval.steering.locations import CONFIG_NAME, find_root, get_default_store_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ci_agent_eval.steering.hook.options import HookOptions
    from ci_agent_eval.steering.policy.settings import SteeringSettings

DEFAULT_SUMMARY: Mapping[str, Any] = {"commands": [], "dangerous": False, "patterns": []}
"""What applies without a settings file."""


class HookFiles:
    """Paths of the project's folder, its settings, the file of sessions, and the summary."""

    def __init__(self, options: HookOptions, environ: Mapping[str, str]) -> None:
        self.root = find_root(environ)
        self.settings = os.path.join(self.root, options.config or CONFIG_NAME)
        self.store = options.store or get_default_store_path(environ, os.path.expanduser("~"))
        # One file for each settings file; a collision costs time only. hashlib is slow to import.
        path = os.path.abspath(self.settings).encode("utf-8", "surrogateescape")
        self.summary = f"{self.store}.{int.from_bytes(path) % (2**61 - 1):016x}.json"


def read_origin(files: HookFiles) -> list[object] | None:
    """Return the version of this program and the state of the settings file; None without one."""
    try:
        state = os.stat(files.settings)
    except OSError:
        return None
    # The package also exports the names of slow modules, so import-linter forbids its import.
    version = sys.modules["ci_agent_eval"].__version__
    return [version, state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino]


def load_summary(files: HookFiles) -> Mapping[str, Any] | None:
    """Return the summary of the settings as they are now; None if it is not stored."""
    if not os.path.lexists(files.settings):
        return DEFAULT_SUMMARY
    try:
        with open(files.summary, encoding="utf-8") as file:
            summary = json.load(file)
        return summary if summary["made_from"] == read_origin(files) else None
    except (OSError, ValueError):
        return None


def store_summary(files: HookFiles, origin: list[object], settings: SteeringSettings) -> None:
    """Store the summary for its owner only; `origin` was read before the settings.

    Raises OSError.
    """
    summary = {
        "made_from": origin,
        "commands": settings.rules.commands,
        "dangerous": bool(settings.dangerous),
        "patterns": [rule.pattern for rule in settings.general],
    }
    os.makedirs(os.path.dirname(files.summary) or ".", mode=0o700, exist_ok=True)
    temporary = f"{files.summary}.{os.getpid()}"
    descriptor = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(summary, file)
    os.replace(temporary, files.summary)
