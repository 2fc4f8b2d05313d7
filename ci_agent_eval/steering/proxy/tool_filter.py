"""The tools with steerable calls; calls of other tools are not held in a stream."""

from __future__ import annotations

from collections.abc import Callable

from ci_agent_eval.steering.policy.command_extraction import (
    PYTEST_TOOLS,
    normalize_tool_name,
    runs_commands,
)
from ci_agent_eval.steering.policy.settings import SteeringSettings


def build_tool_filter(settings: SteeringSettings) -> Callable[[str], bool]:
    """Return a predicate for the names of tools with calls that these settings may steer."""
    covers_commands = settings.enabled or bool(settings.dangerous)
    tools = set(PYTEST_TOOLS) if covers_commands else set[str]()
    for rule in settings.general:
        tools |= {normalize_tool_name(name) for name in rule.tools}
        covers_commands |= not rule.tools
    return lambda tool: (
        "*" in tools
        or normalize_tool_name(tool) in tools
        or (covers_commands and runs_commands(tool, settings.rules.shell_tools))
    )
