"""Asserts that prove nothing, because they pass whatever the agent does."""

from __future__ import annotations

import ast
import inspect
from collections.abc import AsyncGenerator, Generator
from typing import Any

_LAZY = (Generator, AsyncGenerator, map, filter, zip)

_NO_EVIDENCE = "it is always true and no evidence; assert something that can be false"


def is_always_true(test: ast.expr) -> bool:
    """Return whether the expression of an assert that passed can have no other result."""
    match test:
        case ast.Lambda() | ast.Constant():
            found = True
        case ast.Tuple(elts) | ast.List(elts) | ast.Set(elts):
            found = any(not isinstance(element, ast.Starred) for element in elts)
        case ast.Dict(keys):
            found = any(key is not None for key in keys)
        case ast.JoinedStr(values):
            found = any(isinstance(part, ast.Constant) for part in values)
        case ast.NamedExpr(value=value):
            found = is_always_true(value)
        case ast.IfExp(body=body, orelse=other):
            found = is_always_true(body) and is_always_true(other)
        case ast.BoolOp(ast.Or(), values):
            # A value that is always true makes the others pointless: `assert said == "a" or "b"`.
            found = any(map(is_always_true, values))
        case ast.BoolOp(values=values):
            found = all(map(is_always_true, values))
        case _:
            found = False
    return found


def refuse_unused_result(value: object) -> None:
    """Raise AssertionError for a true value that is a result which nobody asked for."""
    __tracebackhide__ = True
    if isinstance(value, _LAZY):
        remedy = "use all(...) or any(...)"
    elif inspect.isawaitable(value) and not _has_own_truth(value):
        remedy = "write `assert await ...`"
    else:
        return
    if inspect.iscoroutine(value) and inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
        value.close()  # no second report, of Python's, in whatever test runs next
    kind = type(value).__name__
    raise AssertionError(f"asserted an object of type {kind}, which is always true; {remedy}")


def _has_own_truth(value: object) -> bool:
    """Return whether the type says what is false, as that of a simulation's result does."""
    return hasattr(type(value), "__bool__") or hasattr(type(value), "__len__")


def describe_no_evidence(value: Any, *, is_fixed: bool) -> str | None:
    """Return why a passed assert is no evidence; None: it is."""
    if is_fixed:
        return f"assert of a literal: {_NO_EVIDENCE}"
    if inspect.isfunction(value) or inspect.ismethod(value) or inspect.isbuiltin(value):
        name = getattr(value, "__name__", "function")
        return f"assert of the function {name}, which is not called: {_NO_EVIDENCE}"
    return None
