"""Creation and clean-up of a conversation's agent by the test's factory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeGuard

from ci_agent_eval.authoring.simulation.awaiting import await_if_needed
from ci_agent_eval.errors import InputError

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

CloseAgent: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class FactoryError(Exception):
    """Raised if the factory fails; the episode is an infrastructure error, not a failure."""


@dataclass(frozen=True, slots=True)
class AgentFactory:
    """A callable that creates an agent; its parameters are fixtures of the test."""

    make: Callable[..., Any]
    fixture_names: tuple[str, ...]
    """Names of the parameters without a default."""

    @classmethod
    def from_callable(cls, where: str, given: object) -> AgentFactory:
        """Validate the factory of a test. Raises InputError for a value that is no factory."""
        if given is None:
            raise InputError(f"{where}: pass a factory: a function or class that creates the agent")
        if not callable(given) or (hasattr(given, "respond") and not isinstance(given, type)):
            raise InputError(
                f"{where}: give a factory, a function or class that makes a new agent, "
                f"not a {type(given).__name__}; `lambda: ...` makes one of an expression"
            )
        return cls(given, _find_fixture_names(where, given))

    async def open(self, fixtures: Mapping[str, Any]) -> OpenedAgent:
        """Create an agent, and return it with its clean-up. Raises FactoryError."""
        try:
            return await _open_agent(self.make(**fixtures))
        except AssertionError as error:
            # No agent failure: there is no agent yet.
            raise FactoryError(f"the factory failed: AssertionError: {error}") from error


@dataclass(frozen=True, slots=True)
class OpenedAgent:
    """An agent and its clean-up."""

    agent: Any
    close: CloseAgent


def _find_fixture_names(where: str, factory: Callable[..., Any]) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return ()
    needed = [p for p in parameters if p.default is p.empty]
    if any(p.kind is p.POSITIONAL_ONLY for p in needed):
        raise InputError(f"{where}: the factory's parameters are fixtures; let them have names")
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return tuple(p.name for p in needed if p.kind not in variable)


async def _open_agent(returned: Any) -> OpenedAgent:
    """Open the agent that a factory returned. A generator closes its agent itself."""
    if inspect.isgenerator(returned):
        agent = _require_yielded_agent(next(returned, _EXHAUSTED))
        return OpenedAgent(agent, lambda: _end_generator(returned))
    if inspect.isasyncgen(returned):
        agent = _require_yielded_agent(await await_if_needed(anext(returned, _EXHAUSTED)))
        return OpenedAgent(agent, lambda: _end_async_generator(returned))
    return await _enter_agent(await await_if_needed(returned))


def _require_yielded_agent(agent: Any) -> Any:
    if agent is _EXHAUSTED:
        raise InputError("the factory of a conversation yields no agent")
    return agent


async def _enter_agent(returned: Any) -> OpenedAgent:
    """Enter an agent that is a context manager; others may have `aclose` or `close`."""
    kind, nothing = type(returned), (None, None, None)
    if hasattr(kind, "__aenter__"):
        agent = _choose_agent(await await_if_needed(returned.__aenter__()), returned)
        return OpenedAgent(agent, lambda: _call_and_await(returned.__aexit__, *nothing))
    if hasattr(kind, "__enter__"):
        agent = _choose_agent(returned.__enter__(), returned)
        return OpenedAgent(agent, lambda: _call_and_await(returned.__exit__, *nothing))
    is_function = inspect.isroutine(returned) or isinstance(returned, type)
    for name in () if is_function else ("aclose", "close"):
        if _needs_no_arguments(close := getattr(returned, name, None)):
            return OpenedAgent(returned, partial(_call_and_await, close))
    return OpenedAgent(returned, lambda: _call_and_await(lambda: None))


def _choose_agent(entered: Any, manager: Any) -> Any:
    return manager if entered is None else entered


def _needs_no_arguments(close: Any) -> TypeGuard[Callable[[], Any]]:
    """Return whether a `close` method can be called without arguments."""
    if not callable(close):
        return False
    try:
        inspect.signature(close).bind()
    except TypeError:
        return False
    except ValueError:
        return True  # written in C, without a signature
    return True


async def _call_and_await(call: Callable[..., Any], *given: Any) -> None:
    await await_if_needed(call(*given))


async def _end_generator(returned: Any) -> None:
    if next(returned, _EXHAUSTED) is not _EXHAUSTED:
        returned.close()
        raise InputError("the factory of a conversation yields more than one agent")


async def _end_async_generator(returned: Any) -> None:
    rest = await await_if_needed(anext(returned, _EXHAUSTED))
    if rest is not _EXHAUSTED:
        await await_if_needed(returned.aclose())
        raise InputError("the factory of a conversation yields more than one agent")


_EXHAUSTED = object()
