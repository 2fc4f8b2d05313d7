"""Flags over environment over file; what is wrong is one sentence with its place."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.policy.dangerous import DANGEROUS_SETS
from ci_agent_eval.steering.policy.model import Rules, Steer, ToolCallRequest
from ci_agent_eval.steering.policy.reactor import build_reactor
from ci_agent_eval.steering.policy.settings import DEFAULT_MESSAGE, GeneralRule, SteeringSettings
from ci_agent_eval.steering.runners import load_runners
from ci_agent_eval.steering.settings_loader import load_steering_settings, parse_steering_settings
from ci_agent_eval.steering.store import SteeringStore
from tests.tables import each_row, read_rows

ENABLED = "PYTEST_FULL_SUITE_STEERING_ENABLED"
MESSAGE = "PYTEST_FULL_SUITE_STEERING_MESSAGE"

# The two last are the document's own examples of YAML.
DOCUMENT = """\
session:
  pytest_full_suite_steering_enabled: true

  pytest_full_suite_steering_message: |
    FULL TEST SUITE DETECTED

    You're about to run the entire test suite, which may take several minutes.
"""
DOCUMENT_PRIORITY = """\
session:
  tool_call_reactor:
    pytest_full_suite_steering_enabled: true
    pytest_full_suite_handler_priority: 90  # Adjust if needed
"""
DOCUMENT_TTL = """\
session:
  pytest_full_suite_steering_enabled: true
  session_state_ttl: 3600  # 1 hour instead of default 30 minutes
"""


def parse(text):
    return parse_steering_settings(text, "steer.yaml")


def test_the_defaults_are_those_of_the_document(tmp_path):
    settings = load_steering_settings(root=tmp_path, environ={})

    assert settings == SteeringSettings()
    assert (settings.enabled, settings.ttl, settings.priority) == (False, 1800, 95)
    assert settings.message == DEFAULT_MESSAGE
    assert settings.message.startswith("You requested to run the whole test suite.")
    assert settings.message.endswith("re-send your tool call and it will be executed.")


def test_the_documents_own_examples_are_read():
    settings = parse(DOCUMENT)

    assert settings.enabled
    assert settings.message == (
        "FULL TEST SUITE DETECTED\n\n"
        "You're about to run the entire test suite, which may take several minutes."
    )
    assert (parse(DOCUMENT_PRIORITY).enabled, parse(DOCUMENT_PRIORITY).priority) == (True, 90)
    assert parse(DOCUMENT_TTL).ttl == 3600


def test_all_other_keys():
    settings = parse("""
session:
  pytest_full_suite_bare_directory: true
  pytest_full_suite_aliases: [make test, tox]
  runners: [cargo, cargo, go]
  dangerous_commands_enabled: true
  steering_rules:
    - name: no-curl
      pattern: '\\bcurl\\b'
      message: Use the client.
    - {name: b, pattern: x, message: m, tools: [write_file], priority: 101, once: true}
""")

    assert not settings.enabled
    assert settings.rules.bare_directory == "full"
    assert settings.rules.aliases == ("make test", "tox")
    assert settings.rules.runners == load_runners(["cargo", "go"])
    assert settings.dangerous == tuple(DANGEROUS_SETS)
    assert settings.general == (
        GeneralRule("no-curl", r"\bcurl\b", "Use the client."),
        GeneralRule("b", "x", "m", ("write_file",), 101, once=True),
    )


@each_row(
    ("text", "expected"),
    [
        ("dangerous_commands: [force-push]", ("force-push",)),
        ("dangerous_commands: [force-push]\n  dangerous_commands_enabled: true", ("force-push",)),
        ("dangerous_commands: [force-push]\n  dangerous_commands_enabled: false", ()),
        ("dangerous_commands_enabled: false", ()),
    ],
)
def test_dangerous_commands_are_chosen_or_all_or_none(text, expected):
    assert parse(f"session:\n  {text}\n").dangerous == expected


@each_row("text", ["", "\n", "# nothing\n", "session:\n", "---\nsession: {}\n"])
def test_a_file_may_say_nothing(text):
    assert parse(text) == SteeringSettings()


@each_row(
    "text", ["version: 1\n", "sessions: [a]\n", "sessions: {a: 1}\n", "permission: {runners: []}\n"]
)
def test_sections_of_other_programs_with_similar_names_are_ignored(text):
    assert parse(text) == SteeringSettings()


@each_row(
    ("flag", "variable", "file", "expected"),
    [
        (None, None, None, False),
        (None, None, "true", True),
        (None, "true", None, True),
        (None, "false", "true", False),
        (None, "true", "false", True),
        (True, "false", "false", True),
        (False, "true", "true", False),
        (None, "", "true", True),
        (None, "  ", "true", True),
    ],
)
def test_the_flag_wins_over_the_variable_and_the_variable_over_the_file(
    tmp_path, flag, variable, file, expected
):
    if file:
        (tmp_path / "agent-eval-steering.yaml").write_text(
            f"session:\n  pytest_full_suite_steering_enabled: {file}\n"
        )
    environ = {} if variable is None else {ENABLED: variable}

    assert load_steering_settings(root=tmp_path, environ=environ, enabled=flag).enabled is expected


@each_row(
    ("text", "expected"),
    [("true", True), ("TRUE", True), ("1", True), ("yes", True), ("on", True), (" True ", True),
     ("false", False), ("0", False), ("no", False), ("Off", False)],
)  # fmt: skip
def test_the_variable_is_read_in_the_usual_spellings(tmp_path, text, expected):
    assert load_steering_settings(root=tmp_path, environ={ENABLED: text}).enabled is expected


def test_the_message_of_the_environment_wins_over_the_files(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("session: {pytest_full_suite_steering_message: from the file}\n")

    def message(environ):
        return load_steering_settings(root=tmp_path, environ=environ, config=path).message

    assert message({}) == "from the file"
    assert message({MESSAGE: "from outside"}) == "from outside"
    assert message({MESSAGE: ""}) == "from the file"


BAD = read_rows(Path(__file__).parent / "settings_errors.jsonl")


@each_row(("text", "sentence"), BAD)
def test_what_is_wrong_is_said_with_its_line(text, sentence):
    with pytest.raises(InputError) as raised:
        parse(text)

    assert str(raised.value) == sentence
    assert raised.value.exit_code == 2


def test_a_wrong_variable_is_said(tmp_path):
    with pytest.raises(InputError, match=rf"{ENABLED}: must be true or false \(given: 'maybe'\)"):
        load_steering_settings(root=tmp_path, environ={ENABLED: "maybe"})


@each_row("content", [b"\xff\xfe\x00", None])
def test_a_file_that_cannot_be_read_is_said(tmp_path, content):
    path = tmp_path / "x.yaml"
    path.mkdir() if content is None else path.write_bytes(content)

    with pytest.raises(InputError, match=r"x\.yaml: (is not UTF-8|cannot be read)"):
        load_steering_settings(root=tmp_path, environ={}, config=path)


@settings(deadline=None)
@given(st.text(max_size=60) | st.text(alphabet="session: [{'&*!|>-\n\t\"\\x7f", max_size=40))
def test_any_text_is_read_or_refused_with_its_place(text):
    with suppress(InputError):
        parse(text)
        return
    with pytest.raises(InputError, match=r"\Asteer\.yaml:\d+: [^\n]+\Z"):
        parse(text)


def test_shell_tools_are_read_with_their_arguments():
    text = "session:\n  shell_tools: {devbox_sh: command, act: [line, script], run: }\n"
    tools = parse_steering_settings(text, "file").rules.shell_tools
    assert tools == {"devbox_sh": ("command",), "act": ("line", "script"), "run": ()}


@each_row("given", ["[bash]", "{act: 3}", "{act: ['']}", "{act: {line: 1}}"])
def test_shell_tools_that_name_no_tools_are_refused(given):
    with pytest.raises(InputError, match=r"^file:2: shell_tools.*: must be a "):
        parse_steering_settings(f"session:\n  shell_tools: {given}\n", "file")


@each_row(
    "settings",
    [
        SteeringSettings(enabled=True, rules=Rules(shell_tools={"devbox_sh": ("command",)})),
        SteeringSettings(
            dangerous=("delete-root",), rules=Rules(shell_tools={"devbox_sh": ("command",)})
        ),
        SteeringSettings(
            general=(GeneralRule("r", "pytest|rm", "no"),),
            rules=Rules(shell_tools={"devbox_sh": ("command",)}),
        ),
    ],
)
def test_shell_tools_count_for_every_handler(settings):
    call = ToolCallRequest("devbox_sh", {"command": "pytest; rm -rf /"})
    reactor = build_reactor(settings, SteeringStore())
    assert isinstance(reactor.review(call, "s", 0), Steer)
    unnamed = replace(settings, rules=Rules())
    assert not isinstance(build_reactor(unnamed, SteeringStore()).review(call, "s", 0), Steer)


@each_row(
    ("text", "expected"),
    [
        ("bare_directory: covers_testpaths", "covers_testpaths"),
        ("bare_directory: targeted", "targeted"),
        ("bare_directory: full", "full"),
        ("pytest_full_suite_bare_directory: true", "full"),
        ("pytest_full_suite_bare_directory: false", "targeted"),
        ("pytest_full_suite_bare_directory: true\n  bare_directory: covers_testpaths",
         "covers_testpaths"),
    ],
)  # fmt: skip
def test_bare_directories_have_three_settings_and_the_older_switch(text, expected):
    assert parse(f"session:\n  {text}\n").rules.bare_directory == expected


@each_row("value", ["true", "all", "[full]", "''"])
def test_another_value_for_bare_directories_is_an_error(value):
    with pytest.raises(InputError, match="targeted or covers_testpaths or full"):
        parse(f"session:\n  bare_directory: {value}\n")
