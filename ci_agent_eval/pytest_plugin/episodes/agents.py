"""The fixture `aitest_run`: the engine's run, recorded in the test's episode by itself."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.budgets import shared_ledger, suite_budgets
from ci_agent_eval.pytest_plugin.concurrency.coroutines import AT_END
from ci_agent_eval.pytest_plugin.concurrency.session_loop import SessionLoop
from ci_agent_eval.pytest_plugin.session import EpisodeSession
from ci_agent_eval.recording import EpisodeRecorder
from ci_agent_eval.redaction import Redactor

if TYPE_CHECKING:
    from ci_agent_eval.checks.rubric import JudgeVerdict, Rubric
    from ci_agent_eval.contract.episode import Episode
    from ci_agent_eval.engine import (
        Agent,
        AgentResult,
        EngineSession,
        RunLimits,
        SteeringSettings,
    )
    from ci_agent_eval.engine.cassette import CassetteStore
    from ci_agent_eval.engine.judge_models import JudgeModels

ENGINE = pytest.StashKey["Engine"]()


@dataclass(frozen=True)
class Engine:
    """What the episodes of a process share."""

    session: EngineSession
    store: CassetteStore


class AgentRunError(Exception):
    """A run that ended by an infrastructure error; the episode is an error, not a failure.

    `result` holds all that happened.
    """

    def __init__(self, result: AgentResult) -> None:
        super().__init__(f"{result.stop_reason}: {result.error}")
        self.result = result


@dataclass
class EpisodeServers:
    """The servers that an episode holds: given back when its test has ended."""

    engine: EngineSession
    episode_id: str
    _gone: bool = False
    _error: Exception | None = None

    @property
    def is_gone(self) -> bool:
        """Whether they were given back, and nothing went wrong."""
        return self._gone and self._error is None

    async def give_back(self) -> None:
        """Give them back now; what goes wrong is the teardown's to tell."""
        try:
            await self.given_back()
        except Exception as error:  # noqa: BLE001 - see above
            self._error = error

    async def given_back(self) -> None:
        """Give them back, unless they are; raises what went wrong then or before."""
        if self._error is not None:
            raise self._error
        if not self._gone:
            self._gone = True
            await self.engine.end_episode(self.episode_id)


@contextmanager
def record_agent_runs(item: pytest.Item, recorder: EpisodeRecorder) -> Iterator[RecordedRuns]:
    """Give the fixture's runs on the process's one engine session, and hold their cassette."""
    config, loop = item.config, SessionLoop.of(item.config)
    if ENGINE not in config.stash:
        config.stash[ENGINE] = _open_engine(config, loop)
    engine = config.stash[ENGINE]
    folder = options.get_cassette_dir(config, item.path)
    with engine.store.episode(item.nodeid, folder, recorder.scenario_id, recorder.iteration):
        engine.session.begin_episode(item.nodeid)
        held = EpisodeServers(engine.session, item.nodeid)
        # Another episode may wait for its servers, and this one's teardown for its turn.
        item.stash.setdefault(AT_END, []).append(held.give_back)
        try:
            yield RecordedRuns(recorder, engine.session, loop, item.nodeid)
        finally:
            if not held.is_gone:  # nothing is awaited for nothing: the loop has others to run
                loop.run(held.given_back())


def record_nested_requests() -> None:
    """Record and replay what the code of episodes asks of models, where PydanticAI is there."""
    if find_spec("pydantic_ai") is not None:
        from ci_agent_eval.engine.nested_requests import (  # noqa: PLC0415 - inert until used
            record_episode_requests,
        )

        record_episode_requests()


def _open_engine(config: pytest.Config, loop: SessionLoop) -> Engine:
    from ci_agent_eval.engine import EngineSession  # noqa: PLC0415 - inert until used
    from ci_agent_eval.engine.cassette import CassetteStore  # noqa: PLC0415 - as above
    from ci_agent_eval.steering.settings_loader import load_steering_settings  # noqa: PLC0415 - as above

    mode: Any = options.get_cassette_mode(config)
    store = CassetteStore(mode, Redactor.from_environ(os.environ))
    session = EngineSession(
        environ=os.environ,
        clock=time.perf_counter,
        cassette_mode=mode,
        cassettes=store,
        on_secrets=EpisodeSession.of_running(config).learn,
        steering=load_steering_settings(
            root=config.rootpath,
            environ=os.environ,
            enabled=config.option.pytest_full_suite_steering,
        ),
        windows=shared_ledger.get_rate_window_factory(config),
        on_spent=suite_budgets.get_spending_listener(config),
    )
    # A test that runs on the loop already may be the first to ask for the engine.
    session.open()
    loop.close_with(lambda: session.__aexit__(None, None, None))
    return Engine(session, store)


@dataclass(frozen=True)
class RecordedRuns:
    """What the fixture `aitest_run` is: a function whose runs become the test's episode."""

    recorder: EpisodeRecorder
    engine: EngineSession
    loop: SessionLoop
    episode_id: str

    async def __call__(
        self,
        agent: Agent,
        prompt: str,
        *,
        messages: Sequence[Any] | None = None,
        max_turns: int | None = None,
        timeout_s: float | None = 60.0,
        raises: bool = True,
        steering: SteeringSettings | None = None,
        allowed_stops: str | Collection[str] = (),
    ) -> AgentResult:
        """Run an agent and record its turns in the episode, within the episode's hard budgets.

        As `ci_agent_eval.engine.aitest_run`; a run that ended by an infrastructure error
        raises AgentRunError, unless `raises` is False. One that ended without an answer fails
        the episode at its end, unless `allowed_stops` or the marker's names its end.
        """
        from ci_agent_eval.contract.fields import parse_stops  # noqa: PLC0415 - as above
        from ci_agent_eval.engine import aitest_run  # noqa: PLC0415 - inert until used

        if not self.loop.is_running:
            raise InputError(
                f"episode {self.recorder.scenario_id!r}: aitest_run needs the event loop of this "
                "plugin; await it in an `async def` test or fixture, not in a thread or "
                "`asyncio.run`, and not on trio"
            )
        own = self.recorder.allowed_stops
        result = await aitest_run(
            agent,
            prompt,
            session=self.engine,
            messages=messages,
            max_turns=max_turns,
            timeout_s=timeout_s,
            limits=self._limits(),
            episode_id=self.episode_id,
            observer=self._record,
            steering=steering,
            allowed_stops={*parse_stops("aitest_run", "allowed_stops", allowed_stops), *own},
        )
        if raises and result.outcome == "error":
            raise AgentRunError(result)
        return result

    async def judge(self, rubric: Rubric, episode: Episode) -> JudgeVerdict:
        """Ask the rubric's model about an episode. Raises JudgeError and InputError."""
        from ci_agent_eval.engine.judge import ask_judge  # noqa: PLC0415 - inert until used

        return await ask_judge(rubric, episode, self._judge_models())

    async def judge_model(self, model: object) -> Any:
        """Return a judge's model, rate limited, replayed and counted. Raises InputError."""
        from ci_agent_eval.engine.judge_models import parse_judge_model  # noqa: PLC0415 - inert until used
        from ci_agent_eval.engine.rate_limits import RateLimitTally  # noqa: PLC0415 - as above

        return await self._judge_models().build(parse_judge_model(model), RateLimitTally())

    def _judge_models(self) -> JudgeModels:
        from ci_agent_eval.engine.judge_models import JudgeModels  # noqa: PLC0415 - inert until used

        return JudgeModels(self.engine, self.episode_id, self.recorder)

    def _limits(self) -> RunLimits:
        """Return what the hard budgets leave after the turns so far."""
        from ci_agent_eval.engine import RunLimits  # noqa: PLC0415 - inert until used

        return RunLimits.from_budgets(self.recorder.budgets).after(self.recorder.trajectory)

    def _record(self, result: AgentResult) -> None:
        from ci_agent_eval.engine.prices import get_price_table  # noqa: PLC0415 - inert until used

        self.recorder.record_run(
            result.turns,
            stop_reason=result.stop_reason,
            error=result.error,
            allowed_stops=result.allowed_stops,
            needs_turn=result.needs_turn,
            rate_limited=result.rate_limited,
            # The cassette counts over all runs of the episode.
            cassette_misses=result.cassette.misses - self.recorder.cassette_misses,
        )
        # An adapter that does not know its agent's tools says none.
        self.recorder.note_conditions(
            tools=tuple(sorted(set(result.available_tools))) or None,
            prices=None if result.cost_usd is None else get_price_table(),
        )
        self.recorder.agent = self.recorder.agent or result.agent
        self.recorder.model = self.recorder.model or result.model
