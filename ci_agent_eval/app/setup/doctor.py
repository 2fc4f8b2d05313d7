"""`agent-eval doctor`: the problems of a repository's set-up, each with its remedy."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from ci_agent_eval.app.setup.repository import ProjectRepository
from ci_agent_eval.config.options import Settings
from ci_agent_eval.config.settings import has_settings_file, load_settings
from ci_agent_eval.contract.located_value import LocatedProblem
from ci_agent_eval.errors import AgentEvalError, PublishError, missing_package_error
from ci_agent_eval.runner.interpreter import find_suite_python, inspect_interpreter

PATIENCE_S = 20.0
"""Longest wait for rate limits and errors of the server."""


@dataclass(frozen=True, slots=True)
class GitHubSettings:
    """The settings, as far as the token may read them."""

    repository: str
    """`owner/name`."""
    required_checks: tuple[str, ...] | None = None
    """The checks that the default branch requires; None: unknown."""
    error: str | None = None
    """Why they could not be read."""


def read_github_settings(
    repository: ProjectRepository, environ: Mapping[str, str]
) -> GitHubSettings | None:
    """Ask GitHub about the repository; None without GITHUB_TOKEN or a repository there."""
    server = environ.get("GITHUB_SERVER_URL") or "https://github.com"
    name = environ.get("GITHUB_REPOSITORY") or repository.find_github_name(urlsplit(server).netloc)
    token = environ.get("GITHUB_TOKEN")
    if not token or not name:
        return None
    # Importing PyGithub takes a third of a second.
    from ci_agent_eval.github import client  # noqa: PLC0415 - see above

    api_url = environ.get("GITHUB_API_URL") or "https://api.github.com"
    connection = client.Connection(name, token, api_url, patience_s=PATIENCE_S)
    try:
        with client.open_api(
            connection, sleep=time.sleep, clock=time.time, log=lambda *_: None
        ) as api:
            return GitHubSettings(name, tuple(api.required_checks(repository.default_branch)))
    except PublishError as error:
        return GitHubSettings(name, error=str(error))


_ACTION = re.compile(r"(?:^|/)agent-eval-action(?P<folder>/[\w-]+)?(?:@|$)")
_COMMAND = re.compile(r"\bagent-eval (?P<command>run|report|publish)\b")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding about the set-up."""

    kind: Literal["ok", "problem", "note"]
    text: str
    where: str = ""
    """Path, if it is about a file."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A step that runs the action, or a command of agent-eval."""

    mode: str
    """`run`, `report` or `publish`."""
    is_action: bool
    inputs: Mapping[str, str]

    @property
    def publishes(self) -> bool:
        """Whether it publishes comment and check run; else a later step does, or another job."""
        if self.inputs.get("publish", "true").lower() == "false" or self.inputs.get("shard"):
            return False
        return self.is_action or self.mode == "publish"


@dataclass(frozen=True, slots=True)
class _Job:
    """A job with such steps."""

    workflow: str
    name: str
    permissions: Mapping[str, str] | None
    """Rights of the token by scope; None: the repository's default."""
    steps: tuple[_Step, ...]
    takes_over: bool
    """Whether it publishes the results of another workflow."""


def diagnose(
    repository: ProjectRepository,
    environ: Mapping[str, str],
    github: GitHubSettings | None = None,
) -> list[Diagnosis]:
    """Check the settings, the jobs' permissions and the required check of a repository.

    `github` are its settings there; without them only its files are checked.
    """
    found = [_check_interpreter(environ)]
    try:
        settings = load_settings(root=repository.folder, environ=environ, flags={})
    except AgentEvalError as error:
        return [*found, Diagnosis("problem", str(error), "settings")]
    if has_settings_file(repository.folder):
        found.append(Diagnosis("ok", "the settings are valid"))
    else:
        found.append(Diagnosis("note", "there is no file of settings, so the defaults apply"))
    jobs: list[_Job] = []
    for path in sorted((repository.root / ".github/workflows").glob("*.y*ml")):
        name = path.relative_to(repository.root).as_posix()
        try:
            jobs += _read_jobs(name, path.read_text("utf-8"))
        except LocatedProblem as problem:
            found.append(Diagnosis("problem", f"it {problem.message}", f"{name}:{problem.line}"))
        except (OSError, UnicodeDecodeError) as error:
            found.append(Diagnosis("problem", f"it cannot be read: {error}", name))
    if not jobs:
        text = "no workflow runs the suite; write one with `agent-eval init`"
        return [*found, Diagnosis("problem", text, ".github/workflows")]
    found += [_check_permissions(job, settings) for job in jobs]
    return [*found, *_check_required_checks(jobs, settings, repository.default_branch, github)]


def _check_interpreter(environ: Mapping[str, str]) -> Diagnosis:
    python = find_suite_python(environ)
    try:
        interpreter = inspect_interpreter(python, environ)
        interpreter.require_suite_support()
    except AgentEvalError as error:
        return Diagnosis("problem", str(error))
    return Diagnosis("ok", f"{python} has pytest {interpreter.packages['pytest']}")


def _read_jobs(path: str, text: str) -> Iterator[_Job]:
    """Yield the jobs of a workflow that use agent-eval.

    Raises LocatedProblem for invalid YAML, and InputError without PyYAML.
    """
    try:
        from ci_agent_eval.contract.located_yaml import (  # noqa: PLC0415 - PyYAML is optional
            parse_located_yaml,
        )
    except ModuleNotFoundError as error:
        raise missing_package_error("reading workflows", str(error.name), "checks") from error
    document = parse_located_yaml(text)
    workflow = _get_mapping(None if document is None else document.to_plain())
    for key, value in _get_mapping(workflow.get("jobs")).items():
        job = _get_mapping(value)
        steps = job.get("steps")
        found = tuple(
            step
            for given in (steps if isinstance(steps, list) else ())
            for step in _find_steps(given)
        )
        if found:
            yield _Job(
                path,
                str(job.get("name") or key),
                _read_permissions(job.get("permissions", workflow.get("permissions"))),
                found,
                takes_over="workflow_run" in (workflow.get("on") or ()),
            )


def _get_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _read_permissions(value: Any) -> Mapping[str, str] | None:
    if isinstance(value, str):  # read-all or write-all
        return {"*": value.removesuffix("-all")}
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, dict) else None


def _find_steps(given: Any) -> Iterator[_Step]:
    step = _get_mapping(given)
    if used := _ACTION.search(str(step.get("uses") or "")):
        inputs = {name: str(value) for name, value in _get_mapping(step.get("with")).items()}
        mode = inputs.get("mode", "report" if used["folder"] == "/report" else "run")
        yield _Step(mode, True, inputs)
    for command in _COMMAND.finditer(str(step.get("run") or "")):
        yield _Step(command["command"], False, {})


def _check_permissions(job: _Job, settings: Settings) -> Diagnosis:
    needed: dict[str, str] = {}
    for step in job.steps:
        needed |= _list_permissions(job, step, settings)
    if job.permissions is None:
        rights = ", ".join(f"{scope}: {right}" for scope, right in needed.items())
        text = f"job {job.name!r} states no permissions; it needs {rights}"
        return Diagnosis("note", text, job.workflow)
    lacking = [
        f"`{scope}: {right}`"
        for scope, right in needed.items()
        if job.permissions.get(scope, job.permissions.get("*")) not in {right, "write"}
    ]
    if lacking:
        text = f"job {job.name!r} lacks the permission {' and '.join(lacking)}; add it"
        return Diagnosis("problem", text, job.workflow)
    return Diagnosis("ok", f"job {job.name!r} has the permissions it needs", job.workflow)


def _list_permissions(job: _Job, step: _Step, settings: Settings) -> dict[str, str]:
    needed = {"contents": "read"}
    if step.publishes and (step.inputs.get("comment") or settings.publish.comment) != "off":
        needed["pull-requests"] = "write"
    if step.publishes and step.inputs.get("check-run", "true").lower() != "false":
        needed["checks"] = "write"
    baseline = step.inputs.get("baseline") or settings.compare.baseline
    reads_baseline = step.mode != "publish" and baseline == "artifact"
    if step.is_action and (reads_baseline or (job.takes_over and step.mode == "publish")):
        needed["actions"] = "read"
    return needed


def _check_required_checks(
    jobs: Sequence[_Job], settings: Settings, branch: str, github: GitHubSettings | None
) -> Iterator[Diagnosis]:
    """Check that the default branch requires each check run that a job may create."""
    names = {
        step.inputs.get("check-name") or settings.check_name
        for job in jobs
        for step in job.steps
        if "checks" in _list_permissions(job, step, settings)
    }
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
