"""Strict tests: the first failed assertion fails the test, and the merge."""

from diagram import DiagramAgent

from ci_agent_eval import conversation


def create_test_agent():
    return DiagramAgent()


@conversation("Create basic diagram", create_test_agent)
async def test_basic(agent):
    await agent.send("Create boxes A and B")
    assert "A" in agent.canvas.content
    assert "B" in agent.canvas.content


@conversation("Build incrementally", create_test_agent)
async def test_incremental(agent):
    await agent.send("Create Web Server")
    assert "Web Server" in agent.canvas.content

    await agent.send("Add Database")
    assert "Web Server" in agent.canvas.content
    assert "Database" in agent.canvas.content
    assert len(agent.conversation.user_messages) == 2


@conversation("Validate changes", create_test_agent)
async def test_changes(agent):
    await agent.send("Create A")
    content_before = agent.canvas.content

    await agent.send("Add B")
    content_after = agent.canvas.content

    assert "B" in content_after
    assert len(content_after) > len(content_before)
    assert agent.state == {"edits": 2, "last_shape": "B"}


@conversation("Start over", create_test_agent)
async def test_reset(agent):
    await agent.send("Create A")
    agent.reset()
    assert agent.canvas.content == ""
    assert agent.conversation.messages == ()
