"""Quarantine: a scenario runs, is reported and costs, and does not gate until a day. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ci_agent_eval.analysis.loaded_results import Tally
from ci_agent_eval.analysis.summary import ScenarioSummary, Summary
from ci_agent_eval.analysis.waivers import Agreement, covering
from ci_agent_eval.contract.findings import Finding


def with_quarantine(summary: Summary, agreed: Sequence[Agreement]) -> Summary:
    """Return the summary with its quarantined scenarios only informing.

    One whose quarantine is over keeps its gate, and what was agreed about it. An agreement
    about nothing is a finding, but in a part of a suite, where the others may have it.
    """
    if not agreed:
        return summary
    scenarios = tuple(_quarantined(scenario, agreed) for scenario in summary.scenarios)
    gated = sum((s.tally for s in scenarios if s.gate == "required"), Tally())
    about_nothing = () if summary.shard or not scenarios else unused(summary, agreed)
    findings = tuple(sorted({*summary.findings, *about_nothing}))
    return replace(summary, scenarios=scenarios, gated=gated, findings=findings)


def _quarantined(scenario: ScenarioSummary, agreed: Sequence[Agreement]) -> ScenarioSummary:
    found = covering(agreed, scenario.scenario_id, scenario.agent)
    if found is None:
        return scenario
    gate = scenario.gate if found.expired else "advisory"
    return replace(scenario, gate=gate, quarantine=found)


def unused(summary: Summary, agreed: Sequence[Agreement]) -> Iterator[Finding]:
    """Yield a finding for each quarantine that no scenario of the run is in."""
    names = [(scenario.scenario_id, scenario.agent) for scenario in summary.scenarios]
    for one in agreed:
        if not any(one.covers(*name) for name in names):
            agent = "" if one.agent is None else f" by agent {one.agent!r}"
            message = (
                f"quarantine of {one.scenario!r}{agent}: no scenario of this run is meant by it; "
                "correct it, or take it out"
            )
            yield Finding("unused_entry", "[[quarantine]]", message, blocking=False)
