"""Conversion of values to checks, and validation of the assertions that a check returns."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any, cast

from ci_agent_eval.checks.base import Check
from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.errors import InputError

_EVALUATORS = "pydantic_evals.evaluators"


def as_check(value: object) -> Check | None:
    """Return the value if it is a check, an evaluator of pydantic-evals as a check, else None.

    Does not import pydantic-evals: if the value is an evaluator, it has been imported.
    """
    if callable(getattr(value, "assertions", None)) and not isinstance(value, type):
        return cast("Check", value)
    return from_evaluator(value) if _is_evaluator(value) else None


def _is_evaluator(value: object) -> bool:
    known = sys.modules.get(_EVALUATORS)
    return known is not None and isinstance(value, known.Evaluator)


def from_evaluator(
    evaluator: Any,
    *,
    expected_output: Any = None,
    inputs: Any = None,
    output: Any = None,
    metadata: Any = None,
    threshold: float | None = None,
    scale: tuple[float, float] | None = None,
    name: str | None = None,
) -> Check:
    """Return an evaluator of pydantic-evals as a check.

    By default `inputs` are the user's messages (one text, or a list of several), `output` is the
    agent's last reply and `metadata` the episode's. A boolean result passes or fails; a number
    passes at `threshold` or above, by default at the top of its `scale` (0 to 1; a GEval defines
    its own); a label is informational and never fails.
    """
    if not _is_evaluator(evaluator):
        raise InputError(f"from_evaluator: {evaluator!r} is not an Evaluator; make one of it")
    module = import_module("ci_agent_eval.checks.evaluators")
    check = module.EvaluatorCheck(
        evaluator,
        expected_output=expected_output,
        inputs=inputs,
        output=output,
        metadata=metadata,
        threshold=threshold,
        scale=scale,
        name=name,
    )
    return cast("Check", check)


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
