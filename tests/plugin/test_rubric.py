"""Rubrics, `llm_assert` and watched states."""

from __future__ import annotations

import json

import pytest

from tests.model_server import ModelServer, Step
from tests.model_server.script import call

# Rubrics and evaluators in tests: judged by the episode's engine, recorded, paid for.


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
def rubric_suite(pytester, suite, monkeypatch):
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


def test_a_rubric_is_one_assertion_of_the_test_s_episode_and_replayed(rubric_suite, monkeypatch):
    script = {
        "It is kind.": [verdict()],
        "It is brief.": [verdict(False, 0.2, "it is curt")],
        "It is true.": [Step(status=500)] * 9,
    }
    result, episodes, _ = rubric_suite(script, KIND + OTHERS, "--cassette=record")
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
    result, (again,), asked = rubric_suite([], KIND, "--cassette=replay")
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


def test_an_evaluation_goes_on_after_a_check_that_failed(rubric_suite):
    result, (episode,), _ = rubric_suite(
        [verdict(False, 0.4, "curt")], EVALUATION, name="order_eval.py"
    )
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


def test_judges_of_pydantic_evals_are_asked_by_the_engine(rubric_suite, monkeypatch):
    script = {
        "It is kind.": [verdict()],
        "It is short.": [verdict()],
        "kindness": [Step(tool_calls=[call("final_result", reason="warm", score=5)])],
    }
    result, (live,), asked = rubric_suite(script, JUDGES, "--cassette=record")
    result.assert_outcomes(passed=1)
    assert (live["judge"]["calls"], asked) == (3, 3)
    assert [a["name"] for a in live["assertions"][-3:]] == ["LLMJudge", "LLMJudge", "GEval"]
    monkeypatch.delenv("OPENAI_API_KEY")
    result, (again,), asked = rubric_suite([], JUDGES, "--cassette=replay")
    result.assert_outcomes(passed=1)
    assert asked == 0
    assert again["judge"] == live["judge"]


def test_a_rubric_of_a_scenario_file_judges_each_turn_and_ends_the_conversation(
    rubric_suite, pytester
):
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
    result, (episode,), asked = rubric_suite(script, source)
    result.assert_outcomes(passed=1)
    (found,) = [each for each in episode["assertions"] if each["name"].startswith("judge")]
    assert (found["name"], found["file"], found["line"]) == (
        "judge: rubric: It names a day.",
        "order.yaml",
        2,
    )
    assert (asked, episode["judge"]["calls"]) == (2, 2)


# `llm_assert` and `llm_score`: in plain and async tests, with and without an episode.


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


# `episode.watch(...)`: what a test changed, checks of it, and states that cannot be read.


SHOP = """
import sqlite3
import pytest
from ci_agent_eval import check
from ci_agent_eval.checks import FinalState, StateUnchanged

class Shop:
    def __init__(self, path):
        self.path = path
        self.execute("create table orders (id integer primary key, status text)")
        self.execute("insert into orders values (1, 'paid')")

    def execute(self, statement):
        connection = sqlite3.connect(self.path)
        with connection:
            connection.execute(statement)
        connection.close()

@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path / "shop.db")

def talk(episode, shop, statement="update orders set status = 'refunded'"):
    episode.watch(shop.path, "shop")
    with episode.turn("Refund order 1.") as turn:
        shop.execute(statement)
        turn.reply("Done.")
"""


def run_of_watched_states(suite, tests, *arguments):
    suite.pytester.makepyfile(test_shop=SHOP + tests, conftest="")
    return suite.run("test_shop.py", "-W", "error", *arguments)


def changes(episode):
    return {
        change.entry: (change.before, change.after)
        for state in episode.states
        for change in state.changes
    }


REFUNDED = {"orders/1": ({"id": 1, "status": "paid"}, {"id": 1, "status": "refunded"})}


STATES = """
from ci_agent_eval import Episode, llm_episode
from ci_agent_eval.contract.state import compare_states

async def test_expected(episode, shop):
    talk(episode, shop)
    assert check(FinalState({"orders/1": {"status": "refunded"}}))

async def test_unexpected(episode, shop):
    talk(episode, shop)
    check(StateUnchanged())

async def test_after_the_check(episode, shop):
    talk(episode, shop, "select 1")
    check(StateUnchanged())
    shop.execute("delete from orders")

def test_gone(episode, shop):
    talk(episode, shop)
    assert episode.turns
    shop.path.unlink()

def test_gone_and_failed(episode, shop):
    talk(episode, shop)
    shop.path.unlink()
    assert not episode.turns

def test_secret(episode, shop):
    talk(episode, shop, "update orders set status = 'ghp_" + "a1B2" * 9 + "'")
    check(StateUnchanged())

@llm_episode()
def test_returned():
    state = compare_states("other", "value", {}, {"a": {"value": 1}})
    return Episode(scenario_id="x", states=[state], assertions=[{"name": "a", "passed": True}])
"""


def test_changes_are_recorded_and_judged(suite):
    ran = run_of_watched_states(suite, STATES, "--episode-concurrency=2")
    ran.result.assert_outcomes(passed=3, failed=4)
    found = ran.episodes
    assert changes(found["test_expected"]) == REFUNDED
    (state,) = found["test_unexpected"].states
    assert (state.name, state.kind, state.entries, state.error) == ("shop", "database", 1, None)
    (failed,) = found["test_unexpected"].failed_assertions
    assert (failed.name, failed.reason) == (
        "leaves shop unchanged",
        'orders/1.status changed from "paid" to "refunded"',
    )
    assert changes(found["test_after_the_check"]) == {
        "orders/1": ({"id": 1, "status": "paid"}, None)
    }
    # A state that cannot be read makes a passing episode an error.
    problem = "the state of 'shop' cannot be read: OperationalError: unable to open database file"
    gone, failed = found["test_gone"], found["test_gone_and_failed"]
    assert (gone.outcome, gone.reason) == ("error", problem)
    assert (failed.outcome, failed.states[0].error) == ("failed", problem)
    ran.result.stdout.fnmatch_lines([f"*{problem}*"])
    assert "a1B2a1B2" not in (ran.folder / "results.json").read_text()
    assert list(changes(found["test_secret"])) == ["orders/1"]
    assert changes(found["test_returned"]) == {"a": (None, {"value": 1})}


def test_mistakes_are_named(suite):
    ran = run_of_watched_states(
        suite,
        """
def test_twice(episode, shop):
    episode.watch(shop.path, "shop")
    with pytest.raises(Exception, match="a state 'shop' is watched already; give this one"):
        episode.watch(shop.path, "shop")
    with pytest.raises(Exception, match="^episode.watch.ignore: "):
        episode.watch(shop.path, "other", ignore=[3])
    with pytest.raises(Exception, match="cannot be watched"):
        episode.watch(3)
    with episode.turn("Hi") as turn:
        turn.reply("Hi")

@pytest.fixture
def kept():
    kept = []
    yield kept
    with pytest.raises(Exception, match="has ended: record the watched state before"):
        kept[0].watch(dict)

def test_late(episode, kept):
    kept.append(episode)
    with episode.turn("Hi") as turn:
        turn.reply("Hi")
    assert episode.turns
""",
    )
    # What was refused is not in the record, so that the episode proves nothing.
    ran.result.assert_outcomes(passed=1, failed=1, errors=1)
    refused = "episode.watch: a state 'shop' is watched already"
    assert ran.episodes["test_twice"].reason.startswith(refused)
    assert "has ended: record the watched state before" in ran.episodes["test_late"].reason
    assert {e.outcome for e in ran.results.episodes} == {"error"}
