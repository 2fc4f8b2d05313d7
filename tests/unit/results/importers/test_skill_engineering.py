"""What a report of pytest-skill-engineering comes to."""

from __future__ import annotations

from ci_agent_eval.analysis.loaded_results import build_episode_record
from tests.unit.results.importers.reading import loaded, problems, read, read_document


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
        told = build_episode_record(
            read("pytest_skill_engineering/once.json")["test_desk.py::test_refund", "desk", 1]
        )
        assert (told.tokens, told.latencies_ms) == (40, (800.0, 800.0))
        assert [(s.turn, s.tool) for s in told.steps] == [(1, "lookup_order")]

    def test_figures_of_all_turns_together_are_the_episode_s(self):
        found = read("pytest_skill_engineering/once.json")["test_desk.py::test_invoice", "desk", 1]
        assert (build_episode_record(found).tokens, build_episode_record(found).latencies_ms) == (
            27,
            (),
        )

    def test_a_model_without_a_price_cost_nobody_knows_what(self):
        document = loaded("pytest_skill_engineering/once.json")
        assert {build_episode_record(r.episode).cost_usd for r in read_document(document)} == {None}
        document["models_without_pricing"] = []
        document["tests"][0]["eval_result"]["cost_usd"] = 0.25
        costs = {build_episode_record(r.episode).cost_usd for r in read_document(document)}
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
