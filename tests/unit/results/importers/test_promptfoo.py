"""What a file of promptfoo comes to."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.analysis.loaded_results import build_episode_record
from tests.unit.results.importers.reading import loaded, problems, read, read_document


class TestPromptfoo:
    def test_each_result_is_an_episode_of_its_provider(self):
        found = read("promptfoo/once.json")
        assert {key: e.outcome for key, e in found.items() if key[1] == "desk"} == {
            ("an order that can be refunded", "desk", 1): "passed",
            ("an invoice", "desk", 1): "failed",
            ("half of it will do", "desk", 1): "passed",
            ('{"question": "Look up order 7."}', "desk", 1): "passed",
            ("a refund while the system is down", "desk", 1): "error",
        }
        assert sum(1 for key in found if key[1] == "parrot") == 5

    def test_assertions_bring_reasons_and_scores(self):
        failed = read("promptfoo/once.json")["an invoice", "desk", 1]
        (assertion,) = failed.assertions
        assert (assertion.name, assertion.passed, assertion.score) == (
            "contains: invoice",
            False,
            0,
        )
        assert assertion.reason == 'Expected output to contain "invoice"'

    def test_a_failed_part_of_a_test_that_passed_only_warns(self):
        passed = read("promptfoo/once.json")["half of it will do", "desk", 1]
        assert [(a.passed, a.severity) for a in passed.assertions] == [
            (False, "warning"),
            (True, "error"),
        ]

    def test_figures_are_the_provider_s_own(self):
        found = read("promptfoo/once.json")
        told = build_episode_record(found["an order that can be refunded", "desk", 1])
        assert (told.tokens, told.cost_usd) == (25, 0.0002)
        assert len(told.latencies_ms) == 1
        untold = build_episode_record(found["an invoice", "desk", 1])
        assert (untold.tokens, untold.cost_usd) == (None, None)

    def test_tokens_of_a_cached_answer_are_not_guessed(self):
        found = read("promptfoo/once.json")['{"question": "Look up order 7."}', "desk", 1]
        assert build_episode_record(found).tokens is None

    def test_tool_calls_are_read(self):
        found = read("promptfoo/once.json")['{"question": "Look up order 7."}', "desk", 1]
        (call,) = found.trajectory.tool_calls()
        assert (call.name, call.arguments) == ("lookup_order", {"order_id": 7})

    def test_an_assertion_that_broke_is_an_error_whatever_was_graded(self):
        document = loaded("promptfoo/once.json")
        for result in document["results"]["results"]:
            result |= {"failureReason": 2, "success": False, "error": "no judge"}
        found = [r.episode for r in read_document(document)]
        assert {(e.outcome, e.reason) for e in found} == {("error", "no judge")}

    def test_repeats_are_iterations(self):
        assert list(read("promptfoo/repeated.json")) == [
            ("an order that can be refunded", "desk", 1),
            ("an order that can be refunded", "parrot", 1),
            ("an order that can be refunded", "desk", 2),
            ("an order that can be refunded", "parrot", 2),
        ]

    def test_tests_of_one_description_are_told_apart_by_their_variables(self):
        document = loaded("promptfoo/once.json")
        for result in document["results"]["results"]:
            result["testCase"]["description"] = "same"
        names = {r.episode.scenario_id for r in read_document(document)}
        assert 'same {"question": "Refund my order 8."}' in names
        assert len(names) == 4

    def test_several_prompts_are_several_agents(self):
        document = loaded("promptfoo/once.json")
        twin = json.loads(json.dumps(document["results"]["results"]))
        for result in twin:
            result["prompt"]["label"] = "Be short: {{question}}"
            result["promptIdx"] += 2
        document["results"]["results"] += twin
        document["results"]["stats"] = {}
        agents = {r.episode.agent for r in read_document(document)}
        assert "desk, Be short: {{question}}" in agents
        assert len(agents) == 4

    def test_a_lost_result_is_noticed(self):
        document = loaded("promptfoo/once.json")
        document["results"]["results"].pop()
        (problem,) = problems(document)
        assert problem.kind == "declared_counts_differ"
        assert "counts 10 results and holds 9" in problem.message

    def test_results_in_any_order_are_the_same_episodes(self):
        document = loaded("promptfoo/repeated.json")
        before = read_document(document)
        document["results"]["results"].reverse()
        assert [r.episode for r in read_document(document)] == [r.episode for r in before]


class TestLines:
    def test_lines_hold_the_same_as_the_whole_file(self):
        found, whole = read("promptfoo/lines.jsonl"), read("promptfoo/once.json")
        assert {key: (e.outcome, e.assertions) for key, e in found.items()} == {
            key: (e.outcome, e.assertions) for key, e in whole.items()
        }

    @pytest.mark.parametrize("number", range(10))
    def test_a_lost_line_is_noticed(self, number):
        records = loaded("promptfoo/lines.jsonl")
        del records[number]
        assert [problem.kind for problem in problems(records)] == ["declared_counts_differ"]

    def test_a_repeated_line_is_noticed(self):
        records = loaded("promptfoo/lines.jsonl")
        assert [problem.kind for problem in problems([*records, records[0]])] == ["duplicate"]

    def test_a_line_of_something_else_is_noticed(self):
        (problem,) = problems([*loaded("promptfoo/lines.jsonl"), {"a": 1}])
        assert "no result" in problem.message
