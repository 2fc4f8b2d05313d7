"""What counts as a check: ours, anything of the same shape, an evaluator of pydantic-evals."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import cast

from ci_agent_eval.checks.protocol import Check

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
    wrapped: Check = import_module("ci_agent_eval.engine.evaluators").from_evaluator(value)
    return wrapped
