"""Whether a call's arguments fit others: exactly, in part, or by a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from ci_agent_eval.checks.base import BaseCheck, compute_share, require_known, set_fields
from ci_agent_eval.checks.exchanges import get_tool_calls
from ci_agent_eval.checks.formatting import format_call, format_list, format_value
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import ToolCall
from ci_agent_eval.errors import InputError

Json = Any
"""A JSON value."""

ArgumentMode = Literal["exact", "ignore", "subset", "superset"]
"""How a call's arguments have to stand to the reference's.

`subset`: all it gives are the reference's; `superset`: it gives all of the reference's.
Both look at the names of the arguments; a value is equal as a whole or it is not.
"""

Matcher = Callable[[Any, Any], bool]
"""Given the call's arguments and the reference's, says whether they fit."""

ArgumentRule = ArgumentMode | Matcher | Sequence[str]
"""A mode, a function, or the names of the arguments that have to be equal."""

CallSelection = Literal["every", "any", "first", "last"]


def arguments_match(given: Json, reference: Json, rule: ArgumentRule) -> bool:
    """Say whether a call's arguments fit the reference's by a rule."""
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


def validate_rule(owner: str, field: str, rule: object) -> ArgumentRule:
    """Return a rule. Raises InputError for what is none."""
    if isinstance(rule, str):
        require_known(owner, field, rule, get_args(ArgumentMode))
    elif isinstance(rule, Sequence):
        rule = tuple(rule)
    elif not callable(rule):
        raise InputError(f"{owner}.{field}: must be a mode, a function or names, got {rule!r}")
    return cast("ArgumentRule", rule)


def is_equal_json(one: Json, other: Json) -> bool:
    """Say whether two JSON values are equal: `1` is `1.0` and is not `true`."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            is_equal_json(one[key], other[key]) for key in one
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_equal_json, one, other))
    return bool(one == other)


def _is_superset(larger: Json, smaller: Json) -> bool:
    if not isinstance(larger, dict) or not isinstance(smaller, dict):
        return is_equal_json(larger, smaller)
    return all(
        key in larger and is_equal_json(larger[key], value) for key, value in smaller.items()
    )


def _find_argument(arguments: Json, name: str) -> Json:
    """Return an argument, or one inside it by a dotted name; None where there is none."""
    found = arguments
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


@dataclass(frozen=True, slots=True)
class ArgumentsHold(BaseCheck):
    """What calls of a tool are given holds: it has these arguments, or a function says so.

    `expected` is a mapping that the arguments have to contain, or a function of the
    arguments. Where it raises LookupError or TypeError, what it looks at is not there, and
    the arguments do not hold. A tool that was never called fails, unless it is `optional`.
    The score is the share of calls that hold.
    """

    tool: str
    expected: Mapping[str, Any] | Callable[[Any], object]
    which: CallSelection = "every"
    optional: bool = False

    def __post_init__(self) -> None:
        require_known("ArgumentsHold", "which", self.which, get_args(CallSelection))
        if isinstance(self.expected, Mapping):
            set_fields(self, expected=dict(self.expected))
            if not self.expected:
                raise InputError(
                    "ArgumentsHold.expected: it names no argument; to ask only for the call, use "
                    f"RequiredTools({self.tool!r})"
                )
        elif not callable(self.expected):
            raise InputError("ArgumentsHold.expected: must be arguments or a function of them")

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        made = [call for call in get_tool_calls(episode) if call.name == self.tool]
        says = f"calls {self.tool} with {self._wanted()}"
        if not made:
            return (self._assertion(says, self.optional, f"{self.tool} was never called"),)
        looked = {"first": made[:1], "last": made[-1:]}.get(self.which, made)
        wrong = [format_call(call) for call in looked if not self._holds_for(call)]
        passed = len(wrong) < len(looked) if self.which == "any" else not wrong
        reason = (
            f"not in {format_list(wrong)}"
            if wrong
            else f"in {format_list(map(format_call, looked))}"
        )
        score = 1.0 if passed else compute_share(len(looked) - len(wrong), len(looked))
        return (self._assertion(says, passed, reason, score=score),)

    def _wanted(self) -> str:
        if isinstance(self.expected, Mapping):
            return format_list(
                f"{name}={format_value(value)}" for name, value in self.expected.items()
            )
        named = getattr(self.expected, "__name__", "<lambda>")
        return "the arguments asked for" if named == "<lambda>" else f"arguments that {named}"

    def _holds_for(self, call: ToolCall) -> bool:
        if isinstance(self.expected, Mapping):
            return arguments_match(call.arguments, to_jsonable(self.expected), "superset")
        try:
            return bool(self.expected(call.arguments))
        except (LookupError, TypeError):
            return False
