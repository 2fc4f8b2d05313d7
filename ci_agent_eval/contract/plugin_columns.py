"""Columns that plugins add to episodes, and their limits."""

from __future__ import annotations

import math
import unicodedata
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

MAX_COLUMNS = 20
MAX_NAME = 40
MAX_TEXT = 200
"""Limits of an episode's columns, and of the characters of each."""

LARGEST_INTEGER = 2**53
"""JSON readers may round larger integers."""

_BREAKS = {"Cc", "Zl", "Zp"}
"""Categories of control characters and line breaks."""


def check_column_name(name: str) -> str:
    """Return a column's name. Raises ValueError unless it is one line of text."""
    if not name.strip() or any(unicodedata.category(character) in _BREAKS for character in name):
        raise ValueError("must be one line of text, without control characters")
    return name


def check_column_value(value: Any) -> bool | float | str:
    """Return a column's value, of plain types. Raises ValueError for an invalid one."""
    if isinstance(value, str):
        from ci_agent_eval.contract.jsonable import clean_text  # noqa: PLC0415 - few episodes have columns

        return clean_text(str(value))
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) <= LARGEST_INTEGER:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    raise ValueError("must be a text, a boolean, a finite number or an integer up to 2^53")


def _check_short_value(value: Any) -> bool | float | str:
    found = check_column_value(value)
    if isinstance(found, str) and len(found) > 2 * MAX_TEXT:
        raise ValueError(f"must have at most {2 * MAX_TEXT} characters")
    return found


# Twice the limits of the hook, because removing a secret can lengthen a text.
_Name = Annotated[str, Field(max_length=2 * MAX_NAME), AfterValidator(check_column_name)]
_Text = Annotated[str, Field(max_length=2 * MAX_TEXT)]

ColumnValue = bool | int | float | str
PluginColumns = Annotated[
    dict[_Name, Annotated[bool | int | float | _Text, BeforeValidator(_check_short_value)]],
    Field(max_length=MAX_COLUMNS),
]
