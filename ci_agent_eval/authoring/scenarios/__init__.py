"""Scenario files: a data set of scenarios becomes the episodes of a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

ATTRIBUTE = "_agent_eval_scenarios"
"""What a decorated test carries: the paths of its files, for the pytest plugin."""

ARGUMENT = "scenario"
"""Name of the argument that gets the scenario."""


def scenarios(path: str, *more: str) -> Callable[[Function], Function]:
    """Run a test once for each scenario of a file, as an episode with the scenario's id.

    The test takes an argument `scenario` (a `Scenario`) and usually says
    `scenario.run(app)`. Paths are relative to the test's file; YAML, JSON or CSV, by the
    end of the name. What is wrong with a file is an error of collection.
    """

    def decorate(function: Function) -> Function:
        earlier: tuple[str, ...] = getattr(function, ATTRIBUTE, ())
        setattr(function, ATTRIBUTE, (path, *more, *earlier))
        return function

    return decorate
