"""An evaluation: every assertion is recorded, and a failed one fails nothing by itself."""

from diagram import DiagramAgent

from ci_agent_eval import check, conversation


class TestArchitectureDiagrams:
    @conversation("Three-tier architecture", DiagramAgent)
    async def test_three_tier(self, agent):
        await agent.send("Create a three-tier architecture")
        assert "Frontend" in agent.canvas.content
        assert "Database" in agent.canvas.content

        await agent.send("Connect Frontend to Backend")
        assert "Frontend -> Backend" in agent.canvas.connections
        assert [call.name for call in agent.conversation.tool_calls][-1] == "connect"

    @conversation("Microservices", DiagramAgent)
    async def test_microservices(self, agent):
        await agent.send("Create Gateway and Orders and Billing.")
        assert len(agent.conversation.messages) > 0

        await agent.send("Connect Gateway to Orders. Connect Gateway to Payments.")
        drawn = set(agent.canvas.shapes)
        ends = {end for line in agent.canvas.connections for end in line.split(" -> ")}
        # Fails on purpose: the agent connects a box that nobody drew (see diagram.py).
        assert ends <= drawn, "connects only boxes that are there"
        check(len(ends & drawn) / len(ends), "share of arrow ends that lead to a box")
        assert agent.state["edits"] == 5
