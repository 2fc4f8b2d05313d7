"""The gate: a summary and a policy in, a verdict out. What did not prove itself does not pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from ci_agent_eval.acknowledgement import ACCEPTABLE, accepted, needless
from ci_agent_eval.comparison.model import Comparison, NoBaseline
from ci_agent_eval.comparison.remarks import Increases, Remark, RemarkKind, remarks
from ci_agent_eval.contract.episode import Gating
from ci_agent_eval.contract.measure import BudgetViolation
from ci_agent_eval.evaluations import EvaluationTally
from ci_agent_eval.summary import ScenarioSummary, Summary
from ci_agent_eval.waivers import Agreement

Conclusion = Literal["success", "failure"]

Status = Literal["passing", "failing", "errored", "skipped"]
"""`errored` and `skipped`: no iteration of the scenario was judged."""

Shortfall = Literal["measurement", "pass_rate", "score"]
"""What evaluations fall short of, where the suite has a threshold for them."""

ReasonKind = (
    Literal[
        "finding",
        "no_evidence",
        "scenario",
        "error_budget",
        "skipped",
        "tests",
        "budget",
        "suite_budget",
        "evaluation",
        "quarantine",
        "acknowledged",
    ]
    | RemarkKind
)


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """What a run must show for the gate to open."""

    min_pass_rate: float = 1.0
    """Required share of judged iterations that pass, 0 to 1; a scenario's own rate wins."""
    max_error_rate: float = 0.0
    """Share of the required episodes that ran which may end in an error, 0 to 1."""
    allow_skipped: bool = False
    """Whether a required scenario may be skipped in every iteration."""
    eval_min_pass_rate: float | None = None
    """Required share of all evaluation conversations that pass, 0 to 1; None: no threshold."""
    eval_min_score: float | None = None
    """Required average score of the evaluations, 0 to 1; None: no threshold."""
    regressions: Literal["fail", "warn"] = "fail"
    """Whether a required scenario may pass less often than in the baseline, or perhaps so."""
    max_cost_increase: float | None = None
    """Share by which the cost per episode may rise over the baseline's; None: by any."""
    max_latency_increase: float | None = None
    """The same of the p95 latency."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a verdict, or one warning beside it."""

    kind: ReasonKind
    message: str
    scenario_id: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """How one scenario stands against the pass rate it needs."""

    scenario_id: str
    gate: Gating
    status: Status
    required_pass_rate: float
    required_passes: int | None = None
    """Passes it needs, whatever the rate."""
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What the evaluations of the suite had to reach together; None: no threshold."""

    min_pass_rate: float | None = None
    min_score: float | None = None

    @property
    def are_set(self) -> bool:
        """Whether there is any."""
        return self.min_pass_rate is not None or self.min_score is not None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The conclusion, every reason against it, and what is worth saying beside it."""

    conclusion: Conclusion
    reasons: tuple[Reason, ...] = ()
    warnings: tuple[Reason, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    """One for each scenario, in the summary's order."""
    thresholds: Thresholds = Thresholds()
    increases: Increases = Increases()  # noqa: RUF009 - frozen
    """By how much cost and latency were allowed to rise."""
    acknowledged: tuple[Agreement, ...] = ()
    """What was accepted of what comparing may find."""


def decide(
    summary: Summary,
    policy: GatePolicy,
    comparison: Comparison | NoBaseline | None = None,
    acknowledged: tuple[Agreement, ...] = (),
) -> Verdict:
    """Judge a summary by a policy, and by what comparing it found; None: nothing was compared.

    What comparing found and is acknowledged does not gate.
    """
    judgements = tuple(_judge(scenario, policy) for scenario in summary.scenarios)
    increases = Increases(policy.max_cost_increase, policy.max_latency_increase)
    compared = tuple(_compared(comparison, judgements, policy, acknowledged))
    reasons = (
        *_reasons(summary, judgements, policy),
        *(reason for reason, gates in compared if gates),
    )
    return Verdict(
        conclusion="failure" if reasons else "success",
        reasons=reasons,
        warnings=(
            *_warnings(summary, judgements, policy),
            *(reason for reason, gates in compared if not gates),
        ),
        judgements=judgements,
        thresholds=Thresholds(policy.eval_min_pass_rate, policy.eval_min_score),
        increases=increases,
        acknowledged=acknowledged,
    )


def is_passing(scenario: ScenarioSummary, policy: GatePolicy) -> bool | None:
    """Say whether a scenario reaches the pass rate it needs; None: it was not judged."""
    status = _status(scenario, _required_rate(scenario, policy))
    return status == "passing" if status in {"passing", "failing"} else None


def required_share(scenario: ScenarioSummary, policy: GatePolicy) -> float:
    """Return the share of a scenario's iterations that must pass, to six decimals."""
    share = Fraction(str(_required_rate(scenario, policy)))
    if scenario.min_passes is not None and scenario.tally.total:
        share = max(share, Fraction(scenario.min_passes, scenario.tally.total))
    return round(float(min(share, Fraction(1))), 6)


def _compared(
    comparison: Comparison | NoBaseline | None,
    judgements: tuple[Judgement, ...],
    policy: GatePolicy,
    acknowledged: tuple[Agreement, ...],
) -> Iterator[tuple[Reason, bool]]:
    """Yield what comparing found, each with whether it gates."""
    if comparison is None:
        return
    told = {(j.scenario_id, j.agent): _tells(j.status, policy) for j in judgements}
    increases = Increases(policy.max_cost_increase, policy.max_latency_increase)
    found = tuple(remarks(comparison, increases))
    for remark in found:
        scenario = remark.scenario
        name = (None, None) if scenario is None else (scenario.scenario_id, scenario.agent)
        if scenario is None or remark.kind != told.get((scenario.scenario_id, scenario.agent)):
            yield _weighed(remark, name, policy, acknowledged)
    if isinstance(comparison, Comparison):
        acceptable = [r.scenario for r in found if r.scenario and r.kind in ACCEPTABLE]
        for message in needless(acceptable, acknowledged):
            yield Reason("acknowledged", message), False


def _tells(status: Status, policy: GatePolicy) -> RemarkKind | None:
    """Return the remark that a scenario's status makes needless: it says the same by itself."""
    if status == "failing":
        return "undecided"
    is_told = status == "errored" or (status == "skipped" and not policy.allow_skipped)
    return "not_judged" if is_told else None


def _weighed(
    remark: Remark,
    name: tuple[str | None, str | None],
    policy: GatePolicy,
    acknowledged: tuple[Agreement, ...],
) -> tuple[Reason, bool]:
    """Return a remark as a reason or a warning, with what was agreed about it."""
    gates, agreed = _gates(remark, policy), accepted(remark, acknowledged)
    if agreed is None:
        message = f"{remark.message}; {remark.advice}" if remark.advice else remark.message
        return Reason(remark.kind, message, *name), gates
    if agreed.holds:
        return Reason("acknowledged", agreed.message, *name), False
    return Reason(remark.kind, agreed.message, *name), gates


def _gates(remark: Remark, policy: GatePolicy) -> bool:
    """Say whether a remark is a reason, not a warning: of a scenario only where it is required.

    One of which less is required now was required in the base, and counts as such.
    """
    if remark.kind == "downgraded":
        return True
    is_required = remark.scenario is None or remark.scenario.required
    if remark.kind in {"regression", "undecided"}:
        return is_required and policy.regressions == "fail"
    return is_required and remark.kind in {"vanished", "increase"}


def _judge(scenario: ScenarioSummary, policy: GatePolicy) -> Judgement:
    required = _required_rate(scenario, policy)
    return Judgement(
        scenario.scenario_id,
        scenario.gate,
        _status(scenario, required),
        required,
        scenario.min_passes,
        scenario.agent,
    )


def _required_rate(scenario: ScenarioSummary, policy: GatePolicy) -> float:
    """Return the scenario's own rate; the stricter one where only some of its tests bring one."""
    own = scenario.min_pass_rate
    if own is None:
        return policy.min_pass_rate if scenario.policy_applies else 0.0
    return max(own, policy.min_pass_rate) if scenario.policy_applies else own


def _status(scenario: ScenarioSummary, required: float) -> Status:
    tally = scenario.tally
    if not tally.judged:
        return "errored" if tally.error else "skipped"
    enough = tally.passed >= (scenario.min_passes or 0)
    return "passing" if enough and tally.passed >= _share(required, tally.judged) else "failing"


def _share(rate: float, whole: int) -> Fraction:
    """Return a share exactly as it was written: 0.29 of 100 is 29, not 28.999999999999996."""
    return Fraction(str(rate)) * whole


def _reasons(
    summary: Summary, judgements: tuple[Judgement, ...], policy: GatePolicy
) -> Iterator[Reason]:
    yield from _finding_reasons(summary, blocking=True)
    yield from _no_evidence(summary)
    for scenario, judgement in zip(summary.scenarios, judgements, strict=True):
        if judgement.gate == "required":
            yield from _scenario_reasons(scenario, judgement, policy)
    yield from _error_reasons(summary, policy)
    yield from _evaluation_reasons(summary.gating_evaluations, policy)
    yield from _test_reasons(summary)
    yield from _budget_reasons(summary, hard=True)


def _warnings(
    summary: Summary, judgements: tuple[Judgement, ...], policy: GatePolicy
) -> Iterator[Reason]:
    yield from _finding_reasons(summary, blocking=False)
    for scenario, judgement in zip(summary.scenarios, judgements, strict=True):
        if judgement.gate == "advisory" and scenario.mode == "evaluation":
            yield from _evaluation_warnings(scenario, judgement, policy)
        elif judgement.gate == "advisory":
            yield from _scenario_reasons(scenario, judgement, policy)
    yield from _ended_quarantines(summary)
    yield from _budget_reasons(summary, hard=False)


def _ended_quarantines(summary: Summary) -> Iterator[Reason]:
    for scenario in summary.scenarios:
        agreed = scenario.quarantine
        if agreed is not None and agreed.expired:
            message = (
                f"its quarantine ended on {agreed.until}, so it gates again "
                f"(owner: {agreed.owner}; reason: {agreed.reason})"
            )
            yield Reason("quarantine", message, scenario.scenario_id, scenario.agent)


def _finding_reasons(summary: Summary, *, blocking: bool) -> Iterator[Reason]:
    for finding in summary.findings:
        if finding.blocking is blocking:
            where = f"{finding.where}: " if finding.where else ""
            yield Reason("finding", f"{where}{finding.message}")


def _no_evidence(summary: Summary) -> Iterator[Reason]:
    """Nothing judged is nothing proved, whatever else is green."""
    if summary.tally.judged:
        return
    if summary.shard is not None and summary.shard.empty and not summary.tally.total:
        return
    if summary.expects_episodes or not summary.tests.tally.judged:
        counted = f"{summary.tally.total} episodes found, none passed or failed"
        yield Reason("no_evidence", f"no evidence: {counted}")


def _scenario_reasons(
    scenario: ScenarioSummary, judgement: Judgement, policy: GatePolicy
) -> Iterator[Reason]:
    tally = scenario.tally
    name, agent = scenario.scenario_id, scenario.agent
    if judgement.status == "failing":
        needs = _needs(judgement)
        message = f"{tally.passed} of {tally.judged} iterations pass, {needs}"
        yield Reason("scenario", message, name, agent)
    elif judgement.status == "errored":
        message = f"not judged: all {tally.ran} iterations ended in an error"
        yield Reason("scenario", message, name, agent)
    elif judgement.status == "skipped" and not policy.allow_skipped:
        yield Reason("skipped", "not judged: every iteration was skipped", name, agent)


def _needs(judgement: Judgement) -> str:
    if judgement.required_passes is not None:
        return f"{judgement.required_passes} required"
    return f"{judgement.required_pass_rate * 100:.6g}% required"


def _error_reasons(summary: Summary, policy: GatePolicy) -> Iterator[Reason]:
    gated = summary.gated
    if gated.error > _share(policy.max_error_rate, gated.ran):
        allowed = f"{policy.max_error_rate:.1%} allowed"
        message = f"{gated.error} of {gated.ran} required episodes ended in an error, {allowed}"
        yield Reason("error_budget", message)


def _evaluation_warnings(
    scenario: ScenarioSummary, judgement: Judgement, policy: GatePolicy
) -> Iterator[Reason]:
    """Say of an evaluation what it measured: nothing was required of it."""
    if judgement.status != "failing":
        yield from _scenario_reasons(scenario, judgement, policy)
        return
    found = scenario.evaluations
    score = "" if found.mean_score is None else f", average score {found.mean_score:g}"
    message = f"{found.passed} of {found.conversations} conversations passed{score}"
    yield Reason("evaluation", message, scenario.scenario_id, scenario.agent)


def shortfalls(found: EvaluationTally, thresholds: Thresholds) -> Iterator[Shortfall]:
    """Yield what the evaluations fall short of; what was not measured is below any threshold."""
    rate, score = thresholds.min_pass_rate, thresholds.min_score
    if not thresholds.are_set:
        return
    if found.mean_score is None:
        yield "measurement"
        return
    if rate is not None and found.passed < _share(rate, found.conversations):
        yield "pass_rate"
    if score is not None and found.mean_score < score:
        yield "score"


def _evaluation_reasons(found: EvaluationTally, policy: GatePolicy) -> Iterator[Reason]:
    rate, score = policy.eval_min_pass_rate, policy.eval_min_score
    whole, errors = found.conversations, found.tally.error
    counts = f"{errors} errored, {found.tally.skipped} skipped"
    messages = {
        "measurement": f"no evaluation conversation was judged ({counts}), but a threshold is set",
        "pass_rate": f"{found.passed} of {whole} evaluation conversations passed, "
        f"{(rate or 0) * 100:.6g}% required",
        "score": f"the evaluations' average score is {found.mean_score or 0:g}, "
        f"{score or 0:g} required",
    }
    for shortfall in shortfalls(found, Thresholds(rate, score)):
        yield Reason("evaluation", messages[shortfall])
    # The rate counts an error as no pass; the average is only of those that are left.
    if score is not None and found.tally.judged and errors > _share(policy.max_error_rate, whole):
        message = (
            f"{errors} of {whole} evaluation conversations have no score: they ended in an error"
        )
        yield Reason("evaluation", f"{message}, {policy.max_error_rate:.1%} allowed")


def _test_reasons(summary: Summary) -> Iterator[Reason]:
    tally = summary.tests.tally
    if tally.failed or tally.error:
        counts = f"{tally.failed} failed, {tally.error} errored"
        yield Reason("tests", f"{counts} of {tally.total} tests that are no episodes")


def _budget_reasons(summary: Summary, *, hard: bool) -> Iterator[Reason]:
    for scenario in summary.scenarios:
        for item in scenario.violations:
            # A budget of a scenario that only informs never gates.
            gates = item.violation.hard and scenario.gate == "required"
            if gates is hard:
                message = _budget_message(item.violation)
                yield Reason("budget", message, scenario.scenario_id, scenario.agent)
    for violation in summary.suite_violations:
        if violation.hard is hard:
            yield Reason("suite_budget", _budget_message(violation))


def _budget_message(violation: BudgetViolation) -> str:
    name = violation.budget
    if violation.statistic:
        name = f"{name} {violation.statistic}"
    if violation.observed is None:
        return f"{name}: not measured, limit {violation.limit:g}"
    return f"{name}: {violation.observed:g} over limit {violation.limit:g}"
