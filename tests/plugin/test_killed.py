"""A process that dies, or is stopped, in the middle of an episode."""

from __future__ import annotations

import pytest


@pytest.fixture
def suite(suite):
    """These suites are about processes that die, and need no evidence."""
    return suite.without_evidence()


LOST = "the process ended before the episode did"


def dying(how: str) -> str:
    return f"""
import os, signal, pytest

def test_one(episode):
    episode.check("fine", True)

def test_two(episode):
    with episode.turn("Hello") as turn:
        turn.tool_call("lookup")
        {how}

def test_zree(episode): pass
"""


def test_what_had_ended_is_on_disk_and_what_had_not_says_so(suite):
    suite.write(dying("os._exit(0)"))
    ran = suite.run_apart()
    assert [(line.event, line.episode.outcome) for line in ran.journal] == [
        ("started", "error"),
        ("ended", "passed"),
        ("started", "error"),
    ]
    assert ran.journal[-1].episode.reason == LOST
    assert ran.session.state == "running"
    assert ran.session.selected == 3
    assert not (ran.folder / "results.json").exists()


def test_a_terminated_run_stays_running_and_leaves_no_results_of_the_run_before(suite, pytester):
    suite.write("def test_one(episode): pass")
    assert suite.run().results.episodes
    pytester.makepyfile(test_suite=dying("os.kill(os.getpid(), signal.SIGTERM)"))
    ran = suite.run_apart()
    assert ran.session.state == "running"
    assert not (ran.folder / "results.json").exists()


def test_a_killed_worker_costs_its_episode_and_no_other(suite):
    suite.write(dying("os.kill(os.getpid(), signal.SIGKILL)"))
    ran = suite.run_apart("-n2")
    assert {name: e.outcome for name, e in ran.episodes.items()} == {
        "test_one": "passed",
        "test_two": "error",
        "test_zree": "passed",
    }
    assert ran.episodes["test_two"].reason == LOST
    assert ran.result.ret == pytest.ExitCode.TESTS_FAILED
    ran.result.stdout.fnmatch_lines(["ERROR  test_suite.py::test_two: " + LOST])


@pytest.mark.parametrize(
    ("how", "reason", "status"),
    [
        ("os.kill(os.getpid(), signal.SIGINT)", "interrupted: KeyboardInterrupt", 2),
        ("pytest.exit('enough', returncode=0)", "interrupted: Exit", 0),
    ],
    ids=["SIGINT", "exit"],
)
def test_an_interruption_keeps_what_was_said_and_is_named_everywhere(suite, how, reason, status):
    suite.write(dying(how))
    ran = suite.run_apart()
    assert (ran.session.state, ran.session.exit_status) == ("interrupted", status)
    assert ran.session.selected == 3
    two = ran.episodes["test_two"]
    assert (two.outcome, two.reason) == ("error", reason)
    assert two.trajectory is not None
    assert [call.name for call in two.trajectory.tool_calls()] == ["lookup"]
    assert len(ran.results.episodes) == 2
    ran.result.stdout.fnmatch_lines([f"ERROR  test_suite.py::test_two: {reason}"])
    # It has not ended, and is not counted among those that have.
    assert [line.event for line in ran.journal] == ["started", "ended", "started", "started"]


def test_a_broken_line_of_a_journal_is_named(suite):
    suite.write("""
        def test_one(episode): pass

        def test_two(episode, request):
            folder = request.config.rootpath / "report" / "episodes"
            with (folder / "main.jsonl").open("a") as journal:
                journal.write("{broken\\n")
    """)
    ran = suite.run()
    assert len(ran.results.episodes) == 2
    (error,) = ran.session.collection_errors
    assert error.nodeid == "episodes/main.jsonl:4"


def test_so_they_do_over_a_worker_that_could_not_report(suite):
    suite.write(dying("pytest.exit('enough')"))
    ran = suite.run_apart("-n2")
    assert ran.session.state == "interrupted"
    assert ran.episodes["test_two"].reason == "interrupted: Exit"
    ran.result.stdout.fnmatch_lines(["ERROR  test_suite.py::test_two: interrupted: Exit"])


def test_an_interruption_of_the_setup_is_named_too(suite):
    suite.write("""
        import pytest

        @pytest.fixture
        def server(): pytest.exit("no server")

        def test_one(episode, server): pass
    """)
    ran = suite.run_apart()
    assert ran.episodes["test_one"].reason == "interrupted: Exit"
    ran.result.stdout.fnmatch_lines(["ERROR  test_suite.py::test_one: interrupted: Exit"])
