"""Which tests and fixtures run on the event loop that the episodes of the process share.

Episodes do, whichever async plugin would run them: their fixtures, agents and tool servers have
to live on one loop. A test of pytest-asyncio that shares its loop with such a fixture joins
them. Asked of every fixture of every project, so nothing is imported here that is not cheap.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.evaluation.evaluation_files import has_evaluation_name

BACKEND = "anyio_backend"
"""Fixture of anyio's plugin; a test that has it is run by anyio."""

SHARED = pytest.StashKey[set[Any]]()
"""In the config: the wider async fixtures' definitions that tests on our loop use."""

ON_OUR_LOOP = "ci_agent_eval_on_our_loop"
"""Attribute of a definition: its present value was made on our loop."""

_JOINED = pytest.StashKey[bool]()
"""In an item: it is no episode, and shares its loop with an async fixture of one."""


def get_test_function(item: pytest.Item) -> Callable[..., Any] | None:
    """Return the function of a test as its author wrote it, None where there is none."""
    function = getattr(item, "obj", None)
    return None if function is None else unwrap_asyncio_test(function)


get_test_function.__test__ = False  # type: ignore[attr-defined]  # it is no test


def unwrap_asyncio_test(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that pytest-asyncio has put a synchronous one in the place of."""
    while is_from_pytest_asyncio(function) and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def is_from_pytest_asyncio(function: Callable[..., Any]) -> bool:
    """Say whether a function stands in pytest-asyncio's own source."""
    module = getattr(function, "__globals__", {}).get("__name__", "")
    return str(module).partition(".")[0] == "pytest_asyncio"


def is_async(function: Callable[..., Any]) -> bool:
    """Say whether a test or fixture is a coroutine function or an async generator function."""
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def is_on_our_loop(item: pytest.Item) -> bool:
    """Say whether the fixtures of a test, and the test if it is async, run on our loop."""
    is_ours = (
        detection.EPISODE in item.stash
        or _JOINED in item.stash
        or detection.is_linked(item)
        or (item.config.option.eval_strict and has_evaluation_name(item.path, item.config))
    )
    return is_ours and not _is_of_another_plugin(item)


def _is_of_another_plugin(item: pytest.Item) -> bool:
    """Say whether a test is of an async framework that is not asyncio, or Hypothesis calls it."""
    is_anyio = BACKEND in getattr(item, "fixturenames", ())
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        return is_anyio or type(item) is not pytest.Function
    if item.get_closest_marker("anyio") is not None and not is_anyio:
        return True
    return any(item.get_closest_marker(name) for name in ("trio", "tornado"))


def is_left_to_anyio(backend: Any) -> bool:
    """Say whether anyio's backend is another than plain asyncio: `trio`, or a loop of its own."""
    name, options = backend if isinstance(backend, tuple) else (backend, {})
    return name is not None and (name != "asyncio" or any(options.values()))


def runs_coroutine(item: pytest.Item) -> bool:
    """Say whether this plugin runs the test, an `async def`, on its loop."""
    function = get_test_function(item)
    return function is not None and inspect.iscoroutinefunction(function) and is_on_our_loop(item)


def runs_fixture(definition: Any, request: pytest.FixtureRequest) -> bool:
    """Say whether this plugin runs an async fixture: one of a test on its loop, or of nobody."""
    if not is_async(unwrap_asyncio_test(definition.func)):
        return False
    # `request.node` is the test for fixtures of function scope alone.
    item: Any = request._pyfuncitem  # noqa: SLF001 - there is no public name
    if is_on_our_loop(item) or definition in request.config.stash.get(SHARED, ()):
        if BACKEND not in request.fixturenames:
            return True
        # By the test's own request: a wider fixture's may not ask for one of function scope.
        return not is_left_to_anyio(item._request.getfixturevalue(BACKEND))  # noqa: SLF001 - see above
    function = get_test_function(item)
    is_plain = function is None or not is_async(function)
    return is_plain and not _is_run_by_others(definition, request)


def _is_run_by_others(definition: Any, request: pytest.FixtureRequest) -> bool:
    """Say whether another plugin or a conftest runs the async fixture, or may do so."""
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
    """Refuse a test on our loop that has an async fixture made on another one.

    Another plugin's test was the first to ask for it, and nothing but a call of
    `request.getfixturevalue` tells that this one wants it too. Raises InputError.
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
    """Let the tests join that share a loop with async fixtures which episodes use."""
    members = {
        item: set(_iter_shared_async_fixtures(item)) for item in items if is_on_our_loop(item)
    }
    others = {
        item: found
        for item in items
        if item not in members
        and not _has_own_loop(item)
        and (found := set(_iter_shared_async_fixtures(item)))
    }
    while members:
        shared = next(iter(members)).config.stash.setdefault(SHARED, set())
        shared.update(*members.values())
        members = {item: found for item, found in others.items() if shared & found}
        for item in members:
            item.stash[_JOINED] = True
            del others[item]


def _has_own_loop(item: pytest.Item) -> bool:
    """Say whether no wider fixture shares the loop of an async test, if any plugin runs it."""
    function = get_test_function(item)
    if function is None or not is_async(function) or BACKEND in item.fixturenames:  # type: ignore[attr-defined]
        return False
    marker = item.get_closest_marker("asyncio")
    if marker is None:
        return True
    # Newer versions know the scope of a test's loop; older ones have it in the marker alone.
    scope = getattr(item, "_loop_scope", None) or marker.kwargs.get("scope", "function")
    return bool(scope == "function")


def _iter_shared_async_fixtures(item: pytest.Item) -> Iterator[Any]:
    info: Any = getattr(item, "_fixtureinfo", None)
    for definitions in info.name2fixturedefs.values() if info is not None else ():
        for definition in definitions:
            if definition.scope != "function" and is_async(unwrap_asyncio_test(definition.func)):
                yield definition
