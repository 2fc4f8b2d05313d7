"""Load baseline runs with the loader of results, with all its checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
from ci_agent_eval.results.baselines.request import (
    FoundBaseline,
    build_missing_baseline,
)
from ci_agent_eval.results.consistency import describe_other_suite
from ci_agent_eval.results.load import load_results
from ci_agent_eval.results.loaded_redaction import Redact
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


def load_baseline_runs(
    label: str,
    runs: Sequence[RunFiles],
    *,
    root: Path,
    redact: Redact | None = None,
    suite: str | None = None,
    require_complete: bool = False,
    imports: ImportPolicy | None = None,
) -> FoundBaseline:
    """Load runs, given latest first; runs without episodes are left out.

    `label` is the name of the baseline in reports; the latest run's commit is added to it.
    A run of another suite than `suite` is a blocking finding, and with `require_complete` so is an
    unfinished one.
    """
    loaded: list[BaselineRun] = []
    findings: list[Finding] = []
    read = partial(_read_run, root=root, redact=redact, imports=imports)
    # Reports show conversations of the latest run only.
    requests = [(files, number == 0) for number, files in enumerate(runs)]
    results = map_parallel(read, requests, processes=count_processors())
    for files, (found, samples) in zip(runs, results, strict=True):
        findings += _convert_findings(found.findings, require_complete=require_complete)
        findings += _find_foreign_suites(found.suites, suite, files.label)
        if found.episodes:
            commit = _find_common(session.commit for session in found.sessions)
            loaded.append(BaselineRun(found.episodes, commit, files.label, found.suites, samples))
    if any(finding.blocking for finding in findings):
        return FoundBaseline(
            NoBaseline("the baseline cannot be read"), tuple(sorted(set(findings)))
        )
    if not loaded:
        return build_missing_baseline(f"{label} holds no episode")
    baseline = Baseline(_append_commit(label, loaded), tuple(loaded))
    return FoundBaseline(baseline, tuple(sorted(set(findings))))


def _find_common(values: Iterable[str | None]) -> str | None:
    """Return the only value besides None; None if there are several."""
    found = {value for value in values if value}
    return found.pop() if len(found) == 1 else None


def _read_run(
    request: tuple[RunFiles, bool],
    *,
    root: Path,
    redact: Redact | None,
    imports: ImportPolicy | None,
) -> tuple[LoadedResults, tuple[ConversationSample, ...]]:
    """Load a run; of the latest also samples of its conversations."""
    files, is_latest = request
    load = partial(load_results, files.patterns, (), root=root, redact=redact, imports=imports)
    if not is_latest:
        return load(), ()
    samples = SampleCollector()
    return load(spool=samples), samples.list_samples(redact)


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
