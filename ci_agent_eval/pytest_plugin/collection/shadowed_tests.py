"""Tests that a later test of the same name replaces: Python keeps only the last one.

The episode would be missing from the results without a message, so the module is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from types import FunctionType, ModuleType

import pytest

from ci_agent_eval.pytest_plugin.collection import detection

_Function = ast.FunctionDef | ast.AsyncFunctionDef

_DECORATORS = {"conversation", "episode", "llm_episode", "scenarios"}
"""Names of the decorators that turn a test into an episode."""

_PACKAGE = "ci_agent_eval"


def refuse_shadowed_tests(
    report: pytest.CollectReport, collector: pytest.Collector
) -> pytest.CollectReport:
    """Return the report, or a failed one if an episode and another test have the same name."""
    if not report.passed or not isinstance(collector, pytest.Module | pytest.Class):
        return report
    items = [item for item in report.result if isinstance(item, pytest.Item)]
    episodes = {str(getattr(i, "originalname", i.name)) for i in items if detection.is_episode(i)}
    if not episodes and not (items and _uses_package(collector)):
        return report
    found = [
        _format_problem(collector, first, second)
        for first, second in _find_replaced_functions(_parse_body(collector))
        if second.name in episodes or _makes_episode(first)
    ]
    return pytest.CollectReport(report.nodeid, "failed", "\n".join(found), []) if found else report


def _uses_package(collector: pytest.Module | pytest.Class) -> bool:
    """Return whether the module has imported an object of this package."""
    module = collector.getparent(pytest.Module)
    values = () if module is None else list(vars(module.obj).values())
    return any(_is_of_package(value) for value in values)


def _is_of_package(value: object) -> bool:
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] == _PACKAGE
    return isinstance(value, FunctionType) and value.__module__.partition(".")[0] == _PACKAGE


def _parse_body(collector: pytest.Module | pytest.Class) -> Sequence[ast.stmt]:
    """Return the statements of the module or class; none if its source cannot be read."""
    try:
        body: Sequence[ast.stmt] = ast.parse(collector.path.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return ()
    for node in collector.listchain():
        if isinstance(node, pytest.Class):
            found = [s for s in body if isinstance(s, ast.ClassDef) and s.name == node.name]
            body = found[-1].body if found else ()
    return body


def _find_replaced_functions(body: Sequence[ast.stmt]) -> Iterator[tuple[_Function, _Function]]:
    """Yield each function that a later function of the same block replaces, with the latter.

    Functions in different branches are alternatives.
    """
    last: dict[str, _Function] = {}
    for node in body:
        if isinstance(node, _Function):
            if node.name in last:
                yield last[node.name], node
            last[node.name] = node
        elif not isinstance(node, ast.ClassDef):
            for _, value in ast.iter_fields(node):
                if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    yield from _find_replaced_functions(value)


def _makes_episode(function: _Function) -> bool:
    """Return whether a decorator turns the function into an episode."""
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", None)
        if name in _DECORATORS:
            return True
    return False


def _format_problem(collector: pytest.Collector, first: _Function, second: _Function) -> str:
    file = collector.nodeid.partition("::")[0]
    return (
        f"{file}:{second.lineno}: {second.name} replaces the test of the same name at line "
        f"{first.lineno}; give one of them another name, or only the last would run"
    )
