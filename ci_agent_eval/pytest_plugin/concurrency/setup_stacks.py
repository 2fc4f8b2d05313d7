"""Which nodes are set up: pytest's stack, with one of its own for each episode started ahead.

The entries of session, package, module and class are the same in all of them, so that what is
added to one of these is torn down with it, whoever asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar
from functools import partial
from typing import Any

import pytest
from _pytest.runner import SetupState

__tracebackhide__ = True  # a failure shows the frames of the test and of its fixtures

Stack = dict[Any, Any]
"""Nodes in order, each with its finalizers and what its setup raised: `SetupState.stack`."""

_own: ContextVar[Stack | None] = ContextVar("ci_agent_eval_stack", default=None)


@contextmanager
def use_stack(stack: Stack) -> Iterator[None]:
    """Let what is set up in this context go onto a stack of its own."""
    token = _own.set(stack)
    try:
        yield
    finally:
        _own.reset(token)


def set_stack(stack: Stack) -> None:
    """Let all that is set up in this context from now on go onto a stack of its own."""
    _own.set(stack)


class SetupStacks(SetupState):
    """Stands in the place of pytest's own state; a subclass, so that it keeps its rules."""

    def __init__(
        self,
        stack: Stack,
        begun: Callable[[Any], Stack | None],
        before_teardown: Callable[[Any], None],
    ) -> None:
        self._main = stack
        self._begun = begun
        """Called with the item that is to be set up: its own stack, if it was started ahead."""
        self._before_teardown = before_teardown
        """Called before anything is torn down, with the next item."""

    @property
    def stack(self) -> Stack:
        """The stack of this context: that of the item whose turn it is, unless it has its own."""
        own = _own.get()
        return self._main if own is None else own

    @stack.setter
    def stack(self, stack: Stack) -> None:
        """Replace that of the item whose turn it is, as older pytest-rerunfailures does."""
        self._main = stack

    @stack.setter
    def stack(self, stack: Stack) -> None:
        """Put another one in its place, as older versions of pytest-rerunfailures do."""
        self._main = stack

    def stack_for(self, item: pytest.Item, others: Sequence[Stack]) -> Stack:
        """Return a stack for an item whose turn has not come, with what it shares."""
        stacks = [self._main, *others]
        *collectors, _ = item.listchain()
        shared = {node: _get_entry(node, stacks) for node in collectors}
        return {**shared, item: ([item.teardown], None)}

    def has(self, node: object) -> bool:
        """Say whether a node is set up for the item whose turn it is."""
        return node in self._main

    def setup(self, item: pytest.Item) -> None:
        """Set an item up, or take over what was set up ahead; raises what that raised."""
        own = self._begun(item)
        if own is None:
            super().setup(item)
            return
        self._main = own
        error = own[item][1]
        if error is not None:
            raise error[0].with_traceback(error[1])

    def teardown_exact(self, nextitem: pytest.Item | None) -> None:
        """Tear down as pytest does, after what was started ahead and has to go."""
        try:
            self._before_teardown(nextitem)
        finally:
            super().teardown_exact(nextitem)


def _get_entry(node: Any, stacks: list[Stack]) -> Any:
    found = next((stack[node] for stack in stacks if node in stack), None)
    return found or ([node.teardown], None)


def bind_teardown_context(context: Context, stack: Stack, item: pytest.Item) -> None:
    """Let an item's finalizers run in the context that its fixtures were set up in."""
    if item in stack:
        finalizers = stack[item][0]
        finalizers[:] = [partial(context.run, finalizer) for finalizer in finalizers]


def tear_down_node(stack: Stack, node: object) -> list[BaseException]:
    """Tear one node of a stack down and take it off; return what its finalizers raised."""
    finalizers, _ = stack.pop(node)
    errors: list[BaseException] = []
    while finalizers:
        try:
            finalizers.pop()()
        except (Exception, pytest.skip.Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - told, and the rest is torn down all the same
            errors.append(error)
    return errors
