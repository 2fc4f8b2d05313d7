"""The pass over an evaluation's syntax tree: every assert tells how it came out, and goes on.

Pure: a tree goes in and is changed, nothing is run. It comes before pytest's own rewriting,
which then finds the very assert statements that it wraps. The names it brings in hold a
character that no identifier can, as pytest's own do: they clash with nothing, and pytest
leaves them out of what `--showlocals` shows.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ci_agent_eval.pytest_plugin.evaluation.expected_exceptions import (
    ExpectationFinder,
    map_import_aliases,
)
from ci_agent_eval.pytest_plugin.evaluation.source_text import SourceText

RECORDER = "@agent_eval"
"""Name, in the module, of what the asserts tell: an `Asserts`."""

REASON = "@agent_eval_reason"
"""Name, in a function, of how pytest explains that an assert passed."""

_ERROR = "@agent_eval_error"

_MANAGER = "@agent_eval_manager"
"""Begins the names, in a function, of what its `with` statements hold."""

Node = TypeVar("Node", bound=ast.AST)


def record_asserts(tree: ast.Module, text: str) -> None:
    """Wrap the asserts of every function, and what expects exceptions or warnings there.

    An assert outside of functions stays: a module that fails to import is not measured.
    """
    _RecordTransformer(SourceText(text), ExpectationFinder(map_import_aliases(tree))).body_of(
        tree, _Scope()
    )


@dataclass(frozen=True)
class _Scope:
    """Where a statement stands."""

    in_function: bool = False
    catching: tuple[ast.expr, ...] = ()
    """What the statements around it, in its own function, catch: exception types."""


@dataclass(frozen=True)
class _RecordTransformer:
    source: SourceText
    expecting: ExpectationFinder

    def body_of(self, node: ast.AST, scope: _Scope) -> None:
        """Transform the statements that a node holds directly."""
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, [new for old in value for new in self._statement(old, scope)])
            elif isinstance(value, list):
                # Handlers and match cases hold statements, too.
                for item in value:
                    if isinstance(item, ast.excepthandler | ast.match_case):
                        self.body_of(item, scope)

    def _statement(self, node: ast.stmt, scope: _Scope) -> Sequence[ast.stmt]:
        match node:
            case ast.Assert() if scope.in_function:
                return self._assert(node, scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.body_of(node, _Scope(in_function=True))
            case ast.Try() | ast.TryStar():
                self._try(node, scope)
            case ast.With() if scope.in_function:
                self._with(node, scope)
            case _:
                self.body_of(node, scope)
        return [node]

    def _try(self, node: ast.Try | ast.TryStar, scope: _Scope) -> None:
        """Transform a `try`, whose handlers are there for its first block alone."""
        caught = [
            handler.type or _build_recorder_attribute("Everything") for handler in node.handlers
        ]
        body, node.body = node.body, []
        self.body_of(node, scope)
        inner = replace(scope, catching=(*scope.catching, *caught))
        node.body = [new for old in body for new in self._statement(old, inner)]

    def _with(self, node: ast.With, scope: _Scope) -> None:
        """Transform a `with`: what expects something is an assertion of its own."""
        caught: list[ast.expr] = []
        for item in node.items:
            manager = item.context_expr
            if isinstance(manager, ast.Name):
                # `with expectation:`, as parametrized tests have it.
                caught.append(manager)
                item.context_expr = self._observed("maybe_observed", manager, node)
            elif isinstance(manager, ast.Call) and self.expecting.knows(manager):
                types = self.expecting.caught_by(manager)
                caught += [_build_recorder_attribute("Everything")] if types is None else types
                if self.expecting.is_assertion(manager):
                    item.context_expr = self._observed("observed", manager, node)
            else:
                caught.append(self._kept(item, node))
        self.body_of(node, replace(scope, catching=(*scope.catching, *caught)))

    def _kept(self, item: ast.withitem, at: ast.With) -> ast.expr:
        """Have a manager of any kind say what it is when it runs; return what then leads to it."""
        manager = item.context_expr
        name = f"{_MANAGER}_{manager.lineno}_{manager.col_offset}"
        kept = _set_location(ast.NamedExpr(ast.Name(name, ast.Store()), manager), manager)
        place = [ast.Constant(at.lineno), ast.Constant(self.source.of(manager))]
        item.context_expr = _set_location(_build_call("maybe_observed", *place, kept), manager)
        return ast.Name(name, ast.Load())

    def _observed(self, how: str, manager: ast.expr, at: ast.With) -> ast.expr:
        place = [ast.Constant(at.lineno), ast.Constant(self.source.of(manager))]
        return _set_location(_build_call(how, *place, manager), manager)

    def _assert(self, node: ast.Assert, scope: _Scope) -> Sequence[ast.stmt]:
        """Return the assert in a `try`, whose ways out each tell how it came out."""
        place = [ast.Constant(node.lineno), ast.Constant(self.source.of(node.test))]
        caught = ast.Tuple([_copy_to(type_, node) for type_ in scope.catching], ast.Load())
        failed = _build_call("failed", *copy.deepcopy(place), ast.Name(_ERROR, ast.Load()), caught)
        passed = _build_call("passed", *place, ast.Name(REASON, ast.Load()))
        handler = ast.ExceptHandler(
            _build_recorder_attribute("Failed"),
            _ERROR,
            [ast.If(ast.UnaryOp(ast.Not(), failed), [ast.Raise()], [])],
        )
        return (
            _set_location(ast.Assign([ast.Name(REASON, ast.Store())], ast.Constant(None)), node),
            _set_location(ast.Try([node], [handler], [ast.Expr(passed)], []), node),
        )


def _build_recorder_attribute(name: str) -> ast.Attribute:
    return ast.Attribute(ast.Name(RECORDER, ast.Load()), name, ast.Load())


def _build_call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_build_recorder_attribute(name), list(arguments), [])


def _set_location(node: Node, at: ast.stmt | ast.expr) -> Node:
    """Give the first line of `at` to every node that is new."""
    for new in _iter_new_nodes(node):
        new.lineno = new.end_lineno = at.lineno
        new.col_offset = new.end_col_offset = at.col_offset
    return node


def _copy_to(node: Node, at: ast.stmt) -> Node:
    """Return a copy that stands where `at` does: no other line is to count as run."""
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
