"""The report of judges, as terminal text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ci_agent_eval.analysis.judges.agreement import CorrectedRate, JudgeCalibration, KappaEstimate
from ci_agent_eval.analysis.judges.judged_checks import JudgedCheckSummary
from ci_agent_eval.analysis.judges.position_bias import PositionBias
from ci_agent_eval.analysis.judges.variance import RateEstimate, ScoreInterval, VarianceEstimate
from ci_agent_eval.gate.judge_gate import (
    DoubtfulResults,
    JudgeGate,
    JudgeReason,
    LowJudgedScore,
    MissingVerdicts,
    NothingJudged,
    ReportReason,
    UnprovenJudge,
    UnprovenScore,
)
from ci_agent_eval.render.escape import escape_terminal
from ci_agent_eval.render.numbers import count_noun, format_p_value, format_percent, format_score
from ci_agent_eval.render.sentences import describe_reason

MAX_ERRORS = 5
"""Errors of judges that are shown; further ones are counted."""
MAX_REASONS = 20
"""Reasons of the gate that are shown; further ones are counted."""

_JUDGE_TWICE = "judge each transcript twice or more (--repeats)"
_RUN_TWICE = "it needs two episodes of a scenario, judged twice or more"
_MEASURES = {
    "score": "mean score",
    "pass_rate": "pass rate",
    "agreement": "agreement with the labels",
    "kappa": "kappa",
}


def render_judges(
    checks: Sequence[JudgedCheckSummary], gate: JudgeGate, errors: Sequence[str], transcripts: int
) -> str:
    """Return the figures of each judged assertion, and the decision of the gate."""
    lines = [f"{count_noun(transcripts, 'transcript')} judged, no agent run", ""]
    for check in checks:
        lines += [*_list_check_lines(check), ""]
    lines += _list_error_lines(errors)
    lines += _list_gate_lines(gate)
    return "".join(f"{line}\n" for line in lines)


def _list_check_lines(check: JudgedCheckSummary) -> Iterator[str]:
    transcripts = count_noun(check.transcripts, "transcript")
    scenarios = count_noun(check.scenarios, "scenario")
    times = f"judged {_format_times(check.repeats)}" if check.is_judged else "without a model"
    yield f"{escape_terminal(check.name)} ({transcripts} of {scenarios}, {times})"
    yield f"  score     {_format_interval(check.score)}"
    corrected = _describe_correction(check.corrected)
    yield f"  passed    {_format_rate_interval(check.pass_rate)}{corrected}"
    if not check.is_judged:
        return
    parts = check.components
    yield f"  judge     {_describe_variance(parts.judge, _JUDGE_TWICE)}"
    if parts.flips is not None:
        yield f"            two verdicts on one transcript differ in {_format_rate(parts.flips)}"
    yield f"  agent     {_describe_variance(parts.agent, _RUN_TWICE)}"
    yield from _list_label_lines(check.calibration)
    for judge, bias in check.position_bias.items():
        yield f"  position  {escape_terminal(judge)}: {_describe_bias(bias)}"


def _format_times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _format_interval(found: ScoreInterval) -> str:
    limits = f"{format_score(found.low)} to {format_score(found.high)}"
    return f"{format_score(found.mean)} (95 %: {limits}{_describe_share(found)})"


def _format_rate_interval(found: ScoreInterval) -> str:
    limits = f"{format_percent(found.low)} to {format_percent(found.high)}"
    return f"{format_percent(found.mean)} (95 %: {limits}{_describe_share(found)})"


def _describe_share(found: ScoreInterval) -> str:
    if found.judge_share is None:
        return ""
    return f"; {format_percent(found.judge_share)} of the variance is the judge's"


def _describe_correction(found: CorrectedRate | None) -> str:
    if found is None:
        return ""
    limits = f"{format_percent(found.low)} to {format_percent(found.high)}"
    return f"; people would pass {format_percent(found.rate)} ({limits})"


def _describe_variance(found: VarianceEstimate | None, remedy: str) -> str:
    if found is None:
        return f"variance not measured: {remedy}"
    deviation, low, high = (
        format_score(math.sqrt(one)) for one in (found.variance, found.low, found.high)
    )
    return f"standard deviation {deviation} (95 %: {low} to {high})"


def _format_rate(found: RateEstimate) -> str:
    limits = f"{format_percent(found.low)} to {format_percent(found.high)}"
    return f"{format_percent(found.rate)} of {found.count} (95 %: {limits})"


def _list_label_lines(found: JudgeCalibration | None) -> Iterator[str]:
    if found is None:
        return
    yield f"  labels    agreement {_format_rate(found.agreement)}; {_describe_kappa(found.kappa)}"
    if found.passing is not None:
        yield f"            labelled pass: the judge passes {_format_rate(found.passing)}"
    if found.failing is not None:
        yield f"            labelled fail: the judge fails {_format_rate(found.failing)}"


def _describe_kappa(found: KappaEstimate | None) -> str:
    if found is None:
        return "no kappa, as all labels are the same"
    limits = f"{format_score(found.low)} to {format_score(found.high)}"
    return f"kappa {format_score(found.kappa)} (95 %: {limits})"


def _describe_bias(found: PositionBias) -> str:
    share = f"the order decides {_format_rate(found.contradictions)} pairs"
    sides = f"for the first position {found.first}, for the second {found.second}"
    verdict = "position bias" if found.is_found else "no position bias found"
    return f"{share}; {sides}: {verdict} ({format_p_value(found.p_value)})"


def _list_error_lines(errors: Sequence[str]) -> list[str]:
    if not errors:
        return []
    shown = [f"  {escape_terminal(error)}" for error in errors[:MAX_ERRORS]]
    more = len(errors) - len(shown)
    rest = [f"  and {more} more"] if more else []
    return [f"{count_noun(len(errors), 'transcript')} without a verdict:", *shown, *rest, ""]


def _list_gate_lines(gate: JudgeGate) -> Iterator[str]:
    for warning in gate.warnings:
        yield f"Inconclusive: {_describe_unproven(warning)}"
    yield f"Gate: {'passed' if gate.passed else 'failed'}"
    yield from (f"  {_describe_reason(reason)}" for reason in gate.reasons[:MAX_REASONS])
    if len(gate.reasons) > MAX_REASONS:
        yield f"  and {len(gate.reasons) - MAX_REASONS} more"


def _describe_unproven(found: UnprovenScore) -> str:
    return (
        f"{_name_measure(found)} is between {format_score(found.low)} and "
        f"{format_score(found.high)}, {found.required:g} is required"
    )


def _describe_reason(reason: JudgeReason) -> str:
    match reason:
        case LowJudgedScore():
            found = f"is at most {format_score(reason.high)}, {reason.required:g} is required"
            return f"{_name_measure(reason)} {found}"
        case UnprovenJudge():
            return f"{_name_measure(reason)} {_describe_unproven_judge(reason)}"
        case MissingVerdicts():
            failed = count_noun(reason.failed, "transcript")
            ended = count_noun(reason.unjudged, "episode")
            return f"{failed} without a verdict, and {ended} that ended in an error"
        case NothingJudged():
            return "no assertion was judged by a model, so that nothing is proven"
        case DoubtfulResults():
            return f"the results are not whole: {escape_terminal('; '.join(reason.problems))}"
        case ReportReason():
            return escape_terminal(_describe_report_reason(reason))


def _describe_unproven_judge(found: UnprovenJudge) -> str:
    required = f"{found.required:g} is required"
    if found.missing == "all":
        return f"is not proven, {required}; name labels of this assertion with --labels"
    if found.missing is not None:
        return (
            f"is not proven, {required}; its labels have no {found.missing}, label transcripts "
            "of both kinds"
        )
    low = format_score(found.low or 0.0)
    return f"is only proven from {low} on, {required}; label more transcripts, or change the judge"


def _describe_report_reason(found: ReportReason) -> str:
    reason = found.reason
    name = "" if reason.scenario_id is None else f"{reason.scenario_id}: "
    agent = "" if reason.agent is None else f" (agent {reason.agent})"
    failed = f"; failed: {', '.join(found.failed_checks)}" if found.failed_checks else ""
    return f"{name}{describe_reason(reason)}{agent}{failed}"


def _name_measure(found: LowJudgedScore | UnprovenJudge | UnprovenScore) -> str:
    return f"{escape_terminal(found.check)}: {_MEASURES[found.measure]}"
