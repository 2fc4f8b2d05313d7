"""Scenarios, prompts, skills and tools that a run shows to be stale."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ci_agent_eval.analysis.loaded_results import build_episode_record
from ci_agent_eval.analysis.stale_parts import ProjectTree, StaleParts, find_stale_parts
from ci_agent_eval.contract.dependencies import UnknownDependency
from ci_agent_eval.dependencies.model import Reached, RunDependencies
from tests.builders import episode, failing, tool_call, turn
from tests.carried_runs import carried

CODE = b"""
def answer():
    return find_limit()
def find_limit(): ...
def refund(): ...
def retry(): ...
class Desk:
    def greet(self): ...
"""
FILES = {
    "agent.py": CODE,
    "test_agent.py": CODE,
    "prompts/refund.md": b"",
    "prompts/greet.md": b"",
    "prompts/sub/old.txt": b"",
    "prompts/README.md": b"",
    "prompts/logo.png": b"",
    "emails/templates/late.txt": b"",
    "skills/parcels/SKILL.md": b"",
    "prompts/skills/late/SKILL.md": b"",
    "skills/refunds/SKILL.md": b"",
}
TREE = ProjectTree(frozenset(FILES), FILES.get)


def ran(*names, **fields):
    return frozenset((fields.get("file", "agent.py"), name) for name in names)


def run(**scenarios):
    return RunDependencies(recorded_at=1, python="p", platform="p", scenarios=scenarios)


def find(now, before=None, episodes=None, tree=TREE):
    episodes = episodes or [episode(name) for name in now.scenarios]
    return find_stale_parts([build_episode_record(one) for one in episodes], now, before, tree)


BEFORE = run(
    refund=Reached(ran("answer", "refund"), files=frozenset({"prompts/refund.md"})),
    greet=Reached(ran("answer", "Desk.greet"), files=frozenset({"prompts/greet.md"})),
)


def with_refund(**changes):
    return replace(BEFORE, scenarios={**BEFORE.scenarios, "refund": Reached(**changes)})


def test_the_same_run_has_nothing_stale():
    assert find(BEFORE, BEFORE) == StaleParts(prompts=("prompts/sub/old.txt",))


def test_a_scenario_no_longer_reaches_its_function_and_its_prompt():
    (stale,) = find(with_refund(functions=ran("answer")), BEFORE).scenarios
    assert stale.scenario_id == "refund"
    assert stale.functions == (("agent.py", "refund"),)
    assert stale.files == ("prompts/refund.md",)


@pytest.mark.parametrize(
    "tree",
    [
        ProjectTree(frozenset({"agent.py"}), {"agent.py": b"def answer(): ..."}.get),
        ProjectTree(frozenset(), FILES.get),
    ],
)
def test_what_was_removed_is_not_lost(tree):
    assert find(with_refund(functions=ran("answer")), BEFORE, tree=tree) == StaleParts()


def test_what_all_scenarios_share_is_not_lost():
    now = with_refund()
    now = replace(now, shared=BEFORE.scenarios["refund"])
    assert find(now, BEFORE).scenarios == ()


def test_a_scenario_that_fails_is_not_stale():
    now = with_refund(functions=ran("answer"))
    found = find(now, BEFORE, [failing("refund"), episode("greet")])
    assert found == StaleParts()


def test_a_function_that_the_reached_code_may_call_is_not_lost():
    before = run(refund=Reached(ran("answer", "find_limit")))
    now = run(refund=Reached(ran("answer")))
    assert find(now, before).scenarios == ()


def test_what_several_scenarios_reached_and_none_reaches_is_not_lost_by_each():
    both = Reached(ran("retry"), files=frozenset({"prompts/greet.md"}))
    before = run(refund=both, greet=both)
    now = run(refund=Reached(), greet=Reached())
    assert find(now, before).scenarios == ()
    still = run(refund=Reached(), greet=both)
    (stale,) = find(still, before).scenarios
    assert (stale.functions, stale.files) == ((("agent.py", "retry"),), ("prompts/greet.md",))


def test_functions_of_tests_and_of_runs_that_know_modules_only_are_left_out():
    before = run(refund=Reached(ran("refund", file="test_agent.py")))
    assert find(run(refund=Reached()), before).scenarios == ()
    before = replace(run(refund=Reached(ran("refund"))), unit="module")
    assert find(run(refund=Reached()), before).scenarios == ()


def test_a_declared_pattern_that_matches_no_file():
    now = run(refund=Reached(patterns=frozenset({"server/*.py", "prompts/*"})))
    (stale,) = find(now).scenarios
    assert stale.patterns == ("server/*.py",)


def test_prompts_count_beside_a_prompt_that_is_read():
    found = find(run(greet=Reached(files=frozenset({"prompts/greet.md"}))))
    assert found.prompts == ("prompts/refund.md", "prompts/sub/old.txt")
    assert find(run(greet=Reached())).prompts == ()


def test_skills_count_beside_a_skill_that_is_read():
    found = find(run(greet=Reached(files=frozenset({"skills/parcels/SKILL.md"}))))
    assert (found.skills, found.prompts) == (("skills/refunds",), ())


def test_a_declared_file_counts_as_read():
    own = Reached(files=frozenset({"prompts/greet.md"}), patterns=frozenset({"prompts/*"}))
    assert find(run(greet=own)).prompts == ()


def test_nothing_is_unread_if_an_undeclared_child_may_read_it():
    child = UnknownDependency(cause="child_process", detail="node")
    own = Reached(files=frozenset({"prompts/greet.md"}), unknown=frozenset({child}))
    assert find(run(greet=own)).prompts == ()


def test_nothing_is_unread_if_a_scenario_never_passed_or_recorded_nothing():
    now = run(greet=Reached(files=frozenset({"prompts/greet.md"})))
    assert find(now, episodes=[episode("greet"), failing("refund")]).prompts == ()
    assert find(now, episodes=[episode("greet"), episode("refund")]).prompts == ()


def test_a_carried_over_scenario_reaches_what_it_reached():
    now = run(greet=BEFORE.scenarios["greet"])
    both = [episode("greet"), carried(episode("refund"))]
    records = [build_episode_record(one) for one in both]
    records = [replace(one, outcome="passed") for one in records]  # as the verified results are
    assert find_stale_parts(records, now, BEFORE, TREE).prompts == ("prompts/sub/old.txt",)


def offering(*tools, calls=(), **fields):
    turns = [turn(tool_calls=[tool_call(name) for name in calls])]
    return episode(conditions={"tools": tools}, trajectory={"turns": turns}, **fields)


def test_tools_that_are_offered_and_never_called():
    now = run(refund=Reached())
    episodes = [
        offering("find", "pay", "wait", calls=["find"]),
        offering("pay", calls=["pay"], iteration=2),
    ]
    assert find(now, episodes=episodes).tools == ("wait",)


def test_tools_of_an_episode_with_unknown_calls_count_as_called():
    now = run(refund=Reached())
    item = offering("wait").model_copy(update={"trajectory": None, "tool_calls_count": 2})
    record = replace(build_episode_record(item), tool_calls=2)
    assert find_stale_parts([record], now, None, TREE).tools == ()
