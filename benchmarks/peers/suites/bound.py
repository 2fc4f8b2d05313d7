"""The bound: the agent in bare asyncio, so many episodes at once, and nothing kept."""

from __future__ import annotations

import asyncio
import sys

from agent import build_agent
from work import AT_ONCE, NUMBERS, answer_of, prompt_of


async def main() -> int:
    """Run the episodes; return how many answered wrongly."""
    agent, numbers, wrong = build_agent(), iter(NUMBERS), 0

    async def worker() -> None:
        nonlocal wrong
        for number in numbers:
            answer = (await agent.run(prompt_of(number))).output
            wrong += answer != answer_of(number)

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return wrong


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main()) else 0)
