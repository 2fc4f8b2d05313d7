from __future__ import annotations

from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryInfo,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from ci_agent_eval.engine.turns import CallNote, RunNotes, convert_to_turns


def asked(*parts):
    return ModelRequest(parts=list(parts))


def answered(*parts, **options):
    return ModelResponse(parts=list(parts), **options)


def returned(content, call="c1", **options):
    return ToolReturnPart("look", content, call, **options)


def test_the_loops_own_words_are_neither_the_users_nor_the_agents():
    again = RetryFeedbackPart("again", retry=RetryInfo(cause="no_output"))
    turns = convert_to_turns([asked(UserPromptPart("hi")), answered(), asked(again)])
    assert [(t.role, t.content) for t in turns] == [
        ("user", "hi"),
        ("assistant", ""),
        ("system", "again"),
    ]


def test_arguments_that_are_no_json_are_kept_as_written():
    calls = convert_to_turns(
        [
            answered(
                ToolCallPart("look", '{"a": 1}', "c1"),
                ToolCallPart("look", "{nope", "c2"),
                ToolCallPart("look", "[" * 100_000, "c3"),
                ToolCallPart("look", None, "c4"),
            )
        ]
    )[0].tool_calls
    assert [c.arguments for c in calls] == [{"a": 1}, "{nope", "[" * 100_000, None]


def test_an_outcome_other_than_success_is_an_error():
    for outcome in ("failed", "retried", "denied", "interrupted"):
        messages = [
            answered(ToolCallPart("look", {}, "c1")),
            asked(returned("no such account", outcome=outcome)),
        ]
        (call,) = convert_to_turns(messages)[0].tool_calls
        assert (call.result, call.error) == (None, "no such account")


def test_notes_fill_what_messages_lack_and_replace_nothing():
    messages = [
        answered(ToolCallPart("look", {}, "c1"), ToolCallPart("look", {}, "c2")),
        asked(returned("said")),
        answered(ToolCallPart("look", {}, "c1")),
    ]
    notes = {
        (1, "c1"): CallNote(5, error="not this"),
        (1, "c2"): CallNote(7, result="seen"),
        (2, "c1"): CallNote(9, error="it was stopped"),
    }
    first, second = convert_to_turns(messages, RunNotes(calls=notes))
    assert [(c.duration_ms, c.result, c.error) for c in first.tool_calls] == [
        (5, "said", None),
        (7, "seen", None),
    ]
    assert second.tool_calls[0].error == "it was stopped"
