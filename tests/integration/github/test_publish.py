from __future__ import annotations

from typing import Any

import pytest

from ci_agent_eval.github.check_run import CheckRunContent, publish_check_run
from ci_agent_eval.github.client import Connection
from ci_agent_eval.github.publication import PublishOptions
from ci_agent_eval.render.formats.annotations import Annotation
from tests.integration.github.rig import (
    BOT,
    MARKER,
    REPO,
    SHA,
    TOKEN,
    Rig,
    annotations,
    publication,
    pull_event,
)


def test_a_publish_leaves_comment_check_run_and_files(rig: Rig):
    result = rig.publish()

    assert not result.has_failures
    assert [part.status for part in result.parts] == ["written", "written", "created", "created"]
    (comment,) = rig.comments
    assert comment.author == BOT
    assert comment.body == publication().comment_body
    (run,) = rig.check_runs
    assert (run.name, run.head_sha, run.status, run.conclusion) == (
        "agent-eval",
        SHA,
        "completed",
        "failure",
    )
    assert (run.title, run.summary) == ("1 of 3 scenarios fails", "one fails")
    assert [one["message"] for one in run.annotations] == ["failed 1", "failed 2"]
    assert run.details_url == f"https://github.com/{REPO}/actions/runs/1"
    assert "the whole summary" in rig.step_summary.read_text()
    assert rig.outputs.read_text() == "conclusion=failure\n"
    assert rig.emitted == []
    assert rig.naps == []


def test_publishing_the_same_results_twice_writes_once(rig: Rig):
    rig.publish()
    writes = len(rig.fake.writes)

    result = rig.publish()

    assert len(rig.fake.writes) == writes
    assert [part.status for part in result.parts[2:]] == ["unchanged", "unchanged"]
    assert len(rig.comments) == len(rig.check_runs) == 1


def test_a_comment_github_stored_with_other_line_ends_is_the_same(rig: Rig):
    stored = publication().comment_body.strip().replace("\n", " \r\n")
    rig.fake.add_comment(REPO, 7, BOT, stored)

    assert rig.publish().comments[0].status == "unchanged"


def test_other_results_update_the_comment_and_open_another_check_run(rig: Rig):
    rig.publish()
    rig.publish(publication(comment_body=f"{MARKER}\nbetter\n", conclusion="success"))
    result = rig.publish()

    assert [comment.body for comment in rig.comments] == [publication().comment_body]
    # The newest of a name counts, so going back to the first results needs a third one.
    assert [run.conclusion for run in rig.check_runs] == ["failure", "success", "failure"]
    assert result.comments[0].status == "updated"


def test_a_strangers_comment_with_our_marker_is_left_alone(rig: Rig):
    strangers = rig.fake.add_comment(REPO, 7, "mallory", f"{MARKER}\nnot yours")

    rig.publish()
    rig.publish(publication(comment_body=f"{MARKER}\nsecond\n"))

    assert strangers.body == f"{MARKER}\nnot yours"
    assert [comment.body for comment in rig.ours] == [f"{MARKER}\nsecond\n"]
    assert "left alone" in rig.everything_said()


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


def test_of_several_comments_of_ours_the_oldest_is_kept_and_the_others_are_deleted(rig: Rig):
    oldest = rig.fake.add_comment(REPO, 7, BOT, f"{MARKER}\nfirst")
    younger = rig.fake.add_comment(REPO, 7, BOT, f"{MARKER}\nsecond")

    rig.publish()

    assert rig.comments == [oldest]
    assert oldest.body == publication().comment_body
    assert f"Deleted comment {younger.id} on #7" in rig.everything_said()


def test_many_writes_are_a_second_apart(rig: Rig):
    rig.publish(publication(annotations=annotations(500)))

    writes = len(rig.fake.writes)
    assert writes == 1 + 10 + 1 + 1
    assert rig.naps == [1.0] * (writes - 10)


def test_a_personal_token_comments_under_its_own_name(rig: Rig):
    rig.fake.token("ghp_personal", "octocat")

    rig.publish(token="ghp_personal", settings=PublishOptions(check_run=False))
    result = rig.publish(token="ghp_personal", settings=PublishOptions(check_run=False))

    assert [comment.author for comment in rig.comments] == ["octocat"]
    assert result.comments[0].status == "unchanged"


def test_a_personal_token_may_not_write_check_runs_and_that_is_said(rig: Rig):
    rig.fake.token("ghp_personal", "octocat")

    result = rig.publish(token="ghp_personal")

    assert result.check_run is not None
    assert result.check_run.status == "skipped"
    assert "GITHUB_TOKEN" in result.check_run.sentence
    assert "::error " in rig.emitted[0]


def test_another_apps_token_is_told_to_name_its_author(rig: Rig):
    rig.fake.token("ghs_app", "evals[bot]")
    rig.publish(token="ghs_app")
    assert any("Set the comment author to evals[bot]" in text for _, text in rig.said)

    named = PublishOptions(comment_author="evals[bot]")
    result = rig.publish(token="ghs_app", settings=named)

    assert result.comments[0].status == "unchanged"
    assert len(rig.comments) == 1


def test_a_merge_group_gets_a_check_run_and_no_comment(rig: Rig):
    sha = "c" * 40

    result = rig.publish(event=pull_event(name="merge_group", head_sha=sha, pulls=()))

    assert [run.head_sha for run in rig.check_runs] == [sha]
    assert rig.comments == []
    assert result.comments == ()
    assert not result.has_failures


def test_a_push_comments_on_the_open_pull_requests_it_heads(rig: Rig):
    rig.fake.add_pull(REPO, 8, SHA, state="closed")
    rig.fake.add_pull(REPO, 9, "d" * 40, commits=(SHA,))

    result = rig.publish(event=pull_event(name="push", pulls=None))

    assert [part.name for part in result.comments] == ["comment on #7"]
    assert len(rig.comments) == 1
    assert rig.fake.comments(REPO, 8) == rig.fake.comments(REPO, 9) == []
    assert "#9 has moved on" in rig.everything_said()


def test_a_schedule_without_pull_requests_gets_a_check_run_only(rig: Rig):
    result = rig.publish(event=pull_event(name="schedule", head_sha="e" * 40, pulls=None))

    assert result.comments == ()
    assert len(rig.check_runs) == 1
    assert not result.has_failures


def test_an_enterprise_server_is_reached_below_its_prefix(rig: Rig):
    for number in range(150):
        rig.fake.add_comment(REPO, 7, "octocat", f"before ({number})")

    rig.publish(api_url=rig.fake.ghes_url)
    result = rig.publish(api_url=rig.fake.ghes_url)

    assert len(rig.ours) == len(rig.check_runs) == 1
    assert [part.status for part in result.parts[2:]] == ["unchanged", "unchanged"]


@pytest.mark.parametrize("is_fork", [True, False])
def test_a_read_only_token_fails_nothing(rig: Rig, is_fork: bool):
    rig.fake.token("ghs_readonly", can_write=False)

    result = rig.publish(token="ghs_readonly", event=pull_event(is_fork=is_fork))

    assert not result.has_failures
    assert [part.status for part in result.parts] == ["written", "written", "skipped", "skipped"]
    assert rig.step_summary.exists()
    assert rig.outputs.exists()
    assert rig.emitted[0].count("::error ") == 2
    why = "from a fork" if is_fork else "permissions: checks: write"
    assert why in result.problems[1]
    assert rig.check_runs == rig.comments == []


def test_a_dependabot_run_says_why_it_may_not_write(rig: Rig):
    rig.fake.token("ghs_readonly", can_write=False)

    result = rig.publish(token="ghs_readonly", event=pull_event(actor="dependabot[bot]"))

    assert "Dependabot started this run" in result.problems[0]


def test_without_a_token_github_is_not_called(rig: Rig):
    result = rig.publish(token=None)

    assert rig.fake.requests == []
    assert not result.has_failures
    assert "there is no token" in result.problems[0]
    assert "::error " in rig.emitted[0]


def test_a_repository_without_issues_still_gets_its_check_run(rig: Rig):
    rig.fake.world.repositories[REPO].has_issues = False

    result = rig.publish()

    assert [run.conclusion for run in rig.check_runs] == ["failure"]
    assert result.comments[0].status == "skipped"
    assert "Issues switched off" in result.problems[0]
    assert not result.has_failures


def test_a_locked_conversation_still_gets_its_check_run(rig: Rig):
    rig.fake.world.repositories[REPO].is_locked = True

    result = rig.publish()

    assert [run.conclusion for run in rig.check_runs] == ["failure"]
    assert result.comments[0].status == "skipped"
    assert "the conversation is locked" in result.problems[0]
    assert not result.has_failures


def test_a_comment_that_vanished_after_it_was_read_is_read_and_written_again(rig: Rig):
    rig.publish()
    rig.fake.faults.add("not_found", on="PATCH */issues/comments/*")

    result = rig.publish(publication(comment_body=f"{MARKER}\nnewer\n"))

    assert [comment.body for comment in rig.ours] == [f"{MARKER}\nnewer\n"]
    assert result.comments[0].status == "updated"


def test_an_unknown_repository_is_a_failure_that_says_so(rig: Rig):
    result = rig.publish(event=pull_event(repository="octo/nowhere"))

    assert result.has_failures
    assert "404" in result.problems[0]
    assert "repository's name" in result.problems[0]


def test_what_was_not_asked_for_is_not_done(rig: Rig):
    result = rig.publish(settings=PublishOptions(comment="off", check_run=False))

    assert rig.fake.requests == []
    assert (result.check_run, result.comments) == (None, ())


def test_outside_a_workflow_no_commands_are_written(rig: Rig):
    rig.publish(token=None, settings=PublishOptions(in_workflow=False))

    assert rig.emitted == []


def test_a_body_with_something_foreign_is_withheld(rig: Rig):
    shown = publication(comment_body=f"{MARKER}\nthanks @octocat\n", check_summary="[a](http://b)")

    result = rig.publish(shown)

    assert not result.has_failures
    assert [comment.body for comment in rig.comments] == [shown.fallback_body]
    assert rig.check_runs[0].summary == shown.headline
    assert "withheld" in rig.everything_said()


def test_a_check_run_that_a_killed_run_left_open_is_completed(rig: Rig):
    shown = publication(annotations=annotations(120))
    rig.fake.faults.add("cut_before", on="PATCH *", nth=2, times=None)
    rig.publish(shown, settings=PublishOptions(comment="off"))
    assert [run.status for run in rig.check_runs] == ["in_progress"]
    rig.fake.faults.clear()

    result = rig.publish(shown)

    (run,) = rig.check_runs
    assert (run.status, run.conclusion) == ("completed", "failure")
    assert [one["start_line"] for one in run.annotations] == list(range(1, 121))
    assert not result.has_failures


def leave_open(rig: Rig, external_id: str = "agent-eval:0123", app: str = "github-actions") -> Any:
    """Leave a check run of other results in progress, as a killed publish does."""
    run = rig.fake.world.add_check_run(REPO, app, "agent-eval", SHA)
    run.status, run.external_id = "in_progress", external_id
    return run


def test_a_check_run_of_other_results_that_a_killed_run_left_open_is_superseded(rig: Rig):
    old = leave_open(rig)

    result = rig.publish(publication(conclusion="success"))

    assert not result.has_failures
    assert (old.status, old.conclusion, old.title) == (
        "completed",
        "failure",
        "Superseded by a later run",
    )
    assert rig.check_runs[-1].conclusion == "success"
    assert f"Completed check run {old.id}" in rig.everything_said()


def test_what_is_not_ours_is_not_superseded(rig: Rig):
    theirs = [leave_open(rig, "codecov:1"), leave_open(rig, app="other")]

    rig.publish()

    assert [run.status for run in theirs] == ["in_progress"] * 2
    tried = {write.path.rpartition("/")[2] for write in rig.fake.writes}
    assert tried.isdisjoint(str(run.id) for run in theirs)


def test_a_resumed_check_run_supersedes_the_older_ones_only(rig: Rig):
    shown = publication()
    rig.fake.faults.add("cut_before", on="PATCH *", times=None)
    rig.publish(shown, settings=PublishOptions(comment="off"))
    rig.fake.faults.clear()
    (resumed,) = rig.check_runs
    newer = leave_open(rig)

    rig.publish(shown)

    assert (resumed.status, newer.status) == ("completed", "in_progress")


def test_an_old_check_run_that_cannot_be_completed_fails_nothing(rig: Rig):
    old = leave_open(rig)
    rig.fake.faults.add("unprocessable", on=f"PATCH *check-runs/{old.id}")

    result = rig.publish()

    assert not result.has_failures
    assert ("warning", f"Check run {old.id} of an earlier run may still be in progress.") in [
        (level, text.partition(" Could")[0]) for level, text in rig.said
    ]


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


@pytest.mark.parametrize("name", ["pull_request", "pull_request_target", "workflow_run"])
def test_a_late_run_leaves_the_comment_of_a_newer_commit_alone(rig: Rig, name: str):
    rig.publish()
    rig.fake.world.repositories[REPO].pulls[7].head_sha = "f" * 40
    newer = rig.publish(event=pull_event(head_sha="f" * 40))

    late = publication(comment_body=f"{MARKER}\nof the older commit\n", conclusion="success")
    result = rig.publish(late, event=pull_event(name=name))

    assert newer.comments[0].status == "unchanged"
    assert [comment.body for comment in rig.comments] == [publication().comment_body]
    assert result.comments == ()
    assert not result.has_failures
    assert "#7 has moved on to another commit: no comment there." in rig.everything_said()
    assert [run.head_sha for run in rig.check_runs] == [SHA, "f" * 40, SHA]


def test_a_token_that_may_not_look_up_a_pull_request_comments_all_the_same(rig: Rig):
    rig.fake.faults.add("read_only", on="GET */pulls/7")

    assert rig.publish().comments[0].status == "created"


def test_another_apps_check_run_of_the_same_name_is_not_ours(rig: Rig):
    rig.publish()
    theirs = rig.fake.world.add_check_run(REPO, "other", "agent-eval", SHA)

    result = rig.publish()

    assert result.check_run is not None
    assert result.check_run.status == "unchanged"
    assert theirs.status == "queued"


def test_details_of_an_annotation_are_sent(rig: Rig):
    one = Annotation("a.py", 1, 1, "warning", "t", "m", raw_details="Traceback")

    rig.publish(publication(annotations=(one,)))

    assert rig.check_runs[0].annotations[0]["raw_details"] == "Traceback"
