"""Whatever stands in a file of a known tool, it is data or a finding, never an exception."""

from __future__ import annotations

import copy
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ci_agent_eval.analysis.loaded_results import build_episode_record
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.result_mapping import ResultMapping
from ci_agent_eval.results.episodes import (
    ParsedEpisode,
    ReadingRules,
    read_episodes,
    read_result_file,
)
from ci_agent_eval.results.json_text import ReadProblem
from tests.unit.results.importers.reading import EXAMPLES, loaded

ODD = [10**300, -1, 1e308, 2**63, "", " ", "4.0", "error", "\x1b[31m", "a" * 400]
LEAVES = st.none() | st.booleans() | st.integers() | st.sampled_from(ODD) | st.text(max_size=8)
ANY_JSON = st.recursive(
    LEAVES | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
QUIET = settings(
    max_examples=settings.default.max_examples // 4,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    found = [path]
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            found += places(item, (*path, key))
    return found


def with_value(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = holder = copy.deepcopy(document)
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return changed


def smaller(document: Any) -> Any:
    """The same with two results at most: quick to change and read."""
    if isinstance(document, list):
        return [smaller(item) for item in document[:2]]
    if isinstance(document, dict):
        return {key: smaller(item) for key, item in document.items()}
    return document


SMALL = {name: smaller(loaded(file)) for name, file in EXAMPLES.items()}


@pytest.mark.parametrize("name", SMALL)
@QUIET
@given(data=st.data())
def test_any_value_at_any_place_raises_nothing(name, data):
    path = data.draw(st.sampled_from(places(SMALL[name])))
    document = with_value(SMALL[name], path, data.draw(ANY_JSON))
    for item in read_episodes(io.BytesIO(json.dumps(document).encode()), "any.json"):
        if isinstance(item, ParsedEpisode):
            build_episode_record(item.episode)
            canonical_json(item.episode)
        else:
            assert item.message if isinstance(item, ReadProblem) else item.title


MAPPING = ResultMapping.model_validate(
    {
        "files": "*",
        "id": "id",
        "outcome": "a",
        "outcomes": {"ok": "passed"},
        "error": "e",
        "scores": {"b": "b.0"},
        "cost_usd": "c",
        "input_tokens": "d",
        "output_tokens": "d",
    }
)
RULES = ReadingRules(mappings=[MAPPING])


@QUIET
@given(
    records=st.lists(
        st.dictionaries(st.sampled_from(["id", "a", "b", "c", "d", "e"]), ANY_JSON) | ANY_JSON
    )
)
def test_any_record_passes_by_its_mapping_only(records):
    content = json.dumps(records).encode()
    found = read_result_file(io.BytesIO(content), Path("a.json"), "a.json", RULES)
    passing = [r for r in records if isinstance(r, dict) and r.get("a") == "ok"]
    episodes = [item.episode for item in found if isinstance(item, ParsedEpisode)]
    assert sum(episode.outcome == "passed" for episode in episodes) <= len(passing)
