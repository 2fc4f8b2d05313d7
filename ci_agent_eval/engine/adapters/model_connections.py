"""The connections of models that agents bring with them: they outlive a run, and are closed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic_ai.models import Model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers import Provider

MAX_IDLE = 8
"""Models without a run whose connections stay open; a test may make a model of its own."""


class ModelConnections:
    """Who uses which model now, on one event loop, and the models that were used last.

    To enter a model for each run would close its client after it: the next run would read
    the certificates of all authorities anew, and connect anew. A model is not entered between
    runs either, so that a test may use it on another event loop, as PydanticAI lets it.
    """

    def __init__(self) -> None:
        self._users: dict[int, int] = {}
        self._idle: dict[int, Model] = {}

    @asynccontextmanager
    async def using(self, model: Model) -> AsyncIterator[None]:
        """Use a model for a run; one that has an entrance of its own is entered and left."""
        inner = _unwrap_model(model)
        if not _is_plain(inner):
            async with model:
                yield
            return
        key = id(inner)
        self._idle.pop(key, None)
        self._users[key] = self._users.get(key, 0) + 1
        try:
            yield
        finally:
            await self._left(inner)

    async def close(self) -> None:
        """Close the connections of every model that has no run."""
        while self._idle:
            _, model = self._idle.popitem()
            await _close_model(model)

    async def _left(self, model: Model) -> None:
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
    """Close a model's connections: PydanticAI does where it is left by the last who entered."""
    async with model:
        pass


def _unwrap_model(model: Model) -> Model:
    """Return the model inside of wrappers that have no entrance of their own."""
    while isinstance(model, WrapperModel) and type(model).__aenter__ is WrapperModel.__aenter__:
        model = model.wrapped
    return model


def _is_plain(model: Model) -> bool:
    """Say whether entering the model opens nothing but what a run without it opens by itself."""
    if type(model).__aenter__ is not Model.__aenter__:
        return False
    return model.provider is None or type(model.provider).__aenter__ is Provider.__aenter__
