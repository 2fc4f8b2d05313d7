"""A suite whose episodes can tell who else is at work: by meeting, and by counting."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Suite

MEETING = '''
"""Where episodes meet: a deadline that only a broken run reaches, and no sleep."""

import asyncio
from contextlib import contextmanager

DEADLINE_S = 600

_barriers = {}


async def meet(parties, name="all"):
    """Wait until so many episodes wait here at once."""
    barrier = _barriers.setdefault(name, asyncio.Barrier(parties))
    async with asyncio.timeout(DEADLINE_S):
        await barrier.wait()


async def until(event):
    """Wait for what another episode sets."""
    async with asyncio.timeout(DEADLINE_S):
        await event.wait()


async def let_others_work(steps=20):
    """Give every other episode its chance to begin, and to go on."""
    for _ in range(steps):
        await asyncio.sleep(0)


class Crowd:
    """Counts who is in."""

    now = most = 0

    @contextmanager
    def among(self):
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            yield self
        finally:
            self.now -= 1
'''


@pytest.fixture
def suite(suite: Suite) -> Suite:
    """The same, with a module `meeting` to import; it is about when episodes run."""
    suite.pytester.makepyfile(meeting=MEETING)
    return suite.without_evidence()
