"""inspect_ai: a task of the episodes, a solver that runs the agent, the scorer `exact`."""

from __future__ import annotations

import sys

from agent import build_agent
from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import Generate, Solver, TaskState, solver
from work import AT_ONCE, NUMBERS, answer_of, prompt_of


@solver
def the_agent() -> Solver:
    """Return a solver that gives the sample to the agent."""
    agent = build_agent()

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001 - its protocol
        answer = (await agent.run(state.input_text)).output
        state.output = ModelOutput.from_content("agent", answer)
        return state

    return solve


def main() -> int:
    """Run the task; return 0 if every sample was scored as right."""
    task = Task(
        dataset=[Sample(input=prompt_of(n), target=answer_of(n), id=n + 1) for n in NUMBERS],
        solver=the_agent(),
        scorer=match(location="exact"),
    )
    (log,) = evaluate(task, model=None, max_samples=AT_ONCE, display="none", log_dir="logs")
    if log.status != "success" or log.results is None:
        print(log.status, log.error)
        return 1
    right = log.results.scores[0].metrics["accuracy"].value
    return 0 if right == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
