"""Every request of a publish goes wrong in every way, one at a time, and for good."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from ci_agent_eval.github.publication import Publication, PublishResult
from tests.github_fake import LASTING_FAULTS, PASSING_FAULTS, FakeGitHub, FaultKind
from tests.integration.github.rig import (
    BOT,
    MARKER,
    REPO,
    Rig,
    annotations,
    publication,
)
from tests.samples import run_sample

STATUS = {"unprocessable": "422", "not_found": "404", "bad_credentials": "401"}

# A first publish of 120 annotations: list check runs, open, look up the pull request, list
# comments, post, list again, whose token, three batches, conclude. A later one, with a comment of
# ours there: list, whose token, update.
FIRST = 11
LATER = 10
UPDATE = 6
LOOK_FOR_DUPLICATES = {False: (6, 7), True: ()}


def shown() -> Publication:
    return publication(annotations=annotations(120))


def prepare(rig: Rig, *, later: bool) -> None:
    """Leave an older comment of ours, so that the publish under test updates it."""
    if later:
        rig.fake.add_comment(REPO, 7, BOT, f"{MARKER}\nolder results\n")


def assert_nothing_doubled(rig: Rig) -> None:
    assert len(rig.ours) <= 1
    assert len(rig.check_runs) <= 1
    for run in rig.check_runs:
        lines = [one["start_line"] for one in run.annotations]
        assert lines == sorted(set(lines))


def assert_told_the_truth(rig: Rig, result: PublishResult) -> None:
    """Hold what the result says against what GitHub has."""
    assert result.check_run is not None
    (comment,) = result.comments
    whole = [run for run in rig.check_runs if run.conclusion and len(run.annotations) == 120]
    current = [one for one in rig.ours if one.body == shown().comment_body]
    assert result.check_run.is_published == bool(whole and whole[0].summary == "one fails")
    assert comment.is_published == bool(current) or "It is not known" in comment.sentence
    assert len(result.problems) == [result.check_run.is_published, comment.is_published].count(
        False
    )
    # Annotations that are in no check run are workflow commands.
    assert bool(rig.emitted) == (not result.check_run.is_published)


@pytest.mark.parametrize("later", [False, True], ids=["first", "later"])
def test_a_publish_makes_this_many_requests(rig: Rig, later: bool):
    """The cases below count on it."""
    prepare(rig, later=later)
    rig.publish(shown())
    assert len(rig.fake.requests) == (LATER if later else FIRST)


CALLS = [(False, n) for n in range(1, FIRST + 1)] + [(True, n) for n in range(1, LATER + 1)]


def each_fault(kinds: Sequence[FaultKind], phase: int) -> pytest.MarkDecorator:
    """Every kind at every request; `make test` has every third request, with kinds in turn.

    The phases 0, 1 and 2 together reach every request.
    """
    rows = [(kind, later, nth) for later, nth in CALLS for kind in kinds]
    sample = [
        call * len(kinds) + call * 5 // 3 % len(kinds) for call in range(phase, len(CALLS), 3)
    ]
    return pytest.mark.parametrize(("kind", "later", "nth"), run_sample(rows, sample))


@each_fault(PASSING_FAULTS, 0)
def test_one_fault_that_passes(rig: Rig, kind: FaultKind, later: bool, nth: int):
    prepare(rig, later=later)
    fault = rig.fake.faults.add(kind, nth=nth)

    result = rig.publish(shown())

    assert fault.seen > nth
    assert_nothing_doubled(rig)
    assert_told_the_truth(rig, result)
    (run,) = rig.check_runs
    assert (run.status, run.conclusion, len(run.annotations)) == ("completed", "failure", 120)
    assert [comment.body for comment in rig.ours] == [shown().comment_body]
    assert not result.has_failures
    assert result.problems == ()
    assert rig.step_summary.exists()
    assert sum(rig.naps) > 0
    assert "trying again" in rig.everything_said()


@each_fault(LASTING_FAULTS, 1)
def test_one_refusal(rig: Rig, kind: FaultKind, later: bool, nth: int):
    prepare(rig, later=later)
    rig.fake.faults.add(kind, nth=nth)

    result = rig.publish(shown())

    assert_nothing_doubled(rig)
    assert_told_the_truth(rig, result)
    assert all(run.status == "completed" for run in rig.check_runs)
    assert all(run.conclusion == "failure" for run in rig.check_runs)
    if kind != "read_only" and nth in LOOK_FOR_DUPLICATES[later]:
        assert not result.has_failures
        assert "It is not known whether another job posted the same" in rig.everything_said()
    elif (kind, later, nth) == ("not_found", True, UPDATE):
        assert result.comments[0].status == "updated", "as if it had been deleted: looked up anew"
    elif kind != "read_only":
        assert result.has_failures
        assert STATUS[kind] in result.problems[0]
    assert rig.step_summary.exists()
    # The next run of the job gets through.
    rig.publish(shown())
    assert [comment.body for comment in rig.ours] == [shown().comment_body]
    assert len(rig.check_runs[-1].annotations) == 120


@each_fault([*PASSING_FAULTS, *LASTING_FAULTS], 2)
def test_a_fault_that_stays(rig: Rig, kind: FaultKind, later: bool, nth: int):
    """GitHub is gone from the nth request on: what it has is said, and nothing is doubled."""
    prepare(rig, later=later)
    rig.fake.faults.add(kind, nth=nth, times=None, reset_at=1_767_230_000)

    result = rig.publish(shown())

    assert_nothing_doubled(rig)
    assert_told_the_truth(rig, result)
    assert sum(rig.naps) <= 300 + len(rig.fake.writes)
    for run in rig.check_runs:
        if run.status != "completed":
            assert result.check_run is not None
            assert re.search(
                rf"(Check run {run.id} still stands|A check run may stand) in progress",
                result.check_run.sentence,
            )
            assert result.has_failures
    if kind not in LASTING_FAULTS and result.problems:
        assert result.has_failures
    assert rig.step_summary.exists()


UNSEEN: list[tuple[FaultKind, FaultKind]] = [
    (opening, kind)
    for opening in ("bad_gateway_after_work", "cut_after", "cut_halfway")
    for kind in ("not_found", "bad_credentials", "unprocessable", "read_only")
]


@pytest.mark.parametrize(("opening", "kind"), run_sample(UNSEEN, {0, 5, 10}))
def test_a_check_run_that_github_does_not_show_at_first_is_completed(
    rig: Rig, opening: FaultKind, kind: FaultKind
):
    """Nothing says that it was opened, and the looks for it are refused three times."""
    rig.fake.faults.add(opening, on="POST */check-runs")
    rig.fake.faults.add(kind, on="GET */check-runs", nth=2, times=3)

    result = rig.publish()

    assert [(run.status, run.conclusion) for run in rig.check_runs] == [("completed", "failure")]
    assert not result.has_failures


def test_an_interrupted_look_that_is_refused_is_repeated(rig: Rig):
    """The run is interrupted while it waits to look for what it may have opened."""
    rig.fake.faults.add("cut_after", on="POST */check-runs")
    rig.fake.faults.add("not_found", on="GET */check-runs", nth=2)
    rig.interrupt_at = 1

    with pytest.raises(KeyboardInterrupt):
        rig.publish()

    assert [(run.status, run.conclusion) for run in rig.check_runs] == [("completed", "failure")]


def test_an_interrupted_publish_completes_its_check_run(rig: Rig):
    rig.interrupt_at = 1  # the pause before the eleventh write: the eighth batch is out

    with pytest.raises(KeyboardInterrupt) as caught:
        rig.publish(publication(annotations=annotations(500)))

    (run,) = rig.check_runs
    assert (run.status, run.conclusion) == ("completed", "failure")
    assert len(run.annotations) == 400
    assert run.title == "Not published completely: 1 of 3 scenarios fails"
    assert "`Publishing was cut short by KeyboardInterrupt.`" in run.summary
    assert caught.value.__notes__ == ["The check run was completed as failed and says why."]


def test_no_server_is_a_failure_that_says_so(rig: Rig):
    with FakeGitHub() as gone:
        url = gone.url

    result = rig.publish(api_url=url)

    assert result.has_failures
    assert "Check the network" in result.problems[0]
    assert rig.step_summary.exists()
