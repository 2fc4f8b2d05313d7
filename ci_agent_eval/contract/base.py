"""The base of every value that is written down: frozen, exact, finite."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

SCHEMA_VERSION: Final = "1"
"""Version of every file this program writes; readers refuse any other."""

SchemaVersion = Literal["1"]


def _shortest(value: float) -> int | float:
    """Write whole numbers without a fraction, as a person would."""
    return int(value) if value.is_integer() else value


Amount = Annotated[
    float,
    Field(ge=0, allow_inf_nan=False),
    PlainSerializer(_shortest, return_type=int | float, when_used="json-unless-none"),
]
"""A non-negative finite number; the field's name carries the unit."""

Count = Annotated[int, Field(ge=0)]
"""A non-negative whole number."""

Rate = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A share between 0 and 1."""


class Frozen(BaseModel):
    """A frozen value whose unknown keys, NaN and infinities are errors."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants"
    )
