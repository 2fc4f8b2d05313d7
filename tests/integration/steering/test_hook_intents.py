"""The hook's intents, settings and start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.integration.steering.hook_events import (
    CLAUDE,
    ENABLE,
    EVENTS,
    decided,
    is_denied,
    renamed,
    run_hook,
    sent_again,
)
from tests.tables import each_row

# What the hook remembers: it denies each intent once in a session.


def test_sessions_are_told_apart_and_intents_remembered_across_processes(hook_process):
    other = {**CLAUDE, "session_id": "other"}

    assert is_denied(hook_process(CLAUDE, ENABLE))
    assert is_denied(hook_process(renamed(CLAUDE, "cd web && pytest -q"), ENABLE))
    assert is_denied(hook_process(other, ENABLE))
    assert not is_denied(hook_process(renamed(CLAUDE, "cd web/;  python -m pytest | tail"), ENABLE))
    assert not is_denied(hook_process(CLAUDE, ENABLE))


RESULT = '{"type": "user", "content": [{"type": "tool_result", "tool_use_id": "call_0"}]}'
CODEX_RESULT = '{"payload": {"type": "function_call_output", "call_id": "call_0"}}'
CONVERSATIONS = {
    "claude-code": [
        '{"message": {"id": "msg_1", "content": [{"type": "tool_use", "id": "call_0"}]}}',
        RESULT,  # comes early if the answer is streamed
        '{"message": {"id": "msg_1", "content": [{"type": "tool_use", "id": "call_1"}]}}',
        '{"message": {"id": "msg_2", "content": [{"type": "tool_use", "id": "call_2"}]}}',
    ],
    "codex": [
        '{"payload": {"type": "function_call", "call_id": "call_0"}}',
        '{"payload": {"type": "function_call", "call_id": "call_1"}}',
        CODEX_RESULT,
        '{"payload": {"type": "function_call", "call_id": "call_2"}}',
    ],
    "qwen-code": [
        '{"type": "assistant", "parts": [{"id": "call_0"}, {"id": "call_1"}]}',
        RESULT,
        '{"type": "assistant", "parts": [{"id": "call_2"}]}',
    ],
}


@each_row("agent", CONVERSATIONS)
def test_of_equal_calls_in_one_answer_all_are_denied_and_those_of_the_next_are_not(agent, tmp_path):
    conversation = tmp_path / "conversation.jsonl"
    conversation.write_text("\n".join(CONVERSATIONS[agent]) + "\n")
    event = {**CLAUDE, "transcript_path": str(conversation)}

    def is_held(call):
        return is_denied(run_hook(tmp_path, {**event, "tool_use_id": call}, ENABLE, "--for", agent))

    assert [is_held(f"call_{number}") for number in range(3)] == [True, True, False]


GEMINI = {
    "hook_event_name": "BeforeTool",
    "session_id": "s",
    "tool_name": "run_shell_command",
    "tool_input": {"command": "pytest"},
}


def test_of_equal_calls_in_one_answer_of_gemini_all_are_denied(hook, tmp_path):
    """Its events name no call, but it writes the results of an answer all at once."""
    conversation = tmp_path / "conversation.jsonl"
    conversation.write_text('{"type": "gemini", "content": ""}\n')
    event = {**GEMINI, "transcript_path": str(conversation)}

    first, second = (hook(event, ENABLE) for _ in range(2))
    with conversation.open("a") as file:
        file.write('{"type": "user", "content": [{"functionResponse": {}}]}\n')
    later = hook(event, ENABLE)

    assert decided(first) == decided(second) != {}
    assert decided(later) == {}


def test_an_insisted_call_of_gemini_runs_with_an_indented_conversation(hook, tmp_path):
    """Versions before the one with JSON lines write one indented document."""
    conversation = tmp_path / "conversation.json"
    event = {**GEMINI, "transcript_path": str(conversation)}
    held = []
    for count in range(1, 4):
        results = [{"result": [{"functionResponse": {"id": n}}]} for n in range(count)]
        conversation.write_text(json.dumps({"messages": results}, indent=2))
        held.append(decided(hook(event, ENABLE)) != {})

    assert held == [True, False, False]


def test_an_insisted_call_runs_if_the_conversations_results_are_out_of_reach(hook, tmp_path):
    conversation = tmp_path / "conversation.jsonl"
    conversation.write_text(json.dumps({"type": "user", "content": "x" * 2**20}) + "\n")
    event = {**GEMINI, "transcript_path": str(conversation)}

    assert [decided(hook(event, ENABLE)) != {} for _ in range(2)] == [True, False]


@each_row("agent", ["copilot", "opencode"])
def test_of_equal_calls_in_one_answer_of_others_all_are_denied(hook, agent):
    name = {"copilot": "copilot-pre-tool-use", "opencode": "opencode-tool-execute-before"}[agent]
    event = EVENTS[name]["event"]

    assert is_denied(hook(event, ENABLE))
    assert is_denied(hook(event, ENABLE))
    assert not is_denied(hook(sent_again(event), ENABLE))


def test_an_event_without_a_session_is_denied_each_time_and_leaves_no_file(hook, tmp_path):
    event = {key: value for key, value in CLAUDE.items() if key != "session_id"}

    assert is_denied(hook(event, ENABLE))
    assert is_denied(hook(event, ENABLE))
    assert not (tmp_path / "state").exists()


def test_of_many_processes_that_ask_at_once_one_is_denied(hook_process):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: is_denied(hook_process(CLAUDE, ENABLE)), range(8)))

    assert answers.count(True) == 1


# The settings file of a project, as the hook reads it.


def test_a_directory_that_covers_testpaths_of_the_event_s_folder_is_denied(hook, tmp_path):
    (tmp_path / "steer.yaml").write_text("session: {bare_directory: covers_testpaths}\n")
    for name, testpaths in (("a", "tests"), ("b", "tests docs")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pytest.ini").write_text(f"[pytest]\ntestpaths = {testpaths}\n")
    event = renamed(CLAUDE, "pytest tests/")
    options = (ENABLE, "--config", "steer.yaml")

    assert is_denied(hook({**event, "cwd": str(tmp_path / "a")}, *options))
    assert not is_denied(hook({**event, "cwd": str(tmp_path / "b")}, *options))


def test_the_settings_reach_the_hook(hook, tmp_path):
    (tmp_path / "steer.yaml").write_text(
        "session:\n  pytest_full_suite_steering_message: Not so fast.\n"
        "  dangerous_commands: [force-push]\n"
    )
    config = ("--config", "steer.yaml")
    said = decided(hook(CLAUDE, *config, PYTEST_FULL_SUITE_STEERING_ENABLED="true"))

    assert said["hookSpecificOutput"]["permissionDecisionReason"] == "Not so fast."
    assert decided(hook(CLAUDE, *config, "--disable-pytest-full-suite-steering")) == ""
    push = renamed(CLAUDE, "git push -f")
    assert is_denied(hook(push, *config))
    assert is_denied(hook(push, *config))


def test_the_settings_of_the_project_are_found_from_within_it(hook, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "agent-eval-steering.yaml").write_text(
        "session: {pytest_full_suite_steering_enabled: true}\n"
    )
    (project / "other.yaml").write_text("session: {}\n")
    named = {"CLAUDE_PROJECT_DIR": str(project)}

    assert is_denied(hook(CLAUDE, **named))
    assert b"steering is off" in hook(CLAUDE, "--config", "other.yaml", **named).stderr
    assert b"other.yaml: there is no such file" in hook(CLAUDE, "--config", "other.yaml").stderr


# How little the hook loads: an agent waits for it before each command.


def answer_and_imports(event, folder):
    """Names instead of milliseconds: a busy machine must not fail a test of how fast it starts."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ci_agent_eval", "steer", "hook", ENABLE],
        input=json.dumps(event).encode(),
        env={**os.environ, "XDG_STATE_HOME": str(folder)},
        capture_output=True,
        check=True,
        timeout=600,
    )
    lines = done.stderr.decode().splitlines()
    return done.stdout, {line.rpartition("|")[2].strip() for line in lines}


def test_nothing_is_loaded_that_takes_long(tmp_path):
    _, loaded = answer_and_imports(CLAUDE, tmp_path)

    assert {"tree_sitter", "sqlite3"} <= loaded
    slow = ("pydantic", "yaml", "pytest", "httpx", "starlette", "github", "jinja2", "asyncio")
    assert not loaded.intersection(slow)


def test_what_no_command_is_needs_no_grammar(tmp_path):
    event = {**CLAUDE, "tool_name": "Write", "tool_input": {"content": "pytest"}}
    answer, loaded = answer_and_imports(event, tmp_path)

    assert answer == b""
    assert "ci_agent_eval.steering.hook" in loaded
    assert not loaded.intersection({"tree_sitter", "sqlite3", "hashlib", "click"})


def test_a_command_without_a_runner_loads_next_to_nothing(tmp_path):
    """The standard library's `typing` alone takes half as long as starting Python."""
    event = {
        **CLAUDE,
        "tool_input": {"command": "cd src && git log --oneline | head -5; echo $?"},
    }
    answer, loaded = answer_and_imports(event, tmp_path)

    assert answer == b""
    ours = {name for name in loaded if name.startswith("ci_agent_eval")}
    assert "ci_agent_eval.steering.hook.command" in ours
    assert len(ours) <= 13
    assert not loaded.intersection({"typing", "dataclasses", "pathlib", "hashlib"})
