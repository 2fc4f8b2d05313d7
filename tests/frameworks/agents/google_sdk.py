"""A bank's agent, written with nothing but Google's SDK, which calls the functions itself."""

from google import genai
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


MODEL = "gemini-2.5-flash"
TOOLS = {"tools": [get_balance, close_account]}
client = genai.Client()


async def teller(message: str, history: list) -> str:
    roles = {"user": "user", "assistant": "model"}
    known = [
        types.Content(role=roles[one["role"]], parts=[types.Part(text=one["content"])])
        for one in history
    ]
    chat = client.aio.chats.create(model=MODEL, config=TOOLS, history=known)
    return (await chat.send_message(message)).text


async def typed(message: str) -> str:
    config = {"response_mime_type": "application/json", "response_schema": Balance}
    answer = await client.aio.models.generate_content(model=MODEL, contents=message, config=config)
    return answer.text


async def stream(message: str) -> str:
    parts = await client.aio.models.generate_content_stream(
        model=MODEL, contents=message, config=TOOLS
    )
    return "".join([part.text or "" async for part in parts])
