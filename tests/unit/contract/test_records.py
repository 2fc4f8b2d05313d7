"""What records come to: outcome, reason, what evidence is missing, and what budgets are exceeded."""

from __future__ import annotations

import json
from typing import get_args

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.stops import AgentStop
from tests.builders import episode, failed_assertion, tool_call, turn

CHECKED = {"assertions": [{"name": "polite", "passed": True}]}
FAILED = {"assertions": [{"name": "polite", "passed": False}]}
UNANSWERED = {"turns": [{"role": "user", "content": "hello"}, turn("")]}
CALLED = {"turns": [{"role": "user", "content": "hello"}, turn("", tool_calls=[tool_call()])]}
CUT_SHORT = {"turns": [{"role": "user", "content": "hello"}]}
OVER, CUSTOM = {"tool_calls": {"used": 6, "limit": 4}}, {"emails": {"limit": 1, "used": 1}}
PLAN = {
    "max_turns": 5,
    "tool_calls": {"used": 3, "limit": 4},
    "latency_ms": {"p95": 1200, "limit": 2000},
}


def required(**fields):
    return episode(evidence="required", **fields)


def claimed(**fields):
    """What another program wrote of an episode that passed, it says."""
    return Episode.model_validate({"scenario_id": "refund", "outcome": "passed", **fields})


def say(**fields):
    return {"trajectory": {"turns": [{"role": "assistant", **fields}]}}


# What our recorder writes needs a turn and an assertion.
OURS = {
    "nothing": {},
    "an assertion": CHECKED,
    "an assert statement": {"asserted": True},
    "a budget": {"budgets": {"max_turns": 3}},
    "a score": {"scores": [{"name": "warmth", "value": 0.5}]},
    "no turn": {**CHECKED, "trajectory": None},
    "no answer": {**CHECKED, "trajectory": UNANSWERED},
    "a call": {**CHECKED, "trajectory": CALLED},
    "neither": {"trajectory": None},
    "neither, and advisory": {"trajectory": None, "gate": "advisory"},
    "a custom budget alone": {"trajectory": None, "budgets": {"custom": CUSTOM}},
    "a failed assertion alone": {"trajectory": None, "assertions": [failed_assertion()]},
    "neither, and skipped": {"trajectory": None, "outcome": "skipped"},
    "over budget alone": {"trajectory": None, "budgets": OVER},
    "a refusal": {**CHECKED, "trajectory": UNANSWERED, "stop_reason": "refusal"},
    "a refusal that the test allows": {
        **CHECKED,
        "trajectory": UNANSWERED,
        "stop_reason": "refusal",
        "allowed_stops": ["refusal"],
    },
}
# What others write is judged by what it contains.
OF_OTHERS = {
    "a call": {"trajectory": CALLED},
    "an answer": say(content="Done."),
    "tokens of a turn": say(tokens={"output": 3}),
    "the cost of a turn": say(cost_usd=0.01),
    "a summary": {"trajectory_summary": {"tool_calls_count": 2}},
    "a measured budget": {"budgets": {"tool_calls": {"used": 3, "limit": 4}}},
    "a score": {"scores": [{"name": "warmth", "value": 0.5}]},
    "tokens": {"tokens": {"input": 20}},
    "a cost": {"cost_usd": 0.01},
    "an assert statement": {"asserted": True},
    "an assertion": CHECKED,
    "no tokens": {"tokens": {"input": 0, "output": 0}},
    "no cost": {"cost_usd": 0},
    "neither": {"tokens": {}, "cost_usd": 0.0},
    "a budget of nothing": {"budgets": {"cost_usd": {"used": 0, "limit": 1}}},
    "an empty answer": say(content=""),
    "blanks": say(content=" \n", tokens={}),
    "a bare turn": {**say(), "budgets": {"max_turns": 5}},
    "a question": {"trajectory": CUT_SHORT},
    "no turn": {"trajectory": {"turns": []}},
    "no step": {"trajectory_summary": {"steps_count": 0}},
    "a claim alone": {},
    "a claim that needs no evidence": {"evidence": "none"},
    "an advisory claim": {"gate": "advisory"},
}
RECORDS = {
    **{f"ours: {name}": lambda fields=fields: required(**fields) for name, fields in OURS.items()},
    **{f"others': {name}": lambda fields=fields: claimed(**fields) for name, fields in OF_OTHERS.items()},
    "the episode of the plan": lambda: Episode(scenario_id="refund_flow_v1", budgets=PLAN),
    "one that says nothing": lambda: Episode.from_any({"scenario_id": "x"}),
    # Ends of runs
    **{f"stopped: {stop}": lambda stop=stop: episode(stop_reason=stop) for stop in get_args(AgentStop)},
    **{
        f"stopped: {stop}, allowed": lambda stop=stop: episode(stop_reason=stop, allowed_stops=[stop])
        for stop in get_args(AgentStop)
    },
    **{
        f"ended: {stop}": lambda stop=stop: episode(stop_reason=stop)
        for stop in ("completed", "server_error", "model_error", "cancelled")
    },
    "a timeout before any answer": lambda: episode(stop_reason="timeout", trajectory=CUT_SHORT, evidence="none"),
    "an error that was refused": lambda: episode(stop_reason="refusal", outcome="error"),
    # No ending erases a failed assertion.
    **{
        f"{mode}, {ended} with a failed assertion": lambda mode=mode, ended=ended: claimed(
            **FAILED, mode=mode, outcome=ended
        )
        for mode in ("strict", "evaluation")
        for ended in ("passed", "skipped", "error")
    },
    # Budgets
    "calls are counted": lambda: episode(
        trajectory={"turns": [{"role": "user"}, turn(tool_calls=[tool_call()] * 2), turn()]},
        budgets={"max_turns": 5, "tool_calls": 1},
    ),
    "a producer that claims less": lambda: episode(
        trajectory={"turns": [turn(tool_calls=[tool_call()] * 3)]},
        budgets={"tool_calls": {"used": 1, "limit": 2}},
    ),
    "nothing to measure": lambda: episode(
        trajectory={"turns": []}, budgets={"max_turns": 2, "tool_calls": 1}, evidence="none"
    ),
    "a soft budget": lambda: episode(trajectory=None, budgets={"tool_calls": {**OVER["tool_calls"], "hard": False}}),
    "a limit that is just reached": lambda: episode(budgets={"tool_calls": {"used": 4, "limit": 4}}, trajectory=None),
    "a limit of zero": lambda: episode(budgets={"custom": {"retries": {"used": 1, "limit": 0}}}),
    "a limit without a measurement": lambda: episode(budgets={"cost_usd": 0.5}),
}  # fmt: skip


def describe(name, record):
    passes = "passes" if record.is_passing() else "does not pass"
    lines = [f"{name}: {record.outcome}, {passes}"]
    lines += [f"  {record.reason}"] if record.reason else []
    lines += [f"  without {what}" for what in record.missing_evidence]
    for found in record.violations:
        over = "" if found.over_by is None else f", {found.over_by:.0%} over"
        lines.append(f"  {found.budget}: {found.observed} of {found.limit}{over}")
    used = [(budget, one.used) for budget, one in record.budgets.iter_named()]
    lines += [f"  used {budget}: {amount}" for budget, amount in used]
    return "\n".join(lines)


def test_the_records_come_to_what_the_golden_file_says(golden):
    text = "\n".join(describe(name, build()) for name, build in RECORDS.items())
    golden("contract/records.txt", f"{text}\n")


def test_a_record_that_claims_to_have_passed_is_judged_again():
    written = json.loads(canonical_json(required(**CHECKED)))
    assert Episode.model_validate(written).outcome == "passed"
    del written["assertions"]
    assert Episode.model_validate(written).outcome == "error"
