"""Async fixtures, run on the episodes' event loop; pytest sees a plain fixture instead.

A fixture is set up and torn down in one task, so its resources may stay open across its `yield`:
task groups, cancel scopes, and clients built on them.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from functools import wraps
from typing import Any, TypeVar

import pytest
from _pytest.scope import Scope

from ci_agent_eval.authoring.conversations.runner import SingleTaskRunner
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin.concurrency.fixtures import OwnDefinitions
from ci_agent_eval.pytest_plugin.concurrency.loop_members import (
    ON_OUR_LOOP,
    is_from_pytest_asyncio,
    unwrap_asyncio_test,
)
from ci_agent_eval.pytest_plugin.concurrency.session_loop import SessionLoop

__tracebackhide__ = True  # a failure shows the frames of the test and of its fixtures

_END = object()
_UNSET = object()


@contextmanager
def run_on_session_loop(definition: Any, request: pytest.FixtureRequest) -> Iterator[None]:
    """Replace an async fixture by a plain one while pytest sets it up.

    If an event loop already runs, the fixture raises InputError: pytest cannot wait for it there.
    """
    before, loop = definition.func, SessionLoop.find(request.config)
    is_refused = loop.is_occupied
    definition.func = (
        _build_refusal(definition.argname, request)
        if is_refused
        else _build_plain_fixture(_bind_function(definition, request), definition, loop)
    )
    try:
        yield
    finally:
        definition.func = before
        if is_refused:  # or pytest would raise the same error in every other test that shares it
            definition.finish(request)


def _build_refusal(name: str, request: pytest.FixtureRequest) -> Callable[..., Any]:
    nodeid = request._pyfuncitem.nodeid  # noqa: SLF001 - the test's, whatever the scope

    def refuse(*_: Any, **__: Any) -> None:
        raise InputError(
            f"{nodeid}: the async fixture {name!r} was asked for while an event loop runs; name "
            "it as a parameter of the test or of a plain fixture"
        )

    return refuse


def _bind_function(definition: Any, request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Return the fixture's function, bound to the test's instance as pytest binds it."""
    function, instance = unwrap_asyncio_test(definition.func), request.instance
    owner = getattr(function, "__self__", None)
    if instance is None:
        return function
    if getattr(definition, "unittest", False):  # pytest 8.0
        return function.__get__(instance)  # type: ignore[no-any-return]
    if inspect.ismethod(function) and isinstance(instance, type(owner)):
        return function.__func__.__get__(instance)  # type: ignore[no-any-return]
    return function


def _build_plain_fixture(
    function: Callable[..., Any], definition: Any, loop: SessionLoop
) -> Callable[..., Any]:
    """Return a generator function for pytest to run.

    Older versions of pytest-asyncio pass arguments that the fixture does not accept.
    """
    names = inspect.signature(function).parameters
    runs = _run_generator if inspect.isasyncgenfunction(function) else _run_coroutine

    @wraps(function, updated=())  # without the attributes that other plugins have set
    def plain(*_: Any, **arguments: Any) -> Generator[Any, None, None]:
        accepted = {name: value for name, value in arguments.items() if name in names}
        setattr(definition, ON_OUR_LOOP, True)
        try:
            return (yield from runs(function, accepted, loop))
        finally:
            setattr(definition, ON_OUR_LOOP, False)

    return plain


def _run_coroutine(
    function: Callable[..., Any], arguments: Mapping[str, Any], loop: SessionLoop
) -> Generator[Any, None, None]:
    context = copy_context()
    value = loop.run(function(**arguments), context)
    with _apply_variables(context):
        yield value


def _run_generator(
    function: Callable[..., AsyncGenerator[Any, None]],
    arguments: Mapping[str, Any],
    loop: SessionLoop,
) -> Generator[Any, None, None]:
    context = copy_context()
    task, generator = SingleTaskRunner(loop.run_awaitable, context), function(**arguments)
    try:
        value = task(_advance_generator(generator))
        if value is _END:
            return  # pytest reports that it yields nothing
        with _apply_variables(context):
            yield value
            if task(_advance_generator(generator)) is not _END:
                task(generator.aclose())
                pytest.fail(f"{function.__name__}: the fixture yields twice", pytrace=False)
    finally:
        task.end()


async def _advance_generator(generator: AsyncGenerator[Any, None]) -> Any:
    return await anext(generator, _END)


@contextmanager
def _apply_variables(context: Context) -> Iterator[None]:
    """Apply the context variables that a fixture has set, until it is torn down."""
    here = copy_context()
    changed = [(var, value) for var, value in context.items() if here.get(var, _UNSET) is not value]
    tokens = [(variable, variable.set(value)) for variable, value in changed]
    try:
        yield
    finally:
        for variable, token in reversed(tokens):
            with suppress(ValueError):  # torn down in another context
                variable.reset(token)


T = TypeVar("T")

_LOOPS = re.compile(r"event_loop>?$")
_RUNNERS = re.compile(r"_scoped_runner$")

_REPLACEMENTS = pytest.StashKey[dict[str, Any]]()
"""In the config: our definitions by the names of pytest-asyncio's."""


class LoopRunner:
    """Our loop with the part of the `asyncio.Runner` interface that pytest-asyncio uses."""

    def __init__(self, loop: SessionLoop) -> None:
        self._loop = loop

    def run(self, coroutine: Coroutine[Any, Any, T], *, context: Context | None = None) -> T:
        """Run a coroutine to completion."""
        return self._loop.run(coroutine, context)

    def get_loop(self) -> Any:
        """Return the loop itself."""
        return self._loop.loop


def use_session_loop(item: pytest.Function) -> None:
    """Replace pytest-asyncio's loops by ours in a test and all of its fixtures."""
    before = item._fixtureinfo  # noqa: SLF001 - see OwnDefinitions
    definitions = OwnDefinitions(item, _replace_loop_definition)
    item._fixtureinfo = dataclasses.replace(before, name2fixturedefs=definitions)  # noqa: SLF001 - as above
    item._initrequest()  # noqa: SLF001 - as pytest's own runner does before a rerun


def _replace_loop_definition(item: pytest.Function, definition: Any) -> Any:
    if (give := _find_loop_function(definition, item.config)) is None:
        return definition
    cache = item.config.stash.setdefault(_REPLACEMENTS, {})
    return cache.setdefault(definition.argname, _copy_definition(definition, give))


def _find_loop_function(definition: Any, config: pytest.Config) -> Callable[[], Any] | None:
    """Return a function that returns our loop, or None if the fixture is not a loop."""
    name, loop = definition.argname, SessionLoop.find(config)
    if _RUNNERS.search(name) and is_from_pytest_asyncio(definition.func):
        return lambda: LoopRunner(loop)
    # Before pytest-asyncio 1.0 a project could define its own `event_loop`.
    if name == "event_loop" or (_LOOPS.search(name) and is_from_pytest_asyncio(definition.func)):
        return lambda: loop.loop
    return None


def _copy_definition(definition: Any, give: Callable[[], Any]) -> Any:
    """Return a definition under another name, as pytest-asyncio closes a loop by its name."""
    own = copy.copy(definition)
    own.argname, own.argnames, own.func = f"ci_agent_eval {definition.argname}", (), give
    own._scope = Scope.Session  # noqa: SLF001 - pytest compares this attribute
    own.params = own.cached_result = None
    own._finalizers = []  # noqa: SLF001 - a definition's state is this list and the result
    return own
