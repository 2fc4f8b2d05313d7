"""Running an `async def` test on the session's event loop."""

from __future__ import annotations

import sys
import warnings
from contextvars import copy_context
from typing import Any

import pytest

from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.concurrency import AT_END
from ci_agent_eval.pytest_plugin.concurrency.loop_members import (
    BACKEND,
    add_loop_members,
    is_left_to_anyio,
    is_on_our_loop,
    runs_coroutine,
    unwrap_asyncio_test,
)

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


def register_coroutine_tests(session: pytest.Session) -> None:
    """Run the async tests of a session on our loop, if they are ours."""
    session.config.pluginmanager.register(CoroutineTests(), "ci_agent_eval_coroutine_tests")
    add_loop_members(session.items)
    if "pytest_asyncio" not in sys.modules:
        return
    from ci_agent_eval.pytest_plugin.concurrency.asyncio_plugin import (  # noqa: PLC0415 - only if it is used
        use_session_loop,
    )

    for item in session.items:
        if isinstance(item, pytest.Function) and is_on_our_loop(item):
            use_session_loop(item)


class CoroutineTests:
    """A plugin object that runs async tests on the episodes' loop.

    It is registered just before the tests run, so that it is called before anyio's plugin, which
    also wants to be first.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Ignore pytest-asyncio's warning about plain async fixtures, which run here."""
        if item.get_closest_marker("asyncio") is not None and runs_coroutine(item):
            message = "asyncio test .* requested async @pytest.fixture"
            warnings.filterwarnings("ignore", message, pytest.PytestDeprecationWarning)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Run an `async def` test, unless another plugin's loop runs it."""
        if not runs_coroutine(pyfuncitem) or is_left_to_anyio(pyfuncitem.funcargs.get(BACKEND)):
            return None
        scheduler = pyfuncitem.config.stash.get(options.SCHEDULER, None)
        (run_coroutine_test if scheduler is None else scheduler.run)(pyfuncitem)
        return True
