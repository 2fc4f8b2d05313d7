"""What only shows when all is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ci_agent_eval.analysis.loaded_results import LoadedResults
from ci_agent_eval.contract.results import CollectionError, Session, Shard
from ci_agent_eval.render.sentences import describe_finding
from ci_agent_eval.results.load import load_results
from tests.builders import (
    COST_STOP,
    episode,
    evaluated,
    failing,
    junit_case,
    junit_case_of,
    junit_xml,
    write_run,
)
from tests.tables import each_row

FAILURE = '<failure message="no"/>'
SAID = "pytest ended with status 1, but nothing in these results failed; "


def ended(**fields: Any) -> Session:
    return Session(**{"state": "finished", "exit_status": 1, **fields})


def found(loaded: LoadedResults) -> list[tuple[str, str, bool]]:
    return [(f.kind, f.message, f.blocking) for f in loaded.findings]


def loaded_from(root: Path, *junit: str) -> LoadedResults:
    return load_results(["run"], junit, root=root)


def test_a_failure_that_no_file_shows_is_a_disagreement(tmp_path: Path) -> None:
    write_run(tmp_path / "run", episode(outcome="passed"), session=ended(selected=1))
    loaded = loaded_from(tmp_path)
    advice = "write junit.xml beside them (--junit-xml) and run again"
    assert found(loaded) == [("disagreement", SAID + advice, True)]
    assert loaded.findings[0].where == "session.json"


PASSED = episode(outcome="passed")
OVER = episode(budgets={"tool_calls": {"used": 5, "limit": 4}}, trajectory=None)
ERRORED = evaluated("a", outcome="error", reason="refused")
BROKEN_FILE = (CollectionError(nodeid="test_b.py", message="no such module"),)


@each_row(
    ("items", "cases", "session", "kinds"),
    [
        ([failing()], None, {}, []),
        ([episode(outcome="error")], None, {}, ["no_results"]),
        ([OVER], None, {}, []),
        # An earlier attempt explains nothing.
        ([failing(attempt=1), episode(attempt=2)], None, {}, ["disagreement"]),
        # A plain test in its JUnit file, and a file that could not be collected
        ([PASSED], [junit_case_of(PASSED), junit_case(FAILURE)], {}, []),
        ([PASSED], None, {"collection_errors": BROKEN_FILE}, ["collection_error"]),
        ([ERRORED], [junit_case_of(ERRORED, FAILURE)], {}, []),
    ],
)
def test_what_explains_a_run_that_failed(
    tmp_path: Path, items: Any, cases: Any, session: Any, kinds: list[str]
) -> None:
    junit = None if cases is None else junit_xml(*cases)
    write_run(tmp_path / "run", *items, session=ended(**session), junit=junit)
    assert [kind for kind, _, _ in found(loaded_from(tmp_path))] == kinds


def test_so_does_a_junit_file_elsewhere_but_not_that_of_another_run(tmp_path: Path) -> None:
    write_run(tmp_path / "run" / "a", episode(outcome="passed"), session=ended())
    other, junit = episode("b", outcome="passed"), junit_xml(junit_case(FAILURE))
    write_run(tmp_path / "run" / "b", other, session=ended(), junit=junit)
    assert [f.where for f in loaded_from(tmp_path).findings] == ["run/a/session.json"]
    (tmp_path / "plain.xml").write_text(junit_xml(junit_case(FAILURE)))
    assert found(loaded_from(tmp_path, "plain.xml")) == []


def test_a_scenario_of_two_tests_is_said(tmp_path: Path) -> None:
    nodeids = ["a.py::test_b[x]", "a.py::test_b[y]", "a.py::test_a", "c.py::T::test_b[z]"]
    items = [episode("dup", outcome="passed", nodeid=nodeid) for nodeid in nodeids]
    write_run(tmp_path / "run", *items)
    assert found(loaded_from(tmp_path)) == [
        (
            "shared_scenario",
            (
                "scenario 'dup' is run by 3 tests (a.py::test_a, a.py::test_b, c.py::T::test_b); "
                "they count as its iterations; give each its own scenario_id unless that is meant"
            ),
            False,
        )
    ]


def test_parametrizations_and_iterations_of_one_test_share_theirs(tmp_path: Path) -> None:
    nodeids = ["a[1].py::test_b[x]", "a[1].py::test_b[y::z]"]
    items = [episode("dup", outcome="passed", nodeid=nodeid) for nodeid in nodeids]
    write_run(
        tmp_path / "run", *items, *(item.model_copy(update={"iteration": 2}) for item in items)
    )
    assert found(loaded_from(tmp_path)) == []


def test_many_shared_scenarios_are_capped_and_counted(tmp_path: Path) -> None:
    items = [
        episode(f"dup{number:02}", outcome="passed", nodeid=f"a.py::test_{number}_{part}")
        for number in range(25)
        for part in range(5)
    ]
    write_run(tmp_path / "run", *items)
    findings = loaded_from(tmp_path).findings
    assert len(findings) == 21
    assert "and 5 more scenarios of several tests" in {f.message for f in findings}
    assert any(f.message.count("a.py::") == 3 and "and 2 more)" in f.message for f in findings)


def test_the_totals_of_a_junit_file_of_ours_count_reports(tmp_path: Path) -> None:
    item = episode(outcome="passed")
    junit = junit_xml(junit_case_of(item), name="pytest", tests="4")
    write_run(tmp_path / "run", item, junit=junit)
    assert found(loaded_from(tmp_path)) == []
    # The same file by itself is anybody's.
    (tmp_path / "plain.xml").write_text(junit)
    kinds = {kind for kind, _, _ in found(load_results([], ["plain.xml"], root=tmp_path))}
    assert kinds == {"declared_counts_differ"}


def test_of_an_interrupted_run_only_the_interruption_is_said(tmp_path: Path) -> None:
    done = episode("a", outcome="passed")
    broken = episode("b", outcome="error", reason="interrupted: KeyboardInterrupt")
    missing = episode("c", outcome="passed")
    # What pytest writes of a test that it was in the middle of: a case without a name.
    junit = junit_xml(junit_case_of(done), '<testcase time="0.001" />', name="pytest", tests="1")
    session = Session(state="interrupted", exit_status=2, selected=3)
    write_run(tmp_path / "run", done, broken, missing, session=session, junit=junit)
    loaded = loaded_from(tmp_path)
    assert [kind for kind, _, _ in found(loaded)] == ["interrupted"]
    assert loaded.tests.tally.total == 0


@each_row("selected", [3, 2])
def test_a_stop_at_a_limit_is_named_even_where_it_cost_no_episode(
    tmp_path: Path, selected: int
) -> None:
    stopped = "stopping after 1 failures"
    session = ended(selected=selected, stopped=stopped)
    write_run(tmp_path / "run", failing(), episode("b", outcome="passed"), session=session)
    (finding,) = loaded_from(tmp_path).findings
    assert (finding.kind, finding.blocking) == ("interrupted", True)
    assert finding.message == (
        "pytest stopped early at a limit of its own, as with -x (stopping after 1 failures): "
        f"2 of {selected} selected episodes finished and are reported; to judge the others, run "
        "without that limit"
    )


@each_row(
    ("selected", "said"),
    [
        (9, "7 of 9 selected episodes did not run, because the run was stopped ({})"),
        (2, "0 of 2 selected episodes did not run, because the run was stopped ({})"),
        (None, "the run was stopped ({})"),
    ],
)
def test_a_run_that_a_suite_budget_stopped_fails_and_says_how_many_did_not_run(
    tmp_path: Path, selected: int | None, said: str
) -> None:
    stopped = "suite budget total_cost_usd exceeded: $5.02 of $5.00"
    session = ended(selected=selected, stopped=stopped, suite_stop=COST_STOP)
    ended_early = episode("b", outcome="error", reason=f"stopped: {stopped}")
    write_run(tmp_path / "run", episode("a", outcome="passed"), ended_early, session=session)
    (finding,) = loaded_from(tmp_path).findings
    assert (finding.kind, finding.blocking) == ("stopped", True)
    assert describe_finding(finding) == (
        f"{said.format(stopped)}; raise the budget or let the episodes take less, "
        "then run the suite again"
    )


def test_the_required_scenarios_that_a_stopped_run_left_out_are_named(tmp_path: Path) -> None:
    for number in (1, 2):
        session = ended(
            selected=9,
            stopped=COST_STOP.sentence,
            suite_stop=COST_STOP,
            unafforded=("refund", f"cancel {number}"),
            shard=Shard(index=number, count=2, plan="p"),
        )
        write_run(tmp_path / f"run/{number}", episode(f"a{number}"), session=session)
    found = [one for one in loaded_from(tmp_path).findings if one.kind == "stopped"]
    assert [one.message.scenarios for one in found] == [("cancel 1", "cancel 2", "refund")]
    assert "it could not afford the required scenarios cancel 1, cancel 2, refund; raise" in (
        describe_finding(found[0])
    )


def test_what_fails_in_an_evaluation_explains_no_failing_run(tmp_path: Path) -> None:
    measured, strict = evaluated("a", False), episode()
    junit = junit_xml(junit_case_of(measured), junit_case_of(strict))
    write_run(tmp_path / "run", measured, strict, session=ended(), junit=junit)
    (finding,) = loaded_from(tmp_path).findings
    assert finding.message.startswith(SAID)
