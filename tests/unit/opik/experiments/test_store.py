"""The experiment store: what is written is there, whoever writes and whatever happens."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.opik.experiments import (
    Experiment,
    ExperimentResult,
    ExperimentStore,
    ScoreRow,
    build_content,
    database,
    make_uuid7,
)
from ci_agent_eval.opik.experiments.database import APPLICATION_ID, VERSION
from ci_agent_eval.opik.experiments.records import LOST


def an_experiment(uid="u1", **overrides):
    fields = {"name": "Test-Suite", "dataset": "tests", "started": f"2026-01-01T00:00:0{uid[-1]}"}
    return Experiment(uid=uid, **{**fields, **overrides})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder/experiments.sqlite3"


@pytest.fixture
def store(path):
    with ExperimentStore.open(path, create=True) as opened:
        yield opened


def test_a_result_is_an_error_until_it_has_ended(store):
    store.begin(an_experiment())
    store.start("u1", "t.py::test_a", "trace", "2026-01-01T00:00:01")
    (started,) = store.results("u1")
    assert (started.outcome, started.reason, started.ended) == ("error", LOST, None)
    content = build_content("t.py::test_a", given={"q": 1}, expected_output=5)
    store.link("u1", "t.py::test_a", content, "item")
    scores = (ScoreRow("Passed", 1.0), ScoreRow("tone", 0.25, "dry"))
    ended = ExperimentResult("t.py::test_a", "passed", None, scores, ended="2026-01-01T00:00:02")
    store.end("u1", ended)
    (result,) = store.results("u1")
    assert result == ExperimentResult(
        nodeid="t.py::test_a",
        outcome="passed",
        reason=None,
        scores=scores,
        content=content,
        item_id="item",
        trace_id="trace",
        started="2026-01-01T00:00:01",
        ended="2026-01-01T00:00:02",
    )


def test_items_of_the_same_content_are_one_in_a_data_set(store):
    store.begin(an_experiment("u2", dataset="others"))
    store.begin(an_experiment("u1"))
    for number, uid in enumerate(["u2", "u1", "u1"]):
        store.start(uid, f"test_{number}", "", "")
        given = {"a": 1, "b": 2} if number else {"b": 2, "a": 1}
        store.link(uid, f"test_{number}", build_content("t", given=given), f"item{number}")
    assert [r.item_id for r in store.results("u1")] == ["item1", "item1"]
    assert [r.item_id for r in store.results("u2")] == ["item0"]


def test_of_two_that_make_the_store_at_once_the_first_one_wins(path, store):
    store.begin(an_experiment())
    database._create_file(path)  # it looked before the other one had made it
    assert [e.uid for e in store.experiments()] == ["u1"]
    assert sorted(p.name for p in path.parent.iterdir() if p.is_dir()) == []


def test_another_attempt_starts_anew(store):
    store.begin(an_experiment())
    store.start("u1", "test_a", "first", "1")
    store.end(
        "u1", ExperimentResult("test_a", "failed", "no", (ScoreRow("Passed", 0.0),), ended="1")
    )
    store.start("u1", "test_a", "second", "2")
    (result,) = store.results("u1")
    assert (result.outcome, result.reason, result.scores) == ("error", LOST, ())
    assert (result.attempts, result.trace_id, result.ended) == (2, "second", None)


def test_experiments_come_latest_first_with_their_counts(store):
    for uid in ("u1", "u3", "u2"):
        store.begin(an_experiment(uid, settings={"a": [1]}, commit="abc"))
    store.begin(an_experiment("u1", name="another", started="2027"))  # the first one counts
    store.start("u2", "test_a", "", "")
    found = store.experiments()
    assert [e.uid for e in found] == ["u3", "u2", "u1"]
    assert [dict(e.outcomes) for e in found] == [{}, {"error": 1}, {}]
    assert (found[2].name, found[2].settings, found[2].commit) == ("Test-Suite", {"a": [1]}, "abc")
    store.finish("u2", "2028")
    assert store.experiment("u2").ended == "2028"
    assert store.experiment("nope") is None


def test_what_is_meant_for_a_server_is_kept_until_it_was_sent(store):
    for uid in ("u1", "u2", "u3"):
        store.begin(an_experiment(uid, sink=None if uid == "u3" else "opik"))
    assert [e.uid for e in store.find_unsent("opik")] == ["u1", "u2"]
    store.mark_sent("u1", "2026")
    store.set_sink("u3", "opik")
    assert [e.uid for e in store.find_unsent("opik")] == ["u2", "u3"]


def test_a_new_folder_is_kept_out_of_git_and_an_old_one_is_left_alone(path, tmp_path):
    ExperimentStore.open(path, create=True).close()
    assert sorted(file.name for file in path.parent.iterdir()) == [
        ".gitignore",
        "experiments.sqlite3",
    ]
    ExperimentStore.open(tmp_path / "beside.sqlite3", create=True).close()
    assert not (tmp_path / ".gitignore").exists()


def test_what_is_missing_is_said(path):
    with pytest.raises(InputError, match="there is no experiment store; run tests that use"):
        ExperimentStore.open(path)
    assert not path.parent.exists()


def foreign(path, kind):
    if kind == "text":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE mine (a)")


@pytest.mark.parametrize("kind", ["text", "folder", "pipe", "database"])
@pytest.mark.parametrize("create", [True, False])
def test_a_foreign_file_is_refused_and_left_as_it_is(tmp_path, kind, create):
    path = tmp_path / "store"
    foreign(path, kind)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(InputError, match="name another one") as raised:
        ExperimentStore.open(path, create=create)
    assert str(path) in str(raised.value)
    assert before == (path.read_bytes() if path.is_file() else None)
    assert [file.name for file in tmp_path.iterdir()] == ["store"]


def test_a_newer_store_is_refused(path):
    ExperimentStore.open(path, create=True).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(InputError, match=f"tables of version {VERSION + 1}, not {VERSION}"):
        ExperimentStore.open(path)


def test_a_damaged_store_is_said_in_one_sentence(path):
    with ExperimentStore.open(path, create=True) as store:
        store.begin(an_experiment())
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * (path.stat().st_size - 100))
    with (
        pytest.raises(InputError, match="cannot be used") as raised,
        ExperimentStore.open(path) as store,
    ):
        store.experiments()
    assert "\n" not in str(raised.value)


def test_the_header_is_sqlite_s(path):
    ExperimentStore.open(path, create=True).close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


WRITER = """
import os, signal, sys
from pathlib import Path
from ci_agent_eval.opik.experiments import *

path, uid, number, count = Path(sys.argv[1]), *sys.argv[2:]
with ExperimentStore.open(path, create=True) as store:
    store.begin(Experiment(uid=uid, name="n", dataset="tests", started="2026"))
    print("ready", flush=True)
    sys.stdin.readline()
    for test in range(int(count)):
        name = f"test_{number}_{test}"
        store.start(uid, name, "", "2026")
        store.link(uid, name, build_content("t", given={"i": test}), f"item-{number}-{test}")
        if number == "killed" and test == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        store.end(uid, ExperimentResult(name, "passed", None))
"""


def writer(path, number, count=50):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), "u1", str(number), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def go(writers):
    """Let them all write once each of them is ready, and return how each ended."""
    for process in writers:
        assert process.stdout.readline() == "ready\n"
    for process in writers:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in writers:
        process.communicate()
    return [process.returncode for process in writers]


def test_eight_writers_make_and_fill_one_store(path):
    assert go([writer(path, number) for number in range(8)]) == [0] * 8
    with ExperimentStore.open(path) as store:
        results = store.results("u1")
    assert len(results) == 400
    assert {r.outcome for r in results} == {"passed"}
    assert len({r.item_id for r in results}) == 50


def test_an_empty_file_is_a_store_yet_to_be_made(path):
    path.parent.mkdir()
    path.touch()
    with pytest.raises(InputError, match="there is no experiment store; run tests that use"):
        ExperimentStore.open(path)
    assert path.read_bytes() == b""
    assert go([writer(path, number, 10) for number in range(4)]) == [0] * 4
    with ExperimentStore.open(path) as store:
        assert len(store.results("u1")) == 40
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_killed_writer_loses_no_more_than_what_it_was_at(path):
    codes = go([writer(path, "killed"), writer(path, "other")])
    assert codes == [-signal.SIGKILL, 0]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with ExperimentStore.open(path) as store:
        outcomes = {r.nodeid: r.outcome for r in store.results("u1")}
    killed = {name: outcome for name, outcome in outcomes.items() if "killed" in name}
    assert len(killed) == 21
    assert killed.pop("test_killed_20") == "error"
    assert set(killed.values()) == {"passed"}
    assert len(outcomes) == 71


def test_uuids_are_of_version_7_and_begin_with_their_time():
    uid = make_uuid7(0x017F22E279B0, bytes(range(10)))
    assert uid.startswith("017f22e2-79b0-7")
    assert uid[19] in "89ab"
    assert make_uuid7(1, b"\xff" * 10) == "00000000-0001-7fff-bfff-ffffffffffff"
