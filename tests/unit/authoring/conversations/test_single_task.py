"""All that a plain test's agent awaits runs in one task, which survives what is thrown at it."""

from __future__ import annotations

import asyncio

import pytest

from ci_agent_eval.authoring.conversations.single_task import SingleTaskRunner


@pytest.fixture
def run():
    """One loop that is run anew for each step, as a plain test's is."""
    with asyncio.Runner() as runner:

        async def whole(awaitable):
            return await awaitable

        one = SingleTaskRunner(lambda awaitable: runner.run(whole(awaitable)))
        yield one
        one.end()
        assert not asyncio.all_tasks(runner.get_loop())


async def task():
    return asyncio.current_task()


def test_each_awaitable_runs_in_the_same_task(run):
    first = run(task())
    assert run(task()) is first
    assert not first.done()
    run.end()
    assert first.done()


def test_what_is_raised_is_raised_where_it_was_asked_for(run):
    async def breaks():
        raise ConnectionError("no model")

    before = run(task())
    with pytest.raises(ConnectionError, match="no model"):
        run(breaks())
    assert run(task()) is before


class Hangs:
    """Work that says when it has begun; `wait` cancels the wait for it then, as Ctrl-C does."""

    def __init__(self, *, swallows):
        self.begun = asyncio.Event()
        self.swallows = swallows

    async def work(self):
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not self.swallows:
                raise
            return "swallowed"

    async def wait(self, awaitable):
        waiting = asyncio.ensure_future(awaitable)
        if not self.begun.is_set():
            await self.begun.wait()
            waiting.cancel()
        return await waiting


def test_a_wait_that_is_cancelled_cancels_the_work_and_not_the_task():
    with asyncio.Runner() as runner:
        hangs = Hangs(swallows=False)
        one = SingleTaskRunner(lambda awaitable: runner.run(hangs.wait(awaitable)))
        with pytest.raises(asyncio.CancelledError):
            one(hangs.work())
        first = one(task())
        assert one(task()) is first
        one.end()
        assert first.done()


def test_work_that_goes_on_when_it_is_cancelled_is_heard():
    with asyncio.Runner() as runner:
        hangs = Hangs(swallows=True)
        one = SingleTaskRunner(lambda awaitable: runner.run(hangs.wait(awaitable)))
        assert one(hangs.work()) == "swallowed"
        one.end()


def test_without_anything_to_await_there_is_no_task():
    SingleTaskRunner(_refuse).end()


def _refuse(_):
    raise AssertionError("no loop is needed")
