"""Sending to Opik, over a real loopback server that answers, hangs, refuses and breaks.

The package `opik` is a stand-in with its signatures (`tests/opik_stub`).
"""

from __future__ import annotations

import os

import pytest

from ci_agent_eval.contract.results import Experiment, ExperimentResult, build_item
from ci_agent_eval.opik.experiments.opik_sink import BATCH
from ci_agent_eval.opik.experiments.push import OpikServer, find_connection_problem, send_to_opik
from tests.opik_server import opik_server

STARTED = "2026-01-01T00:00:01+00:00"


@pytest.fixture
def server():
    with opik_server() as running:
        yield running


def build_experiment(results=3, name="e1"):
    """An experiment whose first test was killed before it was linked."""
    first = ExperimentResult(
        nodeid="t.py::test_0", outcome="error", item=build_item("t.py::test_0"), started=STARTED
    )
    scores = [{"name": "Passed", "value": 1.0}, {"name": "tone", "value": 0.5, "reason": "dry"}]
    others = [
        ExperimentResult(
            nodeid=f"t.py::test_{index}",
            outcome="passed",
            item=build_item(f"t.py::test_{index}", {"q": index}, "a"),
            scores=scores,
            started=STARTED,
            ended=STARTED,
        )
        for index in range(1, results)
    ]
    return Experiment(
        name=name,
        dataset="tests",
        commit="abc",
        configuration={"suite": "s"},
        results=[first, *others],
    )


def send(server, experiment, **overrides):
    environ = {**os.environ, **server.environ(), **overrides}
    return send_to_opik(experiment, OpikServer(server.url), environ)


def test_everything_of_an_experiment_arrives(server):
    assert send(server, build_experiment()) is None
    (experiment,) = server.experiments.values()
    assert experiment == {
        "id": experiment["id"],
        "name": "e1",
        "dataset": "tests",
        "config": {"suite": "s", "commit": "abc"},
    }
    names = {t["name"]: t for t in server.traces.values()}
    assert sorted(names) == ["t.py::test_0", "t.py::test_1", "t.py::test_2"]
    assert names["t.py::test_0"]["output"]["outcome"] == "error"
    assert names["t.py::test_1"]["input"] == {"q": 1}
    assert names["t.py::test_1"]["feedback_scores"] == [
        {"name": "Passed", "value": 1.0, "reason": None},
        {"name": "tone", "value": 0.5, "reason": "dry"},
    ]
    by_id = {item_id: item["input"]["test_name"] for item_id, item in server.items.items()}
    assert {by_id[link["dataset_item_id"]] for link in server.links} == set(names)
    assert {link["trace_id"] for link in server.links} == set(server.traces)
    assert all(found.split("-")[2].startswith("7") for found in [*by_id, *server.traces])


def test_items_that_opik_has_already_are_used(server):
    assert send(server, build_experiment()) is None
    items = dict(server.items)
    assert send(server, build_experiment(name="e2")) is None
    assert server.items == items
    assert {link["dataset_item_id"] for link in server.links} == set(items)
    assert len(server.links) == len(server.traces) == 6


def test_more_results_than_a_batch_arrive(server):
    assert send(server, build_experiment(BATCH + 5)) is None
    assert len(server.links) == len(server.traces) == len(server.items) == BATCH + 5


@pytest.mark.parametrize("at", ["items/find", "experiments", "traces", "links"])
@pytest.mark.parametrize("how", ["hangs_at", "breaks_at"])
def test_a_server_that_fails_on_the_way_is_left(server, at, how):
    setattr(server, how, at)
    problem = send(server, build_experiment())
    assert problem.startswith(f"Opik at {OpikServer(server.url).host}: ")
    # It ended by itself: requests are cut short, and nobody had to end the process.
    assert "stopped answering" not in problem


def test_a_server_that_refuses_is_reported_with_the_system_s_error(server):
    problem = send_to_opik(build_experiment(), OpikServer("http://127.0.0.1:9/"), os.environ)
    assert problem == "Opik at 127.0.0.1:9 does not answer ([Errno 111] Connection refused)"


def test_a_server_that_hangs_costs_one_ping(server):
    server.hangs_at = "is-alive/ping"
    assert find_connection_problem(OpikServer(server.url), timeout_s=0.2) == "timed out"


def test_any_answer_is_one(server):
    server.breaks_at = "is-alive/ping"
    assert find_connection_problem(OpikServer(server.url)) is None
    assert (
        find_connection_problem(OpikServer("file:///etc/hosts"))
        == "its address is neither http nor https"
    )


def test_an_interpreter_without_opik_says_so_in_the_problem(server):
    problem = send(server, build_experiment(), PYTHONPATH="")
    assert "ModuleNotFoundError: No module named 'opik'" in problem
