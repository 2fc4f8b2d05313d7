"""What a run says and leaves is the same at every concurrency."""

from __future__ import annotations

import re
from textwrap import dedent

from tests.plugin.concurrency.test_outcomes import write_cases
from tests.plugin.conftest import SCRIPTED_CLOCK

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
