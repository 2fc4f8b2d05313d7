"""Episodes alone, at once, and the same results of both."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from tests.plugin.concurrency.test_outcomes import write_cases
from tests.plugin.conftest import SCRIPTED_CLOCK

# Up to N episodes at once: no fewer where there are as many, and never more.


MEET = """
import pytest
from meeting import Crowd, let_others_work, meet

crowd = Crowd()

@pytest.mark.parametrize("number", range(12))
async def test_meet(episode, number):
    with crowd.among():
        await let_others_work()
        await meet({parties})
        await let_others_work()

def test_at_last():
    assert (crowd.now, crowd.most) == (0, {parties})
"""


def test_the_ini_setting_says_it_too_and_the_option_overrides_it(suite):
    suite.pytester.makeini("[pytest]\nepisode_concurrency = 3")
    suite.write(MEET.format(parties=3))
    suite.run().result.assert_outcomes(passed=13)
    suite.write(MEET.format(parties=2))
    suite.run("--episode-concurrency=2").result.assert_outcomes(passed=13)


def test_without_it_they_run_one_by_one_and_nothing_is_said_of_it(suite):
    suite.write(MEET.format(parties=1) + "\nasync def test_alone(episode, monkeypatch): pass")
    ran = suite.run()
    ran.result.assert_outcomes(passed=14)
    assert "alone" not in ran.result.stdout.str().replace("test_alone", "")


def test_a_number_that_means_nothing_is_refused_before_anything_runs(suite):
    suite.pytester.makeini("[pytest]\nepisode_concurrency = many")
    suite.write("async def test_one(episode): pass")
    for said, arguments in [
        ("--episode-concurrency", ["--episode-concurrency=0"]),
        ("episode_concurrency", []),
    ]:
        ran = suite.run(*arguments)
        assert ran.result.ret == pytest.ExitCode.USAGE_ERROR
        ran.result.stderr.fnmatch_lines([f"*{said}*"])
        assert not (ran.folder / "results.json").exists()


def test_those_that_wait_for_their_turn_do_not_pile_up(suite):
    suite.write("""
        import asyncio
        import pytest
        from meeting import let_others_work

        begun = []

        async def test_slow(episode):
            while len(begun) < 2 * 4:
                await let_others_work()
            await let_others_work(500)
            assert len(begun) == 2 * 4

        @pytest.mark.parametrize("number", range(30))
        async def test_quick(episode, number):
            begun.append(number)

        def test_order():
            assert begun == list(range(30))
    """)
    suite.run("--episode-concurrency=2").result.assert_outcomes(passed=32)


def test_workers_have_as_many_each(suite):
    suite.write("""
        import pytest
        from meeting import meet

        @pytest.mark.parametrize("number", range(80))
        async def test_meet(episode, number):
            if number < 4:
                await meet(2)
    """)
    ran = suite.run("-n2", "--dist=load", "--episode-concurrency=4")
    ran.result.assert_outcomes(passed=80)
    assert len(ran.results.episodes) == 80


def test_what_shows_each_setup_sees_them_one_by_one(suite):
    suite.write(MEET.format(parties=1).replace("== (0, 1)", "in [(0, 1), (0, 0)]"))
    for option in ("--setup-show", "--setup-only", "--setup-plan"):
        ran = suite.run(option, "--episode-concurrency=4", "-k", "test_meet")
        shown = [line for line in ran.result.outlines if line.lstrip().startswith("SETUP")]
        assert len(shown) > 12, option
        assert ran.result.ret == 0


def test_iterations_run_beside_each_other(suite):
    suite.write("""
        from meeting import meet

        async def test_meet(episode):
            await meet(4)
    """)
    ran = suite.run("--episode-concurrency=4", "--aitest-iterations=4", "-p", "no:capture")
    ran.result.assert_outcomes(passed=4)
    assert [e.iteration for e in ran.results.episodes] == [1, 2, 3, 4]


# What cannot run beside others runs alone; what is not to run is never started.


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


# What a run says and leaves is the same at every concurrency.


VARYING = [
    (r"\b\d+\.\d+s\b", "TIME"),
    (r"0x[0-9a-f]+", "ADDRESS"),
    (r'(time|timestamp)="[^"]*"', r"\1"),
    (r"--basetemp=\S+", ""),
    (r"=+", "="),
    # Said of a concurrent run alone.
    (r"note: \d+ of the episodes run alone .*\n", ""),
    (r"created: \d+/\d+ workers.*", ""),
]


def settled(text: str) -> str:
    """Return a text without what no two runs have in common."""
    for found, instead in VARYING:
        text = re.sub(found, instead, text)
    return text


def left(ran) -> tuple[bytes, list[str]]:
    """Return the results of a run, and its cases in JUnit: workers report as they end."""
    junit = settled((ran.folder / "junit.xml").read_text("utf-8")).split("<testcase")[1:]
    cases = sorted(case.partition("</testsuite>")[0] for case in junit)
    return (ran.folder / "results.json").read_bytes(), cases


def test_the_same_bytes_over_workers(suite):
    suite.pytester.makeconftest(SCRIPTED_CLOCK)
    write_cases(suite, "asserts", "budgets", "conversation")
    expected = left(suite.run_apart())
    assert len(expected[1]) == 20
    for options in (["--episode-concurrency=4"], ["--dist=loadscope"], ["--dist=worksteal"]):
        assert left(suite.run_apart("-n2", *options)) == expected


def test_reports_come_in_the_order_of_the_run_and_the_journal_says_which_had_begun(suite):
    conftest = """
    import pytest

    told = []

    def pytest_runtest_logreport(report):
        told.append(f"{report.when} {report.nodeid} {report.outcome}")

    def pytest_sessionfinish(session):
        (session.config.rootpath / "told.txt").write_text("\\n".join(told))
    """
    suite.pytester.makeconftest(SCRIPTED_CLOCK + dedent(conftest))
    write_cases(suite, "setup", "teardown", "asserts")
    told, journals = [], []
    for concurrency in (1, 8):
        journals.append(suite.run(f"--episode-concurrency={concurrency}").journal)
        told.append((suite.pytester.path / "told.txt").read_text().splitlines())
    assert len(told[0]) == 64
    assert told[0] == told[1]
    ended = [[line.episode for line in j if line.event == "ended"] for j in journals]
    started = [[line.episode for line in j if line.event == "started"] for j in journals]
    assert [e.nodeid for e in started[0]] == [e.nodeid for e in started[1]]
    assert [e.outcome for e in ended[0]] == [e.outcome for e in ended[1]]
    first = [line.event for line in journals[1]].index("ended")
    assert first > 1, "none was started ahead"


def test_durations_are_those_of_the_episodes(suite):
    suite.write("""
        import asyncio
        import time
        import pytest

        @pytest.fixture
        def slow():
            time.sleep(0.2)

        async def test_long(episode):
            await asyncio.sleep(0.6)

        async def test_beside_it(slow, episode):
            await asyncio.sleep(0.3)
    """)
    ran = suite.run("--episode-concurrency=2", "--durations=0", "-vv")
    lines = [line.split() for line in ran.result.outlines if "test_suite.py::" in line]
    took = {
        (line[1], line[2].partition("::")[2]): float(line[0].removesuffix("s"))
        for line in lines
        if line[0].endswith("s")
    }
    assert took["call", "test_beside_it"] >= 0.3
    assert took["setup", "test_beside_it"] >= 0.2
    assert took["call", "test_long"] >= 0.6
