"""Reports in the Common Test Report Format: of other tools, and our own read again."""

from __future__ import annotations

import json

from ci_agent_eval.results.load import load_results
from tests.conftest import GOLDEN
from tests.tables import read_sections
from tests.unit.results.importers.reading import FILES, describe, loaded, read_document


def report(*tests, version="1.0.0", **fields):
    results = {"tool": {"name": "any"}, "summary": {}, "tests": list(tests), **fields}
    return {"reportFormat": "CTRF", "specVersion": version, "results": results}


def case(**fields):
    return {"name": "refunds", "status": "passed", **fields}


FIRST = {"attempt": 1, "status": "failed", "message": "too late", "trace": "at desk.js:4"}
LATER = [FIRST, {"attempt": 2, "status": "passed"}]
MESSAGES = [
    {"message": "\nno invoice\nat all"},
    {"trace": "Error: no invoice\n at desk.js:4"},
    {"steps": [{"name": "pay", "status": "failed"}]},
    {},
]
STATUSES = ["failed", "skipped", "pending", "other", "PASSED", None, ["passed"]]
REPORTS = {
    "only passed passes": report(
        *(case(status=status) for status in STATUSES),
        case(status="failed", rawStatus="error"),
        case(status="other", rawStatus="todo"),
    ),
    "a pass on a retry is flaky, a failure is not": report(
        *(
            case(status=status, **fields)
            for fields in ({"flaky": True}, {"retries": 1}, {"retryAttempts": LATER})
            for status in ("passed", "failed")
        )
    ),
    "messages": report(*(case(status="failed", **fields) for fields in MESSAGES)),
    "names and places": report(
        case(suite=["desk", "night"], filePath="tests/desk.js", line=4),
        case(suite="desk"),
        case(name="desk refunds", suite="a.js > desk"),
    ),
    **{
        f"lost tests by {name}": report(case(), summary={name: 2})
        for name in ("tests", "failed", "other")
    },
    "an unknown version": report(case(), version="2.0.0"),
    "no test": report(),
    "tags of other tools mean nothing": report(case(tags=["advisory"], status="failed")),
    "an advisory scenario of ours": report(
        case(status="failed", tags=["advisory"], message="no\nreason"), tool={"name": "agent-eval"}
    ),
}


def test_what_reports_come_to_is_the_golden_text(golden):
    found = {
        name: [describe(item) for item in read_document(document)]
        for name, document in REPORTS.items()
    }
    text = json.dumps(found, indent=1, ensure_ascii=False, default=str)
    golden("importers/ctrf-cases.json", f"{text}\n")


def test_files_of_each_tool_come_to_the_golden_text(golden):
    names = sorted(path.relative_to(FILES).as_posix() for path in FILES.glob("*/*.json*"))
    found = {name: [describe(item) for item in read_document(loaded(name))] for name in names}
    golden(
        "importers/files.txt",
        {
            name: json.dumps(items, indent=1, ensure_ascii=False, default=str)
            for name, items in found.items()
        },
    )


def test_outcomes_and_conclusion_of_our_own_report_are_the_same(tmp_path):
    text = read_sections(GOLDEN / "render/json.txt")["regressed.ctrf.json"]
    (tmp_path / "regressed.ctrf.json").write_text(text)
    written = json.loads(text)["results"]
    found = load_results(["regressed.ctrf.json"], [], root=tmp_path)
    assert not found.findings
    statuses = {"passed": "passed", "failed": "failed", "error": "failed", "skipped": "skipped"}
    scenarios = [test for test in written["tests"] if {"required", "advisory"} & {*test["tags"]}]
    assert sorted((e.scenario_id, statuses[e.outcome], e.gate) for e in found.episodes) == sorted(
        (t["name"], t["status"].replace("other", "failed"), t["tags"][0]) for t in scenarios
    )
    assert "agent-eval gate" in [one.title for one in found.tests.failing]
