"""`@conversation`: a test function that talks to an agent which it creates itself."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ci_agent_eval.conversations.factory import Factory
from ci_agent_eval.conversations.wrapped import AgentUnderTest, AsyncAgentUnderTest, _Core
from ci_agent_eval.errors import InputError
from ci_agent_eval.recorder import EpisodeRecorder
from ci_agent_eval.simulation.running import run_awaitable
from ci_agent_eval.simulation.steps import await_steps, run_steps

ATTRIBUTE = "__agent_eval_conversation__"
"""Attribute of a test function that is a conversation."""

FIXTURE = "_agent_eval_conversation"
"""Fixture of the plugin that stands in the test's signature in place of `agent`."""

ARGUMENT = "agent"

Test = TypeVar("Test", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the decorator was given."""

    name: str
    factory: Factory


@dataclass(frozen=True, slots=True)
class Setting:
    """What the plugin's fixture gives a conversation."""

    recorder: EpisodeRecorder
    fixtures: Mapping[str, Any]
    """The fixtures that the factory needs, by name."""


def conversation(name: str, factory: Callable[..., Any]) -> Callable[[Test], Test]:
    """Make a test a conversation with an agent, given to it as its parameter `agent`.

    `name` is the scenario's id in reports. `factory` makes the agent: a function or a class,
    plain or async, or a generator that cleans up after its `yield`; its parameters are
    fixtures of the test. However the test ends, the agent is cleaned up: by the generator,
    the agent's context manager, or its `aclose` or `close`.

    In an async test `await agent.send(...)`, in a plain one `agent.send(...)`. The test's
    other parameters are fixtures and parameters, as in any test; it may have any name.
    Raises InputError for what is no conversation.
    """
    where = f"@conversation({name!r})"
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{where}: give the conversation a name")
    made_by = Factory.of(where, factory)

    def decorate(test: Test) -> Test:
        signature = _signature(where, test)
        runner: Any = _asynchronous if inspect.iscoroutinefunction(test) else _plain
        wrapper = runner(test, made_by)
        wrapper.__signature__ = signature
        setattr(wrapper, ATTRIBUTE, Conversation(name, made_by))
        wrapper.__test__ = True  # so that pytest collects it, whatever it is called
        result: Test = wrapper
        return result

    return decorate


def _signature(where: str, test: Callable[..., Any]) -> inspect.Signature:
    """Return the test's signature with the plugin's fixture in place of `agent`."""
    if not inspect.isfunction(test):
        raise InputError(f"{where}: decorate a test function or method, not {test!r}")
    signature = inspect.signature(test)
    if ARGUMENT not in signature.parameters:
        raise InputError(f"{where}: {test.__name__} takes no parameter `agent`; give it one")
    keyword = inspect.Parameter.KEYWORD_ONLY
    kept = [p for p in signature.parameters.values() if p.name != ARGUMENT]
    own = inspect.Parameter(FIXTURE, keyword)
    tail = [p for p in kept if p.kind is inspect.Parameter.VAR_KEYWORD]
    head = [p for p in kept if p.kind is not inspect.Parameter.VAR_KEYWORD]
    return signature.replace(parameters=[*head, own, *tail])


def _plain(test: Callable[..., Any], factory: Factory) -> Callable[..., Any]:
    @functools.wraps(test)
    def converse(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        core = _core(kwargs.pop(FIXTURE), factory)
        run_steps(core.open(), run_awaitable)
        try:
            returned = test(*args, **{ARGUMENT: AgentUnderTest(core)}, **kwargs)
        except BaseException as error:
            _after(error, lambda: run_steps(core.close(), run_awaitable))
            raise
        run_steps(core.close(), run_awaitable)
        return returned

    return converse


def _asynchronous(test: Callable[..., Any], factory: Factory) -> Callable[..., Any]:
    @functools.wraps(test)
    async def converse(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        core = _core(kwargs.pop(FIXTURE), factory)
        await await_steps(core.open())
        try:
            returned = await test(*args, **{ARGUMENT: AsyncAgentUnderTest(core)}, **kwargs)
        except BaseException as error:
            try:
                await await_steps(core.close())
            except Exception as second:  # noqa: BLE001 - told beside the first
                _add_note(error, second)
            raise
        await await_steps(core.close())
        return returned

    return converse


def _core(setting: Setting, factory: Factory) -> _Core:
    return _Core(factory, setting.fixtures, setting.recorder)


def _after(error: BaseException, close: Callable[[], None]) -> None:
    """Clean up after a test that raised; what that raises is told beside the test's own error."""
    try:
        close()
    except Exception as second:  # noqa: BLE001 - told beside the first
        _add_note(error, second)


def _add_note(error: BaseException, second: Exception) -> None:
    error.add_note(f"then, cleaning up the agent: {type(second).__name__}: {second}")
