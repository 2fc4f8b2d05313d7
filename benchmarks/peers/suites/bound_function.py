"""The bound of runners whose agent is a loop written by hand: that loop in bare asyncio."""

from __future__ import annotations

import asyncio
import sys

from by_hand import Loop
from work import AT_ONCE, NUMBERS, answer_of, prompt_of


async def main() -> int:
    """Run the episodes; return how many answered wrongly."""
    loop, numbers, wrong = Loop(), iter(NUMBERS), 0

    async def worker() -> None:
        nonlocal wrong
        for number in numbers:
            wrong += (await loop.answer(prompt_of(number))).text != answer_of(number)

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return wrong


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main()) else 0)
