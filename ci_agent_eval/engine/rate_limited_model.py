"""A PydanticAI model within its provider's rate limits.

The retries of the provider's library are disabled, because the limiter could not count them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
)
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from ci_agent_eval.engine.rate_limits import ExcludeWait, Limiter, compute_backoff_s
from ci_agent_eval.model_traffic import attribution

MAX_RATE_LIMIT_RETRIES = 8
"""Retries of a request after status 429."""
MAX_TRANSIENT_RETRIES = 2
"""Retries after a 5xx or a broken connection, as in the providers' libraries."""
MAX_RETRY_AFTER_S = 120.0
"""A longer wait counts as a refusal."""
CHARACTERS_PER_TOKEN = 4


class RateLimitedModel(WrapperModel):
    """A model within a provider's limits, for one run."""

    def __init__(self, wrapped: Model, limiter: Limiter, exclude_wait: ExcludeWait) -> None:
        super().__init__(wrapped)
        self.limiter = limiter
        self.exclude_wait = exclude_wait

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Send the request within the limits; retry temporary failures."""
        settings = self._disable_retries(model_settings or ModelSettings())
        failures = _FailureCounts()
        while True:
            try:
                return await self._request_once(messages, settings, model_request_parameters)
            except ModelAPIError as error:
                if not failures.should_retry(error):
                    raise
                await self._wait_before_retry(error, failures)

    async def _request_once(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings,
        parameters: ModelRequestParameters,
    ) -> ModelResponse:
        limiter = self.limiter
        recorder = attribution.find_recorder()
        if recorder is not None and recorder.is_replay:
            return await self.wrapped.request(messages, settings, parameters)
        tokens = self._estimate_tokens(messages, settings)
        async with limiter.hold(tokens, self.exclude_wait) as entry:
            try:
                response = await self.wrapped.request(messages, settings, parameters)
            except ModelRateLimitError as error:
                limiter.windows.pause(compute_backoff_s(1, _cap_retry_after(error.retry_after)))
                raise
            calls = () if recorder is None else recorder.calls
            if calls and calls[-1].source == "replayed":
                entry.give_back()
                return response
            if not response.usage.unmeasured_requests:
                entry.amount = response.usage.total_tokens
            return response

    def _disable_retries(self, settings: ModelSettings) -> ModelSettings:
        """Return the settings with disabled retries of the provider's library."""
        client = getattr(self.wrapped, "client", None)
        if getattr(client, "max_retries", None) == 0:
            return settings
        return ModelSettings(**{**settings, "max_retries": 0})

    async def _wait_before_retry(self, error: ModelAPIError, failures: _FailureCounts) -> None:
        """Wait before a retry; without a hint of the server, longer after each failure."""
        with self.exclude_wait():
            await self.limiter.sleep(compute_backoff_s(failures.total, error.retry_after))

    def _estimate_tokens(self, messages: list[ModelMessage], settings: ModelSettings) -> float:
        """Estimate the tokens of a request; corrected after the response."""
        if not self.limiter.windows.counts_tokens:
            return 0
        return _count_characters(messages) / CHARACTERS_PER_TOKEN + settings.get("max_tokens", 0)


@dataclass
class _FailureCounts:
    """Failed attempts of one request, by kind."""

    rate_limited: int = 0
    transient: int = 0

    @property
    def total(self) -> int:
        return self.rate_limited + self.transient

    def should_retry(self, error: ModelAPIError) -> bool:
        """Count a failure; return whether to retry."""
        if (error.retry_after or 0) > MAX_RETRY_AFTER_S:
            return False
        if isinstance(error, ModelRateLimitError):
            self.rate_limited += 1
            return self.rate_limited <= MAX_RATE_LIMIT_RETRIES
        if not _is_transient(error):
            return False
        self.transient += 1
        return self.transient <= MAX_TRANSIENT_RETRIES


def _is_transient(error: ModelAPIError) -> bool:
    """Return whether a retry can help; the provider's hint (`x-should-retry`) has priority."""
    if isinstance(error, ModelHTTPError) and error.provider_retry_hint is not None:
        return error.provider_retry_hint
    return isinstance(error, ModelServerError | ModelUnavailableError | ModelConnectionError)


def _cap_retry_after(retry_after: float | None) -> float | None:
    return None if retry_after is None else min(retry_after, MAX_RETRY_AFTER_S)


def _count_characters(messages: list[ModelMessage]) -> int:
    total = 0
    for message in messages:
        total += sum(len(str(getattr(part, "content", ""))) for part in message.parts)
        total += len(message.instructions or "") if isinstance(message, ModelRequest) else 0
    return total
