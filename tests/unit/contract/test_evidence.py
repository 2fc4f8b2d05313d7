"""Evidence in a record: what an episode of our recorder needs, and what any other one."""

from __future__ import annotations

import json

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Episode
from tests.builders import episode, failed_assertion, tool_call, turn
from tests.tables import each_row

CHECKED = {"assertions": [{"name": "polite", "passed": True}]}
UNANSWERED = {"turns": [{"role": "user", "content": "hello"}, turn("")]}
CALLED = {"turns": [{"role": "user", "content": "hello"}, turn("", tool_calls=[tool_call()])]}


def required(**fields):
    return episode(evidence="required", **fields)


@each_row(
    ("fields", "missing"),
    [
        ({}, ("assertion",)),
        (CHECKED, ()),
        ({"asserted": True}, ()),
        ({"budgets": {"max_turns": 3}}, ()),
        ({"scores": [{"name": "warmth", "value": 0.5}]}, ("assertion",)),
        ({**CHECKED, "trajectory": None}, ("turn",)),
        ({**CHECKED, "trajectory": UNANSWERED}, ("turn",)),
        ({**CHECKED, "trajectory": CALLED}, ()),
        ({"trajectory": None}, ("turn", "assertion")),
        ({"trajectory": None, "gate": "advisory"}, ()),
        (
            {"budgets": {"custom": {"emails": {"limit": 1, "used": 1}}}, "trajectory": None},
            ("turn",),
        ),
    ],
)
def test_what_our_recorder_writes_needs_a_turn_and_an_assertion(fields, missing):
    read = required(**fields)
    assert read.missing_evidence == missing
    assert read.outcome == ("error" if missing else "passed")


def test_a_stop_that_the_test_allows_is_something_that_the_agent_did():
    ended = {**CHECKED, "trajectory": UNANSWERED, "stop_reason": "refusal"}
    assert required(**ended, allowed_stops=["refusal"]).outcome == "passed"


def test_what_is_no_pass_lacks_nothing():
    assert required(trajectory=None, assertions=[failed_assertion()]).outcome == "failed"
    assert required(trajectory=None, outcome="skipped").missing_evidence == ()
    over = required(trajectory=None, budgets={"tool_calls": {"used": 3, "limit": 1}})
    assert (over.outcome, over.missing_evidence) == ("passed", ())
    assert not over.is_passing()


def test_the_reason_names_what_is_missing_and_what_to_do():
    said = str(required(trajectory=None).reason)
    assert said.startswith("no evidence: no completed turn or tool call and no assertion; ")
    assert "pytest.register_assert_rewrite" in said
    assert 'episode(evidence="none")' in said
    assert "no assertion" not in str(required(**CHECKED, trajectory=None).reason)


def test_a_record_that_claims_to_have_passed_is_judged_again():
    written = json.loads(canonical_json(required(**CHECKED)))
    assert Episode.model_validate(written).outcome == "passed"
    del written["assertions"]
    assert Episode.model_validate(written).outcome == "error"


@each_row(
    "shown",
    [
        {"trajectory": CALLED},
        {"trajectory": {"turns": [{"role": "assistant", "content": "Done."}]}},
        {"trajectory": {"turns": [{"role": "assistant", "tokens": {"output": 3}}]}},
        {"trajectory": {"turns": [{"role": "assistant", "cost_usd": 0.01}]}},
        {"trajectory_summary": {"tool_calls_count": 2}},
        {"budgets": {"tool_calls": {"used": 3, "limit": 4}}},
        {"scores": [{"name": "warmth", "value": 0.5}]},
        {"tokens": {"input": 20}},
        {"cost_usd": 0.01},
        {"asserted": True},
        CHECKED,
    ],
)
def test_what_others_write_is_judged_by_what_it_contains(shown):
    claimed = {"scenario_id": "refund", "outcome": "passed"}
    assert Episode.model_validate({**claimed, **shown}).outcome == "passed"


@each_row(
    "shown",
    [
        {"tokens": {"input": 0, "output": 0}},
        {"cost_usd": 0},
        {"tokens": {}, "cost_usd": 0.0},
        {"budgets": {"cost_usd": {"used": 0, "limit": 1}}},
        {"trajectory": {"turns": [{"role": "assistant", "content": ""}]}},
        {"trajectory": {"turns": [{"role": "assistant", "content": " \n", "tokens": {}}]}},
        {"trajectory": {"turns": [{"role": "assistant"}]}, "budgets": {"max_turns": 5}},
        {"trajectory": {"turns": [{"role": "user", "content": "hello"}]}},
        {"trajectory": {"turns": []}},
        {"trajectory_summary": {"steps_count": 0}},
    ],
)
def test_amounts_of_zero_and_turns_without_an_answer_are_no_evidence(shown):
    read = Episode.model_validate({"scenario_id": "refund", "outcome": "passed", **shown})
    assert (read.outcome, read.missing_evidence) == ("error", ("turn", "assertion"))


def test_a_claim_alone_is_no_evidence_unless_it_is_to_be_none():
    claimed = {"scenario_id": "refund", "outcome": "passed"}
    assert Episode.model_validate(claimed).missing_evidence == ("turn", "assertion")
    assert Episode.model_validate({**claimed, "evidence": "none"}).outcome == "passed"
    assert Episode.model_validate({**claimed, "gate": "advisory"}).outcome == "passed"


def test_the_episode_of_the_pytest_overhaul_plan_stays_valid():
    plan = {
        "scenario_id": "refund_flow_v1",
        "budgets": {
            "max_turns": 5,
            "tool_calls": {"used": 3, "limit": 4},
            "latency_ms": {"p95": 1200, "limit": 2000},
        },
    }
    assert Episode.model_validate(plan).missing_evidence == ()
