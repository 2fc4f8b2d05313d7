from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ci_agent_eval.checks import NoFullSuiteRun
from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.policy.model import Rules
from tests.builders import calling
from tests.tables import each_row

ROOT = Path(__file__).parents[3]


def bash(command, **overrides):
    return {"name": "bash", "arguments": {"command": command}, **overrides}


HELD = bash("pytest", steered_by="pytest-full-suite", result="Consider one test.")


def of(check, *calls):
    (found,) = check.assertions(calling(*calls))
    return found.passed, found.reason


def test_a_full_run_fails_it_and_the_reason_names_turn_and_command():
    passed, reason = of(NoFullSuiteRun(), bash("ls"), bash("cd app && pytest -q | tail"))
    assert not passed
    assert reason.startswith("turn 1: `pytest -q` (")


@each_row(
    "calls",
    [
        [bash("pytest tests/test_a.py"), bash("grep pytest setup.cfg")],
        [bash("ls"), {"name": "notes", "arguments": {"command": "pytest"}}],
    ],
)
def test_anything_else_passes(calls):
    assert of(NoFullSuiteRun(), *calls) == (True, "no call ran it")


@each_row(
    ("calls", "named"),
    [
        ([], "none"),
        ([{"name": "devbox_sh", "arguments": {"command": "pytest -q"}}], "devbox_sh"),
        ([{"name": "notes", "arguments": {"command": "pytest"}}], "notes"),
        ([{"name": "bash", "arguments": None}, {"name": "bash", "arguments": [[1, {}]]}], "bash"),
    ],
)
def test_an_episode_without_a_call_that_it_can_judge_fails_unless_none_is_expected(calls, named):
    passed, reason = of(NoFullSuiteRun(), *calls)
    assert not passed
    assert reason == (
        f"no call runs commands, so none could be judged (tools: {named}); "
        "name the agent's shell as `shell_tools` in agent-eval-steering.yaml, "
        "or say optional=True"
    )
    assert of(NoFullSuiteRun(optional=True), *calls) == (True, "no call ran it")


def test_what_was_held_back_did_not_run():
    assert of(NoFullSuiteRun(), HELD) == (True, "no call ran it; 1 attempt held back")
    passed, reason = of(NoFullSuiteRun(), HELD, bash("pytest"))
    assert not passed
    assert reason.count("turn 1") == 1


def test_attempts_may_be_forbidden_as_well():
    passed, reason = of(NoFullSuiteRun(attempts=True), HELD)
    assert not passed
    assert reason.endswith("held back)")


def test_the_optional_rules_and_other_names_of_tools():
    assert of(NoFullSuiteRun(rules=Rules(aliases=("make test",))), bash("make test"))[0] is False
    called = {"name": "tests_execute", "arguments": {"args": "-q"}}
    assert of(NoFullSuiteRun(optional=True), called)[0] is True
    assert of(NoFullSuiteRun(tools={"tests_execute": "pytest"}), called)[0] is False


@each_row(("field", "value"), [("rules", {}), ("tools", ["bash"])])
def test_what_means_nothing_is_refused(field, value):
    with pytest.raises(InputError, match=f"NoFullSuiteRun.{field}"):
        NoFullSuiteRun(**{field: value})


def test_without_the_grammar_it_is_an_error_and_no_pass():
    code = """
import sys
sys.modules["tree_sitter"] = None
from ci_agent_eval.checks import NoFullSuiteRun
from tests.builders import calling
call = {"name": "bash", "arguments": {"command": "pytest"}}
try:
    print(NoFullSuiteRun().assertions(calling(call)))
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("InputError NoFullSuiteRun needs tree_sitter, which")
