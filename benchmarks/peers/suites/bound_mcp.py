"""The bound of the engine's suite: as `bound`, with the tool on one MCP server over stdio."""

from __future__ import annotations

import asyncio
import os
import sys

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset, StdioTransport
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from work import AT_ONCE, INSTRUCTIONS, MODEL, NUMBERS, URL, answer_of, prompt_of


async def main() -> int:
    """Run the episodes; return how many answered wrongly."""
    root = os.environ["BENCH_ROOT"]
    server = StdioTransport(
        sys.executable, ["-m", "tests.servers.bank"], env={"PYTHONPATH": root}, cwd=root
    )
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=URL, api_key="no-key"))
    numbers, wrong = iter(NUMBERS), 0
    async with MCPToolset(server) as toolset:
        agent = Agent(model, instructions=INSTRUCTIONS, toolsets=[toolset])

        async def worker() -> None:
            nonlocal wrong
            for number in numbers:
                answer = (await agent.run(prompt_of(number))).output
                wrong += answer != answer_of(number)

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return wrong


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main()) else 0)
