"""Whether a call's arguments fit others: exactly, in part, or by a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from ci_agent_eval.checks.base import Named, keep, one_of, share
from ci_agent_eval.checks.exchanges import calls
from ci_agent_eval.checks.shown import called, listed, shown
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

Which = Literal["every", "any", "first", "last"]


def fits(given: Json, reference: Json, rule: ArgumentRule) -> bool:
    """Say whether a call's arguments fit the reference's by a rule."""
    if callable(rule):
        return bool(rule(given, reference))
    if rule == "ignore":
        return True
    if rule == "exact":
        return same(given or {}, reference or {})
    if rule == "superset":
        return _holds(given or {}, reference or {})
    if rule == "subset":
        return _holds(reference or {}, given or {})
    return all(same(_at(given, name), _at(reference, name)) for name in rule)


def checked_rule(owner: str, field: str, rule: object) -> ArgumentRule:
    """Return a rule. Raises InputError for what is none."""
    if isinstance(rule, str):
        one_of(owner, field, rule, get_args(ArgumentMode))
    elif isinstance(rule, Sequence):
        rule = tuple(rule)
    elif not callable(rule):
        raise InputError(f"{owner}.{field}: must be a mode, a function or names, got {rule!r}")
    return cast("ArgumentRule", rule)


def same(one: Json, other: Json) -> bool:
    """Say whether two JSON values are equal: `1` is `1.0` and is not `true`."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _holds(larger: Json, smaller: Json) -> bool:
    if not isinstance(larger, dict) or not isinstance(smaller, dict):
        return same(larger, smaller)
    return all(key in larger and same(larger[key], value) for key, value in smaller.items())


def _at(arguments: Json, name: str) -> Json:
    """Return an argument, or one inside it by a dotted name; None where there is none."""
    found = arguments
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


@dataclass(frozen=True, slots=True)
class ArgumentsHold(Named):
    """What calls of a tool are given holds: it has these arguments, or a function says so.

    `expected` is a mapping that the arguments have to contain, or a function of the
    arguments. Where it raises LookupError or TypeError, what it looks at is not there, and
    the arguments do not hold. A tool that was never called fails, unless it is `optional`.
    The score is the share of calls that hold.
    """

    tool: str
    expected: Mapping[str, Any] | Callable[[Any], object]
    which: Which = "every"
    optional: bool = False

    def __post_init__(self) -> None:
        one_of("ArgumentsHold", "which", self.which, get_args(Which))
        if isinstance(self.expected, Mapping):
            keep(self, expected=dict(self.expected))
            if not self.expected:
                raise InputError(
                    "ArgumentsHold.expected: it names no argument; to ask only for the call, use "
                    f"RequiredTools({self.tool!r})"
                )
        elif not callable(self.expected):
            raise InputError("ArgumentsHold.expected: must be arguments or a function of them")

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        made = [call for call in calls(episode) if call.name == self.tool]
        says = f"calls {self.tool} with {self._wanted()}"
        if not made:
            return (self._assertion(says, self.optional, f"{self.tool} was never called"),)
        looked = {"first": made[:1], "last": made[-1:]}.get(self.which, made)
        wrong = [called(call) for call in looked if not self._holds_for(call)]
        passed = len(wrong) < len(looked) if self.which == "any" else not wrong
        reason = f"not in {listed(wrong)}" if wrong else f"in {listed(map(called, looked))}"
        score = 1.0 if passed else share(len(looked) - len(wrong), len(looked))
        return (self._assertion(says, passed, reason, score=score),)

    def _wanted(self) -> str:
        if isinstance(self.expected, Mapping):
            return listed(f"{name}={shown(value)}" for name, value in self.expected.items())
        named = getattr(self.expected, "__name__", "<lambda>")
        return "the arguments asked for" if named == "<lambda>" else f"arguments that {named}"

    def _holds_for(self, call: ToolCall) -> bool:
        if isinstance(self.expected, Mapping):
            return fits(call.arguments, to_jsonable(self.expected), "superset")
        try:
            return bool(self.expected(call.arguments))
        except (LookupError, TypeError):
            return False
