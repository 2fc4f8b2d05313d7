"""Apply waivers, which keep findings from gating until they expire. Pure.

A quarantined scenario still runs, is reported and has a cost. Comparison findings of an
acknowledged scenario are warnings.
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
    {
        "regression",
        "undecided",
        "vanished",
        "vanished_cases",
        "downgraded",
        "increase",
        "scenario_increase",
    }
)
"""The findings that may be acknowledged: only those that need a baseline."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """The acknowledgement of a comparison finding."""

    note: str
    """Its reason and its expiry date."""
    is_in_force: bool
    """Whether the acknowledgement is in force; False: it has expired."""


def find_acknowledgement(
    finding: ComparisonFinding, waivers: Sequence[WaiverStatus]
) -> Acknowledgement | None:
    """Return the acknowledgement of a finding; None: it has none."""
    scenario = finding.scenario
    if scenario is None or finding.kind not in ACKNOWLEDGEABLE:
        return None
    found = find_waiver(waivers, scenario.scenario_id, scenario.agent)
    if found is None:
        return None
    if found.expired:
        note = f"it was acknowledged until {found.until}, which is over ({found.reason})"
        return Acknowledgement(note, is_in_force=False)
    note = f"acknowledged: {found.reason}, until {found.until}"
    return Acknowledgement(note, is_in_force=True)


def find_needless_waivers(
    compared: Collection[ScenarioComparison], waivers: Sequence[WaiverStatus]
) -> Iterator[str]:
    """Yield a sentence for each acknowledgement that matches no comparison finding."""
    for waived in _find_unmatched_waivers(compared, waivers):
        yield f"acknowledgement of {waived}: comparing found nothing of it to accept; take it out"


def apply_quarantine(summary: Summary, waivers: Sequence[WaiverStatus]) -> Summary:
    """Return the summary with its quarantined scenarios made advisory.

    A scenario with an expired quarantine keeps its gate and its entry. An entry that matches
    no scenario is a finding, except in a shard: another shard may have the scenario.
    """
    if not waivers:
        return summary
    scenarios = tuple(_apply_to_scenario(scenario, waivers) for scenario in summary.scenarios)
    gated = sum((s.tally for s in scenarios if s.gate == "required"), OutcomeTally())
    without_scenario = (
        () if summary.shard or not scenarios else find_unused_quarantines(summary, waivers)
    )
    findings = tuple(sorted({*summary.findings, *without_scenario}))
    return replace(summary, scenarios=scenarios, gated=gated, findings=findings)


def _apply_to_scenario(
    scenario: ScenarioSummary, waivers: Sequence[WaiverStatus]
) -> ScenarioSummary:
    found = find_waiver(waivers, scenario.scenario_id, scenario.agent)
    if found is None:
        return scenario
    gate = scenario.gate if found.expired else "advisory"
    return scenario._replace(gate=gate, quarantine=found)


def find_unused_quarantines(summary: Summary, waivers: Sequence[WaiverStatus]) -> Iterator[Finding]:
    """Yield a finding for each quarantine entry that matches no scenario of the run."""
    for waived in _find_unmatched_waivers(summary.scenarios, waivers):
        message = (
            f"quarantine of {waived}: no scenario of this run is meant by it; "
            "correct it, or take it out"
        )
        yield Finding("unused_entry", "[[quarantine]]", message, blocking=False)


def _find_unmatched_waivers(
    scenarios: Iterable[ScenarioComparison | ScenarioSummary], waivers: Sequence[WaiverStatus]
) -> Iterator[str]:
    """Yield the scenario and agent of each waiver that covers none of the scenarios."""
    names = [(scenario.scenario_id, scenario.agent) for scenario in scenarios]
    for one in waivers:
        if not any(one.covers(*name) for name in names):
            agent = "" if one.agent is None else f" by agent {one.agent!r}"
            yield f"{one.scenario!r}{agent}"
