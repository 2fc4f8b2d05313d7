"""Validation against a pydantic model, or any type that pydantic validates."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from ci_agent_eval.contract.base import get_plain_message
from ci_agent_eval.errors import InputError


def build_model_validator(owner: str, model: Any) -> Callable[[Any], list[str]]:
    """Build a validator, which lists the problems of a JSON value, each with its path.

    Values are validated in pydantic's JSON mode: a text may be a date. Raises InputError for a
    type that pydantic cannot validate.
    """
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(model)
    except PydanticUserError as error:
        raise InputError(
            f"{owner}: {model!r} is neither a JSON Schema nor a type that pydantic validates: "
            f"{error.message}"
        ) from error

    def find_problems(value: Any) -> list[str]:
        try:
            adapter.validate_json(json.dumps(value))
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            return [
                f"{_format_path(problem['loc'])}: {get_plain_message(problem)}" for problem in found
            ]
        return []

    return find_problems


def _format_path(parts: tuple[int | str, ...]) -> str:
    """Return a path in the notation of jsonschema's errors: `$.lines[0].price`."""
    return "$" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in parts)
