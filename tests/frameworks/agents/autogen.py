"""A bank's agents, written with AutoGen."""

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.teams import Swarm
from autogen_ext.models.openai import OpenAIChatCompletionClient
from pydantic import BaseModel


class Balance(BaseModel):
    account: str
    dollars: float


def get_balance(account: str) -> str:
    """The balance of an account."""
    return f"$1,500.00 on {account}"


def close_account(account: str) -> str:
    """Close an account."""
    raise ValueError(f"{account} is not empty")


INFO = {
    "family": "gpt-5",
    "function_calling": True,
    "json_output": True,
    "structured_output": True,
    "vision": False,
}
MODEL = OpenAIChatCompletionClient(model="gpt-5-mini", model_info=INFO, max_retries=0)
TOOLS = {"model_client": MODEL, "tools": [get_balance, close_account], "max_tool_iterations": 10}
teller = AssistantAgent("teller", **TOOLS)
typed = AssistantAgent("typed", model_client=MODEL, output_content_type=Balance)
_clerk = AssistantAgent("clerk", description="Knows the accounts.", **TOOLS)
_front = AssistantAgent("front", model_client=MODEL, handoffs=["clerk"])
desk = Swarm([_front, _clerk], termination_condition=TextMentionTermination("$", sources=["clerk"]))
HANDOFF = ("transfer_to_clerk", {})


async def stream(message: str) -> str:
    agent = AssistantAgent("streamed", model_client_stream=True, **TOOLS)
    async for event in agent.run_stream(task=message):
        last = event
    return last.messages[-1].to_text()
