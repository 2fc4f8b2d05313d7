"""pydantic-evals: a data set of the episodes, and its evaluator of equal answers."""

from __future__ import annotations

import asyncio
import sys

from agent import build_agent
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected
from work import AT_ONCE, NUMBERS, answer_of, prompt_of


async def main() -> int:
    """Run the data set; return how many cases did not pass."""
    agent = build_agent()

    async def task(prompt: str) -> str:
        return (await agent.run(prompt)).output

    dataset: Dataset[str, str, None] = Dataset(
        name="episodes",
        cases=[
            Case(name=str(number), inputs=prompt_of(number), expected_output=answer_of(number))
            for number in NUMBERS
        ],
        evaluators=[EqualsExpected()],
    )
    report = await dataset.evaluate(task, max_concurrency=AT_ONCE, progress=False)
    passed = [case for case in report.cases if all(a.value for a in case.assertions.values())]
    return len(NUMBERS) - len(passed)


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main()) else 0)
