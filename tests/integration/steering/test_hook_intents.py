"""What the hook remembers: it denies each intent once in a session."""

from __future__ import annotations

import json
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
