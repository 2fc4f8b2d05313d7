"""Reports in the Common Test Report Format: of other tools, and our own read again."""

from __future__ import annotations

import json

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.results.load import load_results
from tests.tables import each_row
from tests.unit.results.importers.reading import FILES, loaded, problems, read_document

GOLDEN = FILES.parents[1] / "golden/render"


def report(*tests, **fields):
    return {
        "reportFormat": "CTRF",
        "specVersion": "1.0.0",
        "results": {"tool": {"name": "any"}, "summary": {}, "tests": list(tests), **fields},
    }


def case(**fields):
    """The case of one test."""
    (found,) = read_document(report({"name": "refunds", "status": "passed", **fields}))
    assert isinstance(found, JUnitCase)
    return found


@each_row(
    ("fields", "outcome"),
    [
        ({"status": "failed"}, "failed"),
        ({"status": "failed", "rawStatus": "error"}, "error"),
        ({"status": "skipped"}, "skipped"),
        ({"status": "pending"}, "skipped"),
        ({"status": "other"}, "error"),
        ({"status": "other", "rawStatus": "todo"}, "skipped"),
        ({"status": "PASSED"}, "error"),
        ({"status": None}, "error"),
        ({"status": ["passed"]}, "error"),
    ],
)
def test_only_passed_passes(fields, outcome):
    assert case(**fields).outcome == outcome


@each_row(
    "fields",
    [
        {"flaky": True},
        {"retries": 1},
        {"retryAttempts": [{"attempt": 1, "status": "failed", "message": "too late"}]},
    ],
)
def test_a_pass_on_a_retry_is_flaky(fields):
    assert case(**fields).flaky
    assert not case(status="failed", **fields).flaky


def test_a_flaky_test_says_why_it_failed_at_first():
    first = {"attempt": 1, "status": "failed", "message": "too late", "trace": "at desk.js:4"}
    found = case(retryAttempts=[first, {"attempt": 2, "status": "passed"}])
    assert (found.message, found.detail) == ("too late", "at desk.js:4")


@each_row(
    ("fields", "message"),
    [
        ({"message": "\nno invoice\nat all"}, "no invoice"),
        ({"trace": "Error: no invoice\n at desk.js:4"}, "Error: no invoice"),
        ({"steps": [{"name": "pay", "status": "failed"}]}, "the step 'pay' failed"),
        ({}, None),
    ],
)
def test_the_message_of_a_failure(fields, message):
    assert case(status="failed", **fields).message == message


def test_names_and_places():
    found = case(suite=["desk", "night"], filePath="tests/desk.js", line=4)
    assert (found.title, found.file, found.line) == ("desk > night::refunds", "tests/desk.js", 4)
    assert case(suite="desk").title == "desk::refunds"
    assert case(name="desk refunds", suite="a.js > desk").title == "a.js::desk refunds"


@each_row("name", ["tests", "failed", "other"])
def test_lost_tests_are_noticed(name):
    document = report({"name": "a", "status": "passed"}, summary={name: 2})
    (problem,) = problems(document)
    assert problem.kind == "declared_counts_differ"
    assert problem.message.startswith("it is a file of CTRF and counts 2 tests")


def test_an_unknown_version_is_refused():
    document = report({"name": "a", "status": "passed"}) | {"specVersion": "2.0.0"}
    (problem,) = read_document(document)
    assert "versions 0 and 1 are read" in problem.message


class TestOwnReports:
    def test_outcomes_and_conclusion_are_the_same(self):
        name = "regressed"
        written = json.loads((GOLDEN / f"{name}.ctrf.json").read_text())["results"]
        found = load_results([f"{name}.ctrf.json"], [], root=GOLDEN)
        assert not found.findings
        statuses = {"passed": "passed", "failed": "failed", "error": "failed", "skipped": "skipped"}
        scenarios = [
            test for test in written["tests"] if {"required", "advisory"} & {*test["tags"]}
        ]
        assert sorted(
            (e.scenario_id, statuses[e.outcome], e.gate) for e in found.episodes
        ) == sorted(
            (t["name"], t["status"].replace("other", "failed"), t["tags"][0]) for t in scenarios
        )
        assert "agent-eval gate" in [one.title for one in found.tests.failing]

    def test_an_advisory_scenario_stays_advisory(self):
        test = {"name": "a", "status": "failed", "tags": ["advisory"], "message": "no\nreason"}
        document = report(test, tool={"name": "agent-eval"})
        (found,) = read_document(document)
        assert (found.episode.gate, found.episode.outcome) == ("advisory", "failed")
        assert found.episode.reason == "no\nreason"

    def test_tags_of_other_tools_mean_nothing(self):
        assert case(tags=["advisory"], status="failed").outcome == "failed"


def test_no_test_is_no_result():
    document = loaded("ctrf/jest.json")
    document["results"] |= {"tests": [], "summary": {}}
    assert [problem.kind for problem in problems(document)] == ["no_results"]
