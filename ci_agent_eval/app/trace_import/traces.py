"""Production traces: records grouped by trace, without secrets and personal data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Any

from ci_agent_eval.analysis.natural_order import build_natural_key
from ci_agent_eval.app.trace_import.records import ImportProblems, TraceRecord
from ci_agent_eval.contract.result_mapping import TraceMapping
from ci_agent_eval.contract.trajectory import Trajectory
from ci_agent_eval.contract.wording import make_printable, shorten_text
from ci_agent_eval.engine.traces import spans as genai
from ci_agent_eval.engine.traces.exported_spans import (
    ExportedSpan,
    SpanEvent,
    SpanStatus,
    UnreadableSpan,
    has_spans,
    parse_spans,
)
from ci_agent_eval.engine.traces.run_spans import limit_turn
from ci_agent_eval.engine.traces.span_calls import build_span_calls
from ci_agent_eval.engine.traces.trajectory import SpanTree, trajectory_from_spans
from ci_agent_eval.model_traffic.message_logs import (
    LoggedCall,
    UnreadableLogError,
    build_log_trajectory,
    parse_conversation,
    parse_logged_call,
)
from ci_agent_eval.model_traffic.pricing import price_call
from ci_agent_eval.model_traffic.recorder import ModelCall
from ci_agent_eval.redaction import Redactor, make_distinct_names
from ci_agent_eval.redaction.personal_data import Pseudonyms
from ci_agent_eval.results.importers.mapped import MappedRecord
from ci_agent_eval.results.importers.values import as_amount, as_name, build_usage, format_content
from ci_agent_eval.results.json_text import MalformedError, parse_json
from ci_agent_eval.results.loaded_redaction import redact_json

_ID_KEYS = ("trace_id", "session_id", "conversation_id", "thread_id", "id")
"""Keys of a record of a log, without a mapping, of which the first is the trace's id."""

FORMATS = (
    "spans (OTLP JSON, OpenInference), model calls (`request` and `response`) or conversations "
    "(`messages`)"
)
_MAX_IDS = 10
"""Ids in an error."""
_MAX_ID = 100
"""Characters of an id in an error."""

Clean = Callable[[Any], Any]
"""Returns a JSON value without secrets and personal data."""


@dataclass(slots=True)
class TraceSource:
    """The records of one trace: spans, or model calls."""

    id: str
    """As in the file."""
    place: str
    agent: str | None = None
    spans: list[ExportedSpan] = field(default_factory=list)
    calls: list[LoggedCall] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ProductionTrace:
    """A trace without secrets and personal data."""

    id: str
    place: str
    agent: str | None
    model: str | None
    trajectory: Trajectory
    calls: Sequence[LoggedCall]
    """Its model calls, for a cassette."""
    replaced: dict[str, int]
    """Number of distinct values of each kind of personal data."""


def group_records(records: Iterable[TraceRecord], problems: ImportProblems) -> list[TraceSource]:
    """Return the traces of the records, in the order of their first records."""
    groups: dict[tuple[bool, str], TraceSource] = {}
    for record in records:
        try:
            parts = list(_read_record(record, problems))
        except (UnreadableLogError, MalformedError) as error:
            problems.add(record.place, str(error))
            continue
        for part in parts:
            known = groups.setdefault((bool(part.spans), part.id), part)
            if known is not part:
                known.spans += part.spans
                known.calls += part.calls
    return list(groups.values())


def _read_record(record: TraceRecord, problems: ImportProblems) -> Iterator[TraceSource]:
    """Yield the parts of traces in a record. Raises UnreadableLogError and MalformedError."""
    content = record.content
    if record.mapping is not None:
        yield _read_mapped(record, record.mapping)
    elif has_spans(content):
        for span in parse_spans(content):
            if isinstance(span, UnreadableSpan):
                problems.add(record.place, f"one of its spans has no {span.missing}")
            else:
                yield TraceSource(span.trace_id, record.place, spans=[span])
    elif "request" in content and "response" in content:
        call = parse_logged_call(content["request"], content["response"])
        yield TraceSource(_find_id(record), record.place, calls=[call])
    elif "messages" in content:
        calls = list(parse_conversation(content))
        yield TraceSource(_find_id(record), record.place, calls=calls)
    else:
        raise UnreadableLogError(f"it holds none of {FORMATS}; describe it with --mapping")


def _find_id(record: TraceRecord) -> str:
    named = (record.content.get(name) for name in _ID_KEYS)
    found = next((value for value in named if isinstance(value, str | int) and value != ""), None)
    return f"{PurePosixPath(record.file).stem}-{record.number}" if found is None else str(found)


def _read_mapped(record: TraceRecord, mapping: TraceMapping) -> TraceSource:
    found = MappedRecord(record.content)
    name = found.get(mapping.id)
    if name in (None, ""):
        raise UnreadableLogError(f"it has no id at {mapping.id!r}")
    return TraceSource(
        as_name(name),
        record.place,
        found.get_name(mapping.agent),
        calls=_build_mapped_calls(found, mapping),
    )


def _build_mapped_calls(found: MappedRecord, mapping: TraceMapping) -> list[LoggedCall]:
    latency_ms = as_amount(found.get_number(mapping.latency_ms))
    cost_usd = as_amount(found.get_number(mapping.cost_usd))
    if mapping.request is not None:
        call = parse_logged_call(
            _parse_cell(found.get(mapping.request)), _parse_cell(found.get(mapping.response))
        )
        return [replace(call, latency_ms=latency_ms, cost_usd=cost_usd)]
    if mapping.messages is not None:
        return list(parse_conversation({"messages": _parse_cell(found.get(mapping.messages))}))
    messages = [
        {"role": "user", "content": format_content(found.get(mapping.input))},
        {"role": "assistant", "content": format_content(found.get(mapping.output))},
    ]
    (call,) = parse_conversation({"messages": messages})
    tokens = build_usage(
        found.get_number(mapping.input_tokens), found.get_number(mapping.output_tokens)
    )
    if tokens is not None:
        usage = {"prompt_tokens": tokens["input"], "completion_tokens": tokens["output"]}
        call = replace(call, answer={**call.answer, "usage": usage})
    return [replace(call, latency_ms=latency_ms, cost_usd=cost_usd)]


def _parse_cell(value: object) -> object:
    """Parse the JSON of a cell of a table. Raises MalformedError."""
    return parse_json(value.encode("utf-8", "replace")) if isinstance(value, str) else value


def clean_traces(sources: Sequence[TraceSource], redactor: Redactor) -> Iterator[ProductionTrace]:
    """Yield the traces without secrets and personal data; distinct ids stay distinct."""
    ids = (source.id for source in sources)
    names = make_distinct_names(ids, lambda text: _clean_id(text, redactor))
    for source in sources:
        yield _build_trace(source, names[source.id], redactor)


def _clean_id(text: str, redactor: Redactor) -> str:
    return Pseudonyms().text(redactor.text(text))


def suggest_ids(wanted: str, sources: Sequence[TraceSource], redactor: Redactor) -> str:
    """Return a hint with the nearest id of a trace, or else the first ids in natural order.

    Ids with secrets or personal data are only counted: the hint may be shown on a run's page.
    """
    ids = {source.id for source in sources}
    known = sorted((one for one in ids if _clean_id(one, redactor) == one), key=build_natural_key)
    if nearest := get_close_matches(wanted, known, n=1):
        return f"did you mean {_format_id(nearest[0])}?"
    listed = [_format_id(one) for one in known[:_MAX_IDS]]
    rest = len(ids) - len(listed)
    return f"their ids: {', '.join([*listed, *([f'{rest} more'] if rest else [])])}"


def _format_id(text: str) -> str:
    return make_printable(repr(shorten_text(text, _MAX_ID)))


def _build_trace(source: TraceSource, name: str, redactor: Redactor) -> ProductionTrace:
    pseudonyms = Pseudonyms()

    def clean(value: Any) -> Any:
        return pseudonyms.value(redact_json(value, redactor.text))

    agent = None if source.agent is None else clean(source.agent)
    if source.spans:
        spans = _clean_spans(source.spans, clean)
        found = trajectory_from_spans(spans)
        trajectory = Trajectory(turns=tuple(map(limit_turn, found.turns)))
        calls = build_span_calls(spans)
        agent = agent or _find_span_agent(spans)
        model = next((genai.get_model(span) for span in spans if genai.get_model(span)), None)
    else:
        calls = [
            replace(call, request=clean(call.request), answer=clean(call.answer))
            for call in source.calls
        ]
        trajectory = build_log_trajectory(calls, _compute_cost)[0]
        model = next((turn.requested_model for turn in trajectory.agent_turns), None)
    return ProductionTrace(
        name, source.place, agent, model, trajectory, calls, dict(pseudonyms.counts)
    )


def _compute_cost(call: ModelCall) -> float | None:
    """Return the cost of a call; None without a price or without the price table's library."""
    price = price_call(call) if find_spec("genai_prices") else None
    return None if price is None else price.cost_usd


def _clean_spans(spans: Iterable[ExportedSpan], clean: Clean) -> list[ExportedSpan]:
    by_id = {span.context.span_id: span for span in spans}  # a file may be exported twice
    return [
        replace(
            span,
            attributes=clean(dict(span.attributes)),
            events=[SpanEvent(event.name, clean(dict(event.attributes))) for event in span.events],
            status=SpanStatus(span.status.is_ok, clean(span.status.description)),
            resource=clean(dict(span.resource)),
        )
        for span in SpanTree(by_id.values()).ordered
        if isinstance(span, ExportedSpan)
    ]


def _find_span_agent(spans: Sequence[ExportedSpan]) -> str | None:
    """Return the name of the outermost agent, else of the service."""
    agents = (span for span in spans if genai.get_operation(span) == genai.AGENT_OPERATION)
    names = (genai.get_agent_name(span) for span in agents)
    services = (span.resource.get("service.name") for span in spans)
    found = next((name for name in (*names, *services) if isinstance(name, str) and name), None)
    return None if found is None else as_name(found)
