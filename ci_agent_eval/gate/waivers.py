"""Quarantine and acknowledgement: what a team accepts does not gate until it expires. Pure.

A quarantined scenario runs, is reported and costs. What comparing finds of an acknowledged
scenario is a warning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ci_agent_eval.analysis.comparison.findings import ComparisonFinding, ComparisonFindingKind
from ci_agent_eval.analysis.comparison.model import ScenarioComparison
from ci_agent_eval.analysis.loaded_results import OutcomeTally
from ci_agent_eval.analysis.summary import ScenarioSummary, Summary
from ci_agent_eval.analysis.waivers import WaiverStatus, find_waiver
from ci_agent_eval.contract.findings import Finding

ACKNOWLEDGEABLE: frozenset[ComparisonFindingKind] = frozenset(
    {"regression", "undecided", "vanished", "downgraded"}
)
"""What may be acknowledged of a scenario: nothing that it shows without a baseline."""


@dataclass(frozen=True, slots=True)
class AcknowledgedFinding:
    """What an acknowledgement does to a remark."""

    message: str
    """The remark with what was agreed about it."""
    holds: bool
    """Whether the remark does not gate; False: the day is over."""


def find_acknowledgement(
    remark: ComparisonFinding, agreed: Sequence[WaiverStatus]
) -> AcknowledgedFinding | None:
    """Return what was agreed about a remark; None where nothing was."""
    scenario = remark.scenario
    if scenario is None or remark.kind not in ACKNOWLEDGEABLE:
        return None
    found = find_waiver(agreed, scenario.scenario_id, scenario.agent)
    if found is None:
        return None
    if found.expired:
        ended = f"it was acknowledged until {found.until}, which is over ({found.reason})"
        return AcknowledgedFinding(f"{remark.message}; {ended}", holds=False)
    told = f"acknowledged: {found.reason}, until {found.until}"
    return AcknowledgedFinding(f"{remark.message}; {told}", holds=True)


def find_needless_acknowledgements(
    remarked: Collection[ScenarioComparison], agreed: Sequence[WaiverStatus]
) -> Iterator[str]:
    """Yield a sentence for each acknowledgement of nothing that comparing found."""
    for waived in _find_uncovering(remarked, agreed):
        yield f"acknowledgement of {waived}: comparing found nothing of it to accept; take it out"


def apply_quarantine(summary: Summary, agreed: Sequence[WaiverStatus]) -> Summary:
    """Return the summary with its quarantined scenarios only informing.

    One whose quarantine is over keeps its gate, and what was agreed about it. An agreement
    about nothing is a finding, but in a part of a suite, where the others may have it.
    """
    if not agreed:
        return summary
    scenarios = tuple(_apply_to_scenario(scenario, agreed) for scenario in summary.scenarios)
    gated = sum((s.tally for s in scenarios if s.gate == "required"), OutcomeTally())
    about_nothing = (
        () if summary.shard or not scenarios else find_unused_quarantines(summary, agreed)
    )
    findings = tuple(sorted({*summary.findings, *about_nothing}))
    return replace(summary, scenarios=scenarios, gated=gated, findings=findings)


def _apply_to_scenario(
    scenario: ScenarioSummary, agreed: Sequence[WaiverStatus]
) -> ScenarioSummary:
    found = find_waiver(agreed, scenario.scenario_id, scenario.agent)
    if found is None:
        return scenario
    gate = scenario.gate if found.expired else "advisory"
    return replace(scenario, gate=gate, quarantine=found)


def find_unused_quarantines(summary: Summary, agreed: Sequence[WaiverStatus]) -> Iterator[Finding]:
    """Yield a finding for each quarantine that no scenario of the run is in."""
    for waived in _find_uncovering(summary.scenarios, agreed):
        message = (
            f"quarantine of {waived}: no scenario of this run is meant by it; "
            "correct it, or take it out"
        )
        yield Finding("unused_entry", "[[quarantine]]", message, blocking=False)


def _find_uncovering(
    scenarios: Iterable[ScenarioComparison | ScenarioSummary], agreed: Sequence[WaiverStatus]
) -> Iterator[str]:
    """Yield the names in each waiver that covers none of the scenarios."""
    names = [(scenario.scenario_id, scenario.agent) for scenario in scenarios]
    for one in agreed:
        if not any(one.covers(*name) for name in names):
            agent = "" if one.agent is None else f" by agent {one.agent!r}"
            yield f"{one.scenario!r}{agent}"
