"""Conversations are ordinary tests, on every pytest and beside every plugin."""

from __future__ import annotations

from importlib.metadata import version

import pytest

AGENT = """
import asyncio
import pytest
from ci_agent_eval import conversation

class Canvas:
    content = ""

class DiagramAgent:
    closed = []

    def __init__(self):
        self.canvas = Canvas()
        self.state = {"boxes": 0}

    async def respond(self, message):
        await asyncio.sleep(0)
        if message == "break":
            raise ConnectionError("refused")
        self.state["boxes"] += 1
        self.canvas.content += message + "\\n"
        call = {"name": "draw", "arguments": {"box": message}, "result": "ok"}
        return {"text": f"drew {message}", "tool_calls": [call], "usage": {"input": 5, "output": 2}}

    def close(self):
        self.closed.append(self)

@pytest.fixture
def episode_clock(): return lambda: 0.0
"""

CONVERSATIONS = (
    AGENT
    + """
@conversation("Create basic diagram", DiagramAgent)
async def test_async(agent):
    reply = await agent.send("A")
    assert "A" in agent.canvas.content
    await agent.send("B")
    assert agent.canvas.content == "A\\nB\\n"
    assert agent.state == {"boxes": 2}
    assert reply.text == "drew A"
    assert len(agent.conversation.user_messages) == 2
    assert [call.name for call in agent.conversation.tool_calls] == ["draw", "draw"]

@conversation("Plain", DiagramAgent)
def test_plain(agent):
    agent.send("A")
    assert agent.state["boxes"] == 2

@conversation("Sized", DiagramAgent)
@pytest.mark.parametrize("size", [1, 2])
async def test_sizes(agent, size, tmp_path):
    for number in range(size):
        await agent.send(str(number))
    assert agent.state["boxes"] == size
    agent.reset()
    await agent.send("anew")
    assert agent.state["boxes"] == 1

@pytest.mark.episode(iterations=2, budgets={"max_turns": 1})
class TestDesk:
    @conversation("In a class", DiagramAgent)
    async def test_method(self, agent):
        await agent.send("A")

@conversation("Breaks", DiagramAgent)
async def breaks(agent):
    await agent.send("A")
    await agent.send("break")

def test_z_all_were_closed():
    assert len(DiagramAgent.closed) >= 7
"""
)

OUTCOMES = {
    "test_async": "passed",
    "test_plain": "failed",
    "test_sizes[1]": "passed",
    "test_sizes[2]": "passed",
    "test_method[1-of-2]": "passed",
    "test_method[2-of-2]": "passed",
    "breaks": "error",
}

SCOPED = {"asyncio_default_fixture_loop_scope": "function"}


@pytest.fixture
def conversations(suite):
    known = version("pytest-asyncio").startswith("0.23.")
    suite.write(test_talk=CONVERSATIONS)

    def run(*arguments, plugins=()):
        if "pytest_asyncio.plugin" in plugins and not known:
            suite.configure(**SCOPED)
        return suite.run(*arguments, plugins=plugins)

    return run


@pytest.mark.parametrize(
    ("plugins", "arguments"),
    [
        ((), ()),
        (("xdist",), ("-n4", "--dist=loadfile")),
        (("pytest_asyncio.plugin",), ("--asyncio-mode=strict",)),
        (("pytest_asyncio.plugin",), ("--asyncio-mode=auto",)),
        (("anyio",), ()),
        (("timeout",), ("--timeout=30",)),
        (("rerunfailures",), ("--reruns=0",)),
        (("randomly",), ("-p", "no:cacheprovider", "--randomly-dont-reorganize")),
        (("hypothesispytest",), ()),
        (("pytest_cov",), ("--cov=test_talk",)),
    ],
    ids=[
        "alone",
        "-n4",
        "asyncio",
        "asyncio auto",
        "anyio",
        *["timeout", "rerun", "random", "given", "cov"],
    ],
)
def test_they_end_as_they_do_alone(conversations, plugins, arguments):
    ran = conversations(*arguments, plugins=plugins)
    assert ran.status == 1, ran.output
    assert ran.outcomes == OUTCOMES
    assert ran.junit["test_z_all_were_closed"] == "passed"
    assert ran.junit["breaks"] == "failed"


CLAIMED = (
    AGENT
    + """
@pytest.mark.{marker}
@conversation("Claimed", DiagramAgent)
async def test_claimed(agent, its_loop):
    assert asyncio.get_running_loop() is its_loop
    await agent.send("A")

{fixture}
async def its_loop({arguments}):
    return asyncio.get_running_loop()

@pytest.fixture
def anyio_backend(): return "asyncio"
"""
)


@pytest.mark.parametrize(
    ("marker", "plugin", "fixture", "arguments"),
    [
        ("asyncio", "pytest_asyncio.plugin", "import pytest_asyncio\n@pytest_asyncio.fixture", ""),
        ("anyio", "anyio", "@pytest.fixture", "anyio_backend"),
    ],
    ids=["asyncio", "anyio"],
)
def test_one_that_another_plugin_claims_runs_on_its_loop(suite, marker, plugin, fixture, arguments):
    old = version("pytest-asyncio").startswith("0.23.")
    suite.configure(**({} if old or marker == "anyio" else SCOPED))
    text = CLAIMED.replace("{marker}", marker).replace("{fixture}", fixture)
    suite.write(test_claimed=text.replace("{arguments}", arguments))
    ran = suite.run(plugins=(plugin,))
    assert ran.outcomes == {"test_claimed": "passed"}, ran.output
