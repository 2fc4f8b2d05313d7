"""The record of a run of PydanticAI: its progress, and its tool calls with their durations."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import RunContext, ToolReturn
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import (
    BaseToolCallPart,
    BaseToolReturnPart,
    BinaryContent,
    ModelMessage,
    ModelResponse,
    tool_return_content_ta,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from ci_agent_eval.contract.fields import field_error
from ci_agent_eval.contract.jsonable import clean_text, describe_error, to_jsonable
from ci_agent_eval.contract.measurement import convert_to_ms
from ci_agent_eval.contract.trajectory import TestRunExtent, ToolCall, Turn
from ci_agent_eval.engine.cassette.players import ToolPlayer
from ci_agent_eval.engine.declarations import Agent, CLIServer, MCPServer
from ci_agent_eval.engine.limits import Clock
from ci_agent_eval.engine.model_calls import convert_content, render_text
from ci_agent_eval.engine.result import ImageContent
from ci_agent_eval.engine.traffic import RunTraffic
from ci_agent_eval.model_traffic.recorder import TrafficRecorder
from ci_agent_eval.model_traffic.trajectory import TrafficTurn
from ci_agent_eval.recording.faults import (
    EpisodeFaults,
    InjectedFaultError,
    start_fault,
)

CallKey = tuple[int, str]
"""Number of the response that requested the call (from 1), and the call's id.

Ids alone are not unique: some models restart them in each response.
"""


@dataclass(kw_only=True)
class RunRecord:
    """The progress of a run, and the data that its model traffic lacks."""

    clock: Clock
    responses: list[tuple[BaseToolCallPart, ...]] = field(default_factory=list)
    """The tool calls of each response of the model."""
    is_requesting: bool = False
    """Whether a model request is open."""
    broken_tool: str | None = None
    """The tool whose call raised an error that PydanticAI does not pass to the model."""
    is_own_tool: bool = False
    """Whether that tool is the agent's code, not a tool server's."""
    has_servers: bool = True
    """Whether the agent has tool servers."""
    has_own_code: bool = True
    """Whether its tools and instructions may be code of its own; not of a declared agent."""
    tool_player: ToolPlayer | None = None
    """Replays or records tool calls, if the cassette holds them."""
    traffic: RunTraffic
    faults: EpisodeFaults = field(default_factory=EpisodeFaults)
    """The episode's faults on purpose."""
    images: list[tuple[str, ImageContent]] = field(default_factory=list)
    """The images that tools returned, each with its tool."""
    check_tools: Callable[[], None] = lambda: None
    """Called before each request, when the tools have been listed. Raises InputError."""
    available_tools: tuple[str, ...] = ()
    """The tools in the last request."""
    calls: dict[CallKey, dict[str, Any]] = field(default_factory=dict)
    """What is known of tool calls besides their traffic, as fields of them."""
    _numbers: dict[int, int] = field(default_factory=dict)
    """Numbers of the agent's responses, by those of their model calls."""

    @property
    def response_count(self) -> int:
        """Number of responses of the model."""
        return len(self.responses)

    def begin_turn(self) -> None:
        """Record the beginning of the agent's next turn, whose instructions may be own code."""
        self.is_requesting = not self.has_own_code

    def begin_request(self, parameters: ModelRequestParameters) -> None:
        """Record that the model is asked."""
        self.check_tools()
        self.is_requesting = True
        self.available_tools = tuple(tool.name for tool in parameters.function_tools)
        self.traffic.output_tools.update(tool.name for tool in parameters.output_tools)

    def add_response(self, response: ModelResponse) -> None:
        """Record a response of the model, which its last call gave."""
        self.is_requesting = False
        parts = (part for part in response.parts if isinstance(part, BaseToolCallPart))
        self.responses.append(tuple(parts))
        self._numbers[len(self.traffic.calls)] = self.response_count

    def add_outcomes(self, messages: Iterable[ModelMessage]) -> None:
        """Record the results and errors of tool calls, as the model got them."""
        answer = 0
        for message in messages:
            answer += isinstance(message, ModelResponse)
            for part in message.parts:
                if not isinstance(part, BaseToolReturnPart):
                    continue
                if part.outcome == "success":
                    outcome = {"result": convert_content(part.content), "error": None}
                else:
                    outcome = {"result": None, "error": render_text(part.content)}
                self._update_call((answer, part.tool_call_id), **outcome)

    def complete_turn(self, seen: TrafficTurn) -> Iterator[Turn]:
        """Yield a turn with the data that its traffic lacks, and the feedback on a typed output.

        A typed output is the text of its turn, and its tool is not a tool call.
        """
        turn, answer = seen.turn, self._numbers.get(seen.call_number)
        if turn.role != "assistant" or answer is None:
            yield turn
            return
        parts = _pair_calls(turn.tool_calls, self.responses[answer - 1])
        outputs = [(call, part) for call, part in parts if call.name in self.traffic.output_tools]
        update: dict[str, Any] = {
            "tool_calls": tuple(
                self._complete_call(call, part, answer)
                for call, part in parts
                if call.name not in self.traffic.output_tools
            )
        }
        if outputs:
            update["content"] = "\n".join(render_text(call.arguments) for call, _ in outputs)
        yield turn.model_copy(update=update)
        for _, part in outputs:
            error = self.calls.get((answer, part.tool_call_id), {}).get("error") if part else None
            if error is not None:
                yield Turn(role="system", content=error, agent=turn.agent)

    def _complete_call(
        self, call: ToolCall, part: BaseToolCallPart | None, answer: int
    ) -> ToolCall:
        if part is None:
            return call
        fields = self.calls.get((answer, part.tool_call_id), {})
        call_id = clean_text(part.tool_call_id)
        return call.model_copy(update={"id": call_id, "result_unseen": False, **fields})

    def add_call(
        self, call_id: str | None, started: float, *, result: Any = None, error: str | None = None
    ) -> None:
        """Record the result and duration of a call."""
        self._update_call(
            (self.response_count, call_id),
            duration_ms=convert_to_ms(self.clock() - started),
            result=to_jsonable(result),
            error=error,
        )

    def add_held_call(self, call_id: str | None, message: str, handler: str) -> None:
        """Record a held-back call and the message that the agent got as its result."""
        key = (self.response_count, call_id)
        self._update_call(key, result=clean_text(message), steered_by=handler)

    def add_test_run(self, call_id: str | None, extent: TestRunExtent) -> None:
        """Record the extent of a call's pytest run."""
        self._update_call((self.response_count, call_id), test_run=extent)

    def describe_progress(self) -> str:
        """Describe what a run that was stopped was doing."""
        answers = self.response_count
        if self.is_requesting:
            return f"request {answers + 1} to the model was open"
        return f"it was at work on the model's answer {answers}" if answers else "it had not begun"

    def _update_call(self, key: tuple[int, str | None], **fields: Any) -> None:
        self.calls.setdefault((key[0], key[1] or ""), {}).update(fields)


def _pair_calls(
    calls: Iterable[ToolCall], parts: Iterable[BaseToolCallPart]
) -> list[tuple[ToolCall, BaseToolCallPart | None]]:
    """Return each call with its part: by the id, or by the name where the traffic has no ids."""
    waiting = list(parts)
    pairs: list[tuple[ToolCall, BaseToolCallPart | None]] = []
    for call in calls:
        same_id = (part for part in waiting if clean_text(part.tool_call_id) == call.id)
        same_name = (part for part in waiting if clean_text(part.tool_name) == call.name)
        part = next(same_id, None) or next(same_name, None)
        if part is not None:
            waiting.remove(part)
        pairs.append((call, part))
    return pairs


@dataclass
class RecordedToolset(WrapperToolset[Any]):
    """A toolset whose calls are recorded."""

    record: RunRecord

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call the tool and record its result, in case the run ends before the next request."""
        record, started, call_id = self.record, self.record.clock(), ctx.tool_call_id
        try:
            with record.traffic.record_tool(call_id) as recorder:
                result = await self._run_with_fault(name, tool_args, ctx, tool, recorder)
        except (ModelRetry, ToolFailed) as feedback:
            record.add_call(call_id, started, error=clean_text(str(feedback)))
            raise
        except Exception as error:
            if record.broken_tool is None:
                record.broken_tool = name
                record.is_own_tool = record.has_own_code and not is_mcp_toolset(tool.toolset)
            record.add_call(call_id, started, error=describe_error(error))
            raise
        except BaseException:
            record.add_call(call_id, started, error="it was stopped before it answered")
            raise
        record.add_call(call_id, started, result=result)
        record.images += [(name, image) for image in _find_images(result)]
        return result

    async def _run_with_fault(self, name: str, *call: Any) -> Any:
        """Call the tool with its fault on purpose, if it has one."""
        fault = self.record.faults.take(name)
        try:
            wait_s = start_fault(fault)
        except InjectedFaultError as error:
            raise ToolFailed(str(error)) from None
        if wait_s:
            await asyncio.sleep(wait_s)
        result = await self._run_call(name, *call)
        if isinstance(result, ToolReturn):
            value = self.record.faults.change_result(fault, result.return_value)
            return replace(result, return_value=value)
        return self.record.faults.change_result(fault, result)

    async def _run_call(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
        recorder: TrafficRecorder,
    ) -> Any:
        """Call the tool, or return its recorded result."""
        if self.record.tool_player is None:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)

        async def call() -> dict[str, Any]:
            try:
                return _dump_result(await self.wrapped.call_tool(name, tool_args, ctx, tool))
            except ModelRetry as feedback:
                return {"retry": clean_text(feedback.message)}
            except ToolFailed as feedback:
                return {"failure": clean_text(feedback.message)}

        outcome = await self.record.tool_player.run_call(
            name, tool_args, call, lambda: bool(recorder.calls)
        )
        return _build_result(outcome)


def _find_images(result: Any) -> Iterator[ImageContent]:
    """Yield the images in the result of a tool."""
    if isinstance(result, BinaryContent) and result.is_image:
        yield ImageContent(result.data, result.media_type)
    elif isinstance(result, ToolReturn):
        yield from _find_images([result.return_value, result.content])
    elif isinstance(result, list | tuple):
        for item in result:
            yield from _find_images(item)


def _dump_result(result: Any) -> dict[str, Any]:
    """Convert the result of a tool to JSON."""
    if isinstance(result, ToolReturn):
        dumped = TypeAdapter(ToolReturn).dump_python(result, mode="json", fallback=to_jsonable)
        return {"tool_return": to_jsonable(dumped)}
    plain = tool_return_content_ta.dump_python(result, mode="json", fallback=to_jsonable)
    return {"result": to_jsonable(plain)}


def _build_result(outcome: dict[str, Any]) -> Any:
    """Return the result of a tool; in a recording run, too, so that the replay gets the same.

    Raises ModelRetry or ToolFailed as the tool did.
    """
    if "retry" in outcome:
        raise ModelRetry(outcome["retry"])
    if "failure" in outcome:
        raise ToolFailed(outcome["failure"])
    if "tool_return" in outcome:
        return TypeAdapter(ToolReturn).validate_python(outcome["tool_return"])
    return tool_return_content_ta.validate_python(outcome.get("result"))


def is_mcp_toolset(toolset: AbstractToolset[Any]) -> bool:
    """Return whether the tools come from an MCP server of PydanticAI."""
    while isinstance(toolset, WrapperToolset):
        toolset = toolset.wrapped
    mcp = sys.modules.get("pydantic_ai.mcp")  # if not imported, it is not used
    return mcp is not None and isinstance(toolset, mcp.MCPToolset)


OfferedTools = dict[MCPServer | CLIServer | None, tuple[str, ...]]
"""The tools of each server that has listed them; None: those that an agent always has."""


@dataclass
class AllowedToolset(WrapperToolset[Any]):
    """The allowed tools of a toolset in one run of a declared agent."""

    server: MCPServer | CLIServer | None
    offers: OfferedTools
    """Gets all tools of the server."""
    allowed: Collection[str] | None = None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the allowed tools."""
        tools = await self.wrapped.get_tools(ctx)
        self.offers[self.server] = tuple(tools)
        return {
            name: tool
            for name, tool in tools.items()
            if self.server is None or self.allowed is None or name in self.allowed
        }


def check_allowed_tools(agent: Agent, offers: OfferedTools) -> None:
    """Raise InputError for an allowed tool that no server offers, such as a typo."""
    offered = sorted({name for names in offers.values() for name in names})
    missing = [name for name in agent.allowed_tools or () if name not in offered]
    if missing:
        raise field_error(
            "Agent",
            "allowed_tools",
            f"agent {agent.label!r}: no server of it offers {', '.join(missing)}; "
            f"there are: {', '.join(offered) or 'no tools'}",
        )
