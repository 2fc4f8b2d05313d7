"""The phases of a test: setup, call and their reports; `__init__` has the hooks."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import pytest

from ci_agent_eval.errors import AgentEvalError
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.concurrency import INTERRUPTIONS, loop_members
from ci_agent_eval.pytest_plugin.episodes import repository_paths
from ci_agent_eval.pytest_plugin.evaluation import evaluation_files
from ci_agent_eval.pytest_plugin.fixtures import get_session
from ci_agent_eval.pytest_plugin.parts import get_parts


def take_turn(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Make a test the current one, and free its episode's state at its end."""
    parts = get_parts(item.config)
    try:
        if parts.scheduler is None:
            return (yield)
        return (yield from parts.scheduler.take_turn(item, nextitem))
    finally:
        if parts.episodes is not None:
            parts.episodes.end_test(item)


def pass_over(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Pass over a test that is not needed, or that the run can no longer afford."""
    parts = get_parts(item.config)
    adaptive = None if parts.episodes is None else parts.episodes.adaptive
    if adaptive is not None and adaptive.passes_over(item, nextitem):
        return True
    return True if parts.budgets is not None and parts.budgets.passes_over(item) else None


def begin(item: pytest.Item) -> Generator[None, None, None]:
    """Write the episode as started before any of the test's code runs."""
    parts = get_parts(item.config)
    if parts.trials is not None:
        parts.trials.begin(item)
    if detection.EPISODE not in item.stash:
        return (yield)
    episodes = get_session(item.config)
    if parts.scheduler is not None and parts.scheduler.is_started(item):
        episodes.activate(item)
    else:
        episodes.begin(item)
    try:
        result = yield
    except INTERRUPTIONS as interruption:
        episodes.interrupt(item, interruption)
        raise
    episodes.raise_marker_problem(item)
    loop_members.refuse_foreign_loops(item)
    return result


def refuse(item: pytest.Item) -> None:
    """Refuse the code of another checkout, and another attempt at an episode that was stopped."""
    parts = get_parts(item.config)
    if parts.repeated is not None:
        parts.repeated.refuse(item)
    if parts.budgets is not None:
        parts.budgets.refuse(item)


def set_up_fixture(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Run an async fixture on the episodes' loop, and an evaluation's shared one in no episode."""
    __tracebackhide__ = True
    parts = get_parts(request.config)
    if parts.scheduler is not None:
        parts.scheduler.note_fixture(fixturedef, request)
    with ExitStack() as setup:
        if evaluation_files.EVALUATION in request.config.stash:
            from ci_agent_eval.pytest_plugin.evaluation import measurement  # noqa: PLC0415 - inert until used

            setup.enter_context(measurement.leave_episode(fixturedef))
        if loop_members.runs_fixture(fixturedef, request):
            from ci_agent_eval.pytest_plugin.concurrency.async_fixtures import (  # noqa: PLC0415 - inert until used
                run_on_session_loop,
            )

            setup.enter_context(run_on_session_loop(fixturedef, request))
        value: Any = yield
    if parts.budgets is not None and fixturedef.argname == detection.RECORDER:
        parts.budgets.open(request.node, value)
    return value


def call(item: pytest.Item) -> Generator[None, None, None]:
    """Judge the episode after its test returned: checks and hard budgets fail the test."""
    trials = get_parts(item.config).trials
    if trials is not None:
        trials.link(item)
    loop_members.ignore_asyncio_warning(item)
    try:
        yield from _judge_call(item)
    except BaseException as error:
        _note_call(item, error)
        raise
    finally:
        if trials is not None:
            trials.note_called(item)
    _note_call(item, None)


def _judge_call(item: pytest.Item) -> Generator[None, None, None]:
    budgets = get_parts(item.config).budgets
    if detection.EPISODE in item.stash:
        get_session(item.config).mark_called(item)
    try:
        if budgets is None:
            yield
        else:
            yield from budgets.watch_call(item)
        if detection.EPISODE in item.stash:
            get_session(item.config).raise_swallowed_exception(item)
    except INTERRUPTIONS as interruption:
        if detection.EPISODE in item.stash:
            get_session(item.config).interrupt(item, interruption)
        raise
    except BaseException as error:
        if detection.EPISODE in item.stash:
            get_session(item.config).handle_exception(item, error)
        raise
    if detection.EPISODE in item.stash:  # only now, if the test asked for the fixture itself
        from ci_agent_eval.pytest_plugin.episodes import marker  # noqa: PLC0415 - it needs pydantic

        marker.check_scenario_ran(item)
        get_session(item.config).judge(item)


def _note_call(item: pytest.Item, error: BaseException | None) -> None:
    if detection.EPISODE in item.stash:
        get_session(item.config).note_call(item, error)


def note_exception(item: pytest.Function) -> Generator[None, object, object]:
    """Note the exception of the test function, which a wrapper of another plugin might swallow."""
    episode_item = item.stash.get(detection.EPISODE, None)
    if episode_item is None or (running := episode_item.running) is None:
        return (yield)
    try:
        result = yield
    except (Exception, pytest.fail.Exception) as error:
        running.raised = error
        raise
    running.raised = None  # of an earlier call, which a plugin has repeated
    return result


def run_coroutine(item: pytest.Function) -> bool | None:
    """Run an `async def` test, unless another plugin's loop runs it."""
    return loop_members.run_test(item) if loop_members.runs_coroutine(item) else None


def report(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write the episode's ending, and pass its figures to JUnit and the terminal summary."""
    parts = get_parts(item.config)
    is_episode = detection.EPISODE in item.stash
    if is_episode:
        get_session(item.config).measure_failure(item, call)
        if parts.scheduler is not None:
            parts.scheduler.set_phase_times(item, call)
        if call.excinfo is not None:
            hide_own_frames()
    report = yield
    if is_episode:
        get_session(item.config).record_phase(item, call, report)
        hide_own_traceback(item, call, report)
    if parts.episodes is not None:
        parts.episodes.redact_report(report)
    if is_episode and report.longrepr is not None:
        from ci_agent_eval.pytest_plugin.episodes import episode_summary  # noqa: PLC0415 - as above

        has_terminal = item.config.pluginmanager.hasplugin("terminalreporter")
        has_colors = has_terminal and item.config.get_terminal_writer().hasmarkup
        episode_summary.make_failure_printable(report, has_colors=has_colors)
    if parts.budgets is not None:
        parts.budgets.note_report(item, report)
    if parts.artifact is not None:
        parts.artifact.attach(item, report)
    if parts.trials is not None:
        parts.trials.note_report(item, call, report)
    return report


def prepare_debugger(node: pytest.Item | pytest.Collector, call: pytest.CallInfo[object]) -> None:
    """Show the conversation before the prompt of `--pdb`."""
    is_debugging = node.config.getoption("usepdb", default=False)
    if not is_debugging or not isinstance(node, pytest.Item) or call.excinfo is None:
        return
    if detection.EPISODE in node.stash:
        repository_paths.prepare_debugger(node, call.excinfo)


_OWN = frozenset({"ci_agent_eval", "asyncio"})
_PYTEST = frozenset({"_pytest", "pluggy"})


def hide_own_frames() -> None:
    """Leave our modules out of the tracebacks that pytest shows (--full-trace shows them)."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "ci_agent_eval":
            vars(module).setdefault("__tracebackhide__", True)


def hide_own_traceback(
    item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
) -> None:
    """Remove the traceback of a failed report if it contains no user code, and any hint at it."""
    if call.excinfo is None or not report.failed:
        return
    if isinstance(call.excinfo.value, AgentEvalError) and _is_ours(call.excinfo.tb, str(item.path)):
        report.longrepr = call.excinfo.getrepr(style="value")
    for traceback, *_ in getattr(report.longrepr, "chain", ()):
        # Other plugins, as pytest-check, put other objects than pytest's into this chain.
        entries = getattr(traceback, "reprentries", ())
        if entries and all(entry.style == "value" for entry in entries):
            traceback.extraline = (
                None  # pytest's hint at frames, of which only the message is shown
            )


def _is_ours(traceback: TracebackType, test_file: str) -> bool:
    """Return whether only our own code ran below pytest's, and no code of the test's file."""
    below: set[str] = set()
    current: TracebackType | None = traceback
    while current is not None:
        frame, current = current.tb_frame, current.tb_next
        if frame.f_code.co_filename == test_file:
            return False
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        below = set() if package in _PYTEST else {*below, package}
    return below <= _OWN
