"""Publishing: the requests, many failures, and what a signal leaves."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval.analysis.loaded_results import JUnitCase, OutcomeTally, PlainTests
from ci_agent_eval.app.report_folder import write_report_folder
from ci_agent_eval.app.report_publication import build_publication
from ci_agent_eval.config.options import Settings
from ci_agent_eval.gate.report import Report
from ci_agent_eval.github.publication import Publication
from ci_agent_eval.github.signals import raise_on_termination
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.report_view import build_report_view
from tests.builders import failing, report
from tests.integration.github.rig import (
    MARKER,
    REPO,
    SHA,
    TOKEN,
    Rig,
    annotations,
    publication,
    pull_event,
)
from tests.processes import started_python, wait_for
from tests.render_reports import failing_over_budget


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


# However much failed: the comment comes early, and few requests carry the rest.


LEFT_OUT = "Left out: {} annotations; at most {} are published (`max_annotations`)."


def shown(of: Report, **publish: int) -> Publication:
    settings = Settings.model_validate({"publish": publish})
    links = Links(server_url="https://github.com", repository=REPO)
    return build_publication(of, links, settings, Path("agent-eval-report"))


def plain_failures(number: int) -> Report:
    """A run of plain tests that all failed."""
    cases = tuple(
        JUnitCase("shop", f"test_{n:06}", "failed", "no", file="tests/test_shop.py", line=n)
        for n in range(1, number + 1)
    )
    return report(tests=PlainTests(OutcomeTally(failed=number), cases))


def scenarios_that_failed(number: int) -> Report:
    return report(*(failing(f"s{n:04}") for n in range(number)))


@pytest.mark.parametrize(
    ("of", "left_out"),
    [(lambda: scenarios_that_failed(500), "300"), (lambda: plain_failures(10_000), "9,800")],
    ids=["scenarios", "tests"],
)
def test_the_comment_comes_before_the_200_annotations(
    rig: Rig, of: Callable[[], Report], left_out: str
):
    result = rig.publish(shown(of()))

    assert not result.has_failures
    sent = [f"{one.method} {one.path.rpartition('/')[2]}" for one in rig.fake.writes]
    (run,) = rig.check_runs
    assert sent == ["POST check-runs", "POST comments", *[f"PATCH {run.id}"] * 5]
    assert rig.naps == []
    assert len(run.annotations) == 200
    assert LEFT_OUT.format(left_out, 200) in run.summary
    assert LEFT_OUT.format(left_out, 200) in rig.everything_said()
    assert run.conclusion == "failure"


def test_the_number_is_a_setting(rig: Rig):
    of = scenarios_that_failed(5)
    rig.publish(shown(of, max_annotations=3))
    (run,) = rig.check_runs
    assert [one["title"] for one in run.annotations] == [f"s000{n}: says sorry" for n in range(3)]
    assert LEFT_OUT.format(2, 3) in run.summary

    rig.publish(shown(of, max_annotations=0))
    assert rig.check_runs[-1].annotations == []
    assert LEFT_OUT.format(5, 0) in rig.check_runs[-1].summary


# A publish that is told to end: real processes, real signals.


ROOT = Path(__file__).parents[3]

PUBLISH = """
import signal, sys, time
from ci_agent_eval.github.client import Connection, open_api
from ci_agent_eval.github.publication import PublishOptions
from ci_agent_eval.github.publish import PublishEnvironment, publish_to_github
from ci_agent_eval.github.runner_files import RunnerFiles
from ci_agent_eval.github.signals import Terminated, raise_on_termination
from tests.integration.github.rig import REPO, TOKEN, annotations, publication, pull_event

log = lambda _level, text: print(text, flush=True)
link = Connection(REPO, TOKEN, sys.argv[1])
open_it = lambda: open_api(link, sleep=time.sleep, clock=time.time, log=log)
try:
    with raise_on_termination(grace_s=float(sys.argv[2])):
        shown = publication(annotations=annotations(120), conclusion="success")
        around = PublishEnvironment(RunnerFiles(), log, print, str)
        publish_to_github(
            shown, pull_event(), PublishOptions(), connect=open_it, around=around
        )
except Terminated as error:
    print(*error.__notes__)
    sys.exit(error.exit_code)
"""

STALLED = "waiting 60 s"
"""What a publish says once it waits for GitHub, where a test can send its signal."""


def publishing(rig: Rig, *, grace_s: float = 5.0) -> Any:
    return started_python("-c", PUBLISH, rig.fake.url, str(grace_s), cwd=ROOT, PYTHONPATH=str(ROOT))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_publish_that_is_ended_completes_its_check_run(rig: Rig, number: signal.Signals):
    rig.fake.faults.add("too_many_no_retry_after", on="PATCH *", nth=2)
    with publishing(rig) as process:
        wait_for(process, STALLED)
        process.send_signal(number)
        rest, _ = process.communicate()

    assert process.returncode == 128 + number, rest
    assert rest.endswith("The check run was completed as failed and says why.\n")
    (run,) = rig.check_runs
    assert (run.status, run.conclusion, len(run.annotations)) == ("completed", "failure", 50)
    assert f"`Publishing was cut short by {number.name}.`" in run.summary
    assert "The verdict itself was: success." in run.summary


def test_the_time_to_tidy_up_is_limited_and_later_signals_do_not_cut_it(rig: Rig):
    """GitHub keeps refusing: the process waits for it no longer than it was given."""
    rig.fake.faults.add("too_many_no_retry_after", on="PATCH *", times=None)
    with publishing(rig, grace_s=0.5) as process:
        wait_for(process, STALLED)
        process.send_signal(signal.SIGINT)
        # The second wait is that of tidying up.
        wait_for(process, "waiting 60 s")
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate()

    assert process.returncode == 130, rest
    assert "the time to complete it was too short" in rest
    (run,) = rig.check_runs
    assert run.status == "in_progress"


def test_a_signal_that_was_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with raise_on_termination():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_command_line_ends_as_the_signal_asks(rig: Rig, tmp_path: Path):
    number = signal.SIGINT
    built = failing_over_budget()
    write_report_folder(built, build_report_view(built), tmp_path / "report")
    event = {
        "repository": {"full_name": REPO},
        "pull_request": {"number": 7, "head": {"sha": SHA, "repo": {"full_name": REPO}}},
    }
    (tmp_path / "event.json").write_text(json.dumps(event))
    rig.fake.faults.add("too_many_no_retry_after", on="PATCH *")
    with started_python(
        "-m",
        "ci_agent_eval",
        "publish",
        f"--report-dir={tmp_path / 'report'}",
        cwd=ROOT,
        GITHUB_API_URL=rig.fake.url,
        GITHUB_EVENT_NAME="pull_request",
        GITHUB_EVENT_PATH=str(tmp_path / "event.json"),
        GITHUB_REPOSITORY=REPO,
        GITHUB_TOKEN=TOKEN,
    ) as process:
        wait_for(process, STALLED)
        process.send_signal(number)
        rest, _ = process.communicate()

    assert process.returncode == 128 + number
    assert f"agent-eval: ended by {number.name}. The check run was completed as failed" in rest
    (run,) = rig.check_runs
    assert (run.status, run.conclusion) == ("completed", "failure")
