"""A bank's agents, written with Google ADK."""

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import InMemoryRunner
from google.genai import types
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


def explain(tool, args, tool_context, error):
    return {"error": str(error)}


MODEL = "gemini-2.5-flash"
teller = LlmAgent(
    name="teller",
    model=MODEL,
    instruction="Be brief.",
    tools=[get_balance, close_account],
    on_tool_error_callback=explain,
)
typed = LlmAgent(name="typed", model=MODEL, instruction="Be exact.", output_schema=Balance)
clerk = teller.clone(update={"name": "clerk", "description": "Knows the accounts."})
desk = LlmAgent(name="desk", model=MODEL, instruction="Find the clerk.", sub_agents=[clerk])
HANDOFF = ("transfer_to_agent", {"agent_name": "clerk"})


async def stream(message: str) -> str:
    runner = InMemoryRunner(agent=teller)
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="u")
    content = types.Content(role="user", parts=[types.Part(text=message)])
    text = ""
    async for event in runner.run_async(
        user_id="u",
        session_id=session.id,
        new_message=content,
        run_config=RunConfig(streaming_mode=StreamingMode.SSE),
    ):
        if event.is_final_response():
            text = event.content.parts[0].text
    return text
