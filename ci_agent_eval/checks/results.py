"""Checks of the results of tool calls: their values, or their shape."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.checks.arguments import ArgumentsHold
from ci_agent_eval.checks.base import format_call, format_value
from ci_agent_eval.checks.shapes import ArgumentShape, describe_shape
from ci_agent_eval.contract.trajectory import ToolCall


@dataclass(frozen=True, slots=True)
class ResultsHold(ArgumentsHold):
    """Calls of a tool return the expected result.

    `expected` is a mapping that the result must contain, or a function of the result that
    returns true. A result that is the text of a JSON object or list counts as that value. A call
    that failed, or whose result was not recorded, does not match. Everything else is as with
    ArgumentsHold.
    """

    def _describe_statement(self) -> str:
        return f"{self.tool} returns {self._describe_expected('a result')}"

    def _format_call(self, call: ToolCall) -> str:
        return f"{format_call(call)}, which {_describe_result(call)}"

    def _is_expected(self, call: ToolCall) -> bool:
        return _has_result(call) and self._matches(read_result(call))


@dataclass(frozen=True, slots=True)
class ResultShape(ArgumentShape):
    """The results of every call of a tool are of this shape; see ResultsHold and ArgumentShape."""

    def _describe_statement(self) -> str:
        return f"results of {self.tool} are {describe_shape(self.shape)}"

    def _find_problems(self, call: ToolCall) -> list[str]:
        if not _has_result(call):
            return [f"it {_describe_result(call)}"]
        return self._validate(read_result(call))


def read_result(call: ToolCall) -> Any:
    """Return a result; of the text of a JSON object or list its value."""
    result = call.result
    if isinstance(result, str) and result.lstrip()[:1] in {"{", "["}:
        try:
            return json.loads(result)
        except (ValueError, RecursionError):
            return result
    return result


def _has_result(call: ToolCall) -> bool:
    return not call.has_failed and not call.result_unseen


def _describe_result(call: ToolCall) -> str:
    if call.error is not None:
        return f"failed: {format_value(call.error)}"
    if call.steered_by is not None:
        return "was blocked by steering"
    if call.result_unseen:
        return "has no recorded result"
    return f"returned {format_value(read_result(call))}"
