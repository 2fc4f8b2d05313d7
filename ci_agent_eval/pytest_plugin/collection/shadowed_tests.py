"""Tests and classes that a later one of the same name replaces: Python keeps only the last.

The episode would be missing from the results without a message, so the module is refused.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from types import FunctionType, ModuleType, UnionType

import pytest

from ci_agent_eval.pytest_plugin.collection import detection, replaced_conversations

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = _Function | ast.ClassDef

_DECORATORS = {"conversation", "episode", "llm_episode", "scenarios"}
"""Names of the decorators that turn a test into an episode."""

_FIXTURES = {"episode", "aitest_run", "model_environment", "simulation"}
"""Fixtures that turn a test into an episode."""

_CLASS = re.compile(rb"^[ \t]*class[ \t]+(\w+)", re.MULTILINE)

_PACKAGE = "ci_agent_eval"


def refuse_shadowed_tests(
    report: pytest.CollectReport, collector: pytest.Collector
) -> pytest.CollectReport:
    """Return the report, or a failed one if an episode and another test have the same name."""
    if not report.passed or not isinstance(collector, pytest.Module | pytest.Class):
        return report
    items = [item for item in report.result if isinstance(item, pytest.Item)]
    episodes = {str(getattr(i, "originalname", i.name)) for i in items if detection.is_episode(i)}
    found = _list_replaced_classes(collector, report)
    if episodes or (items and _uses_package(collector)):
        found += [
            _format_problem(collector, first, second)
            for first, second in _find_replaced(_parse_body(collector), _Function)
            if second.name in episodes or _makes_episode(first)
        ]
    if not found and isinstance(collector, pytest.Module):
        found = replaced_conversations.list_problems(collector)
    return pytest.CollectReport(report.nodeid, "failed", "\n".join(found), []) if found else report


def _list_replaced_classes(
    collector: pytest.Module | pytest.Class, report: pytest.CollectReport
) -> list[str]:
    """Return the problem of each class with episodes that a later class replaces."""
    if not any(isinstance(node, pytest.Class) for node in report.result):
        return []
    if not _has_repeated_class(collector):
        return []
    return [
        _format_problem(collector, first, second)
        for first, second in _find_replaced(_parse_body(collector), ast.ClassDef)
        if not _inherits(second, first.name) and _contains_episode(first)
    ]


def _has_repeated_class(collector: pytest.Module | pytest.Class) -> bool:
    """Return whether the file has two classes of the same name; parsing every file is slow."""
    try:
        names = _CLASS.findall(collector.path.read_bytes())
    except OSError:
        return False
    return len(names) != len(set(names))


def _inherits(definition: _Definition, name: str) -> bool:
    bases = definition.bases if isinstance(definition, ast.ClassDef) else ()
    return any(isinstance(base, ast.Name) and base.id == name for base in bases)


def _contains_episode(definition: _Definition) -> bool:
    """Return whether a class or one of its functions becomes an episode."""
    return any(
        _makes_episode(node) or _uses_fixture(node)
        for node in ast.walk(definition)
        if isinstance(node, _Definition)
    )


def _uses_fixture(definition: _Definition) -> bool:
    if isinstance(definition, ast.ClassDef):
        return False
    arguments = definition.args
    names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    return not names.isdisjoint(_FIXTURES)


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


def _find_replaced(
    body: Sequence[ast.stmt], kind: type[_Definition] | UnionType
) -> Iterator[tuple[_Definition, _Definition]]:
    """Yield each definition that a later one of the same block replaces, with the latter.

    Definitions in different branches are alternatives.
    """
    last: dict[str, _Definition] = {}
    for node in body:
        if isinstance(node, _Definition):
            if not isinstance(node, kind):
                continue
            if node.name in last:
                yield last[node.name], node
            last[node.name] = node
        else:
            for _, value in ast.iter_fields(node):
                if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    yield from _find_replaced(value, kind)


def _makes_episode(function: _Definition) -> bool:
    """Return whether a decorator turns a function, or the tests of a class, into episodes."""
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", None)
        if name in _DECORATORS:
            return True
    return False


def _format_problem(collector: pytest.Collector, first: _Definition, second: _Definition) -> str:
    file = collector.nodeid.partition("::")[0]
    return (
        f"{file}:{second.lineno}: {second.name} replaces the test of the same name at line "
        f"{first.lineno}; give one of them another name, or only the last would run"
    )
