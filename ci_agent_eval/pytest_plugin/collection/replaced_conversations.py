"""Conversations without a test, because a later definition, as in a loop, replaced them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ci_agent_eval.pytest_plugin.collection import detection

_REGISTRY = "@agent_eval_conversations"
"""As `REGISTRY` of the decorator, which is not imported for projects without conversations."""


def refuse_replaced_conversations(
    report: pytest.CollectReport, collector: pytest.Collector
) -> pytest.CollectReport:
    """Return the report, or a failed one if conversations of the module were replaced.

    They would be missing from the results without a message. A linter finds functions that are
    defined twice (F811), but not those of a loop.
    """
    if not report.passed or not isinstance(collector, pytest.Module):
        return report
    found = _list_problems(collector)
    return pytest.CollectReport(report.nodeid, "failed", "\n".join(found), []) if found else report


def _list_problems(module: pytest.Module) -> list[str]:
    # `module.obj` would import a module that another plugin left out, as `--lf` does.
    values = getattr(getattr(module, "_obj", None), "__dict__", {})
    declared = values.get(_REGISTRY, ())
    if not declared:
        return []
    kept = {id(found) for found in _find_declarations(values, set())}
    return [
        f"{module.nodeid}:{lost.line}: the conversation {lost.name!r} is replaced by another "
        f"{lost.qualified_name!r}; give each a name of its own, or use parametrize"
        for lost in declared
        if id(lost) not in kept and lost.qualified_name.partition(".")[0] in values
    ]


def _find_declarations(values: Mapping[str, Any], seen: set[type]) -> Iterator[Any]:
    """Yield the declarations of a namespace's functions, and of its classes."""
    for value in list(values.values()):
        kind = type(value)  # a proxy's `__class__` may raise
        if issubclass(kind, type):
            for base in value.__mro__:
                if base not in seen:
                    seen.add(base)
                    yield from _find_declarations(vars(base), seen)
            continue
        function = value.__func__ if issubclass(kind, staticmethod | classmethod) else value
        if (found := _read_attributes(function).get(detection.CONVERSATION)) is not None:
            yield found


def _read_attributes(value: object) -> Mapping[str, Any]:
    """Return an object's attributes; none of one that has none or refuses, as proxies do."""
    try:
        found: object = vars(value)
    except Exception:  # noqa: BLE001 - by an object's own `__getattr__`
        return {}
    return found if isinstance(found, Mapping) else {}
