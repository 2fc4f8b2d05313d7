"""action.yml, the README and the code say the same, so that they cannot drift apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ci_agent_eval.app.report_publication import outputs_of
from ci_agent_eval.config.options import OPTIONS
from tests.builders import episode, evaluated, report

ROOT = Path(__file__).parents[2]
OWN_INPUTS = {
    "mode",
    "install",
    "paths",
    "shard",
    "pytest-args",
    "results",
    "junit",
    "jobs-result",
    "artifact",
    "config",
    "github-token",
}
ADDRESSES = {"comment-url", "check-run-url"}


def section(name):
    """Return the entries of a top-level mapping of action.yml with their descriptions."""
    text = (ROOT / "action.yml").read_text()
    body = re.search(rf"^{name}:\n(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)[1]
    entries = re.findall(r"^  ([\w-]+):\n((?:    .*\n|\n)+)", body, re.MULTILINE)
    return {entry: describe(block) for entry, block in entries}


def describe(block):
    found = re.search(r"description: (?:>-\n)?((?:.|\n(?=      ))*)", block)[1]
    return " ".join(found.split()).strip("'")


def readme_table(heading):
    text = (ROOT / "README.md").read_text()
    body = text.split(f"### {heading}\n")[1].split("\n#")[0]
    return dict(re.findall(r"^\| `([\w-]+)` \| (.*?) \|", body, re.MULTILINE))


def test_the_inputs_are_those_the_code_reads():
    assert set(section("inputs")) == OWN_INPUTS | {option.name for option in OPTIONS}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_an_input_is_described_as_its_option_is(option):
    assert section("inputs")[option.name] == option.help


def test_the_outputs_are_those_the_code_sets(tmp_path):
    assert set(section("outputs")) == set(outputs_of(report(episode()), tmp_path)) | ADDRESSES


@pytest.mark.parametrize(("name", "heading"), [("inputs", "Inputs"), ("outputs", "Outputs")])
def test_the_readme_s_table_is_action_yml_s(name, heading):
    assert readme_table(heading) == section(name)


@pytest.mark.parametrize(
    ("passed", "score"),
    [((), ""), ((True, True, False), "0.666667"), ((True,), "1"), ((False,), "0")],
)
def test_what_evaluations_came_to_is_an_output(tmp_path, passed, score):
    runs = [evaluated("a", *passed)] if passed else []
    found = outputs_of(report(episode(), *runs), tmp_path)
    whole = str(int(all(passed) and bool(passed)))
    assert (found["conversations"], found["conversations-passed"]) == (str(len(runs)), whole)
    assert found["average-score"] == score
