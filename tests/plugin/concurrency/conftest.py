"""A suite whose episodes can tell who else is at work: by meeting, and by counting."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import SCRIPTED_CLOCK, Suite

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


PLAIN = [
    ("async def ", "def "),
    ("await ", ""),
    ("import asyncio\n", "import asyncio, threading, time\n"),
    ("asyncio.Event()", "threading.Event()"),
    ("asyncio.sleep(0)", "time.sleep(0)"),
    ("asyncio.sleep(", "time.sleep("),
    ("asyncio.to_thread(", "call("),
]
"""What makes a suite of async episodes one of plain episodes that run in threads."""


def make_plain(text: str) -> str:
    """Return the same suite with plain `def` episodes."""
    for found, instead in PLAIN:
        text = text.replace(found, instead)
    return text


class PlainSuite(Suite):
    """Writes every suite with plain `def` episodes, which run in threads."""

    def write(self, tests: str, conftest: str = SCRIPTED_CLOCK) -> None:
        super().write(make_plain(tests), conftest)


PLAIN_MEETING = (
    MEETING.partition("import asyncio")[0]
    + '''
import threading
import time
from contextlib import contextmanager

DEADLINE_S = 600

_lock = threading.RLock()
_barriers = {}


def meet(parties, name="all"):
    """Wait until so many episodes wait here at once."""
    with _lock:
        barrier = _barriers.setdefault(name, threading.Barrier(parties, timeout=DEADLINE_S))
    barrier.wait()


def until(event):
    """Wait for what another episode sets."""
    assert event.wait(DEADLINE_S)


def let_others_work(steps=20):
    """Give every other episode its chance to begin, and to go on."""
    for _ in range(steps):
        time.sleep(0)


class Crowd:
    """Counts who is in."""

    now = most = 0

    @contextmanager
    def among(self):
        with _lock:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            yield self
        finally:
            with _lock:
                self.now -= 1
'''
)


@pytest.fixture
def suite(suite: Suite) -> Suite:
    """The same, with a module `meeting` to import; it is about when episodes run."""
    suite.pytester.makepyfile(meeting=MEETING)
    return suite.without_evidence()


@pytest.fixture
def plain_suite(suite: Suite) -> Suite:
    """The same for plain episodes, which are declared thread-safe."""
    suite.pytester.makepyfile(meeting=PLAIN_MEETING)
    suite.pytester.makeini("[pytest]\nepisode_thread_safe = true")
    return PlainSuite(suite.pytester, suite.imported, suite.opting_out)


@pytest.fixture(params=["async", "plain"])
def any_suite(request: pytest.FixtureRequest) -> Suite:
    """Each test is for async episodes, and for plain ones in threads."""
    return request.getfixturevalue("suite" if request.param == "async" else "plain_suite")
