"""pytest-asyncio, in both modes: every episode runs on our loop, all other tests on its own."""

from __future__ import annotations

import pytest

ASYNCIO = "pytest_asyncio.plugin"
"""Its entry point has the name of a module of Python's, which `-p` would mark for rewriting."""

LOOPS = """
import asyncio
import pytest
import pytest_asyncio

def loop(): return asyncio.get_running_loop()

@pytest_asyncio.fixture
async def its_loop(): return loop()

@pytest.mark.asyncio
async def test_marked(episode, its_loop):
    assert loop() is its_loop
    with episode.turn("Hello") as turn:
        await asyncio.sleep(0)
        turn.reply("Hi")

@pytest.mark.asyncio
async def test_marked_fails(episode):
    await asyncio.sleep(0)
    assert 1 == 2

@pytest.mark.asyncio
@pytest.mark.episode
class TestDesk:
    async def test_checks(self, episode, its_loop):
        assert loop() is its_loop
        episode.check("polite", False)

@pytest.mark.asyncio
@pytest.mark.episode(iterations=2)
async def test_errors(its_loop):
    assert loop() is its_loop
    raise ConnectionError("refused")
"""

MARKED = {
    "test_marked": "passed",
    "test_marked_fails": "failed",
    "test_checks": "failed",
    "test_errors[1-of-2]": "error",
    "test_errors[2-of-2]": "error",
}

UNMARKED = """
loops = []

async def test_unmarked(episode):
    loops.append(loop())
    with episode.turn("Hello") as turn:
        await asyncio.sleep(0)
        turn.reply("Hi")

@pytest.mark.episode
async def test_unmarked_fails():
    loops.append(loop())
    assert 1 == 2

@pytest.mark.asyncio
async def test_its_own():
    assert loop() not in loops

@pytest.mark.asyncio
async def test_marked_too(episode):
    loops.append(loop())

def test_what_ran_them():
    assert len(loops) == 3
    assert len(set(loops)) == 1
"""

NEEDS_EVIDENCE = False


def run(suite, *arguments, **settings):
    suite.configure_asyncio(**settings)
    return suite.run(*arguments, plugins=(ASYNCIO,))


@pytest.mark.parametrize("mode", ["strict", "auto"])
@pytest.mark.parametrize("by_option", [True, False], ids=["option", "ini file"])
def test_episodes_run_on_our_loop_marked_or_not(suite, mode, by_option):
    suite.write(test_loops=LOOPS + UNMARKED)
    ran = run(suite, f"--asyncio-mode={mode}") if by_option else run(suite, asyncio_mode=mode)
    assert ran.status == 1, ran.output
    assert ran.outcomes == {
        **MARKED,
        "test_unmarked": "passed",
        "test_unmarked_fails": "failed",
        "test_marked_too": "passed",
    }
    assert ran.junit["test_what_ran_them"] == "passed", ran.output
    assert ran.junit["test_its_own"] == "passed", ran.output


def test_neither_loses_a_loop_of_the_other(suite):
    suite.write(
        test_loops="""
        import gc
        import pytest

        @pytest.mark.asyncio
        async def test_its(episode): pass

        async def test_ours(episode): pass

        def test_nothing_is_unclosed(): gc.collect()
        """
    )
    ran = run(suite, asyncio_mode="strict")
    assert ran.status == 0, ran.output


BROKEN_FIXTURE = """
import pytest
import pytest_asyncio

@pytest_asyncio.fixture
async def desk():
    raise OSError("no desk")

@pytest_asyncio.fixture
async def leaky():
    yield
    raise OSError("cannot clean up")

@pytest.mark.asyncio
async def test_setup(desk, episode): pass

@pytest.mark.asyncio
async def test_teardown(leaky, episode): pass
"""


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_what_breaks_in_its_fixtures_is_an_error_of_the_episode(suite, mode):
    suite.write(test_broken=BROKEN_FIXTURE)
    ran = run(suite, asyncio_mode=mode)
    assert ran.reasons["test_setup"].startswith("OSError: no desk (test_broken.py:7")
    assert ran.reasons["test_teardown"].startswith(
        "in teardown: OSError: cannot clean up (test_broken.py:12"
    )
    assert set(ran.outcomes.values()) == {"error"}
