"""A format of model APIs: a table of functions, and what follows from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.model_traffic.formats.assembler import AnswerAssembler, AnswerReader
from ci_agent_eval.model_traffic.formats.canonical_key import KeyRules, build_canonical_key
from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    UnreadableTrafficError,
    get_object,
    get_text,
    parse_object,
    pick_settings,
    render_compact_json,
)
from ci_agent_eval.model_traffic.messages import (
    FormatName,
    ModelRequest,
    RequestHead,
    RequestMessage,
    ToolDefinition,
)


@dataclass(frozen=True, slots=True)
class HTTPAnswer:
    """An HTTP answer that we give instead of the provider."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case; without `content-length`."""
    chunks: tuple[bytes, ...] = ()
    """The body in the pieces in which it is sent; a stream has one for each event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Reads and writes one HTTP format. The functions read any JSON, whatever its shape."""

    name: FormatName
    """The name in records and cassettes."""
    path: re.Pattern[str]
    """Pattern in the path of its requests, after any prefix."""
    streamed_path: re.Pattern[str] | None = None
    """Pattern in the path of a request for a stream, if the path tells it."""
    conversation: str = "messages"
    """Key of a request that holds the conversation."""
    get_model: Callable[[str, Json], str | None]
    """Returns the model that a path and a request name."""
    settings: str
    """Names of the sampling settings, separated by spaces."""
    get_settings: Callable[[Json], Json] = lambda request: request
    """Returns the object with the sampling settings."""
    get_schema: Callable[[Json], object]
    """Returns the JSON schema of the typed output."""
    read_messages: Callable[[Json], Iterable[RequestMessage]]
    read_tools: Callable[[Json], Iterable[ToolDefinition]]
    reader: AnswerReader
    key_rules: KeyRules
    build_error: Callable[[str], Json]
    """Builds the body of a refusal with the message, in the provider's own shape."""
    refusal_headers: Mapping[str, str] = field(default_factory=dict)

    def parse_head(self, path: str, body: bytes) -> RequestHead:
        """Parse a request without its messages and tools. Raises UnreadableTrafficError."""
        return self._read_head(path, self._parse(body))

    def parse_request(self, path: str, body: bytes) -> ModelRequest:
        """Parse a request. Raises UnreadableTrafficError."""
        request = self._parse(body)
        head = self._read_head(path, request)
        in_path = self.streamed_path is not None and bool(self.streamed_path.search(path))
        return ModelRequest(
            format=self.name,
            model=head.model,
            settings=head.settings,
            output_schema=head.output_schema,
            messages=tuple(self.read_messages(request)),
            tools=tuple(self.read_tools(request)),
            is_streamed=in_path or request.get("stream") is True,
            previous_response_id=_get_stored_conversation(request),
        )

    def create_assembler(self, status: int, headers: Mapping[str, str]) -> AnswerAssembler:
        """Create the assembler of an answer; header names are in lower case."""
        return AnswerAssembler(status, headers, self.reader)

    def build_refusal(self, message: str) -> HTTPAnswer:
        """Build the refusal that no client retries: status 400 in the provider's own shape.

        A 429 is retried by Strands and smolagents. `x-should-retry` is the header of OpenAI's and
        Anthropic's clients.
        """
        headers = {"content-type": "application/json", "x-should-retry": "false"}
        body = render_compact_json(self.build_error(message))
        return HTTPAnswer(400, {**headers, **self.refusal_headers}, (body,))

    def build_key(self, path: str, body: bytes) -> str:
        """Return the canonical JSON of a request for replay: equal requests give equal texts.

        Ids that vary between runs are numbered by first appearance; transport options, host and
        headers are left out. Raises UnreadableTrafficError.
        """
        request = self._parse(body)
        return build_canonical_key(
            self.name, self.get_model(path, request), request, self.key_rules
        )

    def _parse(self, body: bytes) -> Json:
        request = parse_object(body)
        if request is None:
            raise UnreadableTrafficError("the body is not a JSON object")
        # A stored prompt may have all of the conversation.
        shape = list if self.conversation != "input" else (list, str, type(None))
        if not isinstance(request.get(self.conversation), shape):
            raise UnreadableTrafficError(f"`{self.conversation}` is not a list")
        return request

    def _read_head(self, path: str, request: Json) -> RequestHead:
        return RequestHead(
            model=self.get_model(path, request),
            settings=pick_settings(self.get_settings(request), self.settings.split()),
            output_schema=to_jsonable(self.get_schema(request)),
        )


def _get_stored_conversation(request: Json) -> str | None:
    """Return the id of the answer or the conversation at the provider that a request continues."""
    conversation = get_object(request, "conversation") or {"id": request.get("conversation")}
    return get_text(request, "previous_response_id") or get_text(conversation, "id")
