"""--episode-activity: the turn and the tools of each running episode, however it is recorded."""

from __future__ import annotations

import json

from tests.model_server import ModelServer
from tests.model_server.script import Step, call

SCRIPT = [
    Step(tool_calls=[call("find", id="c1"), call("count", id="c2")]),
    Step(text="There are two."),
]

HEAD = """
import httpx
import pytest
from pydantic_ai import Agent as Loop
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from ci_agent_eval.engine import Agent, Provider

URL = {url!r}


async def call_model(prompt):
    messages = [{{"role": "user", "content": prompt}}]
    async with httpx.AsyncClient(base_url=URL) as client:
        while True:
            body = {{"model": "gpt-5-mini", "messages": messages}}
            answer = (await client.post("/chat/completions", json=body)).json()
            messages.append(answer["choices"][0]["message"])
            calls = messages[-1].get("tool_calls") or ()
            for made in calls:
                result = {{"role": "tool", "tool_call_id": made["id"], "content": "2"}}
                messages.append(result)
            if not calls:
                return messages[-1]["content"]


loop = Loop(
    OpenAIChatModel("gpt-5-mini", provider=OpenAIProvider(base_url=URL, api_key="k")),
)


@loop.tool_plain
def find() -> str:
    return "2"


@loop.tool_plain
def count() -> str:
    return "2"

"""

BY_HAND = """
def test_refunds(episode):
    with episode.turn("How many?") as turn:
        turn.tool_call("find")
        turn.tool_call("count")
        turn.reply("Two.")
    with episode.turn("Thanks"):
        pass
"""
PLAIN_CODE = """
async def test_refunds(episode):
    await call_model("How many?")
"""
IN_A_TURN = """
async def test_refunds(episode):
    with episode.turn("How many?") as turn:
        turn.reply(await call_model("How many?"))
"""
OWN_AGENT = """
async def test_refunds(aitest_run):
    await aitest_run(call_model, "How many?")
    await aitest_run(call_model, "How many?")
"""
PYDANTIC_AI = """
async def test_refunds(aitest_run):
    await aitest_run(loop, "How many?")
"""
# It has no tools, and so tells the model that there are none of these names.
DECLARED = """
async def test_refunds(aitest_run):
    agent = Agent(provider=Provider("openai:gpt-5-mini", base_url=URL))
    await aitest_run(agent, "How many?")
"""

RUN = [(1, []), (1, ["find", "count"]), (2, []), (2, [])]
CASES = {
    "by hand": (BY_HAND, [(1, []), (1, ["find"]), (1, ["count"]), (2, [])]),
    "plain code": (PLAIN_CODE, RUN),
    "in a turn": (IN_A_TURN, [(1, []), (1, []), (1, ["find", "count"]), (1, []), (1, [])]),
    "own agent": (OWN_AGENT, [*RUN, *((turn + 2, tools) for turn, tools in RUN)]),
    "PydanticAI": (PYDANTIC_AI, RUN),
    "declared": (DECLARED, RUN),
}


def test_each_turn_and_its_tools_are_written_when_they_change(pytester, suite, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("SHOP_API_KEY", "Zx9-plain-secret")
    secret = BY_HAND.replace('"find"', '"find-Zx9-plain-secret"')
    tests = {**{case: source for case, (source, _) in CASES.items()}, "secret": secret}
    pytester.mkdir("activity")
    with ModelServer(SCRIPT) as server:
        source = HEAD.format(url=server.base_url)
        for number, (case, test) in enumerate(tests.items()):
            marker = f'@pytest.mark.episode("{case}", evidence="none")'
            source += f"\n\n{marker}{test.replace('test_refunds', f'test_{number}')}"
        pytester.makepyfile(source)
        result = suite.run_in_process("--episode-report-dir=out", "--episode-activity=activity")
    assert result.ret == 0
    (file,) = (pytester.path / "activity").iterdir()
    text = file.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    for case, (_, expected) in CASES.items():
        mine = [line for line in lines if line["key"][0] == case]
        assert [(line["turn"], line.get("tools", [])) for line in mine] == expected, case
        assert {tuple(line["key"]) for line in mine} == {(case, mine[0]["key"][1], 1, 1)}
    assert "secret" in {line["key"][0] for line in lines}
    assert "Zx9-plain" not in text
