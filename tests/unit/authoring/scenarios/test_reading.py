"""Scenario files: what is read from them, and what is said of one that cannot be read."""

from __future__ import annotations

import codecs
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.authoring.scenarios.load import (
    MAX_BYTES,
    PARSERS,
    load_scenarios,
    parse_scenarios,
)
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


def test_the_marker_says_only_what_is_given():
    (scenario,) = parse(one(min_pass_rate=0.8, iterations=5, budgets={"tool_calls": 2}), "s.json")
    assert scenario.marker == {
        "scenario_id": "a",
        "budgets": {"tool_calls": {"limit": 2}},
        "min_pass_rate": 0.8,
        "iterations": 5,
        "metadata": {"scenario": "s.json:1"},
    }


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


@each_row(
    ("text", "said"),
    [
        ("", "s.yaml:1: is empty; write a list of scenarios, each with id and fixed_responses"),
        ("# nothing\n", "s.yaml:1: is empty"),
        ("[]", "s.yaml:1: holds no scenario; write at least one"),
        ("scenarios: []", "s.yaml:1: holds no scenario"),
        ("defaults: {}", "s.yaml:1: holds no scenario"),
        ("just a text", "s.yaml:1: must be a list of scenarios, or a table with `scenarios`"),
        ("scenarios:\n  a: 1", "s.yaml:1: must be a list of scenarios"),
        ("- a text", "s.yaml:1: a scenario must be a table (keys with values)"),
        ("scenario: []", "s.yaml:1: unknown key 'scenario'; did you mean 'scenarios'?"),
        ("defaults: 3\nscenarios: [{id: a}]", "s.yaml:1: defaults: must be a table"),
        (
            "defaults:\n  persona: x\n  id: y\nscenarios: [{id: a}]",
            "s.yaml:3: defaults: each scenario needs an id of its own",
        ),
        (
            "- id: a\n  fixed_responses: [hi]\n  persna: x",
            "s.yaml:3: unknown key 'persna'; did you mean 'persona'?",
        ),
        (
            "- id: a\n  fixed_responses: [hi]\n  checks:\n    required_tool: [x]",
            "s.yaml:4: checks: unknown key 'required_tool'; did you mean 'required_tools'?",
        ),
        ("- fixed_responses: [hi]", "s.yaml:1: id: is required"),
        (
            "- id: 3\n  fixed_responses: [hi]",
            "s.yaml:1: id: must be a text; put it in quotes (got 3)",
        ),
        ("- id: ''\n  fixed_responses: [hi]", "s.yaml:1: id: must be a printable text"),
        ('- id: "a\\nb"\n  fixed_responses: [hi]', "s.yaml:1: id: must be a printable text"),
        (
            "- id: a\n  fixed_responses:\n    - hi\n    - true",
            "s.yaml:4: fixed_responses.1: must be a text; put it in quotes (got True)",
        ),
        (
            "- id: a\n  fixed_responses: hi",
            "s.yaml:2: fixed_responses: must be a list (got 'hi')",
        ),
        (
            "- id: a\n  fixed_responses: [hi]\n  max_turns: '3'",
            "s.yaml:3: max_turns: must be a whole number (got '3')",
        ),
        (
            "- id: a\n  fixed_responses: [hi]\n  max_turns: 0",
            "s.yaml:3: max_turns: Input should be greater than or equal to 1 (got 0)",
        ),
        (
            "- id: a\n  fixed_responses: [hi]\n  budgets:\n    tool_calls: many",
            "s.yaml:4: budgets.tool_calls: must be a number, or a table with `limit` (got 'many')",
        ),
        (
            "- id: a\n  fixed_responses: [hi]\n  budgets:\n    tool_cals: 3",
            "s.yaml:4: budgets: unknown key 'tool_cals'; did you mean 'tool_calls'?",
        ),
        (
            "- id: a\n  script:\n    - hi\n    - '(': x",
            "s.yaml:4: script.1: is no regular expression: ",
        ),
        ("- id: a\n  script:\n    - 3", "s.yaml:3: script.0: must be a text, or rules"),
        (
            "- id: a\n  script:\n    - hi: 3",
            "s.yaml:3: script.0: what is said to 'hi' must be a text",
        ),
        ("- id: a", "s.yaml:1: its user has nothing to say; give fixed_responses, script or model"),
        (
            "- id: b\n  fixed_responses: [hi]\n\n- id: a\n  fixed_responses: [hi]\n  script: [hi]",
            "s.yaml:4: give fixed_responses or a script, not both",
        ),
        (
            "- {id: a, fixed_responses: [hi]}\n- {id: b, fixed_responses: [hi]}\n- {id: a, fixed_responses: [hi]}",
            "s.yaml:3: id 'a' is that of line 1 already; give it another one",
        ),
        (
            "- id: a\n  fixed_responses: [hi]\n  checks:\n    required_tools: []",
            "s.yaml:4: checks.required_tools: is empty, and so checks nothing; name at least one",
        ),
        (
            "- id: a\n  fixed_responses: [hi]\n  checks:\n    max_tool_calls: 1\n    tool_limits: {}",
            "s.yaml:5: checks.tool_limits: is empty, and so checks nothing; name at least one",
        ),
        (
            "- id: a\n  fixed_responses: [hi]\n  checks:\n    arguments:\n      refund: {}",
            "s.yaml:5: checks.arguments.refund: is empty, and so checks nothing",
        ),
        (
            "- id: a\n  fixed_responses: [hi]\n  checks: {}",
            "s.yaml:3: checks: checks nothing; write a check, or take the key away",
        ),
        (
            "- id: a\n  fixed_responses: [hi]\n  checks:\n    max_tool_calls: null",
            "s.yaml:3: checks: checks nothing; write a check, or take the key away",
        ),
        (
            "defaults:\n  checks: {required_text: []}\nscenarios:\n  - {id: a, fixed_responses: [x]}",
            "s.yaml:2: checks.required_text: is empty, and so checks nothing",
        ),
        (
            "- {id: a, fixed_responses: [hi], iterations: 3, min_passes: 9}",
            "s.yaml:1: min_passes 9 of 3 iterations can never be reached",
        ),
        (
            "- {id: a, fixed_responses: [hi], iterations: auto, min_passes: 9}",
            "s.yaml:1: min_passes needs a fixed number of iterations; give min_pass_rate",
        ),
        (
            "- {id: a, fixed_responses: [hi], iterations: often}",
            "s.yaml:1: iterations: must be a whole number, 1 or more",
        ),
        (
            "- {id: a, fixed_responses: [hi], iterations: 2.0}",
            "s.yaml:1: iterations: must be a whole number, 1 or more",
        ),
        (
            "- {id: a, fixed_responses: [hi], gate: maybe}",
            "s.yaml:1: gate: Input should be 'required' or 'advisory' (got 'maybe')",
        ),
        (
            "- id: a\n  persona: x\n  persona: y",
            "s.yaml:3: key 'persona' is there twice (first in line 2)",
        ),
        ("- id: a\n  persona: [", "s.yaml:2: is no YAML: "),
        ("- id: a\n\tpersona: x", "s.yaml:2: is no YAML: "),
        ("- id: a\n  persona: \x00", "s.yaml:2: holds a character that YAML forbids"),
        ("- &x {id: a}\n- *x", "s.yaml:2: the alias *x is not read; write the value out"),
        (
            "- id: a\n  persona: !!python/object:os.system x",
            "s.yaml:2: the tag 'tag:yaml.org,2002:python/object:os.system' is not read",
        ),
        ("- id: !secret x", "s.yaml:1: the tag '!secret' is not read"),
        ("- id: a\n  ? [x]\n  : y", "s.yaml:2: a key must be a text"),
        ("- id: a\n--- \n- id: b", "s.yaml:2: is no YAML: expected a single document"),
        ("- max_turns: .inf", "s.yaml:1: '.inf' is not finite; write a number"),
        ("- max_turns: !!int x", "s.yaml:1: 'x' is no number; put a text in quotes"),
        ("[" * 40 + "]" * 40, "s.yaml:1: is nested too deep; write it flat"),
        ("[" * 5000 + "]" * 5000, "s.yaml:1: is nested too deep; write it flat"),
        ('- persona: "\\ud800"', "s.yaml:1: holds half of a character"),
        (b"- id: a\n  persona: \xff", "s.yaml:2: is not UTF-8; save it as UTF-8"),
        ("- id: a".encode("utf-16"), "s.yaml: is UTF-16; save it as UTF-8"),
    ],
)
def test_what_is_wrong_with_yaml_is_said_with_its_line(text, said):
    assert problem(text).startswith(said)


@each_row(
    ("text", "said"),
    [
        (" \n", "s.json:1: is empty"),
        ('[\n {"id": "a",}\n]', "s.json:2: is no JSON: "),
        ("[1, NaN]", "s.json:1: is no JSON that can be read: NaN is no number of JSON"),
        ("[" * 90_000, "s.json:1: is nested too deep"),
        ("[" * 40 + "]" * 40, "s.json:1: is nested too deep"),
        ("[" + "9" * 5000 + "]", "s.json:1: is no JSON that can be read: "),
        (
            '[\n {"id": "a",\n\t"persna": 1,\n "fixed_responses": ["x"]}]',
            "s.json:3: unknown key 'persna'",
        ),
        ('[{"id": "a",\n"id": "b"}]', "s.json:2: key 'id' is there twice (first in line 1)"),
        ('[{"id":\n"\\ud800"}]', "s.json:2: holds half of a character"),
        (
            '[{"id": "a", "fixed_responses": ["[]{}:,", "\\ud83d\\ude00"], "tags":\n[3]}]',
            "s.json:2: tags.0: must be a text",
        ),
    ],
)
def test_what_is_wrong_with_json_is_said_with_its_line(text, said):
    assert problem(text, "s.json").startswith(said)


@each_row(
    ("text", "said"),
    [
        ("\n\n", "s.csv:1: is empty"),
        (b"id,script\na,b\nc,caf\xe9\n", "s.csv:3: is not UTF-8; save it as UTF-8"),
        (b"id,script\ra,b\rc,caf\x8e\r", "s.csv:3: is not UTF-8; save it as UTF-8"),
        (b"id,script\r\na,b\r\n\xe9,d\r\n", "s.csv:3: is not UTF-8; save it as UTF-8"),
        ("id,persona\n", "s.csv:1: holds no scenario"),
        ("id,id\n", "s.csv:1: column 'id': column 'id' is there twice; keep one of them"),
        ("id,\na,b\n", "s.csv:1: column 2 has no name"),
        ("id;persona\na;b\n", "s.csv:1: its columns are not separated by commas"),
        (
            "id,persona\na\n",
            "s.csv:2: the row has 1 cells, the header 2; put a cell that holds a comma",
        ),
        ('id,persona\na,"b\n', "s.csv:2: is no CSV: unexpected end of data"),
        (
            "id,persna,script\na,b,c\n",
            "s.csv:1: column 'persna': unknown key 'persna'; did you mean",
        ),
        (
            "id,script,budgets.tool_cals\na,c,3\n",
            "s.csv:1: column 'budgets.tool_cals': unknown key 'tool_cals'; did you mean 'tool_calls'?",
        ),
        (
            "id,script,budgets.tool_calls\na,c,3\nb,c,many\n",
            "s.csv:3: column 'budgets.tool_calls': must be a number (got 'many')",
        ),
        (
            "id,script,max_turns\na,c,2.5\n",
            "s.csv:2: column 'max_turns': must be a whole number (got 2.5)",
        ),
        ("id,script\na,[1\n", "s.csv:2: column 'script': the cell is no JSON"),
        ("id,script\na,[1]\n", "s.csv:2: column 'script': must be a text, or rules"),
        (
            "id,script,checks,checks.required_tools\na,c,{},x\nb,c,x,y\n",
            "s.csv:3: column 'checks.required_tools': 'checks' has a column of its own",
        ),
        (
            "id,script,checks.required_tools,checks\na,c,x,{}\n",
            "s.csv:2: column 'checks': 'checks' has columns of its own already",
        ),
        ("id,script\na,b\na,b\n", "s.csv:3: id 'a' is that of line 2 already"),
    ],
)
def test_what_is_wrong_with_csv_is_said_with_line_and_column(text, said):
    assert problem(text, "s.csv").startswith(said)


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


def test_a_default_check_is_taken_back_by_an_empty_one():
    text = """
defaults:
  fixed_responses: [hi]
  checks: {forbidden_tools: [refund]}
scenarios:
  - {id: a}
  - {id: b, checks: {forbidden_tools: []}}
  - {id: c, checks: {forbidden_tools: [], max_tool_calls: 0}}
"""
    found = parse(text, "s.yaml")
    assert [[type(check).__name__ for check in each.checks] for each in found] == [
        ["ForbiddenTools"],
        [],
        ["ToolCallLimits"],
    ]


def test_every_scenario_that_is_wrong_is_told():
    text = "- {id: a}\n- {id: b, fixed_responses: [hi]}\n- {id: c}\n"
    assert [line.partition(":")[2][:1] for line in problem(text).splitlines()] == ["1", "3"]
    many = problem("- {id: a}\n" * 30).splitlines()
    assert (len(many), many[-1]) == (21, "s.yaml: and 10 more problems")


def test_a_file_that_is_too_large_or_not_there(tmp_path):
    (tmp_path / "large.json").write_bytes(b" " * (MAX_BYTES + 1))
    for name, said in (
        ("large.json", "large.json: is larger than 1048576 bytes; make it smaller, or split it"),
        ("none.json", "none.json: cannot be read (No such file or directory); write its path"),
        (".", ".: cannot be read ("),
        ("a\0.json", "'a\\x00.json': is no path"),
    ):
        with pytest.raises(InputError) as refused:
            load_scenarios(tmp_path / name, name)
        assert str(refused.value).startswith(said)


def test_a_format_is_known_by_the_end_of_the_name():
    assert problem("", "s.toml") == (
        "s.toml: its format is not known by its name; end it in .yaml, .yml, .json, .jsonl, .csv"
    )


WORDS = st.sampled_from(
    ["id", "persona", "script", "- ", ": ", "\n", "  ", "[", "]", "{", "}", '"', ",", "|", "a", "1",
     "&x", "*x", "!!int", "!", "\\u", "\\ud800", "budgets.", "checks", "fixed_responses", "'", "#",
     "defaults", "scenarios", "\t", "\r", "\ufeff", "null", "~", ">", "%", "@", "`", "---", "..."]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=25).map("".join))


def refusal(data, name):
    """What is said of a file, or nothing where it can be read."""
    try:
        parse_scenarios(data, name)
    except InputError as error:
        return str(error)
    return ""


@given(text=TEXTS, name=st.sampled_from(["s.yaml", "s.json", "s.csv"]))
def test_no_text_does_anything_but_be_refused(text, name):
    assert refusal(text.encode("utf-8", "surrogatepass"), name)[:2] in {"", "s."}


@given(data=st.binary(max_size=60), name=st.sampled_from(sorted(PARSERS)))
def test_no_bytes_do_anything_but_be_refused(data, name):
    assert refusal(data, f"s{name}")[:2] in {"", "s."}


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


TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=10
).filter(str.strip)


@given(said=st.lists(TEXT, min_size=1, max_size=3), persona=TEXT)
def test_what_is_written_is_read(said, persona):
    whole = [{"id": "a", "persona": persona, "fixed_responses": said}]
    for name, text in (
        ("s.json", json.dumps(whole)),
        ("s.json", json.dumps(whole, ensure_ascii=False, indent=2)),
        ("s.yaml", json.dumps(whole, ensure_ascii=False)),
        ("s.yaml", yaml.safe_dump(whole, allow_unicode=True, default_style='"')),
    ):
        (scenario,) = parse(text, name)
        assert (scenario.persona, scenario.entry.fixed_responses) == (persona, tuple(said))
