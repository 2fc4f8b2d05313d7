"""Scenario files: what is read from them, and what is said of one that cannot be read."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.authoring.scenarios.load import MAX_BYTES, load_scenarios, parse_scenarios
from ci_agent_eval.contract.scenario import ScenarioEntry
from ci_agent_eval.errors import InputError
from tests.tables import each_row

YAML = """
defaults:
  persona: a customer
  budgets: {tool_calls: 4}
scenarios:
  - id: refund
    goal: Get the money back
    script:
      - yes
      - {"which order": "1001"}
    budgets:
      max_turns: 3
    metadata: {team: desk}
  - id: chat
    persona: bored
    fixed_responses: [hi, no]
"""

CSV = (
    "id,persona,goal,script,budgets.tool_calls,budgets.max_turns,metadata.team,fixed_responses\n"
    'refund,a customer,Get the money back,"[""yes"", {""which order"": ""1001""}]",4,3,desk,\n'
    "chat,bored,,,4,,,hi|no\n"
)


def parse(text, name):
    data = text if isinstance(text, bytes) else text.encode()
    return parse_scenarios(data, name)


def problem(text, name="s.yaml"):
    with pytest.raises(InputError) as refused:
        parse(text, name)
    return str(refused.value)


def one(name="s.yaml", **overrides):
    """The text of a file of one scenario."""
    return json.dumps([{"id": "a", "fixed_responses": ["hi"], **overrides}])


@each_row(
    ("name", "text", "lines"),
    [
        ("s.yaml", YAML, [6, 14]),
        (
            "s.json",
            json.dumps(
                yaml.safe_load(YAML.replace("- yes", '- "yes"').replace("hi, no", "hi, 'no'")),
                indent=1,
            ),
            [9, 25],
        ),
        ("s.csv", CSV, [2, 3]),
    ],
)
@each_row("mark", [b"", codecs.BOM_UTF8])
def test_three_formats_say_the_same(name, text, lines, mark):
    refund, chat = parse(mark + text.encode(), name)
    assert refund.entry.script == ("yes", {"which order": "1001"})
    assert (refund.persona, refund.goal) == ("a customer", "Get the money back")
    assert refund.budgets.max_turns.limit == 3
    assert refund.budgets.tool_calls.limit == chat.budgets.tool_calls.limit == 4
    assert refund.metadata == {"team": "desk"}
    assert (chat.persona, chat.entry.fixed_responses) == ("bored", ("hi", "no"))
    assert (refund.max_turns, chat.max_turns) == (3, 5)
    assert [refund.line, chat.line] == lines
    assert {refund.file, chat.file} == {name}


@each_row("given", ["auto", "auto:5-40", "7"])
@each_row(
    ("name", "text"),
    [
        ("s.csv", "id,fixed_responses,iterations\na,hi,{}\n"),
        ("s.yaml", "- {{id: a, fixed_responses: [hi], iterations: {}}}"),
    ],
)
def test_iterations_are_a_number_or_adaptive(name, text, given):
    (scenario,) = parse(text.format(given), name)
    assert scenario.marker["iterations"] == (7 if given == "7" else given)


def test_yaml_is_read_as_1_2_has_it():
    text = "- {id: on, fixed_responses: [yes, No, off, 1:30, 2024-01-01, y, '7']}"
    (scenario,) = parse(text, "s.yml")
    said = ("yes", "No", "off", "1:30", "2024-01-01", "y", "7")
    assert (scenario.id, scenario.entry.fixed_responses) == ("on", said)


def test_a_cell_may_have_lines_of_its_own():
    text = 'id,persona,fixed_responses\na,"two\nlines",hi\n\nb,short,hi\n'
    first, second = parse(text, "s.csv")
    assert first.persona == "two\nlines"
    assert (first.line, second.line) == (2, 5)


def read_mistakes():
    """Return each file of mistakes.txt: its name, its text, and how what is said of it begins."""
    whole = (Path(__file__).parent / "mistakes.txt").read_text("utf-8")
    for block in whole.strip().removeprefix("==== ").split("\n\n==== "):
        file, said = block.rsplit("\n---- ", 1)
        name, text = file.split("\n", 1)
        yield name, text, said


UNPRINTABLE = [
    (
        "s.yaml",
        "",
        "s.yaml:1: is empty; write a list of scenarios, each with id and fixed_responses",
    ),
    ("s.yaml", "- id: a\n\tpersona: x", "s.yaml:2: is not YAML: "),
    ("s.yaml", "- id: a\n  persona: \x00", "s.yaml:2: holds a character that YAML forbids"),
    ("s.yaml", "[" * 5000 + "]" * 5000, "s.yaml:1: is nested too deep; write it flat"),
    ("s.yaml", b"- id: a\n  persona: \xff", "s.yaml:2: is not UTF-8; save it as UTF-8"),
    ("s.yaml", "- id: a".encode("utf-16"), "s.yaml: is UTF-16; save it as UTF-8"),
    ("s.json", " \n", "s.json:1: is empty"),
    ("s.json", "[" * 90_000, "s.json:1: is nested too deep"),
    ("s.json", "[" + "9" * 5000 + "]", "s.json:1: is not JSON that can be read: "),
    ("s.json", '[\n {"id": "a",\n\t"persna": 1}]', "s.json:3: unknown key 'persna'"),
    ("s.csv", "\n\n", "s.csv:1: is empty"),
    ("s.csv", b"id,script\na,b\nc,caf\xe9\n", "s.csv:3: is not UTF-8; save it as UTF-8"),
    ("s.csv", b"id,script\ra,b\rc,caf\x8e\r", "s.csv:3: is not UTF-8; save it as UTF-8"),
    ("s.csv", b"id,script\r\na,b\r\n\xe9,d\r\n", "s.csv:3: is not UTF-8; save it as UTF-8"),
]


@each_row(("name", "text", "said"), [*read_mistakes(), *UNPRINTABLE])
def test_what_is_wrong_with_a_file_is_said_with_its_place(name, text, said):
    assert problem(text, name).startswith(said)


@each_row(
    ("text", "name", "lines"),
    [
        ("id,script,owner\na,b,me\nc,d,you\n", "s.csv", ["s.csv:1: column 'owner': unknown key"]),
        (
            "defaults: {owner: me}\nscenarios: [{id: a, script: [b]}, {id: c, script: [d]}]",
            "s.yaml",
            ["s.yaml:1: unknown key 'owner'"],
        ),
        (
            "id,script,max_turns\na,b,0\nc,d,0\n",
            "s.csv",
            ["s.csv:2: column 'max_turns'", "s.csv:3: column 'max_turns'"],
        ),
    ],
)
def test_a_problem_of_a_column_or_of_the_defaults_is_listed_once(text, name, lines):
    found = problem(text, name).splitlines()
    assert [line[: len(start)] for line, start in zip(found, lines, strict=True)] == lines


def test_columns_of_inner_keys():
    header = (
        "id,script,checks.required_tools,checks.tool_limits.a.b,budgets.custom.x.y,goal.tool_called"
    )
    (scenario,) = parse(f"{header}\na,hi,x|y,2,3,refund\n", "s.csv")
    checks = scenario.entry.checks
    assert (checks.required_tools, checks.tool_limits) == (("x", "y"), {"a.b": 2})
    assert scenario.budgets.custom["x.y"].limit == 3
    assert scenario.entry.goal.tool_called == "refund"


def test_a_file_that_is_too_large_or_not_there(tmp_path):
    (tmp_path / "large.json").write_bytes(b" " * (MAX_BYTES + 1))
    for name, said in (
        ("large.json", "large.json: is larger than 1048576 bytes; make it smaller, or split it"),
        ("none.json", "none.json: cannot be read (No such file or directory); write its path"),
        (".", ".: cannot be read ("),
        ("a\0.json", "'a\\x00.json': is not a path"),
    ):
        with pytest.raises(InputError) as refused:
            load_scenarios(tmp_path / name, name)
        assert str(refused.value).startswith(said)


def test_a_format_is_known_by_the_end_of_the_name():
    assert problem("", "s.toml") == (
        "s.toml: its format is not known by its name; end it in .yaml, .yml, .json, .jsonl, .csv"
    )


def refusal(data, name):
    """What is said of a file, or nothing where it can be read."""
    try:
        parse_scenarios(data, name)
    except InputError as error:
        return str(error)
    return ""


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["limit", "text", "a", "("]), inner, max_size=2),
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(sorted(ScenarioEntry.model_fields))


@given(entries=st.lists(st.dictionaries(KEYS, VALUES, max_size=5), max_size=3))
def test_no_value_in_the_place_of_another_does_anything_but_be_refused(entries):
    data = json.dumps(entries).encode()
    said = refusal(data, "s.json")
    assert said[:7] in {"", "s.json:"}
    # What is read can be used, and written into an episode.
    found = () if said else parse_scenarios(data, "s.json")
    assert all(json.dumps(scenario.marker) and scenario.user for scenario in found)
