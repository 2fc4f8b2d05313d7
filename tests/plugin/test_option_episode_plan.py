"""`--episode-plan`: unchanged scenarios and finished episodes do not run, and some run first."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.results import ScenarioListing
from ci_agent_eval.contract.run_plan import RunPlan, UnchangedScenario
from ci_agent_eval.dependencies.environment import (
    compute_installation_digest,
    get_platform,
    get_python_version,
    hash_distributions,
    hash_variable,
    is_always_read,
)

TESTS = """
import pytest

@pytest.mark.episode(scenario_id="refund", iterations=2)
def test_refund(episode): pass

@pytest.mark.episode(scenario_id="cancel", gate="advisory")
def test_cancel(episode): pass

@pytest.mark.episode(scenario_id="greet")
def test_greet(episode): pass

def test_plain(): pass
"""


def environment() -> str:
    return compute_installation_digest(get_python_version(), get_platform(), hash_distributions())


def unchanged(*names: str, **fields: object) -> RunPlan:
    """The plan that carries these scenarios over, in this environment."""
    always = {
        name: hash_variable(name, value)
        for name, value in os.environ.items()
        if is_always_read(name)
    }
    return RunPlan.model_validate(
        {
            "unchanged": [UnchangedScenario(scenario_id=name) for name in names],
            "environment": environment(),
            "variables": {**always, **fields.pop("variables", {})},
            **fields,
        }
    )


def write_plan(folder: Path, plan: RunPlan) -> str:
    file = folder / "plan.json"
    file.write_text(canonical_json(plan), encoding="ascii")
    return f"--episode-plan={file}"


def names_of(carried: Sequence[object]) -> list[tuple[str, str, int]]:
    return [(one.scenario_id, one.gate, one.iterations) for one in carried]


@pytest.fixture
def suite(suite):
    """These suites are about which tests run, and need no evidence."""
    return suite.without_evidence()


@pytest.fixture
def run(suite, tmp_path):
    def run_with(plan: RunPlan, *arguments: str):
        suite.write(TESTS)
        return suite.run(write_plan(tmp_path, plan), *arguments)

    return run_with


@pytest.mark.parametrize(
    "arguments", [(), ("-n2",), ("--episode-concurrency=3",), ("--shard=1/1",)]
)
def test_unchanged_scenarios_do_not_run(run, arguments):
    ran = run(unchanged("refund", "cancel"), *arguments)
    session = ran.session
    assert {e.scenario_id for e in ran.results.episodes} == {"greet"}
    assert names_of(session.carried) == [("cancel", "advisory", 1), ("refund", "required", 2)]
    assert (session.selected, session.deselected) == (1, 0)
    assert (session.removed, session.restrictions) == ((), ())
    assert ran.result.parseoutcomes()["passed"] == 2


def test_a_note_says_so(run):
    run(unchanged("refund", "cancel")).result.stdout.fnmatch_lines(
        ["note: 2 unchanged scenarios: earlier results count"]
    )


def test_every_shard_leaves_out_the_same(suite, tmp_path):
    suite.write(TESTS)
    plan = write_plan(tmp_path, unchanged("refund"))
    carried, plans, ran = [], set(), []
    for index in (1, 2):
        shard = suite.run(plan, f"--shard={index}/2")
        carried.append(names_of(shard.session.carried))
        plans.add(shard.session.shard.plan)
        ran += [e.scenario_id for e in shard.results.episodes]
    assert carried == [[("refund", "required", 2)]] * 2
    assert (len(plans), sorted(ran)) == (1, ["cancel", "greet"])


def test_a_new_variable_of_python_runs_everything(run, monkeypatch):
    plan = unchanged("refund")
    monkeypatch.setenv("PYTHONOPTIMIZE_SOON", "1")
    assert run(plan).session.carried == ()


def test_of_adaptive_iterations_the_minimum_is_noted(run):
    ran = run(unchanged("greet"), "--aitest-iterations=auto:3-8")
    assert names_of(ran.session.carried) == [("greet", "required", 3)]


@pytest.mark.parametrize("digest", ["another", None])
def test_in_another_environment_everything_runs(run, digest):
    ran = run(unchanged("refund", environment=digest))
    assert (ran.session.carried, ran.session.selected) == ((), 4)


@pytest.mark.parametrize(
    ("known", "is_carried"),
    [
        ({"DESK": hash_variable("DESK", "blue")}, True),
        ({"DESK": hash_variable("DESK", "red")}, False),
        ({"DESK": None}, False),
        ({}, False),
    ],
)
def test_a_scenario_with_a_changed_variable_runs(run, monkeypatch, known, is_carried):
    monkeypatch.setenv("DESK", "blue")
    scenarios = [
        UnchangedScenario(scenario_id="refund", variables=("DESK",)),
        UnchangedScenario(scenario_id="cancel"),
    ]
    ran = run(unchanged(unchanged=scenarios, variables=known))
    expected = {"cancel", "refund"} if is_carried else {"cancel"}
    assert {one.scenario_id for one in ran.session.carried} == expected


def test_a_test_that_names_its_scenario_later_runs(suite, tmp_path):
    suite.write(
        """
        from ci_agent_eval import llm_episode
        import pytest

        @llm_episode()
        def test_any(): raise AssertionError
        """
    )
    ran = suite.run(write_plan(tmp_path, unchanged("test_suite.py::test_any")))
    assert ran.session.carried == ()


def test_the_named_scenarios_run_first(run):
    ran = run(RunPlan(first=("greet", "cancel")))
    started = [line.episode.scenario_id for line in ran.journal if line.event == "started"]
    assert started == ["greet", "cancel", "refund", "refund"]


def test_what_a_hook_removes_is_still_noted(suite, tmp_path):
    suite.write(
        TESTS,
        """
        def pytest_collection_modifyitems(items):
            items[:] = [item for item in items if "cancel" not in item.name]
        """,
    )
    ran = suite.run(write_plan(tmp_path, unchanged("refund")))
    assert [one.scenario_id for one in ran.session.removed] == ["cancel"]


def test_a_listing_names_them(suite, tmp_path):
    suite.write(TESTS)
    file = tmp_path / "scenarios.json"
    plan = write_plan(tmp_path, unchanged("refund"))
    suite.run_in_process("--collect-only", f"--episode-list={file}", plan)
    listing = ScenarioListing.model_validate(json.loads(file.read_text()))
    assert names_of(listing.session.carried) == [("refund", "required", 2)]
    assert [one.scenario_id for one in listing.scenarios] == ["cancel", "greet"]
