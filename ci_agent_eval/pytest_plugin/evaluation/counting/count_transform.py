"""Transformation of a module's syntax tree that counts its passed asserts.

Pure: it changes a tree and runs no code. It comes before pytest's own rewriting, and leaves every
assert statement unchanged. Only bodies of functions are changed.
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
"""Name of the module's `AssertCounter`; it is not a valid identifier."""

Node = TypeVar("Node", bound=ast.AST)

_ASSERTING_NAME = re.compile(r"_*(assert|expect|verify|check)(?![a-z])")
"""Prefix of functions whose return counts: `assert_allclose`, not `expected_price`."""

_SETTINGS_OF_CHECK = {
    "any_failures",
    "call_on_fail",
    "set_max_fail",
    "set_max_report",
    "set_max_tb",
    "set_no_tb",
}
"""Methods of pytest-check's `check` that assert nothing."""


def count_asserts(tree: ast.Module, *, asserts: bool = True) -> None:
    """Count every assert of a function, and every other assertion, after it passed.

    If `asserts` is False, plain asserts do not count.
    """
    _CountTransformer(ExpectationFinder(map_import_aliases(tree)), asserts=asserts).visit(tree)


class _CountTransformer(ast.NodeTransformer):
    def __init__(self, expecting: ExpectationFinder, *, asserts: bool) -> None:
        self._expecting = expecting
        self._asserts = asserts
        self._depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return self._transform_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return self._transform_function(node)

    def _transform_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._depth += 1
        node.body = [new for old in node.body for new in _as_list(self.visit(old))]
        self._depth -= 1
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        """Count it with a statement after it, which is not reached if it fails.

        The assert itself is unchanged, because pytest shows it.
        """
        counts = self._asserts and self._depth
        return [node, build_count_statement("count_assert", at=node)] if counts else node

    def visit_With(self, node: ast.With) -> Any:
        """Count a manager that expects an exception or a warning, after the statement."""
        self.generic_visit(node)
        managers = [item.context_expr for item in node.items]
        if not self._depth:
            return node
        if any(isinstance(m, ast.Call) and self._expecting.is_assertion(m) for m in managers):
            return [node, build_count_statement("count_assert", at=node)]
        names = [m for m in managers if isinstance(m, ast.Name)]
        return [
            node,
            *(
                build_count_statement("count_manager", ast.Name(m.id, ast.Load()), at=node)
                for m in names
            ),
        ]

    def visit_Await(self, node: ast.Await) -> Any:
        """Count an awaited call once it has been awaited."""
        if not (self._depth and isinstance(node.value, ast.Call) and self._is_counted(node.value)):
            return self.generic_visit(node)
        self.generic_visit(node.value)
        return _wrap_call(node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        return _wrap_call(node) if self._depth and self._is_counted(node) else node

    def _is_counted(self, call: ast.Call) -> bool:
        if isinstance(call.func, ast.Attribute) and call.func.attr in _SETTINGS_OF_CHECK:
            return False
        if any(map(_ASSERTING_NAME.match, _list_called_names(call.func))):
            return True
        # `pytest.raises(ValueError, function)` calls the function itself.
        return len(call.args) > 1 and self._expecting.is_assertion(call)


def _list_called_names(function: ast.expr) -> list[str]:
    """Return the called name, and the one before its dot: `check.equal`."""
    match function:
        case ast.Name(id=name):
            return [name]
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return [name, owner]
        case ast.Attribute(attr=name):
            return [name]
    return []


def build_count_statement(method: str, *arguments: ast.expr, at: ast.stmt) -> ast.stmt:
    """Build a statement that calls a method of the module's counter."""
    return set_location(ast.Expr(build_counter_call(method, *arguments)), at)


def _wrap_call(node: ast.expr) -> ast.expr:
    return set_location(build_counter_call("count_call", node), node)


def build_counter_call(method: str, *arguments: ast.expr) -> ast.Call:
    """Build a call of a method of the module's counter."""
    counter = ast.Name(COUNTER, ast.Load())
    return ast.Call(ast.Attribute(counter, method, ast.Load()), list(arguments), [])


def set_location(node: Node, at: ast.stmt | ast.expr) -> Node:
    """Set the position of new nodes to that of `at`, so that no other line counts as run."""
    for new in ast.walk(node):
        if not hasattr(new, "lineno"):
            ast.copy_location(new, at)
    return node


def _as_list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]
