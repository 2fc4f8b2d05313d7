"""What holds for the files of every tool: they are recognised, whole, and of a known version."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent_eval.results.episodes import read_episodes
from ci_agent_eval.results.importers.registry import BUILT_IN, build_document
from ci_agent_eval.results.json_text import ReadProblem
from tests.tables import each_row
from tests.unit.results.importers.reading import EXAMPLES, FILES, loaded, read_document


def test_every_format_has_a_file_of_its_own_tool():
    assert set(EXAMPLES) == set(BUILT_IN)


@each_row("name", EXAMPLES)
def test_a_file_is_recognised_by_one_reader_alone(name):
    document = build_document(loaded(EXAMPLES[name]), "any.json")
    assert [key for key, reader in BUILT_IN.items() if reader.can_import(document)] == [name]


EMPTIED = {
    "promptfoo": {"results": {"version": 3, "results": [], "stats": {}}},
    "inspect-ai": {"version": 2, "status": "success", "eval": {"task": "a", "model": "b"}},
    "deepeval": {"testCases": [], "conversationalTestCases": []},
    "pydantic-evals": {"name": "a", "cases": [], "failures": []},
    "ctrf": {"results": {"tool": {}, "summary": {}, "tests": []}},
}


@each_row("name", EMPTIED)
def test_a_file_without_results_proves_nothing(name):
    (problem,) = read_document(EMPTIED[name])
    assert problem.kind == "no_results"
    assert BUILT_IN[name].tool in problem.message


@each_row(
    ("name", "change"),
    [
        ("promptfoo/once.json", {"results": {"version": 4, "results": [{}], "stats": {}}}),
        ("inspect_ai/once.json", {"version": 3}),
    ],
)
def test_an_unknown_version_is_refused_and_the_known_one_is_said(name, change):
    (problem,) = read_document(loaded(name) | change)
    assert isinstance(problem, ReadProblem)
    assert "version" in problem.message
    assert "is read" in problem.message


def test_an_unknown_document_says_what_is_read():
    (problem,) = read_document({"cases": "none"})
    assert "promptfoo, inspect_ai, DeepEval" in problem.message


@pytest.mark.parametrize("name", sorted(EXAMPLES))
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_a_file_that_is_cut_off_anywhere_is_noticed(name, data):
    content = (FILES / EXAMPLES[name]).read_bytes().rstrip()
    cut = data.draw(st.integers(1, len(content) - 1))
    found = read_episodes(io.BytesIO(content[:cut]), f"cut{Path(EXAMPLES[name]).suffix}")
    assert any(isinstance(item, ReadProblem) for item in found)
