from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest

from ci_agent_eval.github.client import Connection
from ci_agent_eval.github.dry_run import DryRun
from ci_agent_eval.github.publication import PublishOptions, PublishResult
from ci_agent_eval.github.publish import PublishEnvironment, publish_to_github
from ci_agent_eval.github.runner_files import RunnerFiles
from tests.integration.github.rig import (
    MARKER,
    REPO,
    TOKEN,
    Rig,
    annotations,
    publication,
    pull_event,
)


def dry(rig: Rig, shown: list[str], *, inner: Any = None) -> PublishResult:
    api = DryRun(REPO, shown.append, rig.log, inner=inner)
    return publish_to_github(
        publication(annotations=annotations(120)),
        pull_event(),
        PublishOptions(in_workflow=False),
        connect=lambda: nullcontext(api),
        around=PublishEnvironment(RunnerFiles(), rig.log, rig.emitted.append, str),
    )


def parsed(text: str) -> tuple[str, str, Any]:
    line, _, body = text.partition("\n")
    method, _, path = line.partition(" ")
    return method, path, json.loads(body)


def test_a_dry_run_shows_what_a_real_one_sends(rig: Rig):
    shown: list[str] = []
    result = dry(rig, shown)
    assert rig.fake.requests == []
    assert not result.has_failures

    rig.publish(publication(annotations=annotations(120)))

    (run,) = rig.check_runs
    sent = [(w.method, w.path.replace(str(run.id), "0"), w.body) for w in rig.fake.writes]
    assert [parsed(one) for one in shown] == sent


def test_without_github_a_dry_run_says_what_it_took_as_empty(rig: Rig):
    dry(rig, [])

    assert [level for level, _ in rig.said] == ["notice"] * 3
    assert "the commit of #7 taken as empty" in rig.everything_said()
    assert "the comments of #7 taken as empty" in rig.everything_said()


def test_with_github_a_dry_run_reads_and_does_not_write(rig: Rig):
    ours = rig.fake.add_comment(REPO, 7, "github-actions[bot]", f"{MARKER}\nolder")
    shown: list[str] = []

    with rig.connect(Connection(REPO, TOKEN, rig.fake.url)) as inner:
        dry(rig, shown, inner=inner)

    assert rig.fake.writes == []
    assert parsed(shown[1])[:2] == ("PATCH", f"/repos/{REPO}/issues/comments/{ours.id}")
    assert ours.body == f"{MARKER}\nolder"


def test_a_dry_run_shows_that_a_duplicate_would_be_deleted(rig: Rig):
    for text in ("oldest", "younger"):
        rig.fake.add_comment(REPO, 7, "github-actions[bot]", f"{MARKER}\n{text}")
    shown: list[str] = []

    with rig.connect(Connection(REPO, TOKEN, rig.fake.url)) as inner:
        dry(rig, shown, inner=inner)

    assert shown[2] == f"DELETE /repos/{REPO}/issues/comments/{rig.ours[1].id}"
    assert len(rig.ours) == 2


@pytest.mark.parametrize("kind", ["server_error", "cut_before"])
def test_a_github_that_does_not_answer_stops_no_dry_run(rig: Rig, kind: Any):
    rig.fake.faults.add(kind, times=None)
    shown: list[str] = []

    with rig.connect(Connection(REPO, TOKEN, rig.fake.url)) as inner:
        result = dry(rig, shown, inner=inner)

    assert not result.has_failures
    assert len(shown) == 6
    assert "taken as empty. Could not read" in rig.everything_said() or (
        "taken as empty. GitHub answered 500" in rig.everything_said()
    )
