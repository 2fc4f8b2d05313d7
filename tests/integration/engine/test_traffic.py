"""Runs of functions that call a model with an SDK: record, limits and ends, by their traffic."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time

import openai
import pytest

from ci_agent_eval.engine.limits import RunLimits
from ci_agent_eval.engine.rate_limits import RateWindows
from ci_agent_eval.engine.run import run_adapter
from ci_agent_eval.model_traffic import hooks
from ci_agent_eval.model_traffic.trajectory import TrajectoryReader
from ci_agent_eval.recording import Reply
from tests.model_server import ModelServer
from tests.model_server.script import Step, call

LOOKUP = Step(tool_calls=[call("lookup", order=7)])


@pytest.fixture
def serve():
    servers = []

    def start(script):
        server = ModelServer(script)
        servers.append(server)
        return server.__enter__()

    yield start
    for server in servers:
        server.__exit__()


class Loop:
    """An agent of the openai SDK with one tool, written by hand."""

    def __init__(self, server, tool=lambda **_: "in Rome", **options):
        self.client = server.openai_client(**options)
        self.tool = tool

    def __call__(self, prompt):
        messages = [{"role": "user", "content": prompt}]
        while True:
            answer = self.client.chat.completions.create(model="gpt-5-mini", messages=messages)
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return message.content
            for made in message.tool_calls:
                content = self.tool(**json.loads(made.function.arguments))
                result = {"role": "tool", "tool_call_id": made.id, "content": content}
                messages.append(result)


def go(agent, prompt="Where?", **options):
    return asyncio.run(run_adapter(agent, prompt, clock=time.monotonic, **options))


def test_a_function_that_returns_a_text_has_the_turns_of_its_traffic(serve):
    result = go(Loop(serve([LOOKUP, "It is {tool}."])))
    user, first, last = result.turns
    assert (user.role, user.content) == ("user", "Where?")
    assert [(made.arguments, made.result) for made in first.tool_calls] == [
        ({"order": 7}, "in Rome")
    ]
    assert (last.content, last.finish_reason) == ("It is in Rome.", "stop")
    assert result.token_usage.total == 240
    assert (result.model, result.stop_reason) == ("gpt-5-mini", "completed")
    assert result.traffic.requests == 2


def test_a_reply_with_its_own_figures_keeps_them(serve):
    agent = Loop(serve([LOOKUP, "Rome"]))
    result = go(lambda prompt: Reply(agent(prompt), usage={"input": 1, "output": 2}, cost_usd=0.5))
    _, turn = result.turns
    assert (turn.tokens.total, turn.cost_usd) == (3, 0.5)
    assert turn.tool_calls[0].result == "in Rome"


@pytest.mark.parametrize(
    ("limits", "requests", "stop", "is_caught"),
    [
        (RunLimits(max_turns=4), 4, "max_turns", False),
        (RunLimits(max_turns=4), 4, "max_turns", True),
        (RunLimits(tool_calls=3), 4, "tool_call_limit", True),
        (RunLimits(tokens=250), 3, "token_limit", True),
        (RunLimits(cost_usd=0.0001), 2, "cost_limit", False),
    ],
)
def test_a_runaway_is_stopped_at_its_limit_with_a_complete_record(
    serve, limits, requests, stop, is_caught
):
    server = serve([LOOKUP] * 50)
    agent = Loop(server)

    def caught(prompt):
        try:
            return agent(prompt)
        except openai.BadRequestError as error:
            return f"Sorry: {error}"

    result = go(caught if is_caught else agent, limits=limits)
    assert (result.stop_reason, result.outcome) == (stop, "failed")
    assert len(server.requests) == requests
    assert len(result.trajectory.agent_turns) == requests
    assert all(made.result == "in Rome" for made in result.all_tool_calls)
    assert result.traffic.refused == 1
    assert result.final_response == ""  # the model said nothing
    assert result.needs_turn == (stop == "max_turns")


def test_a_limit_counts_nested_agents(serve):
    server = serve({"outer": [Step(tool_calls=[call("ask", q="inner?")]), "Done"], "inner": ["ok"]})
    inner = Loop(server)
    agent = Loop(server, tool=lambda **asked: inner(asked["q"]))
    whole = go(agent, "outer")
    assert [turn.agent for turn in whole.turns] == [None, "1", "1.1", "1.1", "1"]
    assert [agent.name for agent in whole.trajectory.agents] == [None, "ask"]
    stopped = go(agent, "outer", limits=RunLimits(max_turns=2))
    assert stopped.stop_reason == "max_turns"
    assert len(stopped.trajectory.agent_turns) == 2


class Desk:
    """An agent of the openai SDK that hands over to another one, which goes on."""

    def __init__(self, server):
        self.client = openai.OpenAI(base_url=server.base_url, api_key="k")
        self.instructions = "You are the desk."
        self.messages = []

    def __call__(self, prompt):
        self.messages.append({"role": "user", "content": prompt})
        while True:
            system = {"role": "system", "content": self.instructions}
            answer = self.client.chat.completions.create(
                model="gpt-5-mini", messages=[system, *self.messages]
            )
            message = answer.choices[0].message
            self.messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return message.content
            self.instructions = "You are the teller."
            result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "ok"}
            self.messages.append(result)


HANDOFF = Step(tool_calls=[call("transfer_to_teller")])


def test_after_a_handoff_the_next_run_of_the_episode_has_the_same_agents(serve):
    desk, reader = Desk(serve([HANDOFF, "Hello", "Still here"])), TrajectoryReader()
    first = go(desk, "Help", trajectory_reader=reader)
    second = go(desk, "And now?", trajectory_reader=reader)
    assert [turn.agent for turn in first.turns] == [None, "1", "1.1"]
    assert [(turn.content, turn.agent) for turn in second.turns] == [
        ("And now?", None),
        ("Still here", "1.1"),
    ]
    assert second.trajectory.agents == first.trajectory.agents
    assert second.token_usage.total == 120


def test_an_exception_in_a_tool_is_an_agent_failure_with_its_record(serve):
    def fail(**_):
        raise KeyError("order")

    result = go(Loop(serve([LOOKUP, "Done"]), tool=fail))
    assert (result.stop_reason, result.outcome) == ("agent_error", "failed")
    said = "the agent's own code raised: KeyError: 'order' (test_traffic.py:"
    assert result.error.startswith(said)
    (made,) = result.all_tool_calls
    assert made.result_unseen
    assert result.token_usage.total == 120


@pytest.mark.parametrize("status", [500, 429, 401])
def test_a_provider_that_fails_is_an_infrastructure_error_with_the_turns_before(serve, status):
    result = go(Loop(serve([LOOKUP, *[Step(status=status)] * 5]), max_retries=0))
    assert (result.stop_reason, result.outcome) == ("model_error", "error")
    assert f"status {status}" in result.error
    assert [turn.role for turn in result.turns] == ["user", "assistant"]
    assert result.rate_limited == (status == 429)


def test_a_connection_that_fails_is_an_infrastructure_error():
    def agent(prompt):
        url = "http://127.0.0.1:9/v1"
        with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
            return client.responses.create(model="gpt-5-mini", input=prompt).output_text

    result = go(agent)
    assert (result.stop_reason, result.outcome) == ("model_error", "error")
    assert "gave no answer" in result.error


def test_failures_that_the_sdk_retries_are_no_turns(serve):
    server = serve([Step(status=500), "Rome"])
    result = go(Loop(server))
    assert len(server.requests) == 2
    assert [turn.content for turn in result.turns] == ["Where?", "Rome"]
    assert (result.traffic.requests, result.traffic.failed) == (2, 1)


def test_a_request_that_no_longer_fits_is_an_agent_failure(serve):
    result = go(Loop(serve([Step(status=400, code="context_length_exceeded")])))
    assert (result.stop_reason, result.outcome) == ("context_window", "failed")


@pytest.mark.parametrize(
    ("reason", "stop"), [("content_filter", "refusal"), ("length", "truncated")]
)
def test_a_refusal_and_a_cut_answer_end_the_run(serve, reason, stop):
    result = go(Loop(serve([Step(text="I will", finish_reason=reason)])))
    assert (result.stop_reason, result.outcome) == (stop, "failed")
    assert result.turns[-1].finish_reason == reason


def cancel_when(event, agent):
    """Run an agent until the event is set, and cancel it; return its result."""
    seen = []

    async def run():
        task = asyncio.ensure_future(
            run_adapter(agent, "Where?", clock=time.monotonic, observer=seen.append)
        )
        assert await asyncio.to_thread(event.wait, 600)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    return seen[0]


def test_the_calls_of_a_thread_that_outlives_its_run_are_refused(serve):
    server = serve([LOOKUP, "Done"])
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    errors = []

    def wait(**_):
        begun.set()
        go_on.wait(600)
        return "late"

    agent = Loop(server, tool=wait)

    def watched(prompt):
        try:
            return agent(prompt)
        except openai.BadRequestError as error:
            errors.append(error)
        finally:
            ended.set()

    with hooks.use():  # as in an episode
        result = cancel_when(begun, watched)
        go_on.set()
        assert ended.wait(600)
    assert result.stop_reason == "cancelled"
    assert [turn.role for turn in result.turns] == ["user", "assistant"]
    assert "the run was cancelled" in str(errors[0])
    assert len(server.requests) == 1


def test_a_broken_off_stream_keeps_the_part_that_arrived(serve):
    server = serve([Step(text="one two three four", break_after=3)])
    arrived = threading.Event()

    async def agent(prompt):
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="k") as client:
            stream = await client.chat.completions.create(
                model="gpt-5-mini", messages=[{"role": "user", "content": prompt}], stream=True
            )
            async for chunk in stream:
                if chunk.choices[0].delta.content:
                    arrived.set()

    turn = cancel_when(arrived, agent).turns[-1]
    assert turn.content
    assert turn.content in "one two three four"
    assert turn.error is not None
    assert turn.tokens is None


def test_after_status_429_all_calls_to_the_address_wait(serve):
    server = serve([Step(status=429, retry_after="0.05"), "Rome"])
    clock = itertools.count().__next__
    windows = RateWindows(lambda: float(clock()))
    waits = []

    class Recorded:
        def take(self, amount):
            entry = windows.take(amount)
            waits.append(entry)
            return entry

        def pause(self, seconds):
            windows.pause(seconds)

    result = go(Loop(server), windows=lambda _: Recorded())
    assert (result.stop_reason, result.rate_limited) == ("completed", 1)
    assert [turn.content for turn in result.turns] == ["Where?", "Rome"]
    assert len(waits) >= 2
