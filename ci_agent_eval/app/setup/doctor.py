"""`agent-eval doctor`: the problems of a repository's set-up, each with its remedy."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from ci_agent_eval.app.setup.github_settings import GitHubSettings
from ci_agent_eval.app.setup.repository import ProjectRepository
from ci_agent_eval.app.setup.workflow_file import (
    EvalJob,
    EvalStep,
    WorkflowFile,
    parse_workflow,
    split_words,
)
from ci_agent_eval.config.settings import Settings, load_settings
from ci_agent_eval.contract.located_value import LocatedProblem
from ci_agent_eval.errors import AgentEvalError

ARTIFACT = "artifact"
"""The baseline of earlier workflow runs."""

_TEST_FILES = ("test_*.py", "*_test.py", "*_eval.py")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding about the set-up."""

    kind: Literal["ok", "problem", "note"]
    text: str
    where: str = ""
    """Path and line, if it is about a file."""


@dataclass(frozen=True, slots=True)
class _Context:
    """The data that the checks of a workflow need."""

    repository: ProjectRepository
    settings: Settings
    workflows: tuple[WorkflowFile, ...]
    github: GitHubSettings | None
    """None: GitHub is not asked."""


def diagnose(
    repository: ProjectRepository,
    environ: Mapping[str, str],
    github: GitHubSettings | None = None,
) -> list[Diagnosis]:
    """Check the settings, the workflows and the suite of a repository.

    `github` are its settings there; without them only its files are checked.
    """
    found: list[Diagnosis] = [*_check_installation()]
    try:
        settings = load_settings(root=repository.folder, environ=environ, flags={})
    except AgentEvalError as error:
        return [*found, Diagnosis("problem", str(error), "settings")]
    found.append(Diagnosis("ok", "the settings are valid"))
    workflows, problems = _read_workflows(repository)
    found += problems
    context = _Context(repository, settings, workflows, github)
    if not any(workflow.jobs for workflow in workflows):
        text = "no workflow runs the suite; write one with `agent-eval init`"
        return [*found, Diagnosis("problem", text, ".github/workflows")]
    for workflow in workflows:
        if workflow.jobs:
            found += _check_workflow(workflow, context)
    return [*found, *_check_required_checks(context)]


def _check_installation() -> Iterator[Diagnosis]:
    try:
        pytest_version = version("pytest")
    except PackageNotFoundError:
        yield Diagnosis("problem", "pytest is not installed here; install the extra `pytest`")
        return
    if int(pytest_version.split(".")[0]) < 8:
        text = f"pytest {pytest_version} is too old; install pytest 8 or newer"
        yield Diagnosis("problem", text)
    else:
        yield Diagnosis("ok", f"pytest {pytest_version} is installed")


def _read_workflows(
    repository: ProjectRepository,
) -> tuple[tuple[WorkflowFile, ...], list[Diagnosis]]:
    found: list[WorkflowFile] = []
    problems: list[Diagnosis] = []
    for path in sorted((repository.root / ".github/workflows").glob("*.y*ml")):
        name = path.relative_to(repository.root).as_posix()
        try:
            parsed = parse_workflow(name, path.read_text("utf-8"))
        except LocatedProblem as problem:
            problems.append(Diagnosis("problem", f"it {problem.message}", f"{name}:{problem.line}"))
        except (OSError, UnicodeDecodeError) as error:
            problems.append(Diagnosis("problem", f"it cannot be read: {error}", name))
        else:
            found += [] if parsed is None else [parsed]
    return tuple(found), problems


def _check_workflow(workflow: WorkflowFile, context: _Context) -> Iterator[Diagnosis]:
    problems = [*_check_triggers(workflow, context)]
    for job in workflow.jobs:
        problems += _check_deferred_steps(workflow, job)
        for step in job.steps:
            problems += _check_step(workflow, job, step, context)
    yield from problems
    if not any(one.kind == "problem" for one in problems):
        jobs = ", ".join(repr(job.name) for job in workflow.jobs)
        yield Diagnosis("ok", f"its jobs have what they need: {jobs}", workflow.path)


def _check_deferred_steps(workflow: WorkflowFile, job: EvalJob) -> Iterator[Diagnosis]:
    """Check that a later step publishes the report of each step that does not."""
    for number, step in enumerate(job.steps):
        if step.defers and not any(later.publishes for later in job.steps[number + 1 :]):
            text = "`publish: false`, and no later step of its job publishes the report"
            remedy = "add one with `mode: publish`, or leave the input out"
            yield Diagnosis("problem", f"{text}; {remedy}", f"{workflow.path}:{step.line}")


def _check_triggers(workflow: WorkflowFile, context: _Context) -> Iterator[Diagnosis]:
    triggers, where = workflow.triggers, workflow.path
    if "pull_request_target" in triggers and any(s.mode == "run" for s in _list_steps(workflow)):
        yield Diagnosis(
            "problem",
            "pull_request_target gives the code of forks this repository's token and secrets; "
            "use pull_request, and for forks `agent-eval init --forks`",
            where,
        )
    if "workflow_run" in triggers:
        yield from _check_source_workflow(workflow, context)
    elif not {"pull_request", "pull_request_target", "workflow_call"} & triggers.keys():
        yield Diagnosis("note", "it runs on no pull request, so it gates no merge", where)
    elif "merge_group" not in triggers:
        text = "it does not run on merge_group; a merge queue would wait for its check for ever"
        yield Diagnosis("note", text, where)
    if _wants_artifacts(workflow, context.settings) and not _has_baseline_runs(context):
        branch = context.repository.default_branch
        yield Diagnosis(
            "problem",
            f"its baseline is the artifacts of {branch!r}, and no workflow that uploads them runs "
            f"there; add `push: branches: [{branch}]` to its triggers",
            where,
        )


def _list_steps(workflow: WorkflowFile) -> list[EvalStep]:
    return [step for job in workflow.jobs for step in job.steps]


def _check_source_workflow(workflow: WorkflowFile, context: _Context) -> Iterator[Diagnosis]:
    """Check that the workflow whose runs are published exists."""
    filters = workflow.triggers["workflow_run"]
    wanted = filters.get("workflows") if isinstance(filters, dict) else None
    names = [wanted] if isinstance(wanted, str) else wanted or []
    known = {other.name for other in context.workflows if other.jobs}
    for name in names:
        if name not in known:
            text = (
                f"it waits for runs of {name!r}, which is the name of no workflow that runs the "
                f"suite; these are: {', '.join(sorted(known - {workflow.name})) or 'none'}"
            )
            yield Diagnosis("problem", text, workflow.path)


def _wants_artifacts(workflow: WorkflowFile, settings: Settings) -> bool:
    chosen = [
        step.inputs.get("baseline") or settings.compare.baseline for step in _list_steps(workflow)
    ]
    return ARTIFACT in chosen


def _has_baseline_runs(context: _Context) -> bool:
    """Return whether a workflow that uploads results runs on the default branch."""
    branch = context.repository.default_branch
    for workflow in context.workflows:
        if "push" in workflow.triggers and any(job.artifacts for job in workflow.jobs):
            filters = workflow.triggers["push"]
            wanted = filters.get("branches") if isinstance(filters, dict) else None
            names = [wanted] if isinstance(wanted, str) else wanted
            if names is None or any(fnmatch.fnmatchcase(branch, str(name)) for name in names):
                return True
        if {"schedule", "workflow_dispatch"} & workflow.triggers.keys() and any(
            job.artifacts for job in workflow.jobs
        ):
            return True
    return False


def _check_step(
    workflow: WorkflowFile, job: EvalJob, step: EvalStep, context: _Context
) -> Iterator[Diagnosis]:
    where = f"{workflow.path}:{step.line}"
    yield from _check_permissions(workflow, job, step, context, where)
    if step.mode == "run":
        yield from _check_paths(step.inputs.get("paths", ""), context.repository, where)
        if not job.artifacts:
            text = "its job does not upload the report folder, so nobody can open the report"
            yield Diagnosis(
                "note", f"{text}; add actions/upload-artifact with `if: always()`", where
            )
    config = step.inputs.get("config")
    if config and "$" not in config and not (context.repository.root / config).is_file():
        yield Diagnosis("problem", f"its configuration {config!r} does not exist", where)
    if not step.is_pinned:
        text = f"the action is named by {step.version or 'no version'}; pin it by its commit"
        yield Diagnosis("note", text, where)


def _check_permissions(
    workflow: WorkflowFile, job: EvalJob, step: EvalStep, context: _Context, where: str
) -> Iterator[Diagnosis]:
    needed = _list_permissions(workflow, step, context.settings)
    if job.permissions is None:
        yield from _check_default_permissions(job, needed, context.github, where)
        return
    for scope, right in needed.items():
        given = job.permissions.get(scope, job.permissions.get("*", "none"))
        if given not in {right, "write"}:
            text = f"job {job.name!r} lacks the permission `{scope}: {right}`; add it"
            yield Diagnosis("problem", text, where)


def _check_default_permissions(
    job: EvalJob, needed: Mapping[str, str], github: GitHubSettings | None, where: str
) -> Iterator[Diagnosis]:
    """Check a job that states no permissions; the restricted default reads contents only."""
    default = None if github is None else github.default_permissions
    if not needed or default == "write" or (default == "read" and needed.keys() <= {"contents"}):
        return
    rights = ", ".join(f"{scope}: {right}" for scope, right in needed.items())
    text = f"job {job.name!r} states no permissions, so they are the repository's default"
    if default is None:
        yield Diagnosis("note", f"{text}; it needs {rights}", where)
    else:
        yield Diagnosis("problem", f"{text}, `{default}`; it needs {rights}; add them", where)


def _list_permissions(workflow: WorkflowFile, step: EvalStep, settings: Settings) -> dict[str, str]:
    needed = {"contents": "read"}
    comment = step.inputs.get("comment") or settings.publish.comment
    if step.publishes and comment != "off":
        needed["pull-requests"] = "write"
    if step.publishes and step.inputs.get("check-run", "true").lower() != "false":
        needed["checks"] = "write"
    baseline = step.inputs.get("baseline") or settings.compare.baseline
    takes_over = step.mode == "publish" and "workflow_run" in workflow.triggers
    if step.is_action and (takes_over or (step.mode != "publish" and baseline == ARTIFACT)):
        needed["actions"] = "read"
    return needed


def _check_paths(paths: str, repository: ProjectRepository, where: str) -> Iterator[Diagnosis]:
    for word in split_words(paths):
        if "$" in word:
            continue  # only the runner knows its value
        path = repository.root / word.partition("::")[0]
        if not path.exists():
            yield Diagnosis("problem", f"its path {word!r} does not exist", where)
        elif path.is_dir() and not _has_tests(path):
            yield Diagnosis("problem", f"its path {word!r} contains no test file", where)


def _has_tests(folder: Path) -> bool:
    return any(
        fnmatch.fnmatchcase(name, pattern)
        for _, _, names in os.walk(folder)
        for name in names
        for pattern in _TEST_FILES
    )


def _check_required_checks(context: _Context) -> Iterator[Diagnosis]:
    """Check that the default branch requires each check run that a job may create."""
    names = {
        step.inputs.get("check-name") or context.settings.check_name
        for workflow in context.workflows
        for step in _list_steps(workflow)
        if "checks" in _list_permissions(workflow, step, context.settings)
    }
    branch, github = context.repository.default_branch, context.github
    if github is not None and github.error is not None:
        yield Diagnosis("note", f"GitHub does not say which checks it requires: {github.error}")
    for name in sorted(names):
        if github is None or github.required_checks is None:
            yield Diagnosis("note", f"the check to require for {branch!r} is {name!r}")
        elif name in github.required_checks:
            yield Diagnosis("ok", f"{github.repository} requires {name!r} for {branch!r}")
        else:
            required = ", ".join(map(repr, github.required_checks)) or "nothing"
            yield Diagnosis(
                "problem",
                f"{github.repository} does not require {name!r} for {branch!r}, so that it gates "
                "no merge; require it in the branch's protection rules or in a ruleset "
                f"(required now: {required})",
            )


def count_problems(found: Iterable[Diagnosis]) -> int:
    """Return the number of problems."""
    return sum(one.kind == "problem" for one in found)


def format_diagnoses(found: Sequence[Diagnosis]) -> list[str]:
    """Format the findings as lines, problems last, where they are seen."""
    marks = {"ok": "ok      ", "note": "note    ", "problem": "problem "}
    order = list(marks)
    return [
        f"{marks[one.kind]} {one.where + ': ' if one.where else ''}{one.text}"
        for one in sorted(found, key=lambda one: order.index(one.kind))
    ]
