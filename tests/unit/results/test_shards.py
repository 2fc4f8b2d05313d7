"""Shards merge to what one run would have said, or say what keeps them from it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.results import CollectionError, Session, Shard
from ci_agent_eval.errors import InputError
from ci_agent_eval.gate import GatePolicy
from ci_agent_eval.gate.report import build_report
from ci_agent_eval.render.formats.annotations import list_annotations
from ci_agent_eval.render.formats.document import render_verdict
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.markdown.report import render_comment
from ci_agent_eval.render.report_view import build_report_view
from ci_agent_eval.render.sentences import describe_finding
from ci_agent_eval.results.load import load_results
from ci_agent_eval.storage.sharding import assign_shards, hash_shard_plan, parse_shard
from tests.builders import episode, failing, junit_case, junit_case_of, junit_xml, write_run
from tests.tables import each_row

EPISODES = [episode(f"s{n}", nodeid=f"t.py::test_{n}") for n in range(9)]
EPISODES += [failing("bad", nodeid="t.py::test_bad")]


def write(tmp_path, index, count, *episodes, name=None, state="finished", **shard):
    session = Session(
        state=state,
        selected=len(episodes),
        deselected=3,
        commit=shard.pop("commit", "4f2a91c"),
        suite=shard.pop("suite", "default"),
        exit_status=0 if episodes else 5,
        shard=Shard(index=index, count=count, plan="p", empty=not episodes, **shard),
    )
    cases = [
        junit_case_of(e, '<failure message="x"/>' if e.outcome == "failed" else "")
        for e in episodes
    ]
    folder = tmp_path / "shards" / (name or str(index))
    write_run(folder, *episodes, session=session, junit=junit_xml(*cases))


def split(tmp_path, count):
    parts = assign_shards([e.scenario_id for e in EPISODES], count, {})
    for index in range(1, count + 1):
        mine = [e for e in EPISODES if parts[e.scenario_id] == index]
        write(tmp_path, index, count, *mine)


def loaded(tmp_path):
    return load_results(["shards/*"], [], root=tmp_path)


def report(tmp_path):
    return build_report(
        loaded(tmp_path), suite="default", budgets=SuiteBudgets(), policy=GatePolicy()
    )


def rendered(found):
    return (
        render_comment(build_report_view(found, Links())),
        render_verdict(found),
        list_annotations(build_report_view(found)),
    )


def shard_messages(tmp_path):
    return [
        describe_finding(f) for f in loaded(tmp_path).findings if f.kind == "shards" and f.blocking
    ]


@each_row("count", [2, 7, 12])
def test_any_split_gives_the_bytes_of_one_run(tmp_path, count):
    split(tmp_path / "one", 1)
    split(tmp_path / "many", count)
    assert rendered(report(tmp_path / "many")) == rendered(report(tmp_path / "one"))
    assert shard_messages(tmp_path / "many") == []


def test_what_every_shard_leaves_out_counts_once(tmp_path):
    split(tmp_path, 3)
    assert report(tmp_path).summary.deselected == 3


@each_row("text", ["", "0/2", "3/2", "1", "a/b", "1/0", "1/99999", "-1/2"])
def test_what_is_no_shard(text):
    with pytest.raises(InputError, match="INDEX/COUNT"):
        parse_shard(text)


names = st.lists(st.text(min_size=1, max_size=5), unique=True, max_size=30)


@given(names, st.integers(1, 8), st.randoms(use_true_random=False))
def test_every_unit_is_in_one_shard_whatever_the_order(units, count, shuffle):
    assigned = assign_shards(units, count, {})
    shuffled = list(units)
    shuffle.shuffle(shuffled)
    assert assign_shards(shuffled, count, {}) == assigned
    assert hash_shard_plan(assign_shards(shuffled, count, {})) == hash_shard_plan(assigned)
    assert set(assigned) == set(units)
    assert set(assigned.values()) <= set(range(1, count + 1))
    sizes = [list(assigned.values()).count(n) for n in range(1, count + 1)]
    assert max(sizes) - min(sizes) <= 1


BROKEN = '<error message="collection failure">No module</error>'
LEFT_OUT = '<skipped message="collection skipped">not here</skipped>'


def write_uncollected(folder, index, count, selected):
    """Write what pytest leaves of a shard of a suite in which one file cannot be collected."""
    session = Session(
        state="finished",
        exit_status=2,
        selected=selected,
        collection_errors=(CollectionError(nodeid="a/test_c.py", message="No module"),),
        shard=Shard(index=index, count=count, plan="p", empty=not selected),
    )
    cases = (
        junit_case(BROKEN, classname="", name="a.test_c"),
        junit_case(LEFT_OUT, classname="", name="a.test_d"),
    )
    write_run(folder / "shards" / str(index), session=session, junit=junit_xml(*cases))


def test_what_no_shard_could_collect_is_told_once_and_in_the_same_bytes(tmp_path):
    write_uncollected(tmp_path / "one", 1, 1, 5)
    for index, selected in enumerate((2, 3, 0), start=1):
        write_uncollected(tmp_path / "many", index, 3, selected)
    one, many = report(tmp_path / "one"), report(tmp_path / "many")
    assert rendered(many) == rendered(one)
    assert (many.summary.tests.tally.error, many.summary.tests.tally.skipped) == (1, 1)
    (interrupted,) = [f for f in many.summary.findings if f.kind == "interrupted"]
    assert interrupted.where == "session.json"
    assert "0 of 5 selected episodes finished" in interrupted.message


@each_row(("index", "count"), [(1, 10_000), (1, 10**10), (3, 2), (0, 2)])
def test_a_shard_that_cannot_be_is_no_session(tmp_path, index, count):
    with pytest.raises(ValidationError):
        Shard(index=index, count=count)
    write(tmp_path, 1, 1, EPISODES[0])
    session = tmp_path / "shards/1/session.json"
    document = json.loads(session.read_text())
    session.write_text(json.dumps(document | {"shard": {"index": index, "count": count}}))
    found = loaded(tmp_path).findings
    assert [f.kind for f in found if f.blocking] == ["unreadable_file"]
