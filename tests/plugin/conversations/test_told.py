"""What is told of conversations, and of those that nobody awaited."""

from __future__ import annotations

from tests.plugin.conversations.rig import outcomes

# What a conversation's episode says of it, and what it leaves open.


def test_what_a_test_holds_is_to_be_looked_at(write):
    ran = write("""
from ci_agent_eval.authoring.conversations import Message

class Busy(Echo):
    conversation = "its own"

    @property
    def broken(self):
        return self.missing_inside

@conversation("looks", Busy)
def test_looks(agent):
    with pytest.raises(AttributeError, match="agent.wrapped.canvas = "):
        agent.canvas = 1
    with pytest.raises(AttributeError, match="missing_inside"):
        agent.broken
    with pytest.raises(Exception, match="message as a text, not 42"):
        agent.send(42)
    with pytest.raises(Exception, match="has no 'palette' to observe"):
        agent.palette
    assert agent.wrapped.conversation == "its own"
    assert "respond" in dir(agent) and "send" in dir(agent)
    assert repr(agent) == "<agent under test: Busy>"
    before = agent.conversation.messages
    reply = agent.send("hello")
    assert before == () and reply == "you said hello" and reply != "hello"
    assert reply == agent.conversation.last and {reply: 1}["you said hello"] == 1
    assert reply != Message("user", reply.text) and reply != 4
    with pytest.raises(AttributeError):
        reply.content = "other"

class Blocking(Echo):
    def respond(self, message):
        return asyncio.run(self.think(message))

    async def think(self, message):
        return message.upper()

@conversation("a plain agent may run a loop of its own in a plain test", Blocking)
def test_blocking(agent):
    assert agent.send("a") == "A"
""").run("-W", "error")
    ran.result.assert_outcomes(passed=2)


def test_hostile_text_is_data(write):
    ran = write("""
HOSTILE = "\\x1b[31m::error::@everyone <script>\\ud800 | `x`"

class Hostile(Echo):
    def respond(self, message):
        call = {"name": HOSTILE, "arguments": {HOSTILE: float("nan")}, "error": HOSTILE}
        return {"text": HOSTILE + message, "tool_calls": [call]}

@conversation("hostile " + HOSTILE, Hostile)
def test_hostile(agent):
    reply = agent.send(HOSTILE)
    assert "<script>" in reply and "\\ud800" not in reply
    raise RuntimeError(HOSTILE)
""").run("-W", "error")
    ran.result.assert_outcomes(failed=1)
    episode = ran.episodes["test_hostile"]
    assert "<script>" in episode.trajectory.turns[1].content
    assert "\x1b" not in "".join(ran.result.outlines[-12:])


def test_what_is_not_measured_is_no_pass_within_a_hard_budget(write):
    ran = write("""
class Priced(Echo):
    def respond(self, message):
        return {"text": "x", "usage": {"input": 3, "output": 1}, "cost_usd": 0.5}

@pytest.mark.episode(budgets={"token_usage": 100, "cost_usd": 1})
@conversation("silent", Echo)
def test_silent(agent):
    agent.send("a")

@pytest.mark.episode(budgets={"token_usage": 100, "cost_usd": 1})
@conversation("priced", Priced)
def test_priced(agent):
    agent.send("a")
    agent.reset()
    agent.send("b")
    agent.send("c")
""").run()
    ran.result.assert_outcomes(failed=2)
    silent, priced = ran.episodes["test_silent"], ran.episodes["test_priced"]
    assert [(v.budget, v.observed) for v in silent.violations] == [
        ("token_usage", None),
        ("cost_usd", None),
    ]
    assert [(v.budget, v.observed) for v in priced.violations] == [("cost_usd", 1.5)]


def test_a_run_that_stops_counts_as_the_engine_counts_it(suite):
    suite.write("""
        import pytest
        from ci_agent_eval import conversation

        def stopping(reason):
            return lambda message: {"text": "", "stop_reason": reason, "error": "it was enough"}

        @pytest.mark.parametrize("reason", ["max_turns", "cost_limit", "model_error"])
        @conversation("Stops", stopping)
        def test_stops(agent, reason):
            agent.send("go on")
    """)
    ran = suite.run()
    ran.result.assert_outcomes(failed=3)
    outcomes = {"max_turns": "failed", "cost_limit": "failed", "model_error": "error"}
    for stop_reason, outcome in outcomes.items():
        episode = ran.episodes[f"test_stops[{stop_reason}]"]
        assert episode.outcome == outcome
        assert f"{stop_reason}: it was enough" in episode.reason


ENDS = """
from ci_agent_eval import conversation, run_simulation, SimulatedUser

ANSWERS = {{
    "refused": {{"text": "No.", "finish_reason": "content_filter"}},
    "cut": {{"text": "Well,", "finish_reason": "length"}},
    "empty": {{"text": ""}},
    "stopped": {{"text": "", "stop_reason": "max_turns", "error": "it was enough"}},
}}

def agent_of(kind):
    return lambda message: ANSWERS[kind]

@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.episode({allowed})
@conversation("Ends", agent_of)
def test_ends(agent, kind):
    reply = agent.send("go on")
    assert reply == ANSWERS[kind]["text"]

@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.episode({allowed})
def test_simulated(episode, kind):
    user = SimulatedUser("Ada", fixed_responses=["Hello", "And now?"])
    result = run_simulation(agent_of(kind), user, max_turns=2)
    assert result.turns in (1, 2)
"""


def test_an_end_without_an_answer_fails_a_conversation_unless_it_is_allowed(suite):
    allowed = 'allowed_stops={"refusal", "truncated", "empty_answer", "max_turns"}'
    tests = "import pytest\n" + ENDS
    suite.write(tests.format(allowed=""))
    suite.pytester.makepyfile(
        test_allowed=tests.format(allowed=allowed).replace("test_", "test_a_")
    )
    ran = suite.run()
    ran.result.assert_outcomes(failed=8, passed=8)
    passed = {name for name, e in ran.episodes.items() if e.outcome == "passed"}
    assert passed == {name for name in ran.episodes if name.startswith("test_a_")}
    for name in ("test_ends", "test_simulated"):
        reasons = {kind: ran.episodes[f"{name}[{kind}]"].reason for kind in ("refused", "empty")}
        assert "agent finished (refusal: the model refused: No.)" in reasons["refused"]
        assert "agent finished (empty_answer: its answer is empty" in reasons["empty"]
        assert "truncated: " in ran.episodes[f"{name}[cut]"].reason
        assert "max_turns: it was enough" in ran.episodes[f"{name}[stopped]"].reason


# Messages that nobody awaits, or that overlap, are said.


class TestNotAwaited:
    def test_a_message_that_nobody_awaits_or_that_is_under_way_is_no_pass(self, write):
        ran = write("""
@conversation("forgets", AsyncEcho)
async def test_forgets(agent):
    agent.send("hello")

@conversation("fails", AsyncEcho)
async def test_fails_because_of_it(agent):
    reply = agent.send("hello")
    assert "hello" in str(reply)

@conversation("leaves", AsyncEcho)
async def test_leaves(agent):
    task = asyncio.ensure_future(agent.send("hang"))
    log.append(task)
    await asyncio.sleep(0)
""").run("-W", "error")
        ran.result.assert_outcomes(failed=3)
        assert outcomes(ran)["test_forgets"] == "error"
        assert "agent.send('hello') was not awaited" in ran.episodes["test_forgets"].reason
        ran.result.stdout.fnmatch_lines(["E*agent.send('hello') was not awaited, so nothing*"])
        assert "the test ended before 'hang' was answered" in ran.episodes["test_leaves"].reason

    def test_one_message_at_a_time_and_an_async_reset_before_anything_is_observed(self, write):
        ran = write("""
@conversation("gathers", AsyncEcho)
async def test_gathers(agent):
    with pytest.raises(Exception, match="'a' is still being answered; await it first"):
        await asyncio.gather(agent.send("a"), agent.send("b"))
    await asyncio.sleep(0.01)
    assert await agent.send("c") == "you said c"

@conversation("a task", AsyncEcho)
async def test_task(agent):
    assert await asyncio.create_task(agent.send("c")) == "you said c"

class Slow(AsyncEcho):
    state = "old"

    async def reset(self):
        await asyncio.sleep(0)
        self.state = "new"

@conversation("looks", Slow)
async def test_looks(agent):
    await agent.send("a")
    agent.reset()
    assert agent.conversation.messages == ()
    with pytest.raises(Exception, match="write `await agent.reset"):
        agent.state
    await agent.send("b")
    assert agent.state == "new"

@conversation("ends", Slow)
async def test_ends(agent):
    assert await agent.send("a")
    agent.reset()
    log.append(agent.wrapped)

def test_it_was_reset_at_the_end():
    assert log[-2].state == "new"
""").run("-W", "error")
        ran.result.assert_outcomes(passed=4, failed=1)
        assert "'a' is still being answered" in ran.episodes["test_gathers"].reason
