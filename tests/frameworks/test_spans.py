"""A framework's agents with its OpenInference instrumentation: spans complete the requests."""

from __future__ import annotations

from importlib import import_module

import pytest

from ci_agent_eval.engine.traces import record_spans, trajectory_from_spans
from tests.frameworks.running import ask, run

INSTRUMENTORS = {
    "agno": "agno:AgnoInstrumentor",
    "langgraph": "langchain:LangChainInstrumentor",
    "openai_agents": "openai_agents:OpenAIAgentsInstrumentor",
    "smolagents": "smolagents:SmolagentsInstrumentor",
}


@pytest.fixture
def instrumented(agents, framework, monkeypatch):
    """Instrument the framework, with the global provider of OpenTelemetry's SDK."""
    if framework not in INSTRUMENTORS:
        pytest.skip("the environment has no instrumentation of OpenInference for the framework")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    monkeypatch.delenv("OTEL_SDK_DISABLED")
    provider = TracerProvider()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    module, _, name = INSTRUMENTORS[framework].partition(":")
    instrumentor = getattr(import_module(f"openinference.instrumentation.{module}"), name)()
    instrumentor.instrument(tracer_provider=provider)
    _set_own_tracing(framework, enabled=True)
    yield
    _set_own_tracing(framework, enabled=False)
    instrumentor.uninstrument()


def _set_own_tracing(framework, *, enabled):
    """Switch the tracing of the OpenAI Agents SDK, which its instrumentation listens to."""
    if framework == "openai_agents":
        import_module("agents").set_tracing_disabled(not enabled)


@pytest.mark.usefixtures("instrumented")
def test_spans_alone_have_the_turns(agents, scripts):
    with record_spans() as spans:
        run(ask(agents.teller, scripts.add(*scripts.balance())))
    trajectory = trajectory_from_spans(spans)
    first, last = trajectory.agent_turns
    assert first.tool_calls[0].name == "get_balance"
    assert first.tool_calls[0].arguments == {"account": "checking"}
    assert "1,500.00" in f"{last.content} {last.tool_calls}"
    assert trajectory.total_tokens == 240


@pytest.mark.usefixtures("instrumented")
def test_each_span_of_a_model_call_belongs_to_a_request(agents, scripts):
    result = run(ask(agents.teller, scripts.add(*scripts.balance())))
    assert (result.stop_reason, result.final_response) == ("completed", "$1,500.00.")
    assert (result.traffic.requests, result.traffic.span_calls) == (2, 0)
    assert result.token_usage.total == 240
    tool = result.all_tool_calls[0]
    assert (tool.name, tool.arguments) == ("get_balance", {"account": "checking"})
    assert tool.duration_ms is not None
    assert "1,500.00 on checking" in str(tool.result)


@pytest.mark.usefixtures("instrumented")
def test_runs_at_once_have_their_own_spans(agents, scripts):
    prompts = [scripts.add(*scripts.balance()) for _ in range(8)]
    for result in run(*(ask(agents.teller, prompt) for prompt in prompts)):
        assert (result.traffic.requests, result.traffic.span_calls) == (2, 0)
        assert result.all_tool_calls[0].duration_ms is not None
