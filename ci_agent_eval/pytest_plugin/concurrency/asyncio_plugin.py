"""pytest-asyncio's fixtures for event loops: a test on our loop receives our loop instead.

Its tests and fixtures request them by names that differ between versions: `event_loop`,
`_session_event_loop`, `_function_scoped_runner` and more.
"""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

import pytest
from _pytest.scope import Scope

from ci_agent_eval.pytest_plugin.concurrency.fixtures import OwnDefinitions
from ci_agent_eval.pytest_plugin.concurrency.loop_members import is_from_pytest_asyncio
from ci_agent_eval.pytest_plugin.concurrency.session_loop import SessionLoop

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
