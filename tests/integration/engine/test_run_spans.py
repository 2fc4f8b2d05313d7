"""Spans that an agent's own instrumentation writes while `aitest_run` runs it."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import nullcontext

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Status, StatusCode

from ci_agent_eval.engine.adapters.run import run_adapter
from ci_agent_eval.engine.traces import record_spans
from tests.model_server import ModelServer
from tests.model_server.script import Step, call

BALANCE = Step(tool_calls=[call("balance", "a", account="checking")])
MODEL = "gpt-5-mini"


@pytest.fixture
def tracer(monkeypatch):
    """A tracer of the global provider, which is the test's own."""
    provider = TracerProvider()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield provider.get_tracer("agent")
    provider.shutdown()


def run(agent, prompt="My balance?", **options):
    return asyncio.run(run_adapter(agent, prompt, clock=time.monotonic, **options))


class TracedAgent:
    """An agent of the openai SDK with one tool, which writes OpenInference spans."""

    def __init__(self, server, tracer, link="current", name="teller", tool=lambda **_: "$1,500"):
        self.client = server.openai_client()
        self.tracer, self.link, self.name, self.tool = tracer, link, name, tool

    def __call__(self, prompt):
        messages = [{"role": "user", "content": prompt}]
        with self.start("AGENT", {"agent.name": self.name}):
            while True:
                message = self.ask(messages)
                messages.append(message.model_dump(exclude_none=True))
                if not message.tool_calls:
                    return message.content
                for made in message.tool_calls:
                    result = self.use_tool(made)
                    if result is None:
                        return "It is $1,500."
                    messages.append({"role": "tool", "tool_call_id": made.id, "content": result})

    def start(self, kind, attributes):
        named = {"openinference.span.kind": kind, **attributes}
        return self.tracer.start_as_current_span(kind, attributes=named)

    def ask(self, messages):
        """Call the model in a span that is current, or that only has what the answer has."""
        span = self.tracer.start_span("llm", attributes={"openinference.span.kind": "LLM"})
        with trace.use_span(span) if self.link == "current" else nullcontext():
            answer = self.client.chat.completions.create(model=MODEL, messages=messages)
        if self.link == "id":
            span.set_attribute("gen_ai.response.id", answer.id)
        if self.link == "figures":
            span.set_attribute("llm.model_name", answer.model)
            span.set_attribute("llm.token_count.prompt", answer.usage.prompt_tokens)
            span.set_attribute("llm.token_count.completion", answer.usage.completion_tokens)
        span.end()
        return answer.choices[0].message

    def use_tool(self, made):
        arguments = made.function.arguments
        with self.start("TOOL", {"tool.name": "balance", "input.value": arguments}) as span:
            try:
                result = self.tool(**json.loads(arguments))
            except ValueError as error:
                span.set_status(Status(StatusCode.ERROR, str(error)))
                return "Something went wrong."
            span.set_attribute("output.value", result or "$1,500")
            return result


@pytest.mark.parametrize("link", ["current", "id", "figures"])
def test_spans_and_requests_of_the_same_call_are_one_turn(tracer, link):
    with ModelServer([BALANCE, "You have {tool}."]) as server:
        result = run(TracedAgent(server, tracer, link))
    assert [turn.role for turn in result.turns] == ["user", "assistant", "assistant"]
    (tool,) = result.all_tool_calls
    assert (tool.id, tool.result, tool.result_unseen) == ("a", "$1,500", False)
    assert tool.duration_ms > 0
    assert result.token_usage.total == 240
    assert (result.traffic.requests, result.traffic.span_calls) == (2, 0)


def test_a_span_has_the_result_that_no_request_returns(tracer):
    with ModelServer([BALANCE]) as server:
        result = run(TracedAgent(server, tracer, tool=lambda **_: None))
    (tool,) = result.all_tool_calls
    assert (tool.result, tool.result_unseen) == ("$1,500", False)
    assert result.final_response == "It is $1,500."


def test_without_a_provider_it_is_not_seen():
    tracer = trace.NoOpTracerProvider().get_tracer("agent")
    with ModelServer([BALANCE]) as server:
        result = run(TracedAgent(server, tracer, tool=lambda **_: None))
    (tool,) = result.all_tool_calls
    assert (tool.result, tool.result_unseen, tool.duration_ms) == (None, True, None)


def test_a_span_tells_that_a_tool_failed_and_the_traffic_what_the_model_was_told(tracer):
    def fail(**_):
        raise ValueError("there is no such account")

    with ModelServer([BALANCE, "Sorry."]) as server:
        result = run(TracedAgent(server, tracer, tool=fail))
    (tool,) = result.all_tool_calls
    assert (tool.result, tool.error) == (None, "Something went wrong.")


def test_usage_on_spans_of_agents_is_not_counted(tracer):
    def agent(prompt):
        with tracer.start_as_current_span("agent") as span:
            span.set_attribute("gen_ai.operation.name", "invoke_agent")
            span.set_attribute("gen_ai.agent.name", "desk")
            span.set_attribute("gen_ai.usage.input_tokens", 9_999)
            span.set_attribute("gen_ai.usage.output_tokens", 9_999)
            return TracedAgent(server, tracer)(prompt)

    with ModelServer(["Hello."]) as server:
        result = run(agent)
    assert result.token_usage.total == 120


def test_agents_are_told_apart_by_their_spans(tracer):
    """The traffic alone shows one agent: both have the same instructions and no tools."""

    def desk(prompt):
        with ModelServer(["First.", "Second."]) as other:
            helper = TracedAgent(other, tracer, name="helper")
            with tracer.start_as_current_span("desk") as span:
                span.set_attribute("gen_ai.operation.name", "invoke_agent")
                span.set_attribute("gen_ai.agent.name", "desk")
                TracedAgent(server, tracer, name="desk")(prompt)
                return helper(prompt)

    with ModelServer(["Let me see."]) as server:
        result = run(desk)
    desk_agent, helper_agent = result.trajectory.agents
    assert (desk_agent.id, desk_agent.name, desk_agent.parent) == ("1", "desk", None)
    assert (helper_agent.id, helper_agent.name) == ("1.1", "helper")
    assert (helper_agent.parent, helper_agent.relation) == ("1", "nested")
    assert [turn.agent for turn in result.turns[1:]] == ["1", "1.1"]


def answer_from_elsewhere(tracer, text, tokens):
    """Write the span of a model call that no hook sees, such as over a socket of its own."""
    said = [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]
    with tracer.start_as_current_span("chat") as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.output.messages", json.dumps(said))
        span.set_attribute("gen_ai.usage.input_tokens", tokens)
        span.set_attribute("gen_ai.usage.output_tokens", 1)


def test_a_model_call_that_only_a_span_shows_is_counted_apart(tracer):
    def agent(prompt):
        answer_from_elsewhere(tracer, "Hm.", 7)
        return TracedAgent(server, tracer)(prompt)

    with ModelServer(["Hello."]) as server:
        result = run(agent)
    assert (result.traffic.requests, result.traffic.span_calls) == (1, 1)
    assert [turn.content for turn in result.turns[1:]] == ["Hello."]


def test_without_any_traffic_the_turns_are_those_of_the_spans(tracer):
    def agent(_):
        answer_from_elsewhere(tracer, "Hm.", 7)
        answer_from_elsewhere(tracer, "it is 4.", 9)
        return "It is 4."

    result = run(agent)
    assert [turn.content for turn in result.turns] == ["My balance?", "Hm.", "It is 4."]
    assert result.token_usage.total == 18
    assert (result.traffic.requests, result.traffic.span_calls) == (0, 2)


def test_the_spans_of_a_run_also_belong_to_a_recording_around_it(tracer):
    with ModelServer(["Hello."]) as server, record_spans() as spans:
        run(TracedAgent(server, tracer))
    assert sorted(span.name for span in spans) == ["AGENT", "llm"]


def test_a_span_that_ends_after_its_run_belongs_to_the_recording_around_it(tracer):
    late = []

    def agent(_):
        late.append(tracer.start_span("late"))
        return "Hello."

    with record_spans() as spans:
        run(agent)
        late[0].end()
    assert [span.name for span in spans] == ["late"]


def test_runs_at_once_do_not_mix(tracer):
    async def run_all(agents):
        runs = (
            run_adapter(agent, f"question {n}", clock=time.monotonic)
            for n, agent in enumerate(agents)
        )
        return await asyncio.gather(*runs)

    with ModelServer([BALANCE, "re: {prompt} {tool}"]) as server:
        agents = [
            TracedAgent(server, tracer, "figures", tool=lambda n=n, **_: f"${n}") for n in range(8)
        ]
        results = asyncio.run(run_all(agents))
    for number, result in enumerate(results):
        (tool,) = result.all_tool_calls
        assert result.final_response == f"re: question {number} ${number}"
        assert (tool.result, tool.duration_ms is not None) == (f"${number}", True)
        assert (result.traffic.requests, result.traffic.span_calls) == (2, 0)
