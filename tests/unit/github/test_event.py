from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.errors import InputError
from ci_agent_eval.github.event import parse_event
from ci_agent_eval.github.runner_files import load_event
from tests.tables import each_row

SHA = "a" * 40
MERGE = "b" * 40
ENVIRON = {
    "GITHUB_REPOSITORY": "octo/shop",
    "GITHUB_SHA": MERGE,
    "GITHUB_RUN_ID": "17",
    "GITHUB_ACTOR": "octocat",
}


def pull_payload(head: str | None = "octo/shop", **overrides: Any) -> dict[str, Any]:
    repo = {"full_name": head} if head else None
    pull = {"number": 7, "head": {"sha": SHA, "repo": repo}, **overrides}
    return {"pull_request": pull, "repository": {"full_name": "octo/shop"}}


def run_payload(*pulls: dict[str, Any], head: str = "octo/shop") -> dict[str, Any]:
    return {
        "workflow_run": {
            "head_sha": SHA,
            "pull_requests": list(pulls),
            "head_repository": {"full_name": head},
        },
        "repository": {"full_name": "octo/shop", "id": 1},
    }


def source_payload(event: str, branch: str, *pulls: dict[str, Any]) -> dict[str, Any]:
    payload = run_payload(*pulls, head="mallory/shop")
    run = {"id": 5, "workflow_id": 6, "event": event, "head_branch": branch}
    return {**payload, "workflow_run": {**payload["workflow_run"], **run}}


THEIRS, OURS = (
    {"number": number, "base": {"repo": {"id": id_}}} for number, id_ in ((4, 2), (7, 1))
)
REPOSITORY = {"full_name": "octo/shop", "default_branch": "trunk"}
QUEUED = "gh-readonly-queue/release/v2/pr-7-0123abc"
MERGED = {"merge_group": {"head_sha": SHA, "base_ref": "refs/heads/v2"}}
ENTERPRISE = {
    "GITHUB_API_URL": "https://git.corp/api/v3",
    "GITHUB_SERVER_URL": "https://git.corp/",
}
EVENTS = {
    # what it is: (name, payload, environment besides the usual one)
    "a pull request": ("pull_request", pull_payload(), {}),
    "one with its branch": ("pull_request_target", pull_payload(base={"ref": "v2"}), {}),
    "one of a fork": ("pull_request", pull_payload("mallory/shop"), {}),
    "one of a fork that is gone": ("pull_request", pull_payload(None), {}),
    "a push": ("push", {"after": SHA, "ref": "refs/heads/a/b"}, {}),
    "a push of a tag": ("push", {"ref": "refs/tags/v1", "repository": REPOSITORY}, {}),
    "a merge group": ("merge_group", MERGED, {}),
    "a schedule": ("schedule", {"repository": REPOSITORY}, {}),
    "a dispatch": ("workflow_dispatch", {}, {}),
    "an event to come": ("some_event_to_come", {}, {}),
    "an enterprise server": ("schedule", {}, ENTERPRISE),
    "a repository from the file": ("schedule", {"repository": REPOSITORY}, {"GITHUB_REPOSITORY": ""}),
    "a run of two pull requests": ("workflow_run", run_payload({"number": 7}, {"number": 9}), {}),
    "a run of a fork": ("workflow_run", run_payload(head="mallory/shop"), {}),
    # A pull request to the upstream repository is not ours.
    "a run of a pull request upstream": ("workflow_run", run_payload(THEIRS, OURS), {}),
    "the run of a fork's branch": ("workflow_run", source_payload("pull_request", "main"), {}),
    "the run of a branch to v2": (
        "workflow_run", source_payload("pull_request", "x", {"number": 7, "base": {"ref": "v2"}}), {},
    ),
    "the run of a push": ("workflow_run", source_payload("push", "v3"), {}),
    "the run of a merge group": ("workflow_run", source_payload("merge_group", QUEUED), {}),
}  # fmt: skip


def test_the_events_are_the_golden_ones(golden):
    found = {
        what: asdict(parse_event(name, payload, {**ENVIRON, **environ}))
        for what, (name, payload, environ) in EVENTS.items()
    }
    golden("github/events.json", f"{json.dumps(found, indent=1)}\n")


def test_a_deleted_branch_has_nothing_to_report_on():
    with pytest.raises(InputError, match="deleted a branch"):
        parse_event("push", {"after": "0" * 40, "deleted": True}, ENVIRON)


def test_an_odd_source_run_is_named():
    payload = source_payload("push", "main")
    payload["workflow_run"]["id"] = "5"
    with pytest.raises(InputError, match=r"workflow_run\.id is '5', not a positive number"):
        parse_event("workflow_run", payload, ENVIRON)


ODD: list[tuple[str, Any, dict[str, str], str]] = [
    ("pull_request", [], ENVIRON, "not a JSON object"),
    ("pull_request", {}, ENVIRON, "pull_request.head.sha is missing"),
    ("pull_request", {"pull_request": 3}, ENVIRON, "pull_request.head.sha is missing"),
    (
        "pull_request",
        {"pull_request": {"head": {"sha": "main"}}},
        ENVIRON,
        "pull_request.head.sha is 'main'",
    ),
    ("pull_request", pull_payload(number=True), ENVIRON, "pull_request.number is 'True'"),
    ("pull_request", pull_payload(number="7"), ENVIRON, "pull_request.number is '7'"),
    ("pull_request", pull_payload(number=0), ENVIRON, "pull_request.number is '0'"),
    ("merge_group", {"merge_group": {}}, ENVIRON, "merge_group.head_sha is missing"),
    ("workflow_run", {"workflow_run": {"head_sha": SHA}}, ENVIRON, "pull_requests is missing"),
    ("workflow_run", run_payload({}), ENVIRON, r"pull_requests\[0\].number is missing"),
    ("push", {}, {"GITHUB_REPOSITORY": "o/r"}, "after is missing"),
    ("schedule", {}, {"GITHUB_REPOSITORY": "o/r"}, "GITHUB_SHA is not set"),
    ("schedule", {}, {**ENVIRON, "GITHUB_SHA": "HEAD"}, "GITHUB_SHA is 'HEAD'"),
    ("schedule", {}, {**ENVIRON, "GITHUB_REPOSITORY": "o/r/x"}, "GITHUB_REPOSITORY is 'o/r/x'"),
    ("schedule", {}, {"GITHUB_SHA": SHA}, "repository.full_name is missing"),
    ("schedule", {}, {**ENVIRON, "GITHUB_RUN_ID": "../1"}, "GITHUB_RUN_ID is '../1'"),
    ("schedule", {}, {**ENVIRON, "GITHUB_API_URL": "ftp://x"}, "GITHUB_API_URL is 'ftp://x'"),
]


@each_row(("name", "payload", "environ", "sentence"), ODD)
def test_an_odd_event_names_the_key(
    name: str, payload: Any, environ: dict[str, str], sentence: str
):
    with pytest.raises(InputError, match=sentence):
        parse_event(name, payload, environ, file="event.json")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
names = st.sampled_from(["pull_request", "push", "merge_group", "workflow_run", "schedule"])
keys = st.sampled_from(["pull_request", "head", "sha", "number", "workflow_run", "merge_group"])
payloads = st.dictionaries(keys, st.dictionaries(keys, json_values) | json_values)


@given(names, payloads | json_values)
def test_any_payload_is_an_event_or_an_input_error(name: str, payload: Any):
    try:
        event = parse_event(name, payload, ENVIRON)
    except InputError:
        return
    assert len(event.head_sha) == 40


@each_row(
    ("content", "environ", "sentence"),
    [
        (None, {"GITHUB_EVENT_NAME": "push"}, "set GITHUB_EVENT_PATH, as"),
        (None, {"GITHUB_EVENT_PATH": "x"}, "set GITHUB_EVENT_NAME, as"),
        (None, {}, "set GITHUB_EVENT_NAME and GITHUB_EVENT_PATH, as"),
        (b"{", {"GITHUB_EVENT_NAME": "push"}, r"event\.json: not JSON"),
        (b"\xff", {"GITHUB_EVENT_NAME": "push"}, r"event\.json: not JSON"),
    ],
)
def test_an_event_file_that_cannot_be_read_is_named(
    tmp_path: Path, content: bytes | None, environ: dict[str, str], sentence: str
):
    file = tmp_path / "event.json"
    if content is not None:
        file.write_bytes(content)
        environ = {**environ, "GITHUB_EVENT_PATH": str(file)}
    with pytest.raises(InputError, match=sentence):
        load_event(environ)
