"""Answers in model traffic as entries of a cassette, and back. Pure.

JSON is kept as a structure, a stream as the list of its events' data, other text as text, and
binary content in base64. Of the headers only the type of the content and of an error are kept.
"""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.model_traffic.formats import sse
from ci_agent_eval.model_traffic.formats.json_values import render_compact_json
from ci_agent_eval.model_traffic.formats.message_format import HTTPAnswer

_KEPT_HEADERS = ("content-type", "x-amzn-errortype")
UNREDACTABLE = "its binary answer holds a secret, which cannot be redacted"
Json = dict[str, Any]
Redact = Callable[[Any], Any]
"""Returns a JSON value without its secrets."""
Place = tuple[Any, ...]
"""Names and positions from an event to one of its texts."""
_BODIES = ("json", "events", "text", "base64")
"""Names of the body in an entry; it has exactly one."""
_POSITIONS = ("index", "output_index", "content_index", "summary_index")
"""Fields that tell the parallel texts of a stream apart."""


class InlineMapping(Json):
    """An object that is written in a single line where it fits."""


def dump_answer(status: int, headers: Mapping[str, str], body: bytes, redact: Redact) -> Json:
    """Convert an answer to its entry, without secrets. Raises ValueError if that is impossible."""
    kept = {name: headers[name] for name in _KEPT_HEADERS if name in headers}
    entry: Json = {"status": status, "headers": redact(kept)}
    try:
        text = body.decode()
    except UnicodeDecodeError:
        readable = body.decode("utf-8", "replace")
        if redact(readable) != readable:
            raise ValueError(UNREDACTABLE) from None
        return {**entry, "base64": base64.b64encode(body).decode()}
    if "event-stream" in headers.get("content-type", ""):
        return entry | _dump_stream(body, redact)
    value = _parse_json(text)
    return {**entry, **({"text": redact(text)} if value is None else {"json": redact(value)})}


def build_answer(entry: Json) -> HTTPAnswer:
    """Convert an entry to the answer. Raises ValueError or TypeError for an invalid entry."""
    status, headers = entry.get("status"), entry.get("headers", {})
    if not isinstance(status, int) or not 100 <= status <= 599:
        raise ValueError(f"an answer has the status {status!r}, which is not an HTTP status")
    if not isinstance(headers, dict):
        raise TypeError(f"an answer has the headers {headers!r}; give an object")
    bodies = [name for name in _BODIES if name in entry]
    if len(bodies) != 1:
        given = " and ".join(bodies) or "no body"
        raise ValueError(f"an answer has {given}; give one of {', '.join(_BODIES)}")
    chunks = tuple(_build_chunks(bodies[0], entry[bodies[0]], is_named="event_names" in entry))
    return HTTPAnswer(status, {str(k).lower(): str(v) for k, v in headers.items()}, chunks)


def inline_events(entry: Json) -> Json:
    """Return an entry with one line for each event."""
    if "events" not in entry:
        return entry
    events = [InlineMapping(data) if isinstance(data, dict) else data for data in entry["events"]]
    return {**entry, "events": events}


def _build_chunks(kind: str, body: Any, *, is_named: bool) -> Iterator[bytes]:
    """Yield the pieces of a body. Raises ValueError or TypeError."""
    if kind == "json":
        yield render_compact_json(body)
    elif kind == "events" and isinstance(body, list):
        for data in body:
            name = data.get("type") if is_named and isinstance(data, dict) else None
            yield _render_event(data, name)
    elif kind != "events" and isinstance(body, str):
        yield base64.b64decode(body, validate=True) if kind == "base64" else body.encode()
    else:
        raise TypeError(f"`{kind}` of an answer has the type {type(body).__name__}")


def _render_event(data: Any, name: str | None) -> bytes:
    text = data if isinstance(data, str) else render_compact_json(data).decode()
    lines = [f"data: {line}" for line in text.split("\n")]
    return "\n".join([*([f"event: {name}"] if name else []), *lines, "\n"]).encode()


def _parse_json(text: str) -> Any:
    """Parse an object or a list; None for other texts and where a cassette would change it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) and to_jsonable(value) == value else None


def _dump_stream(body: bytes, redact: Redact) -> Json:
    """Convert a stream to its events' data, or to a text if they do not give the stream again."""
    events = list(_parse_events(body))
    redacted = _redact_events([data for _, data in events], redact)
    if all(name is None for name, _ in events):
        return {"events": redacted}
    if all(isinstance(data, dict) and name == data.get("type") for name, data in events):
        return {"event_names": "type", "events": redacted}
    return {"text": redact(body.decode())}


def _parse_events(body: bytes) -> Iterator[tuple[str | None, Any]]:
    """Yield the name and the data of each event; data that is no object stays a text.

    Comments are dropped, and an event that the end of the stream cuts off.
    """
    splitter = sse.Splitter()
    for raw in splitter.feed(body):
        if data := sse.get_data(raw).decode():
            value = _parse_json(data)
            yield sse.get_name(raw), data if value is None else value
    if (last := sse.get_data(splitter.take_rest()).decode()) == "[DONE]":
        yield None, last


def _redact_events(events: list[Any], redact: Redact) -> list[Any]:
    """Redact events, including a secret that is split between several of them.

    The pieces of a text are found by their place in the events. If its whole has a secret that
    no piece shows, the first piece becomes the redacted whole and the others are emptied.
    """
    redacted: list[Any] = redact(events)
    pieces: defaultdict[Place, list[tuple[Any, Any]]] = defaultdict(list)
    for event in redacted:
        _collect_pieces(event, (), pieces)
    for found in pieces.values():
        texts = [holder[name] for holder, name in found]
        whole = "".join(texts)
        if len(set(texts)) > 1 and (plain := redact(whole)) != whole:
            for holder, name in found:
                holder[name] = ""
            holder, name = found[0]
            holder[name] = plain
    return redacted


def _collect_pieces(
    value: Any, place: Place, pieces: defaultdict[Place, list[tuple[Any, Any]]]
) -> None:
    """Add the containers and names of all texts below `value` to the pieces of their place."""
    if isinstance(value, dict):
        place = (*place, *((name, value[name]) for name in _POSITIONS if name in value))
        items: Any = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return
    for name, item in items:
        if isinstance(item, str):
            pieces[(*place, name)].append((value, name))
        else:
            _collect_pieces(item, (*place, name), pieces)
