"""The reasons and warnings that come from the scenario manifest and a restricted run."""

from __future__ import annotations

from collections.abc import Iterator

from ci_agent_eval.analysis.known_scenarios import KnownScenarios, MissingScenario
from ci_agent_eval.analysis.summary import Summary
from ci_agent_eval.contract.scenario_manifest import UPDATE_COMMAND
from ci_agent_eval.contract.wording import list_cases, pluralize
from ci_agent_eval.gate.model import GatePolicy, Reason, ReasonKind

_WHOLE_SUITE_ADVICE = (
    "only a run of the whole suite is accepted here; leave this out, or name what defines the "
    "suite in its settings (paths, pytest_args)"
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
    message = f"the run was restricted on purpose ({', '.join(summary.restrictions)}){share}"
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
