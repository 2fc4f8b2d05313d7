"""Running an `async def` test on the session's event loop."""

from __future__ import annotations

import pytest

from ci_agent_eval.pytest_plugin.loop import SessionLoop

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent


def run_coroutine_test(item: pytest.Function) -> None:
    """Call the test with its fixtures and run what it returns to its end.

    `_fixtureinfo.argnames` is how pytest's own `pytest_pyfunc_call` tells the test's
    arguments from the other fixtures; there is no public name for it.
    """
    arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}  # noqa: SLF001 - see above
    SessionLoop.of(item.config).run(item.obj(**arguments))
