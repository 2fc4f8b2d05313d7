"""What a file of DeepEval comes to."""

from __future__ import annotations

import pytest

from ci_agent_eval.analysis.loaded_results import build_episode_record
from ci_agent_eval.results.episodes import ParsedEpisode
from tests.unit.results.importers.reading import loaded, outcomes, problems, read, read_document


class TestDeepEval:
    def test_each_test_case_is_an_episode(self):
        found = read("deepeval/single.json")
        assert outcomes(found) == {"refund": "passed", "invoice": "failed", "broken": "error"}

    def test_metrics_bring_scores_reasons_and_thresholds(self):
        found = read("deepeval/single.json")["refund", None, 1]
        assert [(a.name, a.passed, a.score, a.reason) for a in found.assertions] == [
            ("Says", True, 1.0, "looked for 'refunded' · threshold 0.5"),
            ("Short", True, 0.625, "15 characters · threshold 0.5"),
        ]

    @pytest.mark.parametrize("error", [{"message": "boom"}, "", [], 0, "timed out"])
    def test_any_error_is_one(self, error):
        document = loaded("deepeval/single.json")
        case = next(one for one in document["testCases"] if one["name"] == "refund")
        assert case["success"] is True
        case["metricsData"][0]["error"] = error
        records = [item for item in read_document(document) if isinstance(item, ParsedEpisode)]
        (found,) = [r.episode for r in records if r.episode.scenario_id == "refund"]
        assert found.outcome == "error"

    def test_a_metric_that_broke_is_an_error(self):
        found = read("deepeval/single.json")["broken", None, 1]
        assert found.reason == "Says: ConnectionError: the judge could not be reached"
        assert [a.name for a in found.assertions] == ["Short"]

    def test_figures_and_tools_are_read_where_they_are_given(self):
        found = read("deepeval/single.json")
        told = build_episode_record(found["refund", None, 1])
        assert (told.cost_usd, told.latencies_ms, told.tokens) == (0.0003, (1250.0,), None)
        assert [(s.tool, s.arguments) for s in told.steps] == [("lookup_order", '{"order_id": 7}')]
        untold = build_episode_record(found["invoice", None, 1])
        assert (untold.cost_usd, untold.latencies_ms) == (None, ())

    def test_conversations_keep_their_turns(self):
        found = read("deepeval/conversations.json")
        assert outcomes(found) == {"greeting": "passed", "silence": "failed"}
        turns = found["greeting", "desk-1", 1].trajectory.turns
        assert [(turn.role, turn.content) for turn in turns] == [
            ("user", "Hello?"),
            ("assistant", "Good day."),
        ]

    def test_a_case_without_a_metric_was_not_judged(self):
        document = loaded("deepeval/single.json")
        for case in document["testCases"]:
            case["metricsData"] = None
        assert {r.episode.outcome for r in read_document(document)} == {"error"}

    def test_a_flaky_metric_never_decides(self):
        document = loaded("deepeval/single.json")
        refund = document["testCases"][0]
        refund["metricsData"][1] |= {"success": False, "flaky": True}
        found = {r.episode.scenario_id: r.episode for r in read_document(document)}
        assert found["refund"].outcome == "passed"

    def test_a_lost_case_is_noticed(self):
        document = loaded("deepeval/single.json")
        document["testCases"].pop()
        assert [problem.kind for problem in problems(document)] == ["declared_counts_differ"]

    def test_what_a_judge_took_is_kept_apart(self):
        document = loaded("deepeval/single.json")
        metric = document["testCases"][0]["metricsData"][0]
        metric |= {"evaluationModel": "judge-1", "evaluationCost": 0.001, "inputTokenCount": 9}
        found = {r.episode.scenario_id: r.episode for r in read_document(document)}
        assert (found["refund"].judge.calls, found["refund"].judge.cost_usd) == (1, 0.001)
        assert found["invoice"].judge is None
