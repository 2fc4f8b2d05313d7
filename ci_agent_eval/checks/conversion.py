"""Conversion of values to checks, and validation of the assertions that a check returns."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from types import FunctionType
from typing import Any, cast

from ci_agent_eval.checks.protocol import Check
from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.errors import InputError

_EVALUATORS = "pydantic_evals.evaluators"
_ADAPTERS = {
    ("deepeval", "BaseMetric"): "DeepEvalCheck",
    ("deepeval", "BaseConversationalMetric"): "DeepEvalCheck",
    ("ragas", "SingleTurnMetric"): "RagasCheck",
    ("ragas", "MultiTurnMetric"): "RagasCheck",
    ("ragas", "SimpleBaseMetric"): "RagasCheck",
    ("autoevals", "Scorer"): "AutoevalsCheck",
    ("openevals", "function"): "OpenEvalsCheck",
    ("agentevals", "function"): "OpenEvalsCheck",
}
"""Checks of `library_adapters`, by package and name of the evaluator's class or its base."""


def as_check(value: object) -> Check | None:
    """Return the value if it is a check, an evaluator of a library as a check, else None.

    Does not import any library: if the value is an evaluator, its library has been imported.
    """
    if callable(getattr(value, "assertions", None)) and not isinstance(value, type):
        return cast("Check", value)
    return from_evaluator(value) if _is_pydantic(value) or find_adapter(value) else None


def find_adapter(value: object) -> str | None:
    """Return the name of the check for an evaluator of another library; None for other values."""
    is_function = isinstance(value, FunctionType)
    kinds = [(value, "function")] if is_function else [(k, k.__name__) for k in type(value).__mro__]
    keys = [(str(kind.__module__).partition(".")[0], name) for kind, name in kinds]
    return next((_ADAPTERS[key] for key in keys if key in _ADAPTERS), None)


def _is_pydantic(value: object) -> bool:
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
    values: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Check:
    """Return an evaluator of pydantic-evals, DeepEval, ragas, autoevals or openevals as a check.

    By default `inputs` are the user's messages (for pydantic-evals one text, or a list of
    several; else one text), `output` is the agent's last reply and `metadata` the episode's.
    `values` are further ones, by the library's names, such as `retrieval_context`. A boolean
    result passes or fails; a number passes at `threshold` or above, by default at the evaluator's
    own threshold or the top of its `scale` (0 to 1; a GEval of pydantic-evals defines its own); a
    label of pydantic-evals is informational and never fails.
    """
    options = {
        "expected_output": expected_output,
        "inputs": inputs,
        "output": output,
        "metadata": metadata,
        "threshold": threshold,
        "scale": scale,
        "name": name,
    }
    adapter = find_adapter(evaluator)
    if adapter is not None:
        module = import_module("ci_agent_eval.checks.library_adapters")
        return cast("Check", getattr(module, adapter)(evaluator, **options, values=values or {}))
    if not _is_pydantic(evaluator):
        raise InputError(f"from_evaluator: {evaluator!r} is no Evaluator; make one of it")
    if values:
        raise InputError("from_evaluator: pydantic-evals has no further values; leave out `values`")
    module = import_module("ci_agent_eval.checks.evaluators")
    return cast("Check", module.EvaluatorCheck(evaluator, **options))


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
