"""Compare a run with the scenario manifest: missing, new and renamed scenarios. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.analysis.waivers import WaiverStatus, find_waiver
from ci_agent_eval.contract.episode import Gating
from ci_agent_eval.contract.results import RemovedScenario, Session
from ci_agent_eval.contract.scenario_manifest import (
    KnownScenario,
    ManifestEntry,
    ScenarioManifest,
    find_former_ids,
    merge_scenarios,
)

MissingCause = Literal["removed", "file_skipped", "unknown"]


class MissingScenario(NamedTuple):
    """A known scenario that did not run."""

    scenario_id: str
    gate: Gating
    """The gate in the manifest."""
    line: int
    """1-based line of the manifest."""
    file: str | None = None
    cause: MissingCause = "unknown"
    detail: str | None = None
    """The option that removed it, or the reason its file was skipped; None: unknown."""
    in_quarantine: bool = False
    moved_to: str | None = None
    """The file of its test in the run, if it is not the manifest's."""
    cases: tuple[str, ...] = ()
    """The cases that did not run, if others of the scenario ran."""

    @property
    def gates(self) -> bool:
        """Whether it fails the gate."""
        return self.gate == "required" and not self.in_quarantine


class RenamedScenario(NamedTuple):
    """A scenario that names its old id of the manifest in `was`."""

    scenario_id: str
    former_id: str
    line: int


class RegatedScenario(NamedTuple):
    """A scenario with another gate than in the manifest."""

    scenario_id: str
    gate: Gating
    """The gate in the run."""
    line: int


class NewCases(NamedTuple):
    """Cases that the scenario's entry of the manifest does not list."""

    scenario_id: str
    cases: tuple[str, ...]
    line: int


class KnownScenarios(NamedTuple):
    """The result of comparing a run with the manifest."""

    name: str
    """The manifest's file."""
    known: int
    compared: int
    """Number of scenarios compared: fewer than `known` in a run restricted on purpose."""
    missing: tuple[MissingScenario, ...] = ()
    renamed: tuple[RenamedScenario, ...] = ()
    regated: tuple[RegatedScenario, ...] = ()
    new: tuple[str, ...] = ()
    """Ids that are not in the manifest."""
    new_cases: tuple[NewCases, ...] = ()


def collect_ran_scenarios(episodes: Iterable[EpisodeRecord]) -> dict[str, KnownScenario]:
    """Return the scenarios of episodes."""
    return merge_scenarios(
        KnownScenario(
            record.scenario_id,
            record.gate,
            record.file,
            record.was,
            cases=(record.case,) if record.case else (),
        )
        for record in episodes
    )


def compare_manifest(
    manifest: ScenarioManifest,
    ran: Mapping[str, KnownScenario],
    sessions: Sequence[Session],
    quarantine: Sequence[WaiverStatus] = (),
) -> KnownScenarios:
    """Compare the scenarios that ran with the manifest.

    If the command line restricted a run, only entries are compared that ran or that were
    removed for another reason, and no cases of those that ran. Scenarios that a change has not
    affected are not compared.
    """
    restricted = _is_restricted(sessions) or bool(find_restricting_paths(manifest, sessions))
    former = find_former_ids(manifest, ran)
    compared = [
        entry
        for name, entry in sorted(manifest.entries.items())
        if name in ran or name in former.values() or _is_expected(entry, sessions)
    ]
    lines = {entry.scenario_id: entry for entry in compared}
    return KnownScenarios(
        name=manifest.name,
        known=len(manifest.entries),
        compared=len(compared),
        missing=tuple(
            _build_missing_scenario(entry, sessions, quarantine, ran.get(name))
            for name, entry in lines.items()
            if (not ran[name].is_in(entry.file) if name in ran else name not in former.values())
        )
        + tuple(
            _build_missing_scenario(entry, sessions, quarantine, None)._replace(cases=lost)
            for name, entry in lines.items()
            if name in ran and not restricted and ran[name].is_in(entry.file)
            if (lost := _find_missing_cases(entry, ran[name], sessions))
        ),
        renamed=tuple(
            RenamedScenario(name, old, lines[old].line) for name, old in sorted(former.items())
        ),
        regated=tuple(
            RegatedScenario(name, ran[name].gate, entry.line)
            for name, entry in lines.items()
            if name in ran and ran[name].gate != entry.gate
        ),
        new=tuple(sorted(set(ran) - set(lines) - set(former))),
        new_cases=tuple(
            NewCases(name, added, entry.line)
            for name, entry in lines.items()
            if entry.cases and name in ran
            if (added := tuple(sorted(set(ran[name].cases) - set(entry.cases))))
        ),
    )


def _find_missing_cases(
    entry: ManifestEntry, ran: KnownScenario, sessions: Sequence[Session]
) -> tuple[str, ...]:
    lost = set(entry.cases) - set(ran.cases)
    return tuple(sorted(lost)) if _is_expected(entry, sessions) else ()


def find_restricting_paths(
    manifest: ScenarioManifest, sessions: Sequence[Session]
) -> tuple[str, ...]:
    """Return the paths of the command line if they exclude a known scenario, else none."""
    paths = _find_common_paths(sessions)
    outside = any(not is_inside(entry.file, paths) for entry in manifest.entries.values())
    return paths if outside else ()


def _is_expected(entry: ManifestEntry, sessions: Sequence[Session]) -> bool:
    if any(entry.scenario_id in session.left_out for session in sessions):
        return False
    if _is_restricted(sessions):
        return any(one.scenario_id == entry.scenario_id for one in _iterate_removed(sessions))
    return is_inside(entry.file, _find_common_paths(sessions))


def _is_restricted(sessions: Sequence[Session]) -> bool:
    return any(session.restrictions for session in sessions)


def _find_common_paths(sessions: Sequence[Session]) -> tuple[str, ...]:
    """Return the paths of all runs' command lines; empty if a run had none."""
    if not all(session.paths for session in sessions):
        return ()
    return tuple(sorted({path for session in sessions for path in session.paths}))


def is_inside(file: str | None, paths: Sequence[str]) -> bool:
    """Return whether a file is at or below any of the paths; True if either is unknown."""
    if not paths or file is None:
        return True
    return any(path in {".", file} or file.startswith(f"{path}/") for path in paths)


def _iterate_removed(sessions: Sequence[Session]) -> Iterator[RemovedScenario]:
    return (one for session in sessions for one in session.removed)


def _build_missing_scenario(
    entry: ManifestEntry,
    sessions: Sequence[Session],
    quarantine: Sequence[WaiverStatus],
    moved: KnownScenario | None,
) -> MissingScenario:
    waiver = find_waiver(quarantine, entry.scenario_id, None)
    cause, detail = _find_missing_cause(entry, sessions)
    return MissingScenario(
        scenario_id=entry.scenario_id,
        gate=entry.gate,
        line=entry.line,
        file=entry.file,
        cause=cause,
        detail=detail,
        in_quarantine=waiver is not None and not waiver.expired,
        moved_to=None if moved is None else moved.file,
    )


def _find_missing_cause(
    entry: ManifestEntry, sessions: Sequence[Session]
) -> tuple[MissingCause, str | None]:
    for removed in _iterate_removed(sessions):
        if removed.scenario_id == entry.scenario_id:
            return "removed", removed.by
    for session in sessions:
        for skip in session.collection_skips:
            if entry.file is not None and is_inside(entry.file, (skip.file,)):
                return "file_skipped", skip.reason
    return "unknown", None
