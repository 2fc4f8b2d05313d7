"""The reasons to fail the gate, and the warnings, of the summary and the scenario manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ci_agent_eval.analysis.evaluation_totals import EvaluationTally
from ci_agent_eval.analysis.known_scenarios import KnownScenarios, MissingScenario
from ci_agent_eval.analysis.loaded_results import OutcomeTally
from ci_agent_eval.analysis.summary import ScenarioSummary, Summary
from ci_agent_eval.contract.evidence import describe_unseen, list_missing_parts
from ci_agent_eval.contract.measurement import BudgetViolation
from ci_agent_eval.contract.scenario_manifest import UPDATE_COMMAND
from ci_agent_eval.contract.wording import list_cases, pluralize
from ci_agent_eval.gate.model import (
    GatePolicy,
    Judgement,
    Reason,
    ReasonKind,
    Shortfall,
    Thresholds,
    compute_exact_share,
)


def list_reasons(
    summary: Summary, judgements: tuple[Judgement, ...], policy: GatePolicy
) -> Iterator[Reason]:
    """Yield every reason of the summary to fail the run."""
    yield from _list_finding_reasons(summary, blocking=True)
    yield from _list_no_evidence_reasons(summary)
    for scenario, judgement in zip(summary.scenarios, judgements, strict=True):
        if judgement.gate == "required":
            for reason in _list_scenario_reasons(scenario, judgement, policy):
                if reason.kind != "scenario" or not _is_left_to_suite(judgement):
                    yield reason
    yield from _list_suite_rate_reasons(summary, judgements, policy)
    yield from list_manifest_reasons(summary, policy, gating=True)
    yield from _list_error_reasons(summary, policy)
    yield from _list_evaluation_reasons(summary.gating_evaluations, policy)
    yield from _list_test_reasons(summary)
    yield from _list_budget_reasons(summary, hard=True)


def list_warnings(
    summary: Summary, judgements: tuple[Judgement, ...], policy: GatePolicy
) -> Iterator[Reason]:
    """Yield the warnings of the summary, which do not gate."""
    yield from _list_finding_reasons(summary, blocking=False)
    for scenario, judgement in zip(summary.scenarios, judgements, strict=True):
        if judgement.gate == "advisory" and scenario.mode == "evaluation":
            yield from _list_evaluation_warnings(scenario, judgement, policy)
        elif judgement.gate == "advisory":
            yield from _list_scenario_reasons(scenario, judgement, policy)
        elif _is_left_to_suite(judgement):
            yield _describe_failing(scenario, judgement)
        elif judgement.status == "incomplete" and policy.allow_skipped:
            yield Reason(
                "incomplete", _describe_unjudged(scenario), scenario.scenario_id, scenario.agent
            )
    yield from list_manifest_reasons(summary, policy, gating=False)
    yield from _list_quarantine_warnings(summary)
    yield from _list_evidence_warnings(summary)
    yield from _list_unseen_warnings(summary)
    yield from _list_budget_reasons(summary, hard=False)


def _list_quarantine_warnings(summary: Summary) -> Iterator[Reason]:
    for scenario in summary.scenarios:
        waived = scenario.quarantine
        if waived is not None and waived.expired:
            message = (
                f"its quarantine ended on {waived.until}, so it gates again "
                f"(owner: {waived.owner}; reason: {waived.reason})"
            )
            yield Reason("quarantine", message, scenario.scenario_id, scenario.agent)


def _list_evidence_warnings(summary: Summary) -> Iterator[Reason]:
    for scenario in summary.scenarios:
        if not scenario.needs_evidence:
            message = 'it needs no evidence to pass: its test is marked evidence="none"'
            yield Reason("evidence", message, scenario.scenario_id, scenario.agent)


def _list_unseen_warnings(summary: Summary) -> Iterator[Reason]:
    unseen = sum(scenario.is_unseen for scenario in summary.scenarios)
    if unseen:
        yield Reason("unseen", describe_unseen(pluralize(unseen, "scenario")))


def _list_finding_reasons(summary: Summary, *, blocking: bool) -> Iterator[Reason]:
    for finding in summary.findings:
        if finding.blocking is blocking:
            yield Reason("finding", finding)


def _list_no_evidence_reasons(summary: Summary) -> Iterator[Reason]:
    """Yield a reason if no episode was judged: such a run proves nothing."""
    if summary.tally.judged:
        return
    if summary.shard is not None and summary.shard.empty and not summary.tally.total:
        return
    if summary.left_out and not summary.tally.total:
        return  # the finding about them decides
    if summary.expects_episodes or not summary.tests.tally.judged:
        counted = f"{pluralize(summary.tally.total, 'episode')} found, none passed or failed"
        yield Reason("no_evidence", f"no evidence: {counted}")


def _list_scenario_reasons(
    scenario: ScenarioSummary, judgement: Judgement, policy: GatePolicy
) -> Iterator[Reason]:
    tally = scenario.tally
    name, agent = scenario.scenario_id, scenario.agent
    if scenario.without_evidence:
        # These errors always fail: the policy's maximum error rate does not cover them.
        count = f"{scenario.without_evidence} of {tally.total} iterations"
        message = f"no evidence in {count}: {list_missing_parts(scenario.missing_evidence)}"
        yield Reason("evidence", message, name, agent)
    if judgement.status == "failing":
        yield _describe_failing(scenario, judgement)
    elif judgement.status == "errored":
        message = f"not judged: all {tally.ran} iterations ended in an error"
        yield Reason("scenario", message, name, agent)
    elif judgement.status == "skipped" and not policy.allow_skipped:
        yield Reason("skipped", "not judged: every iteration was skipped", name, agent)
    elif judgement.status == "incomplete" and not policy.allow_skipped:
        message = f"{_describe_unjudged(scenario)}; run them all, or set allow_skipped"
        yield Reason("incomplete", message, name, agent)


def _is_left_to_suite(judgement: Judgement) -> bool:
    """Return whether only the suite's required pass rate decides about a failing scenario."""
    return judgement.status == "failing" and judgement.suite_rate_applies


def _describe_failing(scenario: ScenarioSummary, judgement: Judgement) -> Reason:
    tally = scenario.tally
    message = f"{tally.passed} of {tally.judged} iterations pass, {_describe_need(judgement)}"
    return Reason("scenario", message, scenario.scenario_id, scenario.agent)


def sum_suite_rate_tallies(
    scenarios: Iterable[ScenarioSummary], judgements: Iterable[Judgement]
) -> OutcomeTally:
    """Add up the scenarios that count in the suite's required pass rate."""
    pairs = zip(scenarios, judgements, strict=True)
    return sum((s.rated for s, judged in pairs if judged.suite_rate_applies), OutcomeTally())


def _list_suite_rate_reasons(
    summary: Summary, judgements: tuple[Judgement, ...], policy: GatePolicy
) -> Iterator[Reason]:
    rate, tally = policy.suite_min_pass_rate, sum_suite_rate_tallies(summary.scenarios, judgements)
    if rate is not None and tally.passed < compute_exact_share(rate, tally.judged):
        counts = f"{tally.passed} of {tally.judged} iterations of the required scenarios pass"
        yield Reason("suite_pass_rate", f"{counts}, {rate * 100:.6g}% required")


def _describe_unjudged(scenario: ScenarioSummary) -> str:
    tally, unjudged = scenario.tally, scenario.unjudged_iterations
    if scenario.adaptive is not None and not unjudged:
        return f"its {tally.ran} adaptive iterations ended before they decided"
    total = tally.ran + unjudged
    counts = [f"{tally.skipped} skipped"] if tally.skipped else []
    counts += [f"{unjudged - tally.skipped} not run"] if unjudged > tally.skipped else []
    return f"{unjudged} of {total} iterations were not judged ({', '.join(counts)})"


def _describe_need(judgement: Judgement) -> str:
    if judgement.required_passes is not None:
        return f"{judgement.required_passes} required"
    return f"{judgement.required_pass_rate * 100:.6g}% required"


def _list_error_reasons(summary: Summary, policy: GatePolicy) -> Iterator[Reason]:
    gated = summary.gated
    if gated.error > compute_exact_share(policy.max_error_rate, gated.ran):
        allowed = f"{policy.max_error_rate:.1%} allowed"
        message = f"{gated.error} of {gated.ran} required episodes ended in an error, {allowed}"
        yield Reason("error_budget", message)


def _list_evaluation_warnings(
    scenario: ScenarioSummary, judgement: Judgement, policy: GatePolicy
) -> Iterator[Reason]:
    """Yield the results of an advisory evaluation."""
    if judgement.status != "failing":
        yield from _list_scenario_reasons(scenario, judgement, policy)
        return
    found = scenario.evaluations
    score = "" if found.mean_score is None else f", average score {found.mean_score:g}"
    message = f"{found.passed} of {found.conversations} conversations passed{score}"
    yield Reason("evaluation", message, scenario.scenario_id, scenario.agent)


def find_shortfalls(found: EvaluationTally, thresholds: Thresholds) -> Iterator[Shortfall]:
    """Yield the thresholds that the evaluations miss; missing measurements miss all of them."""
    rate, score = thresholds.min_pass_rate, thresholds.min_score
    if not thresholds.limit_evaluations:
        return
    if found.mean_score is None:
        yield "measurement"
        return
    if rate is not None and found.passed < compute_exact_share(rate, found.conversations):
        yield "pass_rate"
    if score is not None and found.mean_score < score:
        yield "score"


def _list_evaluation_reasons(found: EvaluationTally, policy: GatePolicy) -> Iterator[Reason]:
    rate, score = policy.eval_min_pass_rate, policy.eval_min_score
    total, errors = found.conversations, found.tally.error
    counts = f"{errors} errored, {found.tally.skipped} skipped"
    messages = {
        "measurement": f"no evaluation conversation was judged ({counts}), but a threshold is set",
        "pass_rate": f"{found.passed} of {total} evaluation conversations passed, "
        f"{(rate or 0) * 100:.6g} % required",
        "score": f"the evaluations' average score is {found.mean_score or 0:g}, "
        f"{score or 0:g} required",
    }
    for shortfall in find_shortfalls(found, Thresholds(rate, score)):
        yield Reason("evaluation", messages[shortfall])
    if found.raised > compute_exact_share(policy.max_error_rate, total):
        message = f"{found.raised} of {total} evaluation conversations ended in an error"
        yield Reason("evaluation", f"{message}, {policy.max_error_rate * 100:.6g} % allowed")


def _list_test_reasons(summary: Summary) -> Iterator[Reason]:
    tally = summary.tests.tally
    if tally.failed or tally.error:
        counts = f"{tally.failed} failed, {tally.error} errored"
        yield Reason("tests", f"{counts} of {tally.total} tests that are not episodes")


def _list_budget_reasons(summary: Summary, *, hard: bool) -> Iterator[Reason]:
    for scenario in summary.scenarios:
        for item in scenario.violations:
            # A budget of an advisory scenario never gates.
            gates = item.violation.hard and scenario.gate == "required"
            if gates is hard:
                message = _describe_violation(item.violation)
                yield Reason("budget", message, scenario.scenario_id, scenario.agent)
    for violation in summary.suite_violations:
        if violation.hard is hard:
            yield Reason("suite_budget", _describe_violation(violation))


def _describe_violation(violation: BudgetViolation) -> str:
    name = violation.budget
    if violation.measure:
        name = f"{name} {violation.measure}"
    if violation.observed is None:
        return f"{name}: not measured, limit {violation.limit:g}"
    return f"{name}: {violation.observed:g} over limit {violation.limit:g}"


_WHOLE_SUITE_ADVICE = (
    "a required check needs a full run: remove these options, or name what defines the suite in "
    "its settings (paths, pytest_args)"
)


def list_manifest_reasons(
    summary: Summary, policy: GatePolicy, *, gating: bool
) -> Iterator[Reason]:
    """Yield the reasons to fail the gate if `gating`, else the warnings."""
    if summary.restrictions and (policy.partial == "fail") is gating:
        yield Reason("partial", _describe_restriction(summary, policy))
    found = summary.known
    if found is None:
        return
    for missing in found.missing:
        if missing.gates is gating:
            kind: ReasonKind = "missing_cases" if missing.cases else "missing_scenario"
            yield Reason(kind, _describe_missing(missing, found), missing.scenario_id)
    for regated in found.regated:
        if (regated.gate == "advisory") is gating:
            known = "advisory" if regated.gate == "required" else "required"
            message = (
                f"it is {regated.gate} now, and {found.name}:{regated.line} knows it as {known}"
            )
            yield Reason("regated_scenario", f"{message}; {_UPDATE_ADVICE}", regated.scenario_id)
    if not gating:
        yield from _list_new_scenario_reasons(found)


_UPDATE_ADVICE = f"`{UPDATE_COMMAND}` updates it"


def _describe_restriction(summary: Summary, policy: GatePolicy) -> str:
    known = summary.known
    share = "" if known is None else f"; {known.compared} of {known.known} known scenarios compared"
    message = f"this run covered only part of the suite ({', '.join(summary.restrictions)}){share}"
    return f"{message}; {_WHOLE_SUITE_ADVICE}" if policy.partial == "fail" else message


def _describe_missing(missing: MissingScenario, found: KnownScenarios) -> str:
    if missing.moved_to is not None:
        return (
            f"{found.name}:{missing.line} knows it in {missing.file}, and its test is in "
            f"{missing.moved_to}; bring it back, or {_UPDATE_ADVICE}"
        )
    advice = f"bring it back, or remove it with `{UPDATE_COMMAND}`"
    if missing.cases:
        count = f"{pluralize(len(missing.cases), 'case')} of {found.name}:{missing.line}"
        return f"{count} did not run: {list_cases(missing.cases)}; {advice}"
    cause = {
        "removed": f": removed by {missing.detail or 'a hook'}",
        "file_skipped": f": its file was skipped ({missing.detail})",
        "unknown": "",
    }[missing.cause]
    return f"{found.name}:{missing.line} knows it, and it did not run{cause}; {advice}"


def _list_new_scenario_reasons(found: KnownScenarios) -> Iterator[Reason]:
    for renamed in found.renamed:
        message = f"{found.name}:{renamed.line} knows it as {renamed.former_id!r}; {_UPDATE_ADVICE}"
        yield Reason("renamed_scenario", message, renamed.scenario_id)
    for name in found.new:
        message = f"it is not in {found.name}; `{UPDATE_COMMAND}` adds it"
        yield Reason("new_scenario", message, name)
    for added in found.new_cases:
        count = f"{pluralize(len(added.cases), 'case')} not in {found.name}:{added.line}"
        message = f"{count}: {list_cases(added.cases)}; `{UPDATE_COMMAND}` adds it"
        yield Reason("new_cases", message, added.scenario_id)
