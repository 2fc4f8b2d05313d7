"""What a log of Inspect comes to."""

from __future__ import annotations

import pytest

from ci_agent_eval.analysis.loaded_results import build_episode_record
from tests.unit.results.importers.reading import loaded, outcomes, problems, read, read_document


class TestInspectAI:
    def test_each_sample_is_an_episode(self):
        found = read("inspect_ai/once.json")
        assert outcomes(found) == {
            "refunds/refund": "passed",
            "refunds/invoice": "failed",
            "refunds/broken": "error",
        }
        assert {key[1] for key in found} == {"mockllm/model"}

    def test_a_verdict_is_an_assertion_and_a_figure_a_score(self):
        found = read("inspect_ai/once.json")["refunds/invoice", "mockllm/model", 1]
        assert [(a.name, a.passed, a.score) for a in found.assertions] == [("includes", False, 0)]
        assert [(s.name, s.value, s.reason) for s in found.scores] == [
            ("politeness", 0.75, "it says please")
        ]

    def test_the_conversation_is_read_with_its_figures(self):
        found = read("inspect_ai/once.json")["refunds/refund", "mockllm/model", 1]
        assert [turn.role for turn in found.trajectory.turns] == ["user", "assistant", "assistant"]
        (call,) = found.trajectory.tool_calls()
        assert (call.name, call.arguments, call.result) == (
            "lookup_order",
            {"order_id": 7},
            "order 7 was delivered",
        )
        assert call.duration_ms is not None
        assert (build_episode_record(found).tokens, build_episode_record(found).cost_usd) == (
            38,
            None,
        )
        assert len(build_episode_record(found).latencies_ms) == 2

    def test_tokens_from_and_to_the_cache_count_as_read(self):
        document = loaded("inspect_ai/once.json")
        usage = {
            "input_tokens": 10,
            "input_tokens_cache_read": 4,
            "input_tokens_cache_write": 3,
            "output_tokens": 5,
        }
        for sample in document["samples"]:
            for event in sample["events"]:
                if event["event"] == "model":
                    event["output"]["usage"] = usage
        found = {r.episode.scenario_id: r.episode for r in read_document(document)}
        tokens = found["refunds/refund"].trajectory.agent_turns[0].tokens
        assert (tokens.input, tokens.cached, tokens.output) == (17, 4, 5)

    def test_a_log_that_ended_early_does_not_pass(self):
        found = problems(loaded("inspect_ai/ended_early.json"))
        assert [problem.kind for problem in found] == ["interrupted"]
        assert "status is 'error' (ConnectionError" in found[0].message

    def test_an_invalidated_log_does_not_pass(self):
        (problem,) = problems(loaded("inspect_ai/once.json") | {"invalidated": True})
        assert "invalidated" in problem.message

    def test_lost_samples_are_noticed(self):
        document = loaded("inspect_ai/once.json")
        document["samples"].pop()
        (problem,) = problems(document)
        assert "counts 3 samples and holds 2" in problem.message

    def test_a_sample_that_a_scorer_left_out_was_not_judged_to_its_end(self):
        document = loaded("inspect_ai/once.json")
        for sample in document["samples"]:
            sample["scores"].pop("includes", None) if sample["id"] == "refund" else None
        found = {r.episode.scenario_id: r.episode for r in read_document(document)}
        assert found["refunds/refund"].outcome == "error"
        assert "no score 'includes'" in found["refunds/refund"].reason

    @pytest.mark.parametrize(
        ("value", "outcome"),
        [("C", "passed"), ("I", "failed"), ("N", "failed"), (1, "passed"), (True, "passed")],
    )
    def test_what_says_pass_or_fail(self, value, outcome):
        document = loaded("inspect_ai/once.json")
        document["samples"] = [s for s in document["samples"] if s["id"] == "refund"]
        document["results"] = None
        document["samples"][0]["scores"] = {"match": {"value": value}}
        (record,) = read_document(document)
        assert record.episode.outcome == outcome

    @pytest.mark.parametrize(
        ("kind", "reason"), [("time", "timeout"), ("token", "token_limit"), ("custom", None)]
    )
    def test_a_limit_is_a_reason_to_stop(self, kind, reason):
        document = loaded("inspect_ai/once.json")
        read = {r.episode.scenario_id: r.episode for r in read_document(document)}
        name = next(name for name, episode in read.items() if episode.outcome == "passed")
        sample = next(s for s in document["samples"] if f"refunds/{s['id']}" == name)
        sample["limit"] = {"type": kind, "limit": 5}
        limited = {r.episode.scenario_id: r.episode for r in read_document(document)}
        assert limited[name].stop_reason == reason
        # Its scorers knew of the limit.
        assert limited[name].outcome == "passed"
