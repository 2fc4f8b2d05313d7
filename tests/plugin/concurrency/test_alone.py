"""What cannot run beside others runs alone; what is not to run is never started."""

from __future__ import annotations

HEAD = """
import asyncio
import pytest
from meeting import Crowd, let_others_work, meet

crowd = Crowd()
told = []

@pytest.fixture
def desk(bank): pass

@pytest.fixture
def bank(episode_alone): pass
"""

TOGETHER = """
@pytest.mark.parametrize("number", range(3))
async def test_together_{group}(episode, number):
    with crowd.among():
        await meet(3, "{group}")
        told.append("together {group}")
"""

TOLD = """
def test_told():
    expected = ["together 0"] * 3
    for group in range(1, {groups}):
        expected += ["alone"] + [f"together {{group}}"] * 3
    assert told == expected
"""

BODY = """
    with crowd.among():
        await let_others_work()
        assert crowd.most == 3
        assert crowd.now == 1
        told.append("alone")
"""


def run(suite, *alone, arguments=()):
    """Run each of these tests between two groups of three that run together."""
    tests = [HEAD, TOGETHER.format(group=0)]
    for number, test in enumerate(alone, start=1):
        tests.append(test.replace("test_alone", f"test_alone_{number}"))
        tests.append(TOGETHER.format(group=number))
    suite.write("\n".join([*tests, TOLD.format(groups=len(alone) + 1)]))
    ran = suite.run("--episode-concurrency=4", *arguments)
    ran.result.assert_outcomes(passed=4 + 4 * len(alone))
    return ran


def test_one_that_asks_for_what_there_is_once_or_says_so(suite):
    fixtures = (
        *("monkeypatch", "capsys", "capfd", "caplog", "recwarn"),
        *("record_xml_attribute", "episode_alone", "desk"),
    )
    alone = [
        *(f"async def test_alone(episode, {fixture}):{BODY}" for fixture in fixtures),
        f"@pytest.mark.episode(alone=True)\nasync def test_alone(episode):{BODY}",
        f"@pytest.mark.filterwarnings('ignore')\nasync def test_alone(episode):{BODY}",
        "def test_alone(episode):\n    assert crowd.now == 0\n    told.append('alone')",
        "def test_alone():\n    assert crowd.now == 0\n    told.append('alone')",
        f"""@pytest.mark.episode(alone=True)
class TestAlone:
  @pytest.mark.episode(scenario_id='a')
  async def test_alone(self, episode):{BODY}""",
    ]
    arguments = ("-o", "junit_family=xunit1", "-W", "ignore::pytest.PytestWarning")
    ran = run(suite, *alone, arguments=arguments)
    ran.result.stdout.fnmatch_lines(
        [
            (
                "note: 12 of the episodes run alone (2: it uses the fixture episode_alone; 2: its "
                "marker says alone=True; 1: it has a warnings filter of its own; and 7 other reasons)"
            )
        ]
    )


def test_tests_of_other_kinds_run_alone_and_the_note_says_what_to_do(suite):
    suite.write("""
        import os
        import unittest
        from unittest import mock
        import pytest
        from hypothesis import given, settings, strategies
        from meeting import Crowd, meet

        crowd = Crowd()

        @pytest.mark.parametrize("number", range(2))
        async def test_meet(episode, number):
            with crowd.among():
                await meet(2)

        @pytest.mark.anyio
        @pytest.mark.parametrize("anyio_backend", ["asyncio"])
        async def test_anyio(episode, anyio_backend):
            assert crowd.now == 0

        @pytest.mark.parametrize("number", range(3))
        def test_plain(episode, number): pass

        @mock.patch("os.getlogin", return_value="me")
        async def test_patched(getlogin, episode):
            assert os.getlogin() == "me"

        class TestDesk(unittest.IsolatedAsyncioTestCase):
            @pytest.mark.episode
            async def test_desk(self): pass

        @settings(max_examples=3)
        @given(strategies.integers())
        def test_property(episode, number): pass
    """)
    ran = suite.run("--episode-concurrency=4", "-W", "ignore")
    ran.result.assert_outcomes(passed=9)
    said = ran.result.stdout.str()
    assert "3: it is a plain `def` test: make it `async def`, or use -n" in said
    assert "1: `unittest.mock.patch` changes the whole process" in said


def test_what_patches_the_whole_process_runs_alone(suite):
    suite.pytester.makepyfile(
        freezegun="""
        import contextlib, functools

        @contextlib.contextmanager
        def freeze():
            yield

        def freeze_time(test):
            @functools.wraps(test)
            async def frozen(*args, **kw):
                return await test(*args, **kw)
            return frozen
        """
    )
    suite.write("""
        import pytest
        from freezegun import freeze, freeze_time

        @pytest.fixture
        def today():
            with freeze():
                yield

        async def test_fixture(episode, today): pass

        @freeze_time
        async def test_decorator(episode): pass

        async def test_body(episode):
            with freeze():
                pass

        @pytest.mark.vcr
        async def test_marker(episode): pass

        async def test_free(episode): pass
    """)
    ran = suite.run("--episode-concurrency=2", "-W", "ignore::pytest.PytestUnknownMarkWarning")
    reasons = "3: freezegun changes the whole process; 1: its marker vcr changes the whole process"
    ran.result.stdout.fnmatch_lines([f"note: 4 of the episodes run alone ({reasons})"])


def test_a_conversation_that_runs_alone_may_send_in_a_thread_of_its_own(suite):
    suite.write("""
        import asyncio
        from concurrent.futures import ThreadPoolExecutor
        from ci_agent_eval import conversation

        class Shop:
            async def respond(self, message):
                await asyncio.sleep(0)
                return "You said " + message

        @conversation("Refund", Shop)
        def test_refund(agent):
            with ThreadPoolExecutor(1) as pool:
                assert "tea" in pool.submit(agent.send, "tea").result(600).text
    """)
    suite.run("--episode-concurrency=2").result.assert_outcomes(passed=1)
