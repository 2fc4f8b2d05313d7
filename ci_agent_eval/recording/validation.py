"""Validation of values from tests: an invalid value raises an error that names its key."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ci_agent_eval.contract.base import describe_validation_error
from ci_agent_eval.errors import InputError

Value = TypeVar("Value")

Clock = Callable[[], float]
"""Monotonic seconds from any fixed point."""


class Refusing(Protocol):
    """A recorder that keeps the sentences of the records that it refused."""

    @property
    def refused(self) -> list[str]:
        """The sentences so far, to which more are added."""


Recorder = TypeVar("Recorder", bound=Refusing)
Parameters = ParamSpec("Parameters")


def note_refusals(
    method: Callable[Concatenate[Recorder, Parameters], Value],
) -> Callable[Concatenate[Recorder, Parameters], Value]:
    """Let a method note the InputError that it raises: the agent may catch it."""

    @functools.wraps(method)
    def record(self: Recorder, /, *args: Parameters.args, **options: Parameters.kwargs) -> Value:
        try:
            return method(self, *args, **options)
        except InputError as error:
            if str(error) not in self.refused:
                self.refused.append(str(error))
            raise

    return record


def build_value(where: str, model: Callable[..., Value], /, **values: Any) -> Value:
    """Build a contract value. Raises InputError, which names `where` and the problem."""
    try:
        return model(**values)
    except ValueError as error:
        raise InputError(f"{where}: {describe_validation_error(error)}") from None
