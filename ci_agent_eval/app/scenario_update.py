"""`agent-eval scenarios`: compare the manifest with a collection or results, and update it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_agent_eval.analysis.known_scenarios import (
    collect_ran_scenarios,
    find_restricting_paths,
    is_inside,
)
from ci_agent_eval.analysis.loaded_results import LoadedResults
from ci_agent_eval.contract.results import ScenarioListing, Session
from ci_agent_eval.contract.scenario_manifest import (
    KnownScenario,
    ManifestEntry,
    ScenarioManifest,
    find_former_ids,
    merge_scenarios,
    quote_toml,
    render_manifest,
    update_manifest,
)
from ci_agent_eval.contract.wording import pluralize
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.regular_file import replace_file


@dataclass(frozen=True, slots=True)
class FoundScenarios:
    """The scenarios found in a suite, with the restrictions of the search."""

    scenarios: Mapping[str, KnownScenario]
    sessions: tuple[Session, ...]
    run_time_files: tuple[str, ...] = ()
    """Files of tests that name their scenarios at run time."""

    def is_removed(self, entry: ManifestEntry) -> bool:
        """Say whether a missing entry is certainly no longer a scenario of the suite."""
        return all(_is_decisive(session, entry) for session in self.sessions) and not _is_in_files(
            entry, self.run_time_files
        )

    def notes(self, manifest: ScenarioManifest) -> Iterator[str]:
        """Yield the reasons for keeping missing entries."""
        restrictions = [each for session in self.sessions for each in session.restrictions]
        for restriction in (*restrictions, *find_restricting_paths(manifest, self.sessions)):
            yield f"restricted by {restriction}: other entries are kept"
        for session in self.sessions:
            for skip in session.collection_skips:
                yield f"{skip.file} was skipped ({skip.reason}): its entries are kept"
            for removed in session.removed:
                by = removed.by or "a hook"
                yield f"{removed.scenario_id!r} was removed by {by}: neither added nor removed"
            if session.left_out:
                count = pluralize(len(session.left_out), "scenario")
                yield f"{count} not affected by the change did not run: the entries are kept"
        for file in self.run_time_files:
            yield f"{file}: its tests return their episodes; add them with --results after a run"


def _is_decisive(session: Session, entry: ManifestEntry) -> bool:
    undecided = (*session.left_out, *(one.scenario_id for one in session.removed))
    if session.restrictions or entry.scenario_id in undecided:
        return False
    skipped = _is_in_files(entry, [skip.file for skip in session.collection_skips])
    return not skipped and (not session.paths or is_inside(entry.file, session.paths))


def _is_in_files(entry: ManifestEntry, files: Sequence[str]) -> bool:
    return bool(files) and entry.file is not None and is_inside(entry.file, files)


def find_listed_scenarios(listing: ScenarioListing) -> FoundScenarios:
    """Return the scenarios of a collection; raises InputError if a file was not collected."""
    for error in listing.session.collection_errors:
        raise InputError(f"{error.nodeid}: cannot be collected: {error.message}")
    named = [one for one in listing.scenarios if not one.named_at_run_time]
    late = {one.file for one in listing.scenarios if one.named_at_run_time and one.file}
    return FoundScenarios(
        merge_scenarios(
            KnownScenario(o.scenario_id, o.gate, o.file, o.was, cases=(o.case,) if o.case else ())
            for o in named
        ),
        (listing.session,),
        tuple(sorted(late)),
    )


def find_result_scenarios(loaded: LoadedResults) -> FoundScenarios:
    """Return the scenarios of results; raises InputError if the results are incomplete."""
    for finding in loaded.findings:
        if finding.blocking:
            where = f"{finding.where}: " if finding.where else ""
            raise InputError(f"{where}{finding.message}")
    return FoundScenarios(collect_ran_scenarios(loaded.episodes), loaded.sessions)


@dataclass(frozen=True, slots=True)
class ManifestUpdate:
    """A manifest before and after an update."""

    before: ScenarioManifest
    after: ScenarioManifest
    former: Mapping[str, str]
    """The former id of each renamed scenario."""
    notes: tuple[str, ...] = ()

    @property
    def changes(self) -> tuple[str, ...]:
        """One line per removed or added entry or case."""
        return tuple(self._changes())

    def _changes(self) -> Iterator[str]:
        new_ids = {old: new for new, old in self.former.items()}
        names = {*self.before.entries, *self.after.entries} - set(new_ids)
        for name in sorted(names):
            old = self.before.entries.get(self.former.get(name, name))
            new = self.after.entries.get(name)
            before, after = _describe_entry(old), _describe_entry(new)
            was = f" (was {old.scenario_id!r})" if name in self.former and old else ""
            yield from (f"- {line}" for line in before if line not in after)
            yield from (f"+ {line}{was}" for line in after if line not in before)


def _describe_entry(entry: ManifestEntry | None) -> list[str]:
    """Return a line for an entry, and one for each of its cases."""
    if entry is None:
        return []
    cases = (f"{quote_toml(entry.scenario_id)}: {quote_toml(case)}" for case in entry.cases)
    return [f"[{entry.gate}] {line}" for line in (entry.head, *cases)]


def plan_update(manifest: ScenarioManifest, found: FoundScenarios) -> ManifestUpdate:
    """Return the update; raises InputError if there is no scenario at all."""
    if not found.scenarios and not manifest.entries:
        raise InputError("no scenario was found; name the folder of the suite")
    former = find_former_ids(manifest, found.scenarios)
    kept = _build_keep_filter(found, set(former.values()))
    after = update_manifest(manifest, found.scenarios, kept)
    return ManifestUpdate(manifest, after, former, tuple(dict.fromkeys(found.notes(manifest))))


def _build_keep_filter(
    found: FoundScenarios, renamed: Iterable[str]
) -> Callable[[ManifestEntry], bool]:
    gone = set(renamed)
    return lambda entry: entry.scenario_id not in gone and not found.is_removed(entry)


def write_manifest(update: ManifestUpdate, path: Path) -> bool:
    """Write the manifest if it differs from the file; return whether it was written.

    Raises InputError if it cannot be written.
    """
    text = render_manifest(update.after)
    try:
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return False
        with replace_file(path) as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    return True
