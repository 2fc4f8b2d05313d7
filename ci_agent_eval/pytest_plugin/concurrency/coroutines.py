"""Running an `async def` test on the session's event loop."""

from __future__ import annotations

import sys
from contextvars import copy_context
from typing import Any

import pytest

from ci_agent_eval.pytest_plugin.concurrency import AT_END
from ci_agent_eval.pytest_plugin.concurrency.loop_members import (
    BACKEND,
    add_loop_members,
    is_left_to_anyio,
    is_on_our_loop,
    unwrap_asyncio_test,
)
from ci_agent_eval.pytest_plugin.parts import get_parts

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
    from ci_agent_eval.pytest_plugin.concurrency.asyncio_plugin import (  # noqa: PLC0415 - only if it is used
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
