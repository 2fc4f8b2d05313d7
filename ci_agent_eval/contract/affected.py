"""What a change touches, which `agent-eval run --affected` tells the plugin in a file."""

from __future__ import annotations

from ci_agent_eval.contract.base import FrozenModel

CHANGE_EVENTS = frozenset({None, "", "pull_request", "pull_request_target", "merge_group"})
"""Events of a workflow that are about a change, and none at all; a push is on its branch."""


class ChangePlan(FrozenModel):
    """The changed files, for the plugin to leave out the scenarios that declare none of them."""

    top: str
    """Root of the repository."""
    changed: tuple[str, ...] = ()
    """Paths relative to the root that differ from the merge base."""
    ignore: tuple[str, ...] = ()
    """Patterns of files that no scenario depends on."""


def is_file_pattern(value: object) -> bool:
    """Return whether it is a path or pattern below the repository's root."""
    if not isinstance(value, str) or not value.strip():
        return False
    parts = value.split("/")
    return (
        not {"", ".", ".."}.intersection(parts[:-1])
        and parts[-1] not in {".", ".."}
        and ":" not in value
    )
