"""What GitHub says of a run and of its attempts, held against a report of its results."""

from __future__ import annotations

from ci_agent_eval.app.fork_handoff import find_handoff_findings
from ci_agent_eval.contract.results import Session, Shard
from ci_agent_eval.github.event import SourceRun
from tests.builders import episode, report


def source(conclusion="success", attempt=1):
    return SourceRun(5, 1, "pull_request", conclusion, "main", "mallory/shop", attempt)


def session(attempt=1, index=None, run="5"):
    shard = None if index is None else Shard(index=index, count=2)
    return Session(state="finished", run=run, attempt=attempt, shard=shard)


def told(run, *sessions, of=None):
    found = find_handoff_findings(run, sessions or (session(),), of or report(episode()))
    return [(finding.message, finding.blocking) for finding in found]


def test_a_shard_that_was_not_run_again_is_said():
    shards = (session(1, index=1), session(1, index=2), session(2, index=2))
    assert told(source(attempt=2), *shards) == [
        ("attempt 2 did not run shard 1 again: its results are of 1", False)
    ]
    failed = told(source("failure", attempt=2), *shards)
    assert [blocking for _, blocking in failed] == [True, False]


def test_what_names_no_run_names_no_attempt():
    assert told(source(attempt=2), session(run=None)) == []
    assert told(source(attempt=None), session()) == []
