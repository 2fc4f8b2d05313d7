"""Rewriting of answers, selected by the request's path and the answer's format."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ci_agent_eval.model_traffic.formats.json_values import Json, parse_object, render_compact_json
from ci_agent_eval.model_traffic.formats.sse import Splitter
from ci_agent_eval.steering.proxy import chat, chat_stream, messages, responses, responses_stream
from ci_agent_eval.steering.proxy.error_response import Api
from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls

# Gateways add prefixes to the paths of the APIs. `/threads/ID/messages` of OpenAI's Assistants
# is not Anthropic's `/v1/messages`.
_PATHS: Mapping[Api, re.Pattern[str]] = {
    "chat": re.compile(r"/chat/completions/?$"),
    "responses": re.compile(r"/responses/?$"),
    "messages": re.compile(r"/v1/messages/?$"),
}


def find_api(method: str, path: str) -> Api | None:
    """Return the API of a request with a rewritten answer; None for other requests."""
    if method != "POST":
        return None
    return next((api for api, pattern in _PATHS.items() if pattern.search(path)), None)


class EventStream(Protocol):
    """A rewriter of one stream of events."""

    def feed(self, raw: bytes) -> list[bytes]:
        """Process an event; return the events to send now."""

    def finish(self) -> list[bytes]:
        """Decide on all calls at the end of the stream; return the held events."""

    def release(self) -> list[bytes]:
        """Return the held events and let their calls through, as the last call of all."""

    @property
    def held_events(self) -> list[bytes]:
        """The unchanged events that are not sent yet."""


@dataclass(slots=True)
class AnswerRewriter:
    """A rewriter of one answer, complete or streamed."""

    api: Api
    calls: ReviewedCalls
    output: responses.ResponseOutput = field(init=False)
    response_id: str | None = None
    bypass_reason: str | None = None
    """The reason for an unchanged answer after an unexpected error."""

    def __post_init__(self) -> None:
        self.output = responses.ResponseOutput(self.calls)

    def rewrite(self, body: bytes) -> bytes | None:
        """Return a body with messages in place of steered calls; None if it is unchanged."""
        parsed = parse_object(body)
        if parsed is None:
            return None
        response_id = parsed.get("id")
        if isinstance(response_id, str) and self.api == "responses":
            self.response_id = response_id
        try:
            return render_compact_json(parsed) if self._rewrite(parsed) else None
        except Exception as error:  # noqa: BLE001 - an error of steering must not lose an answer
            self.bypass_reason = f"unexpected {type(error).__name__}"
            return None

    def take_open_calls(self) -> list[responses.OpenCall]:
        """Return and clear the calls steered since the last call of this method."""
        new, self.output.open_calls = self.output.open_calls, []
        return new

    def create_stream(self) -> EventStream:
        """Return a rewriter for the events of this answer."""
        if self.api == "responses":
            return responses_stream.ResponsesStream(self.output, self._set_response_id)
        streams: Mapping[Api, Callable[[ReviewedCalls], EventStream]] = {
            "chat": chat_stream.ChatStream,
            "messages": messages.MessagesStream,
        }
        return streams[self.api](self.calls)

    def _rewrite(self, parsed: Json) -> bool:
        if self.api == "responses":
            return self.output.rewrite(parsed)
        rewrite = chat.rewrite_completion if self.api == "chat" else messages.rewrite_message
        return rewrite(parsed, self.calls)

    def _set_response_id(self, response_id: str) -> None:
        self.response_id = response_id


@dataclass(slots=True)
class EventRewriter:
    """Rewrites the bytes of a stream and holds at most `max_held_bytes`.

    After a larger event or call, or an unexpected error, the rest of the stream passes
    unchanged, and `bypass_reason` is set.
    """

    stream: EventStream
    max_held_bytes: int
    bypass_reason: str | None = None
    _splitter: Splitter = field(default_factory=Splitter)
    _held_bytes: int = 0

    def feed(self, chunk: bytes) -> bytes:
        """Process a chunk of the stream; return the bytes to send now."""
        if self.bypass_reason is not None:
            return chunk
        out = [self._feed_event(raw) for raw in self._splitter.feed(chunk)]
        if self._held_bytes + self._splitter.pending_bytes > self.max_held_bytes:
            out.append(
                self._start_bypass(f"more than {self.max_held_bytes} bytes would have to be held")
            )
        if self.bypass_reason is not None:
            out.append(self._splitter.take_rest())
        return b"".join(out)

    def finish(self) -> bytes:
        """Return the remaining bytes after the regular end of the stream."""
        rest = self._splitter.take_rest()
        if self.bypass_reason is not None:
            return rest
        return (self._feed_event(rest) if rest else b"") + b"".join(self.stream.finish())

    def _feed_event(self, raw: bytes) -> bytes:
        if self.bypass_reason is not None:
            return raw
        held_events = self.stream.held_events
        try:
            out = self.stream.feed(raw)
        except Exception as error:  # noqa: BLE001 - an error of steering must not lose an answer
            self.bypass_reason = f"unexpected {type(error).__name__}"
            return b"".join([*held_events, raw])
        self._held_bytes = sum(map(len, self.stream.held_events))
        return b"".join(out)

    def _start_bypass(self, reason: str) -> bytes:
        self.bypass_reason = reason
        return b"".join(self.stream.release())
