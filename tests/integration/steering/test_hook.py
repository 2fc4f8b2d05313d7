"""The hook as a coding agent runs it: a process for each event, in each agent's own format.

`hook_events.json` has the events as agents document them, with both answers and their source.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest

from ci_agent_eval.steering.hook.agents import AGENTS, recognize_agent
from ci_agent_eval.steering.hook.options import HookOptions, parse_hook_options
from ci_agent_eval.steering.policy.settings import DEFAULT_MESSAGE, RESEND
from tests.integration.steering.hook_events import (
    ENABLE,
    EVENTS,
    decided,
    renamed,
    run_hook,
    sent_again,
)
from tests.tables import each_row

each_event = each_row("fixture", EVENTS.values(), ids=EVENTS)


def filled(expected, answer, *, names_session):
    """The documented answer with our words in it."""
    message = DEFAULT_MESSAGE if names_session else DEFAULT_MESSAGE.replace(RESEND, "")
    text = json.dumps(expected).replace("{message}", message)
    if "{reason}" in text:
        text = text.replace("agent-eval held a command back: {reason}", answer["user_message"])
        assert answer["user_message"].startswith("agent-eval held a command back: no path, node id")
    return json.loads(text)


@each_event
def test_each_file_names_its_source_and_is_recognised(fixture):
    assert any(source.startswith("https://") for source in fixture["source"])
    assert recognize_agent(fixture["event"]).name == fixture["agent"]


@each_event
@each_row("named", [True, False], ids=["named", "recognised"])
def test_a_full_run_is_denied_once_in_the_agents_format(tmp_path, fixture, named):
    options = [ENABLE, *(["--for", fixture["agent"]] if named else [])]
    names_session = any(
        key in fixture["event"] for key in ("session_id", "sessionId", "conversation_id")
    )

    first = run_hook(tmp_path, fixture["event"], *options)
    second = run_hook(tmp_path, sent_again(fixture["event"]), *options)

    assert decided(first) == filled(fixture["denied"], decided(first), names_session=names_session)
    if names_session:
        assert second.stdout.decode() == fixture["allowed"]
    else:
        assert second.stdout == first.stdout


@each_event
def test_all_else_goes_through_in_the_agents_format(hook, fixture):
    done = hook(renamed(fixture["event"], "ls -l"), ENABLE)

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == fixture["allowed"]


FAULTS = ("settings", "variable", "store", "usage", "event", "off")


def needs_no_store(name, fault):
    """Without a session nothing is remembered, so a broken store does no harm."""
    return fault == "store" and name == "copilot-pre-tool-use-text"


@each_row(
    "fixture,broken",
    [
        pytest.param(fixture, fault, id=f"{name}-{fault}")
        for name, fixture in EVENTS.items()
        for fault in FAULTS
        if not needs_no_store(name, fault)
    ],
)
def test_what_goes_wrong_inside_lets_the_call_through_and_says_so(fixture, broken, tmp_path):
    options, environ, event = [ENABLE, "--for", fixture["agent"]], {}, fixture["event"]
    if broken == "settings":
        (tmp_path / "agent-eval-steering.yaml").write_text("session: 7")
    elif broken == "variable":
        environ = {"PYTEST_FULL_SUITE_STEERING_ENABLED": "perhaps"}
    elif broken == "store":
        (tmp_path / "x").write_text("no database, as anybody can see" * 9)
        options += ["--store", "x"]
    elif broken == "usage":
        options += ["--no-such-option"]
    elif broken == "event":
        event = {"hook_event_name": "SessionStart", "session_id": "x"}
    else:
        options.remove(ENABLE)

    done = run_hook(tmp_path, event, *options, **environ)

    assert done.returncode == 0
    assert done.stdout.decode() == fixture["allowed"]
    assert done.stderr.decode().startswith("agent-eval steer hook: let the call through: ")
    assert done.stderr.count(b"\n") == 1


@each_row(
    ("event", "said"),
    [
        (b"", "JSONDecodeError"),
        (b"{", "JSONDecodeError"),
        (b"\xff\xfe\xfd", "UnicodeDecodeError"),
        (b"[" * 100_000, "RecursionError"),
        (b"[]", "the event is not a JSON object"),
        (b"{}", "the event does not identify the agent; name it: --for claude-code|codex"),
        (b'{"hook_event_name": "PostToolUse"}', "the event does not identify the agent"),
        (
            b'{"hook_event_name": 7, "toolName": []}',
            "not an event of copilot before a tool call",
        ),
        (
            b'{"hook_event_name": "PreToolUse"}',
            "not an event of claude-code before a tool call",
        ),
    ],
)
def test_an_event_that_is_none_lets_the_call_through(hook, event, said):
    done = hook(event, ENABLE)

    assert (done.returncode, done.stdout) == (0, b"")
    assert said in done.stderr.decode()


@each_event
def test_an_agent_that_is_unknown_lets_the_call_through(hook, fixture):
    done = hook(fixture["event"], ENABLE, "--for", "emacs")

    assert (done.returncode, done.stdout) == (0, b"")
    assert "unknown agent 'emacs'; known: claude-code, codex, gemini" in done.stderr.decode()


@each_row(("closed", "out"), [("<&-", b"{}\n"), (">&-", b""), ("2>&-", b"{}\n")])
def test_closed_streams_do_no_harm(closed, out, tmp_path):
    words = shlex.join([sys.executable, "-m", "ci_agent_eval", "steer", "hook", "--for", "gemini"])
    done = subprocess.run(
        ["/bin/sh", "-c", f"{words} {closed}"],
        input=None if closed == "<&-" else b"{",
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        check=False,
        timeout=600,
    )

    assert (done.returncode, done.stdout) == (0, out)


@each_row(
    "start", [["-m", "ci_agent_eval"], ["-c", "from ci_agent_eval.app.cli import main; main()"]]
)
def test_the_hook_is_the_same_past_the_library_of_the_other_commands(start, tmp_path):
    done = subprocess.run(
        [sys.executable, *start, "steer", "hook", ENABLE, "--for=cursor", "--bogus"],
        input=b"{}",
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        check=True,
        timeout=600,
    )

    assert done.stdout == b'{"permission": "allow"}\n'
    assert b"let the call through" in done.stderr


def test_the_help_names_all_options(hook):
    page = hook({}, "--help").stdout.decode()

    for option in ("--for AGENT", "--store FILE", "--config FILE", ENABLE, "--disable-pytest"):
        assert option in page
    assert all(name in page for name in AGENTS)


@each_row(
    ("words", "expected"),
    [
        ([], HookOptions()),
        (["--for", "codex", "--store=a=b"], HookOptions(agent="codex", store="a=b")),
        (["--config", "x", ENABLE], HookOptions(config="x", enabled=True)),
        ([ENABLE, "--disable-pytest-full-suite-steering"], HookOptions(enabled=False)),
        (["--for", "x", "--bad", "--for=codex"], HookOptions(agent="codex", problem="unknown option '--bad'")),
        (["stray"], HookOptions(problem="unknown option 'stray'")),
        (["--config"], HookOptions(problem="option --config needs a value")),
        (["--for="], HookOptions(problem="option --for needs a value")),
    ],
)  # fmt: skip
def test_options_are_read_and_what_is_wrong_is_kept_to_be_said(words, expected):
    assert vars(parse_hook_options(words)) == vars(expected)
