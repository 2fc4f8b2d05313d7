"""Annotations and workflow commands."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent_eval.analysis.loaded_results import JUnitCase, OutcomeTally, PlainTests
from ci_agent_eval.gate import GatePolicy
from ci_agent_eval.render.formats.annotations import (
    Annotation,
    count_unplaced,
    list_annotations,
    list_by_importance,
)
from ci_agent_eval.render.formats.workflow_commands import render_commands
from ci_agent_eval.render.report_view import build_report_view
from tests.builders import episode, failed_assertion, failing, report
from tests.render_reports import hostile
from tests.tables import each_row


def test_each_failing_assertion_is_annotated_where_it_stands():
    checks = [failed_assertion(f"check {n}", line=n, file="tests/a.py") for n in range(1, 121)]
    found = list_annotations(build_report_view(report(failing("refund", assertions=checks))))
    assert [(a.path, a.start_line, a.end_line) for a in found] == [
        ("tests/a.py", n, n) for n in range(1, 121)
    ]
    assert found[0].title == "refund: check 1"
    assert found[0].message == "it did not\npasses 0 / 1"
    assert {a.level for a in found} == {"failure"}


def test_scenario_that_gives_no_assertion_is_annotated_at_its_test():
    found = list_annotations(
        build_report_view(
            report(
                episode("a", outcome="error", reason="429"),
                episode("b", outcome="failed", reason="assert 1 == 2", line=9),
                episode("c", budgets={"tool_calls": {"used": 6, "limit": 4}}),
                episode("d", budgets={"cost_usd": {"limit": 1, "hard": False}}),
            )
        )
    )
    assert [(a.start_line, a.level, a.title, a.message) for a in found] == [
        (9, "failure", "b: failed", "assert 1 == 2\npasses 0 / 1"),
        (40, "failure", "a: 1 / 1 errors", "429"),
        (40, "failure", "c: over budget, tool calls", "hard limit 4, observed 6 (+50 %)"),
        (40, "warning", "d: over budget, cost", "soft limit $1.00, not measured"),
    ]


def test_plain_test_brings_its_traceback():
    case = JUnitCase("c", "t", "failed", "assert x", "Traceback\n  x", "tests/t.py", 3)
    (found,) = list_annotations(
        build_report_view(report(tests=PlainTests(OutcomeTally(0, 1), (case,))))
    )
    assert found == Annotation("tests/t.py", 3, 3, "failure", "c::t", "assert x", "Traceback\n  x")


@each_row("file", [None, "", "/abs.py", "../out.py", "a/../../b.py", "C:\\x.py"])
def test_what_has_no_place_is_left_out_and_counted(file):
    cases = (JUnitCase("c", "t", "failed", file=file), JUnitCase("c", "u", "failed", file="u.py"))
    built = report(tests=PlainTests(OutcomeTally(0, 2), cases))
    assert [a.path for a in list_annotations(build_report_view(built))] == ["u.py"]
    assert count_unplaced(build_report_view(built)) == 1


def test_limits_are_kept():
    check = failed_assertion("é" * 500, reason="é" * 200_000, line=2**40)
    (found,) = list_annotations(build_report_view(report(failing(assertions=[check]))))
    assert len(found.title.encode()) <= 255
    assert len(found.message.encode()) <= 64 * 1024
    assert found.start_line == 1


@settings(max_examples=settings.default.max_examples // 2)
@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=300))
def test_any_text_gives_annotations_github_takes(text):
    for found in list_annotations(build_report_view(hostile(text))):
        assert 0 < len(found.message.encode()) <= 64 * 1024
        assert len(found.title.encode()) <= 255
        assert not found.path.startswith("/")
        assert ".." not in found.path.split("/")
        assert 1 <= found.start_line == found.end_line
        assert not re.search(r"[\x00-\x08\x1b\u202e]", found.message + found.title + found.path)


@each_row(("required", "level"), [(0.5, "warning"), (0.75, "failure")])
def test_a_failing_scenario_is_a_failure_only_if_the_suite_misses_its_rate(required, level):
    policy = GatePolicy(suite_min_pass_rate=required)
    shown = report(episode("a"), failing("b"), policy=policy)
    assert [a.level for a in list_annotations(build_report_view(shown))] == [level]


def test_each_scenario_has_its_first_annotation_before_any_has_a_second():
    checks = [failed_assertion(f"check {n}", line=n) for n in (1, 2)]
    shown = report(
        failing("warned", gate="advisory", assertions=checks),
        failing("b", assertions=checks),
        failing("a", assertions=checks, budgets={"tool_calls": {"used": 6, "limit": 4}}),
        tests=PlainTests(
            OutcomeTally(failed=2),
            tuple(JUnitCase("t", f"test_{n}", "failed", file="tests/z.py") for n in (1, 2)),
        ),
    )

    found = list_by_importance(build_report_view(shown))

    assert [one.title for one in found] == [
        "a: check 1",
        "b: check 1",
        "t::test_1",
        "t::test_2",
        "warned: check 1",
        "a: check 2",
        "b: check 2",
        "a: over budget, tool calls",
        "warned: check 2",
    ]
    assert sorted(map(repr, found)) == sorted(map(repr, list_annotations(build_report_view(shown))))


def test_command_is_escaped_as_the_runner_undoes_it():
    found = Annotation("a,b:c%.py", 3, 3, "failure", "t: a, b", "100 %\nsecond ::error::x")
    assert render_commands([found]) == (
        "::error file=a%2Cb%3Ac%25.py,line=3,endLine=3,title=t%3A a%2C b::100 %25%0Asecond ::error::x\n"
    )


def test_ten_of_a_type_are_shown_and_the_rest_counted():
    def some(level, number):
        return [Annotation(f"{n}.py", 1, 1, level, "t", "m") for n in range(number)]

    lines = render_commands([*some("failure", 12), *some("warning", 11), *some("notice", 10)])
    kinds = [line.split(" ")[0] for line in lines.splitlines()]
    assert [kinds.count(kind) for kind in ("::error", "::warning", "::notice")] == [10, 10, 10]
    assert lines.splitlines()[-1] == (
        "::notice title=agent-eval::4 annotations more than the runner shows; see the report"
    )
