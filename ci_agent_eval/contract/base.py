"""Base models of all written values: frozen, no unknown keys, finite numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)
from pydantic.functional_validators import ModelWrapValidatorHandler
from pydantic_core import PydanticCustomError

SCHEMA_VERSION: Final = "1"
"""Version of every file this program writes; readers refuse other versions."""

SchemaVersion = Literal["1"]


UNKNOWN_KEY: Final = "unknown_key"
"""Type of the pydantic error for an unknown key; its context holds the `key`."""


def drop_zero_fraction(value: float) -> int | float:
    """Return whole numbers as int, so that JSON shows `3` instead of `3.0`."""
    return int(value) if float(value).is_integer() else value


Amount = Annotated[
    float,
    Field(ge=0, le=1e15, allow_inf_nan=False),
    PlainSerializer(drop_zero_fraction, return_type=int | float, when_used="json-unless-none"),
]
"""A non-negative number up to 10^15; the field's name carries the unit."""

Count = Annotated[int, Field(ge=0, le=2**53)]
"""A whole number from 0 to 2^53; JSON readers may round larger ones."""


def _refuse_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number from 0 to 1, not true or false")  # noqa: TRY004 - pydantic turns ValueError into its own error
    return value


Rate = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), BeforeValidator(_refuse_bool)]
"""A share between 0 and 1."""


MAX_TITLE: Final = 40


def _check_title(text: str) -> str:
    # Not a pattern: pydantic takes 20 ms to build one with classes of Unicode.
    letters = text.translate({ord(mark): None for mark in " .,()/&+-"})
    if len(text) > MAX_TITLE or not text[:1].isalnum() or not letters.isalnum():
        raise ValueError(
            "must be letters, digits, blanks and .,()/&+-, begin with a letter or digit, and have "
            f"at most {MAX_TITLE} characters"
        )
    return text


ReportTitle = Annotated[str, AfterValidator(_check_title)]
"""First words of a headline: no character of it is markup, for it is shown as it is."""


class FrozenModel(BaseModel):
    """A frozen model that refuses unknown keys, NaN and infinities.

    Its validator is built on first use, because most programs use few of the models.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        ser_json_inf_nan="constants",
        defer_build=True,
    )


def build_models(base: type[FrozenModel] = FrozenModel) -> None:
    """Build the validators of all imported models, so that threads can share them.

    Not every supported release of pydantic can build a model in two threads at once.
    """
    for model in base.__subclasses__():
        model.model_rebuild()
        build_models(model)


class KnownKeysModel(FrozenModel):
    """A frozen model that suggests the nearest known key for an unknown one."""

    @model_validator(mode="wrap")
    @classmethod
    def _name_nearest_key(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        for key in value if isinstance(value, Mapping) else ():
            if key not in cls.model_fields:
                message = describe_unknown_key(str(key), tuple(cls.model_fields))
                raise PydanticCustomError(
                    UNKNOWN_KEY, "{message}", {"message": message, "key": str(key)}
                )
        return handler(value)


def describe_unknown_key(key: str, known: tuple[str, ...]) -> str:
    """Return the message for an unknown key, with the nearest known key or all of them."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for invalid files

    nearest = get_close_matches(key, known, n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"known keys: {', '.join(known)}"
    return f"unknown key {key!r}; {hint}"


def is_equal_json(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal: `1` equals `1.0` but not `true`."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            is_equal_json(one[key], other[key]) for key in one
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_equal_json, one, other))
    return bool(one == other)


_PLAIN: Mapping[str, str] = {
    "extra_forbidden": "unknown key",
    "missing": "is required",
    "model_type": "must be a table (an object with keys)",
    "dict_type": "must be a table (an object with keys)",
    "tuple_type": "must be a list",
    "finite_number": "must be a finite number",
}
"""Messages for pydantic error types whose own messages describe Python, not the file."""


def describe_validation_error(error: ValueError) -> str:
    """Return the first problem of a validation error: `budgets.tool_calls.limit: … (got -1)`."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    message = get_plain_message(first)
    suffix = "" if isinstance(first["input"], dict) else f" (got {first['input']!r})"
    sentence = f"{message}{suffix}"
    return f"{where}: {sentence}" if where else sentence


def find_unknown_key(problem: Mapping[str, Any]) -> str | None:
    """Return the key of an unknown-key error; None for other errors."""
    return str(problem["ctx"]["key"]) if problem["type"] == UNKNOWN_KEY else None


def get_plain_message(problem: Mapping[str, Any]) -> str:
    """Return the message of one pydantic error without pydantic's jargon."""
    return _PLAIN.get(problem["type"], str(problem["msg"]).removeprefix("Value error, "))
