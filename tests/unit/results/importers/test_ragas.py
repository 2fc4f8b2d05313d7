"""Tables of ragas: JSON by rows and by columns, JSON lines, and CSV say the same."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.result_mapping import ImportPolicy
from ci_agent_eval.contract.score_thresholds import parse_score_thresholds
from ci_agent_eval.results.load import load_results
from tests.unit.results.importers.reading import FILES, loaded, problems, read

TABLES = ("records.json", "columns.json", "lines.jsonl", "table.csv")
THRESHOLDS = parse_score_thresholds("non_llm_string_similarity>=0.4 tone>=0.4")


def load(path, root=FILES, thresholds=THRESHOLDS):
    return load_results([path], [], root=root, imports=ImportPolicy(thresholds))


def find_messages(tmp_path, name, text):
    (tmp_path / name).write_text(text, newline="")
    return [finding.message for finding in load(name, tmp_path, {}).findings]


@pytest.mark.parametrize("name", TABLES)
def test_each_sample_is_judged_by_thresholds(name):
    found = load(f"ragas/{name}")
    assert not found.findings
    assert [(e.scenario_id, e.outcome) for e in found.episodes] == [
        ("Refund my order 7.", "passed"),
        ("Refund my order 8.", "failed"),  # of two scores one is too low, and the other broke
        ("Send me the invoice.", "passed"),
    ]


@pytest.mark.parametrize("name", TABLES)
def test_a_metric_that_broke_does_not_pass(name):
    found = load(f"ragas/{name}", thresholds=parse_score_thresholds("tone>=0.4"))
    outcomes = {episode.scenario_id: episode for episode in found.episodes}
    assert outcomes["Refund my order 8."].outcome == "error"
    assert "has no score 'tone'" in outcomes["Refund my order 8."].reason


def test_zeros_and_ones_are_no_verdicts():
    assert {e.outcome for e in read("ragas/records.json").values()} == {"error"}


def test_question_and_answer_are_the_conversation():
    found = read("ragas/records.json")["Refund my order 7.", None, 1]
    assert [turn.content for turn in found.trajectory.turns] == [
        "Refund my order 7.",
        "It is refunded.",
    ]


def test_equal_questions_are_iterations():
    records = loaded("ragas/records.json")
    for record in records:
        record["user_input"] = "Refund my order 7."
    assert problems(records) == []
    assert load("ragas/records.json").episodes[0].iteration == 1


def test_messages_are_turns():
    records = loaded("ragas/records.json")[:1]
    records[0]["user_input"] = [
        {"content": "Hello", "type": "human"},
        {"content": "Hi", "type": "ai"},
        {"content": "42", "type": "tool"},
    ]
    from tests.unit.results.importers.reading import read_document

    turns = read_document(records)[0].episode.trajectory.turns
    assert [(turn.role, turn.content) for turn in turns] == [("user", "Hello"), ("assistant", "Hi")]


def test_a_column_of_texts_is_refused():
    records = loaded("ragas/records.json")
    records[0]["verdict"] = records[1]["verdict"] = records[2]["verdict"] = "fail"
    (problem,) = problems(records)
    assert "its column 'verdict' holds other values than numbers" in problem.message


def test_samples_of_other_columns_are_refused():
    records = loaded("ragas/records.json")
    del records[1]["tone"]
    assert "not have the same columns" in problems(records)[0].message


HEADER = "user_input,response,faith\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "a,b,0.9", "its last line is cut off"),
        (HEADER + "a,b\n", "it has 2 cells, and the header has 3"),
        (HEADER + 'a,"b,0.9\n', "it is no CSV in UTF-8"),
        ("a,a\n1,2\n", "two columns 'a'"),
        ("name,score\na,1\n", "a table of no known tool"),
        (HEADER, "a table of no known tool (ragas is read), or has no row"),
    ],
)
def test_a_table_that_is_not_whole_is_a_finding(tmp_path, text, message):
    assert any(message in found for found in find_messages(tmp_path, "a.csv", text))
