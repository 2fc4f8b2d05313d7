"""The bank: a real MCP server over stdio, with two accounts and one tool that moves money."""

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("bank")
balances = {"checking": 1500.0, "savings": 3200.0}


@server.tool()
def get_balance(account: str) -> str:
    """Return the balance of an account: checking or savings."""
    if account not in balances:
        raise ToolError(f"there is no account {account!r}; there are checking and savings")
    return f"${balances[account]:,.2f}"


@server.tool()
def transfer(source: str, target: str, amount: float) -> str:
    """Move money between two accounts and say what is left in the first."""
    if amount > balances[source]:
        raise ToolError(f"{source} holds only {get_balance(source)}")
    balances[source] -= amount
    balances[target] += amount
    return f"{get_balance(source)} left in {source}"


@server.tool()
def reset_balances() -> str:
    """Set both accounts back, between two episodes."""
    balances.update(checking=1500.0, savings=3200.0)
    return "done"


if __name__ == "__main__":
    server.run("stdio")
