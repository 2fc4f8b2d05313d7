"""What counts as a check: ours, anything of the same shape, an evaluator of pydantic-evals.

And what counts as its answer.
"""

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
    """Return a value as a check: as it is, or wrapped; None for what is no check.

    Imports nothing: where there is an evaluator, pydantic-evals has been imported.
    """
    if callable(getattr(value, "assertions", None)) and not isinstance(value, type):
        return cast("Check", value)
    known = sys.modules.get(_EVALUATORS)
    if known is None or not isinstance(value, known.Evaluator):
        return None
    wrapped: Check = import_module("ci_agent_eval.checks.evaluators").from_evaluator(value)
    return wrapped


def validate_assertions(check: object, found: object) -> tuple[Assertion, ...]:
    """Return the assertions that a check found, in whatever it gave them.

    Raises InputError for anything else, and for none at all: a check that looked at nothing
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
