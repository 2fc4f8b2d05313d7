"""verdict.json: what a consumer reads, and the way back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent_eval.analysis.comparison.model import AllowedIncreases
from ci_agent_eval.contract.findings import MissingShards
from ci_agent_eval.errors import InputError
from ci_agent_eval.gate.model import GatePolicy, Thresholds
from ci_agent_eval.render.formats.document import parse_verdict, render_verdict
from ci_agent_eval.render.headline import render_headline
from tests.builders import agreement, baseline, episode, evaluated, failing, finding, report, turn
from tests.render_reports import REPORTS, failing_over_budget, hostile
from tests.tables import each_row


@each_row("name", REPORTS)
def test_round_trip_is_exact(name):
    built = REPORTS[name]()
    text = render_verdict(built)
    assert parse_verdict(text) == built
    assert render_verdict(parse_verdict(text.encode())) == text


def test_a_finding_that_is_data_is_written_with_its_sentence():
    missing = finding("shards", where="", message=MissingShards((2, 3), 4))
    document = json.loads(render_verdict(report(episode(), findings=(missing, finding()))))
    plain, data = sorted(document["summary"]["findings"], key=lambda one: "data" in one)
    assert "data" not in plain
    assert data["message"].startswith("shards 2, 3 of 4 left no results; ")
    assert data["data"] == {"type": "missing_shards", "indexes": [2, 3], "total": 4}
    # The conclusion rests on nothing that a sentence says.
    del data["data"]
    document["summary"]["findings"] = [data]
    assert (
        render_headline(parse_verdict(json.dumps(document)))
        == "Agent evals failed: the shards are not one whole run"
    )


@settings(max_examples=settings.default.max_examples // 2)
@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_any_text_comes_back(text):
    assert parse_verdict(render_verdict(hostile(text))) == hostile(text)


def test_an_acknowledged_increase_does_not_shift_the_figures_of_others():
    def run(first, second):
        costs = {"a": first, "b": second}
        return [
            episode(name, iteration=n, trajectory={"turns": [turn(cost_usd=cost)]})
            for name, cost in costs.items()
            for n in range(1, 31)
        ]

    built = report(
        *run(0.099, 0.019),
        baseline=baseline(run(0.01, 0.01), run(0.01, 0.01)),
        policy=GatePolicy(increases=AllowedIncreases(scenario_cost=0.5)),
        acknowledged=(agreement("a"),),
    )
    kinds = [(one.kind, one.scenario_id) for one in built.verdict.reasons]
    assert ("increase", "b") in kinds
    assert ("increase", "a") not in kinds

    assert parse_verdict(render_verdict(built)) == built


OVER = {"tool_calls": {"used": 6, "limit": 4}}


def test_a_success_that_only_a_lenient_policy_grants_is_read():
    lenient = GatePolicy(
        min_pass_rate=0.5, max_error_rate=0.5, allow_skipped=True, eval_min_score=0.5
    )
    built = report(
        episode(iteration=1),
        failing(iteration=2),
        episode("ill", iteration=1, outcome="error"),
        episode("ill", iteration=2),
        episode("left out", outcome="skipped"),
        failing("only informs", gate="advisory", budgets=OVER),
        evaluated("measured", True, False),
        evaluated("broken", outcome="error"),
        policy=lenient,
    )
    assert built.passed
    assert parse_verdict(render_verdict(built)) == built


def test_a_success_with_failing_scenarios_within_the_suite_s_rate_is_read():
    built = report(episode("a"), failing("b"), policy=GatePolicy(suite_min_pass_rate=0.5))
    assert built.passed
    assert parse_verdict(render_verdict(built)) == built


def test_a_failing_scenario_that_only_claims_a_rate_of_the_suite_is_refused():
    built = report(episode("a"), failing("b"), policy=GatePolicy(suite_min_pass_rate=0.5))
    verdict = replace(built.verdict, thresholds=Thresholds())
    with pytest.raises(InputError, match="judgement of scenario a contradicts its iterations"):
        parse_verdict(render_verdict(replace(built, verdict=verdict)))


def edited(**changes):
    document = json.loads(render_verdict(failing_over_budget()))
    for path, value in changes.items():
        *parents, key = path.split("__")
        inner = document
        for parent in parents:
            inner = inner[int(parent) if parent.isdigit() else parent]
        inner[key] = value
    return json.dumps(document)


@each_row(
    ("text", "sentence"),
    [
        ("", "verdict.json"),
        ("{", "verdict.json: Invalid JSON.* line 1 column"),
        ("null", "verdict.json, key 0|verdict.json: "),
        ("{}", "verdict.json, key summary: "),
        (edited(schema_version=None), "key schema_version: "),
        ("{},{}", "verdict.json"),
        ("[]", "verdict.json"),
        (edited(schema_version="2"), "key schema_version: Input should be '1'"),
        (edited(unknown=1), "key unknown: "),
        (edited(summary__totals__unknown=1), "key summary.totals.unknown: "),
        (edited(summary__tally__passed="4"), "key summary.tally.passed: "),
        (
            edited(summary__totals__p95_latency_ms=float("nan")),
            "key summary.totals.p95_latency_ms: ",
        ),
        (edited(summary__scenarios__0__failures=[{}]), r"key summary.scenarios.0.failures.0"),
        (edited(conclusion="success"), "conclusion differs"),
        (edited(verdict__conclusion="success", conclusion="success"), "contradicts the reasons"),
        (edited(verdict__reasons=[]), "contradicts the reasons"),
        (edited(verdict__judgements=[]), "judgements do not belong"),
        (edited(verdict__judgements__2__agent="another"), "judgements do not belong"),
        (edited(verdict__judgements__2__status="passing"), "contradicts its iterations"),
        (edited(verdict__judgements__2__gate="advisory"), "contradicts its iterations"),
        (edited(verdict__judgements__2__required_pass_rate=0.5), "contradicts its iterations"),
        (edited(commit="HEAD"), "key commit: "),
        (edited(commit=f"{'a' * 40}\n"), "key commit: "),
    ],
)
def test_anything_else_is_refused_in_one_sentence(text, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        parse_verdict(text)
    assert "agent-eval report" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_file_is_named_as_the_caller_knows_it():
    with pytest.raises(InputError, match=r"^out/verdict\.json: "):
        parse_verdict("{", name="out/verdict.json")
