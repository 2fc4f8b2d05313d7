"""`@conversation`: a test function that talks to an agent which it creates itself."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter
from typing import Any, TypeVar

from ci_agent_eval.authoring.conversations.agent_under_test import (
    AgentUnderTest,
    AsyncAgentUnderTest,
)
from ci_agent_eval.authoring.conversations.factory import AgentFactory
from ci_agent_eval.authoring.conversations.runner import ConversationRunner
from ci_agent_eval.authoring.conversations.single_task import SingleTaskRunner
from ci_agent_eval.authoring.simulation.episode_access import run_awaitable
from ci_agent_eval.authoring.simulation.steps import Steps, await_steps, run_steps
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

ATTRIBUTE = "cae_declared"
"""Attribute of a test function that is a conversation.

Hypothesis hands on those without a leading underscore; pytest's `-k` reads their names, so it
holds no word that somebody may look for.
"""

FIXTURE = "_agent_eval_conversation"
"""Fixture of the plugin that stands in the test's signature in place of `agent`."""

ARGUMENT = "agent"

Test = TypeVar("Test", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ConversationDeclaration:
    """What the decorator was given."""

    name: str
    factory: AgentFactory


@dataclass(frozen=True, slots=True)
class ConversationContext:
    """What the plugin's fixture gives a conversation."""

    recorder: EpisodeRecorder
    broken: list[Exception] = field(default_factory=list)
    """What cleaning agents up raised: the fixture raises it in its own teardown."""


@dataclass(frozen=True, slots=True)
class ConversationArguments:
    """The arguments of one call: the plugin's, the factory's and the test's own."""

    setting: ConversationContext
    fixtures: Mapping[str, Any]
    args: tuple[Any, ...]
    own: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ConversationTest:
    """A test and the factory of its agent."""

    where: str
    test: Callable[..., Any]
    names: frozenset[str]
    """The test's parameters but `agent`, which the factory may have too."""
    factory: AgentFactory
    before: int
    """How many parameters stand before `agent`; what is given beyond them has to be named."""
    after: tuple[str, ...]
    """The parameters after it that may be given by position, as Hypothesis does."""

    def given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ConversationArguments:
        """Sort the arguments of a call. Raises InputError where nobody gives an agent."""
        placed = zip(self.after, args[self.before :], strict=False)
        arguments = {**dict(placed), **kwargs}
        if FIXTURE not in arguments:
            raise InputError(f"{self.where}: let pytest run it; it is no function to call")
        fixtures = {name: arguments[name] for name in self.factory.needs}
        others = {FIXTURE, *self.factory.needs} - self.names
        own = {name: value for name, value in arguments.items() if name not in others}
        return ConversationArguments(arguments[FIXTURE], fixtures, args[: self.before], own)


def conversation(name: str, factory: Callable[..., Any] | None = None) -> Callable[[Test], Test]:
    """Make a test a conversation with an agent, given to it as its parameter `agent`.

    `name` is the scenario's id in reports. `factory` makes the agent: a function or a class,
    plain or async, or a generator that cleans up after its `yield`; its parameters are
    fixtures of the test. However the test ends, the agent is cleaned up: by the generator,
    the agent's context manager, or its `aclose` or `close`.

    In an async test `await agent.send(...)`, in a plain one `agent.send(...)`. The test's
    other parameters are fixtures and parameters, as in any test; it may have any name.
    Raises InputError for what is no conversation.
    """
    if not isinstance(name, str) or not name.strip():
        raise InputError(
            '@conversation needs a name and a factory: @conversation("Greets", create_agent)'
        )
    where = f"@conversation({name!r})"
    made_by = AgentFactory.of(where, factory)

    def decorate(test: Test) -> Test:
        runner: Any = _wrap_async_test if inspect.iscoroutinefunction(test) else _wrap_sync_test
        wrapper = runner(_build_conversation_test(where, test, made_by))
        wrapper.__signature__ = _build_signature(test, made_by)
        setattr(wrapper, ATTRIBUTE, ConversationDeclaration(clean_text(name), made_by))
        wrapper.__test__ = True  # so that pytest collects it, whatever it is called
        result: Test = wrapper
        return result

    return decorate


def _build_conversation_test(
    where: str, test: Callable[..., Any], factory: AgentFactory
) -> ConversationTest:
    parameters = _get_parameters(where, test)
    placed = [p.name for p in parameters.values() if p.kind in _BY_POSITION]
    before = placed.index(ARGUMENT) if ARGUMENT in placed else len(placed)
    names = frozenset(parameters) - {ARGUMENT}
    return ConversationTest(where, test, names, factory, before, tuple(placed[before + 1 :]))


_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def _get_parameters(where: str, test: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Return the parameters of a test that can be a conversation. Raises InputError."""
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
    """Return the test's signature with fixtures in place of `agent`: the plugin's, the factory's.

    In the signature pytest finds them as it collects, so that they may be parametrized.
    """
    signature = inspect.signature(test)
    kept = [p for p in signature.parameters.values() if p.name != ARGUMENT]
    known = {p.name for p in kept}
    added = [name for name in (FIXTURE, *factory.needs) if name not in known]
    tail = [p for p in kept if p.kind is Parameter.VAR_KEYWORD]
    head = [p for p in kept if p.kind is not Parameter.VAR_KEYWORD]
    fixtures = [Parameter(name, Parameter.KEYWORD_ONLY) for name in added]
    return signature.replace(parameters=[*head, *fixtures, *tail])


def _wrap_sync_test(declared: ConversationTest) -> Callable[..., Any]:
    @functools.wraps(declared.test)
    def converse(*args: Any, **kwargs: Any) -> Any:
        given, run = declared.given(args, kwargs), SingleTaskRunner(run_awaitable)
        core = ConversationRunner(declared.factory, given.fixtures, given.setting)
        agent = AgentUnderTest(core, run)
        arguments = {**given.own, ARGUMENT: agent}
        return _run_sync_test(core, run, lambda: declared.test(*given.args, **arguments))

    return converse


def _run_sync_test(core: ConversationRunner, run: SingleTaskRunner, call: Callable[[], Any]) -> Any:
    try:
        return run_steps(_run_conversation(core, call, waits=False), run)
    finally:
        run.end()


def _wrap_async_test(declared: ConversationTest) -> Callable[..., Any]:
    @functools.wraps(declared.test)
    async def converse(*args: Any, **kwargs: Any) -> Any:
        given = declared.given(args, kwargs)
        core = ConversationRunner(declared.factory, given.fixtures, given.setting)
        agent = AsyncAgentUnderTest(core)
        arguments = {**given.own, ARGUMENT: agent}
        return await await_steps(
            _run_conversation(core, lambda: declared.test(*given.args, **arguments))
        )

    return converse


def _run_conversation(
    core: ConversationRunner, call: Callable[[], Any], *, waits: bool = True
) -> Steps[Any]:
    """Make the agent, run the test, clean up: whatever happens on the way."""
    try:
        yield from core.open()
        returned = (yield call()) if waits else call()
        core.refuse_unanswered()
    except BaseException as error:
        core.note_unanswered(error)
        raise
    finally:
        yield from core.close()
    return returned
