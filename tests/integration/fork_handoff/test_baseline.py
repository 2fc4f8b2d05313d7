"""A baseline of artifacts: which runs count, what is left out, and why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ci_agent_eval.analysis.comparison.model import Baseline, NoBaseline
from ci_agent_eval.github.client import Connection
from ci_agent_eval.github.concurrent_requests import run_concurrently
from ci_agent_eval.github.event import Event, SourceRun
from ci_agent_eval.results.baselines import artifact
from ci_agent_eval.results.baselines.artifact import build_artifact_source
from ci_agent_eval.results.baselines.request import BaselineRequest, FoundBaseline
from tests.archive_builders import hostile_zips, report_zip, zipped
from tests.builders import episode
from tests.github_fake import PASSING_FAULTS, FaultKind
from tests.integration.github.rig import REPO, SHA, TOKEN, Rig, pull_event
from tests.samples import run_sample

NAME = "agent-eval-report"


def base_run(rig: Rig, *scenarios: str, data: bytes | None = None, **fields: Any) -> int:
    """Add a run of the base branch with its artifact; return its id."""
    run = rig.fake.add_workflow_run(REPO, **fields)
    items = [episode(name) for name in scenarios or ("refund",)]
    content = report_zip(*items, commit=run.head_sha) if data is None else data
    rig.fake.add_artifact(REPO, run.id, NAME, data=content)
    return run.id


def own_run(rig: Rig, **fields: Any) -> int:
    return rig.fake.add_workflow_run(REPO, event="pull_request", head_sha=SHA, **fields).id


def find(
    rig: Rig, event: Event, *, name: str = NAME, token: str = TOKEN, **wanted: Any
) -> FoundBaseline:
    link = Connection(REPO, token, rig.fake.url, timeout_s=5)
    source = build_artifact_source((lambda: rig.connect(link)) if token else None, event, name=name)
    return source(BaselineRequest("artifact", rig.folder, **wanted))


def on_main(rig: Rig, **fields: Any) -> Event:
    return pull_event(**{"run_id": own_run(rig), "base_branch": "main", **fields})


def ids(found: FoundBaseline) -> list[str]:
    assert isinstance(found.baseline, Baseline), found
    return [run.label for run in found.baseline.runs]


def why_none(found: FoundBaseline) -> str:
    assert isinstance(found.baseline, NoBaseline), found
    return found.baseline.reason


def test_the_last_runs_of_the_base_branch(rig: Rig):
    first = base_run(rig, "a", head_sha="1" * 40)
    for conclusion in ("cancelled", "timed_out", "startup_failure", "action_required", None):
        base_run(rig, conclusion=conclusion)
    base_run(rig, head_branch="topic")
    base_run(rig, workflow_id=2)
    base_run(rig, event="pull_request")
    base_run(rig, event="push", head_repo="mallory/shop")
    nightly = base_run(rig, "b", event="schedule", head_sha="2" * 40)
    found = find(rig, on_main(rig))
    assert ids(found) == [f"run {nightly}", f"run {first}"]
    assert isinstance(found.baseline, Baseline)
    assert found.baseline.label == "main@2222222"
    assert [run.commit for run in found.baseline.runs] == ["2" * 40, "1" * 40]
    assert [e.scenario_id for run in found.baseline.runs for e in run.episodes] == ["b", "a"]
    assert found.findings == ()


def test_a_run_whose_gate_failed_counts_where_its_results_are_whole(rig: Rig):
    whole = base_run(rig, conclusion="failure")
    cut = base_run(rig, conclusion="failure", data=report_zip(state="interrupted", selected=5))
    missing = base_run(rig, conclusion="failure", data=report_zip(selected=5))
    found = find(rig, on_main(rig))
    assert ids(found) == [f"run {whole}"]
    left_out = [finding.message for finding in found.findings]
    for run in (cut, missing):
        (message,) = [m for m in left_out if f"run {run}" in m]
        assert "1 of 5 selected episodes finished" in message
        assert message.endswith("; this run is left out")


def test_runs_of_another_suite_are_left_out(rig: Rig):
    own = base_run(rig, data=report_zip(commit=None, suite="shop"))
    base_run(rig, data=report_zip(commit=None, suite="desk"))
    found = find(rig, on_main(rig), suite="shop")
    assert ids(found) == [f"run {own}"]
    (finding,) = found.findings
    assert finding.blocking is False
    assert "its results are of suite 'desk', this is suite 'shop'" in finding.message


@pytest.mark.parametrize("name", ["push", "schedule", "workflow_dispatch"])
def test_a_run_of_the_branch_itself_is_compared_with_the_runs_before_it(rig: Rig, name: str):
    before = base_run(rig)
    own = base_run(rig)
    base_run(rig)
    event = pull_event(name=name, pulls=None, run_id=own, base_branch="main")
    assert ids(find(rig, event)) == [f"run {before}"]


def test_a_fork_s_run_takes_the_base_of_its_pull_request(rig: Rig):
    base_run(rig, head_branch="main")
    wanted = base_run(rig, head_branch="v2")
    rig.fake.add_pull(REPO, 8, SHA, head_repo="mallory/shop", head_ref="main", base_ref="v2")
    rig.fake.add_pull(REPO, 9, "e" * 40, head_repo="mallory/shop", head_ref="main")
    source = SourceRun(own_run(rig), 1, "pull_request", "success", "main", "mallory/shop")
    event = pull_event(name="workflow_run", pulls=None, is_fork=True, source=source, run_id=999)
    assert ids(find(rig, event)) == [f"run {wanted}"]


def test_shards_are_one_run_by_a_pattern(rig: Rig):
    run = rig.fake.add_workflow_run(REPO)
    for number in (1, 2):
        rig.fake.add_artifact(
            REPO, run.id, f"shard-{number}", data=report_zip(episode(f"s{number}"))
        )
    rig.fake.add_artifact(REPO, run.id, "log", data=b"no archive")
    found = find(rig, on_main(rig), name="shard-*")
    assert isinstance(found.baseline, Baseline)
    assert [e.scenario_id for e in found.baseline.runs[0].episodes] == ["s1", "s2"]


# A baseline takes its commit from GitHub, so that a report without a session will do.
HOSTILE = {
    **{k: v for k, v in hostile_zips("b" * 40).items() if k not in {"no session", "no commit"}},
    "nothing": (zipped({"readme.txt": "hello"}), "no episode"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_artifact_is_said_and_left_out(rig: Rig, case: str):
    data, sentence = HOSTILE[case]
    good = base_run(rig)
    bad = base_run(rig, data=data)
    found = find(rig, on_main(rig))
    assert ids(found) == [f"run {good}"]
    (finding,) = found.findings
    assert (finding.kind, finding.blocking) == ("baseline", False)
    assert f"run {bad}" in finding.message
    assert sentence in finding.message
    assert finding.message.endswith("; this run is left out")


def test_none_is_left(rig: Rig):
    base_run(rig, data=b"no archive")
    found = find(rig, on_main(rig))
    assert why_none(found) == (f"of the last 1 runs on main no artifact {NAME} can be used")
    assert "cannot be read as a zip archive" in found.findings[0].message


def test_report_that_was_uploaded_as_a_single_file_is_skipped(rig: Rig):
    run = base_run(rig)
    rig.fake.add_artifact(REPO, run, "agent-eval-report.html", data=b"<!doctype html>")

    found = find(rig, on_main(rig), name="agent-eval-*")

    assert ids(found) == [f"run {run}"]
    assert found.findings == ()


def test_broken_archive_beside_a_good_one_is_refused(rig: Rig):
    run = base_run(rig)
    rig.fake.add_artifact(REPO, run, "agent-eval-shard-2", data=b"<!doctype html>")

    found = find(rig, on_main(rig), name="agent-eval-*")

    assert "cannot be read as a zip archive" in found.findings[0].message


def test_reasons_for_none(rig: Rig):
    assert why_none(find(rig, on_main(rig))) == (
        "no run of this workflow on main has come to its end yet; the first one becomes the baseline"
    )
    run = rig.fake.add_workflow_run(REPO)
    assert "none left an artifact agent-eval-report; upload" in why_none(find(rig, on_main(rig)))
    rig.fake.add_artifact(REPO, run.id, NAME, data=report_zip(), expired=True)
    assert "every artifact agent-eval-report has expired" in why_none(find(rig, on_main(rig)))
    assert "there is no token" in why_none(find(rig, on_main(rig), token=""))
    assert "this is not a workflow run" in why_none(find(rig, pull_event(base_branch="main")))
    unknown = on_main(rig, base_branch=None, pulls=None)
    rig.fake.world.repositories[REPO].pulls.clear()
    assert "the base branch is not known" in why_none(find(rig, unknown))


def test_old_runs_are_not_asked_about_for_ever(rig: Rig):
    base_run(rig)
    for _ in range(30):
        rig.fake.add_workflow_run(REPO)
    assert "of the last 10 runs on main" in why_none(find(rig, on_main(rig)))
    assert len(rig.fake.requests) == 12


def each_fault(kinds: Sequence[FaultKind]) -> pytest.MarkDecorator:
    """Every kind at every request; `make test` has every request, with the kinds in turn."""
    rows = [(kind, nth) for nth in range(1, 9) for kind in kinds]
    sample = [nth * len(kinds) + nth % len(kinds) for nth in range(8)]
    return pytest.mark.parametrize(("kind", "nth"), run_sample(rows, sample))


@each_fault([kind for kind in PASSING_FAULTS if kind != "cut_halfway"])
def test_a_fault_that_passes(rig: Rig, kind: FaultKind, nth: int):
    made = [base_run(rig), base_run(rig)]
    event = on_main(rig)
    rig.fake.faults.add(kind, nth=nth)
    assert ids(find(rig, event)) == [f"run {made[1]}", f"run {made[0]}"]
    assert "trying again" in rig.everything_said()


@each_fault(["read_only", "unprocessable", "server_error"])
def test_a_fault_that_lasts_is_no_baseline_and_no_pass(rig: Rig, kind: FaultKind, nth: int):
    """A baseline that was asked for and could not be had blocks, but for a missing permission."""
    base_run(rig)
    base_run(rig)
    event = on_main(rig)
    rig.fake.faults.add(kind, nth=nth, times=None)
    found = find(rig, event)
    if kind == "read_only":
        assert "actions: read" in why_none(found)
        assert found.findings == ()
    else:
        assert why_none(found)
        assert [finding.blocking for finding in found.findings] == [True]


def test_several_runs_are_asked_for_at_once_and_come_in_order(rig: Rig, monkeypatch):
    made = [base_run(rig, f"scenario_{number}") for number in range(9)]
    asked: list[int] = []

    def counted(work: Any, items: Any) -> Any:
        asked.append(len(items))
        return run_concurrently(work, items)

    monkeypatch.setattr(artifact, "run_concurrently", counted)
    found = find(rig, on_main(rig), runs=6)
    assert ids(found) == [f"run {run}" for run in made[:2:-1]]
    assert asked == [4, 2]


def test_no_run_is_asked_for_that_is_not_needed(rig: Rig):
    made = [base_run(rig) for _ in range(4)]
    base_run(rig, data=b"no archive")
    rig.fake.add_workflow_run(REPO)
    assert ids(find(rig, on_main(rig), runs=3)) == [f"run {run}" for run in made[:0:-1]]
    listed = [r.path for r in rig.fake.requests if r.path.endswith("/artifacts")]
    assert not any(f"/{made[0]}/" in path for path in listed)
