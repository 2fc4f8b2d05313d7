"""A bank as an MCP server, over stdio, streamable HTTP (`--http PORT`) or SSE (`--sse PORT`).

Some of its tools fail.
"""

# ruff: noqa: T201 - what these programs print is what they are for

import argparse
import os
import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel


class Confirmation(BaseModel):
    """What a user is asked for."""

    sure: bool


server = MCPServer("bank")
balances = {"checking": 1500.0, "savings": 3200.0}


@server.tool()
def get_balance(account: str) -> str:
    """Return the balance of an account."""
    return f"${balances[account]:,.2f}"


@server.tool()
def withdraw(account: str, amount: float) -> str:
    """Take money from an account and return what is left."""
    balances[account] -= amount
    return get_balance(account)


@server.tool()
def reset_balances() -> str:
    """Set every account back."""
    balances.update(checking=1500.0, savings=3200.0)
    return "done"


@server.tool()
async def echo(text: str) -> str:
    """Return the text, after others had a chance to be faster."""
    await anyio.lowlevel.checkpoint()
    return text


@server.tool()
def process_id() -> int:
    """Return the server's process id."""
    return os.getpid()


@server.tool()
def environment() -> dict[str, str]:
    """Return the server's whole environment."""
    return dict(os.environ)


@server.tool()
def headers(ctx: Context) -> dict[str, str]:
    """Return the headers of the request, of a web server's."""
    return dict(ctx.headers or {})


@server.tool()
def fail(message: str) -> str:
    """Report an error."""
    raise ValueError(message)


@server.tool()
def crash() -> str:
    """End the process in the middle of a call."""
    print("about to crash", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
async def hang() -> str:
    """Never answer."""
    await anyio.sleep_forever()
    return "never"


@server.tool()
async def ask_user(ctx: Context) -> str:
    """Ask whoever uses the client."""
    return str(await ctx.elicit("Are you sure?", Confirmation))


@server.tool()
async def ask_model(ctx: Context) -> str:
    """Ask the client's model."""
    question = SamplingMessage(role="user", content=TextContent(type="text", text="Sure?"))
    return str(await ctx.session.create_message(messages=[question], max_tokens=5))


@server.tool()
async def ask_roots(ctx: Context) -> str:
    """Ask which folders the client has."""
    return str(await ctx.session.list_roots())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int)
    parser.add_argument("--sse", type=int)
    options = parser.parse_args()
    print("the bank opens", file=sys.stderr, flush=True)
    if options.http is not None:
        server.run("streamable-http", port=options.http)
    elif options.sse is not None:
        server.run("sse", port=options.sse)
    else:
        server.run("stdio")


if __name__ == "__main__":
    main()
