"""Rewritten asserts: each one reports that it passed, and in an evaluation also that it failed.

pytest writes code for its hook `pytest_assertion_pass` behind an assert, but only for projects that
enable the hook, and caches bytecode without a note of it. So `ReportingRewriter` always adds the
code, under a tag of our own; it calls the functions below in place of the hook. In the file of an
evaluation it first puts a `try` around each assert of a function, so that the test goes on behind
one that fails. `docs/decisions/0032-evidence.md` explains why.

The added names contain a character that is invalid in identifiers, as pytest's own do: they clash
with no other name, and pytest hides them from `--showlocals`.
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.assertion import rewrite, util

from ci_agent_eval.pytest_plugin.evaluation.evaluation_files import REWRITTEN, has_evaluation_name

if TYPE_CHECKING:
    from ci_agent_eval.pytest_plugin.evaluation.assert_evidence import AssertEvidence

HOOK_SETTING = "enable_assertion_pass_hook"
"""pytest's setting that enables its hook."""

_OWN_MODULE = "agent_eval"
"""Name of this module in pytest's assertion module."""

_ERROR = "@agent_eval_error"

_MANAGER = "@agent_eval_manager"
"""Prefix of the names, in a function, of the managers of its `with` statements."""

_TAG = "-agent-eval-3"
"""Begins the end of the name of cached bytecode; changes with the code that is written."""

_PYC_TAIL = rewrite.PYC_TAIL

_OWN_HELPERS = {
    "_check_if_assertion_pass_impl": "note_pass",
    "_call_assertion_pass": "keep_explanation",
    "_call_reprcompare": "explain_comparison",
    "_format_assertmsg": "format_message",
}
"""Our replacement of each helper that rewritten asserts call."""


class _Process:
    listener: AssertEvidence | None = None
    """Who is told; None until there is an episode."""
    has_hook: bool = False
    """Whether the project has enabled pytest's hook."""


_is_explaining: ContextVar[bool] = ContextVar("ci_agent_eval_explaining", default=False)


def install(config: pytest.Config) -> None:
    """Report the asserts of modules that are imported from now on, unless pytest rewrites none."""
    hook: Any = config.pluginmanager.rewrite_hook
    if not isinstance(hook, rewrite.AssertionRewritingHook):
        return
    # pytest rewrites whole packages that bring a plugin, if they are installed: ours asserts
    # nothing for tests, and that would be a third of the start of a run.
    hook._must_rewrite.discard("ci_agent_eval")  # noqa: SLF001 - pytest has no name for it
    patterns = config.getini("eval_files")
    hook.fnpats = [*hook.fnpats, *patterns]
    before = rewrite.rewrite_asserts, rewrite.PYC_TAIL, _Process.listener, _Process.has_hook
    _Process.listener = None
    _Process.has_hook = bool(config.getini(HOOK_SETTING))
    # Bytecode depends on the hook, and on which files are evaluations.
    files = f"-{zlib.crc32(repr(patterns).encode()):x}" if patterns != ["*_eval.py"] else ""
    rewrite.rewrite_asserts = _rewrite_asserts
    rewrite.PYC_TAIL = f"{_TAG}{'-hook' if _Process.has_hook else ''}{files}{_PYC_TAIL}"
    setattr(rewrite, _OWN_MODULE, sys.modules[__name__])

    def restore() -> None:
        rewrite.rewrite_asserts, rewrite.PYC_TAIL = before[:2]
        _Process.listener, _Process.has_hook = before[2:]

    config.add_cleanup(restore)


def listen(listener: AssertEvidence) -> None:
    """Report the assertions of this process to `listener`, from now on."""
    _Process.listener = listener


def get_listener() -> AssertEvidence | None:
    """Return who listens, or None if there is no episode."""
    return _Process.listener


def _rewrite_asserts(
    mod: ast.Module,
    source: bytes,
    module_path: str | None = None,
    config: pytest.Config | None = None,
) -> None:
    """Take the place of pytest's function, which its import hook calls for each module."""
    assert config is not None  # noqa: S101 - pytest's import hook always has one
    texts: dict[ast.Assert, str] = {}
    is_ours = "eval_strict" in config.option  # an inner run may load a plugin before ours
    is_evaluation = bool(is_ours and module_path and has_evaluation_name(Path(module_path), config))
    if is_evaluation and b"PYTEST_DONT_REWRITE" not in source:
        measuring = _Measuring(importlib.util.decode_source(source))
        measuring.visit(mod)
        texts = measuring.texts
    ReportingRewriter(module_path, config, source, texts).run(mod)


class _Measuring(ast.NodeTransformer):
    """Wraps the asserts of each function, and its managers that expect exceptions or warnings.

    An assert outside of functions is unchanged: a module that fails to import is not measured.
    """

    def __init__(self, source: str) -> None:
        # A form feed does not end a line in Python; columns are those of bytes.
        self._lines = [line.encode() for line in source.split("\n")]
        self._catching: tuple[ast.expr, ...] | None = None
        """What the surrounding statements of the function catch; None outside of functions."""
        self.texts: dict[ast.Assert, str] = {}

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        before, self._catching = self._catching, ()
        found = self.generic_visit(node)
        self._catching = before
        return found

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self.visit_FunctionDef(node)

    def visit_Try(self, node: ast.Try | ast.TryStar) -> ast.AST:
        """Visit a `try`, whose handlers apply only to its first block."""
        everything = _get_attribute("@py_builtins", "BaseException")
        caught = [handler.type or everything for handler in node.handlers]
        body, node.body = node.body, []
        self.generic_visit(node)
        with self._catch(caught):
            node.body = [self.visit(statement) for statement in body]
        return node

    def visit_TryStar(self, node: ast.TryStar) -> ast.AST:
        return self.visit_Try(node)

    def visit_With(self, node: ast.With) -> ast.AST:
        """Visit a `with`: which manager expects something is known by its type, once it exists."""
        if self._catching is None:
            return self.generic_visit(node)
        managers = [self._wrap_manager(item, node) for item in node.items]
        with self._catch(managers):
            return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Return the assert in a `try` whose handler records that it failed."""
        if self._catching is None:
            return node
        text = self.texts[node] = self._get_text(node.test)
        place = [ast.Constant(node.lineno), ast.Constant(text)]
        caught = ast.Tuple(copy.deepcopy(list(self._catching)), ast.Load())
        failed = _call("record_failure", *place, ast.Name(_ERROR, ast.Load()), caught)
        reraise = ast.If(ast.UnaryOp(ast.Not(), failed), [ast.Raise()], [])
        failure = _get_attribute("@py_builtins", "AssertionError")
        handler = ast.ExceptHandler(failure, _ERROR, [reraise])
        for added in ast.walk(handler):  # on the line of the assert, so that no other seems to run
            for name in ("lineno", "end_lineno", "col_offset", "end_col_offset"):
                setattr(added, name, getattr(node, name.removeprefix("end_")))
        return ast.copy_location(ast.Try([node], [handler], [], []), node)

    def _wrap_manager(self, item: ast.withitem, at: ast.With) -> ast.expr:
        """Let the manager's type be asked at run time; return the manager's new name."""
        manager = item.context_expr
        name = f"{_MANAGER}_{manager.lineno}_{manager.col_offset}"
        place = [ast.Constant(at.lineno), ast.Constant(self._get_text(manager))]
        named = ast.NamedExpr(ast.Name(name, ast.Store()), manager)
        wrapped = ast.copy_location(_call("expect", *place, named), manager)
        item.context_expr = ast.fix_missing_locations(wrapped)
        return ast.Name(name, ast.Load())

    @contextmanager
    def _catch(self, caught: Iterable[ast.expr]) -> Iterator[None]:
        """Visit statements of a function whose failures these types catch, too."""
        before = self._catching
        self._catching = None if before is None else (*before, *caught)
        try:
            yield
        finally:
            self._catching = before

    def _get_text(self, node: ast.expr) -> str:
        """Return an expression's source text; on several lines, as Python writes it on one."""
        if node.lineno != node.end_lineno:
            return ast.unparse(node)
        return self._lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()


def _get_attribute(module: str, name: str) -> ast.expr:
    return ast.Attribute(ast.Name(module, ast.Load()), name, ast.Load())


def _call(function: str, *arguments: ast.expr) -> ast.Call:
    """Return a call of a function of this module."""
    module = _get_attribute(REWRITTEN, _OWN_MODULE)
    return ast.Call(ast.Attribute(module, function, ast.Load()), list(arguments), [])


class ReportingRewriter(rewrite.AssertionRewriter):
    """pytest's rewriting of asserts, which also reports each one that passes."""

    def __init__(
        self,
        module_path: str | None,
        config: pytest.Config,
        source: bytes,
        texts: Mapping[ast.Assert, str],
    ) -> None:
        super().__init__(module_path, config, source)
        self.enable_assertion_pass_hook = True
        self._texts = texts
        self._assert = ast.Assert(ast.Constant(None))
        self._value: ast.expr = self._assert.test

    def run(self, mod: ast.Module) -> None:
        """Rewrite the asserts of a module."""
        if self._texts or not _Process.has_hook:
            # pytest reads the text of each assert for its hook, from all tokens of the source, and
            # is confused by statements that share a line.
            asserts = [node for node in ast.walk(mod) if isinstance(node, ast.Assert)]
            self.source = _build_source({n.lineno: self._texts.get(n, "0") for n in asserts})
        super().run(mod)

    def visit_Assert(self, assert_: ast.Assert) -> list[ast.stmt]:  # noqa: N802 - pytest's name
        """Rewrite an assert."""
        self._assert = assert_
        return super().visit_Assert(assert_)

    def visit(self, node: ast.AST) -> Any:
        """Rewrite a node; keep the expression that holds the value of the assert."""
        found = super().visit(node)
        if node is self._assert.test:
            value = found[0]
            is_named = isinstance(value, ast.NamedExpr)
            self._value = ast.Name(value.target.id, ast.Load()) if is_named else value
        return found

    def helper(self, name: str, *args: ast.expr) -> ast.expr:
        """Call a helper, of ours or of pytest's."""
        if name not in _OWN_HELPERS:
            return super().helper(name, *args)
        text = ast.Constant(self._texts.get(self._assert))
        if _OWN_HELPERS[name] == "note_pass":
            args = (self._value, ast.Constant(is_always_true(self._assert.test)), text)
        elif _OWN_HELPERS[name] == "keep_explanation":
            args = (*args, text)
        return _call(_OWN_HELPERS[name], *args)


def _build_source(texts: Mapping[int, str]) -> bytes:
    """Return a source with asserts of these texts on these lines."""
    lines = range(1, max(texts, default=0) + 1)
    return "\n".join([f"assert {texts[n]}" if n in texts else "" for n in lines]).encode() + b"\n"


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


# What rewritten asserts call; `text` is the source of an evaluation's assert, None in other files.


def note_pass(value: object, is_fixed: bool, text: str | None) -> bool:
    """Note a passed assert of the calling frame; return whether to explain it."""
    __tracebackhide__ = True
    listener = _Process.listener
    frame = sys._getframe(1)  # noqa: SLF001 - documented
    if listener is not None and listener.note_assert(frame, value, is_fixed=is_fixed, text=text):
        _is_explaining.set(True)
        return True
    return _Process.has_hook and bool(util._assertion_pass)  # noqa: SLF001 - as pytest's helper


def keep_explanation(line: int, shown: str, explanation: str, text: str | None) -> None:
    """Record a passed assert of an evaluation, and call the project's hook."""
    if _is_explaining.get():
        _is_explaining.set(False)
        if text is not None and (listener := _Process.listener) is not None:
            listener.record_pass(sys._getframe(1), line, text, explanation)  # noqa: SLF001 - documented
    if _Process.has_hook:
        rewrite._call_assertion_pass(line, shown, explanation)  # noqa: SLF001 - see the module


def record_failure(line: int, text: str, error: AssertionError, catching: Sequence[Any]) -> bool:
    """Record a failed assert of an evaluation; return False if its error must be raised."""
    listener = _Process.listener
    return listener is not None and listener.record_failure(line, text, error, catching)


def expect(line: int, text: str, manager: Any) -> Any:
    """Return the manager of a `with`, wrapped if what it expects is an evaluation's assertion."""
    listener = _Process.listener
    return manager if listener is None else listener.wrap_manager(line, text, manager)


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
    """Return an assert's message as pytest shows it.

    pytest doubles its `%` for a formatting that does not follow in code for the hook.
    """
    return rewrite._format_assertmsg(message).replace("%%", "%")  # noqa: SLF001 - see the module
