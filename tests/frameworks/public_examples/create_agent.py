"""A suite for the example in the documentation of LangChain's `create_agent`."""

import inspect
import re
import textwrap

import pytest
from langchain.agents import create_agent

from ci_agent_eval import conversation

(EXAMPLE,) = re.findall(r"```python\n(.*?)```", inspect.getdoc(create_agent), re.DOTALL)
CODE = textwrap.dedent(EXAMPLE)


@pytest.fixture
def graph(capsys):
    """The documented agent, built without the call in the example's last two lines."""
    names = {}
    exec(CODE[: CODE.index("for chunk in")], names)
    return names["graph"]


@pytest.mark.episode("weather", budgets={"max_turns": 2, "tool_calls": 1, "cost_usd": 0.01})
async def test_weather(aitest_run, graph):
    result = await aitest_run(graph, "what is the weather in paris")
    assert result.tool_call_arg("check_weather", "location") == "Paris"
    assert result.final_response == "Sunny in Paris."


@conversation("two cities", lambda graph: graph)
async def test_two_cities(agent):
    assert "Rome" in await agent.send("what is the weather in rome")
    assert "Oslo" in await agent.send("and in oslo?")


@pytest.mark.episode("runaway", budgets={"max_turns": 3})
async def test_runaway(aitest_run, graph):
    await aitest_run(graph, "look out of the window for ever")


@pytest.mark.episode("as documented")
def test_as_documented(episode, capsys):
    exec(CODE, {})
    assert "It's always sunny in San Francisco" in capsys.readouterr().out
    assert episode.tool_calls[0].arguments == {"location": "San Francisco"}
