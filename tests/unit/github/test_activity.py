from __future__ import annotations

from ci_agent_eval.github.activity import (
    Activity,
    decide_activity,
    explain_refusal,
    should_emit_commands,
)
from ci_agent_eval.github.event import Event
from tests.tables import each_row


def event(
    name: str = "pull_request", pulls: tuple[int, ...] | None = (7,), **rest: object
) -> Event:
    return Event(name, "octo/shop", "a" * 40, pulls, **rest)  # type: ignore[arg-type]


@each_row(
    ("asked", "activity"),
    [
        ({"comment": True, "check_run": True}, Activity((7,), check_run=True)),
        ({"comment": True, "check_run": False}, Activity((7,))),
        ({"comment": False, "check_run": True}, Activity(check_run=True)),
        ({"comment": False, "check_run": False}, Activity()),
    ],
)
def test_a_pull_request_gets_what_was_asked_for(asked: dict[str, bool], activity: Activity):
    assert decide_activity(event(), **asked, has_token=True) == activity


def test_pull_requests_that_are_not_known_are_looked_up():
    activity = decide_activity(event("push", None), comment=True, check_run=False, has_token=True)

    assert activity == Activity(look_up_pulls=True)
    assert activity.needs_network


def test_a_merge_group_is_not_commented_on():
    activity = decide_activity(
        event("merge_group", ()), comment=True, check_run=True, has_token=True
    )

    assert activity == Activity(check_run=True)


@each_row("asked", [True, False])
def test_without_a_token_the_reason_is_given_where_something_was_asked_for(asked: bool):
    activity = decide_activity(event(), comment=asked, check_run=False, has_token=False)

    assert not activity.needs_network
    assert bool(activity.notices) == asked


@each_row(
    ("published", "in_workflow", "wanted"),
    [(True, True, False), (False, True, True), (False, False, False), (True, False, False)],
)
def test_commands_stand_in_for_a_check_run(published: bool, in_workflow: bool, wanted: bool):
    assert should_emit_commands(check_run_published=published, in_workflow=in_workflow) == wanted


@each_row(
    ("one", "reason"),
    [
        (event(is_fork=True), "comes from a fork"),
        (event(actor="dependabot[bot]"), "Dependabot started this run"),
        (event("workflow_run", is_fork=True), "Add `permissions: checks: write`"),
        (event(), "Add `permissions: checks: write`"),
    ],
)
def test_a_refusal_is_explained_by_the_event(one: Event, reason: str):
    assert reason in explain_refusal(one, "checks")
