"""`@llm_unit` and `@llm_episode`: declarations of a test that the plugin reads.

Both keep the function's name, signature and marks. `llm_unit` changes nothing else;
`llm_episode` merges the test's return value into its episode.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

LINKED_ATTRIBUTE = "__agent_eval_linked__"
"""Attribute of a test whose arguments are linked to a data set item."""

RETURNING_ATTRIBUTE = "__agent_eval_returning__"
"""Attribute of a test that returns its episode."""

Test = TypeVar("Test")


@dataclass(frozen=True, slots=True)
class LinkedArguments:
    """Names of the test's arguments for input, expected output and metadata."""

    input: str
    expected_output: str
    metadata: str


@dataclass(frozen=True, slots=True)
class FallbackArguments:
    """Names of the test's arguments that identify an episode if its result does not."""

    scenario_id: str
    thread_id: str


def llm_unit(
    expected_output_key: str = "expected_output",
    input_key: str = "input",
    metadata_key: str = "metadata",
) -> Callable[[Test], Test]:
    """Track a test in an experiment: its input, expected output, metadata and result.

    The keys are the names of the linked arguments (parameters, fixtures, defaults).
    """
    linked = LinkedArguments(input_key, expected_output_key, metadata_key)

    def decorate(test: Test) -> Test:
        return _set_linked_arguments("llm_unit", test, linked)

    # `@llm_unit` without brackets passes the test as the first key.
    return llm_unit()(expected_output_key) if callable(expected_output_key) else decorate


def llm_episode(
    scenario_id_key: str = "scenario_id",
    thread_id_key: str = "thread_id",
    expected_output_key: str = "expected_output",
    input_key: str = "input",
    metadata_key: str = "metadata",
) -> Callable[[Test], Test]:
    """Use the returned episode as the test's result: the test fails if the episode failed.

    The test may return an Episode, a mapping, a JSON text, a dataclass, or an object with
    `to_dict`. The first two keys name the arguments that replace a missing `scenario_id` and
    `thread_id`; the other keys are the same as for `llm_unit`.
    """
    linked = LinkedArguments(input_key, expected_output_key, metadata_key)
    returning = FallbackArguments(scenario_id_key, thread_id_key)

    def decorate(test: Any) -> Any:
        if isinstance(test, staticmethod | classmethod):
            return type(test)(decorate(test.__func__))
        wrapper = _wrap_test(_set_linked_arguments("llm_episode", test, linked), returning)
        setattr(wrapper, RETURNING_ATTRIBUTE, returning)
        return wrapper

    return llm_episode()(scenario_id_key) if callable(scenario_id_key) else decorate


def _set_linked_arguments(name: str, test: Test, linked: LinkedArguments) -> Test:
    function: Any = getattr(test, "__func__", test)
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"@{name}: decorate a test function or method, not {test!r}")
    setattr(function, LINKED_ATTRIBUTE, linked)
    return test


def _wrap_test(test: Callable[..., Any], names: FallbackArguments) -> Callable[..., Any]:
    """Wrap a sync or async test, so that its return value is merged into its episode."""
    if inspect.iscoroutinefunction(test):

        @functools.wraps(test)
        async def async_wrapper(*args: Any, **kwargs: Any) -> Any:
            return _deliver_returned_value(await test(*args, **kwargs), test, args, kwargs, names)

        return async_wrapper

    @functools.wraps(test)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return _deliver_returned_value(test(*args, **kwargs), test, args, kwargs, names)

    return wrapper


def _deliver_returned_value(
    returned: object,
    test: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    names: FallbackArguments,
) -> Any:
    from ci_agent_eval.opik.decorators import returned_episode  # noqa: PLC0415 - inert until used

    arguments = returned_episode.bind_arguments(test, args, kwargs)
    return returned_episode.deliver_episode(
        returned,
        scenario_id=arguments.get(names.scenario_id),
        thread_id=arguments.get(names.thread_id),
    )
