"""Load baseline runs with the loader of results, with all its checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ci_agent_eval.analysis.comparison.model import (
    Baseline,
    BaselineRun,
    ConversationSample,
    NoBaseline,
)
from ci_agent_eval.analysis.loaded_results import LoadedResults
from ci_agent_eval.contract.findings import Finding, FindingKind
from ci_agent_eval.contract.result_mapping import ImportPolicy
from ci_agent_eval.contract.results import DEPENDENCIES_NAME
from ci_agent_eval.results.baselines.episode_lines import LineCollector
from ci_agent_eval.results.baselines.request import (
    EarlierRun,
    FoundBaseline,
    LatestDetail,
    build_missing_baseline,
)
from ci_agent_eval.results.consistency import describe_other_suite
from ci_agent_eval.results.dependencies_file import read_dependencies
from ci_agent_eval.results.load import load_results
from ci_agent_eval.results.loaded_redaction import EpisodeKey, Redact
from ci_agent_eval.results.parallel import count_processors, map_parallel
from ci_agent_eval.results.samples import SampleCollector

SHORT_SHA = 7
_ADVICE = "name a baseline of the same suite"

_BLOCKING_KINDS: frozenset[FindingKind] = frozenset({"unreadable_file", "duplicate", "shards"})
"""Findings that make a baseline run unusable."""
_WARNING_KINDS: frozenset[FindingKind] = frozenset(
    {"interrupted", "stopped", "collection_error", "repaired_file"}
)
"""Findings that are reported, but leave a baseline run usable."""


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one baseline run."""

    patterns: tuple[str, ...]
    """Files or folders, as in `load_results`."""
    label: str
    """The run's name in reports."""
    folders: tuple[Path, ...] = ()
    """Where its `dependencies.json` are: one, or one for each shard."""


def load_baseline_runs(
    label: str,
    runs: Sequence[RunFiles],
    *,
    root: Path,
    redact: Redact | None = None,
    suite: str | None = None,
    require_complete: bool = False,
    imports: ImportPolicy | None = None,
    latest: LatestDetail = "none",
) -> FoundBaseline:
    """Load runs, given latest first; runs without episodes are left out.

    Episodes that a run carried over are left out: they are in the baseline's earlier run.

    `label` is the name of the baseline in reports; the latest run's commit is added to it.
    A run of another suite than `suite` is a blocking finding, and with `require_complete` so is an
    unfinished one.
    """
    loaded: list[BaselineRun] = []
    findings: list[Finding] = []
    read = partial(
        _read_run, root=root, redact=redact, imports=imports, with_lines=latest == "lines"
    )
    # Reports show conversations of the latest run only.
    requests = [(files, number == 0) for number, files in enumerate(runs)]
    results = map_parallel(read, requests, processes=count_processors())
    earlier = None
    for number, (files, (found, samples, lines)) in enumerate(zip(runs, results, strict=True)):
        findings += _convert_findings(found.findings, require_complete=require_complete)
        findings += _find_foreign_suites(found.suites, suite, files.label)
        own = tuple(record for record in found.episodes if record.carried_over is None)
        if own:
            commit = _find_common(session.commit for session in found.sessions)
            loaded.append(BaselineRun(own, commit, files.label, found.suites, samples))
        if own and latest != "none" and number == 0:
            kept = own if latest == "records" else tuple(one for one in own if one.key in lines)
            earlier = _build_earlier_run(files, found, EarlierRun(kept, lines))
    if any(finding.blocking for finding in findings):
        return FoundBaseline(
            NoBaseline("the baseline cannot be read"), tuple(sorted(set(findings)))
        )
    if not loaded:
        return build_missing_baseline(f"{label} holds no episode")
    baseline = Baseline(_append_commit(label, loaded), tuple(loaded))
    return FoundBaseline(baseline, tuple(sorted(set(findings))), earlier)


def _find_common(values: Iterable[str | None]) -> str | None:
    """Return the only value besides None; None if there are several."""
    found = {value for value in values if value}
    return found.pop() if len(found) == 1 else None


def _build_earlier_run(files: RunFiles, found: LoadedResults, earlier: EarlierRun) -> EarlierRun:
    """Add the origin and the dependencies of an earlier run's episodes."""
    earlier = replace(
        earlier,
        run=_find_common(session.run for session in found.sessions),
        adaptive_stops=tuple(stop for one in found.sessions for stop in one.adaptive_stops),
    )
    documents = read_dependencies(files.folders)
    if isinstance(documents, str):
        return replace(earlier, problem=documents)
    commits = {one.commit for one in documents}
    named = {session.commit for session in found.sessions if session.commit is not None}
    commit = _find_common(commits)
    if commit is None or commits | named != {commit}:
        return replace(earlier, problem=f"its {DEPENDENCIES_NAME} is not about its results' commit")
    return replace(earlier, commit=commit, dependencies=documents)


def _read_run(
    request: tuple[RunFiles, bool],
    *,
    root: Path,
    redact: Redact | None,
    imports: ImportPolicy | None,
    with_lines: bool,
) -> tuple[LoadedResults, tuple[ConversationSample, ...], Mapping[EpisodeKey, bytes]]:
    """Load a run; of the latest also samples of its conversations and, if requested, its lines."""
    files, is_latest = request
    load = partial(load_results, files.patterns, (), root=root, redact=redact, imports=imports)
    if not is_latest:
        return load(), (), {}
    samples = SampleCollector()
    if not with_lines:
        return load(spool=samples), samples.list_samples(redact), {}
    lines = LineCollector(samples, redact)
    return load(spool=lines), samples.list_samples(redact), lines.list_lines()


def _find_foreign_suites(
    suites: Sequence[str], wanted: str | None, where: str
) -> Iterator[Finding]:
    for other in suites:
        if wanted is not None and other != wanted:
            yield Finding("baseline", where, f"{describe_other_suite(other, wanted)}; {_ADVICE}")


def _convert_findings(findings: Sequence[Finding], *, require_complete: bool) -> list[Finding]:
    """Convert the findings of baseline files; those that its own report showed are left out."""
    return [
        Finding(
            "baseline",
            finding.where,
            finding.message,
            finding.kind in _BLOCKING_KINDS or (require_complete and finding.blocking),
        )
        for finding in findings
        if finding.kind in _BLOCKING_KINDS | _WARNING_KINDS
        and (finding.blocking or finding.kind in _WARNING_KINDS)
    ]


def _append_commit(label: str, runs: Sequence[BaselineRun]) -> str:
    commit = runs[0].commit
    return f"{label}@{commit[:SHORT_SHA]}" if commit and "@" not in label else label
