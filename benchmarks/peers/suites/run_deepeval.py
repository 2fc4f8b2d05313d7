"""DeepEval: a data set of the episodes, iterated as its guide says, and ExactMatchMetric."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Generator

from agent import build_agent
from deepeval.dataset import EvaluationDataset, Golden
from deepeval.evaluate import AsyncConfig, DisplayConfig
from deepeval.evaluate.types import EvaluationResult
from deepeval.metrics import ExactMatchMetric
from deepeval.tracing import observe, update_current_trace
from work import AT_ONCE, NUMBERS, answer_of, prompt_of

AGENT = build_agent()


@observe(type="agent")
async def episode(golden: Golden) -> str:
    """Run the agent; DeepEval keeps its input and output."""
    answer = (await AGENT.run(golden.input)).output
    update_current_trace(input=golden.input, output=answer, expected_output=golden.expected_output)
    return answer


def evaluated(dataset: EvaluationDataset) -> Generator[Golden, None, EvaluationResult]:
    """Iterate over the data set; DeepEval runs what is given to it meanwhile."""
    shown = DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False)
    return (
        yield from dataset.evals_iterator(
            metrics=[ExactMatchMetric()],
            async_config=AsyncConfig(max_concurrent=AT_ONCE),
            display_config=shown,
        )
    )


def main() -> int:
    """Run the data set; return 0 if every metric passed."""
    dataset = EvaluationDataset(
        goldens=[Golden(input=prompt_of(n), expected_output=answer_of(n)) for n in NUMBERS]
    )
    iterator = evaluated(dataset)
    while True:
        try:
            golden = next(iterator)
        except StopIteration as end:
            results = end.value.test_results
            passed = sum(bool(result.success) for result in results)
            print(passed, "of", len(results), "passed")
            return 0 if passed == len(results) == len(NUMBERS) else 1
        dataset.evaluate(asyncio.create_task(episode(golden)))


if __name__ == "__main__":
    sys.exit(main())
