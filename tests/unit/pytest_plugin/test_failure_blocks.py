"""The blocks of failing scenarios: one for each cause, with the conversation's last turn."""

from __future__ import annotations

from ci_agent_eval.pytest_plugin.terminal import MAX_BLOCKS, render_failure_blocks


def make_record(scenario="refund", outcome="failed", iteration=1, agent=None, **details):
    failure = {
        "user": "Can I return them?",
        "answer": "Within 60 days.",
        "calls": [],
        "more_calls": 0,
        "check": "states the limit",
        "reason": "'30 days' is not in the answer",
        "place": "test_policy.py:31",
        "columns": "",
        "cause": "states the limit",
        "length": 33,
        **details,
    }
    return {
        "key": [scenario, "tests/test_policy.py::test", iteration, 1],
        "scenario_id": scenario,
        "agent": agent,
        "outcome": outcome,
        "failure": failure,
    }


def render(*records, sizes=None, width=80):
    found = {(one["scenario_id"], one["agent"] or ""): 1 for one in records}
    return [line for line, _ in render_failure_blocks(records, found | (sizes or {}), width)]


def test_block_shows_the_conversation_the_check_and_the_command():
    record = make_record(
        calls=['search(topic="returns")', "get()"], more_calls=2, columns="words 4 · ok yes"
    )
    lines = render(record)

    assert lines == [
        "── refund " + "─" * 70,
        "  user       Can I return them?",
        '  calls      search(topic="returns")',
        "             get()",
        "             and 2 more calls",
        "✗ assistant  Within 60 days.",
        "  check      states the limit",
        "             '30 days' is not in the answer",
        "             test_policy.py:31",
        "  columns    words 4 · ok yes",
        "  again      agent-eval run tests/test_policy.py --scenario refund",
        "",
    ]


def test_most_frequent_cause_is_last_and_the_rest_is_counted():
    records = [make_record(f"s{number}") for number in range(MAX_BLOCKS + 1)]
    records += [make_record("often", iteration=number) for number in (1, 2)]

    lines = render(*records, sizes={("often", ""): 2})

    assert lines[0] == "2 more causes below"
    titles = [line for line in lines if line.startswith("──")]
    assert len(titles) == MAX_BLOCKS
    assert titles[-1].startswith("── often ")
