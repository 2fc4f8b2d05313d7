"""The coding agent. Its policy is SCRIPTED: a few rules stand where a product has a model.

Everything around the rules is real: PydanticAI's loop, the tools, the files, pytest.
"""

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

MEND = ToolCallPart(
    "replace",
    {"file": "shop/prices.py", "old": "return price + ", "new": "return price - "},
)
WHOLE_SUITE = ToolCallPart("bash", {"command": "pytest -q"})
ONE_TEST = ToolCallPart("bash", {"command": "pytest -q tests/test_discount.py"})


def scripted(messages, _info):
    """Mend, test, and read what the tools say; `whole suite` in the task makes it insist."""
    told = [part.content for m in messages for part in m.parts if isinstance(part, ToolReturnPart)]
    if not told:
        return ModelResponse([MEND])
    if len(told) == 1:
        return ModelResponse([WHOLE_SUITE])
    if "passed" in told[-1]:
        return ModelResponse([TextPart(f"The discount is taken off now: {told[-1]}")])
    insists = "whole suite" in messages[0].parts[0].content
    return ModelResponse([WHOLE_SUITE if insists else ONE_TEST])


def coding_agent(workshop):
    return Agent(
        FunctionModel(scripted, model_name="scripted"),
        name="coding-agent",
        tools=[workshop.bash, workshop.replace],
    )
