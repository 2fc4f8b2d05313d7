"""Assembling of an answer's chunks: JSON, server-sent events, or AWS event streams.

While chunks arrive, only the end of the body is looked for. The answer is parsed when it is needed.
"""

from __future__ import annotations

import dataclasses
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.model_traffic.formats.aws_events import AWSEventBody
from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    UnreadableTrafficError,
    get_object,
    get_text,
    list_objects,
)
from ci_agent_eval.model_traffic.formats.sse import Splitter, get_data, parse_data
from ci_agent_eval.model_traffic.messages import ModelAnswer

_MAX_ERROR_LENGTH = 2000
_MAX_MARK_LENGTH = 40
"""Longest end mark of a format; the longest there is has 21 bytes."""


@dataclass(frozen=True, slots=True)
class AnswerReader:
    """Reads the answers of one format."""

    assemble: Callable[[Sequence[Json]], Json]
    """Merges the events of a stream into the body that the same answer has without streaming."""
    read: Callable[[Json], ModelAnswer]
    """Reads a body."""
    end_marks: tuple[bytes, ...]
    """Texts, one of which the last event of a stream contains."""
    is_end: Callable[[Json], bool]
    """Returns whether an event is the last one."""


class _Body(Protocol):
    """The body of an answer in one encoding."""

    @property
    def is_ended(self) -> bool: ...

    def feed(self, chunk: bytes) -> None: ...

    def load(self) -> Json:
        """Return the body without streaming. Raises UnreadableTrafficError."""


@dataclass(slots=True)
class AnswerAssembler:
    """Assembles one answer; a thread may read it while another one adds chunks."""

    status: int
    headers: Mapping[str, str]
    reader: AnswerReader
    _head: bytes = b""
    _body: _Body | None = None
    _answer: ModelAnswer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_ended(self) -> bool:
        """Whether the end of the body was seen."""
        return self._body is not None and self._body.is_ended

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing if the body ends now: some servers send no end event."""
        if self.is_ended or self.status >= 400:
            return True
        if self._body is None or isinstance(self._body, _JSONBody):
            return False
        try:
            with self._lock:
                body = self._body.load()
        except UnreadableTrafficError:
            return False
        return bool(body.get("error")) or self.reader.read(body).finish_reason is not None

    @property
    def answer(self) -> ModelAnswer:
        """The answer, of the chunks so far."""
        with self._lock:
            if self._answer is None:
                self._answer = self._read()
            return self._answer

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes."""
        with self._lock:
            self._answer = None
            if self._body is None:
                self._head += chunk
                self._body = self._choose_body(self._head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1])
                chunk = self._head
            if self._body is not None:
                self._body.feed(chunk)

    def _choose_body(self, first_byte: bytes) -> _Body | None:
        """Choose the encoding; by the first byte, because content types are often wrong."""
        if "vnd.amazon.eventstream" in self.headers.get("content-type", ""):
            return AWSEventBody(self.reader.assemble, self.reader.is_end)
        if not first_byte:
            return None
        if first_byte in b'{["<':
            return _JSONBody(self.reader, _get_length(self.headers))
        return _EventBody(self.reader)

    def _read(self) -> ModelAnswer:
        try:
            body = {} if self._body is None else self._body.load()
        except UnreadableTrafficError as error:
            return ModelAnswer(error=self._add_status(str(error)))
        if self.status >= 400:
            return ModelAnswer(error=self._add_status(_find_error(body) or "no reason given"))
        answer = self.reader.read(body)
        return dataclasses.replace(answer, error=_find_error({"error": body.get("error")}))

    def _add_status(self, message: str) -> str:
        return message if self.status < 400 else f"HTTP {self.status}: {message}"


@dataclass(slots=True)
class _BracketDepth:
    """Finds the bracket that closes a JSON value, without parsing it again at each chunk."""

    is_closed: bool = False
    _depth: int = 0
    _open_text: bytes = b""
    """The quote, and a backslash at the end, of a text that the next chunk continues."""

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes."""
        data, self._open_text = self._open_text + chunk, b""
        for token in _TOKENS.finditer(data):
            if token["bracket"]:
                self._depth += 1 if token["bracket"] in b"{[" else -1
                self.is_closed = self.is_closed or self._depth <= 0
            elif token["end"] != b'"':
                self._open_text = b'"' + token["end"]


# A text that ends with the chunk has no quote at its end, and perhaps half of an escape.
_TOKENS = re.compile(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?P<end>"|\\?\Z)|(?P<bracket>[{}\[\]])', re.DOTALL
)


@dataclass(slots=True)
class _JSONBody:
    """A JSON value; it ends with its length, or with its last bracket."""

    reader: AnswerReader
    length: int | None
    _chunks: list[bytes] = field(default_factory=list)
    _size: int = 0
    _depth: _BracketDepth = field(default_factory=_BracketDepth)

    @property
    def is_ended(self) -> bool:
        return self._depth.is_closed if self.length is None else self._size >= self.length

    def feed(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self.length is None:
            self._depth.feed(chunk)

    def load(self) -> Json:
        try:
            text = b"".join(self._chunks).decode("utf-8-sig")
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            return self._load_part(str(error))
        if isinstance(value, dict):
            return value
        if isinstance(value, list):
            return self._assemble(list_objects(value))
        raise UnreadableTrafficError("the body is not a JSON object")

    def _load_part(self, error: str) -> Json:
        """Return the complete items of a list of events, which Gemini sends without `alt=sse`."""
        text = b"".join(self._chunks).decode("utf-8-sig", "replace").lstrip()
        events = _decode_items(text) if text.startswith("[") else []
        if events:
            return self._assemble(events)
        if text.startswith(("{", "[")):
            raise UnreadableTrafficError(f"the body is incomplete or no JSON: {error}")
        raise UnreadableTrafficError(f"the body is not JSON: {text[:200]}")

    def _assemble(self, events: Sequence[Json]) -> Json:
        """Merge the items of a list, which are events or one error."""
        errors = {key: value for event in events for key, value in event.items() if key == "error"}
        return {**self.reader.assemble(events), **errors}


@dataclass(slots=True)
class _EventBody:
    """Server-sent events. They are split when they are needed, or when the last one is near."""

    reader: AnswerReader
    is_ended: bool = False
    _waiting: list[bytes] = field(default_factory=list)
    """Chunks that are not split yet."""
    _tail: bytes = b""
    """The last bytes, which may hold the first part of a mark."""
    _is_end_near: bool = False
    _splitter: Splitter = field(default_factory=Splitter)
    _events: list[bytes] = field(default_factory=list)

    def feed(self, chunk: bytes) -> None:
        self._waiting.append(chunk)
        if not self._is_end_near:
            window = self._tail + chunk
            self._tail = window[-_MAX_MARK_LENGTH:]
            for mark in self.reader.end_marks:
                if mark in window:
                    self._is_end_near = True
            self._is_end_near = self._is_end_near or b"[DONE]" in window
        if self._is_end_near:
            self._split()

    def _split(self) -> None:
        chunk = b"".join(self._waiting)
        self._waiting.clear()
        for event in self._splitter.feed(chunk):
            self._events.append(event)
            self.is_ended = self.is_ended or self._is_end(event)

    def load(self) -> Json:
        self._split()
        # The last empty line is missing in some streams, and in those that were cut off.
        events = [*self._events, self._splitter.rest]
        parsed = [data for event in events if (data := parse_data(event)) is not None]
        if not parsed and not self.is_ended:
            start = b"".join(events)[:200].decode("utf-8", "replace")
            raise UnreadableTrafficError(f"the body has no complete event: {start}")
        return self.reader.assemble(parsed)

    def _is_end(self, event: bytes) -> bool:
        if b"[DONE]" in event and get_data(event).strip() == b"[DONE]":
            return True
        if not any(mark in event for mark in self.reader.end_marks):
            return False
        data = parse_data(event)
        return data is not None and self.reader.is_end(data)


def _decode_items(text: str) -> list[Json]:
    """Return the complete objects of a list that is cut off."""
    decoder, at, items = json.JSONDecoder(), 0, []
    while separator := _SEPARATOR.match(text, at):
        try:
            item, at = decoder.raw_decode(text, separator.end())
        except (ValueError, RecursionError):
            break
        items.append(item)
    return list_objects(items)


_SEPARATOR = re.compile(r"\s*[\[,]\s*")


def _get_length(headers: Mapping[str, str]) -> int | None:
    """Return the length of the body; None if it is unknown, or that of an encoded body."""
    length = headers.get("content-length", "")
    is_encoded = headers.get("content-encoding", "identity") != "identity"
    if is_encoded or not re.fullmatch(r"\d{1,15}", length, re.ASCII):
        return None
    return int(length)


def _find_error(body: Json) -> str | None:
    """Return the message of an error body, in the shape of any provider."""
    error = body.get("error")
    found = (
        get_text(get_object(body, "error"), "message")
        or (clean_text(error) if isinstance(error, str) else None)
        or get_text(body, "message")
        or get_text(body, "detail")
        or (clean_text(json.dumps(error)) if error else None)
    )
    return found[:_MAX_ERROR_LENGTH] if found else None
