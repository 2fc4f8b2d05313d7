"""A bank's agents, written with CrewAI."""

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
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
    raise ValueError(f"{account} is not empty")


MODEL = LLM(model="openai/gpt-5-mini")
teller = Agent(
    role="teller",
    goal="Answer the customer.",
    backstory="You are brief.",
    llm=MODEL,
    tools=[get_balance, close_account],
)
_answer = Task(description="Answer: {question}", expected_output="The balance.", agent=teller)
crew = Crew(agents=[teller], tasks=[_answer])
_exact = Task(
    description="Answer: {question}",
    expected_output="The balance.",
    agent=teller,
    output_pydantic=Balance,
)
typed = Crew(agents=[teller], tasks=[_exact])
_front = Agent(
    role="front",
    goal="Find the clerk.",
    backstory="You are brief.",
    llm=MODEL,
    allow_delegation=True,
)
_ask = Task(description="Answer: {question}", expected_output="The balance.", agent=_front)
desk = Crew(agents=[_front, teller], tasks=[_ask])
HANDOFF = (
    "delegate_work_to_coworker",
    {"task": "QUESTION", "context": "none", "coworker": "teller"},
)
_streamed = Agent(
    role="streamed",
    goal="Answer the customer.",
    backstory="You are brief.",
    llm=LLM(model="openai/gpt-5-mini", stream=True),
    tools=[get_balance],
)


async def stream(message: str) -> str:
    return (await _streamed.kickoff_async(message)).raw
