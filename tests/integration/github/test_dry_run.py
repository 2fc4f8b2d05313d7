from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

from ci_agent_eval.github.dry_run import DryRun
from ci_agent_eval.github.publication import PublishOptions, PublishResult
from ci_agent_eval.github.publish import PublishEnvironment, publish_to_github
from ci_agent_eval.github.runner_files import RunnerFiles
from tests.integration.github.rig import (
    REPO,
    Rig,
    annotations,
    publication,
    pull_event,
)


def dry(rig: Rig, shown: list[str]) -> PublishResult:
    api = DryRun(REPO, shown.append, rig.log)
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
