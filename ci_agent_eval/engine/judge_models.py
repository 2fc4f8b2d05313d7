"""The models of judges: within rate limits, from the cassette, with their usage recorded."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from ci_agent_eval.contract.trajectory import TokenUsage
from ci_agent_eval.engine.cassette.model import CassetteModel
from ci_agent_eval.engine.declarations import Agent, Provider
from ci_agent_eval.engine.model import build_model_settings
from ci_agent_eval.engine.prices import get_price_table
from ci_agent_eval.engine.rate_limits import RateLimitTally
from ci_agent_eval.engine.session import EngineSession
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder


@dataclass(frozen=True)
class JudgeModels:
    """What a judge's model is asked with: within its limits, from the cassette, counted."""

    session: EngineSession
    episode_id: str
    recorder: EpisodeRecorder

    async def model(self, judge: Provider | Model, tally: RateLimitTally) -> Model:
        """Return the model of a judge. Raises InputError where it cannot be built."""
        model = await self._opened(judge, tally)
        self.recorder.note_conditions(judge=model.model_id)
        return CountedModel(model, self)

    async def _opened(self, judge: Provider | Model, tally: RateLimitTally) -> Model:
        if isinstance(judge, Provider):
            agent = Agent(judge, name="judge")
            self.session.learn(agent)
            return await self.session.model_for(agent, self.episode_id, tally)
        cassette_session = self.session.get_cassette_session(self.episode_id)
        return judge if cassette_session is None else CassetteModel(judge, cassette_session)

    def record(self, response: ModelResponse) -> None:
        """Count an answer as the judge's."""
        usage, recorder = response.usage, self.recorder
        tokens = TokenUsage(
            input=usage.input_tokens, output=usage.output_tokens, cached=usage.cache_read_tokens
        )
        # The cassette counts over all that was asked in the episode.
        misses = self.session.cassette_counts(self.episode_id).misses - recorder.cassette_misses
        cost = compute_cost(response)
        recorder.record_judge(tokens, cost, cassette_misses=misses)
        if cost is not None:
            recorder.note_conditions(prices=get_price_table())


class CountedModel(WrapperModel):
    """A model whose answers are counted as a judge's."""

    def __init__(self, wrapped: Model, models: JudgeModels) -> None:
        super().__init__(wrapped)
        self.models = models

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask the model, and record what the answer took."""
        response = await super().request(messages, model_settings, model_request_parameters)
        self.models.record(response)
        return response


def compute_cost(response: ModelResponse) -> float | None:
    """Return US dollars for a response; None where its price or its usage is not known."""
    usage = response.usage
    if usage.unmeasured_requests:
        return None
    if usage.cost is not None:
        return float(usage.cost)
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None


def parse_judge_model(model: object) -> Provider | Model:
    """Return a judge: a provider, a model's name, a model of PydanticAI. Raises InputError."""
    if isinstance(model, Provider | Model):
        return model
    if isinstance(model, str):
        return Provider(model)
    raise InputError(
        f"judge: the model must be a name such as openai:gpt-5-mini, a Provider or a PydanticAI "
        f"model, got {model!r}"
    )


def get_judge_settings(judge: Provider | Model) -> ModelSettings | None:
    """Return the settings a provider declares; a model brings its own."""
    return build_model_settings(judge) if isinstance(judge, Provider) else None
