"""--episode-playback: tests get recorded answers in place of their agents'."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.playback import PlannedTest, Play, PlaybackPlan
from tests.builders import talk, tool_call, turn

CONVERSATION = """
from ci_agent_eval import conversation

def make():
    return lambda message: 1 / 0  # an agent that must not be asked

@conversation("greets", make)
def test_greets(agent):
    reply = agent.send("Hello")
    assert reply == "Hi."
    assert [call.name for call in reply.tool_calls] == ["wave"]
"""

HI = talk("Hello", turn("Hi.", tool_calls=[tool_call("wave")]))
BYE = talk("Hello", turn("Bye.", tool_calls=[tool_call("wave")]))


@pytest.fixture
def play(suite, tmp_path):
    """Play episodes to the tests of these names; returns the run."""

    def run(*arguments, run_suite=suite.run, **plays):
        planned = [
            PlannedTest(
                nodeid=f"test_suite.py::{name}",
                plays=tuple(
                    Play(trajectory=item.trajectory, stop_reason=item.stop_reason, agent="desk")
                    for item in episodes
                ),
            )
            for name, episodes in plays.items()
        ]
        file = tmp_path / "plan.json"
        file.write_text(canonical_json(PlaybackPlan(tests=tuple(planned))))
        return run_suite(f"--episode-playback={file}", *arguments)

    return run


def outcomes(ran):
    """A passing test over a hard budget fails."""
    ended = ran.results.episodes
    return [(e.iteration, "failed" if e.violations else e.outcome) for e in ended]


def record_of(ran, number=0):
    return ran.results.episodes[number].metadata["playback"]


def test_each_iteration_of_a_conversation_gets_its_play_and_no_agent_is_asked(suite, play):
    suite.write(CONVERSATION)
    ran = play(test_greets=[HI, BYE, HI])
    assert outcomes(ran) == [(1, "passed"), (2, "failed"), (3, "passed")]
    assert record_of(ran) == {
        "answers": 1, "unused": 0, "extra": 0, "own_turns": False, "is_judged": False,
    }  # fmt: skip
    assert ran.results.episodes[1].trajectory.turns[1].content == "Bye."


def test_an_async_conversation_with_workers_and_concurrency_in_the_settings(suite, play):
    suite.write(
        CONVERSATION.replace("def test", "async def test").replace("= agent", "= await agent")
    )
    ran = play("-n2", "--episode-concurrency=4", test_greets=[HI, BYE], run_suite=suite.run_apart)
    assert outcomes(ran) == [(1, "passed"), (2, "failed")]
    assert not list((suite.pytester.path / "report/episodes").glob("gw*"))


def test_other_tests_do_not_run(suite, play):
    suite.write(CONVERSATION + "\ndef test_plain(): assert False\n")
    ran = play(test_greets=[HI])
    ran.result.assert_outcomes(passed=1, deselected=1)


def test_changes_of_a_recording_that_does_not_pass_are_skipped(suite, play):
    suite.write(CONVERSATION)
    ran = play(test_greets=[BYE, HI])
    assert outcomes(ran) == [(1, "failed"), (2, "skipped")]


SIMULATION = """
import pytest
from ci_agent_eval import SimulatedUser, check

@pytest.mark.episode(budgets={"max_turns": 3})
def test_user(simulation):
    user = SimulatedUser("Ada", model="openai:gpt-5-mini", goal="an order")
    result = simulation(lambda message: 1 / 0, user)
    assert [m["content"] for m in result.conversation_history] == ["Hello", "Which order?", "1001", "Done."]
    assert result.stop_reason == "stop_token"
"""


def test_a_simulated_user_with_a_model_says_what_was_recorded(suite, play, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    suite.write(SIMULATION)
    ran = play(test_user=[talk("Hello", turn("Which order?"), "1001", turn("Done."))])
    assert outcomes(ran) == [(1, "passed")], ran.results.episodes[0].reason


RUN = """
import pytest
from ci_agent_eval import check
from ci_agent_eval.checks import Rubric
from ci_agent_eval.engine import Agent, MCPServer, Provider

AGENT = Agent(provider=Provider("openai:gpt-5-mini"), mcp_servers=[MCPServer(command=["/nowhere"])])

@pytest.mark.episode(budgets={"cost_usd": 0.5})
async def test_run(aitest_run):
    first = await aitest_run(AGENT, "Hello")
    assert first.tool_was_called("wave")
    second = await aitest_run(AGENT, "And?", messages=first.messages)
    assert second.final_response == "Bye."
    assert [m["content"] for m in second.messages] == ["Hello", "Hi.", "And?", "Bye."]
    assert (second.success, second.agent) == (True, "desk")
"""
RUNS = (
    "Hello",
    turn("", tool_calls=[tool_call("wave")], cost_usd=0.1),
    turn("Hi.", cost_usd=0.1),
    "And?",
)


def test_runs_of_declared_agents_start_no_server_and_ask_no_model(suite, play, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    suite.write(RUN)
    dear = talk(*RUNS, turn("Bye.", cost_usd=1))
    ran = play(test_run=[talk(*RUNS, turn("Bye.", cost_usd=0.1)), dear])
    assert outcomes(ran) == [(1, "passed"), (2, "failed")], ran.results.episodes[0].reason
    assert ran.results.episodes[1].violations[0].budget == "cost_usd"


def test_a_rubric_counts_as_satisfied_and_is_noted(suite, play):
    suite.write(
        RUN.partition("    first = ")[0]
        + """
    await aitest_run(AGENT, "Hello")
    await check(Rubric("It is kind.", "openai:gpt-5-mini", threshold=0.9))
"""
    )
    ran = play(test_run=[talk("Hello", turn("Hi.", cost_usd=0.1))])
    assert outcomes(ran) == [(1, "passed")], ran.results.episodes[0].reason
    assert record_of(ran)["is_judged"] is True
    assert ran.results.episodes[0].judge is None


def test_a_judge_of_another_library_is_not_asked(suite, play):
    suite.write(
        RUN.partition("    first = ")[0]
        + """
    await aitest_run(AGENT, "Hello")
    await aitest_run.judge_model("openai:gpt-5-mini")
"""
    )
    ran = play(test_run=[talk("Hello", turn("Hi."))])
    assert "playback asks no model" in ran.results.episodes[0].reason


def test_a_test_that_records_its_turns_itself_is_refused(suite, play):
    suite.write(
        """
def test_own(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi.")
"""
    )
    ran = play(test_own=[HI, BYE])
    assert outcomes(ran) == [(1, "error"), (2, "skipped")]
    assert record_of(ran)["own_turns"] is True


def test_a_test_that_asks_its_agent_itself_is_known_by_its_unused_answers(suite, play):
    suite.write("import pytest\n\n@pytest.mark.episode\ndef test_own(): assert True\n")
    ran = play(test_own=[HI, BYE])
    assert record_of(ran)["unused"] == 1
    assert outcomes(ran)[1] == (2, "skipped")


def test_connections_beyond_this_machine_are_refused(suite, play):
    suite.write(
        CONVERSATION.replace(
            "    reply =", "    import socket\n    socket.getaddrinfo('x.invalid', 1)\n    reply ="
        )
    )
    ran = play(test_greets=[HI], run_suite=suite.run_apart)
    assert "RefusedConnectionError" in ran.results.episodes[0].reason


CALL = """
import httpx
import pytest
from ci_agent_eval import conversation

@conversation("greets", lambda: print)
def test_greets(agent):
    agent.send("Hello")
    answer = httpx.post("http://127.0.0.1:9/v1/chat/completions", json={{
        "model": "gpt-5-mini", "messages": [{{"role": "user", "content": "judge"}}],
    }})
    assert answer.status_code == 200
"""


def test_a_model_on_this_machine_is_not_asked_either(suite, play):
    suite.write(CALL.replace("{{", "{").replace("}}", "}"))
    ran = play(test_greets=[HI])
    assert outcomes(ran) == [(1, "failed")]
    assert ran.results.episodes[0].traffic.refused == 1


def test_suite_budgets_and_experiments_do_not_end_a_playback(suite, play):
    suite.write(CONVERSATION)
    dear = talk("Hello", turn("Hi.", tool_calls=[tool_call("wave")], cost_usd=9))
    ran = play("--total-cost-usd=1", test_greets=[dear, dear])
    assert outcomes(ran) == [(1, "passed"), (2, "passed")]
    assert (
        json.loads((suite.pytester.path / "report/session.json").read_text())["state"] == "finished"
    )
