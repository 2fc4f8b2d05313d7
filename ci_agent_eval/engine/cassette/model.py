"""A PydanticAI model that replays a cassette, or records another model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from pydantic import ValidationError
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelContextWindowExceededError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import (
    CompletedStreamedResponse,
    Model,
    ModelRequestContext,
    ModelRequestParameters,
    StreamedResponse,
)
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings, merge_model_settings
from pydantic_ai.usage import RequestUsage

from ci_agent_eval.engine.cassette.canonical import CanonicalRequest
from ci_agent_eval.engine.cassette.misses import CassetteMissError
from ci_agent_eval.engine.cassette.requests import canonicalize_request
from ci_agent_eval.engine.cassette.responses import (
    record_overflow,
    record_response,
    replay_response,
)
from ci_agent_eval.engine.cassette.session import CassetteSession
from ci_agent_eval.engine.cassette.traffic_player import suspend_players
from ci_agent_eval.engine.response_cost import set_cost
from ci_agent_eval.errors import InputError


class UnbuiltModel(Model):
    """Replaces a model that is not built in replay; has only a name and a profile."""

    def __init__(self, model_id: str, profile: ModelProfile | None = None) -> None:
        super().__init__(profile=profile)
        self._system, _, self._name = model_id.partition(":")

    @property
    def model_name(self) -> str:
        """The model's name without its provider."""
        return self._name

    @property
    def system(self) -> str:
        """The provider's name."""
        return self._system

    async def request(self, *args: object, **kwargs: object) -> ModelResponse:
        """Raise CassetteMissError."""
        del args, kwargs
        raise CassetteMissError(_describe_live_call("request"))


class CassetteModel(WrapperModel):
    """Answers from a cassette session, or asks the inner model and records its response.

    `inner` may be a function that builds the model. In replay it is never called: the model
    is then named `model_id` (default: the model of the first recording), with `profile` if the
    agent depends on one.
    """

    def __init__(
        self,
        inner: Model | Callable[[], Model],
        session: CassetteSession,
        *,
        model_id: str | None = None,
        profile: ModelProfile | None = None,
    ) -> None:
        if isinstance(inner, Model):
            built = inner
        elif session.mode == "replay":
            built = UnbuiltModel(model_id or _find_recorded_model(session), profile)
        else:
            built = inner()
        super().__init__(built)
        self.session = session
        self.request_count = 0
        """Number of requests to this model."""

    @property
    def model_id(self) -> str:
        """The model's provider and name; in replay as recorded."""
        return self.wrapped.model_id

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Answer from the cassette, or ask the model.

        Raises CassetteMissError in replay, and ModelContextWindowExceededError as recorded.
        """
        session = self.session
        self.request_count += 1
        if session.mode == "off":
            session.live += 1
            return await super().request(messages, model_settings, model_request_parameters)
        request = self._canonicalize_request(messages, model_settings, model_request_parameters)
        recording = session.find_response(request)
        if recording is not None:
            try:
                return replay_response(recording, request)
            except ValidationError as error:
                raise InputError(
                    f"{session.source}: a recorded response is none: {error}; record it anew"
                ) from error
        number = session.reserve_response(request)
        try:
            with suspend_players():
                response = await super().request(messages, model_settings, model_request_parameters)
        except ModelContextWindowExceededError as error:
            session.store_response(number, record_overflow(error, session.redact))
            raise
        set_cost(response)
        session.store_response(number, record_response(response, request, session.redact))
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Stream a complete response; a partly read stream would be recorded incomplete."""
        if self.session.mode == "off":
            self.session.live += 1
            async with super().request_stream(
                messages, model_settings, model_request_parameters, run_context
            ) as live:
                yield live
            return
        response = await self.request(messages, model_settings, model_request_parameters)
        yield CompletedStreamedResponse(
            response, model_request_parameters=model_request_parameters, replay_events=True
        )

    async def count_tokens(self, *args: Any, **kwargs: Any) -> RequestUsage:
        """Count tokens with the model; refused in replay."""
        self._refuse_in_replay("count_tokens")
        return await super().count_tokens(*args, **kwargs)

    async def compact_messages(
        self, request_context: ModelRequestContext, *, instructions: str | None = None
    ) -> ModelResponse:
        """Compact the conversation with the model; refused in replay."""
        self._refuse_in_replay("compact_messages")
        return await super().compact_messages(request_context, instructions=instructions)

    def _refuse_in_replay(self, method: str) -> None:
        if self.session.mode == "replay":
            raise self.session.refuse(_describe_live_call(method))

    def _canonicalize_request(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> CanonicalRequest:
        merged = merge_model_settings(self.wrapped.settings, settings)
        return canonicalize_request(
            self.model_id, messages, merged, parameters, self.session.normalize
        )


def _describe_live_call(method: str) -> str:
    return f"a live call ({method}) in replay; it is not recorded, use --cassette=off for it"


def _find_recorded_model(session: CassetteSession) -> str:
    requests = (e.request for take in session.cassette.takes.values() for e in take)
    known = (str(r.head["model"]) for r in requests if isinstance(r, CanonicalRequest))
    return next(known, "unknown:unknown")
