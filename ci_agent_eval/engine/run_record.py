"""The record of a run: its progress, tool calls and their durations."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import RunContext, ToolReturn
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import BinaryContent, ModelResponse, tool_return_content_ta
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from ci_agent_eval.contract.fields import field_error
from ci_agent_eval.contract.jsonable import clean_text, describe_error, to_jsonable
from ci_agent_eval.contract.measurement import convert_to_ms
from ci_agent_eval.contract.stops import Stop
from ci_agent_eval.contract.trajectory import TestRunExtent
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.engine.cassette.players import ToolPlayer
from ci_agent_eval.engine.declarations import Agent, MCPServer
from ci_agent_eval.engine.limits import Clock
from ci_agent_eval.engine.result import ImageContent
from ci_agent_eval.engine.stops import find_unfinished_stop
from ci_agent_eval.engine.traffic import RunTraffic
from ci_agent_eval.engine.turns import CallNote, RunNotes, convert_to_turns, read_answer
from ci_agent_eval.model_traffic.recorder import TrafficRecorder
from ci_agent_eval.recording.faults import (
    EpisodeFaults,
    InjectedFaultError,
    start_fault,
)


@dataclass(kw_only=True)
class RunRecord(RunNotes):
    """The progress of a run and the data that its messages lack."""

    clock: Clock
    response_count: int = 0
    """Number of responses of the model."""
    is_requesting: bool = False
    """Whether a model request is open."""
    last_answer: ModelResponse | None = None
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
    """Records the model calls of the tools."""
    faults: EpisodeFaults = field(default_factory=EpisodeFaults)
    """The episode's faults on purpose."""
    usage: Usage = field(default_factory=Usage)
    """Usage of the responses so far."""
    images: list[tuple[str, ImageContent]] = field(default_factory=list)
    """The images that tools returned, each with its tool."""
    _asked_s: float | None = None
    """Time of the last request."""
    _is_scripted: bool = False

    def begin_turn(self) -> None:
        """Record the beginning of the agent's next turn, whose instructions may be own code."""
        self.is_requesting = not self.has_own_code
        self.traffic.nested.mark_request()

    def mark_request(self, *, is_scripted: bool) -> None:
        """Record that the model is asked; a script has no model traffic."""
        self.is_requesting = True
        self._asked_s, self._is_scripted = self.clock(), is_scripted

    def add_response(self, response: ModelResponse) -> None:
        """Record a response of the model."""
        self.is_requesting, self.last_answer = False, response
        self.traffic.nested.mark_answer()
        call = self.traffic.take_own_call()
        answer = read_answer(response, call)
        if call is None and self._asked_s is not None:
            answer["latency_ms"] = convert_to_ms(self.clock() - self._asked_s)
            answer["source"] = "scripted" if self._is_scripted else "live"
        self.answers.append(answer)
        self.response_count += 1
        names = [part.tool_name for part in response.tool_calls]
        tools = [name for name in names if name not in self.output_tools]
        tokens = 0 if answer["tokens"] is None else answer["tokens"].total
        self.usage += Usage(1, len(tools), tokens, answer["cost_usd"] or 0.0)

    def find_unfinished_stop(self) -> Stop | None:
        """Return the stop of a last answer that is empty, refused or cut; else None."""
        if self.last_answer is None:
            return None
        notes = RunNotes(answers=self.answers[-1:])
        return find_unfinished_stop(convert_to_turns([self.last_answer], notes))

    def add_call(
        self, call_id: str | None, started: float, *, result: Any = None, error: str | None = None
    ) -> None:
        """Record the result and duration of a call."""
        self._update_note(
            call_id,
            duration_ms=convert_to_ms(self.clock() - started),
            result=to_jsonable(result),
            error=error,
        )

    def add_held_call(self, call_id: str | None, message: str, handler: str) -> None:
        """Record a held-back call and the message that the agent got as its result."""
        self._update_note(call_id, result=clean_text(message), steered_by=handler)

    def add_test_run(self, call_id: str | None, extent: TestRunExtent) -> None:
        """Record the extent of a call's pytest run."""
        self._update_note(call_id, test_run=extent)

    def describe_progress(self) -> str:
        """Describe what a run that was stopped was doing."""
        answers = self.response_count
        if self.is_requesting:
            return f"request {answers + 1} to the model was open"
        return f"it was at work on the model's answer {answers}" if answers else "it had not begun"

    def _update_note(self, call_id: str | None, **fields: Any) -> None:
        key = self.response_count, clean_text(call_id or "")
        self.calls[key] = replace(self.calls.get(key, CallNote()), **fields)


@dataclass
class OfferedTools:
    """The tools offered to an agent, compared with its allowed tools."""

    agent: Agent
    expected: int = 0
    """Number of toolsets that list their tools before the first request."""
    listed: dict[int, tuple[str, ...]] = field(default_factory=dict)
    by_server: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The tools of each MCP server that has listed them."""

    def add_tools(self, place: int, names: Iterable[str], server: str | None) -> None:
        """Add the tools of a toolset; check them after the last one. Raises InputError."""
        if place in self.listed:
            return
        self.listed[place] = tuple(names)
        if server is not None:
            self.by_server[server] = self.listed[place]
        if len(self.listed) == self.expected:
            self.check()

    def group_by_server(self) -> dict[str, tuple[str, ...]]:
        """Return the tools of each of the agent's servers; empty before they are listed."""
        cli = {server.name: (server.tool_name,) for server in self.agent.cli_servers}
        return {server.label: () for server in self.agent.mcp_servers} | self.by_server | cli

    def check(self) -> None:
        """Raise InputError for an allowed tool that no toolset offers, such as a typo."""
        offered = sorted({name for names in self.listed.values() for name in names})
        missing = [name for name in self.agent.allowed_tools or () if name not in offered]
        if missing:
            raise field_error(
                "Agent",
                "allowed_tools",
                f"agent {self.agent.label!r}: no server of it offers {', '.join(missing)}; "
                f"there are: {', '.join(offered) or 'no tools'}",
            )


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
            with record.traffic.record_tool(call_id, name) as recorder:
                result = await self._run_with_fault(name, tool_args, ctx, tool, recorder)
        except (ModelRetry, ToolFailed) as feedback:
            record.add_call(call_id, started, error=clean_text(str(feedback)))
            raise
        except Exception as error:
            if record.broken_tool is None:
                record.broken_tool = name
                record.is_own_tool = record.has_own_code and not is_mcp_toolset(tool.toolset)
                record.traffic.broken_tool = recorder
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


@dataclass
class AllowedToolset(WrapperToolset[Any]):
    """The allowed tools of a toolset in one run of a declared agent."""

    offers: OfferedTools
    place: int
    allowed: frozenset[str] | None = None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the allowed tools. Raises InputError, as `OfferedTools`."""
        tools = await self.wrapped.get_tools(ctx)
        server: MCPServer | None = getattr(self.wrapped, "server", None)
        self.offers.add_tools(self.place, tools, server.label if server else None)
        if self.allowed is None:
            return tools
        return {name: tool for name, tool in tools.items() if name in self.allowed}


def restrict_toolsets(
    offers: OfferedTools,
    toolsets: Sequence[AbstractToolset[Any]],
    always: Sequence[AbstractToolset[Any]],
) -> list[AllowedToolset]:
    """Restrict the toolsets to the agent's allowed tools; toolsets in `always` stay complete.

    Raises InputError if there is no toolset and the agent names allowed tools.
    """
    names = offers.agent.allowed_tools
    allowed = None if names is None else frozenset(names)
    offers.expected = len(toolsets) + len(always)
    if not offers.expected:
        offers.check()
    pairs = [(toolset, allowed) for toolset in toolsets] + [(toolset, None) for toolset in always]
    return [AllowedToolset(tools, offers, i, only) for i, (tools, only) in enumerate(pairs)]
