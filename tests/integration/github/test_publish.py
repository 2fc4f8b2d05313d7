from __future__ import annotations

from typing import Any

import pytest

from ci_agent_eval.github.check_run import CheckRunContent, publish_check_run
from ci_agent_eval.github.client import Connection
from tests.integration.github.rig import (
    MARKER,
    REPO,
    SHA,
    TOKEN,
    Rig,
    annotations,
    publication,
)


def test_150_newer_comments_do_not_cause_a_second_one(rig: Rig):
    rig.publish()
    for number in range(150):
        rig.fake.add_comment(REPO, 7, "octocat", f"and another thing ({number})")

    result = rig.publish(publication(comment_body=f"{MARKER}\nupdated\n"))

    assert result.comments[0].status == "updated"
    assert [comment.body for comment in rig.ours] == [f"{MARKER}\nupdated\n"]
    assert len(rig.comments) == 151
    pages = [r for r in rig.fake.requests if r.path.endswith("/7/comments") and not r.is_write]
    assert {page.query["per_page"] for page in pages} == {"100"}


def test_many_writes_are_a_second_apart(rig: Rig):
    rig.publish(publication(annotations=annotations(500)))

    writes = len(rig.fake.writes)
    assert writes == 1 + 10 + 1 + 1
    assert rig.naps == [1.0] * (writes - 10)


def test_an_enterprise_server_is_reached_below_its_prefix(rig: Rig):
    for number in range(150):
        rig.fake.add_comment(REPO, 7, "octocat", f"before ({number})")

    rig.publish(api_url=rig.fake.ghes_url)
    result = rig.publish(api_url=rig.fake.ghes_url)

    assert len(rig.ours) == len(rig.check_runs) == 1
    assert [part.status for part in result.parts[2:]] == ["unchanged", "unchanged"]


def leave_open(rig: Rig, external_id: str = "agent-eval:0123", app: str = "github-actions") -> Any:
    """Leave a check run of other results in progress, as a killed publish does."""
    run = rig.fake.world.add_check_run(REPO, app, "agent-eval", SHA)
    run.status, run.external_id = "in_progress", external_id
    return run


def test_the_same_results_published_at_the_same_time_are_mentioned(rig: Rig):
    twins: list[Any] = []

    class Racing:
        """Opens its own check run right after ours."""

        def __getattr__(self, name: str) -> Any:
            return getattr(api, name)

        def send_check_run(self, write: Any) -> Any:
            made = api.send_check_run(write)
            if write.method == "POST":
                twins.append(leave_open(rig, made.external_id))
            return made

    with rig.connect(Connection(REPO, TOKEN, rig.fake.url)) as api:
        content = CheckRunContent("agent-eval", SHA, "title", "summary", "success")
        part = publish_check_run(Racing(), content, rig.log)

    (twin,) = twins
    assert part.status == "created"
    assert f"Check run {twin.id} says the same as this one" in rig.everything_said()
    assert twin.status == "in_progress"


def test_an_interrupt_while_opening_looks_twice_for_what_was_opened(rig: Rig):
    """GitHub may still be at it when the first look comes."""

    class Interrupted:
        opened = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(api, name)

        def send_check_run(self, write: Any) -> Any:
            if write.method == "PATCH":
                return api.send_check_run(write)
            self.write = write
            raise KeyboardInterrupt

        def wait(self, seconds: float, why: str) -> None:
            api.send_check_run(self.write)

    with rig.connect(Connection(REPO, TOKEN, rig.fake.url)) as api:
        content = CheckRunContent("agent-eval", SHA, "title", "summary", "success")
        with pytest.raises(KeyboardInterrupt):
            publish_check_run(Interrupted(), content, rig.log)

    assert [(run.status, run.conclusion) for run in rig.check_runs] == [("completed", "failure")]
