"""Functions as agents: answers, errors, deadlines and ends."""

from __future__ import annotations

import asyncio
import threading

import pytest
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelContextWindowExceededError,
    RunCancelled,
    RunTimedOut,
    UsageLimitExceeded,
)

from ci_agent_eval.engine.run import aitest_run
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import Reply
from tests.integration.engine import rig
from tests.integration.engine.rig import run_agent
from tests.tables import each_row


async def echoes(message):
    return f"you said {message}"


def test_an_async_function_is_an_agent():
    result = run_agent(echoes, "hello")
    assert (result.stop_reason, result.final_response) == ("completed", "you said hello")
    assert [turn.role for turn in result.turns] == ["user", "assistant"]
    assert result.agent == "echoes"
    assert result.turns[1].latency_ms is not None
    assert (result.token_usage, result.cost_usd) == (None, None)
    assert result.messages == (
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "you said hello"},
    )


def test_a_plain_function_runs_beside_the_loop_and_may_show_what_it_did():
    def respond(message):
        assert threading.current_thread() is not threading.main_thread()
        return Reply(
            "1500",
            tool_calls=[{"name": "balance", "arguments": {"a": 1}, "result": {"usd": 1500}}],
            usage={"input": 10, "output": 2},
            cost_usd=0.25,
        )

    result = run_agent(respond)
    assert result.tool_call_arg("balance", "a") == 1
    assert result.all_tool_calls[0].result == {"usd": 1500}
    assert (result.token_usage.total, result.cost_usd) == (12, 0.25)


@each_row(
    ("respond", "said"),
    [
        (lambda message: 1 / 0, "the agent failed: ZeroDivisionError: division by zero"),
        (
            lambda message: next(iter(())),
            "the agent failed: RuntimeError: it raised StopIteration()",
        ),
        (lambda message: None, "returned a NoneType; return a text or a Reply"),
        (lambda message: Reply("x", tool_calls=[{"nom": 1}]), "cannot be read"),
        (lambda message: Reply("x", usage={"input": -1}), "cannot be read"),
    ],
)
def test_a_function_that_gives_no_answer_ends_the_run_and_no_other(respond, said):
    result = run_agent(respond)
    assert (result.stop_reason, result.outcome) == ("model_error", "error")
    assert said in result.error


@each_row("kind", ["async", "plain"])
def test_a_function_that_hangs_is_left_at_its_deadline(kind):
    release = threading.Event()

    async def hangs(message):
        await asyncio.Event().wait()

    def blocks(message):
        release.wait()

    result = run_agent({"async": hangs, "plain": blocks}[kind], timeout_s=0.05)
    release.set()
    assert (result.stop_reason, result.error) == ("timeout", "it was not done after 0.05 s")
    assert result.turns[0].content == "my balance?"


@each_row(
    ("reply", "stop"),
    [
        ("", "empty_answer"),
        (Reply("  \n"), "empty_answer"),
        (Reply("", tool_calls=[{"name": "note"}]), "completed"),
        (Reply("You have", finish_reason="MAX_TOKENS"), "truncated"),
        (Reply("No.", finish_reason="refusal"), "refusal"),
        (Reply("Fine.", finish_reason="end_turn"), "completed"),
        (Reply("Fine.", finish_reason="a new word"), "completed"),
    ],
)
def test_an_answer_that_is_none(reply, stop):
    assert run_agent(lambda message: reply).stop_reason == stop


class BadRequestError(Exception):
    """Stands for that of OpenAI's library."""

    code = "context_length_exceeded"


@each_row(
    ("error", "stop"),
    [
        (BadRequestError("too long"), "context_window"),
        (ModelContextWindowExceededError("gpt", "too long"), "context_window"),
        (ExceptionGroup("all", [BadRequestError("a"), BadRequestError("b")]), "context_window"),
        (ExceptionGroup("all", [BadRequestError("a"), ValueError("b")]), "model_error"),
        (ContentFilterError("filtered"), "refusal"),
        (UsageLimitExceeded("too many"), "max_turns"),
        (RunTimedOut("after 3 s"), "timeout"),
        (RunCancelled("by a tool"), "cancelled"),
        (ValueError("context_length_exceeded"), "model_error"),
    ],
)
def test_an_error_that_a_function_raises_says_how_its_model_ended(error, stop):
    def respond(message):
        raise error

    assert run_agent(respond).stop_reason == stop


def test_allowed_ends_pass():
    def allowing(stops):
        async def once():
            async with rig.session() as opened:
                empty = lambda message: ""  # noqa: E731 - as a user may write it
                return await aitest_run(empty, "x", session=opened, allowed_stops=stops)

        return asyncio.run(once())

    assert allowing("empty_answer").outcome == "passed"
    assert allowing({"refusal"}).outcome == "failed"
    with pytest.raises(
        InputError, match=r"aitest_run\.allowed_stops: must be one or several of max_turns, "
    ):
        allowing({"model_error"})
