"""A bank's agents, written with the OpenAI Agents SDK."""

from agents import Agent, Runner, function_tool
from pydantic import BaseModel


class Balance(BaseModel):
    account: str
    dollars: float


@function_tool
def get_balance(account: str) -> str:
    """The balance of an account."""
    return f"$1,500.00 on {account}"


@function_tool
def close_account(account: str) -> str:
    """Close an account."""
    raise ValueError(f"{account} is not empty")


MODEL = "gpt-5-mini"
teller = Agent(
    name="teller", instructions="Be brief.", model=MODEL, tools=[get_balance, close_account]
)
typed = Agent(name="typed", instructions="Be exact.", model=MODEL, output_type=Balance)
desk = Agent(name="desk", instructions="Find the right clerk.", model=MODEL, handoffs=[teller])
TOOL_ERROR = "An error occurred while running the tool"
HANDOFF = ("transfer_to_teller", {})


async def stream(message: str) -> str:
    run = Runner.run_streamed(teller, message)
    async for _ in run.stream_events():
        pass
    return run.final_output
