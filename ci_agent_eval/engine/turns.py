"""Conversion of PydanticAI's messages to turns."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue
from pydantic_ai.messages import (
    BaseToolCallPart,
    BaseToolReturnPart,
    BinaryContent,
    FilePart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel

from ci_agent_eval.contract.jsonable import clean_text, to_jsonable
from ci_agent_eval.contract.trajectory import Role, TestRunExtent, TokenUsage, ToolCall, Turn
from ci_agent_eval.engine.traffic import compute_call_cost, set_call_cost
from ci_agent_eval.model_traffic import attribution, hooks
from ci_agent_eval.model_traffic.conversations import find_usable_answer
from ci_agent_eval.model_traffic.pricing import is_known_address
from ci_agent_eval.model_traffic.recorder import ModelCall, TrafficRecorder
from ci_agent_eval.model_traffic.trajectory import build_answer_fields

CallKey = tuple[int, str]
"""Number of the response that requested the call (from 1), and the call's id.

Ids alone are not unique: some models restart them in each response.
"""


@dataclass(frozen=True, slots=True)
class CallNote:
    """Data of a tool call that the messages may lack."""

    duration_ms: float | None = None
    result: Any = None
    error: str | None = None
    steered_by: str | None = None
    """The handler that held back the call."""
    test_run: TestRunExtent | None = None
    """Extent of the pytest run that steering recognised."""


@dataclass
class RunNotes:
    """Data of a run that its messages lack."""

    answers: list[Mapping[str, Any]] = field(default_factory=list)
    """What is known of each response besides its text and tool calls, as fields of its turn."""
    calls: dict[CallKey, CallNote] = field(default_factory=dict)
    output_tools: set[str] = field(default_factory=set)
    """Tools that carry the agent's typed output."""
    output: str | None = None
    """The typed output as text, set at the end of the run."""
    typed_output: JsonValue = None
    """The typed output as JSON."""


def convert_to_turns(
    messages: Sequence[ModelMessage], notes: RunNotes | None = None
) -> tuple[Turn, ...]:
    """Convert each prompt and response to a turn, with tool calls and results.

    A typed output is the text of its turn, and its tool is not a tool call.
    """
    notes = notes or RunNotes()
    turns: list[Turn] = []
    last = -1
    answers = iter(notes.answers)
    for message in messages:
        if isinstance(message, ModelResponse):
            last = len(turns)
            turns.append(_build_agent_turn(message, notes, next(answers, {})))
            turns[last] = _add_results(turns[last], message.parts)
            continue
        if last >= 0:
            turns[last] = _add_results(turns[last], message.parts)
        turns.extend(_build_prompt_turns(message, notes.output_tools))
    if notes.output is not None and last >= 0:
        output = {"content": notes.output, "typed_output": notes.typed_output}
        turns[last] = turns[last].model_copy(update=output)
    numbers = itertools.count(1)
    return tuple(
        _add_notes(turn, notes.calls, next(numbers)) if turn.role == "assistant" else turn
        for turn in turns
    )


def _build_prompt_turns(message: ModelRequest, output_tools: Collection[str]) -> Iterable[Turn]:
    """Yield the prompts of the user and the retry requests of the loop."""
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            yield _build_prompt_turn("user", part.content)
        elif isinstance(part, RetryFeedbackPart):
            yield _build_prompt_turn("system", part.content)
        elif isinstance(part, ToolReturnPart) and part.tool_name in output_tools:
            yield from _build_feedback_turns(part)


def _build_feedback_turns(part: ToolReturnPart) -> Iterable[Turn]:
    """Yield the feedback on an invalid typed output."""
    if part.outcome != "success":
        yield _build_prompt_turn("system", part.content)


def _build_prompt_turn(role: Role, content: object) -> Turn:
    return Turn(role=role, content=render_text(content))


def render_text(content: object) -> str:
    """Return the content of a message's part as text."""
    if isinstance(content, str):
        return clean_text(content)
    plain = _convert_content(content)
    parts = plain if isinstance(plain, list) else [plain]
    return "\n".join(p if isinstance(p, str) else json.dumps(p, sort_keys=True) for p in parts)


def _build_agent_turn(response: ModelResponse, notes: RunNotes, answer: Mapping[str, Any]) -> Turn:
    calls = [part for part in response.parts if isinstance(part, BaseToolCallPart)]
    outputs = [part for part in calls if part.tool_name in notes.output_tools]
    output_text = "\n".join(part.args_as_json_str() for part in outputs)
    fields = {
        "tokens": read_tokens(response),
        "source": "live",
        **answer,
        "finish_reason": _get_finish_reason(response) or answer.get("finish_reason"),
    }
    return Turn(
        role="assistant",
        content=clean_text(output_text or _get_response_text(response)),
        tool_calls=tuple(_convert_call(part) for part in calls if part not in outputs),
        **fields,
    )


def read_tokens(response: ModelResponse) -> TokenUsage | None:
    """Return the tokens; None if the response was not measured."""
    usage = response.usage
    if usage.unmeasured_requests:
        return None
    return TokenUsage(
        input=usage.input_tokens, output=usage.output_tokens, cached=usage.cache_read_tokens
    )


def compute_cost(response: ModelResponse) -> float | None:
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


def _get_response_text(response: ModelResponse) -> str:
    """Return the response's text and attachments, or the text of a refusal."""
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    files = [render_text(part.content) for part in response.parts if isinstance(part, FilePart)]
    refusal = (response.provider_details or {}).get("refusal")
    text_and_files = "\n".join([text, *files] if text else files)
    return text_and_files or (refusal if isinstance(refusal, str) else "")


def _get_finish_reason(response: ModelResponse) -> str | None:
    """Return the finish reason; a value unknown to PydanticAI as the provider gave it."""
    reason = (response.provider_details or {}).get("finish_reason")
    return response.finish_reason or (clean_text(reason) if isinstance(reason, str) else None)


def _convert_call(part: BaseToolCallPart) -> ToolCall:
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


def _add_results(turn: Turn, parts: Iterable[object]) -> Turn:
    """Add the results in `parts` to a turn, by call id and in order."""
    calls = list(turn.tool_calls)
    waiting = list(range(len(calls)))
    for part in parts:
        if not isinstance(part, BaseToolReturnPart):
            continue
        wanted = clean_text(part.tool_call_id)
        place = next((i for i in waiting if calls[i].id == wanted), None)
        if place is not None:
            waiting.remove(place)
            calls[place] = calls[place].model_copy(update=_convert_result(part))
    return turn.model_copy(update={"tool_calls": tuple(calls)})


def _convert_result(part: BaseToolReturnPart[Any]) -> dict[str, Any]:
    content = part.content
    if part.outcome == "success":
        return {"result": _convert_content(content)}
    return {"error": render_text(content)}


def _convert_content(content: object) -> Any:
    """Convert content to JSON; a file becomes a note of its type and size."""
    if isinstance(content, BinaryContent):
        return f"<{content.media_type}, {len(content.data)} bytes>"
    if isinstance(content, list | tuple):
        return [_convert_content(item) for item in content]
    return to_jsonable(content)


def _add_notes(turn: Turn, notes: Mapping[CallKey, CallNote], answer: int) -> Turn:
    """Add durations, and results that no message has, to a turn."""
    if not turn.tool_calls or not notes:
        return turn
    calls = tuple(_add_note(call, notes.get((answer, call.id or ""))) for call in turn.tool_calls)
    return turn.model_copy(update={"tool_calls": calls})


def _add_note(call: ToolCall, note: CallNote | None) -> ToolCall:
    if note is None:
        return call
    fields: dict[str, Any] = {
        "duration_ms": note.duration_ms,
        "steered_by": note.steered_by,
        "test_run": note.test_run,
    }
    if call.result is None and call.error is None:
        fields |= {"result": note.result, "error": note.error}
    return call.model_copy(update=fields)


class OwnModel(WrapperModel):
    """A model whose requests a recorder of their own records."""

    def __init__(self, wrapped: Model, recorder: TrafficRecorder) -> None:
        super().__init__(wrapped)
        self.recorder = recorder

    async def request(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Send the request."""
        count = len(self.recorder.calls)
        with _record_calls(self.recorder):
            response = await super().request(*args, **kwargs)
        if calls := self.recorder.calls[count:]:
            _set_cost(response, calls[-1])
        return response

    @asynccontextmanager
    async def request_stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[StreamedResponse]:
        """Stream the response; the code that reads it makes its own calls."""
        opened = super().request_stream(*args, **kwargs)
        async with AsyncExitStack() as stack:
            with _record_calls(self.recorder):
                stream = await stack.enter_async_context(opened)
            yield stream


@contextmanager
def _record_calls(recorder: TrafficRecorder) -> Iterator[None]:
    with hooks.use(), attribution.suspend_recording(False), attribution.use_recorder(recorder):
        yield


def read_answer(response: ModelResponse, call: ModelCall | None) -> dict[str, Any]:
    """Return what the traffic of a response shows, as fields of its turn; without a call less."""
    answer = None if call is None else find_usable_answer(call)
    if call is None or answer is None:
        return {"tokens": read_tokens(response), "cost_usd": compute_cost(response)}
    fields = build_answer_fields(call, answer, call.head, compute_call_cost)
    return {**fields, "tokens": answer.tokens or read_tokens(response)}


def _set_cost(response: ModelResponse, call: ModelCall) -> None:
    """Set the cost of a call where PydanticAI knows more than the table of prices.

    These are a cost that the provider reports, and the service tiers of an address.
    """
    is_known = response.usage.cost is not None or is_known_address(call.url)
    if not is_known and compute_call_cost(call) is not None:
        return
    if (cost_usd := compute_cost(response)) is not None:
        set_call_cost(call, cost_usd, is_vendor_price=not is_known)
