"""Assembling of an answer's chunks: JSON, server-sent events, or AWS event streams.

While chunks arrive, only the end of the body is looked for. The answer is parsed when it is needed.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.model_traffic.formats.aws_events import read_aws_events
from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    UnreadableTrafficError,
    get_object,
    get_text,
    list_objects,
)
from ci_agent_eval.model_traffic.formats.sse import Splitter, parse_data
from ci_agent_eval.model_traffic.messages import ModelAnswer

_MAX_ERROR_LENGTH = 2000
_MAX_MARK_LENGTH = 60
_DONE = re.compile(rb"^data: ?\[DONE\]", re.MULTILINE)
_JSON_STARTS = (b"{", b"[", b'"', b"<")
"""First bytes of JSON, and of the pages that stand in its place."""
_EMPTY_LINE = re.compile(rb"\n\r?\n|\r\r")


@dataclass(frozen=True, slots=True)
class AnswerReader:
    """Reads the answers of one format."""

    assemble: Callable[[Sequence[Json]], Json]
    """Merges the events of a stream into the body that the same answer has without streaming."""
    read: Callable[[Json], ModelAnswer]
    """Reads a body."""
    end_mark: re.Pattern[bytes] = _DONE
    """Pattern in the last event of a stream; without one, a stream ends with its connection."""


@dataclass(slots=True)
class AnswerAssembler:
    """Assembles one answer."""

    status: int
    headers: Mapping[str, str]
    reader: AnswerReader
    is_ended: bool = False
    """Whether the length of the body or the end of its last event was seen."""
    _body: bytearray = field(default_factory=bytearray)
    _mark: int | None = None
    """Place of the end mark."""
    _answer: ModelAnswer | None = None

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing if the body ends now: some servers send no end event."""
        if self.is_ended or self.status >= 400:
            return True
        try:
            body = self._load()
        except UnreadableTrafficError:
            return False
        has_end = bool(body.get("error")) or self.reader.read(body).finish_reason is not None
        return has_end or self._text[:1] == b"{"

    @property
    def answer(self) -> ModelAnswer:
        """The answer, of the chunks so far."""
        if self._answer is None:
            self._answer = self._read()
        return self._answer

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes."""
        start = max(0, len(self._body) - _MAX_MARK_LENGTH)
        self._body += chunk
        self._answer = None
        length = self.headers.get("content-length", "")
        is_encoded = self.headers.get("content-encoding", "identity") != "identity"
        if re.fullmatch(r"\d{1,15}", length, re.ASCII) and not is_encoded:
            self.is_ended = len(self._body) >= int(length) and self._text[:1] in _JSON_STARTS
        if self._mark is None and (mark := self.reader.end_mark.search(self._body, start)):
            self._mark = mark.start()
        if self._mark is not None:
            self.is_ended = _EMPTY_LINE.search(self._body, self._mark) is not None

    @property
    def _text(self) -> bytes:
        return bytes(self._body).removeprefix(b"\xef\xbb\xbf").lstrip()

    def _read(self) -> ModelAnswer:
        try:
            body = self._load()
        except UnreadableTrafficError as error:
            return ModelAnswer(error=self._add_status(str(error)))
        if self.status >= 400:
            return ModelAnswer(error=self._add_status(_find_error(body) or "no reason given"))
        answer = self.reader.read(body)
        return dataclasses.replace(answer, error=_find_error({"error": body.get("error")}))

    def _add_status(self, message: str) -> str:
        return message if self.status < 400 else f"HTTP {self.status}: {message}"

    def _load(self) -> Json:
        """Return the body as it is without streaming. Raises UnreadableTrafficError."""
        text = self._text
        if "vnd.amazon.eventstream" in self.headers.get("content-type", ""):
            return self.reader.assemble(read_aws_events(bytes(self._body)))
        if not text:
            return {}
        if text[:1] in _JSON_STARTS:  # content types are often wrong
            return self._load_json(text)
        splitter = Splitter()
        # The last empty line is missing in some streams, and in those that were cut off.
        raw = [*splitter.feed(text), splitter.take_rest()]
        events = [data for one in raw if (data := parse_data(one)) is not None]
        if not events and not self.is_ended:
            raise UnreadableTrafficError(f"the body has no complete event: {_show(text)}")
        return self.reader.assemble(events)

    def _load_json(self, text: bytes) -> Json:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return value
        if not isinstance(value, list):
            raise UnreadableTrafficError(f"the body is no complete JSON: {_show(text)}")
        # Gemini sends a list of events without `alt=sse`, or of one error.
        events = list_objects(value)
        errors = {key: item for event in events for key, item in event.items() if key == "error"}
        return {**self.reader.assemble(events), **errors}


def _show(text: bytes) -> str:
    return text[:200].decode("utf-8", "replace")


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
