"""A change that weakens its tests is told so; it never gates by itself."""

from __future__ import annotations

from typing import Any

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.render.sentences import describe_reason
from tests.builders import baseline, episode, failed_assertion, report
from tests.tables import each_row


def demanding(**overrides: Any) -> Episode:
    checks = [{"name": f"check {number}", "passed": True} for number in range(5)]
    polite = {"name": "polite", "passed": True, "score": 0.95, "threshold": 0.9}
    fields = {
        "assertions": [polite, *checks],
        "budgets": {"tool_calls": {"limit": 4}, "custom": {"searches": {"used": 1, "limit": 2}}},
        "allowed_stops": ["max_turns"],
        **overrides,
    }
    return episode(**fields)


def scored(name: str, score: float, threshold: float | None = 0.5) -> dict[str, Any]:
    return {"name": name, "passed": True, "score": score, "threshold": threshold}


LIMITS = demanding().budgets.model_dump()
FEWER = {"assertions": [scored("polite", 0.95, 0.9), {"name": "check 0", "passed": True}]}
SCORES = {"assertions": [scored("polite", 0.95)]}


@each_row(
    ("before", "now", "told"),
    [
        ({}, {}, None),
        ({}, {"budgets": {**LIMITS, "tool_calls": {"limit": 40}}}, "tool_calls up to 40, 4 before"),
        ({}, {"budgets": {**LIMITS, "tool_calls": {"limit": 3}}}, None),
        (
            {},
            {"budgets": {}},
            "no hard budget searches, 2 before; no hard budget tool_calls, 4 before",
        ),
        (
            {},
            {"budgets": {**LIMITS, "tool_calls": {"limit": 4, "hard": False}}},
            "no hard budget tool_calls, 4 before",
        ),
        ({}, FEWER, "2 checks, 6 before"),
        (FEWER, {}, None),
        (SCORES, {"assertions": [scored("polite", 0.95, 0.4)]}, "polite from 0.4, 0.5 before"),
        (SCORES, {"assertions": [scored("polite", 0.95, 0.6)]}, None),
        ({}, {"allowed_stops": ["timeout", "max_turns"]}, "it may end in timeout"),
        ({}, {"allowed_stops": []}, None),
        # In another file it is the same test.
        ({}, {**FEWER, "nodeid": "tests/test_b.py::test_refund"}, "2 checks, 6 before"),
    ],
)
def test_a_change_that_requires_less_is_told_so_and_does_not_gate(before, now, told):
    built = report(demanding(**now), baseline=baseline([demanding(**before)]))
    said = [one for one in built.verdict.warnings if one.kind == "weaker_demands"]
    expected = [] if told is None else [f"this change requires less than before: {told}"]
    assert [describe_reason(one) for one in said] == expected
    assert built.passed


def test_an_episode_that_stopped_early_shows_no_demands():
    late = demanding(outcome="failed", assertions=[failed_assertion()], budgets={})
    built = report(
        demanding(iterations=2),
        late.model_copy(update={"iteration": 2, "iterations": 2}),
        baseline=baseline([demanding()]),
    )
    assert "weaker_demands" not in {one.kind for one in built.verdict.warnings}


@each_row(
    ("before", "now", "told"),
    [
        ([0.95, 0.93], [0.52, 0.6], "polite 0.94 → 0.56"),
        ([0.95, 0.5], [0.52], None),
        ([0.95], [0.9], None),
        ([0.6], [0.95], None),
    ],
)
def test_checks_that_pass_with_lower_scores_are_told(before, now, told):
    def of(scores):
        return [
            episode(iteration=n, iterations=len(scores), assertions=[scored("polite", score)])
            for n, score in enumerate(scores, 1)
        ]

    built = report(*of(now), baseline=baseline(of(before)))
    said = [describe_reason(o) for o in built.verdict.warnings if o.kind == "lower_scores"]
    assert said == ([] if told is None else [f"checks pass with lower scores: {told}"])
    assert built.passed
