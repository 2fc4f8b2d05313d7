"""`dependencies.json`: tables and differences of indexes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.dependencies import Dependencies, UnknownDependency
from ci_agent_eval.dependencies.document import pack_dependencies, unpack_dependencies
from ci_agent_eval.dependencies.model import Reached, RunDependencies

TEXTS = st.text(min_size=1, max_size=4)
TEXT_SETS = st.frozensets(TEXTS, max_size=4)
UNKNOWN = st.builds(UnknownDependency, cause=st.sampled_from(["host", "symlink"]), detail=TEXTS)
REACHED = st.builds(
    Reached,
    functions=st.frozensets(st.tuples(TEXTS, TEXTS), max_size=4),
    modules=TEXT_SETS,
    files=TEXT_SETS,
    folders=TEXT_SETS,
    absent=TEXT_SETS,
    variables=st.frozensets(st.sampled_from("abc")),
    tools=st.frozensets(st.sampled_from("de")),
    hosts=TEXT_SETS,
    patterns=TEXT_SETS,
    unknown=st.frozensets(UNKNOWN, max_size=2),
)
RUNS = st.builds(
    RunDependencies,
    recorded_at=st.integers(0, 2**33),
    python=TEXTS,
    platform=TEXTS,
    distributions=st.dictionaries(TEXTS, TEXTS, max_size=3),
    hashes=st.dictionaries(TEXTS, TEXTS, max_size=4),
    imports=st.dictionaries(TEXTS, st.frozensets(TEXTS, min_size=1, max_size=3), max_size=3),
    variables=st.just({"a": "1", "b": None, "c": "set"}),
    tools=st.just({"d": "1", "e": "2"}),
    shared=REACHED,
    scenarios=st.dictionaries(TEXTS, REACHED, max_size=3),
)


@given(RUNS)
def test_a_run_survives_its_file(run):
    text = canonical_json(pack_dependencies(run))
    found = unpack_dependencies(Dependencies.model_validate_json(text))
    used = {name for one in (run.shared, *run.scenarios.values()) for name in one.tools}
    assert found == run or found.tools.keys() >= used


def test_an_index_outside_of_its_table_is_an_error():
    document = Dependencies.model_validate(
        {"recorded_at": 1, "python": "p", "platform": "p", "shared": {"files": [3]}}
    )
    with pytest.raises(ValueError, match="no table"):
        unpack_dependencies(document)
