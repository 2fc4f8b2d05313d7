"""Runs that end without an answer, from a model's API to the verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.command_server import run_agent_eval
from tests.model_server import ModelServer
from tests.model_server.script import Step, call

BANK = Path(__file__).parents[1] / "servers/bank.py"

LOOK = Step(tool_calls=[call("get_balance", account="checking")])
SCRIPT = {
    "cut off": [LOOK, LOOK, LOOK, "never asked for"],
    "refused": [Step(refusal="I will not.")],
    "truncated": [Step(text="Your balance is $1,5", finish_reason="length")],
    "too long": [Step(status=400, code="context_length_exceeded")],
    "empty": [Step(text=""), Step(text="")],
    "fine": ["Your balance is $1,500."],
}

SUITE = """
import sys
import pytest
from ci_agent_eval.engine import Agent, MCPServer, Provider

agent = Agent(
    provider=Provider("openai:gpt-5-mini", base_url={url!r}),
    mcp_servers=[MCPServer(command=[sys.executable, {bank!r}])],
)

@pytest.mark.episode(scenario_id="cut off", budgets={{"max_turns": {budget}}}{on_marker})
async def test_cut_off(aitest_run):
    result = await aitest_run(agent, "cut off", max_turns=3{on_run})
    assert result.tool_was_called("get_balance")

@pytest.mark.parametrize("prompt", ["refused", "truncated", "too long", "empty", "fine"])
@pytest.mark.episode(gate="required"{on_marker})
async def test_answers(aitest_run, prompt):
    result = await aitest_run(agent, prompt{on_run})
    assert result.turns[0].content == prompt
"""

REASONS = {
    "cut off": "max_turns: it was not done after 3 turns",
    "test_answers[refused]": "refusal: the model refused: I will not.",
    "test_answers[truncated]": "truncated: its answer was cut at the model's token limit",
    "test_answers[too long]": "context_window: the request no longer fits the model: ",
    "test_answers[empty]": (
        "empty_answer: its answer is empty: no text, no typed output, no attachment and no tool call"
    ),
}


@pytest.fixture
def gate(tmp_path):
    """Run the suite under the gate; returns the process, the verdict, the comment, the episodes."""

    def run(**parts):
        parts = {"budget": 3, "on_marker": "", "on_run": "", **parts}
        with ModelServer(SCRIPT) as server:
            suite = SUITE.format(bank=str(BANK), url=server.base_url, **parts)
            (tmp_path / "test_suite.py").write_text(suite)
            done = run_agent_eval("run", "test_suite.py", "--max-error-rate=1", cwd=tmp_path)
        folder = tmp_path / "agent-eval-report"
        verdict = json.loads((folder / "verdict.json").read_text())
        comment = (folder / "comment.md").read_text()
        episodes = json.loads((folder / "results.json").read_text())["episodes"]
        by_scenario = {e["scenario_id"].removeprefix("test_suite.py::"): e for e in episodes}
        return done, verdict, comment, by_scenario

    return run


ALLOWED = ', allowed_stops={"max_turns", "refusal", "truncated", "context_window", "empty_answer"}'


def test_each_of_the_five_is_red_for_its_own_reason(gate):
    done, verdict, comment, episodes = gate()
    assert done.returncode == 1, done.stderr
    assert {name for name, e in episodes.items() if e["outcome"] == "failed"} == set(REASONS)
    assert episodes["test_answers[fine]"]["outcome"] == "passed"
    shown = {
        scenario["scenario_id"].removeprefix("test_suite.py::"): json.dumps(scenario)
        for scenario in verdict["summary"]["scenarios"]
    }
    for name, reason in REASONS.items():
        (assertion,) = (a for a in episodes[name]["assertions"] if not a["passed"])
        assert assertion["name"] == "agent finished"
        assert assertion["reason"].startswith(reason)
        assert reason in done.stdout
        assert reason in shown[name]
        assert reason in comment
    assert {reason["kind"] for reason in verdict["verdict"]["reasons"]} == {"scenario", "budget"}
    assert "cut off  turns (hard)  4, limit 3 (+33 %)" in done.stdout


def test_the_finish_reason_of_the_provider_is_in_each_turn(gate):
    _, _, _, episodes = gate()
    written = {
        name: [
            turn.get("finish_reason")
            for turn in episode["trajectory"]["turns"]
            if turn["role"] == "assistant"
        ]
        for name, episode in episodes.items()
    }
    assert written == {
        "cut off": ["tool_call"] * 3,
        "test_answers[refused]": ["content_filter"],
        "test_answers[truncated]": ["length"],
        "test_answers[too long]": [],
        "test_answers[empty]": ["stop", "stop"],
        "test_answers[fine]": ["stop"],
    }


@pytest.mark.parametrize("place", ["on_marker", "on_run"])
def test_ends_that_the_test_allows_are_green_and_so_is_an_answer(gate, place):
    done, verdict, _, episodes = gate(**{place: ALLOWED, "budget": 4})
    assert done.returncode == 0, done.stdout
    assert verdict["conclusion"] == "success"
    assert {episode["outcome"] for episode in episodes.values()} == {"passed"}
    assert episodes["cut off"]["budgets"]["max_turns"]["used"] == 4
    assert episodes["test_answers[refused]"]["stop_reason"] == "refusal"
    assert "refusal" in episodes["test_answers[refused]"]["allowed_stops"]


def test_a_hard_budget_of_turns_is_violated_where_the_end_is_allowed(gate):
    done, verdict, _, _ = gate(on_marker=ALLOWED)
    assert done.returncode == 1
    (reason,) = verdict["verdict"]["reasons"]
    assert (reason["kind"], reason["scenario_id"]) == ("budget", "cut off")
