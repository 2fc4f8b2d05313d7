"""The requests of PydanticAI's models as model calls.

The hooks record the traffic of most models. A script has none, nor has a protocol other than HTTP:
such requests and their answers are read from PydanticAI's messages.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelHTTPError, ModelRequestRejectedError
from pydantic_ai.messages import (
    BaseToolCallPart,
    BaseToolReturnPart,
    BinaryContent,
    FilePart,
    ModelMessage,
    ModelResponse,
    RetryFeedbackPart,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.messages import ModelRequest as MessageRequest
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from ci_agent_eval.contract.jsonable import clean_text, describe_error, to_jsonable
from ci_agent_eval.contract.trajectory import TokenUsage, ToolCall
from ci_agent_eval.engine.traffic import set_call_cost
from ci_agent_eval.model_traffic import attribution
from ci_agent_eval.model_traffic.formats.registry import FORMATS
from ci_agent_eval.model_traffic.messages import (
    ModelAnswer,
    ModelRequest,
    RequestMessage,
    ToolDefinition,
    ToolResult,
)
from ci_agent_eval.model_traffic.recorder import CallState, ModelCall, TrafficRecorder

_FORMAT = FORMATS["openai-chat"]
"""Stands for the format of the provider, which messages do not depend on."""

AddAnswer = Callable[[ModelResponse], None]
"""Records the response to a request."""


class MessageCall(ModelCall):
    """A model call whose request and answer are known without its traffic."""

    _answer: ModelAnswer | None = None

    @classmethod
    def start(
        cls, recorder: TrafficRecorder, request: ModelRequest, started_s: float
    ) -> MessageCall:
        """Start a call in an episode."""
        call = recorder.add_call(
            lambda number, owner: cls(number, _FORMAT, "", b"", started_s, owner)
        )
        call.request = request
        return call

    @property
    def answer(self) -> ModelAnswer | None:
        """The answer; None before it."""
        return self._answer

    def find_end_state(self, error: str | None) -> CallState:
        """Return whether there is an answer."""
        del error
        return "failed" if self._answer is None else "complete"

    def set_message(self, response: ModelResponse) -> None:
        """Record the response."""
        self._answer = _read_answer(response)
        self.first_byte_s = self._recorder.clock()
        set_call_cost(self, _compute_cost(response))
        self.end()


class RecordedModel(WrapperModel):
    """A model whose requests are model calls of the recorder of their context."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask the model. Raises ModelHTTPError if a limit of the episode refuses a script."""
        with self._record(messages, model_request_parameters) as add_answer:
            response = await super().request(messages, model_settings, model_request_parameters)
            add_answer(response)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Stream the model's answer, as `request`."""
        opened = super().request_stream(
            messages, model_settings, model_request_parameters, run_context
        )
        async with AsyncExitStack() as stack:
            # The code that reads the stream makes its own calls, and may close it in another
            # context, where no context variable of this one can be reset.
            with self._record(messages, model_request_parameters) as add_answer:
                stream = await stack.enter_async_context(opened)
            try:
                yield stream
            finally:
                add_answer(stream.get())

    @contextmanager
    def _record(
        self, messages: Sequence[ModelMessage], parameters: ModelRequestParameters
    ) -> Iterator[AddAnswer]:
        recorder = None if attribution.is_suspended() else attribution.find_recorder()
        if recorder is None:
            yield lambda _: None
            return
        started_s = recorder.clock()
        if is_scripted(self.wrapped):
            request = _read_request(self.model_name, messages, parameters)
            with self._ask_script(MessageCall.start(recorder, request, started_s)) as add_answer:
                yield add_answer
            return
        calls_before = len(recorder.calls)

        def add_unseen_answer(response: ModelResponse) -> None:
            if len(recorder.calls) == calls_before:
                request = _read_request(self.model_name, messages, parameters)
                MessageCall.start(recorder, request, started_s).set_message(response)

        yield add_unseen_answer

    @contextmanager
    def _ask_script(self, call: MessageCall) -> Iterator[AddAnswer]:
        call.source = "scripted"
        with attribution.suspend_recording():
            if (answer := call.decide().answer) is not None:
                raise ModelHTTPError.for_category(
                    ModelRequestRejectedError,
                    status_code=answer.status,
                    model_name=self.model_name,
                    body=json.loads(b"".join(answer.chunks))["error"],
                )
            try:
                yield call.set_message
            except BaseException as error:
                call.end(describe_error(error))
                raise


def is_scripted(model: Model) -> bool:
    """Return whether the model is a script, without importing its (slow) modules."""
    while isinstance(model, WrapperModel):
        model = model.wrapped
    for name, kind in (("function", "FunctionModel"), ("test", "TestModel")):
        module = sys.modules.get(f"pydantic_ai.models.{name}")
        if module is not None and isinstance(model, getattr(module, kind)):
            return True
    return False


def _read_request(
    model: str, messages: Sequence[ModelMessage], parameters: ModelRequestParameters
) -> ModelRequest:
    output = parameters.output_object if parameters.output_mode == "native" else None
    tools = [*parameters.function_tools, *parameters.output_tools]
    return ModelRequest(
        format=_FORMAT.name,
        model=model,
        messages=tuple(_read_messages(messages)),
        tools=tuple(
            ToolDefinition(
                tool.name, tool.parameters_json_schema, description=tool.description or ""
            )
            for tool in tools
        ),
        output_schema=None if output is None else output.json_schema,
    )


def _read_messages(messages: Sequence[ModelMessage]) -> Iterator[RequestMessage]:
    requests = [message for message in messages if isinstance(message, MessageRequest)]
    if requests and requests[-1].instructions:
        yield RequestMessage("system", requests[-1].instructions)
    for message in messages:
        if isinstance(message, ModelResponse):
            answer = _read_answer(message)
            yield RequestMessage("assistant", answer.text, answer.tool_calls)
        else:
            yield from (read for part in message.parts if (read := _read_part(part)) is not None)


def _read_part(part: object) -> RequestMessage | None:
    if isinstance(part, SystemPromptPart):
        return RequestMessage("system", part.content)
    if isinstance(part, UserPromptPart | RetryFeedbackPart):
        return RequestMessage("user", render_text(part.content))
    if isinstance(part, BaseToolReturnPart):
        is_error = part.outcome != "success"
        text = part.model_response_str()
        result = ToolResult(part.tool_call_id, part.tool_name, text, is_error)
        return RequestMessage("tool", tool_results=(result,))
    return None


def _read_answer(response: ModelResponse) -> ModelAnswer:
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    files = [render_text(part.content) for part in response.parts if isinstance(part, FilePart)]
    calls = (part for part in response.parts if isinstance(part, BaseToolCallPart))
    usage = response.usage
    return ModelAnswer(
        model=response.model_name,
        text=clean_text("\n".join([text, *files] if text else files)),
        tool_calls=tuple(map(_read_call, calls)),
        tokens=None
        if usage.unmeasured_requests
        else TokenUsage(
            input=usage.input_tokens, output=usage.output_tokens, cached=usage.cache_read_tokens
        ),
        finish_reason=response.finish_reason,
    )


def _read_call(part: BaseToolCallPart) -> ToolCall:
    return ToolCall(
        id=clean_text(part.tool_call_id),
        name=clean_text(part.tool_name),
        arguments=_parse_arguments(part.args),
    )


def _parse_arguments(args: str | Mapping[str, Any] | None) -> Any:
    """Parse arguments; a text that is not JSON stays as the model wrote it."""
    if not isinstance(args, str):
        return to_jsonable(args)
    try:
        return to_jsonable(json.loads(args))
    except (ValueError, RecursionError):
        return clean_text(args)


def _compute_cost(response: ModelResponse) -> float | None:
    """Return the cost of a response in US dollars; None if price or usage is unknown."""
    usage = response.usage
    if usage.unmeasured_requests:
        return None
    if usage.cost is not None:
        return float(usage.cost)
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None


def render_text(content: object) -> str:
    """Return the content of a message's part as text."""
    if isinstance(content, str):
        return clean_text(content)
    plain = convert_content(content)
    parts = plain if isinstance(plain, list) else [plain]
    return "\n".join(p if isinstance(p, str) else json.dumps(p, sort_keys=True) for p in parts)


def convert_content(content: object) -> Any:
    """Convert content to JSON; a file becomes a note of its type and size."""
    if isinstance(content, BinaryContent):
        return f"<{content.media_type}, {len(content.data)} bytes>"
    if isinstance(content, list | tuple):
        return [convert_content(item) for item in content]
    return to_jsonable(content)
