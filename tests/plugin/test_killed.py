"""A process that dies, or is stopped, in the middle of an episode."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.pytest_plugin.opik.experiments import PROCESS_ENDED

NEEDS_EVIDENCE = False

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
    """And no results of the run before are left."""
    suite.write("def test_one(episode): pass")
    assert suite.run().results.episodes
    suite.write(dying("os.kill(os.getpid(), signal.SIGTERM)"))
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


DIES = "os.kill(os.getpid(), signal.SIGKILL)"
OTHERS = f"""
from ci_agent_eval import llm_episode, llm_unit

@llm_unit()
def test_unit(): {DIES}

@llm_episode()
def test_mine(): return {{"scenario_id": "mine", "assertions": [{{"name": "a", "passed": True}}]}}

@llm_episode()
def test_returning(): {DIES}
"""
EVALUATION = f"""
import os, pytest, signal

def test_kill():
    assert True
    {DIES}

def test_lives(): assert True

@pytest.fixture
def agent(): {DIES}

def test_no_report_at_all(agent): assert True
"""


def test_a_killed_worker_costs_its_test_and_no_other(suite):
    suite.write(dying(DIES) + OTHERS)
    suite.pytester.makepyfile(killed_eval=EVALUATION)
    ran = suite.run("-n2", "--eval", "--episode-artifact")
    assert ran.result.ret == pytest.ExitCode.TESTS_FAILED
    killed = {"test_two", "test_returning", "test_kill", "test_no_report_at_all"}
    episodes = ran.episodes
    assert {name for name, e in episodes.items() if e.outcome == "error"} == killed
    passed = {name for name, e in episodes.items() if e.outcome == "passed"}
    assert passed == {"test_one", "test_zree", "test_mine", "test_lives"}
    assert {episodes[name].reason for name in killed} == {LOST}
    ran.result.stdout.fnmatch_lines(["ERROR  test_suite.py::test_two: " + LOST])
    assert episodes["test_mine"].scenario_id == "mine"
    assert episodes["test_returning"].scenario_id == "test_suite.py::test_returning"
    artifact = json.loads((suite.pytester.path / ".opik/pytest_episode_report.json").read_text())
    record = {r["nodeid"]: r for r in artifact["results"]}["test_suite.py::test_returning"]
    assert record["episode"]["outcome"] == "error"
    assert (record["pytest_passed"], record["episode_passed"]) == (False, False)
    (unit,) = (r for r in ran.results.experiment.results if r.nodeid.endswith("::test_unit"))
    assert (unit.outcome, unit.reason) == ("error", PROCESS_ENDED)
    found = json.loads((ran.folder / "eval-results.json").read_text())["conversations"]
    assert [(c["name"], c["passed"], c.get("error")) for c in found] == [
        ("killed_eval.py::test_kill", False, LOST),
        ("killed_eval.py::test_lives", True, None),
        ("killed_eval.py::test_no_report_at_all", False, LOST),
    ]


def test_without_a_report_directory_an_evaluation_of_a_killed_worker_is_reported(pytester):
    """Where it could report anything at all."""
    pytester.makepyfile(killed_eval=EVALUATION)
    pytester.runpytest("killed_eval.py", "-n1", "--deselect=killed_eval.py::test_no_report_at_all")
    found = json.loads((pytester.path / "eval-results.json").read_text())["conversations"]
    assert [(c["name"], c["passed"], c.get("error")) for c in found] == [
        ("killed_eval.py::test_kill", False, LOST),
        ("killed_eval.py::test_lives", True, None),
    ]


def test_an_interruption_keeps_what_was_said_and_is_named_everywhere(suite):
    suite.write(dying("os.kill(os.getpid(), signal.SIGINT)"))
    expect_an_interruption(suite.run_apart(), "interrupted: KeyboardInterrupt", 2)
    suite.write(dying("pytest.exit('enough', returncode=0)"))
    expect_an_interruption(suite.run(), "interrupted: Exit", 0)


def expect_an_interruption(ran, reason, status):
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


def test_so_are_that_of_a_worker_that_could_not_report_and_that_of_a_setup(suite):
    suite.write(dying("pytest.exit('enough')"))
    ran = suite.run("-n2")
    assert ran.session.state == "interrupted"
    assert ran.episodes["test_two"].reason == "interrupted: Exit"
    ran.result.stdout.fnmatch_lines(["ERROR  test_suite.py::test_two: interrupted: Exit"])
    suite.write("""
        import pytest

        @pytest.fixture
        def server(): pytest.exit("no server")

        def test_one(episode, server): pass
    """)
    ran = suite.run()
    assert ran.episodes["test_one"].reason == "interrupted: Exit"
    ran.result.stdout.fnmatch_lines(["ERROR  test_suite.py::test_one: interrupted: Exit"])


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
