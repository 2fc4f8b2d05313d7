"""What the tests of tool servers share: declarations, calls, and whether a process is gone."""

import asyncio
import os
import select
import sys
from pathlib import Path
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import RunUsage

from ci_agent_eval.engine.declarations import MCPServer

HERE = Path(__file__).parent
BANK = str(HERE / "bank.py")
GALLERY = str(HERE / "gallery.py")
ROGUE = str(HERE / "rogue.py")
CONTEXT: RunContext[Any] = RunContext(deps=None, model=TestModel(), usage=RunUsage())

ENOUGH_S = 120
"""How long a test waits for what must come; it comes far sooner."""


def a_bank(**changes: Any) -> MCPServer:
    return MCPServer(**{"command": [sys.executable, BANK], "name": "bank"} | changes)


def a_web_bank(**changes: Any) -> MCPServer:
    fields = {
        "command": [sys.executable, BANK, "--http", "{port}"],
        "transport": "streamable-http",
        "url": "http://127.0.0.1:{port}/mcp",
        "name": "web bank",
    }
    return MCPServer(**fields | changes)


def an_sse_bank(**changes: Any) -> MCPServer:
    fields = {
        "command": [sys.executable, BANK, "--sse", "{port}"],
        "transport": "sse",
        "url": "http://127.0.0.1:{port}/sse",
        "name": "SSE bank",
    }
    return MCPServer(**fields | changes)


def a_rogue(mode: str, *arguments: str, **changes: Any) -> MCPServer:
    fields = {"command": [sys.executable, "-S", ROGUE, mode, *arguments], "name": "rogue"}
    return MCPServer(**fields | changes)


async def call(toolset: AbstractToolset[Any], tool: str, **arguments: Any) -> Any:
    """Call a tool as PydanticAI does."""
    tools = await toolset.get_tools(CONTEXT)
    return await toolset.call_tool(tool, arguments, CONTEXT, tools[tool])


def is_there(pid: int) -> bool:
    """Say whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(pid: int) -> None:
    """Wait for the end of a process that need not be ours."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ended, _, _ = select.select([handle], [], [], ENOUGH_S)
    finally:
        os.close(handle)
    assert ended, f"the process {pid} is still there"


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def gone(pid: int) -> None:
    await asyncio.to_thread(wait_until_gone, pid)
