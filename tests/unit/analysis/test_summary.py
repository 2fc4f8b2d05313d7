"""Folding episodes: iterations, attempts, agents, evaluations, worst violations and totals."""

from __future__ import annotations

from ci_agent_eval.analysis.summary import summarize_results
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.evaluation import build_evaluation_report
from tests.builders import episode, evaluated, failing, loaded, turn

JUDGED = {"calls": 2, "tokens": {"input": 90, "output": 10}, "cost_usd": 0.25}
UNPRICED, UNCOUNTED = {**JUDGED, "cost_usd": None}, {**JUDGED, "tokens": None}
PRICED = {"trajectory": {"turns": [turn(cost_usd=0.5, tokens={"input": 10, "output": 2})]}}
LOST = episode(iteration=2, outcome="error", reason="killed")
EVALUATIONS = [
    evaluated("a", True, False),
    evaluated("a", True, iteration=2),
    evaluated("b", False, outcome="error"),
    evaluated("c", outcome="skipped"),
    evaluated("d", False),
    evaluated("d", True, True, attempt=2),
    episode("strict"),
]


def using(used, iteration):
    budgets = {"tool_calls": {"used": used, "limit": 4}}
    return episode(iteration=iteration, trajectory=None, budgets=budgets)


CASES = {
    "a late pass": [failing(attempt=1), episode(attempt=2)],
    "two agents": [
        episode(agent="b"), failing(agent="a"), episode(agent="a", iteration=2), episode("c"),
    ],
    "an error of the only agent": [episode(agent="a"), LOST],
    "an error of the agent of its retry": [
        episode(agent="a"), episode(nodeid="x", outcome="error"), episode(nodeid="x", agent="b", attempt=2),
    ],
    "a pass of no agent": [failing(agent="a"), episode(iteration=2)],
    "an error of either agent": [
        episode(agent="a"), episode(agent="b"), episode(outcome="error", nodeid="y"),
    ],
    "one judged iteration": [episode()],
    "56 of 60": [
        *(episode(iteration=n) for n in range(1, 57)),
        *(failing(iteration=n) for n in range(57, 61)),
        episode("errs", outcome="error"),
    ],
    "the worst violation": [using(5, 1), using(7, 2), using(3, 3)],
    "known totals": [episode("a", **PRICED), episode("b", **PRICED)],
    "a part that is unknown": [episode("a", **PRICED), episode("b")],
    "tokens of another program": [episode(trajectory=None, tokens={"input": 20, "output": 1})],
    "every attempt costs": [failing(attempt=1, **PRICED), episode(attempt=2, **PRICED)],
    "evaluations": EVALUATIONS,
    "a scenario of a strict test, too": [evaluated("a", False), episode("a", iteration=2)],
    "judges": [
        episode(judge=JUDGED, **PRICED), evaluated("a", judge=JUDGED, **PRICED), episode("c", **PRICED),
    ],
    "a judge without a price": [episode(judge=UNPRICED, **PRICED)],
    "a simulated user": [episode(simulated_user=JUDGED, judge=JUDGED, **PRICED)],
    "a simulated user without a price": [episode(simulated_user=UNPRICED, **PRICED)],
    "a simulated user without tokens": [episode(simulated_user=UNCOUNTED, **PRICED)],
}  # fmt: skip
BUDGETS = SuiteBudgets.model_validate({"total_cost_usd": 0.4, "total_tokens": 100})


def describe(name, episodes):
    found = summarize_results(loaded(*episodes), budgets=BUDGETS)
    lines = [f"{name}: {found.tally}, {found.pass_interval}"]
    for one in found.scenarios:
        among = " among agents" if one.among_agents else ""
        lines.append(f"  {one.scenario_id} by {one.agent}{among}: {one.mode}, {one.gate}")
        lines.append(f"    {one.tally}, {one.flaky} flaky, {one.pass_interval}, ${one.cost_usd}")
        over = one.violations
        lines += [f"    {item.violation.observed} in {item.iterations} iterations" for item in over]
    parts = found.totals._asdict()
    parts |= {name: parts[name]._asdict() for name in ("judge", "simulated_user")}
    lines += [f"  {key}: {value}" for key, value in parts.items()]
    lines += [f"  {one.budget}: {one.observed}" for one in found.suite_violations]
    return "\n".join([*lines, f"  {found.evaluations}"])


def test_the_summaries_are_the_golden_ones(golden):
    text = "\n".join(describe(*item) for item in CASES.items())
    golden("summary/summaries.txt", f"{text}\n")


def test_evaluations_are_tallied_as_their_report_does():
    whole = summarize_results(loaded(*EVALUATIONS), budgets=SuiteBudgets()).evaluations
    told = build_evaluation_report(EVALUATIONS)
    assert (whole.conversations, whole.passed, whole.mean_score) == (
        told.total_conversations,
        told.passed_conversations,
        told.average_score,
    )
