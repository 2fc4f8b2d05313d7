from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NoOpTracerProvider
from pydantic_ai import Agent
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from ci_agent_eval.engine.traces import record_spans, trajectory_from_spans
from ci_agent_eval.errors import InputError
from tests.model_server import ModelServer
from tests.model_server.script import call

SCRIPT = [{"tool_calls": [call("balance", account="checking")]}, "You have {tool}"]


def balance(account: str) -> dict[str, object]:
    """What an account holds."""
    return {"account": account, "usd": 1500}


@pytest.fixture
def provider():
    """A provider of this test's own, not the process's."""
    made = TracerProvider()
    yield made
    made.shutdown()


def agent_of(server, provider, version=5, **options):
    settings = InstrumentationSettings(tracer_provider=provider, version=version, **options)
    model = OpenAIChatModel(
        "gpt-5-mini", provider=OpenAIProvider(base_url=server.base_url, api_key="k")
    )
    return Agent(
        model,
        tools=[balance],
        capabilities=[Instrumentation(settings=settings)],
        instructions="Be brief.",
    )


async def ask(agent, prompt="my balance?"):
    async with agent:
        return (await agent.run(prompt)).output


@pytest.mark.parametrize("version", [5, 6])
def test_an_instrumented_agent_is_read_from_its_spans(provider, version):
    with ModelServer(SCRIPT) as server, record_spans(provider) as spans:
        asyncio.run(ask(agent_of(server, provider, version)))
    trajectory = trajectory_from_spans(spans)
    assert [(t.role, t.content) for t in trajectory.turns] == [
        ("user", "my balance?"),
        ("assistant", ""),
        ("assistant", 'You have {"account":"checking","usd":1500}'),
    ]
    (found,) = trajectory.tool_calls()
    assert (found.name, found.arguments) == ("balance", {"account": "checking"})
    assert found.result == {"account": "checking", "usd": 1500}
    assert found.duration_ms is not None
    assert trajectory.total_tokens == 240
    assert trajectory.cost_usd > 0
    assert len(trajectory.latencies_ms) == 2


def test_without_contents_the_figures_and_the_tools_are_still_there(provider):
    with ModelServer(SCRIPT) as server, record_spans(provider) as spans:
        asyncio.run(ask(agent_of(server, provider, include_content=False)))
    trajectory = trajectory_from_spans(spans)
    assert "1500" not in trajectory.model_dump_json()
    assert [found.name for found in trajectory.tool_calls()] == ["balance"]
    assert trajectory.total_tokens == 240


def test_recordings_at_once_do_not_mix(provider):
    async def one(agent, number):
        with record_spans(provider) as spans:
            await agent.run(f"question {number}")
        return [turn.content for turn in trajectory_from_spans(spans).turns]

    async def all_of(server):
        agent = agent_of(server, provider)
        async with agent:
            return await asyncio.gather(*(one(agent, n) for n in range(20)))

    with ModelServer(["re: {prompt}"]) as server:
        found = asyncio.run(all_of(server))
    assert found == [[f"question {n}", f"re: question {n}"] for n in range(20)]


def test_a_span_of_a_thread_belongs_to_its_trace(provider):
    from opentelemetry import trace

    tracer = provider.get_tracer("t")
    with record_spans(provider) as spans, tracer.start_as_current_span("outer") as outer:
        context = trace.set_span_in_context(outer)
        thread = threading.Thread(target=lambda: tracer.start_span("inner", context).end())
        thread.start()
        thread.join()
    assert [span.name for span in spans] == ["inner", "outer"]


def test_what_is_outside_is_not_recorded(provider):
    tracer = provider.get_tracer("t")
    tracer.start_span("before").end()
    with record_spans(provider) as spans:
        tracer.start_span("within").end()
        late = tracer.start_span("late")
    late.end()
    tracer.start_span("after").end()
    assert [span.name for span in spans] == ["within"]


def test_a_provider_that_keeps_nothing_is_refused():
    with (
        pytest.raises(InputError, match="NoOpTracerProvider is no tracer provider"),
        record_spans(NoOpTracerProvider()),
    ):
        pass


GLOBAL = """
from opentelemetry import trace
from ci_agent_eval.engine.traces import record_spans
tracer = trace.get_tracer("t")
with record_spans() as spans:
    tracer.start_span("a").end()
with record_spans() as others:
    tracer.start_span("b").end()
print([s.name for s in spans], [s.name for s in others])
"""


def test_without_a_provider_the_global_one_is_made():
    ran = subprocess.run([sys.executable, "-c", GLOBAL], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['a'] ['b']"


def test_reading_spans_needs_no_opentelemetry():
    code = "import sys, ci_agent_eval.engine.traces; print([m for m in sys.modules if m.startswith('opentelemetry')])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
