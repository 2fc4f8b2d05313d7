"""The jobs of a workflow file that run the action, as far as their set-up can be checked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.contract.located_value import LocatedValue
from ci_agent_eval.errors import missing_package_error

_ACTION = re.compile(r"(?:^|/)agent-eval-action(?P<folder>/[\w-]+)?(?:@(?P<version>\S+))?$")
_COMMAND = re.compile(r"\bagent-eval (?P<command>run|report|publish)\b(?P<arguments>[^\n]*)")
_WORD = re.compile(r"(?:\$\{\{.*?\}\}|\S)+")
_UPLOAD = "actions/upload-artifact@"
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class EvalStep:
    """A step that runs the action, or a command of agent-eval."""

    line: int
    mode: str
    """`run`, `report` or `publish`."""
    inputs: Mapping[str, str]
    version: str | None = None
    """The version of the action; None for a command."""

    @property
    def is_action(self) -> bool:
        """Whether it runs the action, which also publishes."""
        return self.version is not None

    @property
    def publishes(self) -> bool:
        """Whether it publishes comment and check run."""
        if self.defers or self.inputs.get("shard"):
            return False
        return self.is_action or self.mode == "publish"

    @property
    def defers(self) -> bool:
        """Whether it leaves publishing to a later step."""
        return self.is_action and self.inputs.get("publish", "true").lower() == "false"

    @property
    def is_pinned(self) -> bool:
        """Whether the action is named by its commit."""
        return self.version is None or _COMMIT.fullmatch(self.version) is not None


@dataclass(frozen=True, slots=True)
class EvalJob:
    """A job with such steps."""

    name: str
    line: int
    steps: tuple[EvalStep, ...]
    permissions: Mapping[str, str] | None
    """Rights of the token by scope; None: the repository's default."""
    artifacts: tuple[str, ...]
    """Names of the uploaded archives."""


@dataclass(frozen=True, slots=True)
class WorkflowFile:
    """A workflow file with such jobs."""

    path: str
    name: str
    triggers: Mapping[str, Any]
    """Events with their filters."""
    jobs: tuple[EvalJob, ...]


def parse_workflow(path: str, text: str) -> WorkflowFile | None:
    """Parse a workflow file; None if it is no mapping.

    Raises LocatedProblem for invalid YAML, and InputError without PyYAML.
    """
    try:
        from ci_agent_eval.contract.located_yaml import (  # noqa: PLC0415 - PyYAML is optional
            parse_located_yaml,
        )
    except ModuleNotFoundError as error:
        raise missing_package_error("reading workflows", str(error.name), "checks") from error
    document = parse_located_yaml(text)
    if document is None or not isinstance(document.value, Mapping):
        return None
    plain = document.to_plain()
    jobs = document.value.get("jobs")
    entries = jobs.value.items() if jobs and isinstance(jobs.value, Mapping) else ()
    shared = _read_permissions(plain.get("permissions"))
    parsed = tuple(_read_job(key, job, shared) for key, job in entries)
    return WorkflowFile(
        path,
        str(plain.get("name") or path),
        _read_triggers(plain.get("on")),
        tuple(job for job in parsed if job.steps),
    )


def _read_triggers(value: Any) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    names = [value] if isinstance(value, str) else value
    return {str(name): None for name in names or ()}


def _read_permissions(value: Any) -> Mapping[str, str] | None:
    if value == "write-all":
        return {"*": "write"}
    if value == "read-all":
        return {"*": "read"}
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, dict) else None


def _read_job(key: str, job: LocatedValue, shared: Mapping[str, str] | None) -> EvalJob:
    plain = job.to_plain() if isinstance(job.value, Mapping) else {}
    own = _read_permissions(plain["permissions"]) if "permissions" in plain else shared
    steps = job.value.get("steps") if isinstance(job.value, Mapping) else None
    items = steps.value if steps and isinstance(steps.value, tuple) else ()
    return EvalJob(
        str(plain.get("name") or key),
        job.line,
        tuple(found for item in items for found in _iterate_steps(item)),
        own,
        tuple(_iterate_artifacts(plain.get("steps"))),
    )


def _iterate_steps(item: LocatedValue) -> Iterator[EvalStep]:
    step = item.to_plain()
    if not isinstance(step, dict):
        return
    used = _ACTION.search(str(step.get("uses") or ""))
    if used:
        given = step.get("with")
        inputs = {k: str(v) for k, v in given.items()} if isinstance(given, dict) else {}
        mode = inputs.get("mode", "report" if used["folder"] == "/report" else "run")
        yield EvalStep(item.line, mode, inputs, used["version"] or "")
    for command in _COMMAND.finditer(str(step.get("run") or "")):
        yield EvalStep(item.line, command["command"], _read_arguments(command["arguments"]))


def split_words(text: str) -> list[str]:
    """Return the words of a text; an expression of GitHub (`${{ … }}`) is in one word."""
    return _WORD.findall(text)


def _read_arguments(text: str) -> Mapping[str, str]:
    """Return the options of a command line, and its other words as `paths`."""
    words = split_words(text.split(" -- ", maxsplit=1)[0])
    inputs: dict[str, str] = {}
    paths: list[str] = []
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            name, has_value, value = word[2:].partition("=")
            is_option = bool(words) and not words[0].startswith("-")
            inputs[name] = value if has_value else words.pop(0) if is_option else "true"
        else:
            paths.append(word)
    return {"paths": " ".join(paths), **inputs}


def _iterate_artifacts(steps: Any) -> Iterator[str]:
    for step in steps if isinstance(steps, list) else ():
        if isinstance(step, dict) and str(step.get("uses") or "").startswith(_UPLOAD):
            given = step.get("with")
            inputs = given if isinstance(given, dict) else {}
            if str(inputs.get("archive", True)).lower() != "false":
                yield str(inputs.get("name", "artifact"))
