"""Conversion of any Python value to JSON; it never raises."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, JsonValue

MAX_DEPTH = 64
"""Deeper values, and values that contain themselves, are written as their `repr`."""

LARGEST_INTEGER = 2**63
"""Larger integers are written as text: few JSON readers keep them exact."""


def clean_text(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by U+FFFD."""
    if not isinstance(text, str):
        return text  # the model refuses it with an error that names the key
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_optional_text(value: object) -> str | None:
    """Return the text of a value without lone surrogates; None stays None."""
    return None if value is None else clean_text(str(value))


def remove_addresses(text: str) -> str:
    """Remove memory addresses of Python's default reprs: they differ in every run.

    pytest shortens long reprs in the middle, so only the end of an address may be left.
    """
    return _ADDRESS.sub("", text)


_ADDRESS = re.compile(
    r" at 0x[0-9a-fA-F]+\b|(?<=\.\.\.)[ at0x]{0,6}[0-9a-f]{6,16}(?=>)"
    # unittest.mock
    r"| id='[0-9]{6,20}'(?=>)"
)


def to_jsonable(value: Any, path: tuple[int, ...] = ()) -> JsonValue:
    """Convert mappings, sequences, dataclasses and models to JSON; anything else to text.

    `path` holds the ids of the containers around the value.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(str(value))
    if isinstance(value, int | float):
        return _convert_number(value)
    if id(value) in path or len(path) >= MAX_DEPTH:
        return _convert_to_text(value)
    return _convert_container(value, (*path, id(value)))


def _convert_number(value: float) -> JsonValue:
    """Convert NaN, infinities and very large integers to text: JSON cannot hold them."""
    if isinstance(value, int):
        return (
            int(value) if -LARGEST_INTEGER <= value < LARGEST_INTEGER else _convert_to_text(value)
        )
    return float(value) if math.isfinite(value) else repr(float(value))


def _convert_container(value: Any, path: tuple[int, ...]) -> JsonValue:
    if isinstance(value, BaseModel):
        return to_jsonable(dict(value), path)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return _convert_mapping({name: getattr(value, name) for name in names}, path)
    if isinstance(value, Mapping):
        return _convert_mapping(value, path)
    if isinstance(value, list | tuple):
        return _convert_sequence(value, path)
    if isinstance(value, set | frozenset):
        return _convert_sequence(sorted(value, key=repr), path)
    return _convert_to_text(value)


def _convert_mapping(value: Mapping[Any, Any], path: tuple[int, ...]) -> JsonValue:
    return {clean_text(str(key)): to_jsonable(item, path) for key, item in value.items()}


def _convert_sequence(value: Iterable[Any], path: tuple[int, ...]) -> JsonValue:
    return [to_jsonable(item, path) for item in value]


def _convert_to_text(value: object) -> str:
    """Return `repr(value)`, or the type's name if that raises."""
    try:
        return remove_addresses(clean_text(repr(value)))
    except Exception:  # noqa: BLE001 - a broken repr of the agent's must not end the episode
        return f"<{type(value).__name__}>"


_SELF_EXPLAINING = frozenset({"ServerError", "ModelError", "InputError"})


def describe_error(error: BaseException) -> str:
    """Return an error's message, with its type unless it is one of our own."""
    kind = type(error).__name__
    try:
        message = clean_text(str(error))
    except Exception:  # noqa: BLE001 - any code of its author
        return kind
    if message and kind in _SELF_EXPLAINING:
        return message
    return f"{kind}: {message}" if message else kind
