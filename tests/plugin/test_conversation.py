"""Conversations: ordinary pytest items that talk to an agent which they create themselves."""

from __future__ import annotations

AGENT = """
import asyncio
import pytest
from ci_agent_eval import conversation

class Canvas:
    def __init__(self):
        self.content = ""

class DiagramAgent:
    closed = []

    def __init__(self):
        self.canvas = Canvas()
        self.state = {"boxes": 0}

    async def respond(self, message):
        await asyncio.sleep(0)
        self.state["boxes"] += 1
        self.canvas.content += message.split()[-1] + "\\n"
        call = {"name": "draw", "arguments": {"box": message.split()[-1]}, "result": "ok"}
        return {"text": f"drew {message}", "tool_calls": [call], "usage": {"input": 5, "output": 2}}

    def close(self):
        self.closed.append(self)

class PlainAgent(DiagramAgent):
    def respond(self, message):
        self.canvas.content += message
        return f"plain {message}"
"""


def write(suite, tests, agent=AGENT):
    suite.write(agent + tests)


def test_an_async_and_a_plain_conversation(suite):
    write(
        suite,
        """
@conversation("Create basic diagram", DiagramAgent)
async def test_async(agent):
    reply = await agent.send("Create A")
    assert "A" in agent.canvas.content
    await agent.send("Add B")
    assert agent.canvas.content == "A\\nB\\n"
    assert agent.state == {"boxes": 2}
    assert reply.text == "drew Create A" and "drew" in reply
    assert [m.role for m in agent.conversation.messages] == ["user", "assistant"] * 2
    assert [str(m) for m in agent.conversation.user_messages] == ["Create A", "Add B"]
    assert [m.text for m in agent.conversation.agent_messages] == ["drew Create A", "drew Add B"]
    assert [call.name for call in agent.conversation.tool_calls] == ["draw", "draw"]
    assert agent.conversation.last.tokens.total == 7

@conversation("Plain", PlainAgent)
def test_plain(agent):
    assert agent.send("hello").content == "plain hello"
    assert agent.canvas.content == "hello"

@conversation("Plain test of an async agent", DiagramAgent)
def test_mixed(agent):
    assert agent.send("Create A").text == "drew Create A"

@conversation("Async test of a plain agent", PlainAgent)
async def test_mixed_too(agent):
    assert (await agent.send("x")).text == "plain x"
""",
    )
    ran = suite.run("-W", "error")
    ran.result.assert_outcomes(passed=4)
    episode = ran.episodes["test_async"]
    assert (episode.scenario_id, episode.mode, episode.gate) == (
        "Create basic diagram",
        "strict",
        "required",
    )
    turns = episode.trajectory.turns
    assert [turn.role for turn in turns] == ["user", "assistant"] * 2
    assert turns[1].tool_calls[0].arguments == {"box": "A"}
    assert turns[1].latency_ms is not None
    assert ran.episodes["test_plain"].trajectory.total_tokens is None


def test_they_are_ordinary_items(suite):
    write(
        suite,
        """
@pytest.fixture
def place():
    return "here"

class TestDiagrams:
    @pytest.mark.usefixtures("place")
    @conversation("In a class", DiagramAgent)
    @pytest.mark.parametrize("box", ["A::[x]", "B"])
    async def drawing(self, agent, box, place):
        await agent.send(box)
        assert place == "here"

@conversation("Named", DiagramAgent)
@pytest.mark.episode(scenario_id="own_id", budgets={"max_turns": 5})
def test_named(agent):
    agent.send("A")
""",
    )
    ran = suite.run("-W", "error::pytest.PytestReturnNotNoneWarning")
    ran.result.assert_outcomes(passed=3)
    assert {e.scenario_id for e in ran.results.episodes} == {
        "In a class[A::[x]]",
        "In a class[B]",
        "own_id",
    }
    assert ran.episodes["test_named"].budgets.max_turns.used == 1
    suite.run("-k", "drawing and B").result.assert_outcomes(passed=1, deselected=2)
    suite.run("-k", "agent or conversation or eval").result.assert_outcomes(deselected=3)
    suite.run("-m", "usefixtures").result.assert_outcomes(passed=2, deselected=1)


FACTORIES = """
log = []

async def made_async():
    return PlainAgent()

def made_by_generator(tmp_path):
    log.append("made")
    yield PlainAgent()
    log.append("closed")

async def made_by_async_generator():
    yield PlainAgent()
    log.append("async closed")

class Manager(PlainAgent):
    async def __aenter__(self):
        log.append("entered")
        return self

    async def __aexit__(self, *_):
        log.append("left")

@conversation("1", made_async)
async def test_async_factory(agent): assert await agent.send("x")

@conversation("2", made_by_generator)
def test_generator(agent): assert agent.send("x")

@conversation("3", made_by_async_generator)
async def test_async_generator(agent): assert await agent.send("x")

@conversation("4", made_by_async_generator)
def test_async_generator_in_a_plain_test(agent): assert agent.send("x")

@conversation("5", Manager)
async def test_manager(agent): assert await agent.send("x")

@conversation("6", lambda: (lambda message: message.upper()))
def test_a_function_is_an_agent(agent): assert agent.send("x").text == "X"

def test_log():
    assert log == ["made", "closed", "async closed", "async closed", "entered", "left"]
"""


FAILS = """
@conversation("Fails", DiagramAgent)
async def test_fails(agent):
    await agent.send("Create A")
    assert "B" in agent.canvas.content
    await agent.send("never")

def test_after():
    assert len(DiagramAgent.closed) == 1
"""

REPEATED = """
@pytest.mark.episode(iterations=3)
@conversation("Again", DiagramAgent)
@pytest.mark.parametrize("box", ["A"])
def test_again(agent, box):
    agent.send(box)
    assert agent.state["boxes"] == 1
"""

OVER_BUDGET = """
@conversation("Chatty", PlainAgent)
@pytest.mark.episode(budgets={"max_turns": 1})
def test_chatty(agent):
    agent.send("a")
    agent.send("b")
"""

RESET = """
class Resettable(DiagramAgent):
    async def reset(self):
        await asyncio.sleep(0)
        self.state["boxes"] = 0

@conversation("Own reset, not awaited", Resettable)
async def test_own(agent):
    await agent.send("A")
    agent.reset()
    assert agent.wrapped.state["boxes"] == 1
    await agent.send("B")
    assert agent.state == {"boxes": 1}
    assert len(agent.conversation.messages) == 2

@conversation("Own reset, awaited", Resettable)
async def test_awaited(agent):
    await agent.send("A")
    await agent.reset()
    assert agent.state == {"boxes": 0}
    assert agent.conversation.messages == ()
    assert agent.conversation.last is None

@conversation("A new agent", DiagramAgent)
def test_new(agent):
    agent.send("A")
    before = agent.wrapped
    agent.reset()
    assert agent.wrapped is not before and before in DiagramAgent.closed
    assert agent.canvas.content == ""
"""

ENGINE = """
from ci_agent_eval.engine import FunctionAgent, Reply

async def answer(message, history):
    return Reply(f"{len(history)} before {message}", usage={"input": 3, "output": 1})

@conversation("Adapter", lambda: FunctionAgent(answer, name="desk"))
async def test_adapter(agent):
    assert (await agent.send("a")).text == "0 before a"
    assert (await agent.send("b")).text == "2 before b"
    assert len(agent.conversation.messages) == 4
    agent.reset()
    assert (await agent.send("c")).text == "0 before c"
"""

ENDED = """
kept = []

@pytest.mark.episode(evidence="none")
@conversation("Keeps", PlainAgent)
def test_keeps(agent):
    kept.append(agent)

def test_later():
    from ci_agent_eval.errors import InputError
    with pytest.raises(InputError, match="the conversation has ended"):
        kept[0].send("x")
    assert kept[0].canvas.content == ""
"""


def test_every_kind_of_factory_agent_and_end(suite):
    modules = (FAILS, REPEATED, OVER_BUDGET, RESET, ENGINE, ENDED, FACTORIES)
    files = {f"test_{number}": AGENT + tests for number, tests in enumerate(modules)}
    suite.pytester.makepyfile(**files)
    ran = suite.run("-W", "error")
    ran.result.assert_outcomes(passed=17, failed=2)
    episodes = ran.episodes
    fails = episodes["test_fails"]
    assert (fails.outcome, len(fails.trajectory.agent_turns)) == ("failed", 1)
    assert fails.assertions[0].name == 'assert "B" in agent.canvas.content'
    again = [(e.scenario_id, e.iteration) for e in ran.results.episodes if "test_again" in e.nodeid]
    assert again == [("Again[A]", number) for number in (1, 2, 3)]
    assert [v.budget for v in episodes["test_chatty"].violations] == ["max_turns"]
    assert len(episodes["test_own"].trajectory.agent_turns) == 2
    assert episodes["test_adapter"].agent == "desk"


def test_the_files_of_a_conversation_have_a_limit_together(suite):
    suite.write("""
import pytest
from ci_agent_eval import MessageFile, conversation
from ci_agent_eval.errors import InputError

HALF = MessageFile(bytes(10 * 2**20), "image/png")
MORE = MessageFile(b"x", "image/png")

class Agent:
    def respond(self, message, *, files):
        return f"{len(files)} files"

@conversation("sends files", Agent)
def test_files(agent):
    assert agent.send("Look", files=[HALF]) == "1 files"
    assert agent.send("Look", files=[HALF]) == "1 files"
    for _ in range(2):  # what is refused does not count
        with pytest.raises(InputError) as refused:
            agent.send("Look", files=[MORE])
    assert str(refused.value) == (
        "agent.send: files: the files of the conversation have 20,971,521 bytes, of at most "
        "20,971,520; send fewer or smaller ones"
    )
    agent.reset()
    assert agent.send("Look", files=[HALF, HALF]) == "2 files"
""")
    ran = suite.run()
    ran.result.assert_outcomes(passed=1)
    turns = ran.episodes["test_files"].trajectory.turns
    assert [len(turn.attachments) for turn in turns if turn.role == "user"] == [1, 1, 2]
