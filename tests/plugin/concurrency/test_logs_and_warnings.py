"""Logs and warnings are those of the episode that made them."""

from __future__ import annotations

import pytest

from tests.plugin.concurrency.test_at_once import settled
from tests.samples import run_sample

TALKS = """
import asyncio
import logging
import sys
import warnings

import pytest
from meeting import meet
from parties import PARTIES

log = logging.getLogger("desk")

def say(name, where):
    log.info("<%s %s>", name, where)
    log.debug("<%s %s debug>", name, where)

@pytest.fixture
def desk(request):
    say(request.node.name, "setup")
    yield
    say(request.node.name, "teardown")

@pytest.mark.parametrize("number", range(4))
async def test_meet(episode, desk, request, number):
    name = request.node.name
    say(name, "before")
    await meet(PARTIES, "one")
    say(name, "between")
    await asyncio.to_thread(say, name, "thread")
    await asyncio.get_running_loop().run_in_executor(None, say, name, "executor")
    mutable = [name]
    log.info("<%s>", mutable)
    mutable.clear()
    await meet(PARTIES, "two")
    try:
        raise ValueError(name)
    except ValueError:
        log.exception("<%s failed>", name)
    say(name, "after")
    assert number != 2

def test_plain(desk): pass
"""


def said_by(ran, suite):
    text = settled(ran.result.stdout.str())
    return [line for line in text.splitlines() if "note: " not in line and "runpytest" not in line]


@pytest.mark.parametrize(
    "options",
    run_sample(
        [
            (("--log-level=DEBUG", "-rA"),),
            (("--log-cli-level=INFO", "--log-file=run.log", "--log-file-level=DEBUG"),),
            (("--log-cli-level=INFO", "-s"),),
        ],
        {1},
    ),
    ids=" ".join,
)
def test_the_same_is_logged_at_every_concurrency(suite, options):
    told = []
    for parties in (1, 4):
        suite.pytester.makepyfile(parties=f"PARTIES = {parties}")
        suite.write(TALKS)
        format_ = ("-o", "log_format=%(name)s %(message)s", "-o", "log_cli_format=%(message)s")
        ran = suite.run(f"--episode-concurrency={parties}", *options, *format_)
        ran.result.assert_outcomes(passed=4, failed=1)
        file = suite.pytester.path / "run.log"
        logged = file.read_text().splitlines() if file.is_file() else []
        told.append((said_by(ran, suite), [line for line in logged if "<" in line]))
    assert any("<test_meet[2] between>" in line for part in told[1] for line in part)
    assert told[0] == told[1]


def test_a_record_has_the_time_and_the_task_at_which_it_was_made(suite):
    suite.write("""
        import asyncio
        import logging
        import pytest
        from meeting import meet

        log = logging.getLogger("desk")
        seen = []

        class Handler(logging.Handler):
            def emit(self, record): seen.append(record.getMessage())

        log.addHandler(Handler())

        @pytest.mark.parametrize("number", range(2))
        async def test_meet(episode, number):
            log.warning("one %d", number)
            await meet(2)
            log.warning("two %d", number)

        def test_a_handler_of_the_suite_itself_has_them_at_once():
            assert sorted(seen[:2]) == ["one 0", "one 1"]
            assert sorted(seen[2:]) == ["two 0", "two 1"]
    """)
    suite.run("--episode-concurrency=2").result.assert_outcomes(passed=3)


WARNS = """
import asyncio
import warnings
import pytest
from meeting import meet

@pytest.fixture
def desk(request):
    warnings.warn(f"setup of {request.node.name}")
    yield
    warnings.warn(f"teardown of {request.node.name}")

@pytest.mark.parametrize("number", range(3))
async def test_meet(episode, desk, request, number):
    await meet(PARTIES)
    warnings.warn(f"call of {request.node.name}")
    await asyncio.to_thread(warnings.warn, f"thread of {request.node.name}")
    await asyncio.sleep(0)
    warnings.warn("the same of all", DeprecationWarning)

async def test_quiet(episode): pass
"""

SOME = ("-W", "ignore:thread of", "-W", "error:call of test_meet.1")


def test_the_same_warnings_at_every_concurrency(suite):
    told = []
    for parties in (1, 3):
        suite.write(WARNS.replace("PARTIES", str(parties)))
        ran = suite.run_apart(f"--episode-concurrency={parties}", *SOME)
        told.append(said_by(ran, suite))
    assert told[0] == told[1]
    assert "warnings summary" in " ".join(told[1])


def test_what_is_never_awaited_is_warned_of_in_its_own_test(suite):
    suite.write("""
        import asyncio
        import gc
        import pytest
        from meeting import meet

        async def forgotten(): pass

        async def test_forgets(episode):
            await meet(2)
            forgotten()
            gc.collect()

        async def test_tidy(episode):
            await meet(2)
    """)
    ran = suite.run_apart("--episode-concurrency=2")
    ran.result.assert_outcomes(passed=2, warnings=1)
    ran.result.stdout.fnmatch_lines(["test_suite.py::test_forgets", "*was never awaited*"])
