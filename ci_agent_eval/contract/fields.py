"""Validation of declarations by the annotations of their fields; errors name the field.

Validators are built at first use, so that importing a declaration stays fast.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    NonNegativeInt,
    PlainValidator,
    PositiveInt,
    TypeAdapter,
    ValidationError,
)

from ci_agent_eval.contract.base import get_plain_message
from ci_agent_eval.errors import InputError

_CONFIG = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)

_REQUIREMENTS: Mapping[Any, str] = {
    str: "a text",
    bool: "true or false",
    Callable: "a function",
    Mapping: "a mapping",
    PositiveInt: "a whole number of at least 1",
    NonNegativeInt: "a whole number of at least 0",
}
"""Requirements of plain types; other types state theirs as a text in their annotation."""


def tuple_of(item: Any) -> GetPydanticSchema:
    """Validate a list and other collections as a tuple; refuse a bare text and a mapping."""
    return _validate_as(Annotated[tuple[item, ...], Field(strict=False), _CONVERT_LIST])


# pydantic 2.10 refuses a list for a tuple that is part of a strict union.
_CONVERT_LIST = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)


def _validate_as(annotation: Any) -> GetPydanticSchema:
    return GetPydanticSchema(lambda _, handler: handler.generate_schema(annotation))


def compile_pattern(value: Any) -> re.Pattern[str]:
    """Compile a regular expression. Raises ValueError if it is invalid."""
    if not isinstance(value, str) and not isinstance(getattr(value, "pattern", None), str):
        raise ValueError(f"{value!r} is not a regular expression for texts")  # noqa: TRY004 - pydantic turns ValueError into its own error
    try:
        return re.compile(value)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{value!r} is not a regular expression: {error}") from error


def _refuse_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not contain a NUL character")
    return text


def _limit_seconds(limit: float) -> AfterValidator:
    """Refuse a larger value, which is probably in milliseconds."""

    def refuse_milliseconds(value: float) -> float:
        if value > limit:
            raise ValueError(
                f"is in seconds, at most {limit:g}, got {value:g}, which is "
                f"{value / 3600:.1f} hours; if it is in milliseconds, write {value / 1000:g}"
            )
        return value

    return AfterValidator(refuse_milliseconds)


WRAP_SINGLE = BeforeValidator(
    lambda value: (value,) if isinstance(value, str | re.Pattern) else value
)
"""Accepts a single text or pattern for a list of one."""

# A whole number stays one, not 1.0: recorded requests are compared by their bytes.
NonNegativeNumber = Annotated[int | float, Field(ge=0), "a number of at least 0"]
Share = Annotated[
    int | float, Field(gt=0, le=1), "a number above 0 and up to 1 (at 0 everything passes)"
]
Seconds = Annotated[int | float, Field(gt=0), _limit_seconds(3_600), "a number of seconds above 0"]
"""Seconds until one answer."""
RunSeconds = Annotated[
    int | float, Field(gt=0), _limit_seconds(86_400), "a number of seconds above 0"
]
"""Seconds of a whole run."""

NonBlankText = Annotated[
    str, Field(pattern=r"^[^\x00]*[^\s\x00][^\x00]*$"), "a text that is not empty"
]
# pydantic's own constraints would refuse the undecodable bytes that `os.environ` can hold.
_AnyText = Annotated[str, AfterValidator(_refuse_nul), "a text"]
_Text = Annotated[_AnyText, Field(min_length=1), "a text that is not empty"]
Count = PositiveInt
"""A whole number of at least 1."""

TextList = Annotated[Sequence[str], tuple_of(_AnyText), "a list of texts"]
TextMapping = Mapping[_Text, _AnyText]
Texts = Annotated[
    str | Sequence[str], tuple_of(_Text), WRAP_SINGLE, "one or more texts that are not empty"
]
SomeTexts = Annotated[Texts, Field(min_length=1)]

Pattern = Annotated[str | re.Pattern[str], PlainValidator(compile_pattern)]
Patterns = Annotated[
    str | re.Pattern[str] | Sequence[str | re.Pattern[str]],
    tuple_of(Pattern),
    WRAP_SINGLE,
    "one or more regular expressions",
]


def field_error(owner: str, field: str, requirement: str) -> InputError:
    """Return the error for a field, with the requirement that it breaks."""
    return InputError(f"{owner}.{field}: {requirement}")


def validate_fields(declaration: Any) -> None:
    """Validate and normalize the fields of a dataclass by their annotations. Raises InputError."""
    owner: Any = type(declaration)
    for field in _list_fields(owner):
        argument = getattr(declaration, field.name)
        try:
            value = field.validate(argument)
        except ValidationError as error:
            raise _build_error(owner.__name__, field, argument, error) from None
        if value is not argument:
            object.__setattr__(declaration, field.name, value)


def validate_value(owner: str, name: str, annotation: Any, value: object) -> Any:
    """Return an argument, normalized to its annotation. Raises InputError, which names it."""
    field = _DeclaredField(name, annotation, _build_validator(annotation))
    try:
        return field.validate(value)
    except ValidationError as error:
        raise _build_error(owner, field, value, error) from None


class _DeclaredField(NamedTuple):
    name: str
    annotation: Any
    validate: Callable[[object], Any]
    is_secret: bool = False
    """Whether errors leave its values out, as the `repr` does."""


@cache
def _list_fields(owner: type) -> tuple[_DeclaredField, ...]:
    hints: dict[str, Any] = get_type_hints(owner, include_extras=True)
    return tuple(
        _DeclaredField(one.name, hints[one.name], _build_validator(hints[one.name]), not one.repr)
        for one in dataclasses.fields(owner)
        if one.init
    )


@cache
def _build_validator(annotation: Any) -> Callable[[object], Any]:
    # pydantic takes no configuration beside a dataclass or a model, only beside `Any`.
    adapter = TypeAdapter(Annotated[Any, _validate_as(annotation)], config=_CONFIG)
    return adapter.validator.validate_python


def _build_error(
    owner: str, field: _DeclaredField, value: Any, error: ValidationError
) -> InputError:
    problem = error.errors(include_url=False, include_context=False)[0]
    place, annotation = field.name, field.annotation
    if get_origin(annotation) is Mapping and problem["loc"]:
        entry, *inside = problem["loc"]
        place = f"{place}[{entry!r}]"
        key_type, value_type = get_args(annotation)
        is_key = inside == ["[key]"]
        annotation, value = (key_type, entry) if is_key else (value_type, value.get(entry))
    if problem["type"] == "value_error":
        return field_error(owner, place, get_plain_message(problem))
    shown = repr(value)
    # A mapping in place of an MCPServer may hold secret variables.
    if field.is_secret or isinstance(problem["input"], Mapping):
        shown = f"a value of type {type(problem['input']).__name__}"
    return field_error(owner, place, f"must be {_describe_annotation(annotation)}, got {shown}")


def _describe_annotation(annotation: Any) -> str:
    """Return the requirement of an annotation: `last, every or a whole number of at least 1`."""
    *others, last = _list_alternatives(annotation)
    return f"{', '.join(others)} or {last}" if others else last


def _list_alternatives(annotation: Any) -> list[str]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in _REQUIREMENTS:
        return [_REQUIREMENTS[annotation]]
    if origin is Annotated:
        stated = [mark for mark in arguments[1:] if isinstance(mark, str)]
        return stated[-1:] or _list_alternatives(arguments[0])
    if origin is Literal:
        return [str(value) for value in arguments]
    if origin in (Union, UnionType):
        return [
            text for one in arguments if one is not NoneType for text in _list_alternatives(one)
        ]
    return [_REQUIREMENTS.get(origin) or f"an instance of {annotation.__name__}"]
