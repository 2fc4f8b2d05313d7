"""Taking over another run's results: what is taken, what is refused, and what a fault does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval.app.action import publish_unexpected_errors
from ci_agent_eval.app.fork_handoff import download_results, get_source_run, publish_refusal
from ci_agent_eval.app.pipeline import Job
from ci_agent_eval.config.options import Settings
from ci_agent_eval.errors import InputError, PublishError
from ci_agent_eval.github.artifacts import fetch_artifacts, is_run_data, list_artifacts
from ci_agent_eval.github.client import Connection
from ci_agent_eval.github.event import Event, SourceRun
from ci_agent_eval.render.markdown.guard import find_foreign_elements
from ci_agent_eval.storage.archives import ArchiveLimits
from tests.archive_builders import hostile_zips, report_files, report_zip, zipped
from tests.builders import episode
from tests.github_fake import PASSING_FAULTS, FaultKind
from tests.integration.github.rig import BOT, MARKER, REPO, SHA, TOKEN, Rig, pull_event
from tests.samples import run_sample

NAME = "agent-eval-report"
HOSTILE = hostile_zips(SHA)


def fork_event(rig: Rig, **fields: Any) -> Event:
    run = rig.fake.add_workflow_run(
        REPO, event="pull_request", head_sha=SHA, head_repo="mallory/shop", head_branch="main"
    )
    source = SourceRun(run.id, 1, "pull_request", "success", "main", "mallory/shop")
    return pull_event(
        **{"name": "workflow_run", "pulls": None, "is_fork": True, "source": source, **fields}
    )


def handed_over(rig: Rig, data: bytes, name: str = NAME, **fields: Any) -> Event:
    event = fork_event(rig)
    rig.fake.add_artifact(REPO, get_source_run(event).id, name, data=data, **fields)
    return event


def within(rig: Rig, do: Callable[[Any, Path], Any]) -> list[str]:
    """Act with the API and an empty folder; return what is in that then."""
    into = rig.folder / "into"
    into.mkdir(exist_ok=True)
    with rig.connect(Connection(REPO, TOKEN, rig.fake.url, timeout_s=5)) as api:
        do(api, into)
    return sorted(p.relative_to(into).as_posix() for p in into.rglob("*") if p.is_file())


def taken(rig: Rig, event: Event, name: str = NAME) -> list[str]:
    return within(rig, lambda api, into: download_results(api, event, name=name, into=into))


def refused(rig: Rig, event: Event, name: str = NAME) -> str:
    with pytest.raises(InputError) as caught:
        taken(rig, event, name)
    return str(caught.value)


def test_only_what_a_run_itself_leaves_is_taken(rig: Rig):
    files = {**report_files(commit=SHA), "episodes/main.jsonl": "", "episodes/evil.py": "1"}
    event = handed_over(rig, zipped({**files, "agent-eval.toml": "[gate]\nmin_pass_rate = 0"}))
    assert taken(rig, event) == ["episodes/main.jsonl", "junit.xml", "results.json", "session.json"]


def test_shards_by_a_pattern(rig: Rig):
    event = handed_over(rig, report_zip(episode("s1"), commit=SHA), "shard-1")
    rig.fake.add_artifact(
        REPO, get_source_run(event).id, "shard-2", data=report_zip(episode("s2"), commit=SHA)
    )
    assert {name.partition("/")[0] for name in taken(rig, event, "shard-*")} == {"1", "2"}


# What only the loader finds out is refused after it; see test_fork_flow.
@pytest.mark.parametrize("case", sorted(set(HOSTILE) - {"wrong schema", "no JSON"}))
def test_what_is_refused(rig: Rig, case: str):
    data, sentence = HOSTILE[case]
    event = handed_over(rig, data)
    said = refused(rig, event)
    assert sentence in said
    assert "\n" not in said


def test_one_shard_of_another_commit_refuses_all(rig: Rig):
    event = handed_over(rig, report_zip(episode("s1"), commit=SHA), "shard-1")
    rig.fake.add_artifact(
        REPO, get_source_run(event).id, "shard-2", data=report_zip(episode("s2"), commit="f" * 40)
    )
    assert "2/session.json: it is about commit ffff" in refused(rig, event, "shard-*")


def test_no_artifact_and_an_expired_one(rig: Rig):
    event = fork_event(rig)
    assert f"left no artifact {NAME}" in refused(rig, event)
    rig.fake.add_artifact(REPO, get_source_run(event).id, NAME, data=b"", expired=True)
    assert "has expired; run it again" in refused(rig, event)


def test_an_artifact_of_another_run_or_commit(rig: Rig):
    event = handed_over(rig, report_zip(commit=SHA))
    rig.fake.world.repositories[REPO].workflow_runs[get_source_run(event).id].head_sha = "e" * 40
    assert "its run is about commit eeee" in refused(rig, event)
    # The listing of one run answers with another's: a server that is not GitHub's.
    rig.fake.world.repositories[REPO].workflow_runs[get_source_run(event).id].id = 5
    assert "it belongs to run 5, not" in refused(rig, event)


def test_too_much(rig: Rig):
    event = handed_over(rig, report_zip(commit=SHA), size_in_bytes=300 << 20)
    assert "of one run 256 MiB at most are read" in refused(rig, event)
    for number in range(301):
        rig.fake.add_artifact(REPO, get_source_run(event).id, f"a{number}")
    assert "more than 300 artifacts" in refused(rig, event)


def test_the_limit_of_unpacked_bytes_is_for_all_artifacts_of_a_run(rig: Rig):
    run = get_source_run(fork_event(rig)).id
    for name in ("shard-1", "shard-2"):
        rig.fake.add_artifact(REPO, run, name, data=zipped({"results.json": "x" * 600}))

    def fetch(api: Any, into: Path) -> None:
        fetch_artifacts(
            api,
            list_artifacts(api, run, "shard-*"),
            into,
            run_id=run,
            head_sha=SHA,
            wanted=is_run_data,
            limits=ArchiveLimits(total_bytes=1000),
        )

    with pytest.raises(InputError, match=r"'shard-2' .* unpacks to more than"):
        within(rig, fetch)


def test_another_event_and_a_run_that_goes_on(rig: Rig):
    with pytest.raises(InputError, match="started by pull_request; it publishes what another"):
        get_source_run(pull_event())
    event = fork_event(rig)
    running = replace(event, source=replace(get_source_run(event), conclusion=None))
    with pytest.raises(InputError, match="has not ended; start this workflow with"):
        get_source_run(running)


def refusal(rig: Rig, event: Event, sentence: str, **publish: Any) -> None:
    settings = Settings.model_validate({"suite": "shop", "publish": {"check_name": "a", **publish}})
    within(
        rig, lambda api, _: publish_refusal(api, event, sentence, settings=settings, log=rig.log)
    )


def test_a_refusal_is_a_failed_check_run_and_nothing_takes_effect_in_it(rig: Rig):
    event = fork_event(rig)
    refusal(rig, event, "artifact '@octocat\x1b[31m' ![x](http://evil) `` <b> #1\n## big")
    (run,) = rig.check_runs
    assert (run.name, run.head_sha, run.conclusion) == ("a (shop)", SHA, "failure")
    assert run.summary == (
        "The results were refused, and nothing of them is published: "
        "```artifact '@octocat⟨U+001B⟩[31m' ![x](http://evil) `` <b> #1⏎## big```"
    )
    assert rig.comments == []


def of_fork(rig: Rig, number: int, sha: str = SHA, body: str = f"{MARKER}\n### ✅ passed") -> Any:
    """A pull request of the fork with a comment of ours."""
    rig.fake.add_pull(REPO, number, sha, head_repo="mallory/shop", head_ref="main")
    return rig.fake.add_comment(REPO, number, BOT, body)


def test_a_refusal_corrects_the_comment_of_earlier_results(rig: Rig):
    green, other = of_fork(rig, 8), of_fork(rig, 9, "e" * 40)
    stranger = rig.fake.add_comment(REPO, 8, "mallory", f"{MARKER}\nmine")
    of_suite = rig.fake.add_comment(REPO, 8, BOT, MARKER.replace("shop", "desk"))
    before = [other.body, stranger.body, of_suite.body]
    refusal(rig, fork_event(rig), "no @octocat archive")
    assert green.body == (
        f"{MARKER}\n### ❌ Agent evals failed: the results were refused\n\n"
        "Nothing of them is published: `no @octocat archive` "
        f"([run](https://github.com/{REPO}/actions/runs/1))\n"
    )
    assert find_foreign_elements(green.body, (f"https://github.com/{REPO}/",)) == ()
    assert [other.body, stranger.body, of_suite.body] == before
    assert rig.comments == []


@pytest.mark.parametrize(
    ("publish", "runs", "is_corrected"),
    [({"check_run": False}, 0, True), ({"comment": "off"}, 1, False)],
)
def test_a_refusal_is_published_where_it_is_wanted(
    rig: Rig, publish: dict[str, Any], runs: int, is_corrected: bool
):
    green = of_fork(rig, 8)
    refusal(rig, fork_event(rig), "no", **publish)
    assert len(rig.check_runs) == runs
    assert ("refused" in green.body) == is_corrected


def test_a_comment_that_cannot_be_corrected_keeps_no_check_run_from_failing(rig: Rig):
    of_fork(rig, 8)
    rig.fake.faults.add("unprocessable", on="PATCH */comments/*", times=None)
    with pytest.raises(PublishError, match="422"):
        refusal(rig, fork_event(rig), "no")
    assert [run.conclusion for run in rig.check_runs] == ["failure"]


def test_a_token_that_may_not_comment_is_told(rig: Rig):
    of_fork(rig, 8)
    rig.fake.faults.add("read_only", on="PATCH */comments/*")
    refusal(rig, fork_event(rig), "no")
    assert "A comment of earlier results may stand." in rig.everything_said()
    assert [run.conclusion for run in rig.check_runs] == ["failure"]


FAULTS = [(kind, nth) for nth in range(1, 9) for kind in PASSING_FAULTS]


@pytest.mark.parametrize(("kind", "nth"), run_sample(FAULTS, range(0, 64, 9)))
def test_a_refusal_outlasts_what_goes_over_and_is_there_once(rig: Rig, kind: FaultKind, nth: int):
    event, green = fork_event(rig), of_fork(rig, 8)
    rig.fake.faults.add(kind, nth=nth)
    refusal(rig, event, "no")
    refusal(rig, event, "no")
    assert [(run.status, run.conclusion) for run in rig.check_runs] == [("completed", "failure")]
    assert rig.fake.comments(REPO, 8) == [green]
    assert "refused" in green.body


def faulty(rig: Rig, error: BaseException, **publish: Any) -> None:
    """Publish a run's results with a fault in between."""
    settings = Settings.model_validate({"publish": publish})
    job = Job(settings, root=rig.folder, environ={})
    event = fork_event(rig, api_url=rig.fake.url)
    with (
        pytest.raises(type(error)) as caught,
        publish_unexpected_errors(TOKEN, event, job, rig.log),
    ):
        raise error
    assert caught.value is error


@pytest.mark.parametrize(
    "error", [MemoryError(), RecursionError("deep"), KeyError("what they wrote")]
)
def test_what_nobody_thought_of_fails_the_check(rig: Rig, error: Exception):
    faulty(rig, error)
    (run,) = rig.check_runs
    assert (run.head_sha, run.conclusion) == (SHA, "failure")
    assert f"an unexpected {type(error).__name__} ended the job" in run.summary
    assert "what they wrote" not in run.summary


@pytest.mark.parametrize("error", [InputError("said"), PublishError("said"), KeyboardInterrupt()])
def test_what_was_thought_of_is_said_by_those_who_did(rig: Rig, error: BaseException):
    faulty(rig, error)
    assert rig.check_runs == []


def test_a_fault_is_told_although_its_refusal_fails_too(rig: Rig):
    rig.fake.faults.add("unprocessable", on="POST */check-runs", times=None)
    faulty(rig, MemoryError())
    assert rig.check_runs == []


def test_no_check_run_is_made_where_none_is_wanted(rig: Rig):
    faulty(rig, MemoryError(), check_run=False)
    assert rig.fake.writes == []
