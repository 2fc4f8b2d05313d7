"""What an episode prints is its own, in each phase and whatever captures it."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from tests.samples import run_sample

PRINTS = '''
import asyncio
import functools
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from meeting import meet

class Copying(ThreadPoolExecutor):
    """Takes the caller's context along, as asyncio.to_thread does."""

    def submit(self, function, /, *args, **kwargs):
        import contextvars
        context = contextvars.copy_context()
        return super().submit(functools.partial(context.run, function), *args, **kwargs)

def say(name, where):
    print(f"<{name} {where}>")
    print(f"<{name} {where} err>", file=sys.stderr)

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
    sys.stdout.write(f"<{name} ")
    await meet(PARTIES, "two")
    sys.stdout.write("written>")
    sys.stdout.writelines([f"<{name} line 1>", f"<{name} line 2>"])
    sys.stdout.flush()
    sys.stdout.buffer.write(f"<{name} bytes \\u00fc>".encode())
    sys.stdout.flush()
    await asyncio.to_thread(say, name, "to_thread")
    loop = asyncio.get_running_loop()
    with Copying() as executor:
        await loop.run_in_executor(executor, say, name, "executor")
    await asyncio.gather(*(said(name, n) for n in range(2)))
    await loop.run_in_executor(None, say, name, "default executor")
    await meet(PARTIES, "three")
    say(name, "after")

async def said(name, number):
    await asyncio.sleep(0)
    say(name, f"task {number}")

def test_plain(desk, request): say(request.node.name, "plain")
'''

CAPTURES = ("fd", "sys", "tee-sys")
WHERE = [
    "before",
    "between",
    "written",
    "line 1",
    "line 2",
    "bytes \u00fc",
    "to_thread",
    "executor",
    "task 0",
    "task 1",
    "default executor",
    "after",
]


@pytest.mark.parametrize(
    ("capture", "parties"), run_sample([(c, n) for c in CAPTURES for n in (4, 1)], {0, 2})
)
def test_it_is_told_with_its_own_test(suite, capture, parties):
    suite.write(PRINTS.replace("PARTIES", str(parties)))
    arguments = (f"--episode-concurrency={parties}", f"--capture={capture}")
    ran = suite.run(*arguments, "-o", "junit_logging=all")
    ran.result.assert_outcomes(passed=5)
    found = {}
    for case in ET.parse(ran.folder / "junit.xml").iter("testcase"):
        found[case.attrib["name"]] = {
            kind: [line for line in (case.findtext(kind) or "").splitlines() if line[:1] == "<"]
            for kind in ("system-out", "system-err")
        }
    for number in range(4):
        name = f"test_meet[{number}]"
        out = "".join(found[name]["system-out"])
        expected = ["setup", *WHERE, "teardown"]
        assert out == "".join(f"<{name} {where}>" for where in expected)
        err = "".join(found[name]["system-err"])
        printed = [w for w in expected if w not in ("written", "line 1", "line 2", "bytes \u00fc")]
        assert err == "".join(f"<{name} {where} err>" for where in printed)
    assert found["test_plain"]["system-out"] == [
        f"<test_plain {where}>" for where in ("setup", "plain", "teardown")
    ]


STREAMS = """
import sys

def pytest_configure(config):
    config.add_cleanup(check)  # it is called after the plugin's, which are added later

def check():
    assert "Routed" not in type(sys.stdout).__name__
    assert "Routed" not in type(sys.stderr).__name__
    print("the streams are pytest's")
"""


@pytest.mark.parametrize("capture", run_sample([("no",), ("tee-sys",)], {0}))
def test_without_capture_each_is_printed_whole_and_in_order(suite, capture):
    texts = []
    for parties in (1, 4):
        suite.write(PRINTS.replace("PARTIES", str(parties)), conftest=STREAMS)
        ran = suite.run(f"--episode-concurrency={parties}", f"--capture={capture}")
        ran.result.assert_outcomes(passed=5)
        texts.append([line for line in ran.result.outlines if "<" in line])
        ran.result.stdout.fnmatch_lines(["*the streams are pytest's"])
    assert texts[0] == texts[1]


def test_what_is_said_on_its_turn_is_seen_at_once(suite):
    """Whoever watches a slow one with -s has not to wait for its end."""
    suite.write("""
        import os
        import pytest
        from meeting import let_others_work, meet

        async def test_first(episode):
            await meet(2)
            print("<first>", flush=True)

            await let_others_work()
            os.write(1, b"<below>\\n")

        async def test_second(episode):
            await meet(2)
            print("<second>")
            await let_others_work()
    """)
    ran = suite.run_apart("--episode-concurrency=2", "-s")
    ran.result.assert_outcomes(passed=2)
    text = ran.result.stdout.str()
    assert text.index("<first>") < text.index("<below>") < text.index("<second>")


def test_what_a_started_one_printed_is_told_though_its_setup_failed(suite):
    suite.write("""
        import pytest
        from meeting import meet

        @pytest.fixture
        def desk(request):
            print("<opening>")
            raise OSError("jammed")

        async def test_first(episode): pass

        async def test_second(desk, episode): pass
    """)
    ran = suite.run("--episode-concurrency=2", "-o", "junit_logging=all")
    ran.result.assert_outcomes(passed=1, errors=1)
    ran.result.stdout.fnmatch_lines(["*Captured stdout setup*", "<opening>"])


def test_a_stream_that_a_test_replaces_for_a_while_stays_its_own(suite):
    suite.write("""
        import contextlib
        import io
        import pytest
        from meeting import let_others_work

        @pytest.mark.parametrize("number", range(3))
        async def test_redirects(episode, number):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                print("mine", number)
            assert out.getvalue() == f"mine {number}\\n"
            print(f"<after {number}>")
            await let_others_work()
    """)
    ran = suite.run("--episode-concurrency=3", "-rA")
    ran.result.assert_outcomes(passed=3)
    text = ran.result.stdout.str()
    assert [text.count(f"<after {number}>") for number in range(3)] == [1, 1, 1]
