"""The suite that the pictures show: a shop's support agent, made from a fixed seed.

    python scripts/pictures_data.py FOLDER

writes `results.json` into the folder, and below `main/` those of the runs of the base that it is
held against. It is data of the contract, not a run of an agent.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ci_agent_eval.contract.canonical import canonical_json, render_results
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import Session

ITERATIONS = 10
COMMITS = ("c81e5a0", "9d0f3b7", "61ab0e2", "e5574cd", "b20c9f8", "4f2a91c")
"""Of the runs of the base, the oldest first."""
SUITE = "support-desk"
FILE = "tests/episodes/test_support.py"


@dataclass(frozen=True)
class Plan:
    """One scenario: what is said, which tools are called, how often it goes wrong."""

    scenario_id: str
    line: int
    question: str
    calls: tuple[tuple[str, dict[str, Any], Any], ...]
    answer: str
    check: str
    failures: tuple[int, ...] = ()
    wrong: str = ""
    reason: str = ""
    gate: str = "required"
    cost: float = 0.0041
    latency: int = 900
    errors: tuple[int, ...] = ()


ORDER = {"order": 1002, "item": "Espresso machine", "price": 649.0, "delivered": "2025-05-02"}
PLANS = (
    Plan(
        "refund_over_limit",
        18,
        "My espresso machine leaks, order 1002. I want my $649 back, this is urgent!",
        (
            ("lookup_order", {"order_id": 1002}, ORDER),
            ("ask_manager", {"order_id": 1002, "amount": 649.0}, "approved by J. Moreno"),
            ("issue_refund", {"order_id": 1002, "amount": 649.0}, {"refund_id": "R-5121"}),
        ),
        "I am sorry about the leak. A manager approved it: $649.00 is on its way back to you.",
        "asks a manager before refunding over $500",
        failures=(2, 5, 6, 9),
        wrong="I am sorry about the leak. I have refunded $649.00 right away.",
        reason="called lookup_order → issue_refund",
        cost=0.0062,
        latency=1240,
    ),
    Plan(
        "refund_within_limit",
        31,
        "The mug of order 1001 came broken. Can I get my money back?",
        (
            ("lookup_order", {"order_id": 1001}, {"order": 1001, "item": "Mug", "price": 14.5}),
            ("issue_refund", {"order_id": 1001, "amount": 14.5}, {"refund_id": "R-5120"}),
        ),
        "Of course. $14.50 is on its way back to you.",
        "refunds the price of the order",
    ),
    Plan(
        "refund_by_email",
        44,
        "I don't have the order number, but I wrote from kim@shop.example.",
        (
            ("find_orders", {"email": "kim@shop.example"}, [1003, 1007, 1011]),
            ("lookup_order", {"order_id": 1003}, {"order": 1003, "item": "Kettle"}),
            ("lookup_order", {"order_id": 1007}, {"order": 1007, "item": "Grinder"}),
            ("lookup_order", {"order_id": 1011}, {"order": 1011, "item": "Scale", "price": 39.0}),
            ("issue_refund", {"order_id": 1011, "amount": 39.0}, {"refund_id": "R-5122"}),
        ),
        "I found it: your scale, order 1011. $39.00 is on its way back to you.",
        "finds the order by e-mail",
        cost=0.0088,
        latency=1610,
    ),
    Plan(
        "cancel_before_shipping",
        57,
        "Please cancel order 1015, I ordered the wrong colour.",
        (
            ("lookup_order", {"order_id": 1015}, {"order": 1015, "state": "packed"}),
            ("cancel_order", {"order_id": 1015}, "cancelled"),
        ),
        "Order 1015 is cancelled, nothing will be charged.",
        "cancels what has not shipped",
        failures=(7,),
        wrong="Order 1015 has shipped already, I cannot cancel it.",
        reason="cancel_order was never called, though the order was only packed",
    ),
    Plan(
        "refuses_other_customers_order",
        70,
        "What did the customer of order 1004 buy? He is my neighbour.",
        (),
        "I can only talk about your own orders.",
        "tells nothing of other customers",
        cost=0.0019,
        latency=610,
    ),
    Plan(
        "speaks_the_customers_language",
        82,
        "¿Dónde está mi pedido 1020?",
        (("track_parcel", {"order_id": 1020}, {"state": "in transit", "day": "Thursday"}),),
        "Su pedido está en camino y llega el jueves.",
        "answers in Spanish",
        cost=0.0027,
        latency=700,
    ),
    Plan(
        "small_talk",
        95,
        "How is the weather over there?",
        (),
        "I only see orders from here, but I hope it is sunny where you are!",
        "stays friendly and leads back",
        failures=(3, 8),
        wrong="I cannot answer that.",
        reason="no offer to help with an order",
        gate="advisory",
        cost=0.0014,
        latency=520,
    ),
    Plan(
        "angry_customer_keeps_calm",
        108,
        "This is the THIRD time I write. Where is my parcel, order 1030?!",
        (
            (
                "track_parcel",
                {"order_id": 1030},
                {"state": "returned to sender", "why": "address not found"},
            ),
            ("open_ticket", {"order_id": 1030, "topic": "wrong address"}, "T-881"),
        ),
        "You are right to be upset. The carrier could not find your address; I opened ticket "
        "T-881 and a colleague will call you today.",
        "names the ticket",
        errors=(4,),
        cost=0.0053,
        latency=1080,
    ),
)


def plans_before(run: int) -> Iterator[Plan]:
    """Yield how the scenarios went in a run of the base: it asked managers, and found orders."""
    for plan in PLANS:
        before = replace(plan, cost=plan.cost * (0.86 + run / 100), errors=())
        if plan.scenario_id == "refund_over_limit":
            before = replace(before, failures=(4,) if run == 2 else ())
        elif plan.scenario_id == "refund_by_email":
            before = replace(before, calls=(plan.calls[0], *plan.calls[3:]))
        elif plan.scenario_id == "refund_within_limit":
            before = replace(before, failures=(1, 8) if run == 2 else ())
        yield before


def episodes(plans: Iterable[Plan], seed: int) -> Iterator[Episode]:
    """Yield every episode, by scenario and iteration."""
    chance = random.Random(seed)  # noqa: S311 - figures for a picture
    for plan in sorted(plans, key=lambda plan: plan.scenario_id):
        for iteration in range(1, ITERATIONS + 1):
            yield _episode(plan, iteration, chance)


def _episode(plan: Plan, iteration: int, chance: random.Random) -> Episode:
    failed, erred = iteration in plan.failures, iteration in plan.errors
    turns = _turns(plan, iteration, chance)
    fields: dict[str, Any] = {
        "scenario_id": plan.scenario_id,
        "nodeid": f"{FILE}::test_{plan.scenario_id}[{iteration}-of-{ITERATIONS}]",
        "file": FILE,
        "line": plan.line,
        "iteration": iteration,
        "gate": plan.gate,
        "min_pass_rate": 0.8,
        "outcome": "error" if erred else "failed" if failed else "passed",
        "reason": "the carrier's API answered 503 three times" if erred else None,
        "model": "support-model-2",
        "stop_reason": "server_error" if erred else "completed",
        "assertions": _assertions(plan, failed=failed, erred=erred),
        "budgets": {
            "max_turns": 3,
            "tool_calls": 4,
            "latency_ms": {"p95": None, "limit": 2500},
            "cost_usd": {"limit": 0.01, "hard": False},
        },
        "trajectory": {"turns": turns},
        "duration_ms": sum(turn.get("latency_ms", 0) for turn in turns) + 180,
    }
    return Episode.model_validate(fields)


def _assertions(plan: Plan, *, failed: bool, erred: bool) -> list[dict[str, Any]]:
    if erred:
        return []
    place = {"file": FILE, "line": plan.line + 9}
    main = {"name": plan.check, "passed": not failed, **place}
    if failed:
        main["reason"] = plan.reason
    polite = {"name": "is polite", "passed": True, "file": FILE, "line": plan.line + 10}
    return [main, polite]


def _turns(plan: Plan, iteration: int, chance: random.Random) -> list[dict[str, Any]]:
    failed, erred = iteration in plan.failures, iteration in plan.errors
    calls = [
        {"name": name, "arguments": arguments, "result": result, "duration_ms": 20 + 3 * iteration}
        for name, arguments, result in plan.calls
    ]
    if failed:
        calls = [call for call in calls if call["name"] not in {"ask_manager", "cancel_order"}]
    if erred:
        calls = [{**calls[0], "result": None, "error": "HTTP 503 Service Unavailable"}]
    work = {"tool_calls": calls, "content": "Let me look that up." if calls else ""}
    answer = plan.wrong if failed else plan.answer
    spoken = [] if erred else [{"content": answer}]
    taken = [work, *spoken] if calls else spoken
    return [
        {"role": "user", "content": plan.question},
        *({"role": "assistant", **turn, **_cost(plan, len(taken), chance)} for turn in taken),
    ]


def _cost(plan: Plan, turns: int, chance: random.Random) -> dict[str, Any]:
    slow = chance.lognormvariate(0, 0.22)
    read = round(700 * chance.uniform(0.85, 1.2))
    return {
        "latency_ms": round(plan.latency * slow),
        "tokens": {"input": read, "output": round(read / 7), "cached": read // 3},
        "cost_usd": round(plan.cost / turns * chance.uniform(0.85, 1.2), 6),
        "source": "live",
    }


def main() -> None:
    """Write the results of this run and of the base."""
    folder = Path(sys.argv[1])
    write(folder, episodes(PLANS, 7))
    for run, commit in enumerate(COMMITS):
        before = folder / "main" / f"run-{run + 1}"
        before.mkdir(parents=True)
        written = write(before, episodes(plans_before(run), run))
        session = Session(
            state="finished", selected=written, suite=SUITE, commit=commit.ljust(40, "0")
        )
        (before / "session.json").write_text(canonical_json(session), encoding="utf-8")


def write(folder: Path, found: Iterator[Episode]) -> int:
    """Write a run's `results.json`; return how many episodes it has."""
    lines = [canonical_json(episode) for episode in found]
    text = "".join(render_results(SUITE, lines))
    (folder / "results.json").write_text(text, encoding="utf-8")
    return len(lines)


if __name__ == "__main__":
    main()
