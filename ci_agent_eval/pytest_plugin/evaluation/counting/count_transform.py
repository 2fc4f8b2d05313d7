"""The pass over a module's syntax tree after which its asserts tell that they passed.

Pure: a tree goes in and is changed, nothing is run. It comes before pytest's own rewriting,
and leaves every assert statement as it is. Only bodies of functions are changed.
"""

from __future__ import annotations

import ast
import re
from typing import Any, TypeVar

from ci_agent_eval.pytest_plugin.evaluation.expected_exceptions import (
    ExpectationFinder,
    map_import_aliases,
)

COUNTER = "@agent_eval_counter"
"""Name, in a module, of what its asserts tell; no identifier can be like it."""

Node = TypeVar("Node", bound=ast.AST)

_ASSERTING = re.compile(r"_*(assert|expect|verify|check)(?![a-z])")
"""Begins the name of a function whose return counts: `assert_allclose`, not `expected_price`."""


def count_asserts(tree: ast.Module, *, asserts: bool = True) -> None:
    """Have every assert of a function, and whatever counts as one, tell that it passed.

    Without `asserts` it leaves plain asserts out.
    """
    _CountTransformer(ExpectationFinder(map_import_aliases(tree)), asserts=asserts).visit(tree)


class _CountTransformer(ast.NodeTransformer):
    def __init__(self, expecting: ExpectationFinder, *, asserts: bool) -> None:
        self._expecting = expecting
        self._asserts = asserts
        self._depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._depth += 1
        node.body = [new for old in node.body for new in _as_list(self.visit(old))]
        self._depth -= 1
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        """Count it on the line after it, which is not reached where it fails.

        What it calls stays as it is, for pytest shows it.
        """
        counts = self._asserts and self._depth
        return [node, _build_count_statement("passed", at=node)] if counts else node

    def visit_With(self, node: ast.With) -> Any:
        """Count what expects an exception or a warning, once the statement has been left."""
        self.generic_visit(node)
        managers = [item.context_expr for item in node.items]
        if not self._depth:
            return node
        if any(isinstance(m, ast.Call) and self._expecting.is_assertion(m) for m in managers):
            return [node, _build_count_statement("passed", at=node)]
        names = [m for m in managers if isinstance(m, ast.Name)]
        return [
            node,
            *(_build_count_statement("left", ast.Name(m.id, ast.Load()), at=node) for m in names),
        ]

    def visit_Await(self, node: ast.Await) -> Any:
        """Count an awaited call once it has been awaited."""
        if not (self._depth and isinstance(node.value, ast.Call) and self._counts(node.value)):
            return self.generic_visit(node)
        self.generic_visit(node.value)
        return _wrap_call(node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        return _wrap_call(node) if self._depth and self._counts(node) else node

    def _counts(self, call: ast.Call) -> bool:
        if any(map(_ASSERTING.match, _list_called_names(call.func))):
            return True
        # `pytest.raises(ValueError, function)` calls the function by itself.
        return len(call.args) > 1 and self._expecting.is_assertion(call)


def _list_called_names(function: ast.expr) -> list[str]:
    """Return the name of what is called, and the one before its dot: `check.equal`."""
    match function:
        case ast.Name(id=name):
            return [name]
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return [name, owner]
        case ast.Attribute(attr=name):
            return [name]
    return []


def _build_count_statement(what: str, *arguments: ast.expr, at: ast.stmt) -> ast.stmt:
    return _set_location(ast.Expr(_build_call(what, *arguments)), at)


def _wrap_call(node: ast.expr) -> ast.expr:
    return _set_location(_build_call("returned", node), node)


def _build_call(what: str, *arguments: ast.expr) -> ast.Call:
    counter = ast.Name(COUNTER, ast.Load())
    return ast.Call(ast.Attribute(counter, what, ast.Load()), list(arguments), [])


def _set_location(node: Node, at: ast.stmt | ast.expr) -> Node:
    """Give the place of `at` to the nodes that are new: no other line is to count as run."""
    for new in ast.walk(node):
        if not hasattr(new, "lineno"):
            ast.copy_location(new, at)
    return node


def _as_list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]
