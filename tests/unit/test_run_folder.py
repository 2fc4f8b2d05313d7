"""The folder of a run: journals of several processes become one file of results."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_agent_eval.contract.episode import Episode, Outcome
from ci_agent_eval.contract.results import JournalLine, Results
from ci_agent_eval.run_folder import ReportFolder


def a_line(outcome: Outcome, event: str = "ended", **fields) -> JournalLine:
    return JournalLine(event=event, episode=Episode(scenario_id="a", outcome=outcome, **fields))


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


def test_a_cut_off_last_line_is_named_and_the_rest_kept(folder):
    journal = folder.journal("main")
    journal.write(a_line("passed"))
    with journal.path.open("ab") as file:
        file.write(b'{"episode":{"scen')
    assert folder.write_results("desk") == ("episodes/main.jsonl:2",)
    assert outcomes(folder) == [(1, "passed")]


def test_nothing_half_written_is_left_beside_the_results(folder):
    folder.write_results("desk")
    assert sorted(path.name for path in folder.path.iterdir()) == ["episodes", "results.json"]
