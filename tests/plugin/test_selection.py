"""Which episodes run: -k, -x, --lf, repeated paths; and reruns of one episode."""

from __future__ import annotations

import pytest

SUITE = """
import pytest

def test_a(episode): pass
def test_b(episode): assert False
def test_c(episode): pass
def test_plain(): pass
"""


@pytest.mark.parametrize(
    ("arguments", "selected", "ended"),
    [
        (["-k", "test_a or plain"], 1, ["test_a"]),
        (["-x"], 3, ["test_a", "test_b"]),
        (["--maxfail=1", "-k", "not test_a"], 2, ["test_b"]),
        (["test_suite.py::test_c", "test_suite.py::test_a"], 2, ["test_a", "test_c"]),
        (["--setup-only", "-k", "test_a"], 1, ["test_a"]),
    ],
    ids=["-k", "-x", "maxfail", "node ids", "setup-only"],
)
def test_selected_tells_what_was_to_run(suite, arguments, selected, ended):
    suite.write(SUITE)
    ran = suite.run(*arguments)
    assert ran.session.selected == selected
    assert ran.session.state == "finished"
    assert sorted(ran.episodes) == ended


def test_last_failed_runs_the_failed_episode_again(suite):
    suite.write(SUITE)
    suite.run()
    ran = suite.run("--lf")
    assert ran.session.selected == 1
    assert sorted(ran.episodes) == ["test_b"]


def test_set_up_but_not_called_is_skipped(suite):
    suite.write(SUITE)
    episode = suite.run("--setup-only", "-k", "test_a").episodes["test_a"]
    assert (episode.outcome, episode.reason) == ("skipped", "the test was set up but not called")


RERUNS = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    # What pytest-rerunfailures does, once.
    for attempt in (1, 2):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = any(report.failed for report in reports)
        if attempt == 1 and failed:
            for report in reports:
                report.outcome = "rerun" if report.failed else report.outcome
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        if not failed:
            break
        item._initrequest()
    return True
"""


def test_a_rerun_is_another_attempt(suite, workers):
    suite.write(
        """
        tries = []

        def test_flaky(episode):
            tries.append(1)
            episode.check("second time lucky", len(tries) == 2)
        """,
        conftest=RERUNS,
    )
    ran = suite.run(workers)
    assert [(e.attempt, e.outcome) for e in ran.results.episodes] == [(1, "failed"), (2, "passed")]
    ran.result.stdout.fnmatch_lines(["1 episode: 1 passed; 1 rerun"])


def test_the_same_test_twice_is_two_iterations(suite):
    suite.write(
        "def test_a(episode): pass",
        conftest="""
            def pytest_collection_modifyitems(items):
                items.append(type(items[0]).from_parent(items[0].parent, name=items[0].name))
        """,
    )
    ran = suite.run()
    assert [(e.nodeid, e.iteration) for e in ran.results.episodes] == [
        ("test_suite.py::test_a", 1),
        ("test_suite.py::test_a", 2),
    ]
    assert ran.session.selected == 2


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ([], 0),
        (["-k", "test_a or plain"], 2),
        (["--deselect", "test_suite.py::test_b"], 1),
        (["-m", "not episode", "-k", "not plain"], 0),
    ],
)
def test_deselected_episodes_are_counted(suite, workers, arguments, count):
    suite.write(SUITE)
    assert suite.run(workers, *arguments).session.deselected == count


@pytest.mark.parametrize("limit", ["-x", "--maxfail=1"])
def test_a_stop_at_a_limit_is_no_interruption(suite, workers, limit):
    suite.write(SUITE + "".join(f"\ndef test_{n}(episode): pass" for n in range(20)))
    session = suite.run(workers, limit).session
    assert session.state == "finished"
    assert session.stopped == "stopping after 1 failures"


def test_a_run_to_its_end_was_not_stopped(suite, workers):
    suite.write(SUITE)
    assert suite.run(workers).session.stopped is None
