"""Spans in files are the spans that were recorded, and make the same trajectory."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode

from ci_agent_eval.engine.traces import trajectory_from_spans
from ci_agent_eval.engine.traces.exported_spans import (
    ExportedSpan,
    UnreadableSpan,
    has_spans,
    parse_spans,
)
from ci_agent_eval.engine.traces.span_calls import build_span_calls
from ci_agent_eval.model_traffic.message_logs import build_log_trajectory
from tests.recorded_spans import read_recorded_spans
from tests.trace_files import TRACE, otlp

RECORDED = [
    f"{convention}-{framework}"
    for convention in ("openinference", "openllmetry")
    for framework in ("openai_agents", "langchain")
]
MESSAGES = [{"role": "user", "parts": [{"type": "text", "content": "Where is order 7?"}]}]
ANSWER = [{"role": "assistant", "parts": [{"type": "text", "content": "On its way."}]}]
CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-5",
    "gen_ai.usage.input_tokens": 12,
    "gen_ai.usage.output_tokens": 3,
    "gen_ai.input.messages": json.dumps(MESSAGES),
    "gen_ai.output.messages": json.dumps(ANSWER),
}


@pytest.mark.parametrize("name", RECORDED)
def test_otlp_json_makes_the_trajectory_of_the_recorded_spans(name):
    recorded = read_recorded_spans(name)
    document = json.loads(json.dumps(otlp(recorded)))

    assert has_spans(document)
    found = list(parse_spans(document))

    assert {span.trace_id for span in found} == {TRACE}
    assert trajectory_from_spans(found) == trajectory_from_spans(recorded)


@pytest.mark.parametrize("name", RECORDED)
def test_the_calls_of_spans_have_the_texts_tools_and_tokens_of_their_trajectory(name):
    spans = read_recorded_spans(name)
    expected = trajectory_from_spans(spans)

    found, _ = build_log_trajectory(build_span_calls(spans), lambda _: None)

    assert [t.content for t in found.agent_turns] == [t.content for t in expected.agent_turns]
    assert [t.tokens and t.tokens.total for t in found.agent_turns] == [
        t.tokens and t.tokens.total for t in expected.agent_turns
    ]
    # OpenAI's API has no call without arguments.
    assert [(c.name, c.arguments) for c in found.tool_calls()] == [
        (c.name, c.arguments or {}) for c in expected.tool_calls()
    ]


def without_times(trajectory):
    return [turn.model_copy(update={"latency_ms": None}) for turn in trajectory.turns]


def test_the_json_of_the_sdk_is_read():
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span("agent", attributes={"gen_ai.operation.name": "none"}):
        with tracer.start_as_current_span("chat", attributes=CHAT):
            pass
        with tracer.start_as_current_span("bad", attributes=CHAT) as bad:
            bad.set_status(Status(StatusCode.ERROR, "429"))
    written = [json.loads(span.to_json()) for span in exporter.get_finished_spans()]
    provider.shutdown()

    assert all(map(has_spans, written))
    found = [span for document in written for span in parse_spans(document)]

    made = trajectory_from_spans(exporter.get_finished_spans())
    read = trajectory_from_spans(found)
    # Its JSON has microseconds.
    assert read.latencies_ms == pytest.approx(made.latencies_ms, abs=0.002)
    assert without_times(read) == without_times(made)
    assert [span.status.description for span in found] == [None, "429", None]


def test_rows_of_openinference_tools_are_read():
    row = {
        "context.trace_id": "t",
        "context.span_id": "1",
        "parent_id": None,
        "start_time": "2026-11-26T10:00:00.250000+00:00",
        "end_time": "2026-11-26T10:00:01Z",
        "status_code": "OK",
        "attributes.openinference.span.kind": "LLM",
        "attributes.llm.input_messages": [{"message": {"role": "user", "content": "Hi"}}],
        "attributes.llm.output_messages": [{"message": {"role": "assistant", "content": "Hello"}}],
        "attributes.llm.token_count.prompt": 4,
        "attributes.llm.token_count.completion": 2,
    }
    nested = {
        "context": {"trace_id": "t", "span_id": "1"},
        "start_time": "2026-11-26T10:00:00.250000",
        "end_time": 1795687201000,
        "attributes": {
            "openinference": {"span": {"kind": "LLM"}},
            "llm": {
                "input_messages": row["attributes.llm.input_messages"],
                "output_messages": row["attributes.llm.output_messages"],
                "token_count": {"prompt": 4, "completion": 2},
            },
        },
    }
    first, second = (trajectory_from_spans(parse_spans(value)) for value in (row, nested))

    assert [turn.content for turn in first.turns] == ["Hi", "Hello"]
    assert first.total_tokens == 6
    assert first.turns[-1].latency_ms == 750
    assert second == first


def test_unset_times_and_tokens_are_unknown():
    (span,) = read_recorded_spans("openinference-openai_agents")[4:5]
    span.start_time, span.end_time, span.attributes = 0, 0, {"gen_ai.operation.name": "chat"}
    (turn,) = trajectory_from_spans(parse_spans(otlp([span]))).turns

    assert (turn.latency_ms, turn.tokens, turn.cost_usd) == (None, None, None)


@pytest.mark.parametrize("missing", ["traceId", "spanId"])
def test_a_span_without_its_id_is_reported_and_the_others_are_read(missing):
    document = otlp(read_recorded_spans("openinference-openai_agents")[:2])
    del document["resourceSpans"][0]["scopeSpans"][0]["spans"][0][missing]

    first, second = parse_spans(document)
    assert first == UnreadableSpan(missing)
    assert isinstance(second, ExportedSpan)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
SPAN = st.dictionaries(
    st.sampled_from(
        (
            *("traceId", "spanId", "parentSpanId", "name", "startTimeUnixNano", "endTimeUnixNano"),
            *("attributes", "events", "status", "context", "start_time", "end_time", "parent_id"),
        )
    ),
    ANY,
)


@given(SPAN)
def test_any_value_at_any_place_is_read_or_reported(span):
    documents = ({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}, {"context": {}, **span})
    for document in documents:
        found = parse_spans(document)
        trajectory_from_spans(span for span in found if isinstance(span, ExportedSpan))
