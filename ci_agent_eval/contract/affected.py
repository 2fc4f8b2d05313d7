"""What a change touches: the file by which `agent-eval run --affected` tells the plugin."""

from __future__ import annotations

from ci_agent_eval.contract.base import FrozenModel


class ChangePlan(FrozenModel):
    """The changed files, for the plugin to leave out the scenarios that declare none of them."""

    top: str
    """Root of the repository."""
    changed: tuple[str, ...] = ()
    """Paths relative to the root that differ from the merge base."""
    ignore: tuple[str, ...] = ()
    """Patterns of files that no scenario depends on."""
