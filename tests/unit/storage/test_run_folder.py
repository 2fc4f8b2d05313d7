"""The folder of a run: journals of several processes become one file of results."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from ci_agent_eval.contract.episode import Episode, Outcome
from ci_agent_eval.contract.evaluation import build_evaluation_report, render_evaluation
from ci_agent_eval.contract.results import JournalLine, Results, Session
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.run_folder import ReportFolder
from tests.builders import evaluated
from tests.tables import each_row

OWN_EVALUATION = render_evaluation(build_evaluation_report([evaluated("a", True)]))


def a_line(outcome: Outcome, event: str = "ended", **fields) -> JournalLine:
    known = {"scenario_id": "a", "outcome": outcome, "evidence": "none", **fields}
    return JournalLine(event=event, episode=Episode.model_validate(known))


@pytest.fixture
def folder(tmp_path: Path) -> ReportFolder:
    folder = ReportFolder(tmp_path / "report")
    folder.clear()
    return folder


def outcomes(folder: ReportFolder) -> list[tuple[int, str]]:
    results = Results.model_validate_json((folder.path / "results.json").read_bytes())
    return [(e.attempt, e.outcome) for e in results.episodes]


@pytest.mark.parametrize("workers", [("gw0", "gw1"), ("gw1", "gw0")])
def test_an_end_stands_over_a_start_in_whichever_journal(folder, workers):
    folder.journal(workers[0]).write(a_line("passed"))
    folder.journal(workers[1]).write(a_line("error", event="started"))
    assert folder.write_results("desk") == ()
    assert outcomes(folder) == [(1, "passed")]


def test_the_last_end_of_a_journal_stands(folder):
    for outcome in ("passed", "error"):
        folder.journal("main").write(a_line(outcome))
    folder.write_results("desk")
    assert outcomes(folder) == [(1, "error")]


def test_episodes_are_ordered_by_key_and_attempts_kept_apart(folder):
    folder.journal("gw1").write(a_line("failed", attempt=2))
    folder.journal("gw10").write(a_line("passed", attempt=10))
    folder.journal("gw0").write(a_line("error", attempt=1))
    folder.write_results("desk")
    assert outcomes(folder) == [(1, "error"), (2, "failed"), (10, "passed")]


def test_an_episode_that_ended_under_another_scenario_is_there_once(folder):
    folder.journal("main").write(a_line("error", event="started"))
    end = a_line("passed", scenario_id="b")
    folder.journal("main").write(end.model_copy(update={"started_as": "a"}))
    folder.write_results("desk")
    assert outcomes(folder) == [(1, "passed")]


def test_a_cut_off_last_line_is_named_and_the_rest_kept(folder):
    journal = folder.journal("main")
    journal.write(a_line("passed"))
    with journal.path.open("ab") as file:
        file.write(b'{"episode":{"scen')
    assert folder.write_results("desk") == ("episodes/main.jsonl:2",)
    assert outcomes(folder) == [(1, "passed")]


def test_episodes_are_merged_one_at_a_time(folder):
    size, count = 100_000, 40
    for number in range(count):
        metadata = {"text": "x" * size}
        folder.journal("main").write(a_line("passed", iteration=number, metadata=metadata))
    tracemalloc.start()
    try:
        folder.write_results("desk")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(outcomes(folder)) == count
    assert peak < size * count / 2


def test_nothing_half_written_is_left_beside_the_results(folder):
    folder.write_results("desk")
    names = sorted(path.name for path in folder.path.iterdir())
    assert names == [".gitignore", "episodes", "results.json"]


def tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def a_run_in(path: Path) -> ReportFolder:
    folder = ReportFolder(path)
    folder.clear()
    folder.journal("main").write(a_line("passed"))
    folder.write_session(Session(state="finished"))
    folder.write_results("desk")
    (path / "eval-results.json").write_text(OWN_EVALUATION)
    (path / "junit.xml").write_text("<testsuites/>")
    return folder


def test_all_of_a_former_run_is_cleared(tmp_path):
    folder = a_run_in(tmp_path / "report")
    (folder.path / "notes.txt").write_text("mine")
    folder.clear(with_junit=True)
    assert sorted(tree(folder.path)) == [".gitignore", "notes.txt"]


def test_the_junit_file_is_left_to_pytest_unless_asked_for(tmp_path):
    folder = a_run_in(tmp_path / "report")
    folder.clear()
    assert sorted(tree(folder.path)) == [".gitignore", "junit.xml"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("results.json", '{"results": []}'),
        ("results.json", ""),
        ("eval-results.json", "{}"),
        ("eval-results.json", OWN_EVALUATION.removesuffix("\n")),  # as JSON.stringify writes it
        ("session.json", "{}"),
        ("session.json", '{"state": "finished", "user": 3}'),
        ("episodes/main.jsonl", '{"line": 1}'),
        ("episodes/gw12.jsonl", "[]"),
    ],
)
def test_one_file_of_others_and_nothing_is_touched(tmp_path, name, text):
    folder = a_run_in(tmp_path / "report")
    (folder.path / name).write_text(text)
    before = tree(folder.path)
    for act in (folder.prepare, folder.clear):
        with pytest.raises(InputError, match="was not written by this program") as raised:
            act()
        assert name in str(raised.value)
    assert tree(folder.path) == before


def test_a_junit_file_without_our_session_is_not_ours(tmp_path):
    (tmp_path / "junit.xml").write_text("<testsuites/>")
    folder = ReportFolder(tmp_path)
    with pytest.raises(InputError, match=r"junit\.xml: was not written by this program"):
        folder.clear(with_junit=True)
    assert sorted(tree(tmp_path)) == ["junit.xml"]
    folder.clear()
    assert sorted(tree(tmp_path)) == ["junit.xml"]


def test_a_folder_in_the_place_of_a_file_is_not_ours(tmp_path):
    (tmp_path / "results.json").mkdir()
    with pytest.raises(InputError, match="was not written by this program"):
        ReportFolder(tmp_path).prepare()


def test_a_journal_that_was_cut_off_is_ours(tmp_path):
    folder = ReportFolder(tmp_path)
    folder.clear()
    (tmp_path / "episodes" / "main.jsonl").write_bytes(b'{"epi')
    (tmp_path / "episodes" / "gw0.jsonl").write_bytes(b"")
    folder.clear()
    assert sorted(tree(tmp_path)) == [".gitignore"]


@each_row("made", [False, True])
def test_a_folder_of_ours_is_kept_out_of_git(tmp_path, made):
    folder = ReportFolder(tmp_path / "new" / "report")
    if made:
        folder.path.mkdir(parents=True)
    folder.prepare()
    assert tree(folder.path) == {".gitignore": b"# Created by agent-eval\n*\n"}


def test_a_folder_with_files_of_others_is_not(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    ReportFolder(tmp_path).prepare()
    assert sorted(tree(tmp_path)) == ["notes.txt"]
