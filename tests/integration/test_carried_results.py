"""Results that a run carried over: verified against the baseline, and never believed."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.app.pipeline import report_files
from ci_agent_eval.contract.adaptive import AdaptiveStop
from ci_agent_eval.contract.findings import RefusedResults
from ci_agent_eval.contract.results import Session, Shard
from ci_agent_eval.dependencies.selection.model import FullRun, Selection
from ci_agent_eval.results.carried_results import verify_carried_results
from ci_agent_eval.results.load import load_results
from tests.builders import episode, failing, junit_case_of, junit_xml, write_run
from tests.carried_runs import (
    CANCEL,
    GREET,
    ORIGIN,
    REFUND,
    build_carrying_job,
    carried,
    dependencies,
    write_earlier_run,
    write_later_run,
)


def build(root, *unchanged, results=("run",), **fields):
    """The report on the run in `run`, compared with the earlier one in `base`."""
    return report_files(build_carrying_job(root, *unchanged, **fields), results=results, junit=())


def refusals(report):
    found = [one.message for one in report.summary.findings if one.kind == "carried_over"]
    assert all(isinstance(one, RefusedResults) for one in found)
    assert not found or not report.passed
    return [(one.problem, one.scenarios) for one in found]


@pytest.fixture
def runs(tmp_path):
    """An earlier run of three scenarios, and a run that left out two of them."""
    write_earlier_run(tmp_path / "base", REFUND, CANCEL, GREET)
    write_later_run(tmp_path / "run", carried(REFUND), carried(CANCEL), GREET)
    return tmp_path


def test_earlier_results_count_and_are_counted_apart(runs):
    report = build(runs, "refund", "cancel")
    summary = report.summary
    assert (report.passed, refusals(report)) == (True, [])
    assert [(s.scenario_id, s.is_carried_over) for s in summary.scenarios] == [
        ("cancel", True),
        ("greet", False),
        ("refund", True),
    ]
    assert (summary.tally.passed, summary.own.passed, summary.calls.scripted) == (3, 1, 1)
    found = summary.carried
    assert (found.scenarios, found.tally.total, found.run) == (2, 2, "123")
    assert (found.age_days, found.cost_usd, found.duration_ms) == (2, 0.5, 60_000)
    assert summary.totals.cost_usd is None
    assert json.loads((runs / "agent-eval-report/verdict.json").read_text())["summary"]["carried"]


def test_they_are_no_part_of_the_comparison(runs):
    found = build(runs, "refund", "cancel").comparison
    assert [(s.scenario_id, s.change) for s in found.scenarios] == [("greet", "unchanged")]


def test_a_run_in_which_nothing_had_to_run_passes(tmp_path):
    write_earlier_run(tmp_path / "base", REFUND)
    write_later_run(tmp_path / "run", carried(REFUND), exit_status=5)
    report = build(tmp_path, "refund")
    assert (report.passed, report.summary.own.total) == (True, 0)
    assert report.comparison.reason == "no episode ran, so that there is none to compare"


def test_their_tests_have_no_junit_case(runs):
    (runs / "run/junit.xml").write_text(junit_xml(junit_case_of(GREET)), encoding="utf-8")
    assert build(runs, "refund", "cancel").passed


def test_a_test_that_ran_nevertheless_is_a_disagreement(runs):
    cases = junit_xml(junit_case_of(GREET), junit_case_of(REFUND))
    (runs / "run/junit.xml").write_text(cases, encoding="utf-8")
    report = build(runs, "refund", "cancel")
    assert [one.kind for one in report.summary.findings] == ["disagreement"]


# What makes the results of one scenario, or of all, worthless.
def test_a_changed_scenario(runs):
    report = build(runs, "cancel")
    assert refusals(report) == [("not_proven_unchanged", ("refund",))]
    statuses = {j.scenario_id: j.status for j in report.verdict.judgements}
    assert statuses == {"cancel": "passing", "greet": "passing", "refund": "errored"}
    assert report.summary.carried.scenarios == 1


@pytest.mark.parametrize(
    "forged",
    [
        carried(failing("refund", duration_ms=60_000, cost_usd=0.5)),
        carried(episode("refund", reason="fine")),
        carried(REFUND, carried_over=ORIGIN.model_copy(update={"commit": "b" * 40})),
        carried(REFUND, carried_over=ORIGIN.model_copy(update={"recorded_at": 1_900_000_000})),
        carried(REFUND, carried_over=ORIGIN.model_copy(update={"run": "124"})),
        carried(REFUND, iteration=2),
        carried(REFUND, nodeid="tests/test_refunds.py::test_other"),
    ],
    ids=["outcome", "reason", "commit", "age", "run", "iteration", "test"],
)
def test_a_forged_result(tmp_path, forged):
    write_earlier_run(tmp_path / "base", REFUND, GREET)
    write_later_run(tmp_path / "run", forged, GREET)
    assert refusals(build(tmp_path, "refund")) == [("differs", ("refund",))]


def test_a_failed_scenario_that_is_carried_over_as_passed(tmp_path):
    write_earlier_run(tmp_path / "base", failing("refund"), GREET)
    write_later_run(tmp_path / "run", carried(episode("refund")), GREET)
    assert refusals(build(tmp_path, "refund")) == [("differs", ("refund",))]


def test_a_scenario_that_the_baseline_does_not_have(tmp_path):
    write_earlier_run(tmp_path / "base", REFUND)
    write_later_run(tmp_path / "run", carried(REFUND), carried(CANCEL))
    assert refusals(build(tmp_path, "refund", "cancel")) == [("differs", ("cancel",))]


def test_a_scenario_of_which_an_iteration_is_left_out(tmp_path):
    failed = failing("refund", iteration=2, iterations=2)
    passed = episode("refund", iterations=2)
    write_earlier_run(tmp_path / "base", passed, failed)
    write_later_run(tmp_path / "run", carried(passed), iterations=2)
    assert refusals(build(tmp_path, "refund")) == [("differs", ("refund",))]


def test_more_iterations_than_the_earlier_run_had(tmp_path):
    write_earlier_run(tmp_path / "base", REFUND)
    write_later_run(tmp_path / "run", carried(REFUND), iterations=3)
    assert refusals(build(tmp_path, "refund")) == [("too_few", ("refund",))]


def test_a_scenario_that_ran_too(tmp_path):
    write_earlier_run(tmp_path / "base", REFUND)
    again = episode("refund", iteration=2)
    write_later_run(tmp_path / "run", carried(REFUND), again)
    assert refusals(build(tmp_path, "refund")) == [("also_ran", ("refund",))]


def test_an_episode_in_both_forms(tmp_path):
    write_earlier_run(tmp_path / "base", REFUND)
    write_later_run(tmp_path / "run", carried(REFUND), REFUND)
    kinds = [one.kind for one in build(tmp_path, "refund").summary.findings if one.blocking]
    assert "duplicate" in kinds


def test_a_scenario_that_the_run_does_not_name(tmp_path):
    write_earlier_run(tmp_path / "base", REFUND, GREET)
    write_later_run(tmp_path / "run", carried(REFUND), GREET, names=())
    assert refusals(build(tmp_path, "refund")) == [("unexpected", ("refund",))]


def test_a_named_scenario_without_results(tmp_path):
    write_earlier_run(tmp_path / "base", REFUND, GREET)
    write_later_run(tmp_path / "run", GREET, names=("refund",))
    assert refusals(build(tmp_path, "refund")) == [("missing", ("refund",))]


def test_an_episode_that_the_baseline_carried_over_itself(tmp_path):
    write_earlier_run(tmp_path / "base", carried(REFUND), GREET)
    write_later_run(tmp_path / "run", carried(REFUND), GREET)
    assert refusals(build(tmp_path, "refund")) == [("differs", ("refund",))]


def test_an_expired_run(runs):
    report = build(runs, full_run=FullRun("expired", "9 days"))
    assert refusals(report) == [("expired", ("cancel", "refund"))]


def test_a_full_run(runs):
    report = build(runs, full_run=FullRun("no_commit"))
    assert refusals(report) == [("not_proven_unchanged", ("cancel", "refund"))]


def test_a_path_in_a_workflow_is_not_trusted(runs):
    report = build(runs, "refund", "cancel", environ={"GITHUB_ACTIONS": "true"})
    assert refusals(report) == [("untrusted", ("cancel", "refund"))]


@pytest.mark.parametrize("baseline", [None, "nothing"])
def test_without_a_baseline(runs, baseline):
    report = build(runs, "refund", "cancel", baseline=baseline)
    assert refusals(report) == [("no_baseline", ("cancel", "refund"))]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("missing", None),
        ("broken", "{"),
        ("another commit", dependencies(commit="b" * 40)),
        ("no commit", dependencies(commit=None)),
    ],
)
def test_a_baseline_without_usable_dependencies(runs, name, changes):
    file = runs / "base/dependencies.json"
    if changes is None:
        file.unlink()
    else:
        text = changes if isinstance(changes, str) else changes.model_dump_json()
        file.write_text(text, encoding="utf-8")
    assert refusals(build(runs, "refund", "cancel")) == [("no_dependencies", ("cancel", "refund"))]


@pytest.mark.parametrize("python", ["CPython 3.12.1", None])
def test_another_environment(runs, python):
    file = runs / "run/dependencies.json"
    if python is None:
        file.unlink()
    else:
        file.write_text(dependencies(python=python).model_dump_json(), encoding="utf-8")
    assert refusals(build(runs, "refund", "cancel")) == [
        ("other_environment", ("cancel", "refund"))
    ]


def test_a_scenario_whose_text_has_a_secret(runs):
    report = build(runs, "refund", "cancel", environ={"API_TOKEN": "test_refunds"})
    assert ("differs", ("cancel", "refund")) in refusals(report)


def test_an_adaptive_scenario_ended_for_its_earlier_reason(tmp_path):
    items = [
        episode("refund", iteration=n, iterations=9, minimum_iterations=3) for n in range(1, 5)
    ]
    stop = AdaptiveStop(scenario_id="refund", cause="no_regression")
    forged = AdaptiveStop(scenario_id="refund", cause="maximum", required=0.1)
    write_earlier_run(tmp_path / "base", *items, adaptive_stops=(stop,), selected=3)
    later = map(carried, items)
    write_later_run(tmp_path / "run", *later, iterations=3, adaptive_stops=(forged,))
    report = build(tmp_path, "refund")
    (scenario,) = report.summary.scenarios
    assert (report.passed, scenario.adaptive.stop, scenario.adaptive.required) == (
        True,
        "no_regression",
        None,
    )


def test_shards_of_one_run(tmp_path):
    write_earlier_run(tmp_path / "base", REFUND, CANCEL, GREET)
    for index, items in ((1, (carried(REFUND), CANCEL)), (2, (GREET,))):
        shard = Shard(index=index, count=2, plan="p")
        folder = tmp_path / f"run/{index}"
        write_later_run(folder, *items, names=("refund",), shard=shard)
    report = build(tmp_path, "refund")
    assert (report.passed, report.summary.carried.scenarios) == (True, 1)


@pytest.mark.parametrize(("index", "problems"), [(1, ["missing"]), (2, [])])
def test_the_first_shard_has_the_earlier_results(tmp_path, index, problems):
    shard = Shard(index=index, count=2, plan="p")
    folder = write_later_run(tmp_path / "run", GREET, names=("refund",), shard=shard)
    loaded = load_results((), (), root=tmp_path, runs=(folder,))
    findings = verify_carried_results(loaded, None, Selection(), None).findings
    assert [one.message.problem for one in findings if one.kind == "carried_over"] == problems


def test_an_ordinary_run_needs_no_dependencies(tmp_path):
    write_run(tmp_path / "run", GREET, session=Session(state="finished", selected=1))
    report = build(tmp_path, baseline=None)
    assert (report.passed, report.summary.carried) == (True, None)
