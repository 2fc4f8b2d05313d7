"""docs/evaluations.md: its code runs, its outputs are real, and it names every option."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from ci_agent_eval.config.settings import load_settings
from tests.processes import run_python
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/evaluations.md").read_text()
CODE = dict(re.findall(r"^```python\n# (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
(TABLE,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def run(folder, name, *arguments):
    # With the name's line: places in the output count it.
    (folder / name).write_text(f"# {name}\n{CODE[name]}")
    done = run_python("-m", "pytest", "-q", "-W", "error", *arguments, cwd=folder)
    assert done.returncode == 0, done.stdout
    return done.stdout, json.loads((folder / "eval-results.json").read_text())


def without_durations(text):
    return [re.sub(r" +[\d.]+ m?s$", "", line) for line in text.splitlines()]


def assertions(report):
    (conversation,) = report["conversations"]
    return [(a["description"], a["passed"]) for a in conversation["assertions"]]


def test_every_block_has_a_test_here():
    assert list(CODE) == ["shop_eval.py", "retry_eval.py", "partly_eval.py", "required_eval.py"]
    assert PAGE.count("```python") == len(CODE)


@each_row("arguments", [["--eval"], ["shop_eval.py"]], ids=["option", "name"])
def test_the_table_is_what_the_first_block_prints(tmp_path, arguments):
    said, report = run(tmp_path, "shop_eval.py", *arguments)
    found = without_durations(said)
    for line in without_durations(TABLE):
        assert line in found
    assert len(assertions(report)) == 5


def test_handled_asserts_are_no_findings(tmp_path):
    _, report = run(tmp_path, "retry_eval.py", "retry_eval.py")
    assert assertions(report) == [('next(answers) == "yes"', True), ("list(answers) == []", True)]


def test_partial_scores(tmp_path):
    _, report = run(tmp_path, "partly_eval.py", "partly_eval.py")
    assert assertions(report) == [
        ("finds all", True),
        ('"spoon" in found', False),
        ("len(found) == 2", True),
    ]


def test_what_a_marker_requires_is_repeated_and_required(tmp_path):
    _, report = run(tmp_path, "required_eval.py", "--eval", "--episode-report-dir=.")
    assert report["passedConversations"] == 5
    episodes = json.loads((tmp_path / "results.json").read_text())["episodes"]
    assert {episode.get("gate", "required") for episode in episodes} == {"required"}


def test_the_thresholds_are_read(tmp_path):
    (text,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "agent-eval.toml").write_text(text)
    gate = load_settings(root=tmp_path, environ={}, flags={}).gate
    assert tomllib.loads(text)["gate"] == {
        "eval_min_pass_rate": gate.eval_min_pass_rate,
        "eval_min_score": gate.eval_min_score,
    }
