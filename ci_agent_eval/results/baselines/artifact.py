"""Load a baseline from the artifacts of the base branch's last workflow runs on GitHub.

A run counts if it belongs to this workflow, this repository (a fork may have a branch `main`) and
the base branch itself, not to a pull request, and if it finished with complete results, whether
or not its gate passed. If only passing runs counted, the baseline would be better than the agent
ever was, and chance would look like a regression.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ci_agent_eval.analysis.comparison.model import Baseline, BaselineRun
from ci_agent_eval.contract.findings import Finding
from ci_agent_eval.errors import InputError, PublishError
from ci_agent_eval.github.api import WorkflowRun
from ci_agent_eval.github.api_errors import GoneError, NotAllowedError
from ci_agent_eval.github.artifacts import fetch_artifacts, is_results_file, list_artifacts
from ci_agent_eval.github.concurrent_requests import MAX_CONCURRENT, run_concurrently
from ci_agent_eval.github.event import Event
from ci_agent_eval.github.publish import find_pulls
from ci_agent_eval.render.sentences import describe_finding
from ci_agent_eval.results.baselines.request import (
    BaselineRequest,
    BaselineSource,
    FoundBaseline,
    build_missing_baseline,
    build_unreadable_baseline,
)
from ci_agent_eval.results.baselines.runs import (
    SHORT_SHA,
    RunFiles,
    count_processors,
    load_baseline_runs,
    map_parallel,
)

if TYPE_CHECKING:
    from ci_agent_eval.github.client import GitHubApi


OpenApi = Callable[[], AbstractContextManager["GitHubApi"]]
"""Opens GitHub's API; called only if a baseline is requested."""

MAX_LISTED_RUNS = 100
"""Maximum number of the branch's runs to look at."""

MAX_MISSES = 10
"""Runs without a usable artifact after which the search ends: artifacts expire in order."""

_FINISHED_CONCLUSIONS = frozenset({"success", "failure"})
"""Conclusions of finished runs; whether their results are complete is checked in the files."""

_BRANCH_EVENTS = frozenset({"push", "schedule", "workflow_dispatch"})
"""Events of runs on a branch itself."""


def build_artifact_source(connect: OpenApi | None, event: Event, *, name: str) -> BaselineSource:
    """Return the source of `baseline: artifact`; `connect` is None without a token.

    `name` is the artifacts' name, or a pattern if each shard has one.
    """

    def source(request: BaselineRequest) -> FoundBaseline:
        if connect is None:
            return build_missing_baseline(
                "there is no token to read artifacts with; pass `github-token`"
            )
        try:
            with connect() as api, tempfile.TemporaryDirectory(prefix="agent-eval-") as folder:
                return load_artifact_baseline(api, event, request, name=name, into=Path(folder))
        except NotAllowedError as error:
            return build_missing_baseline(
                f"{_format_reason(error)}; add `permissions: actions: read` to the job"
            )
        except PublishError as error:
            return build_unreadable_baseline(request.name, _format_reason(error))

    return source


def load_artifact_baseline(
    api: GitHubApi, event: Event, request: BaselineRequest, *, name: str, into: Path
) -> FoundBaseline:
    """Find and read the baseline, using the empty folder `into`.

    Runs with a refused artifact are left out, with a finding. Raises PublishError.
    """
    workflow = _find_workflow(api, event)
    if workflow is None:
        return build_missing_baseline("this is not a workflow run, so it has no earlier ones")
    branch = _find_base_branch(api, event)
    if branch is None:
        return build_missing_baseline("the base branch is not known for this event")
    listed = api.completed_runs(workflow, branch, limit=MAX_LISTED_RUNS)
    candidates = [run for run in listed if _is_candidate(run, branch, event)]
    if not candidates:
        return build_missing_baseline(
            f"no run of this workflow on {branch} has come to its end yet; the first one becomes "
            "the baseline"
        )
    tries = _read_all(api, candidates, request, name, into)
    return _build_baseline(tries, branch, name)


def _format_reason(error: PublishError) -> str:
    """Return an error's sentence for use inside another sentence."""
    text = str(error).rstrip(".")
    return text[:1].lower() + text[1:]


def _find_workflow(api: GitHubApi, event: Event) -> int | None:
    """Return the id of the workflow that made the results; None: not a workflow run."""
    if event.source is not None:
        return event.source.workflow_id
    return None if event.run_id is None else api.workflow_run(event.run_id).workflow_id


def _find_base_branch(api: GitHubApi, event: Event) -> str | None:
    """Return the base branch; for a fork's pull request, ask GitHub for it."""
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
    # For a run on the branch itself, only earlier runs are the baseline.
    is_before = own is None or name not in _BRANCH_EVENTS or run.id < own
    return (
        is_of_the_branch and run.conclusion in _FINISHED_CONCLUSIONS and run.id != own and is_before
    )


class _RunAttempt(NamedTuple):
    """The result of reading one baseline run."""

    run: BaselineRun | None = None
    refused: str | None = None
    """The reason that its artifact is refused; None: not refused."""
    has_expired: bool = False
    findings: tuple[Finding, ...] = ()


def _read_all(
    api: GitHubApi, runs: Iterable[WorkflowRun], request: BaselineRequest, name: str, into: Path
) -> list[_RunAttempt]:
    """Read runs, latest first, until there are enough or too many in a row are unusable.

    A few are fetched at once, but never more than are still needed.
    """
    tries: list[_RunAttempt] = []
    found = misses = 0
    left = iter(runs)
    while few := list(islice(left, min(MAX_CONCURRENT, request.runs - found, MAX_MISSES - misses))):
        for one in _read_few(api, few, request, name, into):
            tries.append(one)
            found, misses = (found, misses + 1) if one.run is None else (found + 1, 0)
    return tries


def _read_few(
    api: GitHubApi, runs: Sequence[WorkflowRun], request: BaselineRequest, name: str, into: Path
) -> list[_RunAttempt]:
    """Fetch runs concurrently, then read them on all processors."""
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory(dir=into))) for _ in runs]
        pairs = list(zip(runs, folders, strict=True))
        fetched = run_concurrently(partial(_fetch_run, api, name=name), pairs)
        available = [pair for pair, failure in zip(pairs, fetched, strict=True) if failure is None]
        read = iter(
            map_parallel(
                partial(_load_run, request=request), available, processes=count_processors()
            )
        )
        return [failure or next(read) for failure in fetched]


def _fetch_run(
    api: GitHubApi, run_and_folder: tuple[WorkflowRun, Path], *, name: str
) -> _RunAttempt | None:
    """Write a run's files into its folder; return the outcome if there are none."""
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


def _load_run(run_and_folder: tuple[WorkflowRun, Path], *, request: BaselineRequest) -> _RunAttempt:
    run, folder = run_and_folder
    try:
        return _read_run_folder(run, request, folder)
    except InputError as error:
        return _RunAttempt(refused=str(error))


def _read_run_folder(run: WorkflowRun, request: BaselineRequest, root: Path) -> _RunAttempt:
    label = f"run {run.id}"
    files = [RunFiles((".",), label)]
    found = load_baseline_runs(label, files, request, root=root, require_complete=True)
    findings = tuple(
        replace(finding, where=f"{label}, {finding.where}") for finding in found.findings
    )
    if not isinstance(found.baseline, Baseline):
        blocking = next((finding for finding in findings if finding.blocking), None)
        reason = (
            f"{blocking.where}: {describe_finding(blocking)}" if blocking else found.baseline.reason
        )
        return _RunAttempt(refused=f"{label}: {reason}" if blocking is None else reason)
    (loaded,) = found.baseline.runs
    if loaded.commit not in {None, run.head_sha}:
        return _RunAttempt(
            refused=f"{label}: its results are about commit {loaded.commit}, "
            f"but the run is about {run.head_sha}"
        )
    return _RunAttempt(loaded._replace(commit=run.head_sha), findings=findings)


def _build_baseline(tries: Sequence[_RunAttempt], branch: str, name: str) -> FoundBaseline:
    runs = tuple(one.run for one in tries if one.run is not None)
    refused = [one.refused for one in tries if one.refused is not None]
    findings = [finding for one in tries for finding in one.findings]
    findings += [
        Finding("baseline", "artifact", f"{reason}; this run is left out", blocking=False)
        for reason in refused
    ]
    if not runs:
        missing = build_missing_baseline(_explain_missing(tries, branch, name))
        return missing._replace(findings=tuple(findings))
    label = f"{branch}@{(runs[0].commit or '')[:SHORT_SHA]}"
    return FoundBaseline(Baseline(label, runs), tuple(sorted(set(findings))))


def _explain_missing(tries: Sequence[_RunAttempt], branch: str, name: str) -> str:
    looked = f"of the last {len(tries)} runs on {branch}"
    if any(one.refused for one in tries):
        return f"{looked} no artifact {name} can be used"
    if any(one.has_expired for one in tries):
        return f"{looked} every artifact {name} has expired; run the workflow there again"
    return f"{looked} none left an artifact {name}; upload the report folder under that name"
