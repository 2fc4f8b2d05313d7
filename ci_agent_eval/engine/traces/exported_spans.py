"""Spans in files: OTLP JSON, and the JSON of OpenTelemetry's SDK and of OpenInference tools. Pure.

OTLP JSON: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding. The others write a
span as an object with `context`, or as a row with the columns `context.trace_id`,
`context.span_id`, `parent_id` and `attributes.…`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_RESOURCES = ("resourceSpans", "resource_spans")
_CONTEXT = "context"
_INDEXED = "llm."
"""Prefix of the attributes of OpenInference whose lists are written as indexed attributes."""


_LATEST_MS = 2**43
"""Milliseconds since 1970 of the year 2248; later times are no times."""


@dataclass(frozen=True, slots=True)
class UnreadableSpan:
    """A span without an id, which has no place in a trace."""

    missing: str
    """Name of the id."""


@dataclass(frozen=True, slots=True)
class SpanId:
    """The context of a span."""

    span_id: int


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """An event of a span."""

    name: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SpanStatus:
    """The status of a span."""

    is_ok: bool
    description: str | None


@dataclass(frozen=True, slots=True)
class ExportedSpan:
    """A span of a file, a `SpanLike`."""

    trace_id: str
    context: SpanId
    parent: SpanId | None
    attributes: Mapping[str, Any]
    events: Sequence[SpanEvent]
    start_time: int | None
    end_time: int | None
    status: SpanStatus
    resource: Mapping[str, Any] = field(default_factory=dict)
    """Attributes of the service that wrote it."""


def has_spans(value: object) -> bool:
    """Return whether a JSON object holds spans, or is one."""
    if not isinstance(value, dict):
        return False
    return any(name in value for name in (*_RESOURCES, _CONTEXT, f"{_CONTEXT}.span_id"))


def parse_spans(value: Mapping[str, Any]) -> Iterator[ExportedSpan | UnreadableSpan]:
    """Yield the spans of a JSON object for which `has_spans` is true."""
    if not any(name in value for name in _RESOURCES):
        yield _parse_sdk_span(value)
        return
    for resource in _list_objects(value, *_RESOURCES):
        described = _parse_attributes(_get_object(resource, "resource").get("attributes"))
        for scope in _list_objects(resource, *_SCOPES):
            for span in _list_objects(scope, "spans"):
                yield _parse_otlp_span(span, described)


def _parse_otlp_span(
    span: Mapping[str, Any], resource: Mapping[str, Any]
) -> ExportedSpan | UnreadableSpan:
    trace_id = _as_text(_get(span, "traceId", "trace_id"))
    span_id = _as_text(_get(span, "spanId", "span_id"))
    if trace_id is None or span_id is None:
        return UnreadableSpan("traceId" if trace_id is None else "spanId")
    status = _get_object(span, "status")
    return ExportedSpan(
        trace_id,
        SpanId(_parse_id(span_id)),
        _parse_parent(_get(span, "parentSpanId", "parent_span_id")),
        _parse_attributes(span.get("attributes")),
        [
            SpanEvent(str(event.get("name")), _parse_attributes(event.get("attributes")))
            for event in _list_objects(span, "events")
        ],
        _parse_nanoseconds(_get(span, "startTimeUnixNano", "start_time_unix_nano")),
        _parse_nanoseconds(_get(span, "endTimeUnixNano", "end_time_unix_nano")),
        SpanStatus(
            status.get("code") not in (2, "STATUS_CODE_ERROR"), _as_text(status.get("message"))
        ),
        resource,
    )


def _parse_sdk_span(span: Mapping[str, Any]) -> ExportedSpan | UnreadableSpan:
    context, status = _get_object(span, _CONTEXT), _get_object(span, "status")
    trace_id = _as_text(context.get("trace_id", span.get(f"{_CONTEXT}.trace_id")))
    span_id = _as_text(context.get("span_id", span.get(f"{_CONTEXT}.span_id")))
    if trace_id is None or span_id is None:
        return UnreadableSpan(f"{_CONTEXT}.{'trace_id' if trace_id is None else 'span_id'}")
    code = status.get("status_code", span.get("status_code"))
    description = status.get("description", span.get("status_message"))
    return ExportedSpan(
        trace_id.removeprefix("0x"),
        SpanId(_parse_id(span_id)),
        _parse_parent(span.get("parent_id")),
        flatten_attributes(_collect_columns(span)),
        [
            SpanEvent(str(event.get("name")), _get_object(event, "attributes"))
            for event in _list_objects(span, "events")
        ],
        _parse_time(span.get("start_time")),
        _parse_time(span.get("end_time")),
        SpanStatus(str(code).upper() != "ERROR", _as_text(description)),
        _get_object(_get_object(span, "resource"), "attributes"),
    )


def _collect_columns(span: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a span, or of the columns `attributes.…` of a row."""
    columns = {
        name.removeprefix("attributes."): value
        for name, value in span.items()
        if name.startswith("attributes.") and value is not None
    }
    return {**_get_object(span, "attributes"), **columns}


def flatten_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested attributes by their dotted names, and lists of OpenInference by index.

    Other values keep their place: GenAI messages are lists of objects.
    """
    found: dict[str, Any] = {}
    for name, value in attributes.items():
        _flatten_into(found, name, value)
    return found


def _flatten_into(found: dict[str, Any], name: str, value: Any) -> None:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            _flatten_into(found, f"{name}.{key}", item)
    elif isinstance(value, list) and name.startswith(_INDEXED) and _has_objects(value):
        for place, item in enumerate(value):
            _flatten_into(found, f"{name}.{place}", item)
    else:
        found[name] = value


def _has_objects(value: Sequence[Any]) -> bool:
    return any(isinstance(item, dict) for item in value)


def _parse_attributes(value: object) -> dict[str, Any]:
    """Return the attributes of OTLP's list of keys and values."""
    pairs = value if isinstance(value, list) else ()
    found = {
        str(pair["key"]): _parse_any_value(pair.get("value"))
        for pair in pairs
        if isinstance(pair, dict) and "key" in pair
    }
    return flatten_attributes(found)


def _parse_any_value(value: object) -> Any:
    """Return the content of OTLP's AnyValue, whose integers may be texts."""
    if not isinstance(value, dict):
        return None
    kind, content = next(iter(value.items()), ("", None))
    if kind in ("intValue", "int_value"):
        return _parse_integer(content)
    if kind in ("arrayValue", "array_value"):
        items = content.get("values") if isinstance(content, dict) else None
        return [_parse_any_value(item) for item in items] if isinstance(items, list) else []
    if kind in ("kvlistValue", "kvlist_value"):
        items = content.get("values") if isinstance(content, dict) else None
        pairs = [item for item in items if isinstance(item, dict)] if items else []
        return {str(pair.get("key")): _parse_any_value(pair.get("value")) for pair in pairs}
    return content


def _parse_integer(value: object) -> int | None:
    try:
        return int(value) if isinstance(value, int | str) else None
    except ValueError:
        return None


def _parse_nanoseconds(value: object) -> int | None:
    found = _parse_integer(value)
    # 0 is OTLP's unset time.
    return found if found is not None and 0 < found < _LATEST_MS * 1_000_000 else None


def _parse_time(value: object) -> int | None:
    """Return the nanoseconds of an ISO 8601 time, or of milliseconds, as pandas writes them."""
    if isinstance(value, int | float):
        return int(value * 1_000_000) if 0 < value < _LATEST_MS else None
    try:
        moment = dt.datetime.fromisoformat(str(value))
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
    since = moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000


def _parse_parent(value: object) -> SpanId | None:
    return SpanId(_parse_id(value)) if isinstance(value, str) and value.strip("0") else None


def _parse_id(value: str) -> int:
    """Return the number of a hexadecimal id; any other text is an id, too."""
    try:
        return int(value, 16)
    except ValueError:
        return int.from_bytes(value.encode("utf-8", "replace"), "big")


def _get(span: Mapping[str, Any], *names: str) -> object:
    return next((span[name] for name in names if name in span), None)


def _get_object(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _list_objects(value: Mapping[str, Any], *names: str) -> list[Mapping[str, Any]]:
    found = _get(value, *names)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _as_text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
