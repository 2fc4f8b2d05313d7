"""Annotations and workflow commands."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent_eval.analysis.loaded_results import JUnitCase, OutcomeTally, PlainTests
from ci_agent_eval.gate.model import GatePolicy
from ci_agent_eval.render.formats.annotations import (
    Annotation,
    count_unplaced,
    list_annotations,
    list_by_importance,
    render_commands,
)
from ci_agent_eval.render.report_view import build_report_view
from tests.builders import episode, failed_assertion, failing, report
from tests.comment_reports import COMMENTS
from tests.render_reports import hostile


def plain(*cases, failed=1):
    return report(tests=PlainTests(OutcomeTally(failed=failed), cases))


CHECKS = [failed_assertion(f"check {n}", line=n) for n in (1, 2)]
TRACED = JUnitCase("c", "t", "failed", "assert x", "Traceback\n  x", "tests/t.py", 3)
OUTSIDE = (None, "", "/abs.py", "../out.py", "a/../../b.py", "C:\\x.py")
OVER = {"budgets": {"tool_calls": {"used": 6, "limit": 4}}}
UNMEASURED = {"budgets": {"cost_usd": {"limit": 1, "hard": False}}}
PLAIN = [JUnitCase("t", f"test_{n}", "failed", file="tests/z.py") for n in (1, 2)]
CASES = {
    "each failing assertion": report(failing(assertions=CHECKS)),
    "what gives no assertion": report(
        episode("a", outcome="error", reason="429"),
        episode("b", outcome="failed", reason="assert 1 == 2", line=9),
        episode("c", **OVER),
        episode("d", **UNMEASURED),
    ),
    "a plain test": plain(TRACED),
    **{
        f"no place: {file}": plain(JUnitCase("c", "t", "failed", file=file), PLAIN[0], failed=2)
        for file in OUTSIDE
    },
    **{
        f"a suite's rate of {rate}": report(
            episode("a"), failing("b"), policy=GatePolicy(suite_min_pass_rate=rate)
        )
        for rate in (0.5, 0.75)
    },
    "each scenario's first before any second": report(
        failing("warned", gate="advisory", assertions=CHECKS),
        failing("b", assertions=CHECKS),
        failing("a", assertions=CHECKS, **OVER),
        tests=PlainTests(OutcomeTally(failed=2), tuple(PLAIN)),
    ),
}


def test_the_annotations_are_the_golden_ones(golden):
    lines = []
    for name, built in CASES.items():
        view = build_report_view(built)
        found = list_by_importance(view)
        lines += [f"{name}: {count_unplaced(view)} without a place", *map(repr, found)]
        assert sorted(map(repr, found)) == sorted(map(repr, list_annotations(view)))
    text = "\n".join(lines)
    golden("annotations/annotations.txt", f"{text}\n")


def test_limits_are_kept():
    check = failed_assertion("é" * 500, reason="é" * 200_000, line=2**40)
    (found,) = list_annotations(build_report_view(report(failing(assertions=[check]))))
    assert len(found.title.encode()) <= 255
    assert len(found.message.encode()) <= 64 * 1024
    assert found.start_line == 40


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


def test_a_failed_check_of_a_helper_stands_at_the_test_with_the_changed_answer():
    (found,) = list_annotations(build_report_view(COMMENTS["2-regression-answer"]()))
    answer = "- No. Returns are possible within 30 days only."
    assert f"\n{answer}\n+ Yes, you can return them within 60 days" in found.message
    helped = failing(assertions=[failed_assertion("polite", file="checks/tone.py", line=7)])
    (found,) = list_annotations(build_report_view(report(helped)))
    assert (found.path, found.start_line) == ("tests/test_refunds.py", 40)
    assert "\nchecked at checks/tone.py:7\n" in found.message
