"""What a session was warned of, in memory and in a file, and which test runs followed."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering import store
from ci_agent_eval.steering.locations import get_default_store_path
from ci_agent_eval.steering.store import SteeringStore
from tests.tables import each_row


@pytest.fixture(params=["memory", "sqlite"])
def memory_of(request, tmp_path):
    path = None if request.param == "memory" else tmp_path / "a/b.sqlite3"
    return lambda: SteeringStore(path)


def test_each_command_of_a_session_is_new_once(memory_of):
    memory = memory_of()

    asked = [memory.record_command("s", command, 0) for command in ("a", "b", "a", "b", "a")]

    assert asked == [True, True, False, False, False]


def test_a_session_is_forgotten_when_it_was_not_used_for_so_long(memory_of):
    memory = memory_of()
    memory.record_command("s", "a", 0)

    assert not memory.record_command("s", "a", 1800)
    assert memory.record_command("s", "b", 3600)
    assert memory.record_command("s", "a", 5400.1)


def test_a_clock_that_was_set_back_by_much_forgets_too(memory_of):
    memory = memory_of()
    memory.record_command("s", "a", 1e9)

    assert not memory.record_command("s", "a", 1e9 - 1)
    assert memory.record_command("s", "a", 0)


def test_of_more_than_1024_sessions_the_one_used_longest_ago_goes(memory_of):
    memory = memory_of()
    for number in range(1024):
        memory.record_command(f"session {number}", "a", number / 10)
    assert not memory.record_command("session 0", "a", 200)

    memory.record_command("one more", "a", 201)

    assert not memory.record_command("session 0", "a", 202)
    assert not memory.record_command("session 2", "a", 203)
    assert memory.record_command("session 1", "a", 204)


def test_commands_of_a_session_do_not_grow_without_end(memory_of, monkeypatch):
    memory = memory_of()
    for number in range(store.MAX_COMMANDS + 1):
        memory.record_command("s", f"command {number}", 0)

    assert not memory.record_command("s", "command 1", 0)
    assert memory.record_command("s", "command 0", 0)


def test_names_and_commands_may_be_any_text(memory_of):
    memory = memory_of()

    for text in ("", "\0", "\ud800", "é" * 10**5, "'; DROP TABLE sessions; --"):
        assert memory.record_command(text, text, 0)
        assert not memory.record_command(text, text, 0)


def test_of_many_threads_that_ask_at_once_one_is_the_first(memory_of):
    memory = memory_of()
    barrier = threading.Barrier(16)

    def ask(number):
        barrier.wait()
        return [memory.record_command("s", f"command {step}", 0) for step in range(5)]

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(16)))

    assert [sum(column) for column in zip(*answers, strict=True)] == [1] * 5


def test_expired_sessions_are_pruned_from_the_file(tmp_path):
    memory = SteeringStore(tmp_path / "x")
    memory.record_command("early", "a", 0)
    memory.record_command("late", "a", 2000)

    with sqlite3.connect(tmp_path / "x") as connection:
        count = connection.execute("SELECT count(*) FROM calls").fetchone()
    connection.close()

    assert count == (1,)


def test_the_file_is_private_and_holds_no_words(tmp_path):
    path = tmp_path / "state/x"
    SteeringStore(path).record_command("session-name", "pytest --token=hunter2", 0)

    content = path.read_bytes()

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert b"hunter2" not in content
    assert b"session-name" not in content


@each_row("content", [b"no database at all, but long enough to be read" * 9, None])
def test_a_file_that_is_something_else_stays_as_it_is(tmp_path, content):
    path = tmp_path / "x"
    if content is None:
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE mine (a)")
        connection.commit()
        connection.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()

    with pytest.raises(InputError, match=r"x: .*delete it, or name another one with --store"):
        SteeringStore(path).record_command("s", "a", 0)

    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(InputError, match="cannot be used to remember sessions"):
        SteeringStore(tmp_path / "file/x").record_command("s", "a", 0)


def test_the_default_is_where_programs_keep_their_state():
    given = {"XDG_STATE_HOME": "/state"}

    assert get_default_store_path(given, "/home/me") == "/state/agent-eval/steering.sqlite3"
    expected = "/home/me/.local/state/agent-eval/steering.sqlite3"
    assert get_default_store_path({}, "/home/me") == expected
    assert get_default_store_path({"XDG_STATE_HOME": "relative"}, "/home/me") == expected


def test_sessions_that_were_never_held_back_leave_no_file_and_no_call(tmp_path):
    memory = SteeringStore(tmp_path / "x")
    memory.record_call("s", "targeted", 1.0)
    assert memory.load_calls() == []
    assert not (tmp_path / "x").exists()

    memory.record_call("other", "held", 1.0)
    memory.record_call("s", "targeted", 2.0)
    assert [call.kind for call in memory.load_calls()] == ["held"]
    assert b"other" not in (tmp_path / "x").read_bytes()


def test_the_oldest_calls_are_dropped(tmp_path, monkeypatch):
    memory = SteeringStore(tmp_path / "x")
    monkeypatch.setattr(store, "MAX_CALLS", 3)
    for number in range(5):
        memory.record_call(str(number), "held", float(number))

    assert [call.started for call in memory.load_calls()] == [2.0, 3.0, 4.0]
