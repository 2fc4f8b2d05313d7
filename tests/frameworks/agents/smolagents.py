"""A bank's agents, written with smolagents."""

from smolagents import OpenAIServerModel, ToolCallingAgent, tool


@tool
def get_balance(account: str) -> str:
    """The balance of an account.

    Args:
        account: The account.
    """
    return f"$1,500.00 on {account}"


@tool
def close_account(account: str) -> str:
    """Close an account.

    Args:
        account: The account.
    """
    raise ValueError(f"{account} is not empty")


MODEL = OpenAIServerModel("gpt-5-mini")
teller = ToolCallingAgent(
    [get_balance, close_account],
    MODEL,
    name="teller",
    description="Knows the accounts.",
    verbosity_level=0,
)
desk = ToolCallingAgent([], MODEL, name="desk", managed_agents=[teller], verbosity_level=0)
HANDOFF = ("teller", {"task": "QUESTION"})


def stream(message: str) -> str:
    agent = ToolCallingAgent([get_balance], MODEL, stream_outputs=True, verbosity_level=0)
    *_, last = agent.run(message, stream=True)
    return str(last.output)
