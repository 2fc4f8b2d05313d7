"""CTRF: valid by its schema, red where the gate is, and never anyone else's words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent_eval.render.formats.ctrf import render_ctrf
from ci_agent_eval.render.report_view import build_report_view
from tests.builders import episode, failed_assertion, failing, report
from tests.render_reports import REPORTS
from tests.tables import each_row

SCHEMAS = Path(__file__).parents[3] / "schemas"
CTRF = jsonschema.Draft7Validator(json.loads((SCHEMAS / "ctrf.json").read_text()))


def ctrf(shown):
    document = json.loads(render_ctrf(build_report_view(shown)))
    CTRF.validate(document)
    return document["results"]


def test_named(results):
    return {test["name"]: test for test in results["tests"]}


test_named.__test__ = False


@each_row("name", REPORTS)
def test_a_valid_file_whose_counts_alone_show_a_gate_that_failed(name):
    shown = REPORTS[name]()
    results = ctrf(shown)
    assert results["summary"]["tests"] == len(results["tests"])
    if not shown.passed:
        assert results["summary"]["failed"] > 0
    gate = results["tests"][-1]
    assert (gate["name"], gate["status"] == "passed") == ("agent-eval gate", shown.passed)


@each_row(
    ("outcome", "status", "raw"),
    [("error", "failed", "errored"), ("skipped", "skipped", "skipped")],
)
def test_what_was_not_judged_did_not_pass(outcome, status, raw):
    shown = report(episode(outcome=outcome, reason="the model was away"))
    refund = test_named(ctrf(shown))["refund"]
    assert (refund["status"], refund["rawStatus"]) == (status, raw)
    assert refund["message"] == "the model was away"


def test_other_tests_that_are_not_listed_are_counted(tmp_path):
    summary = ctrf(REPORTS["junit_only"]())["summary"]
    listed = summary["tests"] - 1
    assert summary["extra"]["testsNotListed"] > 0
    assert listed == len(REPORTS["junit_only"]().summary.tests.failing)


HOSTILE = "\x1b[31m::error::x\n[click](http://evil) {0} \u202e"


def test_hostile_text_is_text():
    shown = report(
        failing(HOSTILE, file="a b/te#st.py", assertions=[failed_assertion(HOSTILE, file=None)])
    )
    text = render_ctrf(build_report_view(shown))
    assert text.isascii()
    assert "\x1b" not in text
    flat = json.dumps(ctrf(shown), ensure_ascii=False)
    assert "\x1b" not in flat
    assert "\u202e" not in flat


@settings(max_examples=settings.default.max_examples // 2)
@given(st.text(min_size=1, max_size=60), st.text(max_size=60), st.text(max_size=40))
def test_any_text_gives_a_valid_file(name, reason, file):
    shown = report(
        failing(name, file=file, assertions=[failed_assertion(name, reason=reason, file=file)])
    )
    ctrf(shown)


def test_a_commit_is_named_where_it_is_known():
    shown = replace(report(episode()), commit="a" * 40)
    assert ctrf(shown)["environment"]["commit"] == "a" * 40
