"""Joined shards are a baseline to select by, and the report of a later run shows stale parts."""

from __future__ import annotations

import json
from html import unescape

from tests.processes import run_agent_eval
from tests.repositories import TestRepository

TEST = """
import pytest
from {name} import answer

@pytest.mark.episode(scenario_id="{name}")
def test_{name}(episode):
    with episode.turn("Hello") as turn:
        turn.reply(answer())
    episode.check("polite", True)
"""
ANSWER = (
    'from pathlib import Path\n\ndef answer():\n    return Path("prompts/{name}.md").read_text()\n'
)


def run(repository, *words, code=0):
    done = run_agent_eval(*words, cwd=repository.folder)
    assert done.returncode == code, done.stdout
    return done.stdout


def test_a_run_beside_joined_shards(tmp_path):
    repository = TestRepository(tmp_path / "work")
    for name in ("greet", "refund"):
        repository.write(f"{name}.py", ANSWER.format(name=name))
        repository.write(f"prompts/{name}.md", f"{name}\n")
        repository.write(f"test_{name}.py", TEST.format(name=name))
    repository.write("prompts/old.md", "old\n")
    repository.write("pytest.ini", "[pytest]\npythonpath = .\n")
    commit = repository.commit()
    for number in (1, 2):
        words = ("--shard", f"{number}/2", "--report-dir", f"../shards/{number}")
        run(repository, "run", ".", *words)
    for _ in range(2):  # the second report takes the place of the first one
        run(repository, "report", "--results", "../shards", "--report-dir", "../base")
    joined = json.loads((tmp_path / "base/dependencies.json").read_text())
    assert joined["commit"] == commit
    assert [one["scenario_id"] for one in joined["scenarios"]] == ["greet", "refund"]
    assert "Stale parts: 1 prompt file<" in (tmp_path / "base/report.html").read_text()

    repository.edit("refund.py", 'Path("prompts/refund.md").read_text()', '"none"')
    repository.commit()
    said = run(repository, "why", "greet", "--baseline", "../base")
    assert "nothing that it depends on changed" in " ".join(said.split())
    run(repository, "run", ".", "--baseline", "../base", "--report-dir", "../head")
    page = unescape((tmp_path / "head/report.html").read_text())
    _, _, fold = page.partition('<details id="stale">')
    fold, _, _ = fold.partition("</details>")
    assert "Stale parts: 1 scenario, 2 prompt files" in fold
    assert "<bdi>refund</bdi></strong>: <code>prompts/refund.md</code>" in fold
