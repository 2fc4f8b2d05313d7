"""Soft checks of pytest-check, `check.equal(1, 2)`: each is an assertion, passed or failed.

pytest-check collects its failures; of a check that passed it keeps nothing. So its functions get
code compiled from the same source that also counts a check which passed, as
`docs/decisions/0032-evidence.md` explains for asserts.
"""

from __future__ import annotations

import ast
import copy
import inspect
import sys
from typing import Any

import pytest

from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.contract.jsonable import clean_text, remove_addresses
from ci_agent_eval.pytest_plugin.collection.detection import EpisodeItem
from ci_agent_eval.pytest_plugin.episodes.endings import MAX_NAME, shorten_message, truncate_text
from ci_agent_eval.pytest_plugin.evaluation.counting.count_transform import (
    COUNTER,
    build_count_statement,
    build_counter_call,
    set_location,
)
from ci_agent_eval.pytest_plugin.evaluation.counting.install import (
    compile_counting_code,
    is_rewritten,
    list_functions,
    replace_codes,
)
from ci_agent_eval.pytest_plugin.evaluation.measurement import is_measured
from ci_agent_eval.recording.active_episode import (
    get_active_episode,
    is_evaluating,
    note_passed_assert,
)

_MODULES = ("pytest_check.check_functions", "pytest_check.check_raises")
_LOG = "log_failure"
"""pytest-check's function that collects a failure; its first argument is the name of the check."""
_RAISES_NAME = "f'check raises {exc_type.__name__}'"
"""Name of a passed `check.raises`, in terms of `__exit__`, whose failures name no check."""


def get_soft_failure_log(config: pytest.Config) -> Any:
    """Return the module in which pytest-check collects failures, or None if it is not in use."""
    plugin: Any = sys.modules.get("pytest_check.plugin")
    is_used = plugin is not None and config.pluginmanager.is_registered(plugin)
    return plugin.check_log if is_used else None


def record_soft_failures(item: pytest.Item, state: EpisodeItem) -> None:
    """Record the failures that pytest-check collected, before it fails the test.

    In an evaluation they must not fail the test: they are measured.
    """
    log = get_soft_failure_log(item.config)
    if log is None or state.recorder is None:
        return
    failures = log.get_failures()
    for failure in failures:
        state.recorder.record_assertion(_parse_failure(failure))
    if (hidden := _count_failures(log) - len(failures)) > 0:
        # `check.set_max_report(1)` hides the others, and with 0 pytest-check fails no test.
        name = f"failed checks beyond pytest-check's max_report: {hidden}; raise it to see them"
        state.recorder.record_assertion(Assertion(name=name, passed=False))
    if is_measured(item, state):
        log.clear_failures()


def _count_failures(log: Any) -> int:
    """Return how many checks failed, reported or not; pytest-check before 2.5 has no function."""
    count = getattr(log, "get_num_failures", None)
    return int(log._num_failures if count is None else count())  # noqa: SLF001 - as above


def _parse_failure(failure: str) -> Assertion:
    """Parse a failure of pytest-check: its first line is the assertion, the rest its location."""
    name, _, location = shorten_message(failure).removeprefix("FAILURE: ").partition("\n")
    return Assertion(
        name=truncate_text(name, MAX_NAME), passed=False, reason=location.strip() or None
    )


class CheckCounter:
    """The global that the counting code of pytest-check calls."""

    @staticmethod
    def count_check() -> bool:
        """Count a check that passed; return whether it is also to be recorded by its name."""
        note_passed_assert()
        return is_evaluating()

    @staticmethod
    def record_check(name: object, message: object = "") -> None:
        """Record a check of an evaluation that passed, named as pytest-check names a failed one."""
        episode = get_active_episode()
        if episode is None:
            return
        text = f"{str(name).strip()}: {message}" if message else str(name).strip()
        frame = inspect.currentframe()
        file, line = (frame and episode.locate(frame)) or (None, None)
        clean = remove_addresses(clean_text(text.partition("\n")[0]))
        episode.record_assertion(
            Assertion(name=truncate_text(clean, MAX_NAME), passed=True, file=file, line=line)
        )


def count_passed_checks(config: pytest.Config) -> None:
    """Count the checks of pytest-check that pass, from now on, if it is in use."""
    if get_soft_failure_log(config) is None:
        return
    for name in _MODULES:
        module = sys.modules.get(name)
        if module is None or COUNTER in vars(module):
            continue
        functions = list_functions(module)
        try:
            codes = compile_counting_code(
                str(module.__file__),
                config,
                rewritten=is_rewritten(functions[0]),
                transform=count_passes,
            )
        except (OSError, SyntaxError):
            continue  # it has no source, or the source has changed
        replace_codes(functions, codes, CheckCounter)


def count_passes(tree: ast.Module) -> None:
    """Change the source of pytest-check so that each check that passes is counted.

    A check is `if a == b: return True; else: log_failure("check …", msg); return False`.
    """
    _PassTransformer().visit(tree)


class _PassTransformer(ast.NodeTransformer):
    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        match node:
            case ast.If(
                body=[ast.Return(ast.Constant(value=True))],
                orelse=[ast.Expr(ast.Call(func=ast.Name(id=name), args=arguments)), *_],
            ) if name == _LOG:
                node.body = [_build_count(copy.deepcopy(arguments), node), *node.body]
            case ast.If(body=[ast.Return(ast.Constant(value=True))], orelse=[]):
                name_of_raises = ast.parse(_RAISES_NAME, mode="eval").body
                node.body = [_build_count([name_of_raises], node), *node.body]
        return node


def _build_count(arguments: list[ast.expr], at: ast.stmt) -> ast.stmt:
    """Build `if counter.count_check(): counter.record_check(…)`, which formats no name in vain."""
    record = build_count_statement("record_check", *arguments, at=at)
    return set_location(ast.If(build_counter_call("count_check"), [record], []), at)
