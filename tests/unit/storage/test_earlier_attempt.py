"""Which tests of an earlier attempt are finished, and which folders are refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.results import JournalLine, Session, StartConditions
from ci_agent_eval.contract.resume import FinishedTest
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.earlier_attempt import (
    EarlierAttempt,
    KeptTests,
    list_kept_scenarios,
    note_finished,
)
from ci_agent_eval.storage.start_conditions import find_difference
from tests.builders import episode

CONDITIONS = StartConditions(
    program="1", command="a", commit="c" * 40, environment="e", recorded_at=1
)
GREET = ("t.py::test_greet", 1)


def line(event="ended", **fields):
    item = episode("greet", nodeid=GREET[0], **fields)
    return canonical_json(JournalLine(event=event, episode=item)).encode()


def finish(folder, nodeid=GREET[0], **fields):
    note_finished(folder, "main", FinishedTest(nodeid=nodeid, **fields))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "episodes").mkdir()
    session = Session(state="running", conditions=CONDITIONS)
    (tmp_path / "session.json").write_text(canonical_json(session))
    return tmp_path


def write(folder, *lines, end=b"\n", name="main.jsonl"):
    (folder / "episodes" / name).write_bytes(b"\n".join(lines) + end)


def load(folder):
    found = EarlierAttempt.load(folder)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("lines", "is_kept"),
    [
        ([line("started"), line()], True),
        ([line(outcome="failed", reason="x")], True),
        ([line(outcome="error", reason="x")], False),
        ([line(outcome="skipped")], False),
        ([line("started")], False),
        ([line(outcome="failed"), line(attempt=2)], True),
        ([line(), line("started", attempt=2)], False),
        ([line("started"), line(attempt=2)], False),
        ([line(), line(outcome="error", reason="in teardown")], False),
    ],
)
def test_a_test_is_kept_if_all_its_attempts_ended_and_the_last_was_judged(folder, lines, is_kept):
    write(folder, *lines)
    finish(folder)
    assert load(folder).tests.keys() == ({GREET} if is_kept else set())


def test_a_test_whose_teardown_has_not_ended_is_not_kept(folder):
    write(folder, line())
    assert load(folder).tests.keys() == set()


def test_a_last_line_that_is_not_whole_is_ignored(folder):
    write(folder, line(), b'{"episode', end=b"")
    finish(folder)
    with (folder / "episodes/main.finished").open("a") as file:
        file.write('{"node')
    assert load(folder).tests.keys() == {GREET}


def test_the_kept_episodes_are_read_back_and_kept_again(folder, tmp_path):
    write(folder, line(outcome="failed", reason="x"), line(attempt=2))
    finish(folder, variables={"DESK": "1"}, files={"notes.txt": "2"})
    found = load(folder)
    assert (found.conditions.variables, found.conditions.files) == (
        {"DESK": "1"},
        {"notes.txt": "2"},
    )
    found.write_kept(folder)
    kept = KeptTests.find(folder)
    assert GREET in kept
    assert [(one.attempt, one.outcome) for one in kept.read(GREET)] == [
        (1, "failed"),
        (2, "passed"),
    ]
    (folder / "episodes/main.jsonl").unlink()
    (folder / "episodes/main.finished").unlink()
    assert load(folder).tests.keys() == {GREET}


def test_a_file_that_changed_between_two_tests_counts_as_changed(folder, tmp_path):
    for digest in ("1", "2", "1"):
        finish(folder, files={"notes.txt": digest})
    earlier = load(folder).conditions
    now = earlier.model_copy(update={"files": {}})
    found = find_difference(earlier, now, {}, tmp_path)
    assert found == "the file notes.txt, which git does not track, has changed"


@pytest.mark.parametrize(
    ("lines", "is_kept"),
    [
        ([line()], True),  # reported again, and killed before it was noted
        ([line("started")], False),
        ([line("started"), line(outcome="failed", reason="x")], False),
        ([line("started"), line(outcome="error", reason="x")], False),
    ],
)
def test_a_kept_test_that_ran_again_loses_its_first_result(folder, lines, is_kept):
    write(folder, line())
    finish(folder)
    load(folder).write_kept(folder)
    (folder / "episodes/main.finished").unlink()
    write(folder, *lines)
    assert load(folder).tests.keys() == ({GREET} if is_kept else set())


def test_an_empty_folder_is_no_attempt(tmp_path):
    assert EarlierAttempt.load(tmp_path) is None
    assert EarlierAttempt.load(tmp_path / "missing") is None


def put_pipe(folder):
    os.mkfifo(folder / "episodes/gw0.jsonl")


def link_finished(folder):
    (folder / "episodes/gw0.finished").symlink_to("/dev/zero")


HOSTILE = {
    "pipe": (put_pipe, "its file 'gw0.jsonl' cannot be read: it is not a regular file"),
    "link": (link_finished, "its file 'gw0.finished' cannot be read"),
    "garbage": (lambda folder: write(folder, b"{}", name="gw0.jsonl"), "'gw0.jsonl' is broken"),
    "bytes": (
        lambda folder: write(folder, b"\xff", name="gw0.finished"),
        "gw0.finished' is broken",
    ),
    "kept": (lambda folder: write(folder, b"x", name="earlier.kept"), "'earlier.kept' is broken"),
    "session": (lambda folder: (folder / "session.json").write_text("[]"), "session.json cannot"),
    "old": (
        lambda folder: (folder / "session.json").write_text(json.dumps({"state": "running"})),
        "it does not say under which conditions it ran",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_is_refused_as_a_whole(folder, name):
    write(folder, line())
    finish(folder)
    change, sentence = HOSTILE[name]
    change(folder)
    with pytest.raises(InputError, match=sentence):
        EarlierAttempt.load(folder)


DIFFERENCES = {
    "commit": ({"commit": "d" * 40}, "it is about commit ddddddd, this is ccccccc"),
    "program": ({"program": "0"}, "agent-eval was 0, and is 1"),
    "command": ({"command": "b"}, "its suite, paths, arguments or shard differ"),
    "folder": ({"folder": "other"}, "pytest started in another folder"),
    "edited": ({"changes": {"a.py": "1"}}, "the uncommitted file a.py has changed since it began"),
    "configuration": ({"configuration": "1"}, "pytest's configuration file has changed"),
    "environment": ({"environment": "f"}, "Python, the platform or an installed package"),
    "variable": ({"variables": {"DESK": "1"}}, "the environment variable DESK has changed"),
    "secret unset": ({"variables": {"API_KEY": "set"}}, "the environment variable API_KEY has"),
    "file": ({"files": {"notes.txt": "1"}}, "the file notes.txt, which git does not track"),
    "unreadable": ({"files": {".": ""}}, "the file ., which git does not track, has changed"),
    "control": ({"changes": {"a\n::error::": "1"}}, r"file a\\n::error:: has changed"),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_run_under_other_conditions_is_not_continued(tmp_path, name):
    fields, sentence = DIFFERENCES[name]
    earlier = CONDITIONS.model_copy(update=fields)
    found = find_difference(earlier, CONDITIONS, {}, tmp_path)
    assert found is not None
    assert sentence.replace("\\\\", "\\") in found
    assert find_difference(CONDITIONS, CONDITIONS, {"OTHER": "1"}, tmp_path) is None


@pytest.mark.parametrize("sides", [({"a.py": None}, {}), ({}, {"a.py": None})], ids=str)
def test_a_deleted_file_is_a_difference(tmp_path, sides):
    earlier, now = (CONDITIONS.model_copy(update={"changes": one}) for one in sides)
    found = find_difference(earlier, now, {}, tmp_path)
    assert found == "the uncommitted file a.py has changed since it began"
    assert find_difference(earlier, earlier, {}, tmp_path) is None


def test_a_new_variable_that_python_reads_is_a_difference(tmp_path):
    now = CONDITIONS.model_copy(update={"variables": {"PYTHONOPTIMIZE": "1"}})
    found = find_difference(CONDITIONS, now, {"PYTHONOPTIMIZE": "x"}, tmp_path)
    assert found == "the environment variable PYTHONOPTIMIZE has changed"


NOTE_AT_LIMIT = """
import resource, sys
from pathlib import Path
from ci_agent_eval.contract.resume import FinishedTest
from ci_agent_eval.storage.earlier_attempt import note_finished

folder = Path(sys.argv[1])
note_finished(folder, "main", FinishedTest(nodeid="a", kept="greet"))
size = (folder / "episodes/main.finished").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5, size + 5))
try:
    note_finished(folder, "main", FinishedTest(nodeid="b", kept="refund"))
except OSError as error:
    print(error.strerror)
"""


def test_a_line_that_a_full_disk_cuts_off_is_an_error_and_ignored(folder):
    command = [sys.executable, "-c", NOTE_AT_LIMIT, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "the line is cut off\n"
    assert list_kept_scenarios(folder) == ["greet"]
