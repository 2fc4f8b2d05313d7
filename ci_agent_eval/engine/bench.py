"""Where judges sit: the engine of the episode that is running, its recorder and cassette."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from ci_agent_eval.contract.trajectory import TokenUsage
from ci_agent_eval.engine.cassette.model import CassetteModel
from ci_agent_eval.engine.declarations import Agent, Provider
from ci_agent_eval.engine.model import model_settings
from ci_agent_eval.engine.nested_requests import FIXTURE
from ci_agent_eval.engine.prices import price_table
from ci_agent_eval.engine.rate import Tally
from ci_agent_eval.engine.session import EngineSession
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder
from ci_agent_eval.recording.active_episode import running_episode


class Loop(Protocol):
    """The event loop of a process's engine."""

    @property
    def is_running(self) -> bool:
        """Whether the caller runs on it."""


class Runs(Protocol):
    """What the fixture `aitest_run` is, as far as judges need it."""

    @property
    def recorder(self) -> EpisodeRecorder:
        """The episode's recorder."""

    @property
    def engine(self) -> EngineSession:
        """The process's engine session."""

    @property
    def loop(self) -> Loop:
        """The loop the session lives on."""

    @property
    def episode_id(self) -> str:
        """What the session knows the episode by."""


@dataclass(frozen=True)
class Bench:
    """What a judge's model is asked with: within its limits, from the cassette, counted."""

    session: EngineSession
    episode_id: str
    recorder: EpisodeRecorder

    async def model(self, judge: Provider | Model, tally: Tally) -> Model:
        """Return the model of a judge. Raises InputError where it cannot be built."""
        model = await self._opened(judge, tally)
        self.recorder.note_conditions(judge=model.model_id)
        return CountedModel(model, self)

    async def _opened(self, judge: Provider | Model, tally: Tally) -> Model:
        if isinstance(judge, Provider):
            agent = Agent(judge, name="judge")
            self.session.learn(agent)
            return await self.session.model_for(agent, self.episode_id, tally)
        tape = self.session.tape(self.episode_id)
        return judge if tape is None else CassetteModel(judge, tape)

    def record(self, response: ModelResponse) -> None:
        """Count an answer as the judge's."""
        usage, recorder = response.usage, self.recorder
        tokens = TokenUsage(
            input=usage.input_tokens, output=usage.output_tokens, cached=usage.cache_read_tokens
        )
        # The cassette counts over all that was asked in the episode.
        misses = self.session.cassette_counts(self.episode_id).misses - recorder.cassette_misses
        cost = cost_of(response)
        recorder.record_judge(tokens, cost, cassette_misses=misses)
        if cost is not None:
            recorder.note_conditions(prices=price_table())


class CountedModel(WrapperModel):
    """A model whose answers are counted as a judge's."""

    def __init__(self, wrapped: Model, bench: Bench) -> None:
        super().__init__(wrapped)
        self.bench = bench

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask the model, and record what the answer took."""
        response = await super().request(messages, model_settings, model_request_parameters)
        self.bench.record(response)
        return response


def cost_of(response: ModelResponse) -> float | None:
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


def judge_of(model: object) -> Provider | Model:
    """Return a judge: a provider, a model's name, a model of PydanticAI. Raises InputError."""
    if isinstance(model, Provider | Model):
        return model
    if isinstance(model, str):
        return Provider(model)
    raise InputError(
        f"judge: the model must be a name such as openai:gpt-5-mini, a Provider or a PydanticAI "
        f"model, got {model!r}"
    )


def settings_of(judge: Provider | Model) -> ModelSettings | None:
    """Return the settings a provider declares; a model brings its own."""
    return model_settings(judge) if isinstance(judge, Provider) else None


def bench_of_running(what: str) -> Bench:
    """Return the bench of the running episode. Raises InputError where there is none."""
    running = running_episode()
    if running is None or running.fixture is None:
        raise InputError(
            f"{what}: no episode is running whose judge's cost it could be; "
            "await `check(...)` inside a test that is an episode"
        )
    runs: Runs = running.fixture(FIXTURE)
    if not runs.loop.is_running:
        raise InputError(
            f"{what}: a judge needs the event loop of this plugin; await it in an `async def` "
            "test, not in a thread or `asyncio.run`, and not on trio"
        )
    return Bench(runs.engine, runs.episode_id, runs.recorder)
