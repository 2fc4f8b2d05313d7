"""`verdict.json`: the whole report as canonical JSON, and back.

Its first level is for consumers: `commit`, `conclusion`, `headline`, `counts`, and `lists` of
flaky, quarantined and acknowledged scenarios; `summary`, `verdict` and `comparison` hold the rest.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Annotated, Any, get_args

from pydantic import ConfigDict, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from ci_agent_eval.analysis.summary import ScenarioSummary, Summary
from ci_agent_eval.contract.base import ReportTitle
from ci_agent_eval.contract.findings import Finding
from ci_agent_eval.errors import InputError
from ci_agent_eval.gate.decision import decide_verdict
from ci_agent_eval.gate.model import GatePolicy, Judgement, Reason, ScenarioStatus, Thresholds
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.escape import visible_line
from ci_agent_eval.render.headline import render_headline
from ci_agent_eval.render.sentences import describe_finding, describe_reason

VERDICT_NAME = "verdict.json"

_Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]


@dataclass(frozen=True, slots=True)
class _CheckedReport(Report):
    """A report in the file, where foreign programs may write commit and title."""

    commit: _Commit | None = None
    title: ReportTitle | None = None


def render_verdict(report: Report) -> str:
    """Return `verdict.json`: sorted keys, two spaces, a newline at the end."""
    document = {
        **_dump_value(report),
        "conclusion": report.verdict.conclusion,
        "headline": render_headline(report),
        "counts": _count_items(report),
        "lists": _build_lists(report),
    }
    document["summary"]["findings"] = list(map(_dump_finding, report.summary.findings))
    for name in ("reasons", "warnings"):
        reasons: tuple[Reason, ...] = getattr(report.verdict, name)
        document["verdict"][name] = list(map(_dump_reason, reasons))
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _dump_value(value: Any) -> Any:
    """Return a value as JSON; named tuples and dataclasses are objects."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _dump_value(getattr(value, one.name)) for one in fields(value)}
    if hasattr(value, "_asdict"):
        return {name: _dump_value(part) for name, part in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_dump_value(item) for item in value]
    return to_jsonable_python(value)


def _dump_finding(finding: Finding) -> dict[str, Any]:
    return _dump_with_data(finding, describe_finding(finding))


def _dump_reason(reason: Reason) -> dict[str, Any]:
    return _dump_with_data(reason, describe_reason(reason))


def _dump_with_data(one: Finding | Reason, sentence: str) -> dict[str, Any]:
    """Return the fields with the sentence, and the data behind it if there is any."""
    written = _dump_value(one)
    data = {} if isinstance(one.message, str) else {"data": written["message"]}
    return {**written, "message": sentence, **data}


def _count_items(report: Report) -> dict[str, Any]:
    statuses = Counter(item.judgement.status for item in report.judged_scenarios())
    return {
        "episodes": asdict(report.summary.tally),
        "evaluations": asdict(report.summary.evaluations.tally),
        "tests": asdict(report.summary.tests.tally),
        "scenarios": {status: statuses[status] for status in get_args(ScenarioStatus)},
        "budget_violations": sum(1 for _ in report.list_violations())
        + len(report.summary.suite_violations),
        "findings": len(report.summary.findings),
    }


def _build_lists(report: Report) -> dict[str, Any]:
    """Return the flaky, quarantined and acknowledged scenarios."""
    accepted = [r for r in report.verdict.warnings if r.kind == "acknowledged" and r.scenario_id]
    return {
        "flaky": [
            {"scenario_id": s.scenario_id, "agent": s.agent, "iterations": s.flaky}
            for s in report.summary.scenarios
            if s.flaky
        ]
        + [{"test": title} for title in report.summary.tests.flaky],
        "quarantined": [
            {
                "scenario_id": item.scenario.scenario_id,
                "agent": item.scenario.agent,
                "status": item.judgement.status,
                "owner": agreed.owner,
                "reason": agreed.reason,
                "until": str(agreed.until),
                "expired": agreed.expired,
            }
            for item in report.quarantined_scenarios
            if (agreed := item.scenario.quarantine)
        ],
        "acknowledged": [
            {"scenario_id": r.scenario_id, "agent": r.agent, "message": describe_reason(r)}
            for r in accepted
        ],
    }


def parse_verdict(text: str | bytes, *, name: str = VERDICT_NAME) -> Report:
    """Read a `verdict.json` back.

    Raises InputError, naming the line or the key, if it is no report of this version, if its
    judgements are not those of its scenarios, or if its results contradict a claimed success.
    """
    try:
        document = json.loads(text)
        conclusion = _restore_data(document) if isinstance(document, dict) else None
        # Numbers and lists are as strict in JSON only.
        (checked,) = _build_adapter().validate_json(json.dumps([document]), strict=True)
    except ValidationError as error:
        raise InputError(_describe_error(error, name)) from None
    except (ValueError, RecursionError) as error:
        raise InputError(_add_advice(f"{name}: Invalid JSON: {error}")) from None
    report = Report(*(getattr(checked, one.name) for one in fields(Report)))
    if conclusion != report.verdict.conclusion:
        raise InputError(_add_advice(f"{name}: conclusion differs from the verdict's"))
    for problem in find_contradictions(report):
        raise InputError(_add_advice(f"{name}: {problem}"))
    return report


def _restore_data(document: dict[str, Any]) -> Any:
    """Remove what the file repeats for consumers, and return its conclusion."""
    for name in ("headline", "counts", "lists"):
        document.pop(name, None)
    for part, name in (("summary", "findings"), ("verdict", "reasons"), ("verdict", "warnings")):
        found = document.get(part)
        for one in found.get(name, ()) if isinstance(found, dict) else ():
            if isinstance(one, dict) and "data" in one:
                one["message"] = one.pop("data")
    document.setdefault("schema_version", None)  # the model has a default, files have none
    return document.pop("conclusion", None)


@cache
def _build_adapter() -> TypeAdapter[tuple[_CheckedReport]]:
    # Only a type without a config takes one and passes it on to the dataclasses.
    config = ConfigDict(extra="forbid", allow_inf_nan=False)
    return TypeAdapter(tuple[_CheckedReport], config=config)


def _describe_error(error: ValidationError, name: str) -> str:
    first, *others = error.errors(include_url=False, include_input=False)
    key = ".".join(str(part) for part in first["loc"][1:])
    where = f"{name}, key {key}" if key else name
    more = f" (and {len(others)} more)" if others else ""
    return _add_advice(f"{where}: {first['msg']}{more}")


def _add_advice(problem: str) -> str:
    return f"{problem}; write it anew with `agent-eval report`"


_MILDEST = GatePolicy(min_pass_rate=0.0, max_error_rate=1.0, allow_skipped=True, regressions="warn")
"""The mildest policy; the real one is not in the file."""

_SHOWN = 200
"""Most characters of a foreign text in a message."""


def find_contradictions(report: Report) -> Iterator[str]:
    """Yield a sentence for each contradiction in a report; our own reports have none."""
    verdict, summary = report.verdict, report.summary
    if report.passed is bool(verdict.reasons):
        yield "the conclusion contradicts the reasons"
    scenarios = [(scenario.scenario_id, scenario.agent) for scenario in summary.scenarios]
    if scenarios != [(judged.scenario_id, judged.agent) for judged in verdict.judgements]:
        yield "the judgements do not belong to its scenarios"
        return
    yield from _find_misjudged(report)
    if report.passed:
        yield from (f"it claims success, but {why}" for why in _find_gate_reasons(report))


def _find_misjudged(report: Report) -> Iterator[str]:
    for item in report.judged_scenarios():
        again = _judge_again(item.scenario, item.judgement, report.verdict.thresholds)
        if again != item.judgement:
            name = visible_line(item.scenario.scenario_id, _SHOWN)
            yield f"the judgement of scenario {name} contradicts its iterations"


def _judge_again(
    scenario: ScenarioSummary, judgement: Judgement, thresholds: Thresholds
) -> Judgement:
    """Judge a scenario by the pass rate that its judgement names."""
    policy = GatePolicy(
        min_pass_rate=judgement.required_pass_rate,
        suite_min_pass_rate=thresholds.suite_min_pass_rate,
    )
    (judged,) = decide_verdict(Summary(scenarios=(scenario,)), policy).judgements
    return judged


def _find_gate_reasons(report: Report) -> Iterator[str]:
    """Yield the reasons to fail that hold under every policy."""
    for item in report.required_scenarios:
        if item.judgement.fails_alone or item.judgement.status == "errored":
            name = visible_line(item.scenario.scenario_id, _SHOWN)
            yield f"required scenario {name} is {item.judgement.status}"
    policy = replace(
        _MILDEST,
        suite_min_pass_rate=report.verdict.thresholds.suite_min_pass_rate,
        eval_min_pass_rate=report.verdict.thresholds.min_pass_rate,
        eval_min_score=report.verdict.thresholds.min_score,
        increases=report.verdict.increases,
    )
    summary, acknowledged = report.summary, report.verdict.acknowledged
    for reason in decide_verdict(summary, policy, report.comparison, acknowledged).reasons:
        yield visible_line(describe_reason(reason), _SHOWN)
