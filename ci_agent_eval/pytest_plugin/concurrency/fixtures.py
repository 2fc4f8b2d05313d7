"""Fixtures of a concurrent episode: its own function-scoped ones, and shared ones.

pytest keeps one value at a time in a fixture's definition. So a concurrent episode gets its own
definitions of its function-scoped fixtures; the wider ones stay shared. A class or module gets a
copy of a definition that another class or module is using: a running test requested it, which could
not be known before.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar
from functools import partial
from typing import Any

import pytest
from _pytest.runner import SetupState
from _pytest.scope import Scope

from ci_agent_eval.pytest_plugin.concurrency import held_changes
from ci_agent_eval.pytest_plugin.evaluation.evaluation_files import is_evaluation
from ci_agent_eval.pytest_plugin.parts import get_parts

_COPIES = pytest.StashKey[dict[Any, Any]]()
"""In the stash of a class or module: its copies of definitions that others were using."""

_HOLDER_ATTRIBUTE = "ci_agent_eval_holder"
"""Attribute of a definition: the node that its value was created for."""

_NODES: dict[Scope, type] = {Scope.Class: pytest.Class, Scope.Module: pytest.Module}


class OwnDefinitions(dict[str, Sequence[Any]]):
    """An item's fixture definitions by name, some of them copied for the item.

    Definitions that a test requests while it runs are copied on their first look-up.
    """

    def __init__(self, item: pytest.Function, own: Callable[[pytest.Function, Any], Any]) -> None:
        """Copy the item's definitions; `own` returns the replacement of each."""
        super().__init__()
        self._item = item
        self._own = own
        # pytest has no public access to an item's definitions.
        self._before: Any = item._fixtureinfo.name2fixturedefs  # noqa: SLF001 - see above
        for name, definitions in self._before.items():
            self[name] = [own(item, definition) for definition in definitions]

    def get(self, name: str, default: Any = None) -> Any:
        """Return the definitions of a name, looked up now if unknown."""
        if name not in self:
            found = self._look_up(name)
            if found is None:
                return default
            self[name] = [self._own(self._item, definition) for definition in found]
        return self[name]

    def _look_up(self, name: str) -> Sequence[Any] | None:
        if isinstance(self._before, OwnDefinitions):
            found: Sequence[Any] | None = self._before.get(name)
            return found
        return look_up_definitions(self._item, name)

    def copy(self) -> OwnDefinitions:
        """Return itself: a request of pytest 8.0 makes a copy, and must not lose this class."""
        return self


def look_up_definitions(item: pytest.Function, name: str) -> Sequence[Any] | None:
    """Return the definitions of a fixture that are visible to an item, as pytest looks them up."""
    manager = item.session._fixturemanager  # noqa: SLF001 - it has no public name
    # pytest 8.0 takes the id of a node instead of the node.
    asks_for_id = "nodeid" in inspect.signature(manager.getfixturedefs).parameters
    node: Any = item.parent.nodeid if asks_for_id and item.parent is not None else item
    found: Sequence[Any] | None = manager.getfixturedefs(name, node)
    return found


def _choose_definition(item: pytest.Function, definition: Any) -> Any:
    scope = get_effective_scope(item, definition)
    if scope in {Scope.Session, Scope.Package}:
        return definition
    if scope is not Scope.Function:
        return _choose_node_definition(item, definition, scope)
    own = _copy_definition(definition)
    if definition.argname == held_changes.FIXTURE and held_changes.is_held(item):
        scheduler = get_parts(item.config).scheduler
        assert scheduler is not None  # noqa: S101 - it has made the episode's task
        return scheduler.changes.build_definition(item, own)
    return own


def _choose_node_definition(item: pytest.Function, definition: Any, scope: Scope) -> Any:
    """Return the definition that the tests of a class or module share."""
    node = _get_scope_node(item, scope)
    copies = node.stash.setdefault(_COPIES, {})
    if definition in copies and copies[definition].cached_result is not None:
        return copies[definition]
    # A nested class shares the fixture of the outer class, as in any run.
    holder = getattr(definition, _HOLDER_ATTRIBUTE, node)
    if definition.cached_result is None or holder in item.listchain():
        return definition
    return copies.setdefault(definition, _copy_definition(definition))


def set_holder(definition: Any, node: pytest.Item | pytest.Collector) -> None:
    """Store the node that a fixture is about to be set up for."""
    if isinstance(node, pytest.Class | pytest.Module):
        setattr(definition, _HOLDER_ATTRIBUTE, node)


def _copy_definition(definition: Any) -> Any:
    own = copy.copy(definition)
    own.cached_result = None
    own._finalizers = []  # noqa: SLF001 - a definition's state is this list and the result
    return own


def get_effective_scope(item: pytest.Function, definition: Any) -> Scope:
    """Return a fixture's scope in an item: parametrization may widen it.

    Class scope counts as function scope outside of classes.
    """
    scopes: dict[str, Scope] = getattr(getattr(item, "callspec", None), "_arg2scope", {})
    found: Scope = scopes.get(definition.argname, definition._scope)  # noqa: SLF001 - the scope as pytest compares it
    if found is Scope.Class and item.getparent(pytest.Class) is None:
        return Scope.Function
    return found


def give_own_definitions(item: pytest.Function) -> Any:
    """Give the item its own definitions; return the old ones for `restore_definitions`."""
    before = item._fixtureinfo  # noqa: SLF001 - see OwnDefinitions
    definitions = OwnDefinitions(item, _choose_definition)
    item._fixtureinfo = dataclasses.replace(before, name2fixturedefs=definitions)  # noqa: SLF001 - as above
    item._initrequest()  # noqa: SLF001 - as pytest's own runner does before a rerun
    return before


def restore_definitions(item: pytest.Function, before: Any) -> None:
    """Replace the item's own definitions by the shared ones."""
    item._fixtureinfo = before  # noqa: SLF001 - see give_own_definitions


def list_shared_fixtures(item: pytest.Function) -> Iterator[str]:
    """Yield the names of the item's fixtures that other tests share, widest first."""
    for name in item.fixturenames:
        if any(
            get_effective_scope(item, d) is not Scope.Function for d in _get_definitions(item, name)
        ):
            yield name


def _get_definitions(item: pytest.Function, name: str) -> Sequence[Any]:
    found: Sequence[Any] = item._fixtureinfo.name2fixturedefs.get(name, ())  # noqa: SLF001 - see OwnDefinitions
    return found


def list_shared_needs(item: pytest.Function) -> dict[str, object]:
    """Return the item's shared needs: episodes overlap only if all of them have the same.

    A fixture of class, module or package scope lives as long as its node, and a parametrized
    fixture has one value at a time; and either all asserts are measured, or none.
    """
    needs: dict[str, object] = {"mode": is_evaluation(item)}
    callspec = getattr(item, "callspec", None)
    for name in item.fixturenames:
        for definition in _get_definitions(item, name):
            scope = get_effective_scope(item, definition)
            if scope is Scope.Function:
                continue
            if scope is not Scope.Session:
                needs[scope.value] = _get_scope_node(item, scope)
            if callspec is not None and name in callspec.params:
                needs[f"[{name}]"] = callspec.indices[name]
    return needs


def _get_scope_node(item: pytest.Function, scope: Scope) -> Any:
    kind = _NODES.get(scope)
    # A package's fixtures live as long as its folder.
    return item.path.parent if kind is None else item.getparent(kind)


__tracebackhide__ = True  # a failure shows the frames of the test and of its fixtures

Stack = dict[Any, Any]
"""Nodes in order, each with its finalizers and the error of its setup: `SetupState.stack`."""

_own_stack: ContextVar[Stack | None] = ContextVar("ci_agent_eval_stack", default=None)


@contextmanager
def use_stack(stack: Stack) -> Iterator[None]:
    """Use another stack for setups in this context within the `with` block."""
    token = _own_stack.set(stack)
    try:
        yield
    finally:
        _own_stack.reset(token)


def set_stack(stack: Stack) -> None:
    """Use another stack for all later setups in this context."""
    _own_stack.set(stack)


class SetupStacks(SetupState):
    """Replaces pytest's own state; a subclass, so that it keeps pytest's rules."""

    def __init__(
        self,
        stack: Stack,
        begin_turn: Callable[[Any], Stack | None],
        before_teardown: Callable[[Any], None],
    ) -> None:
        self._main = stack
        self._begin_turn = begin_turn
        """Called with the item to set up; returns its stack if it was started ahead."""
        self._before_teardown = before_teardown
        """Called with the next item before any teardown."""

    @property
    def stack(self) -> Stack:
        """The stack of this context: its own, or the current item's."""
        own = _own_stack.get()
        return self._main if own is None else own

    @stack.setter
    def stack(self, stack: Stack) -> None:
        """Replace the current item's stack, as older pytest-rerunfailures does."""
        self._main = stack

    def build_stack(self, item: pytest.Item, others: Sequence[Stack]) -> Stack:
        """Return a new stack for an item that is started ahead, with the shared nodes."""
        stacks = [self._main, *others]
        *collectors, _ = item.listchain()
        shared = {node: _get_entry(node, stacks) for node in collectors}
        return {**shared, item: ([item.teardown], None)}

    def has(self, node: object) -> bool:
        """Return whether a node is set up for the current item."""
        return node in self._main

    def setup(self, item: pytest.Item) -> None:
        """Set an item up, or use the setup made ahead; raises the error of that setup."""
        stack = self._begin_turn(item)
        if stack is None:
            super().setup(item)
            return
        self._main = stack
        error = stack[item][1]
        if error is not None:
            raise error[0].with_traceback(error[1])

    def teardown_exact(self, nextitem: pytest.Item | None) -> None:
        """Tear down as pytest does, after the unneeded episodes that were started ahead."""
        try:
            self._before_teardown(nextitem)
        finally:
            super().teardown_exact(nextitem)


def _get_entry(node: Any, stacks: list[Stack]) -> Any:
    found = next((stack[node] for stack in stacks if node in stack), None)
    return found or ([node.teardown], None)


def bind_teardown_context(context: Context, stack: Stack, item: pytest.Item) -> None:
    """Run an item's finalizers in the context in which its fixtures were set up."""
    if item in stack:
        finalizers = stack[item][0]
        finalizers[:] = [partial(context.run, finalizer) for finalizer in finalizers]


def tear_down_node(stack: Stack, node: object) -> list[BaseException]:
    """Tear down one node of a stack and remove it; return the errors of its finalizers."""
    finalizers, _ = stack.pop(node)
    errors: list[BaseException] = []
    while finalizers:
        try:
            finalizers.pop()()
        except (Exception, pytest.skip.Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - returned, so that the other finalizers run
            errors.append(error)
    return errors
