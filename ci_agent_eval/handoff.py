"""The hand-off: results of an unprivileged run, taken over by a job that may publish them.

The run's code, its workflow file and its artifacts may all be a stranger's. Believed is what
GitHub says: which run it was, of which commit. What the artifacts hold is data: only files
that a run of the suite leaves are taken, and what they say is read, judged and rendered anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ci_agent_eval.artifacts import fetch, is_data, list_artifacts
from ci_agent_eval.contract.findings import Finding
from ci_agent_eval.contract.problems import describe_problem
from ci_agent_eval.contract.results import SESSION_NAME, Session
from ci_agent_eval.errors import InputError
from ci_agent_eval.publish.api import Api
from ci_agent_eval.publish.check_run import CheckRunContent, publish_check_run
from ci_agent_eval.publish.event import Event, SourceRun
from ci_agent_eval.publish.failures import one_line
from ci_agent_eval.publish.plan import Part
from ci_agent_eval.publish.runs import RunsApi
from ci_agent_eval.publish.waiting import Log
from ci_agent_eval.render.escape import code_span

_LARGEST_SESSION = 16 * 1024 * 1024
_TITLE = "The results were refused"


def source_of(event: Event) -> SourceRun:
    """Return the run whose results are to be published; raises InputError where there is none."""
    if event.source is None:
        raise InputError(
            f"mode publish: this run was started by {event.name}; it publishes what another "
            "workflow run left, so start it `on: workflow_run` (docs/forks.md)"
        )
    if event.source.conclusion is None:
        raise InputError(
            f"mode publish: run {event.source.id} has not ended; start this workflow "
            "with `types: [completed]`"
        )
    return event.source


def take_over(api: RunsApi, event: Event, *, name: str, into: Path) -> None:
    """Write the data of the source run's artifacts of that name below `into`, an empty folder.

    Raises InputError, whose sentence is fit to be published, where anything about them is not
    as it must be; nothing is to be used then. Raises PublishError where they cannot be had.
    """
    source = source_of(event)
    artifacts = list_artifacts(api, source.id, name)
    if not artifacts:
        raise InputError(
            f"run {source.id} left no artifact {name}; see what it says, and let it upload the "
            "report folder with `if: always()`"
        )
    expired = next((one for one in artifacts if one.is_expired), None)
    if expired is not None:
        shown = one_line(expired.name)
        raise InputError(f"artifact {shown} of run {source.id} has expired; run it again")
    fetch(api, artifacts, into, run_id=source.id, head_sha=event.head_sha, wanted=is_data)
    _check_sessions(into, event.head_sha)


def _check_sessions(folder: Path, head_sha: str) -> None:
    """Hold every run that was taken over against the commit that GitHub ran it for."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    if not files:
        raise InputError("the artifact holds no results; upload the report folder as it is")
    for file in files:
        owner = file.parent.parent if file.suffix == ".jsonl" else file.parent
        if not (owner / SESSION_NAME).is_file():
            shown = _shown(file, folder)
            raise InputError(f"{shown}: no {SESSION_NAME} says which commit it is about")
    for file in files:
        if file.name == SESSION_NAME:
            _check_commit(file, _shown(file, folder), head_sha)


def _check_commit(file: Path, shown: str, head_sha: str) -> None:
    with file.open("rb") as opened:
        text = opened.read(_LARGEST_SESSION)
    try:
        session = Session.model_validate_json(text)
    except ValueError as error:  # pydantic's errors are such
        raise InputError(f"{shown}: {one_line(describe_problem(error))}") from None
    if session.commit is None:
        raise InputError(f"{shown}: it names no commit; use the same version in both workflows")
    if session.commit != head_sha:
        other = one_line(session.commit)
        raise InputError(f"{shown}: it is about commit {other}, the run about {head_sha}")


def _shown(file: Path, folder: Path) -> str:
    """Name a file as its archive does, below the number of its archive where there are several."""
    return one_line(file.relative_to(folder).as_posix())


def check_read(findings: Iterable[Finding]) -> None:
    """Raise InputError where a file that was taken over could not be read to its end."""
    for finding in findings:
        if finding.kind == "unreadable_file":
            raise InputError(one_line(f"{finding.where}: {finding.message}"))


def refuse(api: Api, event: Event, sentence: str, *, check_name: str, log: Log) -> Part:
    """Publish a failed check run with the sentence of a refusal; raises PublishError."""
    content = CheckRunContent(
        name=check_name,
        head_sha=event.head_sha,
        title=_TITLE,
        summary=f"{_TITLE}, and nothing of them is published: {code_span(sentence, limit=900)}",
        conclusion="failure",
        details_url=event.run_url,
    )
    return publish_check_run(api, content, log)
