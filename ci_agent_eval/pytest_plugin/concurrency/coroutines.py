"""Running an `async def` test on the session's event loop."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any

import pytest

from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.concurrency.loop_members import (
    BACKEND,
    add_loop_members,
    is_left_to_anyio,
    is_on_our_loop,
    runs_coroutine,
    unwrap_asyncio_test,
)
from ci_agent_eval.pytest_plugin.concurrency.session_loop import SessionLoop

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

AT_END = pytest.StashKey[list[Callable[[], Awaitable[None]]]]()
"""What an item's fixtures let go of as soon as its test has ended, and before its teardown."""


def call_test(item: pytest.Function) -> Any:
    """Call the test with its fixtures; return what is to be awaited.

    `_fixtureinfo.argnames` is how pytest's own `pytest_pyfunc_call` tells the test's
    arguments from the other fixtures; there is no public name for it.
    """
    arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}  # noqa: SLF001 - see above
    return unwrap_asyncio_test(item.obj)(**arguments)


async def run_end_callbacks(item: pytest.Function) -> None:
    """Let go of what others may wait for."""
    for let_go in item.stash.get(AT_END, ()):
        await let_go()


def run_coroutine_test(item: pytest.Function) -> None:
    """Run what the test returns to its end, in a context that its fixtures have a say in."""
    SessionLoop.find(item.config).run(call_test(item), copy_context())


def register_coroutine_tests(session: pytest.Session) -> None:
    """Run the async tests of a session on our loop from now on, as far as they are ours."""
    session.config.pluginmanager.register(CoroutineTests(), "ci_agent_eval_coroutine_tests")
    add_loop_members(session.items)
    if "pytest_asyncio" not in sys.modules:
        return
    from ci_agent_eval.pytest_plugin.concurrency.asyncio_plugin import (  # noqa: PLC0415 - only where it is used
        use_session_loop,
    )

    for item in session.items:
        if isinstance(item, pytest.Function) and is_on_our_loop(item):
            use_session_loop(item)


class CoroutineTests:
    """Runs async tests on the loop of the episodes.

    A plugin object, registered when the tests are about to run: it is then asked before anyio's
    plugin, which asks to be the first as well.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Ignore what pytest-asyncio says of plain async fixtures: it does not run them here.

        pytest takes the filter back at the end of the item.
        """
        if item.get_closest_marker("asyncio") is not None and runs_coroutine(item):
            message = "asyncio test .* requested async @pytest.fixture"
            warnings.filterwarnings("ignore", message, pytest.PytestDeprecationWarning)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Run an `async def` test, unless its loop is to be another plugin's."""
        if not runs_coroutine(pyfuncitem) or is_left_to_anyio(pyfuncitem.funcargs.get(BACKEND)):
            return None
        lanes = pyfuncitem.config.stash.get(options.SCHEDULER, None)
        (run_coroutine_test if lanes is None else lanes.run)(pyfuncitem)
        return True
