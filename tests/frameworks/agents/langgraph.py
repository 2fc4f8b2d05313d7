"""A bank's agents, written with LangChain's `create_agent` and LangGraph."""

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.tools import ToolException
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel


class Balance(BaseModel):
    account: str
    dollars: float


@tool
def get_balance(account: str) -> str:
    """The balance of an account."""
    return f"$1,500.00 on {account}"


@tool
def close_account(account: str) -> str:
    """Close an account."""
    raise ToolException(f"{account} is not empty")


close_account.handle_tool_error = True

MODEL = ChatOpenAI(model="gpt-5-mini", max_retries=0)
teller = create_agent(MODEL, tools=[get_balance, close_account], system_prompt="Be brief.")
remembering = create_agent(MODEL, tools=[get_balance], checkpointer=InMemorySaver())
typed = create_agent(MODEL, response_format=Balance)


@tool
def ask_teller(question: str) -> str:
    """Ask the teller, another agent."""
    return teller.invoke({"messages": [{"role": "user", "content": question}]})["messages"][-1].text


desk = create_agent(MODEL, tools=[ask_teller], system_prompt="Find the right clerk.")
HANDOFF = ("ask_teller", {"question": "QUESTION"})


async def stream(message: str) -> str:
    text = ""
    messages = {"messages": [{"role": "user", "content": message}]}
    async for part, _ in teller.astream(messages, stream_mode="messages"):
        text += part.text if part.type == "AIMessageChunk" else ""
    return text
