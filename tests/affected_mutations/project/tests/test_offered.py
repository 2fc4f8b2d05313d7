"""Tools that are offered to a model and that it does not always call."""

import pytest
from shopdesk import model, orders, prompts, refunds, shipping


def play_model(messages, info):
    """Call the first tool once; the answer contains everything that was offered."""
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

    offered = [
        (tool.name, tool.description, tool.parameters_json_schema) for tool in info.function_tools
    ]
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart(offered[0][0], {"order_id": 1002})])
    digest = model.hashlib.sha256(repr((info.instructions, offered)).encode()).hexdigest()[:10]
    return ModelResponse(parts=[TextPart(f"Offered {len(offered)} tools #{digest}")])


@pytest.mark.episode(scenario_id="offered")
async def test_offered(aitest_run):
    from pydantic_ai import Agent
    from pydantic_ai.models.function import FunctionModel

    agent = Agent(
        FunctionModel(play_model),
        instructions=prompts.load_prompt("general"),
        tools=[orders.lookup_order, refunds.cancel_order, shipping.quote_parcel],
    )
    result = await aitest_run(agent, "Where is order 1002?")
    assert "#" in result.final_response
