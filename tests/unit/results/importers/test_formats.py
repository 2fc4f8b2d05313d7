"""What each tool's own file comes to. The files are made by tests/fixtures/interchange/make_*."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from ci_agent_eval.facts import facts_of
from ci_agent_eval.results.episodes import Problem, Record, read_episodes
from ci_agent_eval.results.importers.registry import IMPORTERS

FILES = Path(__file__).parents[3] / "fixtures/interchange"


def read(name):
    found = read_document(json.loads((FILES / name).read_text()))
    assert not any(isinstance(item, Problem) for item in found)
    return {(e.scenario_id, e.agent, e.iteration): e for e in (r.episode for r in found)}


def read_document(document):
    return list(read_episodes(io.BytesIO(json.dumps(document).encode()), "any.json"))


def outcomes(episodes):
    return {key[0]: episode.outcome for key, episode in episodes.items()}


def problems(document):
    return [item for item in read_document(document) if isinstance(item, Problem)]


def loaded(name):
    return json.loads((FILES / name).read_text())


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
        told = facts_of(found["an order that can be refunded", "desk", 1])
        assert (told.tokens, told.cost_usd) == (25, 0.0002)
        assert len(told.latencies_ms) == 1
        untold = facts_of(found["an invoice", "desk", 1])
        assert (untold.tokens, untold.cost_usd) == (None, None)

    def test_tokens_of_a_cached_answer_are_not_guessed(self):
        found = read("promptfoo/once.json")['{"question": "Look up order 7."}', "desk", 1]
        assert facts_of(found).tokens is None

    def test_tool_calls_are_read(self):
        found = read("promptfoo/once.json")['{"question": "Look up order 7."}', "desk", 1]
        (call,) = found.trajectory.tool_calls()
        assert (call.name, call.arguments) == ("lookup_order", {"order_id": 7})

    def test_an_error_says_why(self):
        found = read("promptfoo/once.json")["a refund while the system is down", "desk", 1]
        assert found.reason == "the order system is down"
        assert not found.assertions

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
        assert (facts_of(found).tokens, facts_of(found).cost_usd) == (38, None)
        assert len(facts_of(found).latencies_ms) == 2

    def test_an_error_says_why(self):
        found = read("inspect_ai/once.json")["refunds/broken", "mockllm/model", 1]
        assert found.reason == "ConnectionError('the order system is down')"

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

    def test_figures_alone_judge_nothing(self):
        document = loaded("inspect_ai/once.json")
        for sample in document["samples"]:
            sample["scores"] = {"f1": {"value": 0.93}}
        told = {r.episode.outcome for r in read_document(document)}
        assert told == {"error"}

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
        document["samples"][0]["limit"] = {"type": kind, "limit": 5}
        first = document["samples"][0]["id"]
        stops = {r.episode.scenario_id: r.episode.stop_reason for r in read_document(document)}
        assert stops[f"refunds/{first}"] == reason


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
        records = [item for item in read_document(document) if isinstance(item, Record)]
        (found,) = [r.episode for r in records if r.episode.scenario_id == "refund"]
        assert found.outcome == "error"

    def test_a_metric_that_broke_is_an_error(self):
        found = read("deepeval/single.json")["broken", None, 1]
        assert found.reason == "Says: ConnectionError: the judge could not be reached"
        assert [a.name for a in found.assertions] == ["Short"]

    def test_figures_and_tools_are_read_where_they_are_given(self):
        found = read("deepeval/single.json")
        told = facts_of(found["refund", None, 1])
        assert (told.cost_usd, told.latencies_ms, told.tokens) == (0.0003, (1250.0,), None)
        assert [(s.tool, s.arguments) for s in told.steps] == [("lookup_order", '{"order_id": 7}')]
        untold = facts_of(found["invoice", None, 1])
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


class TestPydanticEvals:
    def test_each_case_is_an_episode(self):
        found = read("pydantic_evals/once.json")
        assert outcomes(found) == {
            "refunds/refund": "passed",
            "refunds/invoice": "failed",
            "refunds/broken": "error",
        }
        assert {key[1] for key in found} == {"desk"}

    def test_assertions_scores_and_figures_are_read(self):
        found = read("pydantic_evals/once.json")["refunds/refund", "desk", 1]
        assert [(a.name, a.passed, a.reason) for a in found.assertions] == [
            ("Judge", True, None),
            ("Says", True, "looked for 'refunded'"),
        ]
        assert [(s.name, s.value) for s in found.scores] == [("brevity", 0.667)]
        assert (facts_of(found).tokens, facts_of(found).cost_usd) == (25, 0.0002)

    def test_an_evaluator_that_broke_is_an_error(self):
        document = loaded("pydantic_evals/once.json")
        for case in document["cases"]:
            case["assertions"].pop("Says")
        found = {r.episode.scenario_id: r.episode for r in read_document(document)}
        assert found["refunds/invoice"].outcome == "error"
        assert "the judge could not be reached" in found["refunds/invoice"].reason
        assert found["refunds/refund"].outcome == "passed"

    def test_a_case_that_nobody_judged_did_not_pass(self):
        document = loaded("pydantic_evals/once.json")
        for case in document["cases"]:
            case["assertions"] = {}
        assert {r.episode.outcome for r in read_document(document)} == {"error"}

    def test_runs_of_a_case_are_its_iterations(self):
        found = read("pydantic_evals/repeated.json")
        assert {key[0]: key[2] for key in found} == {
            "refunds/refund": 2,
            "refunds/invoice": 2,
            "refunds/broken": 2,
        }

    def test_a_report_evaluator_that_broke_is_said(self):
        document = loaded("pydantic_evals/once.json")
        document["report_evaluator_failures"] = [{"name": "Matrix", "error_message": "no labels"}]
        (problem,) = problems(document)
        assert "Matrix: no labels" in problem.message


class TestOpik:
    def test_each_trial_is_an_episode(self):
        found = read("opik/experiment.json")
        assert {(key[0], key[2]): e.outcome for key, e in found.items()} == {
            ("Refund my order 7.", 1): "passed",
            ("Refund my order 7.", 2): "passed",
            ("Send me the invoice.", 1): "failed",
            ("Send me the invoice.", 2): "failed",
            ("Refund my order 8.", 1): "error",
            ("Refund my order 8.", 2): "error",
        }

    def test_verdicts_and_figures(self):
        found = read("opik/experiment.json")["Send me the invoice.", None, 1]
        assert [(a.name, a.passed, a.reason) for a in found.assertions] == [
            ("says", False, "looked for 'invoice'")
        ]
        assert [(s.name, s.value) for s in found.scores] == [("levenshtein_ratio_metric", 0.25)]

    def test_a_metric_that_broke_leaves_no_score_and_that_is_an_error(self):
        found = read("opik/experiment.json")["Refund my order 8.", None, 1]
        assert found.reason == "it was not judged to its end: it has no score 'says'"

    def test_its_own_assertions_are_assertions(self):
        document = loaded("opik/experiment.json")
        for item in document["items"]:
            item["feedback_scores"] = []
            item["assertion_results"] = [{"value": "is polite", "passed": True, "reason": "yes"}]
        found = [r.episode for r in read_document(document)]
        assert {e.outcome for e in found} == {"passed"}
        assert {a.name for e in found for a in e.assertions} == {"is polite"}

    def test_a_test_s_name_names_its_scenario(self):
        document = loaded("opik/experiment.json")
        document["items"][0]["dataset_item_data"]["test_name"] = "tests/test_desk.py::test_refund"
        names = {r.episode.scenario_id for r in read_document(document)}
        assert "tests/test_desk.py::test_refund" in names

    def test_nothing_is_measured_that_is_not_in_the_file(self):
        for found in read("opik/experiment.json").values():
            told = facts_of(found)
            assert (told.tokens, told.cost_usd, told.latencies_ms) == (None, None, ())

    def test_the_artifact_holds_episodes_as_they_are(self):
        found = read("opik/artifact.json")
        assert outcomes(found) == {"refund": "passed", "invoice": "failed", "broken": "error"}

    def test_an_episode_whose_test_failed_did_not_pass(self):
        document = loaded("opik/artifact.json")
        for result in document["results"]:
            result["pytest_passed"] = False
        found = {r.episode.scenario_id: r.episode for r in read_document(document)}
        assert (found["refund"].outcome, found["refund"].reason) == ("failed", "its test failed")

    def test_a_lost_episode_is_noticed(self):
        document = loaded("opik/artifact.json")
        document["results"].pop()
        assert [problem.kind for problem in problems(document)] == ["declared_counts_differ"]


class TestSkillEngineering:
    def test_each_run_is_an_episode_with_its_test_s_outcome(self):
        found = read("pytest_skill_engineering/once.json")
        assert {key: e.outcome for key, e in found.items()} == {
            ("test_desk.py::test_refund", "desk", 1): "passed",
            ("test_desk.py::test_invoice", "desk", 1): "failed",
            ("test_desk.py::test_broken", "desk", 1): "error",
            ("test_desk.py::test_breaks", "desk", 1): "error",
            ("test_desk.py::test_later", "desk", 1): "skipped",
            ("test_desk.py::test_two", "desk", 1): "passed",
            ("test_desk.py::test_two", "other desk", 2): "passed",
        }

    def test_why_it_did_not_pass(self):
        found = read("pytest_skill_engineering/once.json")
        assert found["test_desk.py::test_broken", "desk", 1].reason == "Timed out after 5.0s"
        assert found["test_desk.py::test_broken", "desk", 1].stop_reason == "timeout"
        invoice = found["test_desk.py::test_invoice", "desk", 1].reason
        assert invoice.startswith("AssertionError: assert 'invoice' in")
        breaks = found["test_desk.py::test_breaks", "desk", 1].reason
        assert breaks == "ConnectionError: the order system is down"

    def test_turns_have_their_own_figures_where_each_has(self):
        told = facts_of(
            read("pytest_skill_engineering/once.json")["test_desk.py::test_refund", "desk", 1]
        )
        assert (told.tokens, told.latencies_ms) == (40, (800.0, 800.0))
        assert [(s.turn, s.tool) for s in told.steps] == [(1, "lookup_order")]

    def test_figures_of_all_turns_together_are_the_episode_s(self):
        found = read("pytest_skill_engineering/once.json")["test_desk.py::test_invoice", "desk", 1]
        assert (facts_of(found).tokens, facts_of(found).latencies_ms) == (27, ())

    def test_a_model_without_a_price_cost_nobody_knows_what(self):
        document = loaded("pytest_skill_engineering/once.json")
        assert {facts_of(r.episode).cost_usd for r in read_document(document)} == {None}
        document["models_without_pricing"] = []
        document["tests"][0]["eval_result"]["cost_usd"] = 0.25
        costs = {facts_of(r.episode).cost_usd for r in read_document(document)}
        assert 0.25 in costs

    def test_the_test_is_the_episode_s_place(self):
        found = read("pytest_skill_engineering/once.json")["test_desk.py::test_refund", "desk", 1]
        assert (found.nodeid, found.file) == ("test_desk.py::test_refund", "test_desk.py")

    def test_iterations_are_read(self):
        found = read("pytest_skill_engineering/repeated.json")
        assert sorted(key[2] for key in found if key[0].endswith("test_refund")) == [1, 2]

    def test_a_lost_run_is_noticed(self):
        document = loaded("pytest_skill_engineering/once.json")
        document["tests"].pop()
        assert [problem.kind for problem in problems(document)] == ["declared_counts_differ"]


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
    assert [key for key, reader in IMPORTERS.items() if reader.recognizes(document)] == [name]


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
    assert isinstance(problem, Problem)
    assert "version" in problem.message
    assert "is read" in problem.message


def test_an_unknown_document_says_what_is_read():
    (problem,) = read_document({"cases": "none"})
    assert "promptfoo, inspect_ai, DeepEval" in problem.message


@pytest.mark.parametrize("name", EXAMPLES.values())
def test_a_file_that_is_cut_off_is_unreadable(name):
    data = (FILES / name).read_bytes()
    (problem,) = read_episodes(io.BytesIO(data[: len(data) // 2]), "cut.json")
    assert isinstance(problem, Problem)
    assert "not JSON" in problem.message


def test_one_broken_result_does_not_lose_the_others():
    document = loaded("opik/artifact.json")
    document["results"][0]["episode"] = {"scenario_id": 7}
    found = read_document(document)
    assert [type(item) for item in found] == [Problem, Record, Record]
    assert "result 0: scenario_id" in found[0].message
