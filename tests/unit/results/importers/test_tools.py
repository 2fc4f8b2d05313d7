"""What a changed file of a tool comes to: who judged, what was lost, and what is kept apart."""

from __future__ import annotations

import copy

from tests.tables import each_row
from tests.unit.results.importers.reading import loaded, problems, read_document

PROMPTFOO, DEEPEVAL = "promptfoo/once.json", "deepeval/single.json"
INSPECT, PYDANTIC = "inspect_ai/once.json", "pydantic_evals/once.json"


def read_changed(name, change):
    document = loaded(name)
    change(document)
    return [item.episode for item in read_document(document)]


def set_all(*path, **fields):
    """Return a change that sets fields of every entry of a list at a path."""

    def change(document):
        for key in path:
            document = document[key]
        for entry in document:
            entry.update(copy.deepcopy(fields))

    return change


def drop_evaluator(document):
    for case in document["cases"]:
        case["assertions"].pop("Says")


def drop_scorer(document):
    (refund,) = [one for one in document["samples"] if one["id"] == "refund"]
    refund["scores"].pop("includes")


def make_flaky(document):
    document["testCases"][0]["metricsData"][1] |= {"success": False, "flaky": True}


def set_error(error):
    def change(document):
        document["testCases"][0]["metricsData"][0]["error"] = error

    return change


BROKEN = set_all("results", "results", failureReason=2, success=False, error="no judge")


@each_row(
    ("name", "change", "scenario", "outcome", "reason"),
    [
        (PROMPTFOO, BROKEN, "an invoice", "error", "no judge"),
        (PYDANTIC, drop_evaluator, "refunds/invoice", "error", "the judge could not be reached"),
        (PYDANTIC, drop_evaluator, "refunds/refund", "passed", ""),
        (PYDANTIC, set_all("cases", assertions={}), "refunds/refund", "error", ""),
        (INSPECT, drop_scorer, "refunds/refund", "error", "no score 'includes'"),
        (DEEPEVAL, set_all("testCases", metricsData=None), "refund", "error", ""),
        (DEEPEVAL, make_flaky, "refund", "passed", ""),
        *(
            (DEEPEVAL, set_error(error), "refund", "error", "")
            for error in ({"message": "boom"}, "", [], 0, "timed out")
        ),
    ],
)
def test_what_was_not_judged_to_its_end_did_not_pass(name, change, scenario, outcome, reason):
    (found,) = [one for one in read_changed(name, change) if one.scenario_id == scenario][:1]
    assert found.outcome == outcome
    assert reason in (found.reason or "")


EVALUATOR = {"name": "Matrix", "error_message": "no labels"}


@each_row(
    ("name", "change", "said"),
    [
        (PROMPTFOO, lambda found: found["results"]["results"].pop(), "counts 10 results and holds 9"),
        (INSPECT, lambda found: found["samples"].pop(), "counts 3 samples and holds 2"),
        (DEEPEVAL, lambda found: found["testCases"].pop(), "counts 3"),
        (INSPECT, lambda found: found.update(invalidated=True), "invalidated"),
        (PYDANTIC, lambda found: found.update(report_evaluator_failures=[EVALUATOR]), "Matrix: no labels"),
    ],
)  # fmt: skip
def test_what_was_lost_or_invalidated_is_a_problem(name, change, said):
    document = loaded(name)
    change(document)
    (problem,) = problems(document)
    assert said in problem.message


def test_tokens_from_and_to_the_cache_count_as_read():
    usage = {"input_tokens": 10, "input_tokens_cache_read": 4}
    usage |= {"input_tokens_cache_write": 3, "output_tokens": 5}

    def change(document):
        for sample in document["samples"]:
            for event in sample["events"]:
                if event["event"] == "model":
                    event["output"]["usage"] = usage

    (refund,) = [e for e in read_changed(INSPECT, change) if e.scenario_id == "refunds/refund"]
    tokens = refund.trajectory.agent_turns[0].tokens
    assert (tokens.input, tokens.cached, tokens.output) == (17, 4, 5)


@each_row(
    ("value", "outcome"),
    [("C", "passed"), ("I", "failed"), ("N", "failed"), (1, "passed"), (True, "passed")],
)
def test_what_says_pass_or_fail(value, outcome):
    def change(document):
        document["samples"] = [one for one in document["samples"] if one["id"] == "refund"]
        document["samples"][0]["scores"] = {"match": {"value": value}}
        document["results"] = None

    assert [one.outcome for one in read_changed(INSPECT, change)] == [outcome]


@each_row(("kind", "stop"), [("time", "timeout"), ("token", "token_limit"), ("custom", None)])
def test_a_limit_is_a_reason_to_stop_that_the_scorers_knew_of(kind, stop):
    change = set_all("samples", limit={"type": kind, "limit": 5})
    (refund,) = [e for e in read_changed(INSPECT, change) if e.scenario_id == "refunds/refund"]
    assert (refund.stop_reason, refund.outcome) == (stop, "passed")


def test_what_a_judge_took_is_kept_apart():
    def change(document):
        metric = document["testCases"][0]["metricsData"][0]
        metric |= {"evaluationModel": "j", "evaluationCost": 0.001, "inputTokenCount": 9}

    found = {one.scenario_id: one for one in read_changed(DEEPEVAL, change)}
    assert (found["refund"].judge.calls, found["refund"].judge.cost_usd) == (1, 0.001)
    assert found["invoice"].judge is None


def test_tests_of_one_description_are_told_apart_by_their_variables():
    def change(document):
        for result in document["results"]["results"]:
            result["testCase"]["description"] = "same"

    names = {one.scenario_id for one in read_changed(PROMPTFOO, change)}
    assert 'same {"question": "Refund my order 8."}' in names
    assert len(names) == 4


def test_several_prompts_are_several_agents():
    def change(document):
        twins = copy.deepcopy(document["results"]["results"])
        for result in twins:
            result["prompt"]["label"] = "Be short: {{question}}"
            result["promptIdx"] += 2
        document["results"] |= {"results": document["results"]["results"] + twins, "stats": {}}

    agents = {one.agent for one in read_changed(PROMPTFOO, change)}
    assert "desk, Be short: {{question}}" in agents
    assert len(agents) == 4
