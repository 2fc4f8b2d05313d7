"""docs/action.md: each rule of the gate is shown by tests, and its files are read."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from ci_agent_eval.config.settings import load_settings
from ci_agent_eval.contract.scenario_manifest import parse_manifest
from tests.tables import each_row

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs/action.md").read_text()
RULES = re.findall(r"^\| ([^|]+) \| (?:success|failure)[^|]* \|$", PAGE, re.MULTILINE)

LOADED = "unit/results/test_loaded.py::test_what_is_loaded_is_the_golden_text"
VERDICT = "unit/gate/test_gate.py::test_the_verdict_of"
GOLDEN = "unit/gate/test_verdicts.py::test_the_verdicts_are_the_golden_ones"
MANIFEST = "integration/test_scenario_manifest.py"
AFFECTED = "integration/test_affected.py"
CONFIRM = "integration/test_confirm.py"
SHOWN_BY = {
    "no result file matched": (LOADED, VERDICT),
    "a result file that cannot be read": (LOADED,),
    "a shard that is missing": (
        "integration/test_shards.py::test_a_missing_shard_fails_and_is_named",
        LOADED,
    ),
    "JSON and JUnit of one run": ("unit/results/test_join.py::test_a_case_agrees_or_is_listed",),
    "a run that was interrupted": (LOADED,),
    "the exit of pytest's process": (
        "integration/test_run_ends.py::test_a_suite_that_is_killed_at_its_end_fails_wherever_it_is_read",
    ),
    "GitHub says that the run did not succeed": (
        "integration/fork_handoff/test_fork_flow.py::test_a_run_that_failed_passes_only_with_a_reason",
        "integration/test_action_agreed.py::test_jobs_that_failed_need_a_reason_in_their_results",
    ),
    "a required episode without evidence": (
        "plugin/test_evidence.py::test_an_episode_without_evidence_is_red_everywhere",
    ),
    "a required scenario of the [manifest]": (
        f"{MANIFEST}::test_a_swapped_case_is_red_until_the_manifest_is_updated",
        f"{MANIFEST}::test_a_required_scenario_that_disappears_is_red_by_name",
    ),
    "a required scenario of the manifest that is advisory": (
        f"{MANIFEST}::test_a_required_scenario_that_disappears_is_red_by_name",
    ),
    "a run that was [restricted": (f"{MANIFEST}::test_a_run_restricted_on_purpose_is_partial",),
    "scenarios that a change cannot have": (
        f"{AFFECTED}::test_only_what_a_change_can_have_affected_runs",
        f"{AFFECTED}::test_a_change_that_affects_nothing_passes_where_the_settings_allow_it",
    ),
    "a scenario that is not in the manifest": (GOLDEN,),
    "an agent that did not finish": (
        "integration/test_unfinished_runs.py::test_each_of_the_five_is_red_for_its_own_reason",
    ),
    "a required scenario below its pass rate": (VERDICT,),
    "a required scenario with skipped": (
        GOLDEN,
        "integration/test_adaptive_iterations.py::test_an_undecided_scenario_without_its_session_does_not_pass",
    ),
    "a hard budget": (VERDICT, GOLDEN),
    "a regression of the whole suite": (GOLDEN,),
    "the same, and base and head": (f"{CONFIRM}::test_a_bad_day_of_the_provider_is_no_regression",),
    "the same, and the confirmation": (
        f"{CONFIRM}::test_a_report_elsewhere_excuses_only_by_a_whole_confirmation_of_its_own",
        "unit/analysis/comparison/test_confirmation.py::test_only_a_judged_difference_that_is_none_refutes",
    ),
    "a required scenario that a suite budget": (LOADED,),
    "a soft budget": (VERDICT,),
    "only advisory": (VERDICT, GOLDEN),
    "everything required passed": (VERDICT,),
}
"""The tests that show each rule, by the first words of its row."""


def test_each_rule_has_its_tests():
    assert len(RULES) == len(SHOWN_BY)
    assert all(rule.startswith(start) for rule, start in zip(RULES, SHOWN_BY, strict=True))


@each_row("start", SHOWN_BY)
def test_the_tests_of_a_rule_are_there(start):
    for test in SHOWN_BY[start]:
        file, _, name = test.partition("::")
        module = ast.parse((TESTS / file).read_text())
        assert name in {node.name for node in module.body if isinstance(node, ast.FunctionDef)}


def test_the_files_of_the_page_are_read(tmp_path):
    manifest, settings = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    entries = parse_manifest(manifest, "page").entries
    assert entries["refund_over_limit"].cases == ("[early]", "[late]")
    (tmp_path / "agent-eval.toml").write_text(settings)
    read = load_settings(root=tmp_path, environ={}, flags={})
    assert read.pytest_args == ("-m", "not live")
