"""Runs that end without an answer, from a model's API to the verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.model_server import ModelServer
from tests.model_server.script import Step, call
from tests.processes import run_agent_eval

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

HEAD = """
import sys
import pytest
from ci_agent_eval.engine import Agent, MCPServer, Provider

agent = Agent(
    provider=Provider("openai:gpt-5-mini", base_url={url!r}),
    mcp_servers=[MCPServer(command=[sys.executable, {bank!r}])],
)
"""
CUT_OFF = """
@pytest.mark.episode(scenario_id={scenario!r}, budgets={{"max_turns": {budget}}}{on_marker})
async def test_cut_off(aitest_run):
    result = await aitest_run(agent, "cut off", max_turns=3{on_run})
    assert result.tool_was_called("get_balance")
"""
ANSWERS = """
@pytest.mark.parametrize("prompt", ["refused", "truncated", "too long", "empty", "fine"])
@pytest.mark.episode(gate="required"{on_marker})
async def test_answers(aitest_run, prompt):
    result = await aitest_run(agent, prompt{on_run})
    assert result.turns[0].content == prompt
"""
SUITE = HEAD + CUT_OFF + ANSWERS

REASONS = {
    "cut off": "max_turns: it was not done after 3 turns",
    "test_answers[refused]": "refusal: the model refused: I will not.",
    "test_answers[truncated]": "truncated: its answer was cut at the model's token limit",
    "test_answers[too long]": "context_window: the request no longer fits the model: ",
    "test_answers[empty]": (
        "empty_answer: its answer is empty: no text, no typed output, no attachment and no tool call"
    ),
}


def gate(folder, **suites):
    """Run these suites under the gate; return the process, the verdict, the comment, the episodes.

    A suite is a template and its parts.
    """
    with ModelServer(SCRIPT) as server:
        for name, (template, parts) in suites.items():
            given = {"scenario": "cut off", "budget": 3, "on_marker": "", "on_run": "", **parts}
            text = template.format(bank=str(BANK), url=server.base_url, **given)
            (folder / f"{name}.py").write_text(text)
        done = run_agent_eval("run", ".", "--max-error-rate=1", cwd=folder)
    report = folder / "agent-eval-report"
    verdict = json.loads((report / "verdict.json").read_text())
    comment = (report / "comment.md").read_text()
    episodes = json.loads((report / "results.json").read_text())["episodes"]
    by_scenario = {e["scenario_id"].removeprefix("test_suite.py::"): e for e in episodes}
    return done, verdict, comment, by_scenario


ALLOWED = ', allowed_stops={"max_turns", "refusal", "truncated", "context_window", "empty_answer"}'
OVER = "cut off where that is allowed"


@pytest.fixture(scope="module")
def nothing_allowed(tmp_path_factory):
    allowed = {"scenario": OVER, "on_marker": ALLOWED}
    suites = {"test_suite": (SUITE, {}), "test_allowed": (HEAD + CUT_OFF, allowed)}
    return gate(tmp_path_factory.mktemp("suite"), **suites)


def test_each_of_the_five_is_red_for_its_own_reason(nothing_allowed):
    done, verdict, comment, episodes = nothing_allowed
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
        assert reason in " ".join(done.stdout.split())
        assert reason in shown[name]
        assert reason in comment
    reasons = verdict["verdict"]["reasons"]
    assert {reason["kind"] for reason in reasons} == {"scenario", "budget"}
    # A hard budget of turns is violated where the end is allowed, too.
    assert [reason["kind"] for reason in reasons if reason["scenario_id"] == OVER] == ["budget"]
    assert "cut off turns 4 (limit 3)" in " ".join(done.stdout.split())


def test_ends_that_the_test_allows_are_green_and_so_is_an_answer(tmp_path):
    on_run = {"scenario": "cut off on run", "on_run": ALLOWED, "budget": 4}
    done, verdict, _, episodes = gate(
        tmp_path,
        test_suite=(SUITE, {"on_marker": ALLOWED, "budget": 4}),
        test_on_run=(SUITE, on_run),
    )
    assert done.returncode == 0, done.stdout
    assert verdict["conclusion"] == "success"
    assert len(episodes) == 12
    assert {episode["outcome"] for episode in episodes.values()} == {"passed"}
    for cut_off in ("cut off", "cut off on run"):
        assert episodes[cut_off]["budgets"]["max_turns"]["used"] == 4
    for refused in ("test_answers[refused]", "test_on_run.py::test_answers[refused]"):
        assert episodes[refused]["stop_reason"] == "refusal"
        assert "refusal" in episodes[refused]["allowed_stops"]
