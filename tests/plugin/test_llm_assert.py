"""`llm_assert` and `llm_score`: in plain and async tests, with and without an episode."""

from __future__ import annotations

import json

import pytest

from tests.model_server import ModelServer, Step
from tests.model_server.script import call

SUITE = """
import pytest
from ci_agent_eval import assert_score
from ci_agent_eval.checks import ScoringDimension

RUBRIC = [ScoringDimension("accuracy", "It is true."), ScoringDimension("tone", "Kind.", 10, 3)]

def test_plain(llm_assert):
    found = llm_assert("Hello there!", "is a greeting")
    assert found and found.passed and found.reasoning == "it greets"
    assert (found.criterion, found.content_preview) == ("is a greeting", "Hello there!")

def test_failed(llm_assert):
    assert llm_assert("Go away!", "is kind")

def test_episode(llm_assert, episode):
    with episode.turn("Hi") as turn:
        turn.reply("Hello there!")
    assert llm_assert("Hello there!", "is a greeting")

@pytest.mark.episode(scenario_id="in a coroutine")
async def test_async(llm_assert, llm_score, episode):
    with episode.turn("Hi") as turn:
        turn.reply("Hello there!")
    assert llm_assert("Hello there!", "is a greeting")
    assert await llm_assert.async_assert("Hello there!", "is a greeting")
    assert (await llm_score.async_score("A plan.", RUBRIC)).total == 10

async def test_forgotten(llm_assert, episode):
    with episode.turn("Hi") as turn:
        turn.reply("Hello there!")
    judged = llm_assert.async_assert("Hello there!", "is a greeting")
    assert episode.turns

def test_broken(llm_assert, episode):
    with episode.turn("Hi") as turn:
        turn.reply("Hello there!")
    assert llm_assert("Hello there!", "breaks the judge")

def test_score(llm_score):
    result = llm_score("A plan.", RUBRIC, content_label="plan", context="The task.")
    assert (result.scores, result.total, result.max_total) == ({"accuracy": 4, "tone": 6}, 10, 15)
    assert result.weighted_score == pytest.approx((0.8 + 3 * 0.6) / 4)
    assert_score(result, min_total=10, min_pct=0.65, min_dimensions={"accuracy": 4})
    with pytest.raises(AssertionError) as caught:
        assert_score(result, min_total=11, min_pct=0.66, min_dimensions={"tone": 7})
    assert str(caught.value) == (
        "tone is 6, at least 7 is required; total is 10 of 15, not 11; "
        "weighted score is 0.65, not 0.66: solid"
    )
"""

GRADES = [
    {"name": "tone", "reason": "dry", "score": 6},
    {"name": "accuracy", "reason": "right", "score": 4},
]


def answers(step):
    return [step] * 9


SCRIPT = {
    "is a greeting": answers(
        Step(tool_calls=[call("final_result", reason="it greets", **{"pass": True, "score": 1.0})])
    ),
    "breaks": answers(Step(status=500)),
    "is kind": answers(
        Step(tool_calls=[call("final_result", reason="rude", **{"pass": False, "score": 0.0})])
    ),
    "A plan.": answers(Step(tool_calls=[call("final_result", reason="solid", grades=GRADES)])),
}


@pytest.fixture
def run(pytester, suite, monkeypatch):
    """Run the suite against a scripted judge; returns pytest's result, episodes, requests."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-of-nobody-0123456789")
    (pytester.path / "test_texts.py").write_text(SUITE)

    def run_suite(*arguments, script=SCRIPT):
        with ModelServer(script) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            given = ("--llm-model=openai-chat/gpt-5-mini", "-W", "error", *arguments)
            result = suite.run_in_process("test_texts.py", "--episode-report-dir=out", *given)
        found = json.loads((pytester.path / "out/results.json").read_text())["episodes"]
        return result, {one["nodeid"].rpartition("::")[2]: one for one in found}, server.requests

    return run_suite


def test_texts_are_judged_in_every_kind_of_test(run):
    result, episodes, requests = run("--cassette=record")
    result.assert_outcomes(passed=4, failed=3)
    result.stdout.fnmatch_lines(["*<failed: 'is kind' of 'Go away!': rude>*"])
    forgotten = episodes.pop("test_forgotten")
    assert "llm_assert.async_assert(...) was not awaited" in forgotten["reason"]
    broken = episodes.pop("test_broken")
    assert broken["outcome"] == "error"
    assert broken["reason"].startswith("JudgeError: the judge gave no verdict")
    assert sorted(episodes) == ["test_async", "test_episode"]
    assert [episodes[name]["judge"]["calls"] for name in sorted(episodes)] == [3, 1]
    assert {one.body["model"] for one in requests} == {"gpt-5-mini"}
    (prompt,) = {json.dumps(r.body["messages"]) for r in requests if "The task." in str(r.body)}
    assert r"<Context>\nThe task.\n</Context>" in prompt
    assert "The output is: plan." in prompt
    result, again, requests = run("--cassette=replay", "-k", "episode or async", script=[])
    result.assert_outcomes(passed=2, deselected=5)
    assert (len(again), list(requests)) == (2, [])


def test_a_score_without_a_minimum_proves_nothing():
    from ci_agent_eval import ScoreResult, assert_score
    from ci_agent_eval.errors import InputError

    result = ScoreResult({"a": 1}, 1, 5, 0.2, "x")
    with pytest.raises(InputError, match="name at least one minimum"):
        assert_score(result)
    with pytest.raises(InputError, match="has no dimension 'b'"):
        assert_score(result, min_dimensions={"b": 1})
