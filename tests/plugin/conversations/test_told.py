"""What a conversation's episode says of it, and what it leaves open."""

from __future__ import annotations

import pytest


def test_what_a_test_holds_is_to_be_looked_at(write):
    ran = write("""
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
    assert agent.wrapped.conversation == "its own"
    assert "respond" in dir(agent) and "send" in dir(agent)
    assert repr(agent) == "<agent under test: Busy>"
    before = agent.conversation.messages
    reply = agent.send("hello")
    assert before == () and reply == "you said hello" and reply != "hello"
    assert reply == agent.conversation.last and {reply: 1}["you said hello"] == 1
    with pytest.raises(AttributeError):
        reply.content = "other"
""").run("-W", "error")
    ran.result.assert_outcomes(passed=1)


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


def test_a_plain_agent_may_run_a_loop_of_its_own_in_a_plain_test(write):
    ran = write("""
class Blocking(Echo):
    def respond(self, message):
        return asyncio.run(self.think(message))

    async def think(self, message):
        return message.upper()

@conversation("blocking", Blocking)
def test_blocking(agent):
    assert agent.send("a") == "A"
""").run("-W", "error")
    ran.result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("stop_reason", "outcome"),
    [("max_turns", "failed"), ("cost_limit", "failed"), ("model_error", "error")],
)
def test_a_run_that_stops_counts_as_the_engine_counts_it(suite, stop_reason, outcome):
    suite.write(f"""
        from ci_agent_eval import conversation

        def stopping(message):
            return {{"text": "", "stop_reason": "{stop_reason}", "error": "it was enough"}}

        @conversation("Stops", lambda: stopping)
        def test_stops(agent):
            agent.send("go on")
    """)
    ran = suite.run()
    ran.result.assert_outcomes(failed=1)
    episode = ran.episodes["test_stops"]
    assert episode.outcome == outcome
    assert f"{stop_reason}: it was enough" in episode.reason
