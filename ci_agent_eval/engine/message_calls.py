"""Requests to scripts, which have no traffic, as model calls of the running episode.

They are read from PydanticAI's messages.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelHTTPError, ModelRequestRejectedError
from pydantic_ai.messages import (
    BaseToolReturnPart,
    ModelMessage,
    ModelResponse,
    RetryFeedbackPart,
    SystemPromptPart,
    UserPromptPart,
)
from pydantic_ai.messages import ModelRequest as MessageRequest
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from ci_agent_eval.contract.jsonable import describe_error
from ci_agent_eval.engine.traffic import set_call_cost
from ci_agent_eval.engine.turns import compute_cost, convert_to_turns, render_text
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


class MessageCall(ModelCall):
    """A model call whose request and answer are known without its traffic."""

    _answer: ModelAnswer | None = None

    @classmethod
    def start(cls, recorder: TrafficRecorder, request: ModelRequest) -> MessageCall:
        """Start a call in an episode."""
        call = recorder.add_call(
            lambda number: cls(number, _FORMAT, "", b"", recorder.clock(), recorder)
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
        (turn,) = convert_to_turns([response])
        self._answer = ModelAnswer(
            model=response.model_name,
            text=turn.content,
            tool_calls=turn.tool_calls,
            tokens=turn.tokens,
            finish_reason=turn.finish_reason,
        )
        self.source, self.first_byte_s = "scripted", self._recorder.clock()
        set_call_cost(self, compute_cost(response))
        self.end()


class ScriptModel(WrapperModel):
    """Records the requests to a script as model calls of the active episode."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask the model. Raises ModelHTTPError if a limit of the episode refuses the request."""
        with self._start_call(messages, model_request_parameters) as call:
            response = await super().request(messages, model_settings, model_request_parameters)
            if call is not None:
                call.set_message(response)
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
            with self._start_call(messages, model_request_parameters) as call:
                stream = await stack.enter_async_context(opened)
            try:
                yield stream
            finally:
                if call is not None:
                    call.set_message(stream.get())

    @contextmanager
    def _start_call(
        self, messages: Sequence[ModelMessage], parameters: ModelRequestParameters
    ) -> Iterator[MessageCall | None]:
        recorder = None if attribution.is_suspended() else attribution.find_recorder()
        if recorder is None:
            yield None
            return
        call = MessageCall.start(recorder, _read_request(self.model_name, messages, parameters))
        with attribution.suspend_recording():
            if (answer := call.decide().answer) is not None:
                body = json.loads(b"".join(answer.chunks))["error"]
                raise ModelHTTPError.for_category(
                    ModelRequestRejectedError,
                    status_code=answer.status,
                    model_name=self.model_name,
                    body=body,
                )
            try:
                yield call
            except BaseException as error:
                call.end(describe_error(error))
                raise


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
            (turn,) = convert_to_turns([message])
            yield RequestMessage("assistant", turn.content, turn.tool_calls)
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
