"""The checks that a scenario file declares, as the objects that check."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ci_agent_eval.checks import (
    ArgumentsHold,
    Check,
    ConfirmedTools,
    ForbiddenText,
    ForbiddenTools,
    OrderedTools,
    RequiredText,
    RequiredTools,
    ToolCallLimits,
)
from ci_agent_eval.contract.scenario import ScenarioChecks

_OF_TOOLS: dict[str, Callable[[tuple[str, ...]], Check]] = {
    "required_tools": RequiredTools,
    "forbidden_tools": ForbiddenTools,
    "ordered_tools": OrderedTools,
    "confirmed_tools": ConfirmedTools,
}


def declared_checks(given: ScenarioChecks) -> Iterator[Check]:
    """Yield a check for each key that is given; each text and pattern is one of its own."""
    for name, kind in _OF_TOOLS.items():
        if tools := getattr(given, name):
            yield kind(tools)
    yield from (RequiredText(texts=text) for text in given.required_text)
    yield from (RequiredText(patterns=pattern) for pattern in given.required_patterns)
    yield from (ForbiddenText(texts=text) for text in given.forbidden_text)
    yield from (ForbiddenText(patterns=pattern) for pattern in given.forbidden_patterns)
    for tool, arguments in given.arguments.items():
        yield ArgumentsHold(tool, arguments)
    if given.tool_limits or given.max_tool_calls is not None:
        yield ToolCallLimits(given.max_tool_calls, given.tool_limits)
