"""Links to the uploaded page: run, upload, publish, in steps of one job."""

from __future__ import annotations

import pytest

from tests.builders import episode, failing
from tests.integration.test_action import github, workspace  # noqa: F401 - fixtures

PAGE = "https://github.com/octo/shop/actions/runs/42/artifacts/9"
RUN = "https://github.com/octo/shop/actions/runs/42"
LATER = {"publish": "false"}


@pytest.fixture
def ran(workspace):  # noqa: F811
    """The workspace after the step that runs the suite and leaves publishing to a later one."""
    over = {"tool_calls": {"used": 6, "limit": 4}}
    found = (failing("refund_over_limit"), episode("refund_by_email", budgets=over))
    done = workspace.report(*found, suite="desk", **LATER)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "::error file=" not in done.stdout
    return workspace


def find_comments(space):
    return [comment.body for comment in space.github.comments("octo/shop", 7)]


def test_the_first_step_publishes_nothing_and_sets_outputs(ran):
    assert find_comments(ran) == []
    assert ran.github.check_runs("octo/shop") == []
    assert ran.github.writes == []
    assert ran.summary == ""
    assert ran.outputs["conclusion"] == "failure"
    assert (ran.folder / ran.outputs["report-dir"] / "report.html").is_file()


def test_card_annotation_and_check_run_link_to_the_conversation(ran):
    done = ran.action(mode="publish", report_url=PAGE)

    assert done.returncode == 1, done.stdout + done.stderr
    link = f"{PAGE}#scenario=refund_over_limit"
    (comment,) = find_comments(ran)
    assert f'· <a href="{link}">conversation</a> · ' in comment
    assert f"· [report]({PAGE}) · " in comment
    (run,) = ran.github.check_runs("octo/shop")
    assert (run.name, run.conclusion) == ("agent-eval (desk)", "failure")
    assert f'<a href="{link}">conversation</a>' in run.summary
    assert [one["message"].splitlines()[-1] for one in run.annotations] == [
        f"Conversation: {PAGE}#scenario=refund_by_email",
        f"Conversation: {link}",
    ]
    assert f'<a href="{link}">conversation</a>' in ran.summary
    assert ran.outputs["comment-url"]


def test_without_the_address_cards_link_to_the_check_run(ran):
    ran.action(mode="publish", report_url="")

    (run,) = ran.github.check_runs("octo/shop")
    url = ran.outputs["check-run-url"]
    (comment,) = find_comments(ran)
    assert f'· <a href="{url}">check run</a> · ' in comment
    assert "check run</a>" not in run.summary
    assert "Conversation: " not in str(run.annotations)


def test_without_a_check_run_they_link_to_the_step_summary(ran):
    ran.action(mode="publish", check_run="false")

    (comment,) = find_comments(ran)
    assert f'· <a href="{RUN}">summary</a> · ' in comment
    assert "summary</a>" not in ran.summary


@pytest.mark.parametrize("address", ["http://e.example/", "https://me:pw@e.example/x"])
def test_a_wrong_address_publishes_nothing_and_is_not_shown(ran, address):
    done = ran.action(mode="publish", report_url=address)
    assert done.returncode == 2
    assert "option --report-url: must be an https address" in done.stdout
    assert address not in done.stdout + done.stderr
    assert ran.github.writes == []


def test_publish_is_true_or_false(workspace):  # noqa: F811
    done = workspace.action(paths="examples/refund_desk", publish="later")
    assert done.returncode == 2
    assert "input publish: 'later' is neither true nor false" in done.stdout
