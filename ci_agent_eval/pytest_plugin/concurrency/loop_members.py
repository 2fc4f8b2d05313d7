"""The tests and fixtures that run on the event loop of the process's episodes.

All episodes do, whichever async plugin would run them: their fixtures, agents and tool servers must
live on one loop. A pytest-asyncio test that shares its loop with such a fixture is added. This is
called for every fixture of every project, so only fast modules are imported here.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from typing import Any

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.concurrency import AT_END
from ci_agent_eval.pytest_plugin.evaluation.evaluation_files import has_evaluation_name
from ci_agent_eval.pytest_plugin.parts import get_parts

BACKEND = "anyio_backend"
"""Fixture of anyio's plugin; a test with this fixture is run by anyio."""

SHARED_DEFINITIONS = pytest.StashKey[set[Any]]()
"""In the config: definitions of wider async fixtures that tests on our loop use."""

ON_OUR_LOOP = "ci_agent_eval_on_our_loop"
"""Attribute of a definition whose current value was created on our loop."""

_JOINED = pytest.StashKey[bool]()
"""In an item that is no episode but shares its loop with an async fixture of one."""


def get_test_function(item: pytest.Item) -> Callable[..., Any] | None:
    """Return the function of a test as its author wrote it, or None."""
    function = getattr(item, "obj", None)
    return None if function is None else unwrap_asyncio_test(function)


def unwrap_asyncio_test(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that pytest-asyncio has wrapped in a synchronous one."""
    while is_from_pytest_asyncio(function) and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def is_from_pytest_asyncio(function: Callable[..., Any]) -> bool:
    """Return whether a function is defined in pytest-asyncio."""
    module = getattr(function, "__globals__", {}).get("__name__", "")
    return str(module).partition(".")[0] == "pytest_asyncio"


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a test or fixture is a coroutine function or an async generator function."""
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def is_on_our_loop(item: pytest.Item) -> bool:
    """Return whether a test's async fixtures, and an async test itself, run on our loop."""
    is_ours = (
        detection.EPISODE in item.stash
        or _JOINED in item.stash
        or detection.is_linked(item)
        or (item.config.option.eval_strict and has_evaluation_name(item.path, item.config))
    )
    return is_ours and not _is_of_another_plugin(item)


def _is_of_another_plugin(item: pytest.Item) -> bool:
    """Return whether another async framework than asyncio, or Hypothesis, runs the test."""
    is_anyio = BACKEND in getattr(item, "fixturenames", ())
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        return is_anyio or type(item) is not pytest.Function
    if item.get_closest_marker("anyio") is not None and not is_anyio:
        return True
    return any(item.get_closest_marker(name) for name in ("trio", "tornado"))


def is_left_to_anyio(backend: Any) -> bool:
    """Return whether anyio's backend is not plain asyncio: `trio`, or a custom loop."""
    name, options = backend if isinstance(backend, tuple) else (backend, {})
    return name is not None and (name != "asyncio" or any(options.values()))


def runs_coroutine(item: pytest.Item) -> bool:
    """Return whether this plugin runs the test, an `async def`, on its loop."""
    function = get_test_function(item)
    return function is not None and inspect.iscoroutinefunction(function) and is_on_our_loop(item)


def runs_fixture(definition: Any, request: pytest.FixtureRequest) -> bool:
    """Return whether this plugin runs an async fixture: of a test on its loop, or of no plugin."""
    if not is_async(unwrap_asyncio_test(definition.func)):
        return False
    # `request.node` is the test only for fixtures of function scope.
    item: Any = request._pyfuncitem  # noqa: SLF001 - there is no public name
    if is_on_our_loop(item) or definition in request.config.stash.get(SHARED_DEFINITIONS, ()):
        if BACKEND not in request.fixturenames:
            return True
        # A wider fixture's own request may not use fixtures of function scope.
        return not is_left_to_anyio(item._request.getfixturevalue(BACKEND))  # noqa: SLF001 - see above
    function = get_test_function(item)
    is_plain = function is None or not is_async(function)
    return is_plain and not _is_run_by_others(definition, request)


def _is_run_by_others(definition: Any, request: pytest.FixtureRequest) -> bool:
    """Return whether another plugin or a conftest runs the async fixture, or may do so."""
    if BACKEND in request.fixturenames or is_from_pytest_asyncio(definition.func):
        return True
    if getattr(definition.func, "_force_asyncio_fixture", False):
        return True
    hooks = request.node.ihook.pytest_fixture_setup.get_hookimpls()
    packages = {detection.get_plugin_name(hook.plugin).partition(".")[0] for hook in hooks}
    if "pytest_asyncio" in packages and _get_asyncio_mode(request.config) == "auto":
        return True
    return not packages <= {"_pytest", "anyio", "ci_agent_eval", "pytest_asyncio"}


def _get_asyncio_mode(config: pytest.Config) -> str:
    return str(config.getoption("asyncio_mode", None) or config.getini("asyncio_mode"))


def refuse_foreign_loops(item: pytest.Item) -> None:
    """Refuse a test on our loop with an async fixture created on another loop.

    Another plugin's test was the first to use it, and only a later call of
    `request.getfixturevalue` shows that this test uses it too. Raises InputError.
    """
    if not isinstance(item, pytest.Function) or not is_on_our_loop(item):
        return
    if is_left_to_anyio(item.funcargs.get(BACKEND)):
        return
    for name, definition in item._request._fixture_defs.items():  # noqa: SLF001 - see the list of private interfaces
        if is_async(unwrap_asyncio_test(definition.func)) and not getattr(
            definition, ON_OUR_LOOP, False
        ):
            raise InputError(
                f"{item.nodeid}: the async fixture {name!r} was made on another event loop, by a "
                "test of another plugin; name it as a parameter of this test, too"
            )


def add_loop_members(items: Sequence[pytest.Item]) -> None:
    """Add the tests that share a loop with async fixtures of episodes."""
    members = {
        item: set(_iter_shared_async_fixtures(item)) for item in items if is_on_our_loop(item)
    }
    candidates = {
        item: found
        for item in items
        if item not in members
        and not _has_own_loop(item)
        and (found := set(_iter_shared_async_fixtures(item)))
    }
    while members:
        shared = next(iter(members)).config.stash.setdefault(SHARED_DEFINITIONS, set())
        shared.update(*members.values())
        members = {item: found for item, found in candidates.items() if shared & found}
        for item in members:
            item.stash[_JOINED] = True
            del candidates[item]


def _has_own_loop(item: pytest.Item) -> bool:
    """Return whether an async test shares its loop with no wider fixture, if any plugin runs it."""
    function = get_test_function(item)
    if function is None or not is_async(function) or BACKEND in item.fixturenames:  # type: ignore[attr-defined]
        return False
    marker = item.get_closest_marker("asyncio")
    if marker is None:
        return True
    # Newer versions set the scope of a test's loop; older ones have it only in the marker.
    scope = getattr(item, "_loop_scope", None) or marker.kwargs.get("scope", "function")
    return bool(scope == "function")


def _iter_shared_async_fixtures(item: pytest.Item) -> Iterator[Any]:
    info: Any = getattr(item, "_fixtureinfo", None)
    for definitions in info.name2fixturedefs.values() if info is not None else ():
        for definition in definitions:
            if definition.scope != "function" and is_async(unwrap_asyncio_test(definition.func)):
                yield definition


def ignore_asyncio_warning(item: pytest.Item) -> None:
    """Ignore pytest-asyncio's warning about plain async fixtures, which run on our loop."""
    if item.get_closest_marker("asyncio") is not None and runs_coroutine(item):
        message = "asyncio test .* requested async @pytest.fixture"
        warnings.filterwarnings("ignore", message, pytest.PytestDeprecationWarning)


__tracebackhide__ = True  # a failure shows the frames of the test and of its agent


def call_test(item: pytest.Function) -> Any:
    """Call the test with its fixtures; return its awaitable.

    pytest's own `pytest_pyfunc_call` uses `_fixtureinfo.argnames` to find the test's arguments
    among its fixtures; there is no public name for it.
    """
    arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}  # noqa: SLF001 - see above
    return unwrap_asyncio_test(item.obj)(**arguments)


async def run_end_callbacks(item: pytest.Function) -> None:
    """Await the item's callbacks, which release resources that other episodes may need."""
    for callback in item.stash.get(AT_END, ()):
        await callback()


def run_coroutine_test(item: pytest.Function) -> None:
    """Run the test to completion, in a copy of the current context."""
    from ci_agent_eval.pytest_plugin.concurrency.session_loop import SessionLoop  # noqa: PLC0415 - synchronous suites need no asyncio

    SessionLoop.find(item.config).run(call_test(item), copy_context())


def prepare_coroutine_tests(session: pytest.Session) -> None:
    """Run the async tests of a session on our loop, if they are ours."""
    add_loop_members(session.items)
    if "pytest_asyncio" not in sys.modules:
        return
    from ci_agent_eval.pytest_plugin.concurrency.async_fixtures import (  # noqa: PLC0415 - only if it is used
        use_session_loop,
    )

    for item in session.items:
        if isinstance(item, pytest.Function) and is_on_our_loop(item):
            use_session_loop(item)


def run_test(item: pytest.Function) -> bool | None:
    """Run an `async def` test, unless another plugin's loop runs it."""
    if is_left_to_anyio(item.funcargs.get(BACKEND)):
        return None
    scheduler = get_parts(item.config).scheduler
    (run_coroutine_test if scheduler is None else scheduler.run)(item)
    return True
