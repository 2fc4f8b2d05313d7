"""Messages that nobody awaits, or that overlap, are said."""

from __future__ import annotations

from tests.plugin.conversations.rig import outcomes


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
