from __future__ import annotations

from typing import Any

from tests.integration.github.rig import (
    MARKER,
    REPO,
    Rig,
    annotations,
    publication,
    pull_event,
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


def leg(conclusion: str, **overrides: Any) -> Any:
    words = "passed" if conclusion == "success" else "failed"
    body = f"{MARKER}\nAgent evals {words}\n"
    return publication(conclusion=conclusion, check_title=words, comment_body=body, **overrides)


def test_a_job_lowers_its_check_if_another_of_its_attempt_failed_under_its_name(rig: Rig):
    first = pull_event(run_id=11, run_attempt="1")
    rig.publish(leg("failure"), event=first)
    rig.publish(leg("success"), event=first)

    assert [run.conclusion for run in rig.check_runs] == ["failure", "failure"]
    lowered = rig.check_runs[-1]
    assert lowered.title == "Another job failed under this name"
    assert lowered.summary.endswith("give each job its own suite.\n\none fails")
    assert "Published the check run as failed. Another job of this" in rig.everything_said()
    assert [comment.body for comment in rig.ours] == [f"{MARKER}\nAgent evals failed\n"]

    for event in (pull_event(run_id=11, run_attempt="2"), pull_event(run_id=12, run_attempt="1")):
        rig.publish(leg("success"), event=event)
        assert rig.check_runs[-1].conclusion == "success"
        assert "passed" in rig.ours[0].body


def test_a_job_that_fails_last_lowers_the_check_that_would_hide_its_own(rig: Rig):
    event = pull_event(run_id=11, run_attempt="1")
    failed = leg("failure")

    def publish_other(_page: Any) -> str:
        """Publish, while this one is in progress, a job that passed."""
        rig.publish(leg("success"), event=event)
        assert [run.conclusion for run in rig.check_runs] == ["failure", "success"]
        return failed.comment_body

    rig.publish(leg("failure", render_with_details=publish_other), event=event)

    assert [run.conclusion for run in rig.check_runs] == ["failure", "failure"]
    assert [comment.body for comment in rig.ours] == [failed.comment_body]
