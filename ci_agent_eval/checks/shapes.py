"""Checks that replies and arguments match a JSON Schema or a pydantic model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import PositiveInt

from ci_agent_eval.checks.base import (
    BaseCheck,
    compute_share,
    format_list,
    format_text,
    format_times,
    set_fields,
)
from ci_agent_eval.checks.text import get_replies, get_tool_calls
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.fields import validate_fields
from ci_agent_eval.contract.trajectory import ToolCall

Shape = Any
"""A JSON Schema (draft 2020-12, unless its `$schema` says otherwise), a pydantic model, or
any type that pydantic validates, such as a dataclass or `list[Order]`."""

Validator = Callable[[Any], list[str]]
"""Lists the problems of a JSON value, each with its path; empty for a valid one."""

_FENCED = re.compile(r"\s*```(?:json)?[^\S\n]*\n(.*)\n\s*```\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ReplyShape(BaseCheck):
    """The agent's reply is JSON of this shape: the last one, every one, or the n-th (from 1).

    `fenced` also accepts JSON in a Markdown code block. The score is the share of the replies
    that conform. An episode without the reply fails.
    """

    shape: Shape
    which: Literal["last", "every"] | PositiveInt = "last"
    fenced: bool = False
    _validate: Validator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        validate_fields(self)
        set_fields(self, _validate=build_validator("ReplyShape", self.shape))

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        replies = list(enumerate(get_replies(episode), 1))
        statement = f"{self._describe_reply()} {describe_shape(self.shape)}"
        selected = replies[-1:] if self.which == "last" else replies
        if isinstance(self.which, int):
            selected = replies[self.which - 1 : self.which]
        if not selected:
            reason = f"the agent replied {format_times(len(replies))}"
            if not replies:
                reason = "the agent never replied"
            return (self._build_assertion(statement, False, reason),)
        found = {number: self._find_problem(text) for number, text in selected}
        wrong = [f"reply {number}: {problem}" for number, problem in found.items() if problem]
        reason = "; ".join(wrong[:3]) if wrong else "it conforms"
        score = compute_share(len(selected) - len(wrong), len(selected))
        return (self._build_assertion(statement, not wrong, reason, score=score),)

    def _describe_reply(self) -> str:
        if self.which == "every":
            return "every reply is"
        return "the last reply is" if self.which == "last" else f"reply {self.which} is"

    def _find_problem(self, text: str) -> str | None:
        fence = _FENCED.fullmatch(text) if self.fenced else None
        try:
            value = json.loads(fence[1] if fence else text, parse_constant=_reject_constant)
            return format_problems(self._validate(value))
        except ValueError as error:
            return f"no JSON ({error}): {format_text(text, 60) or 'it is empty'}"
        except RecursionError:
            return f"nested too deeply to be read: {format_text(text, 60)}"


@dataclass(frozen=True, slots=True)
class ArgumentShape(BaseCheck):
    """The arguments of every call of a tool are of this shape.

    The score is the share of calls that conform. A tool that was never called fails,
    unless it is `optional`.
    """

    tool: str
    shape: Shape
    optional: bool = False
    _validate: Validator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        validate_fields(self)
        set_fields(self, _validate=build_validator(type(self).__name__, self.shape))

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        calls = [call for call in get_tool_calls(episode) if call.name == self.tool]
        statement = self._describe_statement()
        if not calls:
            reason = f"{self.tool} was never called"
            return (self._build_assertion(statement, self.optional, reason),)
        found = [(number, self._find_problems(call)) for number, call in enumerate(calls, 1)]
        wrong = [f"call {number}: {format_problems(items)}" for number, items in found if items]
        all_conform = f"called {format_times(len(calls))}, all conform"
        reason = "; ".join(wrong[:3]) if wrong else all_conform
        score = compute_share(len(calls) - len(wrong), len(calls))
        return (self._build_assertion(statement, not wrong, reason, score=score),)

    def _describe_statement(self) -> str:
        return f"arguments of {self.tool} are {describe_shape(self.shape)}"

    def _find_problems(self, call: ToolCall) -> list[str]:
        return self._validate(call.arguments)


def build_validator(owner: str, shape: Shape) -> Validator:
    """Build the validator of a shape. Raises InputError for an invalid shape."""
    if isinstance(shape, Mapping | bool):
        from ci_agent_eval.checks.json_schema import (  # noqa: PLC0415 - imports jsonschema
            build_schema_validator,
        )

        return build_schema_validator(owner, shape)
    from ci_agent_eval.checks.pydantic_model import (  # noqa: PLC0415 - used only for models
        build_model_validator,
    )

    return build_model_validator(owner, shape)


def describe_shape(shape: Shape) -> str:
    """Return a shape's description for reports: its title, or its name."""
    if isinstance(shape, Mapping):
        title = shape.get("title")
        return f"JSON of the schema {title}" if isinstance(title, str) else "JSON of its schema"
    if isinstance(shape, bool):
        return "JSON of its schema"
    return f"JSON of the type {shape.__name__ if isinstance(shape, type) else shape}"


def format_problems(problems: list[str]) -> str | None:
    """Return problems as one text; None if there are none."""
    return format_list(map(format_text, problems)) if problems else None


def _reject_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
