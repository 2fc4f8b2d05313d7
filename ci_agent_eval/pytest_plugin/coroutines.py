"""Running an `async def` test on the session's event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any

import pytest

from ci_agent_eval.pytest_plugin.loop import SessionLoop

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

AT_END = pytest.StashKey[list[Callable[[], Awaitable[None]]]]()
"""What an item's fixtures let go of as soon as its test has ended, and before its teardown."""


def called(item: pytest.Function) -> Any:
    """Call the test with its fixtures; return what is to be awaited.

    `_fixtureinfo.argnames` is how pytest's own `pytest_pyfunc_call` tells the test's
    arguments from the other fixtures; there is no public name for it.
    """
    arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}  # noqa: SLF001 - see above
    return item.obj(**arguments)


async def release(item: pytest.Function) -> None:
    """Let go of what others may wait for."""
    for let_go in item.stash.get(AT_END, ()):
        await let_go()


def run_coroutine_test(item: pytest.Function) -> None:
    """Run what the test returns to its end, in a context that its fixtures have a say in."""
    SessionLoop.of(item.config).run(called(item), copy_context())
