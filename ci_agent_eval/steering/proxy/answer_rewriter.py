"""Which rewriting an answer gets: by the path that was asked, and by what the answer is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ci_agent_eval.steering.proxy import chat, chat_stream, messages, responses, responses_stream
from ci_agent_eval.steering.proxy.error_response import Api
from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls
from ci_agent_eval.steering.proxy.sse import Json, Splitter, parse_object, render_compact_json

# Gateways put the paths of the APIs behind prefixes of their own. `/threads/ID/messages` of
# OpenAI's Assistants is another thing than Anthropic's `/v1/messages`.
_PATHS: Mapping[Api, re.Pattern[str]] = {
    "chat": re.compile(r"/chat/completions/?$"),
    "responses": re.compile(r"/responses/?$"),
    "messages": re.compile(r"/v1/messages/?$"),
}


def find_api(method: str, path: str) -> Api | None:
    """Return the API whose answers are rewritten; None for everything else that is asked."""
    if method != "POST":
        return None
    return next((api for api, pattern in _PATHS.items() if pattern.search(path)), None)


class EventStream(Protocol):
    """The rewriting of one stream of events."""

    def feed(self, raw: bytes) -> list[bytes]:
        """Return what the client gets now that this event is here."""

    def finish(self) -> list[bytes]:
        """Return what is still held: nothing more comes."""

    def release(self) -> list[bytes]:
        """Return all that is held, and let these calls through."""

    @property
    def held(self) -> list[bytes]:
        """The events that wait, as they came."""


@dataclass(slots=True)
class AnswerRewriter:
    """The rewriting of one answer, whole or streamed."""

    api: Api
    calls: ReviewedCalls
    output: responses.ResponseOutput = field(init=False)
    response_id: str | None = None
    given_up: str | None = None
    """Why the answer passes as it is, where something unforeseen happened."""

    def __post_init__(self) -> None:
        self.output = responses.ResponseOutput(self.calls)

    def rewrite(self, body: bytes) -> bytes | None:
        """Return a whole body with messages in place of calls; None where it stays as it is."""
        parsed = parse_object(body)
        if parsed is None:
            return None
        given = parsed.get("id")
        if isinstance(given, str) and self.api == "responses":
            self.response_id = given
        try:
            return render_compact_json(parsed) if self._rewrite(parsed) else None
        except Exception as error:  # noqa: BLE001 - steering must never lose what a model said
            self.given_up = f"unexpected {type(error).__name__}"
            return None

    def take_open_calls(self) -> list[responses.OpenCall]:
        """Return the steered calls that are new since this was asked last."""
        new, self.output.unanswered = self.output.unanswered, []
        return new

    def stream(self) -> EventStream:
        """Return what rewrites the events of this answer."""
        if self.api == "responses":
            return responses_stream.ResponsesStream(self.output, self._learn)
        makers: Mapping[Api, Callable[[ReviewedCalls], EventStream]] = {
            "chat": chat_stream.ChatStream,
            "messages": messages.MessagesStream,
        }
        return makers[self.api](self.calls)

    def _rewrite(self, parsed: Json) -> bool:
        if self.api == "responses":
            return self.output.rewrite(parsed)
        rewrite = chat.rewrite_completion if self.api == "chat" else messages.rewrite_message
        return rewrite(parsed, self.calls)

    def _learn(self, response_id: str) -> None:
        self.response_id = response_id


@dataclass(slots=True)
class EventRewriter:
    """Bytes of a stream in, bytes for the client out; `most` bytes are held and not more.

    When an event or a call is larger than that, or something unforeseen happens, the rest of
    the stream passes as it comes, and `given_up` says why.
    """

    stream: EventStream
    most: int
    given_up: str | None = None
    _splitter: Splitter = field(default_factory=Splitter)
    _held: int = 0

    def feed(self, chunk: bytes) -> bytes:
        """Return what the client gets now that these bytes are here."""
        if self.given_up is not None:
            return chunk
        out = [self._fed(raw) for raw in self._splitter.feed(chunk)]
        if self._held + self._splitter.waiting > self.most:
            out.append(self._give_up(f"more than {self.most} bytes would have to be held"))
        if self.given_up is not None:
            out.append(self._splitter.rest())
        return b"".join(out)

    def finish(self) -> bytes:
        """Return what is left when the stream has ended as it should."""
        rest = self._splitter.rest()
        if self.given_up is not None:
            return rest
        return (self._fed(rest) if rest else b"") + b"".join(self.stream.finish())

    def _fed(self, raw: bytes) -> bytes:
        if self.given_up is not None:
            return raw
        held = self.stream.held
        try:
            out = self.stream.feed(raw)
        except Exception as error:  # noqa: BLE001 - steering must never lose what a model said
            self.given_up = f"unexpected {type(error).__name__}"
            return b"".join([*held, raw])
        self._held = sum(map(len, self.stream.held))
        return b"".join(out)

    def _give_up(self, why: str) -> bytes:
        self.given_up = why
        return b"".join(self.stream.release())
