"""Conversion of values to checks, and validation of the assertions that a check returns."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import cast

from ci_agent_eval.checks.protocol import Check
from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.errors import InputError

_EVALUATORS = "pydantic_evals.evaluators"


def as_check(value: object) -> Check | None:
    """Return the value if it is a check, an evaluator of pydantic-evals as a check, else None.

    Does not import pydantic-evals: if the value is an evaluator, it has been imported already.
    """
    if callable(getattr(value, "assertions", None)) and not isinstance(value, type):
        return cast("Check", value)
    known = sys.modules.get(_EVALUATORS)
    if known is None or not isinstance(value, known.Evaluator):
        return None
    wrapped: Check = import_module("ci_agent_eval.checks.evaluators").from_evaluator(value)
    return wrapped


def validate_assertions(check: object, found: object) -> tuple[Assertion, ...]:
    """Return the result of a check as a tuple of assertions.

    Raises InputError for any other result, and for an empty one: a check that examined nothing
    must not pass.
    """
    __tracebackhide__ = True
    name = f"check {type(check).__name__}"
    assertions = tuple(found) if isinstance(found, Iterable) else (found,)
    if not assertions:
        raise InputError(
            f"{name}: it found nothing to say; return an Assertion for each thing it looked at, "
            "a failed one where there was nothing to look at"
        )
    if not all(isinstance(each, Assertion) for each in assertions):
        raise InputError(
            f"{name}: assertions(...) returned a {type(found).__name__}; return a tuple or a list "
            "of Assertions"
        )
    return assertions
