"""Publication of one check run: each annotation once, and always completed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ci_agent_eval.errors import PublishError
from ci_agent_eval.github.api import CheckRun, Json
from ci_agent_eval.github.api_errors import AmbiguousWriteError
from ci_agent_eval.github.publication import Conclusion, PublishedPart
from ci_agent_eval.github.retries import Log, retry_ambiguous
from ci_agent_eval.render.escape import code_span

if TYPE_CHECKING:
    from ci_agent_eval.github.client import GitHubApi

BATCH_SIZE = 50
"""GitHub's maximum number of annotations per request."""

SUMMARY_BYTES = 65_535
"""GitHub's maximum size of a summary."""

_PREFIX = "agent-eval:"

_INCOMPLETE = ":incomplete"

OTHER_JOB_FAILED = (
    "Another job of this workflow run failed under the same name; give each job its own suite."
)


@dataclass(frozen=True, slots=True)
class CheckRunContent:
    """The content of a check run."""

    name: str
    head_sha: str
    title: str
    summary: str
    conclusion: Conclusion
    annotations: tuple[Json, ...] = ()
    """In the format of GitHub's API, in display order."""
    details_url: str | None = None
    attempt: str = ""
    """Id and attempt of the workflow run, such as `42.1`; empty: unknown."""

    @property
    def output(self) -> Json:
        """Title and summary; every request must repeat them, or GitHub drops them."""
        return {"title": self.title, "summary": self.summary}

    @property
    def external_id(self) -> str:
        """A hash of the content, and the attempt that published it."""
        fields = {**asdict(self), "attempt": ""}
        content = json.dumps(fields, sort_keys=True, ensure_ascii=True)
        own = _PREFIX + hashlib.sha256(content.encode()).hexdigest()[:40]
        return f"{own}:{self.attempt}" if self.attempt else own


OnOpen = Callable[[str, bool], None]
"""Receives the address of the check run's page (empty: unknown), and whether another job of the
same attempt has failed under its name.
"""


def _do_nothing(_page: str, _failed: bool) -> None:
    """Ignore the page."""


def publish_check_run(
    api: GitHubApi, content: CheckRunContent, log: Log, on_open: OnOpen = _do_nothing
) -> PublishedPart:
    """Ensure one completed check run with this content on the commit.

    `on_open` is called before the annotations are sent, which may take minutes; never if no check
    run was opened.

    Raises PublishError; NotAllowedError only if nothing was opened. Other exceptions, such as for a
    signal, are re-raised after an open check run of this content is completed.
    """
    try:
        return _publish_content(api, content, log, on_open)
    except PublishError:
        raise
    except BaseException as error:
        _tidy_up(api, content, error)
        raise


def _publish_content(
    api: GitHubApi, content: CheckRunContent, log: Log, on_open: OnOpen
) -> PublishedPart:
    found = _select_own(api.check_runs_of(content.head_sha, content.name))
    if found and _is_published(found[-1], content):
        sentence = "The check run already says this; it was not written again."
        on_open(found[-1].url, bool(_find_failed_jobs(found, content)))
        supersede_older(api, found[-1], found, log)
        return PublishedPart("check run", "unchanged", sentence, found[-1].url or None)
    run = _find_unfinished(found, content)
    try:
        if run is None:
            run = _open_check_run(api, content)
        on_open(run.url, bool(_find_failed_jobs(found, content)))
        _send_annotations(api, run, content)
        conclude_check_run(api, run, content.conclusion, content.external_id, content.output)
    except PublishError as error:
        if run is None and not isinstance(error, AmbiguousWriteError):
            raise
        raise PublishError(
            f"{error} {_complete_as_failed(api, run, content, str(error))}"
        ) from error
    supersede_older(api, run, found, log)
    sentence = _agree_with_other_jobs(api, run, content)
    return PublishedPart("check run", "created", sentence, run.url or None)


def _agree_with_other_jobs(api: GitHubApi, run: CheckRun, content: CheckRunContent) -> str:
    """Lower the check run if another job of the attempt failed under its name; return the result.

    The newest check run counts, so a failed job lowers those that passed after it began. Of two
    jobs, whichever looks last sees both conclusions.
    """
    if not content.attempt:
        return "Published the check run."
    runs = _select_own(api.check_runs_of(content.head_sha, content.name))
    if content.conclusion == "failure":
        for other in _select_other_jobs(runs, content):
            if other.id > run.id and other.conclusion == "success":
                conclude_check_run(api, other, "failure", other.external_id, _lower(""))
    elif _find_failed_jobs(runs, content):
        lowered = _lower(content.summary)
        conclude_check_run(api, run, "failure", content.external_id, lowered)
        return f"Published the check run as failed. {OTHER_JOB_FAILED}"
    return "Published the check run."


def _select_other_jobs(runs: Sequence[CheckRun], content: CheckRunContent) -> list[CheckRun]:
    """Return the completed check runs of the same attempt with other content."""
    if not content.attempt:
        return []
    ids = {run.id: run.external_id.removesuffix(_INCOMPLETE) for run in runs}
    return [
        run
        for run in runs
        if run.status == "completed"
        and ids[run.id] != content.external_id
        and ids[run.id].endswith(f":{content.attempt}")
    ]


def _find_failed_jobs(runs: Sequence[CheckRun], content: CheckRunContent) -> list[CheckRun]:
    return [run for run in _select_other_jobs(runs, content) if run.conclusion == "failure"]


def _lower(summary: str) -> Json:
    """Return the output of a check run that fails for another job, with its summary if it fits."""
    whole = f"{OTHER_JOB_FAILED}\n\n{summary}"
    fits = len(whole.encode("utf-8", "backslashreplace")) <= SUMMARY_BYTES
    return {
        "title": "Another job failed under this name",
        "summary": whole if fits else OTHER_JOB_FAILED,
    }


def _tidy_up(api: GitHubApi, content: CheckRunContent, error: BaseException) -> None:
    """Complete an open check run before the process ends; add a note about it to the error."""
    why = f"Publishing was cut short by {str(error) or type(error).__name__}."
    try:
        error.add_note(_complete_as_failed(api, None, content, why, looks=2))
    except BaseException as late:
        late.add_note(
            "A check run may stand in progress: the time to complete it was too short. "
            "Publish the same results again to complete it."
        )
        raise


def _select_own(runs: Sequence[CheckRun]) -> list[CheckRun]:
    """Return this program's check runs, oldest first; the newest counts."""
    return sorted(
        (run for run in runs if run.external_id.startswith(_PREFIX)), key=lambda run: run.id
    )


def _is_published(run: CheckRun, content: CheckRunContent) -> bool:
    return (run.external_id, run.status, run.conclusion) == (
        content.external_id,
        "completed",
        content.conclusion,
    )


def _find_unfinished(runs: Sequence[CheckRun], content: CheckRunContent) -> CheckRun | None:
    """Return a check run of this content that a killed run left open."""
    open_runs = [run for run in runs if run.status != "completed"]
    return next((run for run in open_runs if run.external_id == content.external_id), None)


def _open_check_run(api: GitHubApi, content: CheckRunContent) -> CheckRun:
    body = {
        "name": content.name,
        "head_sha": content.head_sha,
        "status": "in_progress",
        "external_id": content.external_id,
        "output": content.output,
    }
    if content.details_url is not None:
        body["details_url"] = content.details_url

    def attempt(number: int) -> CheckRun:
        runs = api.check_runs_of(content.head_sha, content.name) if number else ()
        opened = _find_unfinished(runs, content)
        return opened or api.send_check_run(None, body, "create the check run")

    return retry_ambiguous(attempt, api.wait)


def _send_annotations(api: GitHubApi, run: CheckRun, content: CheckRunContent) -> None:
    """Send the missing annotations in batches."""
    sent = run.annotations_count
    while sent < len(content.annotations):
        sent = _send_batch(api, run.id, content, sent)


def _send_batch(api: GitHubApi, run_id: int, content: CheckRunContent, sent: int) -> int:
    """Send the batch after the first `sent`; return the new number of sent annotations.

    GitHub's count lags behind, so it is read only after an ambiguous failure of a batch.
    """
    batch = content.annotations[sent : sent + BATCH_SIZE]
    body = {"output": {**content.output, "annotations": list(batch)}}

    def attempt(number: int) -> int:
        there = api.check_run(run_id).annotations_count if number else sent
        if there > sent:
            return there
        api.send_check_run(run_id, body, "add annotations to the check run")
        return sent + len(batch)

    return retry_ambiguous(attempt, api.wait)


def _complete_as_failed(
    api: GitHubApi, run: CheckRun | None, content: CheckRunContent, why: str, *, looks: int = 1
) -> str:
    """Complete an incomplete check run as failed, so that it never passes a required check.

    If it is unknown whether one was opened, `run` is None and it is searched `looks` times. Returns
    a sentence about the result.
    """
    try:
        run = run or _find_opened(api, content, looks)
        if run is None:
            return "No check run of these results is in progress."
        conclude_check_run(
            api,
            run,
            "failure",
            f"{content.external_id}{_INCOMPLETE}",
            _build_failure_output(content, why),
        )
    except PublishError as error:
        which = f"Check run {run.id} still stands" if run else "A check run may stand"
        return (
            f"{which} in progress, and could not be completed ({error}) "
            "Publish the same results again to complete it."
        )
    return "The check run was completed as failed and says why."


def _find_opened(api: GitHubApi, content: CheckRunContent, looks: int) -> CheckRun | None:
    """Search for an open check run; repeat after a second, as it may appear late."""
    for number in range(looks):
        if number:
            api.wait(1.0, "A check run may be about to appear")
        try:
            run = _find_unfinished(
                _select_own(api.check_runs_of(content.head_sha, content.name)), content
            )
        except PublishError:
            if number == looks - 1:
                raise
        else:
            if run is not None:
                return run
    return None


def _build_failure_output(content: CheckRunContent, why: str) -> Json:
    """Return the output that explains the failure, with the summary if it fits."""
    note = (
        f"This check run could not be published completely, so it fails: "
        f"{code_span(why, limit=600)}\n\n"
        f"The verdict itself was: {content.conclusion}. The step summary has all of it."
    )
    whole = f"{note}\n\n{content.summary}"
    fits = len(whole.encode("utf-8", "backslashreplace")) <= SUMMARY_BYTES
    return {
        "title": f"Not published completely: {content.title}"[:255],
        "summary": whole if fits else note,
    }


_SUPERSEDED = {
    "title": "Superseded by a later run",
    "summary": "The run that opened this check run ended before it could complete it. "
    "The newest check run of this name tells how this commit stands.",
}


def conclude_check_run(
    api: GitHubApi, run: CheckRun, conclusion: Conclusion, external_id: str, output: Json
) -> None:
    """Complete a check run; raises PublishError.

    The write is retried without a read: it is idempotent, and a refused read would leave the check
    run in progress.
    """
    body = {
        "status": "completed",
        "conclusion": conclusion,
        "external_id": external_id,
        "output": output,
    }
    action = "complete the check run"
    retry_ambiguous(lambda _number: api.send_check_run(run.id, body, action), api.wait)


def supersede_older(api: GitHubApi, run: CheckRun, before: Sequence[CheckRun], log: Log) -> None:
    """Complete, as failed, the check runs older than `run` that are still in progress.

    `before` are this program's check runs of this name on the commit when publishing began.
    Those of another app are left alone. Failures are only logged, because `run` is the newest
    and counts.
    """
    is_new = all(one.id != run.id for one in before)
    for old in before:
        is_open = old.status != "completed" and old.app_id == run.app_id
        if is_open and (is_new or old.id < run.id):
            _supersede_one(api, old, log)


def _supersede_one(api: GitHubApi, old: CheckRun, log: Log) -> None:
    try:
        # Marked, so that no other job of its attempt takes this for its verdict.
        conclude_check_run(api, old, "failure", f"{old.external_id}:superseded", _SUPERSEDED)
    except PublishError as error:
        log("warning", f"Check run {old.id} of an earlier run may still be in progress. {error}")
    else:
        log("notice", f"Completed check run {old.id}, which an earlier run had left in progress.")
