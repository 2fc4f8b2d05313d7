"""The agent of a conversation: made by the test's factory, and cleaned up however it ends."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeGuard

from ci_agent_eval.authoring.simulation.steps import Steps, await_if_needed
from ci_agent_eval.errors import InputError

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

CloseAgent: TypeAlias = Callable[[], Steps[None]]


class FactoryError(Exception):
    """No agent could be made; the episode is an error, not a failure."""


@dataclass(frozen=True, slots=True)
class AgentFactory:
    """A callable that makes an agent; its parameters are fixtures of the test."""

    make: Callable[..., Any]
    needs: tuple[str, ...]
    """Names of its parameters without a default."""

    @classmethod
    def of(cls, where: str, given: object) -> AgentFactory:
        """Take what the test gives. Raises InputError for what makes no agent."""
        if given is None:
            raise InputError(f"{where}: give a factory as well, what makes the agent")
        if not callable(given) or (hasattr(given, "respond") and not isinstance(given, type)):
            raise InputError(
                f"{where}: give a factory, a function or class that makes a new agent, "
                f"not a {type(given).__name__}; `lambda: ...` makes one of an expression"
            )
        return cls(given, _find_fixture_names(where, given))

    def open(self, fixtures: Mapping[str, Any]) -> Steps[OpenedAgent]:
        """Make an agent, and say how it is cleaned up."""
        try:
            return (yield from _open_agent(self.make(**fixtures)))
        except AssertionError as error:
            # It is not the agent's failure: there is none yet.
            raise FactoryError(f"the factory failed: AssertionError: {error}") from error


@dataclass(frozen=True, slots=True)
class OpenedAgent:
    """An agent in use."""

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


def _open_agent(made: Any) -> Steps[OpenedAgent]:
    """Take what a factory returned. A generator owns its agent: nothing else closes it."""
    if inspect.isgenerator(made):
        return OpenedAgent(
            _require_yielded_agent(next(made, _EXHAUSTED)), lambda: _end_generator(made)
        )
    if inspect.isasyncgen(made):
        agent = _require_yielded_agent((yield _get_next(made)))
        return OpenedAgent(agent, lambda: _end_async_generator(made))
    return (yield from _enter_agent((yield from await_if_needed(made))))


def _require_yielded_agent(agent: Any) -> Any:
    if agent is _EXHAUSTED:
        raise InputError("the factory of a conversation yields no agent")
    return agent


def _enter_agent(made: Any) -> Steps[OpenedAgent]:
    """Enter an agent that is a context manager; else it may have `aclose` or `close`."""
    kind = type(made)
    if hasattr(kind, "__aenter__"):
        entered = yield made.__aenter__()
        return OpenedAgent(
            _choose_agent(entered, made), lambda: _call_and_await(made.__aexit__, None, None, None)
        )
    if hasattr(kind, "__enter__"):
        entered = made.__enter__()
        return OpenedAgent(
            _choose_agent(entered, made), lambda: _call_and_await(made.__exit__, None, None, None)
        )
    for name in () if inspect.isroutine(made) or isinstance(made, type) else ("aclose", "close"):
        if _needs_no_arguments(close := getattr(made, name, None)):
            return OpenedAgent(made, partial(_call_and_await, close))
    return OpenedAgent(made, lambda: _call_and_await(lambda: None))


def _choose_agent(entered: Any, manager: Any) -> Any:
    return manager if entered is None else entered


def _needs_no_arguments(close: Any) -> TypeGuard[Callable[[], Any]]:
    """Say whether it is a way to clean up: one that needs arguments closes something else."""
    if not callable(close):
        return False
    try:
        inspect.signature(close).bind()
    except TypeError:
        return False
    except ValueError:
        return True  # written in C, and silent about its parameters
    return True


def _call_and_await(call: Callable[..., Any], *given: Any) -> Steps[None]:
    yield from await_if_needed(call(*given))


def _end_generator(made: Any) -> Steps[None]:
    yield from ()
    if next(made, _EXHAUSTED) is not _EXHAUSTED:
        made.close()
        raise InputError("the factory of a conversation yields more than one agent")


async def _get_next(made: Any) -> Any:
    return await anext(made, _EXHAUSTED)


def _end_async_generator(made: Any) -> Steps[None]:
    rest = yield _get_next(made)
    if rest is not _EXHAUSTED:
        yield made.aclose()
        raise InputError("the factory of a conversation yields more than one agent")


_EXHAUSTED = object()
