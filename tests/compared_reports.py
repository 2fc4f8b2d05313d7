"""Reports with a baseline, quarantine or acknowledgements, for the golden files of `render`."""

from __future__ import annotations

from glob import escape
from typing import Any

from ci_agent_eval.analysis.comparison.model import (
    AllowedIncreases,
    NoBaseline,
)
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.gate.model import GatePolicy
from ci_agent_eval.gate.report import Report
from tests.builders import (
    HOSTILE,
    agreement,
    baseline,
    episode,
    failed_assertion,
    failing,
    in_quarantine,
    live,
    report,
    tool_call,
    turn,
)


def steps(*names: str, cost: float = 0.004, latency: float = 900, **fields: Any) -> dict[str, Any]:
    """An episode's way: a turn for each tool call, and what it took."""
    turns: list[dict[str, Any]] = [{"role": "user", "content": "hello"}]
    usage = {"input": 400, "output": 50}
    each = {"source": "live", "cost_usd": cost / len(names), "latency_ms": latency, "tokens": usage}
    turns += [turn(tool_calls=[tool_call(name)], **each) for name in names]
    return {"trajectory": {"turns": turns}, **fields}


def compared() -> Report:
    """Every change that there is, against ten runs of the base."""
    asked = failed_assertion(
        "escalates refunds over $500", reason="called issue_refund before ask_manager"
    )
    way, short = ("lookup_order", "ask_manager", "issue_refund"), ("lookup_order", "issue_refund")
    five, lax = range(1, 6), {"min_pass_rate": 0.6}

    def base(number: int) -> list[Episode]:
        def went(*names: str) -> dict[str, Any]:
            # Runs that are the same to the last figure are copies of one.
            return steps(*names, cost=0.004 + number / 100_000)

        return [
            *(episode("refund_over_limit", iteration=n, **went(*way)) for n in five),
            *(failing("small_talk", iteration=n, **went("greet")) for n in five),
            *(
                failing("order_status", iteration=n, model="openai:a", **went("lookup_order"))
                for n in five
            ),
            *(episode("escalation", iteration=n, **lax, **went("ask_manager")) for n in five),
            *(episode("refund_by_email", iteration=n, **steps(*way, cost=0.003)) for n in five),
            *(episode("greeting", iteration=n, conditions={"judge": "openai:a"}) for n in five),
            episode("loyalty_points", gate="advisory" if number else "required"),
            episode("vouchers", duration_ms=900 + number),
        ]

    dear = {"budgets": {"cost_usd": {"limit": 0.0035, "hard": False}}}
    return report(
        *(failing("refund_over_limit", iteration=n, assertions=[asked], **steps(*short))
          for n in range(1, 5)),
        episode("refund_over_limit", iteration=5, **steps(*way)),
        *(failing("small_talk", iteration=n, **steps("greet")) for n in five),
        *(episode("order_status", iteration=n, model="openai:b", **steps("lookup_order", "reply"))
          for n in five),
        *(episode("escalation", iteration=n, **lax, **steps("ask_manager")) for n in range(1, 9)),
        *(failing("escalation", iteration=n, **lax, **steps("ask_lawyer")) for n in (9, 10)),
        *(episode("refund_by_email", iteration=n, **dear, **steps(*way)) for n in five),
        *(episode("greeting", iteration=n, conditions={"judge": "openai:b"}) for n in five),
        episode("coupons", was=["vouchers"]),
        episode("complaints"),
        baseline=baseline(*map(base, range(10))),
    )  # fmt: skip


def regressed() -> Report:
    """What passes and the baseline speaks against: a rate, a way, an argument, a cost."""
    ten = range(1, 11)

    def refund(amount: int, cost: float) -> dict[str, Any]:
        lookup, paid = tool_call("lookup"), tool_call("refund", arguments={"amount": amount})
        usage = {"source": "live", "cost_usd": cost, "latency_ms": 900}
        return {"trajectory": {"turns": [turn(tool_calls=[lookup, paid], **usage)]}}

    def search(calls: int, cost: float) -> dict[str, Any]:
        budgets = {"tool_calls": {"used": calls, "limit": 4}}
        return {**steps(*["look_up"] * calls, cost=cost), "budgets": budgets}

    lax = {"min_pass_rate": 0.1}
    small = {"trajectory": live(0.004)}
    base = [
        *(episode("tone", iteration=n, **lax, **steps("greet")) for n in ten),
        *(episode("refund", iteration=n, **refund(40, 0.004)) for n in ten),
        *(episode("exchange", iteration=n, **steps("lookup", "exchange")) for n in ten),
        *(episode("search", iteration=n, **search(3, 0.004)) for n in ten),
        *(failing("greeting", iteration=n, **steps("greet")) for n in ten),
        *(episode("small", iteration=n, **small) for n in (1, 2, 3)),
    ]
    quiet = failed_assertion("is polite", reason=None)
    return report(
        *(episode("tone", iteration=n, **lax, **steps("greet")) for n in (1, 2)),
        *(failing("tone", iteration=n, **lax, assertions=[quiet], **steps("shout"))
          for n in range(3, 11)),
        *(episode("refund", iteration=n, **refund(400, 0.009)) for n in ten),
        *(episode("exchange", iteration=n, **steps("lookup", "ask", "exchange", cost=0.008))
          for n in ten),
        *(episode("search", iteration=n, **search(9, 0.007)) for n in ten),
        *(failing("greeting", iteration=n, **steps("greet", cost=0.006)) for n in ten),
        *(episode("small", iteration=n, min_passes=1, **small) for n in (1, 2)),
        failing("small", iteration=3, min_passes=1, **small),
        policy=GatePolicy(increases=AllowedIncreases(cost=0.05, latency=0.5)),
        baseline=baseline(base),
    )  # fmt: skip


def compared_and_passed() -> Report:
    way = steps("lookup_order", "issue_refund")
    return report(
        *(episode("refund", iteration=n, **way) for n in range(1, 6)),
        *(episode("order_status", iteration=n, **steps("lookup_order")) for n in range(1, 6)),
        baseline=baseline(
            [
                *(episode("refund", iteration=n, **steps("lookup_order")) for n in range(1, 6)),
                *(failing("order_status", iteration=n, **steps("greet")) for n in range(1, 6)),
            ]
        ),
    )


def no_baseline() -> Report:
    return report(episode("refund"), baseline=NoBaseline("evals/base is not there at `main`"))


def hostile_baseline(text: str = HOSTILE) -> Report:
    """The text in every place that a baseline fills."""
    other = f"{text}2"

    def way(name: str, **fields: Any) -> dict[str, Any]:
        call = tool_call(name, arguments={text: len(fields)})
        return {"trajectory": {"turns": [turn(tool_calls=[call])]}, **fields}

    over = {"budgets": {"custom": {text: {"used": 5, "limit": 4}}}}
    return report(
        *(failing(text, agent=text, iteration=n, file=text, **way(text, **over)) for n in (1, 2)),
        *(episode(other, iteration=n, was=[f"{text}3"], **way(text)) for n in (1, 2)),
        episode(f"{text}4", conditions={"judge": text}),
        *(failing(f"{text}6", iteration=n, model=text, **way(text, line=3)) for n in (1, 2)),
        baseline=baseline(
            [
                *(episode(text, agent=text, iteration=n, **way(other)) for n in range(40)),
                failing(f"{text}3", **way(other)),
                episode(f"{text}4", conditions={"judge": other}),
                episode(f"{text}5"),
                *(episode(f"{text}6", iteration=n, model=other, **way(text)) for n in range(40)),
            ],
            label=text,
        ),
    )


def agreed() -> Report:
    """Scenarios in quarantine and out of it again, and regressions that are accepted."""
    often = range(1, 21)
    lax = {"min_pass_rate": 0.0}
    return report(
        failing("refund_over_limit"),
        episode("slow_tool", outcome="error", reason="504 from the bank"),
        episode("order_status"),
        failing("address_change"),
        *(failing("tone", iteration=n, **lax) for n in often),
        *(failing("length", iteration=n, **lax) for n in often),
        *(episode("small_talk", iteration=n, attempt=2) for n in (1, 2)),
        failing("small_talk", iteration=1, attempt=1),
        quarantine=(
            in_quarantine("refund_*"),
            in_quarantine("slow_tool", reason="the bank's sandbox is down"),
            in_quarantine("order_status", owner="orders"),
            in_quarantine("address_change", expired=True),
            in_quarantine("renamed_since"),
        ),
        acknowledged=(
            agreement("tone", reason="the new prompt is terse"),
            agreement("length", expired=True),
            agreement("refund_over_limit"),
        ),
        baseline=baseline(
            [episode(name, iteration=n, **lax) for name in ("tone", "length") for n in often]
        ),
    )


def hostile_agreed(text: str = HOSTILE) -> Report:
    """The text in every place that an agreement fills."""
    name = escape(text)  # whatever the text is, it is no glob
    fields: dict[str, Any] = {"owner": text, "reason": text, "agent": name}
    rest = {"agent": text, "min_pass_rate": 0.0}
    return report(
        failing(text, agent=text),
        failing(f"{text}2", agent=text, attempt=1),
        episode(f"{text}2", agent=text, attempt=2),
        *(failing(f"{text}3", iteration=n, **rest) for n in range(20)),
        quarantine=(
            in_quarantine(name, **fields),
            in_quarantine(f"{name}2", expired=True, **fields),
            in_quarantine(f"{name}9", **fields),
        ),
        acknowledged=(
            agreement(f"{name}3", reason=text, agent=name),
            agreement(f"{name}4", reason=text, agent=name),
        ),
        baseline=baseline(
            [episode(f"{text}3", iteration=n, **rest) for n in range(20)],
            [episode(f"{text}3", **rest)],
            label=text,
        ),
    )
