"""Tasks and samples of lm-evaluation-harness."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.result_mapping import ImportPolicy
from ci_agent_eval.results.load import load_results
from tests.unit.results.importers.reading import FILES, loaded, problems, read, read_document


def judged(name, thresholds):
    from ci_agent_eval.contract.score_thresholds import parse_score_thresholds

    found = load_results(
        [name], [], root=FILES, imports=ImportPolicy(parse_score_thresholds(thresholds))
    )
    assert not found.findings
    return {episode.scenario_id: episode.outcome for episode in found.episodes}


def test_a_task_is_an_episode_with_its_metrics():
    (found,) = read("lm_eval/results.json").values()
    assert (found.scenario_id, found.outcome, found.agent) == ("desk", "error", "qdpv68r5")
    assert {score.name: score.value for score in found.scores} == {
        "desk/exact_match,first-letter": 0,
        "desk/exact_match,none": 0.5,
    }


def test_a_task_is_judged_by_thresholds():
    assert judged("lm_eval/results.json", "desk/exact_match,none>=0.5") == {"desk": "passed"}
    assert judged("lm_eval/results.json", "desk/exact_match,none>=0.6") == {"desk": "failed"}


def test_a_group_without_metrics_is_no_task():
    document = loaded("lm_eval/results.json")
    document["results"]["all"] = {"alias": "all", " ": " "}
    document["group_subtasks"] = {"all": ["desk"]}
    assert [item.episode.scenario_id for item in read_document(document)] == ["desk"]


def test_a_task_without_result_is_noticed():
    document = loaded("lm_eval/results.json")
    document["configs"]["other"] = {}
    assert "no result of the task 'other'" in problems(document)[0].message


def test_a_sample_is_an_episode_with_its_metrics_after_each_filter():
    found = read("lm_eval/samples.jsonl")
    first = found["any.json/0", None, 1]
    assert {score.name: score.value for score in first.scores} == {
        "exact_match,first-letter": 0,
        "exact_match,none": 0,
    }
    assert [turn.content for turn in first.trajectory.turns] == ["Refund my order 7.", "lol"]


def test_samples_are_judged_by_thresholds_and_named_by_their_file():
    found = judged("lm_eval/samples.jsonl", "exact_match,none>=1")
    assert found == {"samples/0": "failed", "samples/1": "passed"}


def test_the_task_is_in_the_name_of_a_file_of_samples(tmp_path):
    name = "samples_my_desk_2026-11-23T12-04-40.616449.jsonl"
    (tmp_path / name).write_bytes((FILES / "lm_eval/samples.jsonl").read_bytes())
    found = load_results([name], [], root=tmp_path)
    assert [episode.scenario_id for episode in found.episodes] == ["my_desk/0", "my_desk/1"]


@pytest.mark.parametrize("number", range(4))
def test_a_lost_line_is_noticed(number):
    records = loaded("lm_eval/samples.jsonl")
    del records[number]
    assert "no result of the sample" in problems(records)[0].message


def test_a_repeated_line_is_noticed():
    records = loaded("lm_eval/samples.jsonl")
    assert "twice" in problems([*records, records[0]])[0].message


def test_a_line_of_something_else_is_noticed():
    records = loaded("lm_eval/samples.jsonl")
    assert "no sample" in problems([*records, {"a": 1}])[0].message


def test_a_metric_that_a_sample_names_and_lacks_has_no_value():
    records = loaded("lm_eval/samples.jsonl")
    del records[0]["exact_match"]
    first = read_document(records)[0].episode
    assert [score.name for score in first.scores] == ["exact_match,first-letter"]
