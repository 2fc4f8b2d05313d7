"""Passed asserts, reported by the code that pytest writes for its hook `pytest_assertion_pass`.

pytest rewrites asserts with that code only for projects that enable the hook, and caches bytecode
without a note of it. So `CountingRewriter` always adds the code, under a tag of our own; it calls
the functions below in place of the hook. Nothing is explained unless the listener asks for it.
`docs/decisions/0032-evidence.md` explains why.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from types import FrameType
from typing import Any, Protocol

import pytest
from _pytest.assertion import rewrite, util

from ci_agent_eval.pytest_plugin.evaluation.always_true import is_always_true
from ci_agent_eval.pytest_plugin.evaluation.stable_repr import sort_sets

HOOK_SETTING = "enable_assertion_pass_hook"
"""pytest's setting that enables its hook."""

REWRITTEN = "@pytest_ar"
"""pytest's name for its assertion module, in a module whose asserts it has rewritten."""

_TAG = "-agent-eval-2"
"""Begins the end of the name of cached bytecode; changes with the code that is written."""

_PYC_TAIL = rewrite.PYC_TAIL

_OWN_HELPERS = {
    "_check_if_assertion_pass_impl": "note_pass",
    "_call_assertion_pass": "keep_explanation",
    "_call_reprcompare": "explain_comparison",
    "_format_assertmsg": "format_message",
}
"""Our replacement of each helper that rewritten asserts call."""

_OWN_MODULE = "agent_eval"
"""Name of this module in pytest's assertion module."""


class Listener(Protocol):
    """Receives the assertions of tests."""

    def note_assert(self, frame: FrameType, value: object, *, is_fixed: bool) -> bool:
        """Note an assert that passed in this frame; return whether to explain it.

        `is_fixed`: its expression has no other value. Raises AssertionError for a value that
        nobody asked for, such as a coroutine.
        """

    def note_call(self, value: object) -> None:
        """Note that a library's assertion function held: of the truth of this value, or True.

        Raises AssertionError as `note_assert`.
        """

    def note_check(self, frame: FrameType) -> None:
        """Note a check of pytest-check that passed, called in this frame."""


class _Process:
    listener: Listener | None = None
    """None until there is an episode."""
    has_hook: bool = False
    """Whether the project has enabled pytest's hook."""


_is_explaining: ContextVar[bool] = ContextVar("ci_agent_eval_explaining", default=False)
_explanation: ContextVar[str | None] = ContextVar("ci_agent_eval_explanation", default=None)


def install(config: pytest.Config) -> None:
    """Count the asserts of modules that are imported from now on, unless pytest rewrites none."""
    if config.getoption("assertmode", "plain") != "rewrite":
        return
    # pytest rewrites whole packages that bring a plugin, if they are installed: ours asserts
    # nothing for tests, and that would be a third of the start of a run.
    marked: set[str] = getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", set())
    marked.discard("ci_agent_eval")
    before = rewrite.rewrite_asserts, rewrite.PYC_TAIL, _Process.listener, _Process.has_hook
    _Process.listener = None
    _Process.has_hook = bool(config.getini(HOOK_SETTING))
    rewrite.rewrite_asserts = _rewrite_asserts
    rewrite.PYC_TAIL = f"{_TAG}{'-hook' if _Process.has_hook else ''}{_PYC_TAIL}"
    setattr(rewrite, _OWN_MODULE, sys.modules[__name__])

    def restore() -> None:
        rewrite.rewrite_asserts, rewrite.PYC_TAIL = before[:2]
        _Process.listener, _Process.has_hook = before[2:]

    config.add_cleanup(restore)


def listen(listener: Listener) -> None:
    """Report the assertions of this process to `listener`, from now on."""
    _Process.listener = listener


def get_listener() -> Listener | None:
    """Return who listens, or None if there is no episode."""
    return _Process.listener


class CountingRewriter(rewrite.AssertionRewriter):
    """pytest's rewriting of asserts, which also reports each one that passes."""

    def __init__(self, module_path: str | None, config: pytest.Config, source: bytes) -> None:
        super().__init__(module_path, config, source)
        self.enable_assertion_pass_hook = True
        self._test: ast.expr = ast.Constant(None)
        self._value: ast.expr = self._test

    def run(self, mod: ast.Module) -> None:
        """Rewrite the asserts of a module."""
        if not _Process.has_hook:
            # pytest reads the text of each assert for its hook, from all tokens of the source.
            lines = {node.lineno for node in ast.walk(mod) if isinstance(node, ast.Assert)}
            self.source = build_source(dict.fromkeys(lines, "0"))
        super().run(mod)

    def visit_Assert(self, assert_: ast.Assert) -> list[ast.stmt]:  # noqa: N802 - pytest's name
        """Rewrite an assert."""
        self._test = assert_.test
        return super().visit_Assert(assert_)

    def visit(self, node: ast.AST) -> Any:
        """Rewrite a node; keep the expression that holds the value of the assert."""
        found = super().visit(node)
        if node is self._test:
            value = found[0]
            is_named = isinstance(value, ast.NamedExpr)
            self._value = ast.Name(value.target.id, ast.Load()) if is_named else value
        return found

    def helper(self, name: str, *args: ast.expr) -> ast.expr:
        """Call a helper, of ours or of pytest's."""
        call = super().helper(name, *args)
        if name in _OWN_HELPERS and isinstance(call, ast.Call):
            if _OWN_HELPERS[name] == "note_pass":
                call.args = [self._value, ast.Constant(is_always_true(self._test))]
            module = ast.Attribute(ast.Name(REWRITTEN, ast.Load()), _OWN_MODULE, ast.Load())
            call.func = ast.Attribute(module, _OWN_HELPERS[name], ast.Load())
        return call


def build_source(texts: Mapping[int, str]) -> bytes:
    """Return a source with asserts of these texts on these lines."""
    lines = range(1, max(texts, default=0) + 1)
    return "\n".join([f"assert {texts[n]}" if n in texts else "" for n in lines]).encode() + b"\n"


def _rewrite_asserts(
    mod: ast.Module,
    source: bytes,
    module_path: str | None = None,
    config: pytest.Config | None = None,
) -> None:
    assert config is not None  # noqa: S101 - pytest's import hook always has one
    CountingRewriter(module_path, config, source).run(mod)


def note_pass(value: object, is_fixed: bool) -> bool:
    """Note a passed assert of the calling frame; return whether to explain it."""
    __tracebackhide__ = True
    listener = _Process.listener
    frame = sys._getframe(1)  # noqa: SLF001 - documented
    if listener is not None and listener.note_assert(frame, value, is_fixed=is_fixed):
        _is_explaining.set(True)
        return True
    return _Process.has_hook and bool(util._assertion_pass)  # noqa: SLF001 - as pytest's helper


def keep_explanation(line: int, text: str, explanation: str) -> None:
    """Keep the explanation of a passed assert, and call the project's hook."""
    if _is_explaining.get():
        _is_explaining.set(False)
        _explanation.set(explanation)
    if _Process.has_hook:
        rewrite._call_assertion_pass(line, text, explanation)  # noqa: SLF001 - see the module


def take_explanation() -> str | None:
    """Return the explanation of the assert that passed just now, once."""
    found = _explanation.get()
    _explanation.set(None)
    return found


def explain_comparison(
    operators: Sequence[str],
    results: Sequence[object],
    shown: Sequence[str],
    values: Sequence[object],
) -> str:
    """Explain a comparison; one that passed briefly, where pytest would look for differences."""
    if _is_explaining.get() and all(result is True for result in results):
        return " and ".join(shown)
    explained: str = rewrite._call_reprcompare(  # noqa: SLF001 - see the module
        operators,
        results,  # type: ignore[arg-type]  # operands may return any type
        shown,
        values,
    )
    return explained


def format_message(message: object) -> str:
    """Return an assert's message as pytest shows it, with sorted sets unless it is a text.

    pytest doubles its `%` for a formatting that does not follow in code for the hook.
    """
    shown: str = rewrite._format_assertmsg(message)  # noqa: SLF001 - see the module
    shown = shown.replace("%%", "%")
    return shown if isinstance(message, str) else sort_sets(shown)
