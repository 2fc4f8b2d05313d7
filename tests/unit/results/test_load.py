from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ci_agent_eval.analysis.loaded_results import LoadedResults
from ci_agent_eval.contract.results import CollectionError, Session
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.load import load_results
from ci_agent_eval.results.runs import check_exit_status
from ci_agent_eval.results.spool import EpisodeSpool, write_results
from tests.builders import (
    episode,
    failing,
    journal_line,
    junit_case,
    junit_case_of,
    junit_xml,
    write_run,
)
from tests.tables import each_row


def kinds(found: LoadedResults) -> list[tuple[str, str, bool]]:
    return [(f.kind, f.where, f.blocking) for f in found.findings]


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        (root / f"{name}.xml").write_text(text, encoding="utf-8")


def test_a_run_is_loaded_and_its_cases_are_joined(tmp_path: Path) -> None:
    good, bad = episode("good"), failing("bad")
    junit = junit_xml(
        junit_case_of(good),
        junit_case_of(bad, "<failure/>"),
        junit_case(),
        junit_case("<failure message='no'/>", name="test_plain"),
        tests="4",
        failures="2",
    )
    write_run(tmp_path / "out", good, bad, junit=junit)
    found = load_results(["out"], [], root=tmp_path)
    assert [facts.scenario_id for facts in found.episodes] == ["bad", "good"]
    assert (found.tests.tally.passed, found.tests.tally.failed) == (1, 1)
    assert [case.name for case in found.tests.failing] == ["test_plain"]
    assert [(s.path, s.kind, s.cases, s.passed, s.failures) for s in found.sources] == [
        ("junit.xml", "junit", 4, 2, 2),
        ("results.json", "episodes", 2, 1, 1),
    ]
    assert found.findings == ()
    assert [session.state for session in found.sessions] == ["finished"]


def test_a_cut_junit_file_is_one_finding_and_not_one_for_each_lost_case(tmp_path: Path) -> None:
    everything = [episode("a"), episode("b"), episode("c")]
    junit = junit_xml(*(junit_case_of(item) for item in everything))
    write_run(tmp_path / "out", *everything, junit=junit[: junit.index("test_b")])
    assert kinds(load_results(["out"], [], root=tmp_path)) == [
        ("unreadable_file", "out/junit.xml:2", True)
    ]


def test_lost_cases_block(tmp_path: Path) -> None:
    write(tmp_path, a=junit_xml(junit_case(), tests="2"))
    assert kinds(load_results([], ["a.xml"], root=tmp_path)) == [
        ("declared_counts_differ", "a.xml", True)
    ]


def test_an_unreadable_file_is_named_and_the_rest_is_reported(tmp_path: Path) -> None:
    write(tmp_path, bad="<testsuite><testcase/>\n<testcase", good=junit_xml(junit_case()))
    found = load_results([], ["*.xml"], root=tmp_path)
    assert kinds(found) == [("unreadable_file", "bad.xml:2", True)]
    assert found.tests.tally.passed == 2
    assert [(s.path, s.cases, s.readable) for s in found.sources] == [
        ("bad.xml", 1, False),
        ("good.xml", 1, True),
    ]


def test_a_repaired_file_is_told_and_does_not_block(tmp_path: Path) -> None:
    write(tmp_path, a=junit_xml(junit_case("<system-out>\x1b[0m</system-out>")))
    assert kinds(load_results([], ["a.xml"], root=tmp_path)) == [("repaired_file", "a.xml", False)]


def test_nothing_at_all_is_a_finding(tmp_path: Path) -> None:
    write_run(tmp_path / "out")
    assert kinds(load_results(["out"], [], root=tmp_path)) == [("no_results", "", True)]
    assert kinds(load_results(["*.json"], [], root=tmp_path)) == [
        ("no_results", "", True),
        ("no_results", "*.json", True),
    ]


def test_a_run_does_not_lend_itself_the_results_of_a_folder_below(tmp_path: Path) -> None:
    write_run(tmp_path / "out", session=Session(state="finished", selected=0, exit_status=5))
    (tmp_path / "out/junit.xml").write_text(junit_xml(), encoding="utf-8")
    write_run(tmp_path / "out/old", episode(), junit=junit_xml(junit_case_of(episode())))
    found = load_results([], [], root=tmp_path, runs=[Path("out")])
    assert (found.episodes, kinds(found)) == ((), [("no_results", "", True)])


def test_a_run_that_left_no_junit_file_is_a_finding(tmp_path: Path) -> None:
    write_run(tmp_path / "out", episode())
    found = load_results([], [], root=tmp_path, runs=[tmp_path / "out"])
    assert kinds(found) == [("no_results", "session.json", True)]
    assert "no junit.xml" in found.findings[0].message
    assert load_results(["out"], [], root=tmp_path).findings == ()


def test_a_runs_cases_are_held_against_its_episodes(tmp_path: Path) -> None:
    write_run(tmp_path / "out", episode(), junit=junit_xml(junit_case_of(failing())))
    assert load_results([], [], root=tmp_path, runs=[Path("out")]).findings == ()
    lost = junit_xml(junit_case_of(episode()), junit_case_of(episode("lost")))
    write_run(tmp_path / "out", episode(), junit=lost)
    found = load_results([], [], root=tmp_path, runs=[Path("out")])
    assert kinds(found) == [("disagreement", "tests/test_refunds.py::test_lost", True)]


EMPTY = {
    "nothing": ((), None),
    "nothing found": ((), 5),
    "skipped": ((episode("s", outcome="skipped"),), 0),
    "errored": ((episode("s", outcome="error"),), 0),
    "found nothing, it says": ((episode("s"),), 5),
}


@each_row(("episodes", "status"), EMPTY.values(), ids=EMPTY)
def test_each_run_must_prove_something(episodes, status, tmp_path: Path) -> None:
    write_run(tmp_path / "out/good", episode())
    session = Session(state="finished", selected=len(episodes), exit_status=status)
    write_run(tmp_path / "out/none", *episodes, session=session)
    found = load_results(["out"], [], root=tmp_path)
    assert kinds(found) == [("no_results", "out/none/session.json", True)]


@each_row("case", [junit_case(), junit_case("<failure/>")])
def test_a_run_of_plain_tests_proves_something(case: str, tmp_path: Path) -> None:
    write_run(tmp_path / "out/good", episode())
    write_run(tmp_path / "out/plain", junit=junit_xml(case))
    assert load_results(["out"], [], root=tmp_path).findings == ()
    (tmp_path / "out/plain/junit.xml").rename(tmp_path / "elsewhere.xml")
    assert load_results(["out"], ["elsewhere.xml"], root=tmp_path).findings == ()


def test_a_run_of_skipped_tests_proves_nothing(tmp_path: Path) -> None:
    write_run(tmp_path / "out/good", episode(), junit=junit_xml(junit_case_of(episode())))
    write_run(tmp_path / "out/plain", junit=junit_xml(junit_case("<skipped/>")))
    assert kinds(load_results(["out"], [], root=tmp_path)) == [
        ("no_results", "out/plain/session.json", True)
    ]


def test_an_episode_takes_no_case_of_another_project(tmp_path: Path) -> None:
    bad = failing("one", nodeid="tests/test_a.py::test_one", gate="advisory")
    write_run(tmp_path / "A", bad, junit=junit_xml(junit_case_of(bad, "<failure/>")))
    (tmp_path / "B").mkdir()
    case = junit_case("<failure message='no'/>", classname="tests.test_a", name="test_one")
    (tmp_path / "B/unit.xml").write_text(junit_xml(case), encoding="utf-8")
    for results in (["A"], ["A/results.json"]):
        found = load_results(results, ["B/unit.xml"], root=tmp_path)
        assert [case.message for case in found.tests.failing] == ["no"]
        assert found.tests.tally.failed == 1
    # With our property it claims to be the episode's: one too many of them is told.
    (tmp_path / "B/unit.xml").write_text(
        junit_xml(junit_case_of(bad, "<failure/>")), encoding="utf-8"
    )
    found = load_results(["A"], ["B/unit.xml"], root=tmp_path)
    assert kinds(found) == [("disagreement", "tests/test_a.py::test_one", True)]


def test_files_of_one_run_may_be_named_one_by_one(tmp_path: Path) -> None:
    bare = junit_case(
        "<failure/>", classname="tests.test_refunds", name="test_b"
    )  # its worker died before it could write our property
    junit = junit_xml(junit_case_of(episode("a")), bare)
    write_run(tmp_path / "R", episode("a"), failing("b"), junit=junit)
    found = load_results(["R/results.json"], ["R/junit.xml"], root=tmp_path)
    assert (found.findings, found.tests.tally.total) == ((), 0)
    # Elsewhere only the property says whose case it is.
    (tmp_path / "R/junit.xml").rename(tmp_path / "moved.xml")
    found = load_results(["R/results.json"], ["moved.xml"], root=tmp_path)
    assert kinds(found) == [("disagreement", "tests/test_refunds.py::test_b", True)]
    assert found.tests.tally.failed == 1


STATUSES = [
    (Session(state="finished", exit_status=0), 0, None),
    (Session(state="finished", exit_status=1), 1, None),
    (Session(state="finished", exit_status=5), 5, None),
    (Session(state="finished", exit_status=0, watched=True), None, "interrupted"),
    (Session(state="running", watched=True), None, None),
    (Session(state="finished", exit_status=1), None, None),
    (Session(state="finished", exit_status=0), 1, "disagreement"),
    (Session(state="finished", exit_status=1), 0, "disagreement"),
    (Session(state="interrupted", exit_status=2), 137, "disagreement"),
    (Session(state="finished", exit_status=7), 7, "interrupted"),
    (Session(state="finished"), 139, "interrupted"),
    # Said already by what is read of the session:
    (Session(state="running"), 137, None),
    (Session(state="finished", exit_status=3), 3, None),
    (
        Session(
            state="finished",
            exit_status=2,
            collection_errors=(CollectionError(nodeid="a.py", message="no"),),
        ),
        2,
        None,
    ),
]


@each_row(("session", "status", "kind"), STATUSES)
def test_the_process_must_end_as_its_session_says(session, status, kind) -> None:
    found = check_exit_status(session.model_copy(update={"process_status": status}))
    assert [(f.kind, f.where, f.blocking) for f in found] == (
        [(kind, "pytest", True)] if kind else []
    )


def test_no_pattern_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--results, --junit, or both"):
        load_results([], [], root=tmp_path)


def test_a_killed_run_reports_what_finished(tmp_path: Path) -> None:
    lost = episode("c", outcome="error", reason="interrupted")
    journal = {
        "gw0.jsonl": [
            journal_line(lost.model_copy(update={"scenario_id": "a"}), "started"),
            journal_line(episode("a", nodeid=lost.nodeid)),
            journal_line(lost, "started"),
        ],
        "gw1.jsonl": [journal_line(failing("b")), journal_line(episode("d"), "started")[:-30]],
    }
    session = Session(state="running", selected=7)
    write_run(tmp_path / "out", results=False, session=session, journal=journal)
    found = load_results(["out"], [], root=tmp_path)
    assert [(f.scenario_id, f.outcome) for f in found.episodes] == [
        ("a", "passed"),
        ("b", "failed"),
        ("c", "error"),
    ]
    ((kind, where, blocking),) = kinds(found)
    assert (kind, where, blocking) == ("interrupted", "session.json", True)
    assert "2 of 7 selected episodes finished" in found.findings[0].message


def test_results_of_an_interrupted_run_give_way_to_its_journal(tmp_path: Path) -> None:
    journal = {"gw0.jsonl": [journal_line(episode("new"))]}
    session = Session(state="interrupted", selected=2)
    write_run(tmp_path / "out", episode("old"), session=session, journal=journal)
    found = load_results(["out"], [], root=tmp_path)
    assert [f.scenario_id for f in found.episodes] == ["new"]
    assert [f.kind for f in found.findings] == ["interrupted"]


@each_row(
    "session",
    [
        Session(state="finished", selected=3),
        Session(state="finished", selected=1, exit_status=3),
        Session(state="running", selected=1),
    ],
)
def test_a_run_that_did_not_run_everything_is_interrupted(session, tmp_path: Path) -> None:
    write_run(tmp_path / "out", episode(), session=session)
    found = load_results(["out"], [], root=tmp_path)
    assert kinds(found) == [("interrupted", "session.json", True)]
    assert len(found.episodes) == 1


def test_retries_are_not_more_episodes_than_were_selected(tmp_path: Path) -> None:
    session = Session(state="finished", selected=2)
    tries = [episode(attempt=1, outcome="failed"), episode(attempt=2)]
    write_run(tmp_path / "out", *tries, session=session)
    assert [f.kind for f in load_results(["out"], [], root=tmp_path).findings] == ["interrupted"]


def test_collection_errors_are_findings_each(tmp_path: Path) -> None:
    errors = tuple(CollectionError(nodeid=f"t{n}.py", message="ImportError") for n in (1, 2))
    session = Session(state="finished", exit_status=2, collection_errors=errors)
    write_run(tmp_path / "out", episode(), session=session)
    assert kinds(load_results(["out"], [], root=tmp_path)) == [
        ("collection_error", "t1.py", True),
        ("collection_error", "t2.py", True),
    ]


@each_row(
    "text",
    [
        "",
        "{}",
        '{"state": "finished", "x": 1}',
        '{"state": "running", "state": "finished"}',
        "\xff",
    ],
)
def test_a_session_that_cannot_be_read_is_named(text: str, tmp_path: Path) -> None:
    write_run(tmp_path / "out", episode())
    (tmp_path / "out/session.json").write_text(text, encoding="utf-8")
    found = load_results(["out"], [], root=tmp_path)
    assert kinds(found) == [("unreadable_file", "out/session.json", True)]
    assert len(found.episodes) == 1


def test_the_same_episode_in_two_shards_is_a_duplicate(tmp_path: Path) -> None:
    write_run(tmp_path / "out/1", episode(), episode("b"))
    write_run(tmp_path / "out/2", failing())
    found = load_results(["out"], [], root=tmp_path)
    assert [(f.scenario_id, f.outcome) for f in found.episodes] == [
        ("b", "passed"),
        ("refund", "passed"),
    ]
    assert kinds(found) == [("duplicate", "out/2/results.json", True)]
    assert "out/1/results.json" in found.findings[0].message


def test_the_same_episode_twice_in_a_file_is_a_duplicate(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(journal_line(episode()) * 2, encoding="utf-8")
    assert kinds(load_results(["a.jsonl"], [], root=tmp_path)) == [("duplicate", "a.jsonl", True)]


def test_repeats_that_name_no_iteration_are_the_iterations(tmp_path: Path) -> None:
    lines = [{"scenario_id": "a", "thread_id": str(n)} for n in range(3)]
    (tmp_path / "a.json").write_text(json.dumps(lines), encoding="utf-8")
    found = load_results(["a.json"], [], root=tmp_path)
    assert [f.iteration for f in found.episodes] == [1, 2, 3]
    assert found.findings == ()


def test_a_named_journal_with_unfinished_episodes_is_interrupted(tmp_path: Path) -> None:
    lines = journal_line(episode("a")) + journal_line(episode("b", outcome="error"), "started")
    (tmp_path / "a.jsonl").write_text(lines, encoding="utf-8")
    assert kinds(load_results(["a.jsonl"], [], root=tmp_path)) == [("interrupted", "a.jsonl", True)]


def test_bad_episodes_are_findings_and_do_not_flood(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"scenario_id": "a"}\n' + "{}\n" * 50, encoding="utf-8")
    found = load_results(["a.jsonl"], [], root=tmp_path)
    assert len(found.episodes) == 1
    assert len(found.findings) == 21
    assert "a.jsonl:2" in {f.where for f in found.findings}
    assert "and 30 more episodes that cannot be read" in {f.message for f in found.findings}
    assert [source.readable for source in found.sources] == [False]


def test_the_order_of_patterns_does_not_matter(tmp_path: Path) -> None:
    write_run(tmp_path / "1", episode("a"), failing("b"))
    write_run(tmp_path / "2", failing("a"), episode("c"))
    bad = junit_case("<failure/>", name="z") + junit_case("<error/>", name="a")
    write(tmp_path, x=junit_xml(bad), y=junit_xml(bad, tests="7"), z="<broken")
    first = load_results(["1", "2"], ["x.xml", "y.xml", "z.xml"], root=tmp_path)
    assert len(first.findings) == 3
    for results, junit in itertools.product(
        [["2", "1"], ["2/*", "1"]], [["z.xml", "y.xml", "x.xml"]]
    ):
        assert load_results(results, junit, root=tmp_path) == first


def test_shards_are_written_out_merged_and_the_same_in_any_order(tmp_path: Path) -> None:
    everything = [episode("a"), episode("b", iteration=2), failing("b"), episode("c")]
    whole = write_run(tmp_path / "whole", *everything)
    write_run(tmp_path / "s/1", everything[3], everything[1])
    write_run(tmp_path / "s/2", everything[0], everything[2], failing("c"))
    with EpisodeSpool() as spool:
        load_results(["s"], [], root=tmp_path, spool=spool)
        write_results(tmp_path / "merged.json", "default", spool)
    assert (tmp_path / "merged.json").read_bytes() == (whole / "results.json").read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_details_of_very_many_failures_are_dropped_and_the_cases_are_not(tmp_path: Path) -> None:
    case = junit_case("<failure message='m'>text</failure>")
    write(tmp_path, a=junit_xml(case * 1500))
    tests = load_results([], ["a.xml"], root=tmp_path).tests
    assert (tests.tally.failed, len(tests.failing)) == (1500, 1500)
    assert sum(failure.detail is None for failure in tests.failing) == 500


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=300),
    name=st.sampled_from(
        ["a.json", "a.jsonl", "a.xml", "results.json", "session.json", "episodes/a.jsonl"]
    ),
)
def test_no_bytes_in_any_file_raise(data: bytes, name: str, tmp_path: Path) -> None:
    out = write_run(tmp_path / "out", episode(), journal={"gw0.jsonl": [journal_line(episode())]})
    (out / name).write_bytes(data)
    found = load_results(["out", "out/*"], ["out/*.xml"], root=tmp_path)
    assert found.sources or found.findings
    (out / name).unlink()
