"""Validation of values from tests: an invalid value raises an error that names its key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ci_agent_eval.contract.validation_errors import describe_validation_error
from ci_agent_eval.errors import InputError

Value = TypeVar("Value")

Clock = Callable[[], float]
"""Monotonic seconds from any fixed point."""


def build_value(where: str, model: Callable[..., Value], /, **values: Any) -> Value:
    """Build a contract value. Raises InputError, which names `where` and the problem."""
    try:
        return model(**values)
    except ValueError as error:
        raise InputError(f"{where}: {describe_validation_error(error)}") from None
