"""What other processes have spent, by their journals."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.pytest_plugin.budgets.budget_stop import JournalReader, UnreadableJournal
from ci_agent_eval.storage.run_folder import ReportFolder
from tests.builders import journal_line, talk, turn


def spent(cost, tokens=10, nodeid="a", **overrides):
    answer = turn(cost_usd=cost, tokens={"input": tokens})
    return talk("Hello", answer, nodeid=nodeid, **overrides)


@pytest.fixture
def reader(tmp_path):
    folder = ReportFolder(tmp_path)
    (tmp_path / "episodes").mkdir()
    return JournalReader(folder, folder.journal("gw0").path)


def write(reader, worker, *lines):
    with reader.folder.journal(worker).path.open("a") as file:
        file.writelines(lines)


def test_the_episodes_of_all_other_processes_add_up_and_new_lines_count(reader):
    write(reader, "gw0", journal_line(spent(9.0)))
    write(reader, "gw1", journal_line(spent(0.25)), journal_line(spent(0.5, nodeid="b")))
    write(reader, "gw2", journal_line(spent(1.0, tokens=7, nodeid="c")))
    assert reader.read() == Usage(turns=3, tokens=27, cost_usd=1.75)
    write(reader, "gw1", journal_line(spent(1.0, nodeid="d")))
    write(reader, "gw3", journal_line(spent(1.0, nodeid="e")))
    assert reader.read() == reader.read() == Usage(turns=5, tokens=47, cost_usd=3.75)


def test_the_last_record_of_an_episode_counts_and_every_attempt_does(reader):
    lines = [
        journal_line(spent(0.0, tokens=0), "started"),
        journal_line(spent(0.5)),
        journal_line(spent(0.75)),
        journal_line(spent(0.0, tokens=0), "started"),
        journal_line(spent(0.25, attempt=2)),
    ]
    write(reader, "gw1", *lines)
    assert reader.read() == Usage(turns=2, tokens=20, cost_usd=1.0)


def test_agents_of_a_skipped_episode_do_not_count_as_in_the_report(reader):
    judge = {"calls": 1, "cost_usd": 0.125, "tokens": {"input": 1, "output": 2}}
    write(reader, "gw1", journal_line(spent(5.0, outcome="skipped", judge=judge)))
    assert reader.read() == Usage(tokens=3, cost_usd=0.125)


def test_a_line_that_is_still_being_written_is_read_once_it_is_whole(reader):
    line = journal_line(spent(0.5))
    path = reader.folder.journal("gw1").path
    path.write_text(line[:40])
    assert reader.read() == Usage()
    path.write_text(line)
    assert reader.read() == Usage(turns=1, tokens=10, cost_usd=0.5)


@pytest.mark.parametrize("line", ["no json\n", "{}\n", '{"event": "ended"}\n'])
def test_a_line_that_is_no_record_is_no_sum(reader, line):
    write(reader, "gw1", journal_line(spent(0.5)), line)
    found = reader.read()
    assert isinstance(found, UnreadableJournal)
    assert "gw1.jsonl has a line that is not a record of an episode; run the" in found.sentence
    assert isinstance(reader.read(), UnreadableJournal)


def test_a_journal_that_is_gone_is_no_sum(reader):
    write(reader, "gw1", journal_line(spent(0.5)))
    assert reader.read() == Usage(turns=1, tokens=10, cost_usd=0.5)
    reader.folder.journal("gw1").path.unlink()
    found = reader.read()
    assert isinstance(found, UnreadableJournal)
    assert "gw1.jsonl cannot be read (No such file or directory)" in found.sentence
