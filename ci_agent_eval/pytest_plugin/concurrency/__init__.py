"""Concurrent episodes: several on the session's event loop, reported one by one.

pytest's protocol of an item is unchanged: setup, call, teardown and their reports, in the order of
the run, with every plugin's hooks. Only the time at which an episode runs changes: the next async
episodes are started ahead, each with its own fixtures and its own task; the current item awaits its
task while the others continue.
"""

from collections.abc import Awaitable, Callable

import pytest

INTERRUPTIONS = (KeyboardInterrupt, pytest.exit.Exception)
"""What ends the run at once: Ctrl-C, or a call of `pytest.exit`."""

AT_END = pytest.StashKey[list[Callable[[], Awaitable[None]]]]()
"""Callbacks of an item's fixtures, awaited when its test has ended and before its teardown."""
