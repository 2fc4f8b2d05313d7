"""A bank's agents, written with Strands, on Bedrock."""

from pydantic import BaseModel
from strands import Agent, tool
from strands.models import BedrockModel


class Balance(BaseModel):
    """The balance of an account."""

    account: str
    dollars: float


@tool
def get_balance(account: str) -> str:
    """The balance of an account."""
    return f"$1,500.00 on {account}"


@tool
def close_account(account: str) -> str:
    """Close an account."""
    raise ValueError(f"{account} is not empty")


MODEL = BedrockModel(model_id="anthropic.claude-haiku-4-5-20251001-v1:0", region_name="us-east-1")
PLAIN = {"callback_handler": None, "system_prompt": "Be brief."}
teller = Agent(name="teller", model=MODEL, tools=[get_balance, close_account], **PLAIN)
typed = Agent(name="typed", model=MODEL, structured_output_model=Balance, **PLAIN)


@tool
async def ask_teller(question: str) -> str:
    """Ask the teller, another agent."""
    return str(
        await Agent(name="clerk", model=MODEL, tools=[get_balance], **PLAIN).invoke_async(question)
    )


desk = Agent(name="desk", model=MODEL, tools=[ask_teller], **PLAIN)
HANDOFF = ("ask_teller", {"question": "QUESTION"})


async def stream(message: str) -> str:
    agent = Agent(model=MODEL, tools=[get_balance], **PLAIN)
    text = ""
    async for event in agent.stream_async(message):
        text += event.get("data", "")
    return text
