"""pytest's assertion rewriting, extended to keep its explanation of asserts that pass.

`rewrite_asserts` and the code that it generates for its hook `pytest_assertion_pass` are private to
pytest: `docs/decisions/0010-evaluation-asserts.md` explains why they are used.
`tests/plugin/test_evaluation_private.py` fails first if either changes.
"""

from __future__ import annotations

import ast
import copy
from typing import Any

import pytest
from _pytest.assertion import rewrite

from ci_agent_eval.pytest_plugin.evaluation.assert_transform import REASON, RECORDER
from ci_agent_eval.pytest_plugin.evaluation.source_text import SourceText

_PYTEST = "@pytest_ar"
"""pytest's name for its assertion module in rewritten code."""


def explain_asserts(tree: ast.Module, text: str, path: str, config: pytest.Config) -> None:
    """Rewrite the asserts of a tree in place with pytest, as in a test file."""
    settings: Any = _PassHookConfig(config)
    has_hook = bool(config.getini(_PassHookConfig.SETTING))
    stand_in = _build_stand_in_source(tree, SourceText(text) if has_hook else None)
    rewrite.rewrite_asserts(tree, stand_in, path, settings)
    _PassHookRewriter(has_hook=has_hook).visit(tree)


def _build_stand_in_source(tree: ast.Module, source: SourceText | None) -> bytes:
    """Return a source with an assert on each line where an assert of the tree begins.

    pytest needs a source for the text that its hook receives, and finds asserts in it by their
    tokens; if statements share a line, it may miss one and then fail. Without a hook the text is
    unused.
    """
    asserts = {node.lineno: node for node in ast.walk(tree) if isinstance(node, ast.Assert)}
    texts = {line: source.get_text(node.test) if source else "0" for line, node in asserts.items()}
    lines = range(1, max(texts, default=0) + 1)
    return "\n".join([f"assert {texts[n]}" if n in texts else "" for n in lines]).encode() + b"\n"


class _PassHookConfig:
    """pytest's settings, except that passing asserts are explained, too."""

    SETTING = "enable_assertion_pass_hook"

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def getini(self, name: str) -> Any:
        return True if name == self.SETTING else self._config.getini(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._config, name)


class _PassHookRewriter(ast.NodeTransformer):
    """Rewrites the code that pytest generated for its hook, to keep the explanation."""

    def __init__(self, *, has_hook: bool) -> None:
        self._has_hook = has_hook

    def visit_If(self, node: ast.If) -> Any:
        """Replace the block for the hook, or precede it if the project has enabled the hook."""
        self.generic_visit(node)
        if not _calls_pytest(node.test, "_check_if_assertion_pass_impl"):
            return node
        explained = _ExplanationRewriter().visit(copy.deepcopy(node))
        return [explained, node] if self._has_hook else explained

    def visit_Call(self, node: ast.Call) -> Any:
        """Keep a message unchanged.

        pytest doubles its `%` for a formatting that does not follow.
        """
        self.generic_visit(node)
        if _calls_pytest(node, "_format_assertmsg"):
            _redirect_to_recorder(node, "format_message")
        return node


class _ExplanationRewriter(ast.NodeTransformer):
    """Rewrites a block for pytest's hook into a block that keeps the explanation."""

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if _calls_pytest(node, "_check_if_assertion_pass_impl"):
            _redirect_to_recorder(node, "is_recording")
        elif _calls_pytest(node, "_call_reprcompare"):
            _redirect_to_recorder(node, "explain_comparison")
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        self.generic_visit(node)
        if not _calls_pytest(node.value, "_call_assertion_pass"):
            return node
        assert isinstance(node.value, ast.Call)  # noqa: S101 - checked above
        kept = ast.copy_location(ast.Name(REASON, ast.Store()), node)
        return ast.copy_location(ast.Assign([kept], node.value.args[-1]), node)


def _calls_pytest(node: ast.expr, name: str) -> bool:
    """Return whether the expression is a call of this function of pytest."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=attribute)):
            return module == _PYTEST and attribute == name
    return False


def _redirect_to_recorder(call: ast.Call, name: str) -> None:
    recorder = ast.copy_location(ast.Name(RECORDER, ast.Load()), call)
    call.func = ast.copy_location(ast.Attribute(recorder, name, ast.Load()), call)
