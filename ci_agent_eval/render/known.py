"""How a run stands against the scenario manifest, before it is escaped for one rendering."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_agent_eval.analysis.known_scenarios import KnownScenarios, MissingScenario
from ci_agent_eval.contract.scenario_manifest import UPDATE_COMMAND
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.numbers import count


@dataclass(frozen=True, slots=True)
class KnownRow:
    """One difference between the run and the manifest."""

    scenario_id: str | None
    """Foreign text; None: it is about the run."""
    what: str
    """In our own words."""
    detail: str = ""
    """What is said besides, which may hold foreign text."""
    line: int | None = None
    """1-based line of the manifest."""
    gates: bool = False


def known_rows(report: Report) -> Sequence[KnownRow]:
    """Return the differences, what gates first."""
    rows = [*_partial(report)]
    if (found := report.summary.known) is not None:
        rows += _rows(found)
    return sorted(rows, key=lambda row: not row.gates)


def is_gating(rows: Sequence[KnownRow]) -> bool:
    """Say whether the gate fails by any of the differences."""
    return any(row.gates for row in rows)


def known_advice(report: Report) -> str:
    """Say how the manifest is updated; nothing where there is none."""
    found = report.summary.known
    return "" if found is None else f"`{UPDATE_COMMAND}` updates the manifest"


def _partial(report: Report) -> Iterator[KnownRow]:
    summary = report.summary
    if summary.restrictions:
        known = summary.known
        told = f"partial run ({compared_share(known)})" if known else "partial run"
        gates = any(reason.kind == "partial" for reason in report.verdict.reasons)
        yield KnownRow(None, f"{told}, restricted by", ", ".join(summary.restrictions), gates=gates)


def compared_share(found: KnownScenarios) -> str:
    """Say how many of the known scenarios were compared."""
    return f"{count(found.compared)} of {count(found.known)} known scenarios compared"


def _rows(found: KnownScenarios) -> Iterator[KnownRow]:
    for missing in found.missing:
        what = _missing(missing)
        detail = missing.detail or ""
        yield KnownRow(missing.scenario_id, what, detail, missing.line, missing.gates)
    for regated in found.regated:
        gates = regated.gate == "advisory"
        what = "advisory now, known as required" if gates else "required now, known as advisory"
        yield KnownRow(regated.scenario_id, what, "", regated.line, gates)
    for renamed in found.renamed:
        yield KnownRow(renamed.scenario_id, "renamed, known as", renamed.former_id, renamed.line)
    for name in found.new:
        yield KnownRow(name, "new, not in the manifest")


def _missing(missing: MissingScenario) -> str:
    note = ", in quarantine" if missing.in_quarantine else ""
    return f"did not run{note}{_CAUSES[missing.cause][missing.detail is not None]}"


_CAUSES = {
    "removed": (": a hook removed it", ": removed by"),
    "file_skipped": (": its file was skipped", ", its file was skipped:"),
    "unknown": ("", ""),
}
"""Why a scenario is missing, without a detail and before one."""
