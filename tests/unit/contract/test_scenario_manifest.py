"""The manifest file: what it holds, what is wrong with it, and how an update writes it."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.contract.scenario_manifest import (
    KnownScenario,
    ScenarioManifest,
    merge_scenarios,
    parse_manifest,
    render_manifest,
    update_manifest,
)
from ci_agent_eval.errors import InputError
from tests.tables import each_row

NAME = "agent-eval-scenarios.toml"
TEXT = """\
# Ours.
[required]
"a" = "tests/test_a.py"
# The money.
"refund" = "tests/test_a.py"  # asked for by finance

# Only looked at.
[advisory]
"chat" = ""

# The end.
"""


def parsed(text):
    return parse_manifest(text, NAME)


def updated(text, *found, keep=()):
    manifest = update_manifest(
        parsed(text), merge_scenarios(found), lambda entry: entry.scenario_id in keep
    )
    return render_manifest(manifest)


def test_an_entry_has_its_gate_file_and_line():
    found = [
        (one.scenario_id, one.gate, one.file, one.line) for one in parsed(TEXT).entries.values()
    ]
    assert found == [
        ("a", "required", "tests/test_a.py", 3),
        ("refund", "required", "tests/test_a.py", 5),
        ("chat", "advisory", None, 9),
    ]


TABLES = "the tables are [required] and [advisory], each once"
CASES_FORM = 'write its cases as "scenario id" = { file = "file of its test", cases = ["[case]"] }'
FORM = 'write each scenario on a line of its own, as "scenario id" = "file of its test"'


@each_row(
    ("text", "sentence"),
    [
        ('"a" = "x.py"', "1: stands in no table; begin with [required]"),
        ("[required]\n[quick]", f"2: [quick] is not a table of it; {TABLES}"),
        ("[required]\n[required]", f"2: [required] is there twice; {TABLES}"),
        ("[required]\nrefund", f"2: {FORM}"),
        ("[required]\na.b = 'x.py'", f"2: {FORM}"),
        ("[required]\na = 1", f"2: {FORM}"),
        ("[required]\n'' = 'x.py'", f"2: {FORM}"),
        ("[required]\na = {file = 'x.py'}", f"2: {CASES_FORM}"),
        ("[required]\na = {file = 'x.py', cases = []}", f"2: {CASES_FORM}"),
        ("[required]\na = {file = 'x.py', cases = [\n1\n]}", f"2: {CASES_FORM}"),
        ("[required]\na = {file = 'x.py', cases = [\n'b'", f"2: {FORM}"),
        (
            "[required]\na = 'x.py'\n\n[advisory]\na = 'y.py'",
            "5: scenario 'a' is in line 2 already; remove one of the two",
        ),
    ],
)
def test_a_manifest_that_cannot_be_read_is_refused_with_its_line(text, sentence):
    with pytest.raises(InputError) as raised:
        parsed(text)
    assert str(raised.value) == f"{NAME}:{sentence}"


def test_what_did_not_change_is_written_as_it_was():
    unchanged = [
        KnownScenario("refund", "required", "tests/test_a.py"),
        KnownScenario("a", "required", "tests/test_a.py"),
        KnownScenario("chat", "advisory"),
    ]
    assert updated(TEXT, *unchanged) == TEXT


def test_a_new_manifest_says_what_it_is_for():
    assert (
        updated("", KnownScenario("a", "required", "t.py"))
        == """\
# The scenarios that a run of this suite has to contain, each with the file of its test.
# `agent-eval scenarios --write` updates this list; review what it removes.
[required]
"a" = "t.py"
"""
    )


def test_a_scenario_of_several_tests_is_required_if_one_of_them_is():
    found = merge_scenarios(
        [
            KnownScenario("a", "advisory", "t2.py", was=("x",)),
            KnownScenario("a", "required", "t1.py"),
            KnownScenario("a", "advisory"),
        ]
    )
    assert found == {"a": KnownScenario("a", "required", "t1.py", ("x",))}


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(st.dictionaries(names, st.sampled_from(["required", "advisory"]), max_size=6))
def test_whatever_a_scenario_is_called_it_is_read_as_it_was_written(gates):
    found = {
        name: KnownScenario(name, gate, f"{name}.py", cases=(name, f"[{name}"))
        for name, gate in gates.items()
    }
    text = render_manifest(update_manifest(ScenarioManifest(NAME), found, lambda _: False))
    read = parsed(text)
    assert {name: one.gate for name, one in read.entries.items()} == gates
    assert all(set(one.cases) == {name, f"[{name}"} for name, one in read.entries.items())
    assert render_manifest(read) == text
    assert sum(map(len, tomllib.loads(text).values())) == len(gates)
