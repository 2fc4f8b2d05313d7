"""Matching of tool call arguments: exactly, in part, or by a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ci_agent_eval.checks.base import (
    BaseCheck,
    compute_share,
    format_call,
    format_list,
    format_value,
)
from ci_agent_eval.checks.text import get_tool_calls
from ci_agent_eval.contract.base import is_equal_json
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.fields import TextList, validate_fields
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import ToolCall
from ci_agent_eval.errors import InputError

Json = Any
"""A JSON value."""

ArgumentMode = Literal["exact", "ignore", "subset", "superset"]
"""How a call's arguments must relate to the reference's.

`subset`: every argument is one of the reference's; `superset`: every argument of the reference
is present. Both compare top-level names; each value must be equal as a whole.
"""

Matcher = Callable[[Any, Any], bool]
"""Takes the call's arguments and the reference's; returns whether they match."""

ArgumentRule = ArgumentMode | Matcher | TextList
"""A mode, a function, or the names of the arguments that must be equal."""

CallSelection = Literal["every", "any", "first", "last"]


def arguments_match(given: Json, reference: Json, rule: ArgumentRule) -> bool:
    """Return whether a call's arguments match the reference's by a rule."""
    if callable(rule):
        return bool(rule(given, reference))
    if rule == "ignore":
        return True
    if rule == "exact":
        return is_equal_json(given or {}, reference or {})
    if rule == "superset":
        return _is_superset(given or {}, reference or {})
    if rule == "subset":
        return _is_superset(reference or {}, given or {})
    return all(
        is_equal_json(_find_argument(given, name), _find_argument(reference, name)) for name in rule
    )


def _is_superset(larger: Json, smaller: Json) -> bool:
    if not isinstance(larger, dict) or not isinstance(smaller, dict):
        return is_equal_json(larger, smaller)
    return all(
        key in larger and is_equal_json(larger[key], value) for key, value in smaller.items()
    )


def _find_argument(arguments: Json, name: str) -> Json:
    """Return an argument, or a nested one by its dotted name; None if it is missing."""
    found = arguments
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


@dataclass(frozen=True, slots=True)
class ArgumentsHold(BaseCheck):
    """Calls of a tool have the expected arguments.

    `expected` is a mapping that the arguments must contain, or a function of the arguments
    that returns true. A LookupError or TypeError from the function counts as false: the value
    that it reads is missing. A tool that was never called fails, unless it is `optional`.
    The score is the share of calls that match.
    """

    tool: str
    expected: Mapping[str, Any] | Callable[[Any], object]
    which: CallSelection = "every"
    optional: bool = False

    def __post_init__(self) -> None:
        validate_fields(self)
        if self.expected == {}:
            raise InputError(
                f"{type(self).__name__}.expected: it names no value; to ask only for the call, use "
                f"RequiredTools({self.tool!r})"
            )

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        made = [call for call in get_tool_calls(episode) if call.name == self.tool]
        statement = self._describe_statement()
        if not made:
            reason = f"{self.tool} was never called"
            return (self._build_assertion(statement, self.optional, reason),)
        selected = {"first": made[:1], "last": made[-1:]}.get(self.which, made)
        wrong = [self._format_call(call) for call in selected if not self._is_expected(call)]
        passed = len(wrong) < len(selected) if self.which == "any" else not wrong
        found = f"in {format_list(map(self._format_call, selected))}"
        reason = f"not in {format_list(wrong)}" if wrong else found
        score = 1.0 if passed else compute_share(len(selected) - len(wrong), len(selected))
        return (self._build_assertion(statement, passed, reason, score=score),)

    def _describe_statement(self) -> str:
        return f"calls {self.tool} with {self._describe_expected('arguments')}"

    def _format_call(self, call: ToolCall) -> str:
        return format_call(call)

    def _describe_expected(self, noun: str) -> str:
        if isinstance(self.expected, Mapping):
            return format_list(f"{key}={format_value(item)}" for key, item in self.expected.items())
        name = getattr(self.expected, "__name__", "<lambda>")
        return f"the {noun} asked for" if name == "<lambda>" else f"{noun} that {name}"

    def _is_expected(self, call: ToolCall) -> bool:
        return self._matches(call.arguments)

    def _matches(self, value: Json) -> bool:
        if isinstance(self.expected, Mapping):
            return arguments_match(value, to_jsonable(self.expected), "superset")
        try:
            return bool(self.expected(value))
        except (LookupError, TypeError):
            return False
