"""The file of checks and budgets that stored episodes are judged by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from ci_agent_eval.checks.base import Check, as_check
from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.contract.jsonable import describe_error
from ci_agent_eval.errors import AgentEvalError, InputError
from ci_agent_eval.recording.budgets import build_value

EVERY_SCENARIO = "*"


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """Checks and budgets by patterns of scenario ids."""

    checks: Mapping[str, Sequence[Check]] = field(default_factory=dict)
    budgets: Mapping[str, Budgets] = field(default_factory=dict)

    def find_checks(self, scenario_id: str) -> tuple[Check, ...]:
        """Return the checks of all patterns that match a scenario."""
        return tuple(
            check
            for pattern, checks in self.checks.items()
            if fnmatchcase(scenario_id, pattern)
            for check in checks
        )

    def find_budgets(self, scenario_id: str) -> tuple[Budgets, ...]:
        """Return the budgets of all patterns that match a scenario."""
        return tuple(
            budgets
            for pattern, budgets in self.budgets.items()
            if fnmatchcase(scenario_id, pattern)
        )

    def require_used(self, scenarios: Iterable[str], source: object) -> None:
        """Raise InputError if a pattern matches no scenario, or has no check: it does nothing."""
        known = sorted(set(scenarios))
        for pattern in {**self.checks, **self.budgets}:
            if not any(fnmatchcase(scenario, pattern) for scenario in known):
                raise InputError(
                    f"{source}: {pattern!r} matches no scenario of the results; correct the "
                    "pattern, or name other results"
                )
            if pattern in self.checks and not self.checks[pattern]:
                raise InputError(
                    f"{source}: CHECKS[{pattern!r}] is empty; add a check, or remove the pattern"
                )


def load_plan(path: Path) -> JudgePlan:
    """Load `CHECKS` and `BUDGETS` from a Python file. Raises InputError."""
    values = _run_file(path)
    checks, budgets = values.get("CHECKS", ()), values.get("BUDGETS", {})
    if not checks and not budgets:
        raise InputError(f"{path}: has neither CHECKS nor BUDGETS; set at least one of them")
    by_pattern = checks if isinstance(checks, Mapping) else {EVERY_SCENARIO: checks}
    return JudgePlan(
        {
            pattern: _parse_checks(path, pattern, listed)
            for pattern, listed in (by_pattern if checks else {}).items()
        },
        _parse_budgets(path, budgets),
    )


def _run_file(path: Path) -> Mapping[str, Any]:
    spec = spec_from_file_location("agent_eval_judges", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"{path}: is no Python file; name the file with CHECKS")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except AgentEvalError as error:
        raise InputError(f"{path}: {error}") from error
    except Exception as error:
        raise InputError(f"{path}: cannot be run: {describe_error(error)}") from error
    return vars(module)


def _parse_checks(path: Path, pattern: str, listed: object) -> tuple[Check, ...]:
    items = listed if isinstance(listed, list | tuple) else (listed,)
    found = []
    for item in items:
        check = as_check(item)
        if check is None:
            raise InputError(f"{path}: CHECKS[{pattern!r}]: {item!r} is no check")
        found.append(check)
    return tuple(found)


def _parse_budgets(path: Path, budgets: object) -> Mapping[str, Budgets]:
    if not isinstance(budgets, Mapping):
        raise InputError(f"{path}: BUDGETS must map patterns of scenario ids to budgets")
    return {
        pattern: build_value(f"{path}: BUDGETS[{pattern!r}]", Budgets.model_validate, obj=values)
        for pattern, values in budgets.items()
    }
