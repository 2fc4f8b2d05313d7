"""The nodes that are set up: pytest's stack, with a separate one for each episode started ahead.

All stacks share the entries of session, package, module and class, so that a finalizer added to
such a node runs at its teardown, whichever episode added it.
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
