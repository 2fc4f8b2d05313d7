"""What a report of pydantic-evals comes to."""

from __future__ import annotations

from ci_agent_eval.analysis.loaded_results import build_episode_record
from tests.unit.results.importers.reading import loaded, outcomes, problems, read, read_document


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
        assert (build_episode_record(found).tokens, build_episode_record(found).cost_usd) == (
            25,
            0.0002,
        )

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
