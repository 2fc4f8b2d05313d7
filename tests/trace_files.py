"""Trace files as production systems write them: OTLP JSON, logs of calls, conversations."""

from __future__ import annotations

import json

from tests import llm_wire

TRACE = "5b8efff798038103d269b633813fc60c"


def any_value(value):
    """Return OTLP's AnyValue; integers are texts in its JSON."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [any_value(item) for item in value]}}
        case dict():
            return {"kvlistValue": {"values": pairs(value)}}
    return {"stringValue": value}


def pairs(attributes):
    return [{"key": key, "value": any_value(value)} for key, value in attributes.items()]


def otlp(spans, *, trace=TRACE, service="support-desk"):
    """Return recorded spans (tests/recorded_spans.py) as a line of the collector's exporter."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": pairs({"service.name": service})},
                "scopeSpans": [{"spans": [otlp_span(span, trace) for span in spans]}],
            }
        ]
    }


def otlp_span(span, trace):
    parent = "" if span.parent is None else f"{span.parent.span_id:016x}"
    return {
        "traceId": trace,
        "spanId": f"{span.context.span_id:016x}",
        "parentSpanId": parent,
        "name": "span",
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": pairs(span.attributes),
        "events": [{"name": e.name, "attributes": pairs(e.attributes)} for e in span.events],
        "status": {} if span.status.is_ok else {"code": 2, "message": span.status.description},
    }


def chat_log(trace="t1", *, customer="jane@shop.test", answer="It is shipped"):
    """Return the two calls of an agent that looks an order up."""
    asked = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": f"Where is order 7? I am {customer}"},
    ]
    call = ("lookup", {"order": 7, "mail": customer})
    first = llm_wire.chat_body(call)
    said = first["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": "call_0", "content": "shipped"}
    last = llm_wire.chat_body(text=f"{answer}, {customer}.")
    return [
        {"trace_id": trace, "request": {"model": "gpt-5", "messages": messages}, "response": body}
        for messages, body in ((asked, first), ([*asked, said, result], last))
    ]


ANTHROPIC = {
    "id": "t2",
    "model": "claude-sonnet-5",
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "Refund order 9"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "refund", "input": {"order": 9}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": "done"}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Refunded."}]},
    ],
}
"""A conversation as Anthropic's clients keep it."""


def lines(*records):
    return "".join(f"{json.dumps(record)}\n" for record in records)
