"""Shards: which scenarios are whose, and what is none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ci_agent_eval.analysis.summary import summarize_results
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.results import Session, Shard
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.load import load_results
from ci_agent_eval.storage.sharding import assign_shards, hash_shard_plan, parse_shard
from tests.builders import episode, write_run
from tests.tables import each_row


def write(tmp_path, index, *episodes):
    session = Session(
        state="finished",
        selected=len(episodes),
        deselected=3,
        exit_status=0 if episodes else 5,
        shard=Shard(index=index, count=3, plan="p", empty=not episodes),
    )
    write_run(tmp_path / f"shards/{index}", *episodes, session=session)


def test_what_every_shard_leaves_out_counts_once(tmp_path):
    for index, episodes in enumerate(([episode("a")], [episode("b"), episode("c")], []), start=1):
        write(tmp_path, index, *episodes)
    loaded = load_results(["shards/*"], [], root=tmp_path)
    assert loaded.findings == ()
    assert summarize_results(loaded, budgets=SuiteBudgets()).deselected == 3


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


@each_row(("index", "count"), [(1, 10_000), (1, 10**10), (3, 2), (0, 2)])
def test_a_shard_that_cannot_be_is_no_session(tmp_path, index, count):
    with pytest.raises(ValidationError):
        Shard(index=index, count=count)
    write(tmp_path, 1, episode())
    session = tmp_path / "shards/1/session.json"
    document = json.loads(session.read_text())
    session.write_text(json.dumps(document | {"shard": {"index": index, "count": count}}))
    found = load_results(["shards/*"], [], root=tmp_path).findings
    assert [f.kind for f in found if f.blocking] == ["unreadable_file"]
