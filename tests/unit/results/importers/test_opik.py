"""What an experiment and an artifact of Opik come to."""

from __future__ import annotations

from ci_agent_eval.analysis.loaded_results import build_episode_record
from tests.unit.results.importers.reading import loaded, outcomes, problems, read, read_document


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
            told = build_episode_record(found)
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
