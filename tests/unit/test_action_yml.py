"""action.yml and the reference page are generated from the code's tables."""

from __future__ import annotations

import re

import pytest

from ci_agent_eval.app.report_publication import build_outputs
from ci_agent_eval.config.inputs import ACTION_INPUTS, RUN_INPUTS
from ci_agent_eval.config.options import INPUT_OPTIONS
from scripts import reference
from tests.builders import episode, evaluated, report

ADDRESSES = {"comment-url", "check-run-url"}


def section(name, path=reference.ACTION):
    """Return the entries of a top-level mapping of an action with their descriptions."""
    text = path.read_text("utf-8")
    body = re.search(rf"^{name}:\n(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)[1]
    entries = re.findall(r"^  ([\w-]+):\n((?:    .*\n|\n)+)", body, re.MULTILINE)
    return {entry: describe(block) for entry, block in entries}


def describe(block):
    found = re.search(r"description: (?:>-\n)?((?:.|\n(?=      ))*)", block)[1]
    return " ".join(found.split()).strip("'")


def test_the_inputs_are_those_the_code_reads():
    known = {given.name for given in ACTION_INPUTS} | {option.name for option in INPUT_OPTIONS}
    assert set(section("inputs")) == known


def test_the_outputs_are_those_the_code_sets(tmp_path):
    assert set(section("outputs")) == set(build_outputs(report(episode()), tmp_path)) | ADDRESSES


def test_action_yml_and_the_reference_page_are_generated_from_the_tables():
    action = reference.ACTION.read_text("utf-8")
    assert reference.render_action(action) == action, "run `make docs`"
    page = reference.PAGE.read_text("utf-8")
    assert reference.render_page(page, action) == page, "run `make docs`"


def test_the_action_without_docker_is_generated_from_the_same_tables():
    action, text = reference.ACTION.read_text("utf-8"), reference.REPORT_ACTION.read_text("utf-8")
    assert reference.render_report_action(text, action) == text, "run `make docs`"
    assert set(section("inputs", reference.REPORT_ACTION)) == set(section("inputs")) - RUN_INPUTS
    assert set(section("outputs", reference.REPORT_ACTION)) == set(section("outputs"))


@pytest.mark.parametrize(
    ("passed", "score"),
    [((), ""), ((True, True, False), "0.666667"), ((True,), "1"), ((False,), "0")],
)
def test_what_evaluations_came_to_is_an_output(tmp_path, passed, score):
    runs = [evaluated("a", *passed)] if passed else []
    found = build_outputs(report(episode(), *runs), tmp_path)
    whole = str(int(all(passed) and bool(passed)))
    assert (found["conversations"], found["conversations-passed"]) == (str(len(runs)), whole)
    assert found["average-score"] == score
