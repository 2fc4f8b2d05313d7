"""Behind every "yes" of ours in docs/simulation.md's comparison is a test that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEPS = "tests/unit/authoring/simulation/test_script_steps.py"
PARTS = "tests/unit/authoring/scenarios/test_parts.py"
ENGINE = "tests/plugin/test_simulation_steps.py"
TESTS = {
    "script of user, agent and assertion steps": [
        (STEPS, "test_checks_see_the_conversation_or_the_last_turn"),
        (STEPS, "test_the_simulated_user_writes_the_messages_without_a_text"),
    ],
    "the agent speaks first": [
        (STEPS, "test_the_agent_speaks_first"),
        (ENGINE, "test_agents_of_the_engine_get_what_is_injected"),
    ],
    "a judge after each turn can end the conversation": [
        (STEPS, "test_success_ends_the_conversation"),
        (STEPS, "test_what_must_hold_ends_it_with_a_failure"),
        (
            "tests/plugin/test_rubric.py",
            "test_a_rubric_of_a_scenario_file_judges_each_turn_and_ends_the_conversation",
        ),
    ],
    "a judge without a model": [(STEPS, "test_success_ends_the_conversation")],
    "injected messages": [
        (STEPS, "test_what_is_injected_reaches_the_app_and_is_no_turn_of_the_agent"),
        (ENGINE, "test_agents_of_the_engine_get_what_is_injected"),
    ],
    "injected tool results": [
        (STEPS, "test_what_is_injected_reaches_the_app_and_is_no_turn_of_the_agent"),
        (ENGINE, "test_agents_of_the_engine_get_what_is_injected"),
    ],
    "facts that only the user knows": [
        (STEPS, "test_the_user_s_model_knows_them_and_the_app_does_not")
    ],
    "images and files in messages": [
        (STEPS, "test_files_reach_the_app_and_their_hash_is_recorded"),
        (ENGINE, "test_agents_of_the_engine_get_what_is_injected"),
    ],
    "expectations for one turn": [
        (PARTS, "test_a_failed_expectation_of_a_turn_is_an_assertion_and_the_script_goes_on")
    ],
    "scenarios in files": [(PARTS, "test_every_format_has_steps_judge_facts_and_checks")],
    "reference trajectory": [(PARTS, "test_every_format_has_steps_judge_facts_and_checks")],
    "expected final state": [
        ("tests/unit/checks/test_state.py", "test_a_reference_must_be_equal_in_every_entry")
    ],
    "same conversation without a model": [
        ("tests/plugin/test_simulation.py", "test_plain_and_async_tests_record_the_same"),
    ],
}


def read_rows():
    page = (ROOT / "docs/simulation.md").read_text("utf-8")
    table = page.partition("## Compared with other tools")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", table, re.MULTILINE)
    return {name: ours for name, ours in rows if name != "this package"}


def list_functions(path):
    tree = ast.parse((ROOT / path).read_bytes())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_yes_has_tests():
    said = {name for name, ours in read_rows().items() if ours.startswith("yes")}
    assert said == set(TESTS)
    assert all(TESTS.values())


@pytest.mark.parametrize("path", sorted({path for found in TESTS.values() for path, _ in found}))
def test_its_tests_exist(path):
    named = {name for found in TESTS.values() for file, name in found if file == path}
    assert named <= list_functions(path)
