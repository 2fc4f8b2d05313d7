"""A publish that is told to end: real processes, real signals."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval.app.report_folder import write_report_folder
from ci_agent_eval.github.signals import raise_on_termination
from ci_agent_eval.render.report_view import build_report_view
from tests.integration.github.rig import REPO, SHA, TOKEN, Rig
from tests.processes import started_python, wait_for
from tests.render_reports import failing_over_budget

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
