"""Workflow runs and artifacts through the door: every call goes wrong in every way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ci_agent_eval.errors import PublishError
from ci_agent_eval.github.api_errors import GoneError, NotAllowedError
from ci_agent_eval.github.artifacts import list_artifacts
from ci_agent_eval.github.client import Connection, GitHubApi
from ci_agent_eval.github.download import DownloadTerms, is_allowed_address
from ci_agent_eval.github.download import download_to_file as download_file
from ci_agent_eval.github.retries import WaitBudget
from tests.github_fake import PASSING_FAULTS, FaultKind
from tests.integration.github.rig import REPO, SHA, TOKEN, Rig
from tests.tables import each_row

ARCHIVE = b"PK" + bytes(range(256)) * 9000


def call(rig: Rig, do: Callable[[GitHubApi], Any], **connection: Any) -> Any:
    link = Connection(REPO, TOKEN, rig.fake.url, timeout_s=5, **connection)
    with rig.connect(link) as api:
        return do(api)


def stored(rig: Rig, **fields: Any) -> Any:
    run = rig.fake.add_workflow_run(REPO, head_sha=SHA)
    kept = rig.fake.add_artifact(REPO, run.id, "agent-eval-report", **{"data": ARCHIVE, **fields})
    (artifact,) = call(rig, lambda api: api.artifacts_of_run(run.id, limit=5))
    assert (artifact.id, artifact.run_id, artifact.head_sha) == (kept.id, run.id, SHA)
    return artifact


def download(rig: Rig, artifact: Any, *, largest: int = 10 << 20, **connection: Any) -> bytes:
    into = rig.folder / "archive.zip"
    call(rig, lambda api: api.download_artifact(artifact, into, largest=largest), **connection)
    return into.read_bytes()


def test_a_run_and_the_last_that_ended(rig: Rig):
    add = rig.fake.add_workflow_run
    first = add(REPO)
    failed = add(REPO, conclusion="failure")
    add(REPO, conclusion=None)
    add(REPO, head_branch="topic")
    add(REPO, workflow_id=2)
    fork = add(REPO, event="pull_request", head_repo="mallory/shop")
    last = add(REPO, event="schedule")
    found = call(rig, lambda api: api.completed_runs(1, "main", limit=10))
    assert [run.id for run in found] == [last.id, fork.id, failed.id, first.id]
    assert [run.head_repository for run in found] == [REPO, "mallory/shop", REPO, REPO]
    assert len(call(rig, lambda api: api.completed_runs(1, "main", limit=2))) == 2
    assert call(rig, lambda api: api.workflow_run(fork.id)) == found[1]


def test_the_newest_artifact_of_a_name_may_have_the_lower_id(rig: Rig):
    run = rig.fake.add_workflow_run(REPO, head_sha=SHA)
    older = rig.fake.add_artifact(REPO, run.id, "report", data=ARCHIVE)
    newer = rig.fake.add_artifact(REPO, run.id, "report", data=ARCHIVE)
    older.id, newer.id = 5000, 4000
    (artifact,) = call(rig, lambda api: list_artifacts(api, run.id, "*"))
    assert artifact.id == newer.id


def test_pull_requests_of_a_forks_branch(rig: Rig):
    rig.fake.add_pull(REPO, 8, SHA, head_repo="mallory/shop", head_ref="a b/ü&head=x")
    rig.fake.add_pull(REPO, 9, SHA, head_repo="mallory/shop", head_ref="fix", state="closed")
    (pull,) = call(rig, lambda api: api.pulls_of_branch("mallory", "a b/ü&head=x"))
    assert (pull.number, pull.head_repository, pull.base_branch) == (8, "mallory/shop", "main")
    assert call(rig, lambda api: api.pulls_of_branch("mallory", "fix")) == []


def test_a_download_without_our_token_at_the_storage(rig: Rig):
    """That the storage saw no token is held by the fake: it would be a violation."""
    assert download(rig, stored(rig)) == ARCHIVE
    assert [request.path for request in rig.fake.requests][-1].startswith("/_storage/")


@pytest.mark.parametrize("kind", PASSING_FAULTS)
@pytest.mark.parametrize("on", ["GET */zip", "GET /_storage/*"])
def test_a_download_outlasts_what_goes_over(rig: Rig, kind: FaultKind, on: str):
    artifact = stored(rig)
    rig.fake.faults.add(kind, on=on)
    assert download(rig, artifact) == ARCHIVE
    # A signed address is answered in headers: there is no middle to cut it in.
    assert sum(rig.naps) > 0 or (kind, on) == ("cut_halfway", "GET */zip")
    assert "sig=" not in rig.everything_said()


@pytest.mark.parametrize("on", ["GET */zip", "GET /_storage/*"])
def test_a_download_gives_up(rig: Rig, on: str):
    artifact = stored(rig)
    rig.fake.faults.add("server_error", on=on, times=None)
    with pytest.raises(PublishError) as caught:
        download(rig, artifact)
    assert "5 times" in str(caught.value)
    assert "sig=" not in str(caught.value) + rig.everything_said()
    assert len([one for one in rig.fake.requests if one.fault]) == 5


def test_waiting_is_bounded(rig: Rig):
    artifact = stored(rig)
    rig.fake.faults.add("forbidden_retry_after", on="GET */zip", retry_after=4000)
    with pytest.raises(PublishError, match="this run may wait 10 s in all"):
        download(rig, artifact, patience_s=10)


def test_a_token_that_may_not(rig: Rig):
    artifact = stored(rig)
    for on, do in {
        "*/actions/runs/*/artifacts": lambda api: api.artifacts_of_run(1, limit=1),
        "*/workflows/*": lambda api: api.completed_runs(1, "main", limit=1),
        "*/runs/7": lambda api: api.workflow_run(7),
        "*/zip": lambda api: api.download_artifact(artifact, rig.folder / "a.zip", largest=9),
    }.items():
        rig.fake.faults.add("read_only", on=f"GET {on}", times=None)
        with pytest.raises(NotAllowedError) as caught:
            call(rig, do)
        assert caught.value.permission == "actions"


def test_an_expired_artifact_is_gone(rig: Rig):
    artifact = stored(rig, expired=True)
    assert artifact.is_expired
    with pytest.raises(GoneError, match="it has expired"):
        download(rig, artifact)


def test_no_more_bytes_than_allowed(rig: Rig):
    artifact = stored(rig, size_in_bytes=10)
    with pytest.raises(PublishError, match="1 MiB at most are read"):
        download(rig, artifact, largest=1 << 20)


def test_bytes_that_are_not_those_that_were_stored(rig: Rig):
    artifact = replace(stored(rig), digest="sha256:" + "0" * 64)
    with pytest.raises(PublishError, match="its bytes are not those that GitHub stored"):
        download(rig, artifact)
    assert download(rig, replace(artifact, digest=None)) == ARCHIVE


def test_what_is_not_there(rig: Rig):
    with pytest.raises(PublishError, match="GitHub answered 404"):
        call(rig, lambda api: api.workflow_run(12345))
    artifact = replace(stored(rig), id=999)
    with pytest.raises(PublishError, match="answered 404"):
        download(rig, artifact)


def test_a_download_is_timed_as_a_whole(rig: Rig):
    artifact = stored(rig)
    signed = f"{rig.fake.url}/_storage/{artifact.id}?se=2026-01-01&sig=secret-{artifact.id}"
    times = iter([0.0, 800.0, 901.0, 902.0])
    patience = WaitBudget(0, rig.nap, rig.log)
    with pytest.raises(PublishError, match="it takes longer than 900 s"):
        download_file(
            lambda: signed,
            rig.folder / "archive.zip",
            DownloadTerms("fetch it", largest=10 << 20),
            patience=patience,
            clock=lambda: next(times),
        )


@each_row(
    ("address", "api", "fit"),
    [
        ("https://storage.example/x?sig=1", "https://api.github.com", True),
        ("http://storage.example/x", "https://api.github.com", False),
        ("http://storage.example/x", "http://ghes.local/api/v3", True),
        ("file:///etc/passwd", "https://api.github.com", False),
        ("https://[broken", "https://api.github.com", False),
        ("/relative", "https://api.github.com", False),
        ("", "https://api.github.com", False),
    ],
)
def test_only_encrypted_addresses_are_asked(address: str, api: str, fit: bool):
    assert is_allowed_address(address, api) is fit
