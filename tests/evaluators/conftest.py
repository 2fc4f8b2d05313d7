"""Evaluators of a real library, without network and telemetry."""

from __future__ import annotations

import os

import pytest

from ci_agent_eval.contract.episode import Episode

LIBRARY = os.environ.get("EVALUATORS", "")
collect_ignore = [
    f"test_{name}.py" for name in ("autoevals", "deepeval", "openevals", "ragas") if name != LIBRARY
]
os.environ |= {
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "LANGSMITH_TRACING": "false",
    "OTEL_SDK_DISABLED": "true",
    "RAGAS_DO_NOT_TRACK": "true",
}
CALLS = [
    {"name": "find_order", "arguments": {"id": 1001}, "result": {"usd": 39}},
    {"name": "refund", "arguments": {"id": 1001, "usd": 39}, "error": "down"},
]


def pytest_sessionstart():
    assert LIBRARY, "start the tests with `make evaluators`"


@pytest.fixture(scope="session")
def refund():
    """A conversation of two exchanges with two tool calls."""
    turns = [
        {"role": "user", "content": "Refund order 1001."},
        {"role": "assistant", "content": "", "tool_calls": CALLS[:1]},
        {"role": "assistant", "content": "39 dollars. Shall I?"},
        {"role": "user", "content": "Yes."},
        {"role": "assistant", "content": "", "tool_calls": CALLS[1:]},
        {"role": "assistant", "content": "Refunded 39 dollars."},
    ]
    return Episode.model_validate(
        {"scenario_id": "refund", "outcome": "passed", "trajectory": {"turns": turns}}
    )


@pytest.fixture
def judge(refund):
    """Return name, result, score and reason of a check's only assertion."""

    def judge(check):
        (found,) = check.assertions(refund)
        return found.name, found.passed, found.score, found.reason

    return judge
