"""What a publish leaves on GitHub and says of it, case by case, as a reviewer reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ci_agent_eval.github.publication import PublishOptions
from ci_agent_eval.render.comment_state import render_state_line
from ci_agent_eval.render.formats.annotations import Annotation
from tests.integration.github.rig import (
    BOT,
    MARKER,
    REPO,
    SHA,
    START,
    Rig,
    annotations,
    leave_open,
    open_rig,
    publication,
    pull_event,
)

NO_COMMENT = PublishOptions(comment="off")
NEWER = publication(comment_body=f"{MARKER}\nnewer\n", conclusion="success")
TRACED = Annotation("a.py", 1, 1, "warning", "t", "m", raw_details="Traceback")
FOREIGN = {"comment_body": f"{MARKER}\nthanks @octocat\n", "check_summary": "[a](http://b)"}
MANY = publication(annotations=annotations(120))


def by_mode(name: str, *shown: Any) -> Callable[[Rig], None]:
    def act(rig: Rig) -> None:
        for one in shown:
            rig.publish(one, settings=PublishOptions(comment=name))

    return act


def shown(conclusion="failure", says="one fails", state="a", suite="shop", **overrides):
    marker = f"<!-- agent-eval suite={suite} -->"
    head = f"{marker}\n{render_state_line(state * 16)}\n"
    mark = "❌ Agent evals failed: " if conclusion == "failure" else "✅ Agent evals passed: "
    bodies = {
        "comment_body": f"{head}### {mark}{says}\n",
        "fallback_body": f"{marker}\n### {mark}{says}\n",
    }
    fields = {"conclusion": conclusion, "marker": marker, "comment_state": state * 16}
    return publication(**fields, check_name=f"agent-eval ({suite})", **{**bodies, **overrides})


PASSED, FAILED = shown("success", "all pass", "b"), shown()
SAME = replace(PASSED, differs=False)
DEARER = shown(says="one fails, and costs more")
UNSAFE = shown(comment_body=f"{FAILED.comment_body}\n![x](http://evil.example)\n")
SUITES = [
    shown(suite="desk", says="1", state="1"),
    shown("success", "1", "1", suite="bank"),
    shown(suite="desk", says="2", state="2"),
    shown("failure", "2", "2", suite="bank"),
]


def commented(author: str, *texts: str) -> Callable[[Rig], None]:
    """Publish where somebody has commented."""

    def act(rig: Rig) -> None:
        for text in texts:
            rig.fake.add_comment(REPO, 7, author, text)
        rig.publish()

    return act


def with_token(login: str, *, count: int = 1, **options: Any) -> Callable[[Rig], None]:
    def act(rig: Rig) -> None:
        rig.fake.token("ghx_other", login)
        for _ in range(count):
            rig.publish(token="ghx_other", settings=PublishOptions(**options))

    return act


def read_only(**event: Any) -> Callable[[Rig], None]:
    def act(rig: Rig) -> None:
        rig.fake.token("ghs_readonly", can_write=False)
        rig.publish(token="ghs_readonly", event=pull_event(**event))

    return act


def repository(**fields: Any) -> Callable[[Rig], None]:
    def act(rig: Rig) -> None:
        for name, value in fields.items():
            setattr(rig.fake.world.repositories[REPO], name, value)
        rig.publish()

    return act


def faulty(
    kind: Any, on: str, *, publishes: int = 1, of: Any = None, **fault: Any
) -> Callable[[Rig], None]:
    def act(rig: Rig) -> None:
        rig.fake.faults.add(kind, on=on, **fault)
        for _ in range(publishes):
            rig.publish(of)

    return act


def push(rig: Rig) -> None:
    rig.fake.add_pull(REPO, 8, SHA, state="closed")
    rig.fake.add_pull(REPO, 9, "d" * 40, commits=(SHA,))
    rig.publish(event=pull_event(name="push", pulls=None))


def late(rig: Rig) -> None:
    rig.publish()
    rig.fake.world.repositories[REPO].pulls[7].head_sha = "f" * 40
    rig.publish(event=pull_event(head_sha="f" * 40))
    for name in ("pull_request", "pull_request_target", "workflow_run"):
        rig.publish(NEWER, event=pull_event(name=name))


def several_pulls(rig: Rig) -> None:
    rig.fake.add_pull(REPO, 9, SHA)
    only = PublishOptions(comment="on-failure")
    rig.publish(FAILED, event=pull_event(), settings=only)
    rig.publish(PASSED, event=pull_event(name="push", pulls=None), settings=only)


def resume(rig: Rig) -> None:
    rig.fake.faults.add("cut_before", on="PATCH *", times=None)
    rig.publish(MANY, settings=NO_COMMENT)
    rig.fake.faults.clear()
    leave_open(rig)
    rig.publish(MANY)


def supersede(rig: Rig) -> None:
    leave_open(rig)
    leave_open(rig, "codecov:1")
    leave_open(rig, app="other")
    rig.publish(publication(conclusion="success"))


def supersede_beside_unchanged(rig: Rig) -> None:
    old = leave_open(rig)
    rig.publish()
    old.status, old.conclusion = "in_progress", None
    rig.publish()


def fail_to_supersede(rig: Rig) -> None:
    old = leave_open(rig)
    rig.fake.faults.add("unprocessable", on=f"PATCH *check-runs/{old.id}")
    rig.publish()


def vanish(rig: Rig) -> None:
    rig.publish()
    rig.fake.faults.add("not_found", on="PATCH */issues/comments/*")
    rig.publish(NEWER)


def strangers_word(rig: Rig) -> None:
    rig.fake.add_comment(REPO, 7, "mallory", FAILED.comment_body)
    by_mode("on-change", FAILED)(rig)
    by_mode("on-failure", PASSED)(rig)


def older_version(rig: Rig) -> None:
    rig.fake.add_comment(REPO, 7, BOT, f"{FAILED.marker}\n### ❌ Agent evals failed: one fails")
    by_mode("on-change", FAILED)(rig)


def switched_off(rig: Rig) -> None:
    by_mode("update", FAILED)(rig)
    by_mode("off", PASSED)(rig)


def lost_answer(rig: Rig) -> None:
    rig.fake.faults.add("bad_gateway_after_work", on="POST */comments")
    by_mode("on-failure", FAILED)(rig)


def two_suites(rig: Rig) -> None:
    for one in (*SUITES, *SUITES[2:]):
        rig.publish(one)


CASES: dict[str, Callable[[Rig], object]] = {
    "a publish": lambda rig: rig.publish(),
    "the same results twice": lambda rig: [rig.publish() for _ in range(2)],
    "other results, and the first again": lambda rig: [rig.publish(one) for one in (None, NEWER, None)],
    "details of an annotation": lambda rig: rig.publish(publication(annotations=(TRACED,))),
    "nothing to annotate": lambda rig: rig.publish(publication(annotations=()), token=None),
    "a body with something foreign": lambda rig: rig.publish(publication(**FOREIGN)),
    # Whose comment it is
    "a comment with other line ends": commented(BOT, publication().comment_body.strip().replace("\n", " \r\n")),
    "a stranger's comment with our marker": commented("mallory", f"{MARKER}\nnot yours"),
    "a comment of ours that quotes the marker": commented(BOT, f"see {MARKER}\n{MARKER}\nof another tool"),
    "two comments of ours": commented(BOT, f"{MARKER}\nfirst", f"{MARKER}\nsecond"),
    "a comment that vanished": vanish,
    # Tokens
    "a personal token": with_token("octocat", count=2, check_run=False),
    "a personal token and a check run": with_token("octocat"),
    "another app's token": with_token("evals[bot]"),
    "another app's token that is named": with_token("evals[bot]", count=2, comment_author="evals[bot]"),
    "a read-only token of a fork": read_only(is_fork=True),
    "a read-only token": read_only(),
    "a read-only token of what publishes for a fork": read_only(name="workflow_run", is_fork=True),
    "Dependabot": read_only(actor="dependabot[bot]"),
    "no token": lambda rig: rig.publish(token=None),
    "no token, outside of a workflow": lambda rig: rig.publish(token=None, settings=PublishOptions(in_workflow=False)),
    "a bad token": lambda rig: rig.publish(token="ghs_expired_token"),
    "an unknown repository": lambda rig: rig.publish(event=pull_event(repository="octo/nowhere")),
    "a repository without issues": repository(has_issues=False),
    "a locked conversation": repository(is_locked=True),
    "a pull request that may not be looked up": faulty("read_only", "GET */pulls/7"),
    "nothing is asked for": lambda rig: rig.publish(settings=PublishOptions(comment="off", check_run=False)),
    # Events
    "a merge group": lambda rig: rig.publish(event=pull_event(name="merge_group", head_sha="c" * 40, pulls=())),
    "a push": push,
    "a schedule": lambda rig: rig.publish(event=pull_event(name="schedule", head_sha="e" * 40, pulls=None)),
    "late runs": late,
    "an enterprise server": lambda rig: [rig.publish(api_url=rig.fake.ghes_url) for _ in range(2)],
    # Check runs of others and of earlier runs
    "a check run that a killed run left": resume,
    "check runs of other results": supersede,
    "a check run of other results beside unchanged ones": supersede_beside_unchanged,
    "a check run that cannot be completed": fail_to_supersede,
    # When a comment is posted
    "on failure, a pass": by_mode("on-failure", PASSED),
    "on failure, a failure and a pass": by_mode("on-failure", FAILED, PASSED, PASSED, FAILED),
    "on change, the first": by_mode("on-change", PASSED),
    "on change, the first that differs": by_mode("on-change", replace(PASSED, differs=True)),
    "on change, the first that does not": by_mode("on-change", SAME),
    "on change, what a reader would act on": by_mode("on-change", FAILED, DEARER, shown(says="two fail", state="c"), SAME),
    "on change, a stand-in": by_mode("on-change", UNSAFE, UNSAFE, FAILED),
    "on change, an older version": older_version,
    "off": switched_off,
    "a stranger's word": strangers_word,
    "a post whose answer was lost": lost_answer,
    "two suites": two_suites,
    "several pull requests of a commit": several_pulls,
    # Waits and refusals
    "a refused batch": faulty("unprocessable", "PATCH *", nth=2, of=publication(annotations=annotations(120), conclusion="success")),
    "a refused batch is not taken for published": faulty("unprocessable", "PATCH *", publishes=2),
    "a long summary gives way": faulty("unprocessable", "PATCH *", of=publication(check_summary="long " * 13_100)),
    "told to wait": faulty("forbidden_retry_after", "PATCH *", retry_after=7),
    "not told how long to wait": faulty("too_many_no_retry_after", "PATCH *"),
    "a rate limit": faulty("rate_limited_reset", "PATCH *", reset_at=int(START) + 100),
    "a post that has to wait": faulty("too_many_no_retry_after", "POST *"),
    "a read that fails": faulty("server_error", "GET *"),
    "a read that is cut": faulty("cut_before", "GET *"),
    "a write that fails": faulty("server_error", "PATCH *"),
    "a rate limit that stays": faulty("too_many_no_retry_after", "POST */check-runs", times=None),
    "a wait that is too long": faulty("forbidden_retry_after", "GET *", retry_after=3600, times=None),
    "a check run that never opened": faulty("server_error", "POST */check-runs", times=None),
    "pull requests that cannot be looked up": lambda rig: [
        rig.fake.faults.add("server_error", on="GET */pulls", times=None),
        rig.publish(event=pull_event(name="push", pulls=None)),
    ],
}  # fmt: skip


def shorten(text: str) -> str:
    return text if len(text) <= 400 else f"{text[:300]} ... {text[-60:]}"


def describe(name: str, rig: Rig) -> str:
    lines = [f"# {name}: {len(rig.fake.requests)} requests, {len(rig.fake.writes)} writes"]
    for result in rig.results:
        ended = "with failures" if result.has_failures else "without a failure"
        lines.append(f"  published {ended}")
        lines += [f"    {part.name}: {part.status}: {part.sentence}" for part in result.parts]
    for number in rig.fake.world.repositories[REPO].pulls:
        for one in rig.fake.comments(REPO, number):
            lines.append(f"  comment on {number} by {one.author}: {one.body!r}")
    for run in rig.check_runs:
        lines.append(
            f"  check run {run.name} of {run.app} at {run.head_sha[:7]}: {run.status}, {run.conclusion}"
        )
        lines.append(f"    {run.title!r}, {shorten(run.summary or '')!r}, {run.details_url}")
        details = [one["raw_details"] for one in run.annotations if "raw_details" in one]
        lines.append(f"    {len(run.annotations)} annotations, details {details}")
    lines += [f"  said {level}: {text}" for level, text in rig.said]
    lines += [
        f"  emitted {len(text.splitlines())} commands: {text[:150]!r}" for text in rig.emitted
    ]
    lines += [f"  waited {rig.naps}"] if rig.naps else []
    return "\n".join(lines).replace(rig.fake.url, "https://api")


def test_the_outcomes_are_the_golden_ones(golden, tmp_path: Path):
    texts = []
    for number, (name, act) in enumerate(CASES.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        for rig in open_rig(folder):
            act(rig)
            texts.append(describe(name, rig))
            assert rig.step_summary.exists() == rig.outputs.exists() is True
    text = "\n".join(texts)
    golden("github/outcomes.txt", f"{text}\n")
