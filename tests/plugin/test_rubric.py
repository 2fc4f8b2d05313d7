"""Rubrics and evaluators in tests: judged by the episode's engine, recorded, paid for."""

from __future__ import annotations

import json

import pytest

from tests.model_server import ModelServer
from tests.model_server.script import Step, call

HEAD = """
import pytest
from ci_agent_eval import check
from ci_agent_eval.checks import RequiredText, Rubric
from ci_agent_eval.engine import Provider
from pydantic_evals.evaluators import Contains, GEval, LLMJudge

JUDGE = Provider("openai:gpt-5-mini", base_url={url!r})

@pytest.fixture
def talked(episode):
    with episode.turn("Where is my order?") as turn:
        turn.reply("It comes on Monday.")
"""

KIND = """
@pytest.mark.episode(scenario_id="order")
async def test_order(talked):
    assert await check(Rubric("It is kind.", JUDGE))
"""


def verdict(passed=True, score=1.0, reason="it is kind"):
    arguments = {"pass": passed, "score": score, "reason": reason}
    return Step(tool_calls=[call("final_result", **arguments)])


@pytest.fixture
def suite(pytester, suite, monkeypatch):
    """Run tests against a scripted judge; returns pytest's result, the episodes, the requests."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-of-nobody-0123456789")

    def run(script, source, *arguments, name="test_order.py"):
        with ModelServer(script) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            (pytester.path / name).write_text(HEAD.format(url=server.base_url) + source)
            result = suite.run_in_process(
                name, "--episode-report-dir=out", "-W", "error", *arguments
            )
        results = json.loads((pytester.path / "out/results.json").read_text())
        return result, results["episodes"], len(server.requests)

    return run


OTHERS = """
async def test_not_kept(talked):
    assert await check(Rubric("It is brief.", JUDGE))

async def test_broken_judge(talked):
    assert await check(Rubric("It is true.", JUDGE))

def test_not_awaited(talked):
    check(Rubric("It is kind.", JUDGE))
"""


def test_a_rubric_is_one_assertion_of_the_test_s_episode_and_replayed(suite, monkeypatch):
    script = {
        "It is kind.": [verdict()],
        "It is brief.": [verdict(False, 0.2, "it is curt")],
        "It is true.": [Step(status=500)] * 9,
    }
    result, episodes, _ = suite(script, KIND + OTHERS, "--cassette=record")
    result.assert_outcomes(passed=1, failed=3)
    by_name = {one["nodeid"].rpartition("::")[2]: one for one in episodes}
    episode = by_name["test_order"]
    (found,) = [a for a in episode["assertions"] if a["name"].startswith("rubric")]
    assert found == {
        "name": "rubric: It is kind.",
        "passed": True,
        "score": 1,
        "reason": "it is kind",
        "file": "test_order.py",
        "line": found["line"],
    }
    assert episode["judge"]["calls"] == 1
    assert episode["judge"]["cost_usd"] > 0
    assert "cost_usd" not in episode["trajectory"]["turns"][1]
    assert by_name["test_not_kept"]["outcome"] == "failed"
    result.stdout.fnmatch_lines(["*rubric: It is brief.: it is curt*"])
    broken = by_name["test_broken_judge"]
    assert broken["outcome"] == "error"
    assert broken["reason"].startswith("JudgeError: the judge gave no verdict")
    assert [a for a in broken.get("assertions", ()) if not a["passed"]] == []
    assert "await check" in by_name["test_not_awaited"]["reason"]
    monkeypatch.delenv("OPENAI_API_KEY")
    result, (again,), asked = suite([], KIND, "--cassette=replay")
    result.assert_outcomes(passed=1)
    assert asked == 0
    assert again["assertions"] == episode["assertions"]
    assert again["judge"] == episode["judge"]


EVALUATION = """
@pytest.mark.episode(scenario_id="order")
async def test_order(talked):
    check(RequiredText("Tuesday"))
    await check(Rubric("It is kind.", JUDGE), "tone")
    check(Contains("Monday"))
"""


def test_an_evaluation_goes_on_after_a_check_that_failed(suite):
    result, (episode,), _ = suite([verdict(False, 0.4, "curt")], EVALUATION, name="order_eval.py")
    assert result.ret == 0
    assert [(a["name"], a["passed"], a.get("score")) for a in episode["assertions"]] == [
        ("says 'Tuesday'", False, 0),
        ("tone: rubric: It is kind.", False, 0.4),
        ("Contains", True, 1),
    ]


JUDGES = """
from pydantic_evals.evaluators import llm_as_a_judge

@pytest.fixture(autouse=True)
def default_judge(monkeypatch):
    monkeypatch.setattr(llm_as_a_judge, "_default_model", "openai-chat:gpt-5-mini")

@pytest.mark.episode(scenario_id="order")
async def test_order(talked):
    await check(LLMJudge("It is kind.", model="openai-chat:gpt-5-mini"))
    await check(LLMJudge("It is short."))
    await check(GEval("kindness", ["look for kind words"], model="openai-chat:gpt-5-mini"))
"""


def test_judges_of_pydantic_evals_are_asked_by_the_engine(suite, monkeypatch):
    script = {
        "It is kind.": [verdict()],
        "It is short.": [verdict()],
        "kindness": [Step(tool_calls=[call("final_result", reason="warm", score=5)])],
    }
    result, (live,), asked = suite(script, JUDGES, "--cassette=record")
    result.assert_outcomes(passed=1)
    assert (live["judge"]["calls"], asked) == (3, 3)
    assert [a["name"] for a in live["assertions"][-3:]] == ["LLMJudge", "LLMJudge", "GEval"]
    monkeypatch.delenv("OPENAI_API_KEY")
    result, (again,), asked = suite([], JUDGES, "--cassette=replay")
    result.assert_outcomes(passed=1)
    assert asked == 0
    assert again["judge"] == live["judge"]


def test_a_rubric_of_a_scenario_file_judges_each_turn_and_ends_the_conversation(suite, pytester):
    (pytester.path / "order.yaml").write_text(
        """
- id: order
  script: ["Where is my order?", "And?", never said]
  judge:
    success: {Rubric: {rubric: It names a day., model: "openai:gpt-5-mini"}}
"""
    )
    script = {"One moment.": [verdict(False, 0, "no day")], "It comes on Monday.": [verdict()]}
    source = """
from ci_agent_eval import scenarios

@scenarios("order.yaml")
def test_order(scenario):
    replies = iter(["One moment.", "It comes on Monday."])
    result = scenario.run(lambda message: next(replies))
    assert (result.stop_reason, result.verdict.reason) == (
        "judge_verdict", "rubric: It names a day.: it is kind"
    )
"""
    result, (episode,), asked = suite(script, source)
    result.assert_outcomes(passed=1)
    (found,) = [each for each in episode["assertions"] if each["name"].startswith("judge")]
    assert (found["name"], found["file"], found["line"]) == (
        "judge: rubric: It names a day.",
        "order.yaml",
        2,
    )
    assert (asked, episode["judge"]["calls"]) == (2, 2)
