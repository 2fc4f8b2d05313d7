"""Sending to Opik, over a real loopback server that answers, hangs, refuses and breaks.

The package `opik` is a stand-in with its signatures (`tests/opik_stub`).
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ci_agent_eval.opik.experiments import (
    Experiment,
    ExperimentResult,
    ExperimentStore,
    ScoreRow,
    build_content,
    make_uuid7,
)
from ci_agent_eval.opik.experiments.opik_settings import OpikServer, find_connection_problem
from ci_agent_eval.opik.experiments.opik_sink import BATCH
from ci_agent_eval.opik.experiments.push import push_to_opik
from tests.opik_server import opik_server


@pytest.fixture
def server():
    with opik_server() as running:
        yield running


@pytest.fixture
def path(tmp_path):
    return tmp_path / "experiments.sqlite3"


def fill(path, number, results=3):
    """Put an experiment into the store that is meant for Opik."""
    uid = make_uuid7(number, bytes(10))
    with ExperimentStore.open(path, create=True) as store:
        started = f"2026-01-01T00:00:0{number}+00:00"
        store.begin(
            Experiment(
                uid=uid,
                name=f"e{number}",
                dataset="tests",
                started=started,
                settings={"suite": "s"},
                commit="abc",
                sink="opik",
            )
        )
        for index in range(results):
            name = f"t.py::test_{index}"
            store.start(uid, name, make_uuid7(number, bytes([9, *[index] * 9])), started)
            if index:  # the first was killed before it was linked
                content = build_content(name, given={"q": index}, expected_output="a")
                store.link(uid, name, content, make_uuid7(number, bytes([8, *[index] * 9])))
                scores = (ScoreRow("Passed", 1.0), ScoreRow("tone", 0.5, "dry"))
                store.end(uid, ExperimentResult(name, "passed", None, scores, ended=started))
    return uid


def environ(server):
    return {**os.environ, **server.environ()}


def sent_of(path):
    with ExperimentStore.open(path) as store:
        return {e.name: e.sent is not None for e in store.experiments()}


def test_everything_of_an_experiment_arrives(server, path):
    uid = fill(path, 1)
    pushed = push_to_opik(path, [uid], OpikServer(server.url), environ(server))
    assert (pushed.sent, pushed.problem) == ((uid,), None)
    assert sent_of(path) == {"e1": True}
    assert server.experiments[uid] == {
        "id": uid,
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


def test_items_that_opik_has_already_are_used(server, path):
    first, second = fill(path, 1), fill(path, 2)
    push_to_opik(path, [first], OpikServer(server.url), environ(server))
    items = dict(server.items)
    push_to_opik(path, [second], OpikServer(server.url), environ(server))
    assert server.items == items
    assert {link["dataset_item_id"] for link in server.links} == set(items)
    assert len(server.links) == 6


def test_sending_again_changes_nothing(server, path):
    uid = fill(path, 1, BATCH + 5)
    for _ in range(2):
        assert push_to_opik(path, [uid], OpikServer(server.url), environ(server)).problem is None
    assert len(server.links) == len(server.traces) == BATCH + 5
    assert len(server.items) == BATCH + 5


@pytest.mark.parametrize("at", ["items/find", "experiments", "traces", "links"])
@pytest.mark.parametrize("how", ["hangs_at", "breaks_at"])
def test_a_server_that_fails_on_the_way_is_left_and_asked_again_later(server, path, at, how):
    first, second = fill(path, 1), fill(path, 2)
    setattr(server, how, at)
    pushed = push_to_opik(path, [first, second], OpikServer(server.url), environ(server))
    assert pushed.sent == ()
    assert pushed.problem.startswith(f"Opik at {OpikServer(server.url).host}")
    # It ended by itself: requests are cut short, and nobody had to end the process.
    assert "stopped answering" not in pushed.problem
    assert sent_of(path) == {"e1": False, "e2": False}
    setattr(server, how, None)
    pushed = push_to_opik(path, [first, second], OpikServer(server.url), environ(server))
    assert (pushed.sent, pushed.problem) == ((first, second), None)
    assert len(server.links) == 6
    assert len(server.items) == 3


def test_a_server_that_refuses_is_reported_with_the_system_s_error(server, path):
    uid = fill(path, 1)
    pushed = push_to_opik(path, [uid], OpikServer("http://127.0.0.1:9/"), environ(server))
    assert pushed.problem == "Opik at 127.0.0.1:9 does not answer ([Errno 111] Connection refused)"


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


def test_an_interpreter_without_opik_says_so_in_the_problem(server, path):
    uid = fill(path, 1)
    pushed = push_to_opik(
        path, [uid], OpikServer(server.url), {**environ(server), "PYTHONPATH": ""}
    )
    assert "ModuleNotFoundError: No module named 'opik'" in pushed.problem


def command(path, server, *arguments, **overrides):
    return subprocess.run(
        [sys.executable, "-m", "ci_agent_eval", "experiments", "push", "--store", path, *arguments],
        env={**environ(server), **overrides},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_sends_what_is_left(server, path):
    fill(path, 1)
    fill(path, 2)
    done = command(path, server)
    assert (done.returncode, done.stdout) == (
        0,
        f"sent to Opik at {OpikServer(server.url).host}: 2 of 2\n",
    )
    assert command(path, server).stdout.endswith("0 of 0\n")


def test_the_command_sends_what_is_named(server, path):
    with ExperimentStore.open(path, create=True) as store:
        store.begin(Experiment(uid="u" * 36, name="mine", dataset="d", started="2026"))
    assert command(path, server).stdout.endswith("0 of 0\n")
    assert command(path, server, "mine").stdout.endswith("1 of 1\n")
    assert sent_of(path) == {"mine": True}


def test_the_command_fails_where_the_server_does(server, path):
    fill(path, 1)
    done = command(path, server, OPIK_URL_OVERRIDE="http://127.0.0.1:9/")
    assert done.returncode == 3
    assert "does not answer" in done.stderr
    assert "0 of 1 sent; try again later" in done.stderr


def test_the_command_says_what_is_missing(server, path, tmp_path):
    done = command(path, server, PYTHONPATH="")
    assert (done.returncode, "is not installed" in done.stderr) == (2, True)
    nowhere = {"OPIK_URL_OVERRIDE": "", "OPIK_API_KEY": "", "OPIK_CONFIG_PATH": str(tmp_path)}
    done = command(path, server, **nowhere)
    assert (done.returncode, "is not configured" in done.stderr) == (2, True)
