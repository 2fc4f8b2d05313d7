"""The journal that is read while a suite runs, and files that are redacted after it."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from ci_agent_eval.redaction import Redactor
from ci_agent_eval.runner.progress import JournalTail, RunProgress
from ci_agent_eval.runner.suite import redact_xml


def test_a_half_written_line_is_counted_when_it_is_whole(tmp_path):
    line = '{"event":"ended","episode":{"scenario_id":"a","outcome":"failed"}}\n'
    journal = tmp_path / "episodes" / "main.jsonl"
    journal.parent.mkdir()
    tail = JournalTail(tmp_path)
    journal.write_text(line[:20])
    assert tail.progress() == RunProgress()
    journal.write_text(line + "{broken\n")
    first = tail.progress()
    assert replace(first, causes=()) == RunProgress(finished=1, failed=1, failed_scenarios=1)
    assert tail.progress() == first


@pytest.mark.parametrize("name", ["session.json", "episodes/main.jsonl"])
def test_progress_waits_for_no_pipe_and_follows_no_link(tmp_path, name):
    line = '{"event":"ended","episode":{"scenario_id":"a","outcome":"failed"}}\n'
    (tmp_path / "elsewhere").write_text(line)
    (tmp_path / "episodes").mkdir()
    os.mkfifo(tmp_path / name)
    assert JournalTail(tmp_path).progress() == RunProgress()
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    assert JournalTail(tmp_path).progress() == RunProgress()


def test_redacting_touches_only_regular_files_and_keeps_who_may_read_them(tmp_path):
    path = tmp_path / "junit.xml"
    (tmp_path / "secret").write_text("Zx9-plain")
    path.symlink_to("secret")
    redact_xml(path, Redactor(("Zx9-plain",)))
    assert (path.is_symlink(), path.read_text()) == (True, "Zx9-plain")
    path.unlink()
    path.write_text("Zx9-plain")
    path.chmod(0o644)
    redact_xml(path, Redactor(("Zx9-plain",)))
    assert (path.stat().st_mode & 0o777, path.read_text()) == (0o644, "[redacted]")


def test_redacting_a_file_keeps_every_other_byte(tmp_path):
    path = tmp_path / "junit.xml"
    path.write_bytes(b"\xff a Zx9-plain b\r\nc\nno newline at the end")
    redact_xml(path, Redactor(("Zx9-plain",)))
    assert path.read_bytes() == b"\xff a [redacted] b\r\nc\nno newline at the end"
    assert list(tmp_path.iterdir()) == [path]
    redact_xml(tmp_path / "missing.xml", Redactor())
    assert list(tmp_path.iterdir()) == [path]
