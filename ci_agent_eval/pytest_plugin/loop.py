"""The event loop that async episodes of a process share, from the first one to the end.

Tool servers and connections of the engine live on it, so that they start once and not once
for each test. It is made when the first async episode comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

LOOP = pytest.StashKey["SessionLoop"]()


class SessionLoop:
    """One runner for all async episodes, and what is to be closed with it."""

    def __init__(self) -> None:
        # With a factory the runner does not put its loop in the place of the thread's current
        # one: that may be another plugin's, which would be lost unclosed.
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._closings: list[Callable[[], Awaitable[None]]] = []

    @classmethod
    def of(cls, config: pytest.Config) -> SessionLoop:
        """Return the process's loop; pytest closes it, however the session ends."""
        if LOOP not in config.stash:
            config.stash[LOOP] = cls()
            config.add_cleanup(config.stash[LOOP].close)
        return config.stash[LOOP]

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; Ctrl-C cancels it."""
        return self._runner.run(coroutine)

    @property
    def is_running(self) -> bool:
        """Whether the caller runs on this very loop."""
        try:
            return asyncio.get_running_loop() is self._runner.get_loop()
        except RuntimeError:
            return False

    def close_with(self, closing: Callable[[], Awaitable[None]]) -> None:
        """Await `closing` on the loop before it is closed; the latest first."""
        self._closings.append(closing)

    def close(self) -> None:
        """Close what lives on the loop, then the loop."""
        try:
            for closing in reversed(self._closings):
                self._runner.run(_awaited(closing))
        finally:
            self._runner.close()


async def _awaited(closing: Callable[[], Awaitable[None]]) -> None:
    await closing()
