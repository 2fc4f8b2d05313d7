"""Transformation of an evaluation's syntax tree: every assert is recorded and does not raise.

Pure: it changes a tree and runs no code. It comes before pytest's own rewriting, which then
rewrites the wrapped asserts. The added names contain a character that is invalid in identifiers, as
pytest's own do: they clash with no other name, and pytest hides them from `--showlocals`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from ci_agent_eval.pytest_plugin.evaluation.source_text import SourceText

RECORDER = "@agent_eval"
"""Name of the module's `AssertRecorder`."""

_ERROR = "@agent_eval_error"

_MANAGER = "@agent_eval_manager"
"""Prefix of the names, in a function, of the managers of its `with` statements."""

Node = TypeVar("Node", bound=ast.AST)


def record_asserts(tree: ast.Module, text: str) -> None:
    """Wrap the asserts of every function, and its managers that expect exceptions or warnings.

    An assert outside of functions is unchanged: a module that fails to import is not measured.
    """
    _RecordingTransformer(SourceText(text)).transform_body(tree, _Scope())


@dataclass(frozen=True)
class _Scope:
    """The surroundings of a statement."""

    in_function: bool = False
    catching: tuple[ast.expr, ...] = ()
    """Exception types that the surrounding statements of its function catch."""


@dataclass(frozen=True)
class _RecordingTransformer:
    source: SourceText

    def transform_body(self, node: ast.AST, scope: _Scope) -> None:
        """Transform the statements directly inside a node."""
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(
                    node,
                    name,
                    [self._transform_statement(old, scope) for old in value],
                )
            elif isinstance(value, list):
                # Handlers and match cases contain statements, too.
                for item in value:
                    if isinstance(item, ast.excepthandler | ast.match_case):
                        self.transform_body(item, scope)

    def _transform_statement(self, node: ast.stmt, scope: _Scope) -> ast.stmt:
        match node:
            case ast.Assert() if scope.in_function:
                return self._transform_assert(node, scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.transform_body(node, _Scope(in_function=True))
            case ast.Try() | ast.TryStar():
                self._transform_try(node, scope)
            case ast.With() if scope.in_function:
                self._transform_with(node, scope)
            case _:
                self.transform_body(node, scope)
        return node

    def _transform_try(self, node: ast.Try | ast.TryStar, scope: _Scope) -> None:
        """Transform a `try`, whose handlers apply only to its first block."""
        caught = [
            handler.type or _build_recorder_attribute("Everything") for handler in node.handlers
        ]
        body, node.body = node.body, []
        self.transform_body(node, scope)
        inner = replace(scope, catching=(*scope.catching, *caught))
        node.body = [self._transform_statement(old, inner) for old in body]

    def _transform_with(self, node: ast.With, scope: _Scope) -> None:
        """Transform a `with`: a manager that expects something is an assertion.

        Which one does is known by its type, once it exists.
        """
        caught = [self._wrap_manager(item, node) for item in node.items]
        self.transform_body(node, replace(scope, catching=(*scope.catching, *caught)))

    def _wrap_manager(self, item: ast.withitem, at: ast.With) -> ast.expr:
        """Wrap a manager so that its type is checked at run time; return its new name."""
        manager = item.context_expr
        name = f"{_MANAGER}_{manager.lineno}_{manager.col_offset}"
        kept = _set_location(ast.NamedExpr(ast.Name(name, ast.Store()), manager), manager)
        place = [ast.Constant(at.lineno), ast.Constant(self.source.get_text(manager))]
        item.context_expr = _set_location(_build_call("wrap_if_expecting", *place, kept), manager)
        return ast.Name(name, ast.Load())

    def _transform_assert(self, node: ast.Assert, scope: _Scope) -> ast.stmt:
        """Return the assert in a `try` whose exits record the result."""
        place = [ast.Constant(node.lineno), ast.Constant(self.source.get_text(node.test))]
        caught = ast.Tuple([_copy_to(type_, node) for type_ in scope.catching], ast.Load())
        failed = _build_call(
            "record_failure", *copy.deepcopy(place), ast.Name(_ERROR, ast.Load()), caught
        )
        handler = ast.ExceptHandler(
            _build_recorder_attribute("Failed"),
            _ERROR,
            [ast.If(ast.UnaryOp(ast.Not(), failed), [ast.Raise()], [])],
        )
        passed = ast.Expr(_build_call("record_pass", *place))
        return _set_location(ast.Try([node], [handler], [passed], []), node)


def _build_recorder_attribute(name: str) -> ast.Attribute:
    return ast.Attribute(ast.Name(RECORDER, ast.Load()), name, ast.Load())


def _build_call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_build_recorder_attribute(name), list(arguments), [])


def _set_location(node: Node, at: ast.stmt | ast.expr) -> Node:
    """Set the position of all new nodes to the first line of `at`."""
    for new in _iter_new_nodes(node):
        new.lineno = new.end_lineno = at.lineno
        new.col_offset = new.end_col_offset = at.col_offset
    return node


def _copy_to(node: Node, at: ast.stmt) -> Node:
    """Return a copy at the position of `at`, so that no other line counts as run."""
    copied = copy.deepcopy(node)
    for inner in ast.walk(copied):
        for name in ("lineno", "end_lineno", "col_offset", "end_col_offset"):
            inner.__dict__.pop(name, None)
    return _set_location(copied, at)


def _iter_new_nodes(node: ast.AST) -> Iterable[ast.stmt | ast.expr | ast.excepthandler]:
    if isinstance(node, ast.stmt | ast.expr | ast.excepthandler):
        if hasattr(node, "lineno"):
            return
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _iter_new_nodes(child)
