"""When a pull request gets a comment, and whose comments stay as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ci_agent_eval.github.publication import PublishOptions
from ci_agent_eval.render.comment_state import render_state_line
from tests.integration.github.rig import BOT, REPO, SHA, Rig, publication, pull_event


def shown(conclusion="failure", says="one fails", state="a", suite="shop", **overrides):
    word = state * 16
    marker = f"<!-- agent-eval suite={suite} -->"
    head = f"{marker}\n{render_state_line(word)}\n"
    mark = "❌ Agent evals failed: " if conclusion == "failure" else "✅ Agent evals passed: "
    fields = {
        "comment_body": f"{head}### {mark}{says}\n",
        "fallback_body": f"{marker}\n### {mark}{says}\n",
        **overrides,
    }
    return publication(
        conclusion=conclusion,
        marker=marker,
        comment_state=word,
        check_name=f"agent-eval ({suite})",
        **fields,
    )


PASSED = shown("success", "all pass", "b")
FAILED = shown()


def mode(name):
    return PublishOptions(comment=name)


def published(rig: Rig, name, one):
    (part,) = rig.publish(one, settings=mode(name)).comments
    return part


def bodies(rig: Rig):
    return [comment.body for comment in rig.ours]


def writes_of_comments(rig: Rig):
    return [w for w in rig.fake.writes if "comments" in w.path]


def test_on_failure_a_pass_posts_nothing_and_says_why(rig: Rig):
    part = published(rig, "on-failure", PASSED)
    assert (part.status, part.is_published) == ("withheld", True)
    assert part.sentence == (
        "No comment on #7: the gate passed, and comments are posted only on failure."
    )
    assert bodies(rig) == []
    assert not rig.results[0].has_failures
    assert len(rig.check_runs) == 1


def test_on_failure_a_failure_is_posted_and_a_pass_corrects_it(rig: Rig):
    assert published(rig, "on-failure", FAILED).status == "created"
    assert published(rig, "on-failure", PASSED).status == "updated"
    assert bodies(rig) == [PASSED.comment_body]
    assert published(rig, "on-failure", PASSED).status == "unchanged"
    assert published(rig, "on-failure", FAILED).status == "updated"
    assert bodies(rig) == [FAILED.comment_body]


def test_on_change_the_first_comment_is_posted_where_there_is_no_baseline(rig: Rig):
    assert published(rig, "on-change", PASSED).status == "created"


@pytest.mark.parametrize(("differs", "status"), [(True, "created"), (False, "withheld")])
def test_on_change_the_first_comment_is_posted_where_the_baseline_differs(rig, differs, status):
    part = published(rig, "on-change", replace(PASSED, differs=differs))
    assert part.status == status
    assert len(rig.ours) == (status == "created")
    if not differs:
        assert part.sentence == "No comment on #7: nothing differs from the baseline."


def test_on_change_only_what_a_reader_would_act_on_is_written(rig: Rig):
    published(rig, "on-change", FAILED)
    before = len(writes_of_comments(rig))

    dearer = shown(says="one fails, and costs more")
    part = published(rig, "on-change", dearer)
    assert part.status == "withheld"
    assert part.sentence == "Left the comment on #7 as it is: what it says has not changed."
    assert part.url
    assert len(writes_of_comments(rig)) == before

    assert published(rig, "on-change", shown(says="two fail", state="c")).status == "updated"
    # A comment is there, so that a way back to the baseline is a change of what it says.
    assert published(rig, "on-change", replace(PASSED, differs=False)).status == "updated"
    assert bodies(rig) == [PASSED.comment_body]


def test_on_change_a_comment_of_an_older_version_is_written_anew(rig: Rig):
    rig.fake.add_comment(REPO, 7, BOT, f"{FAILED.marker}\n### ❌ Agent evals failed: one fails")
    assert published(rig, "on-change", FAILED).status == "updated"


def test_off_leaves_what_is_there(rig: Rig):
    published(rig, "update", FAILED)
    assert rig.publish(PASSED, settings=mode("off")).comments == ()
    assert bodies(rig) == [FAILED.comment_body]


def test_a_strangers_word_is_not_ours(rig: Rig):
    rig.fake.add_comment(REPO, 7, "mallory", FAILED.comment_body)
    assert published(rig, "on-change", FAILED).status == "created"
    assert published(rig, "on-failure", PASSED).status == "updated"


@pytest.mark.parametrize("name", ["on-failure", "on-change"])
def test_a_post_whose_answer_was_lost_is_one_comment(rig: Rig, name):
    rig.fake.faults.add("bad_gateway_after_work", on="POST */comments")
    part = published(rig, name, FAILED)
    assert (part.status, len(rig.ours)) == ("created", 1)


def test_two_suites_on_one_pull_request_keep_apart(rig: Rig):
    desk = [shown(suite="desk", says="1", state="1"), shown(suite="desk", says="2", state="2")]
    bank = [
        shown("success", "1", "1", suite="bank"),
        shown("failure", "2", "2", suite="bank"),
    ]
    for one in (desk[0], bank[0], desk[1], bank[1], desk[1], bank[1]):
        rig.publish(one)
    assert [comment.body for comment in rig.comments] == [
        desk[1].comment_body,
        bank[1].comment_body,
    ]
    latest = {run.name: run.conclusion for run in rig.check_runs}
    assert latest == {"agent-eval (desk)": "failure", "agent-eval (bank)": "failure"}


def test_each_of_several_pull_requests_of_a_commit_has_its_own_history(rig: Rig):
    rig.fake.add_pull(REPO, 9, SHA)
    by_commit = pull_event(name="push", pulls=None)
    rig.publish(FAILED, event=pull_event(), settings=mode("on-failure"))

    result = rig.publish(PASSED, event=by_commit, settings=mode("on-failure"))

    assert [part.status for part in result.comments] == ["updated", "withheld"]
    assert [comment.body for comment in rig.fake.comments(REPO, 7)] == [PASSED.comment_body]
    assert rig.fake.comments(REPO, 9) == []


def test_on_change_what_stood_in_for_a_comment_gives_way_to_it(rig: Rig):
    unsafe = shown(comment_body=f"{FAILED.comment_body}\n![x](http://evil.example)\n")
    assert published(rig, "on-change", unsafe).status == "created"
    assert bodies(rig) == [unsafe.fallback_body]
    assert published(rig, "on-change", unsafe).status == "unchanged"
    assert published(rig, "on-change", FAILED).status == "updated"
    assert bodies(rig) == [FAILED.comment_body]
