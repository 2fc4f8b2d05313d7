"""`@conversation`: a test that creates an agent and talks to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from inspect import Parameter
from typing import Any, TypeVar

from ci_agent_eval.authoring.conversations.agent_under_test import (
    AgentUnderTest,
    AsyncAgentUnderTest,
)
from ci_agent_eval.authoring.conversations.factory import AgentFactory
from ci_agent_eval.authoring.conversations.runner import (
    ConversationContext,
    ConversationRunner,
    SingleTaskRunner,
)
from ci_agent_eval.authoring.simulation.awaiting import await_if_needed, run_awaitable, run_sync
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.errors import InputError

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

ATTRIBUTE = "cae_declared"
"""Attribute of a test function that is a conversation.

Hypothesis copies attributes without a leading underscore. pytest's `-k` matches their names, so
the name contains no common word.
"""

FIXTURE = "_agent_eval_conversation"
"""The plugin's fixture that replaces `agent` in the test's signature."""

ARGUMENT = "agent"

Test = TypeVar("Test", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ConversationDeclaration:
    """The arguments of the decorator."""

    name: str
    factory: AgentFactory


@dataclass(frozen=True, slots=True)
class ConversationArguments:
    """The arguments of one call, sorted: for the plugin, the factory and the test."""

    context: ConversationContext
    fixtures: Mapping[str, Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ConversationTest:
    """A test and the factory of its agent."""

    where: str
    test: Callable[..., Any]
    names: frozenset[str]
    """The test's parameters except `agent`; the factory may share them."""
    factory: AgentFactory
    before: int
    """Number of parameters before `agent`; later ones are passed by keyword."""
    after: tuple[str, ...]
    """The parameters after `agent` that may be passed by position, as Hypothesis does."""

    def sort_arguments(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> ConversationArguments:
        """Sort the arguments of a call. Raises InputError if pytest did not make the call."""
        positional = zip(self.after, args[self.before :], strict=False)
        arguments = {**dict(positional), **kwargs}
        if FIXTURE not in arguments:
            raise InputError(f"{self.where}: let pytest run it; it is not a function to call")
        fixtures = {name: arguments[name] for name in self.factory.fixture_names}
        others = {FIXTURE, *self.factory.fixture_names} - self.names
        own = {name: value for name, value in arguments.items() if name not in others}
        return ConversationArguments(arguments[FIXTURE], fixtures, args[: self.before], own)


def conversation(name: str, factory: Callable[..., Any] | None = None) -> Callable[[Test], Test]:
    """Turn a test into a conversation with an agent, which it gets as its parameter `agent`.

    `name` is the scenario's id in reports. `factory` creates the agent: a function or a class,
    sync or async, or a generator that cleans up after its `yield`; its parameters are
    fixtures of the test. The agent is always cleaned up after the test: by the generator,
    the agent's context manager, or its `aclose` or `close`.

    In an async test `await agent.send(...)`, in a sync one `agent.send(...)`. The test's
    other parameters are fixtures and parameters, as in any test; it may have any name that no
    other function of its module has (ruff's F811 finds them).
    Raises InputError for invalid arguments, and for a function that cannot be a conversation.
    """
    if not isinstance(name, str) or not name.strip():
        raise InputError(
            '@conversation needs a name and a factory: @conversation("Greets", create_agent)'
        )
    where = f"@conversation({name!r})"
    agent_factory = AgentFactory.from_callable(where, factory)

    def decorate(test: Test) -> Test:
        wrap: Any = _wrap_async_test if inspect.iscoroutinefunction(test) else _wrap_sync_test
        wrapper = wrap(_build_conversation_test(where, test, agent_factory))
        wrapper.__signature__ = _build_signature(test, agent_factory)
        setattr(wrapper, ATTRIBUTE, ConversationDeclaration(clean_text(name), agent_factory))
        wrapper.__test__ = True  # so that pytest collects it under any name
        result: Test = wrapper
        return result

    return decorate


def _build_conversation_test(
    where: str, test: Callable[..., Any], factory: AgentFactory
) -> ConversationTest:
    parameters = _get_parameters(where, test)
    positional = [p.name for p in parameters.values() if p.kind in _BY_POSITION]
    before = positional.index(ARGUMENT) if ARGUMENT in positional else len(positional)
    names = frozenset(parameters) - {ARGUMENT}
    return ConversationTest(where, test, names, factory, before, tuple(positional[before + 1 :]))


_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def _get_parameters(where: str, test: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Return the test's parameters. Raises InputError if it cannot be a conversation."""
    if isinstance(test, staticmethod | classmethod):
        raise InputError(f"{where}: put it below @{type(test).__name__}, on the function itself")
    if not inspect.isfunction(test):
        raise InputError(f"{where}: decorate a test function or method, not {test!r}")
    if inspect.isgeneratorfunction(test) or inspect.isasyncgenfunction(test):
        raise InputError(f"{where}: {test.__name__} contains `yield`; a test returns")
    parameters = inspect.signature(test).parameters
    agent = parameters.get(ARGUMENT)
    if agent is None or agent.kind not in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY):
        raise InputError(f"{where}: {test.__name__} takes no parameter `agent`; give it one")
    return parameters


def _build_signature(test: Callable[..., Any], factory: AgentFactory) -> inspect.Signature:
    """Return the test's signature with the plugin's and the factory's fixtures for `agent`.

    In the signature pytest finds them during collection, so that they may be parametrized.
    """
    signature = inspect.signature(test)
    kept = [p for p in signature.parameters.values() if p.name != ARGUMENT]
    known = {p.name for p in kept}
    added = [name for name in (FIXTURE, *factory.fixture_names) if name not in known]
    tail = [p for p in kept if p.kind is Parameter.VAR_KEYWORD]
    head = [p for p in kept if p.kind is not Parameter.VAR_KEYWORD]
    fixtures = [Parameter(name, Parameter.KEYWORD_ONLY) for name in added]
    return signature.replace(parameters=[*head, *fixtures, *tail])


def _wrap_sync_test(declared_test: ConversationTest) -> Callable[..., Any]:
    @wraps(declared_test.test)
    def converse(*args: Any, **kwargs: Any) -> Any:
        given, task = declared_test.sort_arguments(args, kwargs), SingleTaskRunner(run_awaitable)
        runner = ConversationRunner(declared_test.factory, given.fixtures, given.context)
        arguments = {**given.kwargs, ARGUMENT: AgentUnderTest(runner, task)}
        call = partial(declared_test.test, *given.args, **arguments)
        try:
            return run_sync(_run_conversation(runner, call), task)
        finally:
            task.end()

    return converse


def _wrap_async_test(declared_test: ConversationTest) -> Callable[..., Any]:
    @wraps(declared_test.test)
    async def converse(*args: Any, **kwargs: Any) -> Any:
        given = declared_test.sort_arguments(args, kwargs)
        runner = ConversationRunner(declared_test.factory, given.fixtures, given.context)
        arguments = {**given.kwargs, ARGUMENT: AsyncAgentUnderTest(runner)}
        call = partial(declared_test.test, *given.args, **arguments)
        return await _run_conversation(runner, call)

    return converse


async def _run_conversation(runner: ConversationRunner, call: Callable[[], Any]) -> Any:
    """Create the agent, run the test, and always clean up."""
    try:
        await runner.open()
        returned = await await_if_needed(call())
        runner.refuse_unanswered()
    except BaseException as error:
        runner.note_unanswered(error)
        raise
    finally:
        await runner.close()
    return returned
