"""The verdict in one sentence, the same in every rendering; built from counts, never from text.

`docs/decisions/0055-comment-by-cause.md` explains the choices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ci_agent_eval.analysis.comparison.findings import MetricIncrease
from ci_agent_eval.analysis.comparison.model import Comparison, MetricChange, SuiteChange
from ci_agent_eval.analysis.failure_causes import CauseGroup
from ci_agent_eval.gate.failure_groups import (
    group_errors,
    group_failures,
    index_comparison,
    is_broken,
)
from ci_agent_eval.gate.model import Reason, ReasonKind, ScenarioStatus
from ci_agent_eval.gate.reasons import sum_suite_rate_tallies
from ci_agent_eval.gate.report import JudgedScenario, Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.findings import describe_findings
from ci_agent_eval.render.numbers import count_noun, format_count
from ci_agent_eval.render.phrases import ScenarioKey, get_key
from ci_agent_eval.render.sentences import describe_increase, describe_reason, describe_suite_change

AGENT_TITLE = "Agent evals"
TEST_TITLE = "Tests"
"""Title of a report without episodes, as of another tool's tests alone."""

MAX_LENGTH = 100
"""Characters of the sentence, if the title and the first clause leave room for it."""
MOST_CLAUSES = 2
MOST_NOTES = 3
"""Clauses of a passed run: the count, then notes."""
MOST_FIGURES = 2
LEAST_CHANGE = 0.05
"""Relative change of cost, tokens or latency that is mentioned."""


def get_title(report: Report) -> str:
    """Return the first words of the headline."""
    if report.title is not None:
        return report.title
    return TEST_TITLE if has_only_tests(report) else AGENT_TITLE


def has_only_tests(report: Report) -> bool:
    """Say whether the report holds only tests that are no episodes."""
    summary = report.summary
    return bool(summary.tests.tally.total) and not summary.scenarios


def render_headline(report: Report) -> str:
    """Return the verdict in one sentence, its most important reasons first."""
    head = f"{get_title(report)} {'passed' if report.passed else 'failed'}: "
    if report.passed:
        clauses, most, noun = list(_list_passes(report)), MOST_NOTES, "note"
    else:
        clauses, most, noun = list(_list_failures(report)), MOST_CLAUSES, "reason"
        clauses = clauses or [count_noun(len(report.verdict.reasons), "reason")]
    clauses = [*_describe_shard(report), *clauses]
    text = head + _join_clauses(clauses, most, noun, MAX_LENGTH - len(head))
    words = list(list_figure_words(report))[:MOST_FIGURES]
    while words and len(text) + len(figures := f"; {', '.join(words)}") > MAX_LENGTH:
        words.pop()
    return text + figures if words else text


def _join_clauses(clauses: Sequence[str], most: int, noun: str, room: int) -> str:
    """Join the first clauses that fit, at least one, and count the others."""
    text = "nothing to judge"
    for kept in range(min(most, len(clauses)), 0, -1):
        rest = len(clauses) - kept
        more = f" and {count_noun(rest, f'more {noun}')}" if rest else ""
        text = ", ".join(clauses[:kept]) + more
        if len(text) <= room:
            return text
    return text


def _describe_shard(report: Report) -> Iterator[str]:
    part = report.summary.shard
    if part is not None:
        name = f"shard {format_count(part.index)} of {format_count(part.count)}"
        yield f"{name} has nothing to run" if part.empty else name


def _list_failures(report: Report) -> Iterator[str]:
    yield from describe_findings(report, blocking=True)
    yield from _describe_no_evidence(report)
    yield from _count_without_evidence(report)
    yield from _describe_manifest(report.verdict.reasons, "")
    yield from _describe_errors(report)
    clauses = _ScenarioClauses(report)
    yield from _describe_scenarios(report, clauses)
    yield from _describe_missed_suite_rate(report)
    yield from _describe_failing_tests(report)
    yield from _describe_budgets(report, clauses)
    yield from _describe_suite(report.verdict.reasons, report)
    yield from _describe_baseline_rules(report.verdict.reasons)
    yield from _describe_thresholds(report)


def _list_passes(report: Report) -> Iterator[str]:
    yield from _describe_required(report)
    yield from _describe_tests(report)
    yield from _describe_evaluations(report)
    yield from _describe_suite_rate(report)
    yield from _describe_not_gating(report)


def _describe_no_evidence(report: Report) -> Iterator[str]:
    kinds = {finding.kind for finding in report.summary.findings if finding.blocking}
    if _has_reason(report, "no_evidence") and not kinds & {"no_results", "install_failed"}:
        total, tests = report.summary.tally.total, report.summary.tests.tally.total
        if total:
            yield f"none of {count_noun(total, 'episode')} was judged"
        else:
            yield f"none of {count_noun(tests, 'test')} ran" if tests else "no episode was found"


_KNOWN: tuple[tuple[ReasonKind, str, str], ...] = (
    ("missing_scenario", "known scenario did not run", "known scenarios did not run"),
    ("missing_cases", "known scenario lost cases", "known scenarios lost cases"),
    ("regated_scenario", "scenario gates otherwise", "scenarios gate otherwise"),
    ("renamed_scenario", "renamed scenario", "renamed scenarios"),
    ("new_scenario", "scenario not in the manifest", "scenarios not in the manifest"),
    ("new_cases", "scenario has new cases", "scenarios have new cases"),
)


def _describe_manifest(reasons: tuple[Reason, ...], note: str) -> Iterator[str]:
    """Say that the run is partial, and count how it differs from the scenario manifest."""
    kinds = Counter(reason.kind for reason in reasons)
    if kinds["partial"]:
        yield "a partial run" if note else "a partial run is not evidence"
    for kind, one, many in _KNOWN:
        if kinds[kind]:
            yield f"{count_noun(kinds[kind], one, many)}{note}"


def _describe_errors(report: Report) -> Iterator[str]:
    """Count the episodes that ended in an error; half of all or more for one reason say so."""
    if not _has_reason(report, "error_budget"):
        return
    total, groups = report.summary.tally.total, group_errors(report)
    most = max((group.iterations for group in groups), default=0)
    if most > 1 and most * 2 >= total:
        yield f"{format_count(most)} of {count_noun(total, 'episode')} ended in the same error"
    else:
        yield f"{count_noun(report.summary.gated.error, 'episode')} ended in an error"


class _ScenarioClauses:
    """Writes clauses of which the first names the number of all required scenarios."""

    def __init__(self, report: Report) -> None:
        self._total = len(report.required_scenarios)
        self._is_first = True
        self._groups = group_failures(report)
        self._changes = [set(change.scenarios) for change in report.instruction_changes]

    def write(
        self, keys: set[ScenarioKey], one: str, many: str, *, explained: bool = True
    ) -> Iterator[str]:
        """Yield `2 of 20 scenarios regressed, all for one reason`; nothing without scenarios.

        `explained` is whether failures are the reason.
        """
        if not keys:
            return
        verb = one if len(keys) == 1 else many
        of_total = f" of {count_noun(self._total, 'scenario')}" if self._is_first else ""
        self._is_first = False
        share = self._describe_share(keys) if explained else ""
        yield f"{format_count(len(keys))}{of_total} {verb}{share}"

    def _describe_share(self, keys: set[ScenarioKey]) -> str:
        """Say that one cause explains half of several scenarios or more."""
        sizes = [_count_members(group, keys) for group in self._groups]
        most = max((*sizes, *(len(keys & changed) for changed in self._changes)), default=0)
        if most < MOST_CLAUSES or most * 2 < len(keys):
            return ""
        return f", {'all' if most == len(keys) else format_count(most)} for one reason"


def _count_members(group: CauseGroup, keys: set[ScenarioKey]) -> int:
    return sum(get_key(one.scenario) in keys for one in group.scenarios)


def _describe_scenarios(report: Report, clauses: _ScenarioClauses) -> Iterator[str]:
    """Count the scenarios that regressed, that fail, or that were not judged."""
    compared = index_comparison(report)
    regressed = {
        (reason.scenario_id or "", reason.agent)
        for reason in report.verdict.reasons
        if reason.kind == "regression"
    }
    failing = {get_key(item.scenario) for item in report.required_scenarios if _fails_alone(item)}
    changes = {key: compared[key].change if key in compared else None for key in failing}
    rest = {key: change for key, change in changes.items() if key not in regressed}
    newly = {key for key, change in rest.items() if change == "newly_failing"}
    still = {key for key, change in rest.items() if change == "still_failing"}
    yield from clauses.write(regressed, "regressed", "regressed")
    yield from clauses.write(newly, "newly fails", "newly fail")
    yield from clauses.write(still, "still fails", "still fail")
    yield from clauses.write(set(rest) - newly - still, "fails", "fail")
    errors = _has_reason(report, "error_budget")
    for status, one, many in _NOT_JUDGED:
        keys = {
            get_key(item.scenario)
            for item in report.required_scenarios
            if item.judgement.status == status
        }
        if _has_reason(report, status) or (status == "errored" and not errors):
            yield from clauses.write(keys, one, many)


_NOT_JUDGED: tuple[tuple[ScenarioStatus, str, str], ...] = (
    ("errored", "was not judged", "were not judged"),
    ("skipped", "was skipped", "were skipped"),
    ("incomplete", "was not judged in every iteration", "were not judged in every iteration"),
)


def _fails_alone(item: JudgedScenario) -> bool:
    return item.judgement.fails_alone


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


def _describe_failing_tests(report: Report) -> Iterator[str]:
    tally = report.summary.tests.tally
    failed = tally.failed + tally.error
    if not failed:
        return
    share = f"{format_count(failed)} of {format_count(tally.total)}"
    if has_only_tests(report):
        yield share
    else:
        tests = "test" if tally.total == 1 else "tests"
        yield f"{share} {tests} {'fails' if failed == 1 else 'fail'}"


def _describe_budgets(report: Report, clauses: _ScenarioClauses) -> Iterator[str]:
    gating = [
        (get_key(summary), item.violation.observed is None)
        for summary, item in report.list_violations()
        if item.violation.hard and summary.gate == "required"
    ]
    over = {key for key, is_unmeasured in gating if not is_unmeasured}
    yield from clauses.write(over, "over budget", "over budget", explained=False)
    if unmeasured := sum(is_unmeasured for _, is_unmeasured in gating):
        yield f"{count_noun(unmeasured, 'budget')} not measured"
    suite = [one for one in report.summary.suite_violations if one.hard]
    if any(one.observed is not None for one in suite):
        yield "over the suite's budget"
    if unmeasured := sum(one.observed is None for one in suite):
        yield f"{count_noun(unmeasured, 'suite budget')} not measured"


def _describe_suite(reasons: Iterable[Reason], report: Report) -> Iterator[str]:
    """State how the suite as a whole became worse, unless scenarios that fail say it."""
    fails = any(reason.kind in {"scenario", "regression"} for reason in report.verdict.reasons)
    for reason in reasons:
        message = reason.message
        if isinstance(message, SuiteChange) and not (fails and message.measure == "pass_rate"):
            yield describe_suite_change(message)
        elif isinstance(message, MetricIncrease):
            yield describe_increase(message)
    rose = sum(1 for r in report.verdict.reasons if r.kind == "increase" and r.scenario_id)
    if rose:
        yield f"{count_noun(rose, 'scenario')} over the allowed increase"


def _describe_baseline_rules(reasons: Iterable[Reason]) -> Iterator[str]:
    kinds = Counter(reason.kind for reason in reasons)
    return _count_all(
        (kinds["vanished"], "scenario vanished", "scenarios vanished"),
        (kinds["vanished_cases"], "scenario lost cases", "scenarios lost cases"),
        (
            kinds["downgraded"],
            "scenario requires less than before",
            "scenarios require less than before",
        ),
    )


def _describe_thresholds(report: Report) -> Iterator[str]:
    """Yield the thresholds that the evaluations miss."""
    for reason in report.verdict.reasons:
        if reason.kind == "evaluation":
            yield describe_reason(reason)


def _describe_required(report: Report) -> Iterator[str]:
    required = report.required_scenarios
    statuses = _count_statuses(required)
    if required:
        yield f"{format_count(statuses['passing'])} of {count_noun(len(required), 'scenario')}"
    elif report.summary.tally.judged and not report.summary.evaluations.conversations:
        yield count_noun(report.summary.tally.judged, "episode")
    for status, words in (
        ("skipped", "skipped"),
        ("incomplete", "not judged in every iteration"),
        ("errored", "not judged"),
    ):
        if number := statuses[status]:  # type: ignore[index]  # a literal of the statuses
            yield f"{format_count(number)} {words}"


def _describe_tests(report: Report) -> Iterator[str]:
    tally = report.summary.tests.tally
    if tally.total:
        noun = "" if has_only_tests(report) else " test" if tally.total == 1 else " tests"
        yield f"{format_count(tally.passed)} of {format_count(tally.total)}{noun}"
        if tally.skipped:
            yield f"{format_count(tally.skipped)} skipped"


def _describe_evaluations(report: Report) -> Iterator[str]:
    found = report.summary.evaluations
    if found.mean_score is not None:
        passed = (
            f"{format_count(found.passed)} of {count_noun(found.conversations, 'conversation')}"
        )
        yield f"{passed} (average score {numbers.format_score(found.mean_score)})"


def _describe_not_gating(report: Report) -> Iterator[str]:
    """Say what does not pass and does not gate."""
    summary, advisory = report.summary, _count_statuses(report.advisory_scenarios)
    held = [item for item in report.quarantined_scenarios if item.scenario.in_quarantine]
    flaky = sum(1 for one in summary.scenarios if one.flaky) + len(summary.tests.flaky)
    yield from _count_all(
        (flaky, "flaky", "flaky"),
        (advisory["failing"], "advisory fails", "advisory fail"),
        (advisory["errored"], "advisory not judged", "advisory not judged"),
        (sum(1 for item in held if not item.is_passing), "quarantined", "quarantined"),
        (summary.tally.error, "episode ended in an error", "episodes ended in an error"),
    )
    yield from _describe_manifest(report.verdict.warnings, " (not gating)")
    unproven = sum(1 for item in report.judged_scenarios() if not item.scenario.needs_evidence)
    yield from _count_all(
        (unproven, "scenario needs no evidence", "scenarios need no evidence"),
        (_count_soft_overruns(report), "soft budget exceeded", "soft budgets exceeded"),
    )
    yield from _describe_drops(report.verdict.warnings)
    yield from describe_findings(report, blocking=False)


def _count_all(*counts: tuple[int, str, str]) -> Iterator[str]:
    """Yield each count that is not 0 with its words, for one and for several."""
    return (count_noun(number, one, many) for number, one, many in counts if number)


def _count_soft_overruns(report: Report) -> int:
    scenarios = sum(
        not (item.violation.hard and summary.gate == "required")
        for summary, item in report.list_violations()
    )
    return scenarios + sum(not violation.hard for violation in report.summary.suite_violations)


_WARNED: tuple[tuple[ReasonKind, str, str], ...] = (
    ("regression", "regressed (not gating)", "regressed (not gating)"),
    ("unconfirmed", "drop not confirmed today", "drops not confirmed today"),
    ("undecided", "likely passes less often", "likely pass less often"),
)


def _describe_drops(warnings: Iterable[Reason]) -> Iterator[str]:
    changes = [one.message for one in warnings if isinstance(one.message, SuiteChange)]
    yield from (f"{describe_suite_change(change)}, as the base does" for change in changes)
    kinds = Counter(one.kind for one in warnings if not isinstance(one.message, SuiteChange))
    yield from _count_all(*((kinds[kind], one, many) for kind, one, many in _WARNED))


def list_figure_words(report: Report) -> Iterator[str]:
    """Yield how cost and latency changed for certain: `40 % cheaper`, `51 % slower`.

    Nothing where many scenarios fail: a broken agent is cheap.
    """
    found = report.comparison
    if not isinstance(found, Comparison) or is_broken(report):
        return
    for change, less, more in (
        (found.cost_usd, "cheaper", "more expensive"),
        (found.p95_latency_ms, "faster", "slower"),
    ):
        if is_notable(change):
            share = (change.after or 0) / (change.before or 1) - 1
            if share + 1 >= numbers.TIMES_FROM:
                yield f"{numbers.format_factor(share + 1)} {more}"
            else:
                yield f"{abs(share) * 100:.0f} % {more if share > 0 else less}"


def is_notable(change: MetricChange) -> bool:
    """Say whether a metric changed for certain, and by enough to be mentioned."""
    if change.certainty != "certain" or not change.before or change.after is None:
        return False
    return abs(change.after / change.before - 1) >= LEAST_CHANGE


def _count_without_evidence(report: Report) -> Iterator[str]:
    number = sum(1 for item in report.required_scenarios if item.scenario.without_evidence)
    return _count_all((number, "scenario has no evidence", "scenarios have no evidence"))


def _count_statuses(items: tuple[JudgedScenario, ...]) -> Counter[ScenarioStatus]:
    return Counter(item.judgement.status for item in items)


def _has_reason(report: Report, kind: str) -> bool:
    return any(reason.kind == kind for reason in report.verdict.reasons)
