"""Scenario files: each scenario of a file is an episode of a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

ATTRIBUTE = "_agent_eval_scenarios"
"""Attribute of a decorated test: the paths of its files, for the pytest plugin."""

ARGUMENT = "scenario"
"""Name of the test's argument for the scenario."""


def scenarios(path: str, *more: str) -> Callable[[Function], Function]:
    """Run a test once for each scenario of a file, as an episode with the scenario's id.

    The test takes an argument `scenario` (a `Scenario`) and usually calls
    `scenario.run(app)`. Paths are relative to the test's file; the suffix selects YAML, JSON
    or CSV. Problems of a file are collection errors.
    """

    def decorate(function: Function) -> Function:
        earlier: tuple[str, ...] = getattr(function, ATTRIBUTE, ())
        setattr(function, ATTRIBUTE, (path, *more, *earlier))
        return function

    return decorate
