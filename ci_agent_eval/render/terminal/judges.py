"""The report of `agent-eval judge`, as terminal text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci_agent_eval.analysis.judge_agreement import JudgeAgreement, JudgedCheck
from ci_agent_eval.render.escape import escape_terminal
from ci_agent_eval.render.numbers import count_noun, format_percent, format_score

MAX_ERRORS = 5
"""Errors of judges that are shown; further ones are counted."""
MAX_REASONS = 20
"""Reasons of the gate that are shown; further ones are counted."""


def render_judges(
    checks: Sequence[JudgedCheck], reasons: Sequence[str], errors: Sequence[str], transcripts: int
) -> str:
    """Return the figures of each assertion, and why the gate fails."""
    lines = [f"{count_noun(transcripts, 'transcript')} judged, no agent run", ""]
    for check in checks:
        lines += [*_list_check_lines(check), ""]
    if errors:
        lines.append(f"{count_noun(len(errors), 'transcript')} without a verdict:")
        lines += [*_list_first(errors, MAX_ERRORS), ""]
    lines.append(f"Gate: {'failed' if reasons else 'passed'}")
    lines += _list_first(reasons, MAX_REASONS)
    return "".join(f"{line}\n" for line in lines)


def _list_check_lines(check: JudgedCheck) -> Iterator[str]:
    transcripts = count_noun(check.transcripts, "transcript")
    scenarios = count_noun(check.scenarios, "scenario")
    model = "" if check.is_judged else ", without a model"
    yield f"{escape_terminal(check.name)} ({transcripts} of {scenarios}{model})"
    yield f"  passed  {check.passed} of {check.transcripts}; score {format_score(check.score)}"
    if check.agreement is not None:
        yield from _list_agreement_lines(check.agreement)


def _list_agreement_lines(found: JudgeAgreement) -> Iterator[str]:
    share = format_percent(found.agreed / found.labels)
    limits = f"{format_percent(found.low)} to {format_percent(found.high)}"
    kappa = (
        "no kappa, as all labels are the same"
        if found.kappa is None
        else f"kappa {format_score(found.kappa)}"
    )
    yield f"  labels  agreement {share} of {found.labels} (95 %: {limits}); {kappa}"
    if found.pass_labels:
        right = f"{found.judged_pass} of {found.pass_labels}"
        yield f"          labelled pass: the judge passes {right}"
    if found.fail_labels:
        right = f"{found.judged_fail} of {found.fail_labels}"
        yield f"          labelled fail: the judge fails {right}"


def _list_first(texts: Sequence[str], most: int) -> Iterator[str]:
    yield from (f"  {escape_terminal(text)}" for text in texts[:most])
    if len(texts) > most:
        yield f"  and {len(texts) - most} more"
