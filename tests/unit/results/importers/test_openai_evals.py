"""The log of an OpenAI eval."""

from __future__ import annotations

import pytest

from ci_agent_eval.results.episodes import ParsedEpisode
from tests.unit.results.importers.reading import loaded, outcomes, problems, read, read_document

LOG = "openai_evals/log.jsonl"


def test_a_match_is_an_assertion():
    found = read(LOG)
    assert sorted(outcomes(found).values()) == ["failed", "passed", "passed"]
    (failed,) = [episode for episode in found.values() if episode.outcome == "failed"]
    assert failed.scenario_id.startswith("desk.dev")
    assert failed.assertions[0].reason == "expected 'The invoice is sent.', found 'It is refunded.'"
    assert failed.agent == "desk"


def test_what_was_asked_answered_and_spent():
    found = next(iter(read(LOG).values()))
    asked, answered = found.trajectory.turns
    assert asked.content.endswith(".")
    assert (answered.content, answered.tokens.total) == ("It is refunded.", 25)


def with_metrics(**metrics):
    records = loaded(LOG)
    for record in records:
        if record.get("type") == "match":
            record |= {"type": "metrics", "data": metrics}
    return episodes(records)


def episodes(records):
    return [item.episode for item in read_document(records) if isinstance(item, ParsedEpisode)]


def test_metrics_are_scores():
    found = with_metrics(choice="A", score=0.5, is_refusal=False)
    assert {episode.outcome for episode in found} == {"error"}
    assert {s.name: s.value for s in found[0].scores} == {"is_refusal": 0, "score": 0.5}


def test_an_error_is_an_error_whatever_matched():
    records = loaded(LOG)
    for record in records:
        if record.get("type") == "sampling":
            record |= {"type": "error", "data": {"type": "Timeout", "message": "too late"}}
    found = episodes(records)
    assert {(episode.outcome, episode.reason) for episode in found} == {("error", "too late")}


@pytest.mark.parametrize("number", range(1, 8))
def test_a_lost_line_is_noticed(number):
    records = loaded(LOG)
    assert len(records) == 8
    del records[number]
    assert problems(records)


def test_lines_of_another_run_are_noticed():
    records = loaded(LOG)
    records[1]["run_id"] = "other"
    assert "several runs" in problems(records)[0].message


def test_a_line_of_something_else_is_noticed():
    assert "no event" in problems([*loaded(LOG), {"a": 1}])[0].message
