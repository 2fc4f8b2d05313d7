"""The dependencies of shards, merged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ci_agent_eval.dependencies.merge import merge_runs
from ci_agent_eval.dependencies.model import Reached, RunDependencies

FIRST = RunDependencies(
    recorded_at=9,
    python="p",
    platform="p",
    commit="c",
    is_clean=True,
    hashes={"a.py": "1"},
    imports={"a.py": frozenset({"b.py"})},
    variables={"HOME": "1", "TZ": "2"},
    shared=Reached(files=frozenset({"one"})),
    scenarios={"one": Reached(modules=frozenset({"a.py"}))},
)
SECOND = replace(
    FIRST,
    recorded_at=7,
    hashes={"a.py": "1", "c.py": "3"},
    imports={"a.py": frozenset({"c.py"})},
    variables={"HOME": "other", "LANG": None},
    shared=Reached(files=frozenset({"two"})),
    scenarios={"two": Reached(), "one": Reached(files=frozenset({"x"}))},
)


def test_one_run_stays_as_it_is():
    assert merge_runs([FIRST]) == FIRST


def test_two_shards():
    found = merge_runs([FIRST, SECOND])
    assert (found.recorded_at, found.is_clean, found.complete) == (7, True, True)
    assert found.hashes == {"a.py": "1", "c.py": "3"}
    assert found.imports == {"a.py": frozenset({"b.py", "c.py"})}
    assert found.shared.files == {"one", "two"}
    assert found.scenarios == {
        "one": Reached(modules=frozenset({"a.py"}), files=frozenset({"x"})),
        "two": Reached(),
    }


def test_a_variable_with_two_values_equals_none():
    variables = merge_runs([FIRST, SECOND]).variables
    assert variables == {"HOME": "differs", "TZ": "2", "LANG": None}


def test_the_worst_shard_counts():
    found = merge_runs([FIRST, replace(SECOND, is_clean=False, complete=False, unit="module")])
    assert (found.is_clean, found.complete, found.unit) == (False, False, "module")


@pytest.mark.parametrize(
    "change",
    [{"commit": "d"}, {"python": "q"}, {"distributions": {"a": "1"}}, {"hashes": {"a.py": "2"}}],
)
def test_shards_that_do_not_belong_together(change):
    with pytest.raises(ValueError, match="the runs"):
        merge_runs([FIRST, replace(SECOND, **change)])
