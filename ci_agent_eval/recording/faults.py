"""The faults of one episode: chosen by call, and applied to the results of tools."""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any

from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.contract.faults import Fault
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import ToolCall

GARBAGE = '{"status": "o\ufffd'
"""Result of garbage without a `value`."""
_RESULT_KINDS = {"garbage", "injection", "schema_change"}
"""Faults of a tool's result, which a call has only once its result is changed."""
_MAX_NAMES = 10
"""Tools in the reason of a fault that no call had."""
UNAVAILABLE = "the tool is temporarily unavailable"
"""Message of an injected error without a `value`."""


class InjectedFaultError(RuntimeError):
    """Raised by a tool that has an injected error."""


class EpisodeFaults:
    """Counts the calls of tools, and chooses the faults of each. Thread-safe."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._faults = tuple(fault.model_copy() for fault in faults)  # each is its own object
        self._calls = [0] * len(self._faults)
        self._injected = [0] * len(self._faults)
        self._lock = threading.Lock()

    def take(self, tool: str) -> Fault | None:
        """Count a call of a tool; return its fault, if it has one."""
        found = None
        with self._lock:
            for number, fault in enumerate(self._faults):
                if fault.tool != tool:
                    continue
                self._calls[number] += 1
                is_hit = 0 < self._calls[number] - fault.after <= fault.times
                if is_hit and found is None:
                    self._injected[number] += fault.kind not in _RESULT_KINDS
                    found = fault
        return found

    def change_result(self, fault: Fault | None, result: Any) -> Any:
        """Return the result that the agent gets in place of the tool's."""
        if fault is None or fault.kind not in _RESULT_KINDS:
            return result
        plain = to_jsonable(result)
        changed = _change_result(fault, plain)
        if fault.kind != "schema_change" or changed != plain:
            with self._lock:
                number = next(at for at, each in enumerate(self._faults) if each is fault)
                self._injected[number] += 1
        return changed

    def list_faults(self) -> tuple[Fault, ...]:
        """Return the faults with the number of calls that had each."""
        counted = zip(self._faults, self._injected, strict=True)
        return tuple(fault.model_copy(update={"injected": number}) for fault, number in counted)

    def list_missed(
        self, offered: Collection[str] | None = None, seen: Iterable[ToolCall] = ()
    ) -> list[Assertion]:
        """Return a failed assertion for each fault that no call had.

        `offered` are the names of the agent's tools, if they are known, `seen` its calls.
        """
        tools = {*(offered or ()), *(call.name for call in seen)}
        return [
            Assertion(
                name=f"has its {fault.kind} of {fault.tool}",
                passed=False,
                reason=_explain_missed(fault, calls, tools),
            )
            for fault, calls in zip(self.list_faults(), self._calls, strict=True)
            if not fault.injected
        ]


def wrap_tool(faults: EpisodeFaults, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a sync or async tool with its faults."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            fault = faults.take(name)
            if (wait_s := start_fault(fault)) > 0:
                import asyncio  # noqa: PLC0415 - most suites delay no tool, and many are synchronous

                await asyncio.sleep(wait_s)
            return faults.change_result(fault, await function(*args, **kwargs))

        return call_async

    async def change_later(fault: Fault | None, result: Awaitable[Any]) -> Any:
        return faults.change_result(fault, await result)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        fault = faults.take(name)
        if (wait_s := start_fault(fault)) > 0:
            time.sleep(wait_s)
        result = function(*args, **kwargs)
        if inspect.isawaitable(result):
            return change_later(fault, result)
        return faults.change_result(fault, result)

    return call


def start_fault(fault: Fault | None) -> float:
    """Return the seconds to wait before the call. Raises InjectedFaultError."""
    if fault is not None and fault.kind == "error":
        raise InjectedFaultError(str(fault.value or UNAVAILABLE))
    is_slow = fault is not None and fault.kind == "slow" and isinstance(fault.value, int | float)
    return fault.value / 1000 if is_slow else 0.0  # type: ignore[union-attr, operator]


def _change_result(fault: Fault, result: Any) -> Any:
    if fault.kind == "garbage":
        return GARBAGE if fault.value is None else fault.value
    if fault.kind == "schema_change" and isinstance(fault.value, Mapping):
        return _rename_keys(result, fault.value)
    if isinstance(result, Mapping):
        return {**result, "note": fault.value}
    return [*result, fault.value] if isinstance(result, list) else f"{result}\n{fault.value}"


def _explain_missed(fault: Fault, calls: int, tools: Collection[str]) -> str:
    if calls <= fault.after:
        seen = f"{calls} calls were seen, so the fault was never injected"
        if calls or not tools or fault.tool in tools:
            return seen
        return seen + _suggest_tool(fault.tool, tools)
    return f"{calls} calls were seen; it changed no result: the call failed, or has no such key"


def _suggest_tool(name: str, tools: Collection[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only for failed episodes

    if nearest := get_close_matches(name, tools, n=1):
        return f"; did you mean {nearest[0]!r}?"
    known = sorted(tools)
    more = ", …" if len(known) > _MAX_NAMES else ""
    return f"; known tools: {', '.join(known[:_MAX_NAMES])}{more}"


def _rename_keys(value: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {names.get(key, key): _rename_keys(item, names) for key, item in value.items()}
    return [_rename_keys(item, names) for item in value] if isinstance(value, list) else value
