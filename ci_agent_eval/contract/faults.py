"""Faults on purpose in the tools of an episode."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, StrictInt, StrictStr, model_validator

from ci_agent_eval.contract.base import Count, KnownKeysModel

FaultKind = Literal[
    "slow",  # the tool answers after `value` milliseconds
    "error",  # the tool fails with the message `value`
    "garbage",  # the tool returns `value`, by default a JSON text that is cut off
    "injection",  # the tool's result has the instruction `value`, too
    "schema_change",  # the keys of the tool's result are renamed by the mapping `value`
]

MAX_TOOL_NAME = 200
"""Characters of a tool's name."""
MAX_VALUE = 256_000
"""Characters of a declared value as JSON, as many as an episode records of a state."""
MAX_SLOW_MS = 3_600_000


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_delay(value: object) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MAX_SLOW_MS
    )


def _is_renaming(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(_is_text(old) and _is_text(new) for old, new in value.items())
    )


_VALUES: Mapping[FaultKind, tuple[Callable[[object], bool], str]] = {
    "slow": (
        _is_delay,
        f"needs `value`: a number of milliseconds above 0, at most {MAX_SLOW_MS} (an hour)",
    ),
    "error": (
        lambda value: value is None or _is_text(value),
        "takes as `value` its message, a text; write one, or leave it out",
    ),
    "injection": (_is_text, "needs `value`: the instruction, a text"),
    "schema_change": (
        _is_renaming,
        "needs `value`: a table of old and new keys, which are texts",
    ),
}
"""What the value of a kind must be, and the end of the sentence about another one."""


class Fault(KnownKeysModel):
    """A fault on purpose in a tool; by default of the first call only."""

    kind: FaultKind
    tool: Annotated[StrictStr, Field(min_length=1)]
    value: JsonValue = Field(default=None, description="what the kind needs, see the kinds")
    after: Annotated[StrictInt, Field(ge=0, le=2**31)] = Field(
        default=0, description="calls before the first one with the fault"
    )
    times: Annotated[StrictInt, Field(ge=1, le=2**31)] = Field(
        default=1, description="consecutive calls with the fault"
    )
    injected: Count = Field(
        default=0, description="calls that had the fault, at most `times`; set by the run"
    )

    @model_validator(mode="before")
    @classmethod
    def _check_json(cls, given: Any) -> Any:
        # A value that pydantic or a reader of JSON cannot walk would give a long error, or a file
        # that cannot be read.
        if isinstance(given, Mapping) and (value := given.get("value")) is not None:
            from ci_agent_eval.contract.jsonable import MAX_DEPTH, to_jsonable  # noqa: PLC0415 - few episodes have faults

            if to_jsonable(value) != value:
                raise ValueError(
                    "`value` must be JSON: texts, finite numbers, true, false, lists and "
                    f"tables, at most {MAX_DEPTH} levels deep"
                )
        return given

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        is_valid, problem = _VALUES.get(self.kind, (lambda _: True, ""))
        if not is_valid(self.value):
            raise ValueError(f"{self.kind} {problem}")
        if self.injected > self.times:
            raise ValueError(f"{self.injected} calls had the fault, more than `times`")
        # Twice the limits of a declaration, because removing a secret can lengthen a text.
        self.check_size(factor=2)
        return self

    def check_size(self, *, factor: int = 1) -> None:
        """Raise ValueError for a tool's name or a value over the limits times a factor."""
        is_line = self.tool.isprintable() and self.tool.strip() == self.tool
        if not is_line or len(self.tool) > factor * MAX_TOOL_NAME:
            raise ValueError(
                "`tool` must be a tool's name: one line of up to "
                f"{MAX_TOOL_NAME} printable characters"
            )
        size = len(json.dumps(self.value, ensure_ascii=False))
        if size > factor * MAX_VALUE:
            raise ValueError(
                f"`value` has {size} characters as JSON, of at most {MAX_VALUE}; make it shorter"
            )


def check_declared_fault(fault: Fault) -> Fault:
    """Return a fault that a scenario declares. Raises ValueError if it is invalid."""
    if fault.injected:
        raise ValueError("`injected` is set by the run; leave it out")
    fault.check_size()
    renamed = fault.value.items() if isinstance(fault.value, dict) else ()
    if fault.kind == "schema_change" and all(old == new for old, new in renamed):
        raise ValueError("schema_change renames no key; give each a new name")
    return fault
