"""A bank's agents, written with agno."""

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.team import Team
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


MODEL = OpenAIChat(id="gpt-5-mini")
PLAIN = {"model": MODEL, "telemetry": False}
teller = Agent(name="teller", tools=[get_balance, close_account], instructions="Be brief.", **PLAIN)
typed = Agent(name="typed", output_schema=Balance, **PLAIN)
desk = Team(name="desk", members=[teller], **PLAIN)
HANDOFF = ("delegate_task_to_member", {"member_id": "teller", "task": "QUESTION"})


async def stream(message: str) -> str:
    text = ""
    async for event in teller.arun(message, stream=True):
        text += event.content or ""
    return text
