"""The models of judges: rate-limited, on the cassette, with recorded usage."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from ci_agent_eval.contract.episode import SideUsage
from ci_agent_eval.contract.trajectory import TokenUsage
from ci_agent_eval.engine.declarations import Agent, Provider
from ci_agent_eval.engine.model import build_model_settings
from ci_agent_eval.engine.model_calls import RecordedModel
from ci_agent_eval.engine.rate_limits import ExcludeWait
from ci_agent_eval.engine.session import EngineSession
from ci_agent_eval.engine.traffic import compute_call_cost
from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic import attribution, hooks
from ci_agent_eval.model_traffic.conversations import find_usable_answer
from ci_agent_eval.model_traffic.pricing import get_price_table
from ci_agent_eval.model_traffic.recorder import ModelCall, TrafficRecorder
from ci_agent_eval.recording import EpisodeRecorder


@dataclass(frozen=True)
class JudgeModels:
    """Builds judge models that are rate-limited, on the cassette and counted."""

    session: EngineSession
    episode_id: str
    recorder: EpisodeRecorder

    async def build(
        self, judge: Provider | Model, exclude_wait: ExcludeWait = nullcontext
    ) -> Model:
        """Build the model of a judge. Raises InputError if it cannot be built."""
        model = await self._open_model(judge, exclude_wait)
        self.recorder.note_conditions(judge=model.model_id)
        return _JudgeModel(model, self)

    async def _open_model(self, judge: Provider | Model, exclude_wait: ExcludeWait) -> Model:
        if isinstance(judge, Provider):
            agent = Agent(judge, name="judge")
            self.session.register_secrets(agent)
            return await self.session.build_run_model(agent, exclude_wait)
        return judge

    def record_call(self, call: ModelCall) -> None:
        """Record the usage and cost of a judge's answer."""
        recorder, answer = self.recorder, find_usable_answer(call)
        tokens = (answer and answer.tokens) or TokenUsage()
        cost_usd = compute_call_cost(call)
        # The counts of the cassette cover all requests of the episode.
        misses = self.session.get_cassette_counts(self.episode_id).misses - recorder.cassette_misses
        usage = SideUsage(calls=1, tokens=tokens, cost_usd=cost_usd)
        recorder.record_judge(usage, cassette_misses=misses)
        if cost_usd is not None:
            recorder.note_conditions(prices=get_price_table())


class _JudgeModel(WrapperModel):
    """A judge's model, whose requests are recorded as those of judges."""

    def __init__(self, wrapped: Model, judges: JudgeModels) -> None:
        super().__init__(wrapped)
        self._judges = judges

    async def request(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Send the request and record the response."""
        episode = attribution.find_recorder()
        player = None if episode is None else episode.player
        calls = TrafficRecorder(self._judges.session.clock, player)
        with (
            hooks.use(),
            attribution.suspend_recording(False),
            attribution.use_recorder(calls),
        ):
            response = await RecordedModel(self.wrapped).request(*args, **kwargs)
        calls.finish()
        self._judges.record_call(calls.calls[-1])
        return response


def parse_judge_model(model: object) -> Provider | Model:
    """Parse a judge: a Provider, a model name or a PydanticAI model. Raises InputError."""
    if isinstance(model, Provider | Model):
        return model
    if isinstance(model, str):
        return Provider(model)
    raise InputError(
        f"judge: the model must be a name such as openai:gpt-5-mini, a Provider or a PydanticAI "
        f"model, got {model!r}"
    )


def get_judge_settings(judge: Provider | Model) -> ModelSettings | None:
    """Return the settings of a provider; None for a PydanticAI model, which has its own."""
    return build_model_settings(judge) if isinstance(judge, Provider) else None
