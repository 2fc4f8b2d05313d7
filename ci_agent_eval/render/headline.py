"""The verdict in one sentence, the same in every rendering; built from counts, never from text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import get_args

from ci_agent_eval.analysis.comparison.findings import ComparisonFindingKind
from ci_agent_eval.analysis.comparison.model import SuiteChange
from ci_agent_eval.analysis.evaluation_totals import EvaluationTally
from ci_agent_eval.contract.findings import (
    Finding,
    FindingKind,
    MissingShards,
    RepeatedShard,
    StoppedRun,
)
from ci_agent_eval.contract.measurement import BudgetViolation
from ci_agent_eval.gate import (
    Reason,
    ReasonKind,
    ScenarioStatus,
    find_shortfalls,
    sum_suite_rate_tallies,
)
from ci_agent_eval.gate.report import JudgedScenario, Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.findings import build_finding_rows
from ci_agent_eval.render.numbers import count_noun, format_count
from ci_agent_eval.render.sentences import SUITE_MEASURES, format_suite_mean

_FINDINGS: dict[FindingKind, tuple[str, str]] = {
    "no_results": ("no results were found", "no results were found"),
    "interrupted": ("the run was interrupted", "the run was interrupted"),
    "stopped": ("a suite budget stopped the run", "suite budgets stopped {} runs"),
    "collection_error": ("1 collection error", "{} collection errors"),
    "shards": ("the shards are not one whole run", "the shards are not one whole run"),
    "unreadable_file": ("1 result file cannot be read", "{} result files cannot be read"),
    "handover": ("1 remark on the hand-over", "{} remarks on the hand-over"),
    "disagreement": ("1 disagreement between files", "{} disagreements between files"),
    "declared_counts_differ": ("1 file misstates its counts", "{} files misstate their counts"),
    "duplicate": ("1 duplicate episode", "{} duplicate episodes"),
    "baseline": ("the baseline cannot be read", "the baseline cannot be read"),
    "repaired_file": ("1 result file was repaired", "{} result files were repaired"),
}
"""In the order of the sentence, the most important kind first."""

_NOT_PASSING: tuple[tuple[ScenarioStatus, str, str], ...] = (
    ("failing", "fails", "fail"),
    ("errored", "was not judged", "were not judged"),
    ("skipped", "was skipped", "were skipped"),
    ("incomplete", "was not judged in every iteration", "were not judged in every iteration"),
)


_ALLOWABLE: frozenset[ScenarioStatus] = frozenset({"skipped", "incomplete"})
"""Statuses that `allow_skipped` accepts."""


def render_headline(report: Report) -> str:
    """Return the verdict in one sentence that names every kind of reason for it."""
    parts = [
        *_describe_shard(report),
        *(_list_passes(report) if report.passed else _list_failures(report)),
    ]
    return f"Agent evals {'passed' if report.passed else 'failed'}: {', '.join(parts)}"


def _describe_shard(report: Report) -> Iterator[str]:
    part = report.summary.shard
    if part is not None:
        name = f"shard {format_count(part.index)} of {format_count(part.count)}"
        yield f"{name} has nothing to run" if part.empty else name


def _list_failures(report: Report) -> Iterator[str]:
    parts = [
        *_describe_findings(report, blocking=True),
        *_describe_no_evidence(report),
        *_describe_failing(report),
        *_describe_missed_suite_rate(report),
        *_describe_manifest(report.verdict.reasons, ""),
        *_describe_errors(report),
        *_count_without_evidence(report),
        *_describe_thresholds(report),
        *_describe_failing_tests(report),
        *_describe_budgets(report, gating=True),
        *_describe_comparison(report.verdict.reasons, ""),
    ]
    yield from parts or [count_noun(len(report.verdict.reasons), "reason")]


def _list_passes(report: Report) -> Iterator[str]:
    yield from _describe_required(report)
    yield from _describe_suite_rate(report)
    yield from _describe_episodes(report)
    yield from _describe_tests(report)
    yield from _describe_evaluations(report)
    yield from _describe_advisory(report)
    yield from _describe_quarantine(report)
    yield from _describe_manifest(report.verdict.warnings, " (not gating)")
    yield from _count_opted_out(report)
    yield from _describe_budgets(report, gating=False)
    yield from _describe_comparison(report.verdict.warnings, " (not gating)")
    yield from _describe_findings(report, blocking=False)


def _describe_findings(report: Report, *, blocking: bool) -> Iterator[str]:
    shown = build_finding_rows(report).shown
    found = [row.finding for row in shown if row.gates is blocking]
    kinds = Counter(finding.kind for finding in found)
    for kind, (one, many) in _FINDINGS.items():
        if kind == "shards" and kinds[kind]:
            yield _describe_broken_shards(found) if blocking else _count_run_again(kinds[kind])
        elif kind == "stopped" and kinds[kind] == 1:
            yield f"{one}{_count_left_out(found)}"
        elif kind == "interrupted" and kinds[kind] and report.summary.tally.total:
            finished = report.summary.tally.judged
            yield f"{one} ({count_noun(finished, 'episode')} judged)"
        elif kinds[kind]:
            yield one if kinds[kind] == 1 else many.format(format_count(kinds[kind]))


_MOST_NAMED = 5
"""Most missing shards that the sentence names."""


def _describe_broken_shards(found: Sequence[Finding]) -> str:
    """Name the missing or repeated shards, where nothing else is wrong with the shards."""
    messages = [finding.message for finding in found if finding.kind == "shards"]
    only = messages[0] if len(messages) == 1 else None
    if isinstance(only, RepeatedShard):
        shard = f"shard {format_count(only.index)} of {format_count(only.total)}"
        return f"{shard} is there {format_count(only.times)} times"
    if not isinstance(only, MissingShards):
        return _FINDINGS["shards"][0]
    number, whole = len(only.indexes), f"of {format_count(only.total)}"
    if number == 1:
        return f"shard {format_count(only.indexes[0])} {whole} is missing"
    if number > _MOST_NAMED:
        return f"{format_count(number)} {whole} shards are missing"
    return f"shards {', '.join(map(str, only.indexes))} {whole} are missing"


def _count_left_out(found: Sequence[Finding]) -> str:
    """Count the episodes that a stopped run did not run."""
    run = next(finding.message for finding in found if finding.kind == "stopped")
    if not isinstance(run, StoppedRun) or run.selected is None:
        return ""
    return f" ({format_count(run.left_out)} of {count_noun(run.selected, 'episode')} did not run)"


def _count_run_again(number: int) -> str:
    return f"{count_noun(number, 'shard was', 'shards were')} run again"


def _describe_no_evidence(report: Report) -> Iterator[str]:
    kinds = {finding.kind for finding in report.summary.findings if finding.blocking}
    if _has_reason(report, "no_evidence") and "no_results" not in kinds:
        total = report.summary.tally.total
        yield (
            f"none of {count_noun(total, 'episode')} was judged"
            if total
            else "no episode was found"
        )


def _describe_failing(report: Report) -> Iterator[str]:
    required = report.required_scenarios
    statuses = _count_statuses(required)
    statuses["failing"] = sum(1 for item in required if item.judgement.fails_alone)
    total = count_noun(len(required), "required scenario")
    of_total = f" of {total}"
    for status, verb, verbs in _NOT_PASSING:
        number = statuses[status]
        if number and (status not in _ALLOWABLE or _has_reason(report, status)):
            does = verb if number == 1 else verbs
            yield f"{format_count(number)}{of_total} {does}"
            of_total = ""


def _describe_missed_suite_rate(report: Report) -> Iterator[str]:
    if _has_reason(report, "suite_pass_rate"):
        yield from _describe_suite_rate(report)


def _describe_suite_rate(report: Report) -> Iterator[str]:
    """State the pass rate of the scenarios that do not fail the gate alone."""
    required = report.verdict.thresholds.suite_min_pass_rate
    tally = sum_suite_rate_tallies(report.summary.scenarios, report.verdict.judgements)
    if required is not None and tally.pass_rate is not None:
        passed = f"{format_count(tally.passed)} of {format_count(tally.judged)}"
        yield f"{passed} iterations pass ({numbers.format_percent(required)} required)"


_KNOWN: tuple[tuple[ReasonKind, str, str], ...] = (
    ("missing_scenario", "known scenario did not run", "known scenarios did not run"),
    ("regated_scenario", "scenario gates otherwise", "scenarios gate otherwise"),
    ("renamed_scenario", "renamed scenario", "renamed scenarios"),
    ("new_scenario", "scenario not in the manifest", "scenarios not in the manifest"),
)


def _describe_manifest(reasons: tuple[Reason, ...], note: str) -> Iterator[str]:
    """Say that the run is partial, and count how it differs from the scenario manifest."""
    kinds = Counter(reason.kind for reason in reasons)
    if kinds["partial"]:
        yield "a partial run" if note else "a partial run is no evidence"
    for kind, one, many in _KNOWN:
        if kinds[kind]:
            yield f"{count_noun(kinds[kind], one, many)}{note}"


def _describe_errors(report: Report) -> Iterator[str]:
    if _has_reason(report, "error_budget"):
        yield f"{count_noun(report.summary.gated.error, 'episode')} ended in an error"


def _describe_thresholds(report: Report) -> Iterator[str]:
    """Name the thresholds that the evaluations miss, from their figures."""
    reasons = [reason for reason in report.verdict.reasons if reason.kind == "evaluation"]
    found, thresholds = report.summary.gating_evaluations, report.verdict.thresholds
    missed = list(find_shortfalls(found, thresholds)) if reasons else []
    if "measurement" in missed:
        yield "no evaluation conversation was judged"
    if "pass_rate" in missed and thresholds.min_pass_rate is not None:
        rate = numbers.format_percent(thresholds.min_pass_rate)
        yield f"{_count_conversations(found)}, {rate} required"
    if "score" in missed and thresholds.min_score is not None:
        mean = numbers.format_score_below(found.mean_score or 0.0, thresholds.min_score)
        least = numbers.format_required_score(thresholds.min_score)
        yield f"the evaluations' average score is {mean}, {least} required"
    if len(reasons) > len(missed) and found.tally.error:
        yield f"{count_noun(found.tally.error, 'evaluation conversation')} ended in an error"


def _count_conversations(found: EvaluationTally) -> str:
    noun = count_noun(found.conversations, "evaluation conversation")
    return f"{format_count(found.passed)} of {noun} passed"


_COMPARED: tuple[tuple[ReasonKind, str, str], ...] = (
    ("vanished", "scenario vanished", "scenarios vanished"),
    ("downgraded", "scenario downgraded", "scenarios downgraded"),
    ("regression", "regression", "regressions"),
    ("unconfirmed", "drop that is not confirmed today", "drops that are not confirmed today"),
    ("undecided", "drop with too few iterations to tell", "drops with too few iterations to tell"),
    ("increase", "increase over what is allowed", "increases over what is allowed"),
    ("possible_increase", "possible increase over what is allowed", "possible increases"),
    (
        "scenario_increase",
        "certain increase of a scenario's cost or latency",
        "certain increases of scenarios' cost or latency",
    ),
    ("not_judged", "scenario not judged any more", "scenarios not judged any more"),
    ("fewer_iterations", "scenario of too few iterations", "scenarios of too few iterations"),
    ("flakier", "scenario that needs more retries", "scenarios that need more retries"),
)

_REMARKS = frozenset(get_args(ComparisonFindingKind))
_SAID_BELOW = frozenset({"not_comparable", "newly_over", "baseline"})
"""Kinds that are not in the sentence where they do not gate."""


def _describe_comparison(reasons: tuple[Reason, ...], note: str) -> Iterator[str]:
    """State how the suite as a whole fell, and count the other findings of the comparison."""
    for change in (r.message for r in reasons if isinstance(r.message, SuiteChange)):
        before, now = (format_suite_mean(change, mean) for mean in (change.before, change.after))
        again = "" if change.fell else ", as it does on the base today"
        yield f"{SUITE_MEASURES[change.measure]} fell from {before} to {now}{again}{note}"
    kinds = Counter(r.kind for r in reasons if not isinstance(r.message, SuiteChange))
    for kind, one, many in _COMPARED:
        if kinds[kind]:
            yield f"{count_noun(kinds[kind], one, many)}{note}"
    known = {kind for kind, _, _ in _COMPARED}
    for kind in sorted(_REMARKS & set(kinds) - known - (_SAID_BELOW if note else frozenset())):
        yield f"{count_noun(kinds[kind], kind.replace('_', ' ') + ' scenario')}{note}"


def _describe_evaluations(report: Report) -> Iterator[str]:
    found = report.summary.evaluations
    if found.mean_score is not None:
        mean = numbers.format_score(found.mean_score)
        yield f"{_count_conversations(found)} (average score {mean})"


def _describe_failing_tests(report: Report) -> Iterator[str]:
    tally = report.summary.tests.tally
    tests = count_noun(tally.total, "test")
    if tally.failed:
        yield f"{format_count(tally.failed)} of {tests} failed"
    if tally.error:
        yield f"{format_count(tally.error)} of {tests} ended in an error"


def _describe_budgets(report: Report, *, gating: bool) -> Iterator[str]:
    kind = "" if gating else "soft "
    suite = [v for v in report.summary.suite_violations if v.hard is gating]
    scenario = [
        item.violation
        for summary, item in report.list_violations()
        if (item.violation.hard and summary.gate == "required") is gating
    ]
    yield from _count_exceeded(scenario, f"{kind}budget")
    yield from _count_exceeded(suite, f"{kind}suite budget")


def _count_exceeded(violations: list[BudgetViolation], noun: str) -> Iterator[str]:
    unmeasured = sum(1 for violation in violations if violation.observed is None)
    if exceeded := len(violations) - unmeasured:
        yield f"{count_noun(exceeded, noun)} exceeded"
    if unmeasured:
        yield f"{count_noun(unmeasured, noun)} not measured"


def _describe_required(report: Report) -> Iterator[str]:
    statuses = _count_statuses(report.required_scenarios)
    total = len(report.required_scenarios)
    if total:
        yield f"{format_count(statuses['passing'])} of {count_noun(total, 'required scenario')}"
    if statuses["skipped"]:
        yield f"{format_count(statuses['skipped'])} skipped"
    if statuses["incomplete"]:
        yield f"{format_count(statuses['incomplete'])} not judged in every iteration"
    if statuses["errored"]:
        yield f"{format_count(statuses['errored'])} not judged"


def _describe_episodes(report: Report) -> Iterator[str]:
    tally, measured = report.summary.tally, report.summary.evaluations.tally
    if judged := tally.judged - measured.judged:
        yield count_noun(judged, "episode")
    if tally.error:
        yield f"{count_noun(tally.error, 'episode')} ended in an error"


def _describe_tests(report: Report) -> Iterator[str]:
    tally = report.summary.tests.tally
    if tally.total:
        skipped = f" ({format_count(tally.skipped)} skipped)" if tally.skipped else ""
        yield f"{format_count(tally.passed)} of {count_noun(tally.total, 'test')} passed{skipped}"


def _describe_advisory(report: Report) -> Iterator[str]:
    statuses = _count_statuses(report.advisory_scenarios)
    if statuses["failing"]:
        yield f"only advisory scenarios failed ({format_count(statuses['failing'])})"
    if statuses["errored"]:
        yield f"{count_noun(statuses['errored'], 'advisory scenario')} not judged"


def _describe_quarantine(report: Report) -> Iterator[str]:
    held = [item for item in report.quarantined_scenarios if item.scenario.in_quarantine]
    if failing := sum(1 for item in held if not item.is_passing):
        one, many = "scenario in quarantine does", "scenarios in quarantine do"
        yield f"{count_noun(failing, one, many)} not pass"


def _count_without_evidence(report: Report) -> Iterator[str]:
    if number := sum(1 for item in report.required_scenarios if item.scenario.without_evidence):
        yield f"{count_noun(number, 'scenario has', 'scenarios have')} no evidence"


def _count_opted_out(report: Report) -> Iterator[str]:
    if number := sum(1 for item in report.judged_scenarios() if not item.scenario.needs_evidence):
        yield f"{count_noun(number, 'scenario needs', 'scenarios need')} no evidence"


def _count_statuses(items: tuple[JudgedScenario, ...]) -> Counter[ScenarioStatus]:
    return Counter(item.judgement.status for item in items)


def _has_reason(report: Report, kind: str) -> bool:
    return any(reason.kind == kind for reason in report.verdict.reasons)
