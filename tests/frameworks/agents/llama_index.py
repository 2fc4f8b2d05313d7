"""A bank's agents, written with LlamaIndex."""

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.llms.openai import OpenAI
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


MODEL = OpenAI(model="gpt-5-mini", max_retries=0)
TOOLS = [get_balance, close_account]
teller = FunctionAgent(
    name="teller", tools=TOOLS, llm=MODEL, system_prompt="Be brief.", streaming=False
)
typed = FunctionAgent(name="typed", tools=[], llm=MODEL, output_cls=Balance, streaming=False)
_clerk = FunctionAgent(
    name="clerk", description="Knows the accounts.", tools=TOOLS, llm=MODEL, streaming=False
)
_front = FunctionAgent(
    name="front",
    description="Finds the clerk.",
    tools=[],
    llm=MODEL,
    can_handoff_to=["clerk"],
    streaming=False,
)
desk = AgentWorkflow([_front, _clerk], root_agent="front")
HANDOFF = ("handoff", {"to_agent": "clerk", "reason": "It knows."})


async def stream(message: str) -> str:
    agent = FunctionAgent(name="streamed", tools=TOOLS, llm=MODEL)
    return str(await agent.run(message))
