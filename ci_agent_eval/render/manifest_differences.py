"""Differences between the run and the scenario manifest, as rows of the report view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_agent_eval.analysis.known_scenarios import KnownScenarios, MissingScenario
from ci_agent_eval.contract.scenario_manifest import UPDATE_COMMAND
from ci_agent_eval.contract.wording import list_cases
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.links import NO_PLACE, Links, Place
from ci_agent_eval.render.numbers import count_noun, format_count


@dataclass(frozen=True, slots=True)
class ManifestDifference:
    """One difference between the run and the manifest."""

    scenario_id: str | None
    """Foreign text; None: it is about the run."""
    text: str
    """In our own words."""
    detail: str = ""
    """A text after it, which may hold foreign text."""
    gates: bool = False
    place: Place = NO_PLACE
    """Its line of the manifest."""


def build_manifest_differences(report: Report, links: Links) -> Sequence[ManifestDifference]:
    """Return the differences, the gating ones first."""
    rows = [*_list_restrictions(report)]
    if (found := report.summary.known) is not None:
        rows += _list_differences(found, links)
    return tuple(sorted(rows, key=lambda row: not row.gates))


def describe_update(report: Report) -> str:
    """Return the advice how to update the manifest; empty without a manifest."""
    found = report.summary.known
    return "" if found is None else f"`{UPDATE_COMMAND}` updates the manifest"


def _list_restrictions(report: Report) -> Iterator[ManifestDifference]:
    summary = report.summary
    if summary.restrictions:
        known = summary.known
        text = f"partial run ({describe_compared_share(known)})" if known else "partial run"
        gates = any(reason.kind == "partial" for reason in report.verdict.reasons)
        yield ManifestDifference(
            None, f"{text}, restricted by", ", ".join(summary.restrictions), gates=gates
        )


def describe_compared_share(found: KnownScenarios) -> str:
    """Count the known scenarios that were compared."""
    return f"{format_count(found.compared)} of {format_count(found.known)} known scenarios compared"


def _list_differences(found: KnownScenarios, links: Links) -> Iterator[ManifestDifference]:
    def place(line: int | None) -> Place:
        return links.place(found.name, line) if line else NO_PLACE

    for missing in found.missing:
        text, detail = _describe_missing(missing), _find_detail(missing)
        yield ManifestDifference(
            missing.scenario_id, text, detail, missing.gates, place(missing.line)
        )
    for regated in found.regated:
        gates = regated.gate == "advisory"
        text = "advisory now, known as required" if gates else "required now, known as advisory"
        yield ManifestDifference(regated.scenario_id, text, "", gates, place(regated.line))
    for renamed in found.renamed:
        former, where = renamed.former_id, place(renamed.line)
        yield ManifestDifference(renamed.scenario_id, "renamed, known as", former, place=where)
    for name in found.new:
        yield ManifestDifference(name, "new, not in the manifest")
    for added in found.new_cases:
        text = f"{count_noun(len(added.cases), 'case')} not in the manifest:"
        yield ManifestDifference(
            added.scenario_id, text, list_cases(added.cases), place=place(added.line)
        )


def _find_detail(missing: MissingScenario) -> str:
    return list_cases(missing.cases) or missing.moved_to or missing.detail or ""


def _describe_missing(missing: MissingScenario) -> str:
    note = ", in quarantine" if missing.in_quarantine else ""
    if missing.cases:
        return f"{count_noun(len(missing.cases), 'case')} did not run{note}:"
    if missing.moved_to is not None:
        return f"not in its known file{note}; its test is in"
    return f"did not run{note}{_CAUSES[missing.cause][missing.detail is not None]}"


_CAUSES = {
    "removed": (": a hook removed it", ": removed by"),
    "file_skipped": (": its file was skipped", ", its file was skipped:"),
    "unknown": ("", ""),
}
"""Why a scenario is missing, without a detail and before one."""
