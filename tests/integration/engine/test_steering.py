"""Steering in episodes: a call that is held back is not executed, and everyone is told."""

from __future__ import annotations

import sys

import pytest
from pydantic_ai import Agent as Loop
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from ci_agent_eval.engine import SteeringSettings, aitest_run
from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.policy.model import Rules
from ci_agent_eval.steering.policy.settings import DEFAULT_MESSAGE
from tests.integration.engine.rig import agent, go, run, session
from tests.model_server import ModelServer, Step
from tests.model_server.script import call
from tests.tables import each_row

ON = SteeringSettings(enabled=True)


class Shell:
    """A tool that keeps what it was asked to run."""

    def __init__(self):
        self.ran = []

    async def bash(self, command: str) -> str:
        self.ran.append(command)
        return f"ran {command}"


def steps(*commands):
    return [*(Step(tool_calls=[call("bash", command=c)]) for c in commands), Step(text="done")]


def calls_of(result):
    return list(result.trajectory.tool_calls())


def test_a_full_run_is_held_back_once_and_the_agent_reads_why():
    shell = Shell()
    result = run(
        steps("pytest -q", "pytest tests/test_a.py", "pytest  -q"), shell.bash, steering=ON
    )
    assert result.success
    assert shell.ran == ["pytest tests/test_a.py", "pytest  -q"]
    first, targeted, again = calls_of(result)
    assert (first.steered_by, first.result, first.error) == (
        "pytest-full-suite",
        DEFAULT_MESSAGE,
        None,
    )
    assert [targeted.steered_by, again.steered_by] == [None, None]
    assert again.result == "ran pytest  -q"
    assert [c.test_run for c in calls_of(result)] == ["full", "targeted", "full"]
    assert first.duration_ms is None
    assert None not in (targeted.duration_ms, again.duration_ms)


def test_a_held_call_is_no_retry_and_no_error():
    shell = Shell()
    commands = ("pytest -q", "cd a && pytest", "cd b && pytest")
    result = run(steps(*commands), shell.bash, steering=ON, agent_options={"retries": 0})
    assert result.success
    assert [c.steered_by for c in calls_of(result)] == ["pytest-full-suite"] * 3
    assert shell.ran == []


def test_twice_in_one_response_is_no_second_thought():
    shell = Shell()
    twice = Step(tool_calls=[call("bash", command="pytest"), call("bash", command=" pytest ")])
    result = run([twice, *steps("pytest")], shell.bash, steering=ON)
    assert [bool(c.steered_by) for c in calls_of(result)] == [True, True, False]
    assert shell.ran == ["pytest"]


def test_the_agent_s_own_settings_and_the_session_s():
    async def both(server):
        shell = Shell()
        async with session(shell.bash, steering=ON) as opened:
            free = agent(server, steering=SteeringSettings())
            await aitest_run(free, "hello", session=opened)
            held = await aitest_run(agent(server), "hello", session=opened)
        return shell.ran, calls_of(held)[0].steered_by

    with ModelServer(steps("pytest")) as server:
        assert go(both(server)) == (["pytest"], "pytest-full-suite")


def test_an_episode_remembers_over_its_runs_and_the_next_one_does_not():
    async def episodes(server):
        shell, held = Shell(), []
        async with session(shell.bash, steering=ON) as opened:
            for _ in range(2):
                opened.begin_episode("a")
                for _ in range(2):
                    result = await aitest_run(
                        agent(server), "hello", session=opened, episode_id="a"
                    )
                    held.append(calls_of(result)[0].steered_by is not None)
                await opened.end_episode("a")
        return held

    with ModelServer(steps("pytest")) as server:
        assert go(episodes(server)) == [True, False, True, False]


def loop_of(shell, *commands):
    """A PydanticAI agent whose model is a script of commands."""

    def script(messages, _info):
        done = sum(isinstance(message, ModelResponse) for message in messages)
        if done == len(commands):
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart("bash", {"command": commands[done]})])

    return Loop(FunctionModel(script), tools=[shell.bash])


def test_agents_of_pydantic_ai_are_steered_as_they_are():
    shell = Shell()

    async def once():
        async with session() as opened:
            given = loop_of(shell, "python -m pytest", "pytest -k one")
            return await aitest_run(given, "hello", session=opened, steering=ON)

    result = go(once())
    held, targeted = calls_of(result)
    assert (held.steered_by, held.result) == ("pytest-full-suite", DEFAULT_MESSAGE)
    assert (targeted.steered_by, targeted.result) == (None, "ran pytest -k one")
    assert shell.ran == ["pytest -k one"]


@each_row(
    ("given", "settings", "says"),
    [
        (lambda message: message, ON, "cannot hold back calls of function"),
        (loop_of(Shell()), True, "must be an instance of SteeringSettings, got True"),
        (loop_of(Shell()), SteeringSettings(rules=Rules(aliases=["tox"])), "must hold tuples"),
    ],
)
def test_what_cannot_be_is_refused(given, settings, says):
    async def once():
        async with session() as opened:
            await aitest_run(given, "hello", session=opened, steering=settings)

    with pytest.raises(InputError, match=says):
        go(once())


def test_without_the_grammar_a_run_that_asks_for_it_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "tree_sitter_bash", None)

    async def once(settings):
        async with session() as opened:
            return await aitest_run(loop_of(Shell()), "hello", session=opened, steering=settings)

    with pytest.raises(InputError, match=r"tree_sitter_bash.*pip install"):
        go(once(ON))
    assert go(once(SteeringSettings())).success
