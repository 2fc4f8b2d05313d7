"""Connections of the models of your own agents, kept open between runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_ai.models import Model

MAX_IDLE = 8
"""Number of idle models whose connections stay open."""


class ModelConnections:
    """The models in use on one event loop, and the recently used ones.

    Entering a model for each run would close its client after it: the next run would load all
    CA certificates and connect again. A model is not entered between runs either, so that a
    test may use it on another event loop, as PydanticAI allows.
    """

    def __init__(self) -> None:
        self._users: dict[int, int] = {}
        self._idle: dict[int, Model] = {}

    @asynccontextmanager
    async def hold(self, model: Model) -> AsyncIterator[None]:
        """Hold a model's connections for a run; a custom context manager is entered and left."""
        unwrapped = _unwrap_model(model)
        if not _is_plain(unwrapped):
            async with model:
                yield
            return
        key = id(unwrapped)
        self._idle.pop(key, None)
        self._users[key] = self._users.get(key, 0) + 1
        try:
            yield
        finally:
            await self._release(unwrapped)

    async def close(self) -> None:
        """Close the connections of all idle models."""
        while self._idle:
            _, model = self._idle.popitem()
            await _close_model(model)

    async def _release(self, model: Model) -> None:
        key = id(model)
        self._users[key] -= 1
        if self._users[key]:
            return
        del self._users[key]
        self._idle[key] = model
        if len(self._idle) > MAX_IDLE:
            oldest = next(iter(self._idle))
            await _close_model(self._idle.pop(oldest))


async def _close_model(model: Model) -> None:
    """Close a model's connections: PydanticAI does so when its last context exits."""
    async with model:
        pass


def _unwrap_model(model: Model) -> Model:
    """Return the model inside wrappers without a custom context manager."""
    from pydantic_ai.models.wrapper import WrapperModel  # noqa: PLC0415 - an extra

    while isinstance(model, WrapperModel) and type(model).__aenter__ is WrapperModel.__aenter__:
        model = model.wrapped
    return model


def _is_plain(model: Model) -> bool:
    """Return whether entering the model opens only its default client."""
    from pydantic_ai.models import Model  # noqa: PLC0415 - an extra
    from pydantic_ai.providers import Provider  # noqa: PLC0415 - an extra

    if type(model).__aenter__ is not Model.__aenter__:
        return False
    return model.provider is None or type(model.provider).__aenter__ is Provider.__aenter__
