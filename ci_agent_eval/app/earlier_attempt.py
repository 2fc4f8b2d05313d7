"""Download what an earlier attempt at a workflow's job has left, to continue it.

Only an artifact of this very run is used, which GitHub says: a folder of the checkout may be the
change's own, and an artifact of another run a fork's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from ci_agent_eval.app.report_publication import create_github_connector
from ci_agent_eval.config.inputs import ActionInputs
from ci_agent_eval.contract.results import SESSION_NAME
from ci_agent_eval.errors import AgentEvalError, InputError
from ci_agent_eval.github.artifacts import fetch_artifacts, is_attempt_data, list_artifacts
from ci_agent_eval.github.event import Event
from ci_agent_eval.github.retries import Log
from ci_agent_eval.github.workflow_runs import RunsApi


@contextmanager
def download_earlier_attempt(
    inputs: ActionInputs, event: Event, environ: Mapping[str, str], log: Log
) -> Iterator[Path | None]:
    """Yield the report folder of the job's earlier attempt; None: everything has to run.

    In a first attempt there is none. A folder that cannot be downloaded is logged as a warning.
    """
    name = inputs.resume_artifact
    if name is None or environ.get("GITHUB_RUN_ATTEMPT", "1") == "1":
        yield None
        return
    with TemporaryDirectory(prefix="agent-eval-") as folder:
        into: Path | None = Path(folder)
        try:
            _download(inputs.token, event, name, Path(folder), log)
        except AgentEvalError as error:
            log("warning", f"resume-artifact: everything runs, because {error}")
            into = None
        yield into


def _download(token: str, event: Event, name: str, into: Path, log: Log) -> None:
    connect = create_github_connector(event, token, log)
    if connect is None or event.run_id is None:
        raise InputError("there is no token to read artifacts with; pass `github-token`")
    with connect() as api:
        fetch_attempt(api, event.run_id, event.head_sha, name, into)


def fetch_attempt(api: RunsApi, run_id: int, head_sha: str, name: str, into: Path) -> None:
    """Write a run's artifact of a report folder to `into`. Raises InputError and PublishError."""
    found = [one for one in list_artifacts(api, run_id, escape(name)) if not one.is_expired]
    if len(found) != 1:
        raise InputError(f"this run has {len(found)} artifacts {name!r} of earlier attempts, not 1")
    fetch_artifacts(api, found, into, run_id=run_id, head_sha=head_sha, wanted=is_attempt_data)
    if not (into / SESSION_NAME).is_file():
        raise InputError(
            f"artifact {name!r} holds no {SESSION_NAME}; upload the report folder itself"
        )
