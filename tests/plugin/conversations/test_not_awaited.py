"""Messages that nobody awaits, or that overlap, are said."""

from __future__ import annotations

from tests.plugin.conversations.rig import outcomes


class TestNotAwaited:
    def test_a_message_that_nobody_awaits_is_no_pass(self, write):
        ran = write("""
@conversation("forgets", AsyncEcho)
async def test_forgets(agent):
    agent.send("hello")
""").run("-W", "error")
        ran.result.assert_outcomes(failed=1)
        assert outcomes(ran) == {"test_forgets": "error"}
        assert "agent.send('hello') was not awaited" in ran.episodes["test_forgets"].reason

    def test_it_is_told_beside_what_failed_because_of_it(self, write):
        ran = write("""
@conversation("forgets", AsyncEcho)
async def test_forgets(agent):
    reply = agent.send("hello")
    assert "hello" in str(reply)
""").run("-W", "error")
        ran.result.assert_outcomes(failed=1)
        ran.result.stdout.fnmatch_lines(["E*agent.send('hello') was not awaited, so nothing*"])

    def test_a_message_still_under_way_at_the_end_is_no_pass(self, write):
        ran = write("""
@conversation("leaves", AsyncEcho)
async def test_leaves(agent):
    task = asyncio.ensure_future(agent.send("hang"))
    log.append(task)
    await asyncio.sleep(0)
""").run()
        ran.result.assert_outcomes(failed=1)
        assert "the test ended before 'hang' was answered" in ran.episodes["test_leaves"].reason

    def test_one_message_at_a_time(self, write):
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
""").run("-W", "error")
        ran.result.assert_outcomes(passed=2)

    def test_an_async_reset_is_finished_before_anything_is_observed(self, write):
        ran = write("""
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
        ran.result.assert_outcomes(passed=3)
