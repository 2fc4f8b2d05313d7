"""A PydanticAI model that answers from a cassette, or keeps what another answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from pydantic import ValidationError
from pydantic_ai import RunContext
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

from ci_agent_eval.engine.cassette.canonical import CanonicalRequest, canonicalize_request
from ci_agent_eval.engine.cassette.misses import CassetteMissError
from ci_agent_eval.engine.cassette.responses import record_response, replay_response
from ci_agent_eval.engine.cassette.session import CassetteSession
from ci_agent_eval.errors import InputError


class UnbuiltModel(Model):
    """Stands for a model that replay never builds; it has a name and a profile, and no more."""

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

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Refuse: there is no model here."""
        del messages, model_settings, model_request_parameters
        raise CassetteMissError(_describe_live_call("request"))


class CassetteModel(WrapperModel):
    """Answers from a tape, or asks the inner model and keeps the answer on it.

    `inner` may be a function that makes the model. In replay it is never called: the
    model then goes by `model_id` (default: that of the first recording), with `profile`
    where the agent depends on one.
    """

    def __init__(
        self,
        inner: Model | Callable[[], Model],
        tape: CassetteSession,
        *,
        model_id: str | None = None,
        profile: ModelProfile | None = None,
    ) -> None:
        if isinstance(inner, Model):
            built = inner
        elif tape.mode == "replay":
            built = UnbuiltModel(model_id or _find_recorded_model(tape), profile)
        else:
            built = inner()
        super().__init__(built)
        self.tape = tape
        self.asked = 0
        """Requests that came here."""

    @property
    def model_id(self) -> str:
        """The model's provider and name; of one that is not built, as it was recorded."""
        return self.wrapped.model_id

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Answer from the tape, or ask the model; raises CassetteMissError in replay."""
        tape = self.tape
        self.asked += 1
        if tape.mode == "off":
            tape.live += 1
            return await super().request(messages, model_settings, model_request_parameters)
        request = self._canonical(messages, model_settings, model_request_parameters)
        recording = tape.find_response(request)
        if recording is not None:
            try:
                return replay_response(recording, request)
            except ValidationError as error:
                raise InputError(
                    f"{tape.source}: a recorded response is none: {error}; record it anew"
                ) from error
        place = tape.begin(request)
        response = await super().request(messages, model_settings, model_request_parameters)
        tape.keep(place, record_response(response, request, tape.redact))
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Stream an answer that is whole: what a consumer left unread would be recorded cut."""
        if self.tape.mode == "off":
            self.tape.live += 1
            async with super().request_stream(
                messages, model_settings, model_request_parameters, run_context
            ) as live:
                yield live
            return
        response = await self.request(messages, model_settings, model_request_parameters)
        yield CompletedStreamedResponse(
            response, model_request_parameters=model_request_parameters, replay_events=True
        )

    async def count_tokens(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> RequestUsage:
        """Ask the model to count; refused in replay."""
        self._refuse_in_replay("count_tokens")
        return await super().count_tokens(messages, model_settings, model_request_parameters)

    async def compact_messages(
        self, request_context: ModelRequestContext, *, instructions: str | None = None
    ) -> ModelResponse:
        """Ask the model to shorten the conversation; refused in replay."""
        self._refuse_in_replay("compact_messages")
        return await super().compact_messages(request_context, instructions=instructions)

    def _refuse_in_replay(self, what: str) -> None:
        if self.tape.mode == "replay":
            raise self.tape.refuse(_describe_live_call(what))

    def _canonical(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> CanonicalRequest:
        merged = merge_model_settings(self.wrapped.settings, settings)
        return canonicalize_request(self.model_id, messages, merged, parameters, self.tape.redact)


def _describe_live_call(what: str) -> str:
    return f"a live call ({what}) in replay; it is not recorded, use --cassette=off for it"


def _find_recorded_model(tape: CassetteSession) -> str:
    takes = tape.cassette.takes.values()
    return next((str(e.request.head["model"]) for take in takes for e in take), "unknown:unknown")
