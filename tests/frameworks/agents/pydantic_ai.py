"""A bank's agents, written with PydanticAI."""

from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry


class Balance(BaseModel):
    account: str
    dollars: float


MODEL = "openai:gpt-5-mini"
teller = Agent(MODEL, name="teller", instructions="Be brief.")
typed = Agent(MODEL, name="typed", output_type=Balance)
desk = Agent(MODEL, name="desk", instructions="Find the right clerk.")
HANDOFF = ("ask_teller", {"question": "QUESTION"})


@teller.tool_plain
def get_balance(account: str) -> str:
    """The balance of an account."""
    return f"$1,500.00 on {account}"


@teller.tool_plain
def close_account(account: str) -> str:
    """Close an account."""
    raise ModelRetry(f"{account} is not empty")


@desk.tool_plain
async def ask_teller(question: str) -> str:
    """Ask the teller, another agent."""
    return (await teller.run(question)).output


async def stream(message: str) -> str:
    async with teller.run_stream(message) as run:
        return await run.get_output()
