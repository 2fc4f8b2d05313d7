from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ci_agent_eval.contract.results import CollectionError, Session
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.load import load_results
from ci_agent_eval.results.runs import check_exit_status
from tests.builders import (
    episode,
    failing,
    journal_line,
    junit_case,
    junit_xml,
    write_run,
)
from tests.tables import each_row


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        (root / f"{name}.xml").write_text(text, encoding="utf-8")


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
