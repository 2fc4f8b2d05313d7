"""A baseline of artifacts: what the last runs of the base branch left on GitHub.

A run counts if it is of this workflow, of this repository (a fork may call its branch `main`),
of the base branch itself and not of a pull request, and if it came to its end and left whole
results, whether its gate let them pass or not. If only what passed counted, the baseline would be
better than the agent ever was, and chance would look like a regression.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from ci_agent_eval.analysis.comparison.model import Baseline, BaselineRun
from ci_agent_eval.contract.findings import Finding
from ci_agent_eval.errors import InputError, PublishError
from ci_agent_eval.github.api_errors import GoneError, NotAllowedError
from ci_agent_eval.github.artifacts import fetch_artifacts, is_results_file, list_artifacts
from ci_agent_eval.github.concurrent_requests import MAX_CONCURRENT, run_concurrently
from ci_agent_eval.github.event import Event
from ci_agent_eval.github.publish import find_pulls
from ci_agent_eval.github.workflow_runs import RunsApi, WorkflowRun
from ci_agent_eval.render.sentences import finding_sentence
from ci_agent_eval.results.baselines.request import (
    BaselineRequest,
    BaselineSource,
    FoundBaseline,
    build_missing_baseline,
    build_unreadable_baseline,
)
from ci_agent_eval.results.baselines.runs import SHORT_SHA, RunFiles, load_baseline_runs
from ci_agent_eval.results.parallel import count_processors, map_parallel

OpenApi = Callable[[], AbstractContextManager[RunsApi]]
"""Opens GitHub; called only where a baseline is asked for."""

MAX_LISTED_RUNS = 100
"""Runs of the branch that are looked at."""

MAX_MISSES = 10
"""Runs without a usable artifact after which no older one is looked at: they expire in order."""

_FINISHED_CONCLUSIONS = frozenset({"success", "failure"})
"""Conclusions of runs that came to their end; whose results are whole, is asked of themselves."""

_BRANCH_EVENTS = frozenset({"push", "schedule", "workflow_dispatch"})
"""Events whose runs are of a branch itself."""


def build_artifact_source(connect: OpenApi | None, event: Event, *, name: str) -> BaselineSource:
    """Return the source of `baseline: artifact`; `connect` is None without a token.

    `name` is the artifacts' name, or a pattern where each shard left one.
    """

    def source(wanted: BaselineRequest) -> FoundBaseline:
        if connect is None:
            return build_missing_baseline(
                "there is no token to read artifacts with; pass `github-token`"
            )
        try:
            with connect() as api, tempfile.TemporaryDirectory(prefix="agent-eval-") as folder:
                return load_artifact_baseline(api, event, wanted, name=name, into=Path(folder))
        except NotAllowedError as error:
            return build_missing_baseline(
                f"{_format_reason(error)}; add `permissions: actions: read` to the job"
            )
        except PublishError as error:
            return build_unreadable_baseline(wanted.name, _format_reason(error))

    return source


def load_artifact_baseline(
    api: RunsApi, event: Event, wanted: BaselineRequest, *, name: str, into: Path
) -> FoundBaseline:
    """Find and read the baseline; `into` is an empty folder of nobody else's.

    An artifact that is refused is said, and its run left out. Raises PublishError.
    """
    workflow = _find_workflow(api, event)
    if workflow is None:
        return build_missing_baseline("this is no workflow run, so it has no earlier ones")
    branch = _find_base_branch(api, event)
    if branch is None:
        return build_missing_baseline("the base branch is not known for this event")
    listed = api.completed_runs(workflow, branch, limit=MAX_LISTED_RUNS)
    candidates = [run for run in listed if _is_candidate(run, branch, event)]
    if not candidates:
        return build_missing_baseline(
            f"no run of this workflow on {branch} has come to its end yet"
        )
    tries = _read_all(api, candidates, wanted, name, into)
    return _build_baseline(tries, branch, name)


def _format_reason(error: PublishError) -> str:
    """Return an error's sentence as a part of another."""
    text = str(error).rstrip(".")
    return text[:1].lower() + text[1:]


def _find_workflow(api: RunsApi, event: Event) -> int | None:
    """Return the workflow whose runs are compared: that of the results."""
    if event.source is not None:
        return event.source.workflow_id
    return None if event.run_id is None else api.workflow_run(event.run_id).workflow_id


def _find_base_branch(api: RunsApi, event: Event) -> str | None:
    """Return the base branch; that of a fork's pull request only GitHub knows."""
    if event.base_branch is not None:
        return event.base_branch
    pulls = [one for one in find_pulls(api, event) if one.head_sha == event.head_sha]
    bases = {one.base_branch for one in pulls if one.is_open}
    return bases.pop() if len(bases) == 1 else None


def _is_candidate(run: WorkflowRun, branch: str, event: Event) -> bool:
    own = event.run_id if event.source is None else event.source.id
    name = event.name if event.source is None else event.source.event
    is_of_the_branch = (
        run.event in _BRANCH_EVENTS
        and run.head_branch == branch
        and (run.head_repository or "").casefold() == event.repository.casefold()
    )
    # Of the branch's own runs only the earlier ones are the base of a later one.
    is_before = own is None or name not in _BRANCH_EVENTS or run.id < own
    return (
        is_of_the_branch and run.conclusion in _FINISHED_CONCLUSIONS and run.id != own and is_before
    )


@dataclass(frozen=True, slots=True)
class _RunAttempt:
    """What came of one run of the base."""

    run: BaselineRun | None = None
    refused: str | None = None
    """Why it is left out although its artifact is there."""
    has_expired: bool = False
    findings: tuple[Finding, ...] = ()


def _read_all(
    api: RunsApi, runs: Iterable[WorkflowRun], wanted: BaselineRequest, name: str, into: Path
) -> list[_RunAttempt]:
    """Read runs, the latest first, until there are enough or too many in a row were of no use.

    A few are asked for at once, and never one of which it may turn out that it is not needed.
    """
    tries: list[_RunAttempt] = []
    found = misses = 0
    left = iter(runs)
    while few := list(islice(left, min(MAX_CONCURRENT, wanted.runs - found, MAX_MISSES - misses))):
        for one in _read_few(api, few, wanted, name, into):
            tries.append(one)
            found, misses = (found, misses + 1) if one.run is None else (found + 1, 0)
    return tries


def _read_few(
    api: RunsApi, runs: Sequence[WorkflowRun], wanted: BaselineRequest, name: str, into: Path
) -> list[_RunAttempt]:
    """Fetch runs at once, then read what came on all processors."""
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory(dir=into))) for _ in runs]
        pairs = list(zip(runs, folders, strict=True))
        fetched = run_concurrently(partial(_fetch_run, api, name=name), pairs)
        there = [pair for pair, why_not in zip(pairs, fetched, strict=True) if why_not is None]
        read = iter(
            map_parallel(partial(_load_run, wanted=wanted), there, processes=count_processors())
        )
        return [why_not or next(read) for why_not in fetched]


def _fetch_run(
    api: RunsApi, run_and_folder: tuple[WorkflowRun, Path], *, name: str
) -> _RunAttempt | None:
    """Write a run's files into its folder; return what is to be said where there are none."""
    run, folder = run_and_folder
    try:
        artifacts = list_artifacts(api, run.id, name)
        if not artifacts:
            return _RunAttempt()
        if any(artifact.is_expired for artifact in artifacts):
            return _RunAttempt(has_expired=True)
        fetch_artifacts(
            api, artifacts, folder, run_id=run.id, head_sha=run.head_sha, wanted=is_results_file
        )
    except GoneError:
        return _RunAttempt(has_expired=True)
    except InputError as error:
        return _RunAttempt(refused=str(error))
    return None


def _load_run(run_and_folder: tuple[WorkflowRun, Path], *, wanted: BaselineRequest) -> _RunAttempt:
    run, folder = run_and_folder
    try:
        return _read_run_folder(run, wanted, folder)
    except InputError as error:
        return _RunAttempt(refused=str(error))


def _read_run_folder(run: WorkflowRun, wanted: BaselineRequest, root: Path) -> _RunAttempt:
    label = f"run {run.id}"
    found = load_baseline_runs(
        label,
        [RunFiles((".",), label)],
        root=root,
        redact=wanted.redact,
        suite=wanted.suite,
        whole=True,
    )
    where = tuple(replace(finding, where=f"{label}, {finding.where}") for finding in found.findings)
    if not isinstance(found.baseline, Baseline):
        blocking = next((finding for finding in where if finding.blocking), None)
        why = (
            f"{blocking.where}: {finding_sentence(blocking)}" if blocking else found.baseline.reason
        )
        return _RunAttempt(refused=f"{label}: {why}" if blocking is None else why)
    (loaded,) = found.baseline.runs
    if loaded.commit not in {None, run.head_sha}:
        return _RunAttempt(
            refused=f"{label}: its results are about commit {loaded.commit}, "
            f"but the run is about {run.head_sha}"
        )
    return _RunAttempt(replace(loaded, commit=run.head_sha), findings=where)


def _build_baseline(tries: Sequence[_RunAttempt], branch: str, name: str) -> FoundBaseline:
    runs = tuple(one.run for one in tries if one.run is not None)
    refused = [one.refused for one in tries if one.refused is not None]
    findings = [finding for one in tries for finding in one.findings]
    findings += [
        Finding("baseline", "artifact", f"{why}; this run is left out", blocking=False)
        for why in refused
    ]
    if not runs:
        return replace(
            build_missing_baseline(_explain_missing(tries, branch, name)), findings=tuple(findings)
        )
    label = f"{branch}@{(runs[0].commit or '')[:SHORT_SHA]}"
    return FoundBaseline(Baseline(label, runs), tuple(sorted(set(findings))))


def _explain_missing(tries: Sequence[_RunAttempt], branch: str, name: str) -> str:
    looked = f"of the last {len(tries)} runs on {branch}"
    if any(one.refused for one in tries):
        return f"{looked} no artifact {name} can be used"
    if any(one.has_expired for one in tries):
        return f"{looked} every artifact {name} has expired; run the workflow there again"
    return f"{looked} none left an artifact {name}; upload the report folder under that name"
