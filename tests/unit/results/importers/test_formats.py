"""What holds for the files of every tool: they are recognised, whole, and of a known version."""

from __future__ import annotations

import io

import pytest

from ci_agent_eval.results.episodes import ParsedEpisode, ReadProblem, read_episodes
from ci_agent_eval.results.importers.registry import IMPORTERS
from tests.unit.results.importers.reading import FILES, loaded, read_document

EXAMPLES = {
    "promptfoo": "promptfoo/once.json",
    "inspect-ai": "inspect_ai/once.json",
    "deepeval": "deepeval/single.json",
    "pydantic-evals": "pydantic_evals/once.json",
    "opik-experiment": "opik/experiment.json",
    "opik-artifact": "opik/artifact.json",
    "pytest-skill-engineering": "pytest_skill_engineering/once.json",
}


def test_every_format_has_a_file_of_its_own_tool():
    assert set(EXAMPLES) == set(IMPORTERS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_file_is_recognised_by_one_reader_alone(name):
    document = loaded(EXAMPLES[name])
    assert [key for key, reader in IMPORTERS.items() if reader.can_import(document)] == [name]


EMPTIED = {
    "promptfoo": {"results": {"version": 3, "results": [], "stats": {}}},
    "inspect-ai": {"version": 2, "status": "success", "eval": {"task": "a", "model": "b"}},
    "deepeval": {"testCases": [], "conversationalTestCases": []},
    "pydantic-evals": {"name": "a", "cases": [], "failures": []},
    "opik-experiment": {"experiment": {"dataset_name": "a"}, "items": []},
    "opik-artifact": {"episodes_total": 0, "results": []},
    "pytest-skill-engineering": {
        "schema_version": "4.0",
        "tests": [],
        "models_without_pricing": [],
    },
}


@pytest.mark.parametrize("name", IMPORTERS)
def test_a_file_without_results_proves_nothing(name):
    (problem,) = read_document(EMPTIED[name])
    assert problem.kind == "no_results"
    assert IMPORTERS[name].tool in problem.message


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("promptfoo/once.json", {"results": {"version": 4, "results": [{}], "stats": {}}}),
        ("inspect_ai/once.json", {"version": 3}),
        ("pytest_skill_engineering/once.json", {"schema_version": "3.0"}),
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


@pytest.mark.parametrize("name", EXAMPLES.values())
def test_a_file_that_is_cut_off_is_unreadable(name):
    data = (FILES / name).read_bytes()
    (problem,) = read_episodes(io.BytesIO(data[: len(data) // 2]), "cut.json")
    assert isinstance(problem, ReadProblem)
    assert "not JSON" in problem.message


def test_one_broken_result_does_not_lose_the_others():
    document = loaded("opik/artifact.json")
    document["results"][0]["episode"] = {"scenario_id": 7}
    found = read_document(document)
    assert [type(item) for item in found] == [ReadProblem, ParsedEpisode, ParsedEpisode]
    assert "result 0: scenario_id" in found[0].message
