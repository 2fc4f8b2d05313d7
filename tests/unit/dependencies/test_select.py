"""Which scenarios a change selects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ci_agent_eval.contract.dependencies import RECORDER_VERSION, UnknownDependency
from ci_agent_eval.dependencies.model import Reached, RunDependencies
from ci_agent_eval.dependencies.selection.changes import FileChange, TreeChanges
from ci_agent_eval.dependencies.selection.select import SelectionRules, select_affected

DAY = 86_400
RULES = SelectionRules(now=100 * DAY, max_age_days=7)
CODE = b"LIMIT = 1\ndef f():\n    return 1\ndef g():\n    return 1\n"
BASE = RunDependencies(
    recorded_at=99 * DAY,
    python="p",
    platform="p",
    commit="c",
    is_clean=True,
    imports={"agent.py": frozenset({"rules.py"}), "rules.py": frozenset({"limits.py"})},
    scenarios={
        "one": Reached(
            functions=frozenset({("agent.py", "f"), ("test_a.py", "")}),
            files=frozenset({"prompts/one.md"}),
            folders=frozenset({"shots"}),
            absent=frozenset({"prompts/override.md"}),
            patterns=frozenset({"server/*.js"}),
        ),
        "two": Reached(functions=frozenset({("agent.py", "g")})),
        "three": Reached(functions=frozenset({("other.py", "f")})),
    },
)
PASSED = dict.fromkeys(BASE.scenarios)


def select(*changed, base=BASE, problems=PASSED, rules=RULES):
    found = select_affected(base, problems, TreeChanges({c.path: c for c in changed}), rules)
    if found.full_run is not None:
        return found.full_run.cause
    assert {one.scenario_id for one in found.selected} | {*found.unchanged} == {*problems}
    return [one.scenario_id for one in found.selected]


def edited(path, old=b"1", new=b"2", code=CODE):
    return FileChange(path, code, code.replace(old, new, 1))


def test_nothing_changed():
    assert select() == []
    assert select(edited("README.md"), edited("unused.py")) == []


def test_a_body_selects_the_scenarios_that_ran_it():
    body = FileChange("agent.py", CODE, CODE.replace(b"f():\n    return 1", b"f():\n    return 2"))
    assert select(body) == ["one"]


@pytest.mark.parametrize("path", ["agent.py", "rules.py", "limits.py"])
def test_definitions_select_all_that_import_the_file(path):
    assert select(edited(path)) == ["one", "two"]


def test_a_body_in_an_imported_file_that_did_not_run_selects_nothing():
    assert select(edited("rules.py", b"return 1", b"return 2")) == []


@pytest.mark.parametrize(
    "changed",
    [
        edited("prompts/one.md"),
        FileChange("prompts/override.md", None, b"x"),
        FileChange("shots/new.md", None, b"x"),
        FileChange("shots/old.md", b"x", None),
        edited("server/index.js"),
        edited("test_a.py"),
    ],
)
def test_files_select_their_readers(changed):
    assert select(changed) == ["one"]


@pytest.mark.parametrize(
    ("path", "folders", "selected"),
    [
        ("shots/more/new.md", {"shots", "shots/more"}, []),
        ("shots/more/new.md", {"shots"}, ["one"]),
        ("shots/more/even/new.md", {"shots"}, ["one"]),
    ],
)
def test_a_new_file_changes_the_listing_of_the_first_folder_that_was_there(path, folders, selected):
    changes = TreeChanges({path: FileChange(path, None, b"x")}, frozenset(folders))
    found = select_affected(BASE, PASSED, changes, RULES)
    assert [one.scenario_id for one in found.selected] == selected


def test_an_edit_in_a_listed_folder_is_no_change_of_its_names():
    assert select(edited("shots/old.md")) == []


def test_where_modules_are_the_unit_any_code_of_the_closure_counts():
    base = replace(BASE, unit="module")
    assert select(edited("rules.py", b"return 1", b"return 2"), base=base) == ["one", "two"]
    assert select(FileChange("rules.py", CODE, CODE + b"# comment\n"), base=base) == []


def test_shared_dependencies_select_everything():
    base = replace(BASE, shared=Reached(files=frozenset({"data.json"})))
    assert select(edited("data.json"), base=base) == ["one", "three", "two"]


def test_what_cannot_be_seen_runs_if_anything_changed():
    unknown = frozenset({UnknownDependency(cause="child_process", detail="node")})
    scenarios = {**BASE.scenarios, "three": Reached(unknown=unknown)}
    base = replace(BASE, scenarios=scenarios)
    assert select(edited("README.md"), base=base) == ["three"]
    assert select(base=base) == []
    # The repository says nothing about changes outside of it.
    outside = frozenset({UnknownDependency(cause="outside_file", detail="/opt/rates.json")})
    assert select(base=replace(base, shared=Reached(unknown=outside))) == ["one", "three", "two"]


def test_earlier_problems_run_whatever_changed():
    problems = {"one": None, "two": "flaky", "three": "failed"}
    assert select(problems=problems) == ["three", "two"]
    assert select(problems={**PASSED, "unrecorded": None}) == ["unrecorded"]


@pytest.mark.parametrize(
    ("base", "cause"),
    [
        (replace(BASE, recorder=RECORDER_VERSION + 1), "other_recorder"),
        (replace(BASE, complete=False), "incomplete"),
        (replace(BASE, is_clean=False), "unclean"),
        (replace(BASE, commit=None), "unclean"),
        (replace(BASE, recorded_at=92 * DAY), "expired"),
        (replace(BASE, recorded_at=101 * DAY), "expired"),
    ],
)
def test_dependencies_that_cannot_be_used_select_everything(base, cause):
    assert select(base=base) == cause


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        (FileChange("queue.py", None, CODE), "file_added"),
        (FileChange("a/b.pth", None, b"x"), "file_added"),
        (FileChange(".env", None, b"x"), "file_added"),
        (FileChange("old.py", CODE, None), "file_removed"),
        (edited("tests/conftest.py"), "configuration"),
        (edited("pyproject.toml"), "configuration"),
        (edited("requirements/dev.txt"), "configuration"),
        (edited("poetry.lock"), "configuration"),
        (edited("a/.gitattributes"), "configuration"),
        (edited("agent-eval.toml"), "configuration"),
        (edited(".github/workflows/evals.yml"), "configuration"),
        (FileChange("vendor", None, None, is_special=True), "configuration"),
    ],
)
def test_broad_changes_select_everything(changed, cause):
    assert select(changed) == cause
