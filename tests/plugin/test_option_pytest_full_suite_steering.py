"""`--enable-pytest-full-suite-steering` and its opposite: flags over environment over file."""

from __future__ import annotations

import pytest

TESTS = """
import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from ci_agent_eval.engine import SteeringSettings

def script(messages, info):
    if any(isinstance(message, ModelResponse) for message in messages):
        return ModelResponse([TextPart("done")])
    return ModelResponse([ToolCallPart("bash", {"command": "pytest -q"})])

def bash(command: str) -> str:
    return "ran"

agent = Agent(FunctionModel(script), tools=[bash])

@pytest.mark.parametrize("n", [1, 2])
async def test_suite(aitest_run, n):
    await aitest_run(agent, "Test it.")

async def test_its_own(aitest_run):
    await aitest_run(agent, "Test it.", steering=SteeringSettings(enabled=True, message="Stop."))
"""

ENABLE = "--enable-pytest-full-suite-steering"
DISABLE = "--disable-pytest-full-suite-steering"
ENABLED = "session:\n  pytest_full_suite_steering_enabled: true\n"


@pytest.fixture(autouse=True)
def tests(suite, monkeypatch):
    for name in ("ENABLED", "MESSAGE"):
        monkeypatch.delenv(f"PYTEST_FULL_SUITE_STEERING_{name}", raising=False)
    suite.write(TESTS)


def results(ran):
    """What the calls came to, by test name."""
    return {
        name: [call.result for call in episode.trajectory.tool_calls()]
        for name, episode in ran.episodes.items()
    }


def held(ran):
    """Whether the calls of the two plain episodes were held back: of both, or of none."""
    said = results(ran)
    (first,) = said["test_suite[1]"]
    assert said["test_suite[2]"] == [first]
    assert said["test_its_own"] == ["Stop."]
    return first != "ran"


def test_the_option_holds_each_episode_s_first_full_run_back(suite):
    ran = suite.run(ENABLE)
    assert held(ran)
    (call,) = ran.episodes["test_suite[2]"].trajectory.tool_calls()
    assert call.steered_by == "pytest-full-suite"


@pytest.mark.parametrize(
    ("arguments", "below", "is_held"),
    [
        ([], (None, None), False),
        ([], (None, ENABLED), True),
        ([], ("false", ENABLED), False),
        ([DISABLE], ("true", ENABLED), False),
        ([DISABLE, ENABLE], (None, None), True),
    ],
)
def test_flags_over_environment_over_file(suite, monkeypatch, arguments, below, is_held):
    variable, file = below
    if variable is not None:
        monkeypatch.setenv("PYTEST_FULL_SUITE_STEERING_ENABLED", variable)
    if file is not None:
        (suite.pytester.path / "agent-eval-steering.yaml").write_text(file)
    assert held(suite.run(*arguments)) == is_held


def test_the_message_of_the_environment_is_the_result(suite, monkeypatch):
    monkeypatch.setenv("PYTEST_FULL_SUITE_STEERING_MESSAGE", "One test, please.")
    assert results(suite.run(ENABLE))["test_suite[1]"] == ["One test, please."]


def test_a_file_that_is_wrong_is_named_by_the_tests_that_need_it(suite):
    (suite.pytester.path / "agent-eval-steering.yaml").write_text("session:\n  tll: 3\n")
    suite.pytester.makepyfile(test_plain="def test_plain(): pass")
    ran = suite.run(ENABLE)
    ran.result.assert_outcomes(passed=1, errors=3)
    ran.result.stdout.fnmatch_lines(["*agent-eval-steering.yaml:2: unknown key*"])
